//! The API: its document, who may ask what, and what it answers.

use serde_json::Value;
use tomo_collector::Store;
use tomo_protocol::{
    Bound, Campaign, CampaignId, ClientError, Growth, InstanceId, Name, Numbers, Profile, Role,
    Since, Summary, Units, What, paths,
};

use crate::fleet::{Fleet, STEM, Word, client, plan_of, request, token};

fn fleet(probes: u32, variants: u32, bound: Bound) -> (tempfile::TempDir, Fleet) {
    let folder = tempfile::tempdir().expect("a folder");
    let store = Store::local(&folder.path().join("store")).expect("a store");
    let fleet = Fleet::new(store, folder.path(), probes, variants, bound);
    (folder, fleet)
}

/// The document that is kept, which must be the one that the handlers make.
fn document() -> Value {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/openapi.json");
    let made = tomo_collector::document().expect("a document");
    if std::env::var_os("TOMO_BLESS").is_some() {
        std::fs::write(path, &made).expect("a file");
    }
    let kept = std::fs::read_to_string(path).expect("docs/openapi.json");
    assert!(
        made == kept,
        "docs/openapi.json is not what the handlers say; run with TOMO_BLESS=1"
    );
    serde_json::from_str(&kept).expect("JSON")
}

/// Every operation of the document: method, path, and the roles that may use it; none for everybody.
fn operations() -> Vec<(String, String, Vec<String>)> {
    let document = document();
    let paths = document["paths"].as_object().expect("paths").clone();
    let mut operations = Vec::new();
    for (path, item) in paths {
        for (method, operation) in item.as_object().expect("an item") {
            let roles = operation["security"].as_array().expect("security");
            let roles = roles
                .iter()
                .flat_map(|one| one.as_object().expect("a role").keys());
            operations.push((method.clone(), path.clone(), roles.cloned().collect()));
        }
    }
    assert!(operations.len() >= 20);
    operations
}

#[test]
fn the_document_is_that_of_the_handlers_and_names_every_path() {
    let operations = operations();
    let known = [
        paths::HEALTH,
        paths::REPORTS,
        paths::ASSIGNMENT,
        paths::PROGRAMS,
        paths::PROGRAM,
        paths::MODEL,
        paths::FILE,
        paths::PLAN,
        paths::TERRAIN,
        paths::CAMPAIGNS,
        paths::CAMPAIGN,
        paths::STATUS,
        paths::PROFILE,
        paths::GROWTH,
        paths::SEARCH,
        paths::TOKENS,
        paths::RETIRE,
        paths::TOKEN,
        paths::METRICS,
    ];
    for path in known {
        assert!(
            operations.iter().any(|(_, named, _)| named == path),
            "{path}"
        );
    }
    assert!(
        operations
            .iter()
            .all(|(_, path, _)| known.contains(&path.as_str()))
    );
}

/// The status with which one operation is answered.
fn status_of(url: &str, token: Option<&str>, method: &str, path: &str) -> u16 {
    let path = path
        .replace("{stem}", STEM)
        .replace("{name}", "00000000000000aa")
        .replace("{id}", "00112233445566778899aabbccddeeff")
        .replace("{hash}", &"0".repeat(64));
    let client = client(url, token);
    let outcome: Result<Value, ClientError> = match method {
        "get" => client.get_bytes(&path).map(|_| Value::Null),
        "post" => client.post_bytes(&path, b"{}"),
        "put" => client.put_bytes(&path, b"{}"),
        "delete" => client.delete(&path),
        other => panic!("method {other}"),
    };
    match outcome {
        Ok(_) | Err(ClientError::Answer { .. }) => 200,
        Err(ClientError::Refused {
            status, problem, ..
        }) => {
            assert!(!problem.error.is_empty() && !problem.advice.is_empty());
            status
        }
        Err(error) => panic!("{method} {path}: {error}"),
    }
}

