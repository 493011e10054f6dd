//! Fleets that observe chains of calls: what instances note of what they carry is what `tomo chains` notes of all, and what is
//! only inferred is told apart.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use serde_json::Value;
use tomo_protocol::{Answer, Campaign, What, paths};
use tomo_wire::report::{Follows, Link, Report};
use zerocopy::little_endian::{U32, U64};
use zerocopy::{FromBytes as _, IntoBytes as _};

use crate::instances::{Fleet, Subject, bzip2};
use crate::site::{Site, report};

/// How often each chain was called, by its steps.
type Called = BTreeMap<Vec<String>, u64>;

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// The chains of a document, each by its steps: how, from where, whom.
fn called(document: &Value) -> Called {
    let mut steps: Vec<Vec<String>> = vec![Vec::new()];
    let mut all = Called::new();
    for row in document["chains"].as_array().expect("chains") {
        let parent = row["parent"].as_u64().expect("a number") as usize;
        let step = [&row["way"], &row["site"], &row["function"]]
            .map(text)
            .join(" ");
        let chain = [steps[parent].clone(), vec![step]].concat();
        *all.entry(chain.clone()).or_default() += row["calls"].as_u64().expect("a number");
        steps.push(chain);
    }
    all
}

/// How often each function was called.
fn functions(called: &Called) -> BTreeMap<String, u64> {
    let mut all = BTreeMap::new();
    for (chain, calls) in called {
        let last = chain.last().expect("a step");
        let function = last.rsplit(' ').next().expect("a function").to_owned();
        *all.entry(function).or_default() += calls;
    }
    all
}

/// What `tomo chains` tells of all runs together, each on an installation of its own.
fn alone(site: &Site, subject: &Subject) -> Called {
    let mut all = Called::new();
    for words in &subject.runs {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tomo"));
        command
            .args(["chains", "-o", "runs", "--json", "chains.json", "--"])
            .arg(&subject.program)
            .args(words)
            .current_dir(site.folder.path())
            .env("TOMO_CACHE_DIR", site.path("cache"));
        let output = command.output().expect("tomo");
        assert!(output.status.success(), "{output:?}");
        let document = std::fs::read(site.path("chains.json")).expect("a document");
        let document: Value = serde_json::from_slice(&document).expect("JSON");
        for (chain, calls) in called(&document) {
            *all.entry(chain).or_default() += calls;
        }
    }
    all
}

#[test]
fn who_carries_all_notes_what_one_run_would() {
    let site = Site::new();
    let subject = bzip2(&site);
    let words = ["campaign", "new", "--observe", "chains"];
    let fleet = Fleet::of(site, subject.program.clone(), &words);
    fleet.run_all(&subject, 1);
    let (document, profile) = fleet.reported();
    assert_eq!(called(&document), alone(&fleet.site, &subject));
    assert_eq!(
        document["inferred"]["chains"].as_array().map(Vec::len),
        Some(0)
    );
    assert_eq!(profile.seen.len(), functions(&called(&document)).len());
    let text = fleet.site.tomo(&["fleet", "report", &fleet.id]);
    assert!(
        text.contains("function, from which it was called"),
        "{text}"
    );
    assert!(!text.contains("inferred"), "{text}");
}

/// Whether a chain begins in a function that was entered from outside, and has no gap.
fn is_whole(chain: &[String]) -> bool {
    let way = |step: &String| step.split(' ').next().unwrap_or_default().to_owned();
    let mut ways = chain.iter().map(way);
    ways.next().as_deref() == Some("outside")
        && ways.all(|way| ["call", "tail-call"].contains(&way.as_str()))
}

#[test]
fn parts_of_chains_are_put_together_and_what_is_inferred_is_told_apart() {
    let site = Site::new();
    let subject = bzip2(&site);
    let words = [
        "campaign",
        "new",
        "--observe",
        "chains",
        "--probes",
        "25",
        "--variants",
        "4",
        "--strategy",
        "balanced-probes",
    ];
    let fleet = Fleet::of(site, subject.program.clone(), &words);
    let campaign = fleet.campaign();
    fleet.run_all(&subject, 4);
    let (document, profile) = fleet.reported();
    let (told, whole) = (called(&document), alone(&fleet.site, &subject));
    // A function is called as often whoever else is observed.
    let (of_fleet, of_runs) = (functions(&told), functions(&whole));
    assert!(of_fleet.len() > 15, "{}", of_fleet.len());
    let carriers = |unit: u32| {
        campaign
            .variants
            .iter()
            .filter(|one| one.units.has(unit))
            .count() as u64
    };
    let sum: u64 = profile
        .seen
        .iter()
        .map(|seen| seen.count.expect("a count"))
        .sum();
    assert_eq!(sum, of_fleet.values().sum::<u64>());
    for (function, calls) in &of_fleet {
        let once = of_runs[function];
        assert!(
            calls.is_multiple_of(once) && calls / once <= 4,
            "{function}: {calls}, {once}"
        );
    }
    for seen in &profile.seen {
        assert!(u64::from(seen.instances) <= carriers(seen.unit));
    }
    // What is told without a gap from the program's start on did happen, as often.
    let main: Vec<_> = told
        .iter()
        .filter(|(chain, calls)| is_whole(chain) && **calls > 0)
        .collect();
    let starts: BTreeSet<&String> = whole.keys().filter_map(|chain| chain.first()).collect();
    for (chain, calls) in main.iter().filter(|(chain, _)| starts.contains(&chain[0])) {
        let once = whole
            .get(*chain)
            .unwrap_or_else(|| panic!("{chain:?} never happened"));
        assert!(calls.is_multiple_of(*once), "{chain:?}: {calls}, {once}");
    }
    // And what is inferred was carried by nobody as a whole.
    let inferred = document["inferred"]["chains"].as_array().expect("chains");
    assert!(!inferred.is_empty());
    let text = fleet.site.tomo(&["fleet", "report", &fleet.id]);
    assert!(text.contains("inferred, and perhaps false: "), "{text}");
}