#[test]
fn no_endpoint_without_token_but_health() {
    let (_folder, fleet) = fleet(10, 2, Bound::Probes(5));
    for (method, path, roles) in operations() {
        for token in [None, Some("tomo_admin_00"), Some("")] {
            let status = status_of(&fleet.url, token, &method, &path);
            let expected = if path == paths::HEALTH { 200 } else { 401 };
            assert_eq!(status, expected, "{method} {path} {roles:?}");
        }
    }
}

#[test]
fn no_role_does_what_the_document_does_not_grant_it() {
    let (_folder, fleet) = fleet(10, 2, Bound::Probes(5));
    let instance = token(&fleet.admin, fleet.campaign.id, Role::Instance);
    let reader = token(&fleet.admin, fleet.campaign.id, Role::Reader);
    for (method, path, roles) in operations() {
        for (role, token) in [("instance", &instance), ("reader", &reader)] {
            let status = status_of(&fleet.url, Some(token), &method, &path);
            let granted = path == paths::HEALTH || roles.iter().any(|one| one == role);
            // What is granted may still be refused for what it names: another campaign's.
            if !granted {
                assert_eq!(status, 403, "{method} {path} as {role}");
            } else {
                assert_ne!(status, 401, "{method} {path} as {role}");
            }
        }
    }
}

#[test]
fn a_token_of_one_campaign_reads_nothing_of_another() {
    let (_folder, fleet) = fleet(10, 2, Bound::Probes(5));
    let plan = plan_of(10).0;
    let other: Campaign = fleet
        .admin
        .post(paths::CAMPAIGNS, &request(plan, 1, Bound::None))
        .expect("a campaign");
    for path in [
        paths::CAMPAIGN,
        paths::STATUS,
        paths::PROFILE,
        paths::GROWTH,
    ] {
        let of = |id| fleet.reader.get_bytes(&paths::of_campaign(path, id));
        assert!(of(fleet.campaign.id).is_ok(), "{path}");
        for foreign in [other.id, CampaignId([9; 16])] {
            let error = of(foreign).expect_err(path);
            assert!(
                matches!(error, ClientError::Refused { status: 403, .. }),
                "{error}"
            );
        }
    }
    let listed: Vec<Summary> = fleet.reader.get(paths::CAMPAIGNS).expect("a list");
    assert_eq!(listed.len(), 1);
    assert_eq!(listed[0].id, fleet.campaign.id);
    // Builds and plans that the campaign does not observe.
    let foreign = [
        paths::of_program(paths::PROGRAM, "cd02-00"),
        paths::of_program(paths::MODEL, "cd02-00"),
        paths::of_plan(Name(1)),
    ];
    for path in foreign {
        let error = fleet.reader.get_bytes(&path).expect_err(&path);
        assert!(
            matches!(error, ClientError::Refused { status: 403, .. }),
            "{error}"
        );
    }
    assert!(fleet.reader.get_bytes(&paths::of_plan(plan)).is_ok());
    // An instance's report for another campaign than its token's.
    let answer = fleet.send(&Word::of(1, 1, &[]).report(&other));
    let What::Refused { why, again: false } = &answer.verdicts[0].what else {
        panic!("{answer:?}");
    };
    assert!(why.contains("another campaign"), "{why}");
}

#[test]
fn a_withdrawn_token_is_worth_nothing() {
    let (_folder, fleet) = fleet(10, 2, Bound::Probes(5));
    let path = paths::of_campaign(paths::TOKENS, fleet.campaign.id);
    let new = tomo_protocol::NewToken {
        role: Role::Reader,
        note: "for a while".into(),
    };
    let token: tomo_protocol::Token = fleet.admin.post(&path, &new).expect("a token");
    let reader = client(&fleet.url, Some(&token.token));
    assert!(reader.get::<Value>(paths::CAMPAIGNS).is_ok());
    let _: Value = fleet
        .admin
        .delete(&paths::of_token(&token.hash))
        .expect("withdrawn");
    let error = reader.get::<Value>(paths::CAMPAIGNS).unwrap_err();
    assert!(
        matches!(error, ClientError::Refused { status: 401, .. }),
        "{error}"
    );
}

#[test]
fn variants_go_to_instances_evenly_and_stay() {
    let (_folder, fleet) = fleet(30, 3, Bound::Probes(10));
    let mut counts = [0; 3];
    for instance in 1..=9 {
        let assignment = fleet.assignment(instance);
        counts[assignment.variant as usize] += 1;
        assert_eq!(assignment.units.len(), 10);
        assert_eq!(assignment.plans, fleet.campaign.plans);
        assert_eq!(assignment, fleet.assignment(instance));
    }
    assert_eq!(counts, [3, 3, 3]);
}

#[test]
fn reports_become_a_profile() {
    let (_folder, fleet) = fleet(30, 3, Bound::Probes(10));
    let unit_of = |variant: u32| {
        let units = &fleet.campaign.variants[variant as usize].units;
        units.iter().next().expect("a unit")
    };
    let mut body = Vec::new();
    for (instance, variant) in [(1, 0), (2, 0), (3, 1)] {
        let mut word = Word::of(instance, 1, &[unit_of(variant)]);
        word.variant = variant;
        body.extend(word.report(&fleet.campaign));
    }
    let answer = fleet.send(&body);
    assert!(answer.verdicts.iter().all(|one| one.what == What::Stored));
    assert!(
        fleet
            .send(&body)
            .verdicts
            .iter()
            .all(|one| one.what == What::Known)
    );
    let id = fleet.campaign.id;
    let profile: Profile = fleet
        .reader
        .get(&paths::of_campaign(paths::PROFILE, id))
        .unwrap();
    let seen: Vec<_> = profile
        .seen
        .iter()
        .map(|seen| (seen.unit, seen.instances))
        .collect();
    let mut expected = vec![(unit_of(0), 2), (unit_of(1), 1)];
    expected.sort_unstable();
    assert_eq!(seen, expected);
    assert_eq!((profile.totals.runs, profile.instances), (3, 3));
    // Balanced over three variants of ten, each unit is in one: nine of variant 0 were watched twice,
    // nine of variant 1 once, ten of variant 2 never.
    let unseen: Vec<_> = profile
        .unseen
        .iter()
        .map(|group| (group.units.len(), group.instances, group.duration))
        .collect();
    assert_eq!(
        unseen,
        [(9, 2, 2_000_000_000), (9, 1, 1_000_000_000), (10, 0, 0)]
    );
    let growth: Growth = fleet
        .reader
        .get(&paths::of_campaign(paths::GROWTH, id))
        .unwrap();
    assert_eq!(growth.all.last().map(|point| point.1), Some(2));
    assert_eq!(growth.instances.len(), 3);
    let status: Numbers = fleet
        .reader
        .get(&paths::of_campaign(paths::STATUS, id))
        .unwrap();
    assert_eq!(
        (status.seen, status.carried, status.instances.len()),
        (2, 30, 3)
    );
}

#[test]
fn news_are_what_came_since() {
    let (_folder, fleet) = fleet(30, 1, Bound::None);
    let ask = |since: Option<Since>| {
        let path = paths::of_assignment(InstanceId([1; 16]), since);
        let assignment: tomo_protocol::Assignment = fleet.instances.get(&path).unwrap();
        assignment.news
    };
    let nothing = ask(None);
    assert!(nothing.units.is_empty());
    fleet.send(&Word::of(2, 1, &[4, 5]).report(&fleet.campaign));
    let first = ask(Some(nothing.since()));
    assert_eq!(first.units, Units::of([4, 5]));
    fleet.send(&Word::of(3, 1, &[5, 9]).report(&fleet.campaign));
    assert_eq!(ask(Some(first.since())).units, Units::of([9]));
    assert_eq!(ask(None).units, Units::of([4, 5, 9]));
    let other = Since {
        epoch: Name(1),
        from: 99,
    };
    assert_eq!(
        ask(Some(other)).units,
        Units::of([4, 5, 9]),
        "another list begins at its start"
    );
    let ahead = Since {
        epoch: first.epoch,
        from: u64::MAX,
    };
    assert!(ask(Some(ahead)).units.is_empty());
    let path = paths::of_reports(Some(first.since()));
    let body = Word::of(3, 2, &[]).report(&fleet.campaign);
    let answer: tomo_protocol::Answer = fleet.instances.post_bytes(&path, &body).unwrap();
    assert_eq!(answer.news.map(|news| news.units), Some(Units::of([9])));
}