#[test]
fn all_techniques_share_out_chains_or_say_why_not() {
    let site = Site::new();
    let program = site.path("prog").to_str().expect("UTF-8").to_owned();
    let first = ["campaign", "new", "--observe", "chains", &program];
    let tomo = |words: &[&str]| site.tomo(&first.iter().chain(words).copied().collect::<Vec<_>>());
    let refusal =
        |words: &[&str]| site.refusal(&first.iter().chain(words).copied().collect::<Vec<_>>());
    for way in ["random", "balanced", "packed", "balanced-packed"] {
        for kind in ["probes", "events", "clusters"] {
            let strategy = format!("{way}-{kind}");
            if kind == "probes" && way.contains("packed") {
                continue;
            }
            let id = tomo(&["--strategy", &strategy, "--probes", "3", "--variants", "2"]);
            let shown = site.tomo(&["campaign", "show", id.trim(), "--json"]);
            let campaign: Campaign = serde_json::from_str(&shown).expect("a campaign");
            assert_eq!(campaign.strategy.name(), strategy);
            assert!(
                campaign
                    .variants
                    .iter()
                    .all(|one| (1..=3).contains(&one.units.len())),
                "{strategy}"
            );
        }
    }
    let said = refusal(&["--strategy", "balanced-events", "--events", "none.json"]);
    assert!(said.contains("none.json"), "{said}");
    let said = refusal(&["--events", "none.json"]);
    assert!(said.contains("strategy for events"), "{said}");
    // The chains of a run.
    let mut command = Command::new(env!("CARGO_BIN_EXE_tomo"));
    command
        .args(["chains", "-o", "runs", "--json", "run.json", "--", &program])
        .current_dir(site.folder.path())
        .env("TOMO_CACHE_DIR", site.path("cache"));
    assert!(command.output().expect("tomo").status.success());
    let events = [
        "--strategy",
        "balanced-events",
        "--probes",
        "3",
        "--events",
        "run.json",
    ];
    let id = tomo(&events);
    assert!(
        site.tomo(&["campaign", "show", id.trim()])
            .contains("by balanced-events")
    );
}

#[test]
fn chains_that_cannot_be_are_refused_with_the_reason() {
    let words = [
        "campaign",
        "new",
        "--observe",
        "chains",
        "--probes",
        "3",
        "--strategy",
        "balanced-probes",
    ];
    let fleet = Fleet::new("isolating.c", &words);
    let (campaign, client) = (fleet.campaign(), fleet.client());
    let carried = &campaign.variants[0].units;
    let own = carried.iter().next().expect("a unit");
    let foreign = (0..campaign.units)
        .find(|unit| !carried.has(*unit))
        .expect("another");
    let send = |unit: u32, links: &[(u32, u32)]| -> What {
        let bare = report(&campaign, 1, 0, &[unit]);
        let (head, _) = Report::read_from_prefix(&bare).expect("a header");
        let links: Vec<Link> = links
            .iter()
            .map(|(parent, unit)| Link {
                parent: (*parent).into(),
                way: 3.into(),
                site: 0.into(),
                unit: (*unit).into(),
                calls: 2.into(),
            })
            .collect();
        let body = [
            U32::new(unit).as_bytes(),
            U64::new(4).as_bytes(),
            links.as_bytes(),
        ]
        .concat();
        let follows = Follows {
            hits: 1,
            counts: 1,
            links: links.len() as u32,
            frames: 0,
        };
        let body = [head.sealed_over(follows, &body).as_slice(), &body].concat();
        let answer: Answer = client.post_bytes(paths::REPORTS, &body).expect("an answer");
        match answer.verdicts.first() {
            Some(verdict) => verdict.what.clone(),
            None => What::Refused {
                why: answer.unread.expect("a reason"),
                again: false,
            },
        }
    };
    let why = |what: What| match what {
        What::Refused { why, again: false } => why,
        other => panic!("{other:?}"),
    };
    assert!(why(send(own, &[(0, foreign)])).contains("does not carry"));
    assert!(why(send(own, &[(1, own)])).contains("contradicts itself"));
    assert_eq!(send(own, &[(0, own), (1, own)]), What::Stored);
    assert_eq!(send(own, &[(0, own), (1, own)]), What::Known);
    let (_, profile) = fleet.reported();
    let calls: Vec<_> = profile.chains[0]
        .chains
        .iter()
        .map(|one| (one.parent, one.calls))
        .collect();
    assert_eq!(calls, [(0, Some(2)), (1, Some(2))]);
}