#[test]
fn a_retired_campaign_takes_nothing_and_keeps_what_it_has() {
    let (_folder, fleet) = fleet(30, 1, Bound::None);
    fleet.send(&Word::of(1, 1, &[4]).report(&fleet.campaign));
    let path = paths::of_campaign(paths::RETIRE, fleet.campaign.id);
    let summary: Summary = fleet.admin.post(&path, &()).unwrap();
    assert!(summary.retired);
    let answer = fleet.send(&Word::of(1, 2, &[5]).report(&fleet.campaign));
    assert!(matches!(
        &answer.verdicts[0].what,
        What::Refused { again: false, .. }
    ));
    let path = paths::of_assignment(InstanceId([9; 16]), None);
    let error = fleet.instances.get::<Value>(&path).unwrap_err();
    assert!(
        matches!(error, ClientError::Refused { status: 410, .. }),
        "{error}"
    );
    let path = paths::of_campaign(paths::PROFILE, fleet.campaign.id);
    let profile: Profile = fleet.reader.get(&path).unwrap();
    assert_eq!(profile.seen.len(), 1);
}

#[test]
fn metrics_count_what_happened() {
    let (_folder, fleet) = fleet(30, 1, Bound::None);
    fleet.send(&Word::of(1, 1, &[4]).report(&fleet.campaign));
    let text = fleet.admin.get_bytes(paths::METRICS).unwrap();
    let text = String::from_utf8(text).unwrap();
    assert!(
        text.contains("tomo_reports_total{what=\"stored\"} 1\n"),
        "{text}"
    );
    assert!(text.ends_with("# EOF\n"));
}

#[test]
fn campaigns_that_make_no_sense_are_refused_with_reasons() {
    let (_folder, fleet) = fleet(10, 1, Bound::None);
    let plan = plan_of(10).0;
    let sound = request(plan, 2, Bound::Probes(5));
    let refused = |change: &dyn Fn(&mut tomo_protocol::NewCampaign)| {
        let mut new = sound.clone();
        change(&mut new);
        fleet
            .admin
            .post::<Campaign>(paths::CAMPAIGNS, &new)
            .unwrap_err()
            .to_string()
    };
    let texts = [
        refused(&|new| new.modules.clear()),
        refused(&|new| new.name.clear()),
        refused(&|new| new.name = " \u{200b}".into()),
        refused(&|new| new.variants = 1_000_000),
        refused(&|new| new.bound = Bound::Probes(0)),
        refused(&|new| new.modules[0].stem = "cd02-00".into()),
        refused(&|new| new.modules[0].plan = Name(1)),
        refused(&|new| new.modules[0].level = "edge".into()),
        refused(&|new| new.strategy = tomo_protocol::Strategy::PackedClusters),
        refused(&|new| new.modules[0].clusters = vec![Units::of([10])]),
    ];
    insta::assert_snapshot!(texts.join("\n"));
}

/// Whatever it says of itself, it is one, which watched for as long as all its runs took.
#[test]
fn an_instance_of_several_variants_counts_once() {
    let (_folder, fleet) = fleet(30, 3, Bound::None);
    let mut body = Word::of(2, 1, &[]).report(&fleet.campaign);
    for variant in 0..3 {
        let mut word = Word::of(1, 1 + u64::from(variant), &[]);
        word.variant = variant;
        body.extend(word.report(&fleet.campaign));
    }
    fleet.send(&body);
    let path = paths::of_campaign(paths::PROFILE, fleet.campaign.id);
    let profile: Profile = fleet.reader.get(&path).expect("a profile");
    let unseen = profile.unseen.iter();
    let unseen: Vec<_> = unseen.map(|one| (one.instances, one.duration)).collect();
    assert_eq!(unseen, [(2, 4_000_000_000)]);
}
