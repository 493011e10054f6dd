//! Fleets that count paths: what all instances report is what their runs did, of what they carried.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use serde_json::Value;
use tomo_protocol::{Answer, Campaign, InstanceId, Profile, What, paths};
use tomo_wire::report::{Follows, Report};
use zerocopy::IntoBytes as _;
use zerocopy::little_endian::{U32, U64};

use crate::instances::{Fleet, Subject, bzip2};
use crate::site::{Site, report};

/// How often each path ran, by the function's entry, the blocks and the end.
type Ran = BTreeMap<(String, String), u64>;

/// The paths that a document of `tomo paths` tells.
fn ran(document: &Value) -> Ran {
    let mut ran = Ran::new();
    for function in document["functions"].as_array().expect("functions") {
        for path in function["paths"].as_array().expect("paths") {
            let name = format!("{} {}", path["blocks"], path["end"]);
            let count = path["count"].as_u64().expect("a count");
            if count > 0 {
                ran.insert((function["address"].to_string(), name), count);
            }
        }
    }
    ran
}

/// What `tomo paths` tells of a run of the program with these words, put into this folder of runs.
fn alone(site: &Site, subject: &Subject, words: &[String], runs: &str) -> Value {
    let file = site.path("alone.json");
    let mut command = Command::new(env!("CARGO_BIN_EXE_tomo"));
    command
        .args(["paths", "--format", "json", "-o"])
        .arg(site.path(runs))
        .arg("--to")
        .arg(&file)
        .arg("--")
        .arg(&subject.program)
        .args(words)
        .env("TOMO_CACHE_DIR", site.path("cache"));
    let output = command.output().expect("tomo");
    assert!(output.status.success(), "{output:?}");
    let text = std::fs::read(&file).expect("a document");
    serde_json::from_slice(&text).expect("JSON")
}

/// The functions whose paths ran somewhere in the fleet.
fn functions(ran: &Ran) -> BTreeSet<&str> {
    ran.keys().map(|(function, _)| function.as_str()).collect()
}

#[test]
fn what_a_fleet_counts_is_what_its_runs_did() {
    let site = Site::new();
    let subject = bzip2(&site);
    let words = [
        "campaign",
        "new",
        "--observe",
        "paths",
        "--probes",
        "3000",
        "--variants",
        "3",
    ];
    let fleet = Fleet::of(site, subject.program.clone(), &words);
    let campaign = fleet.campaign();
    assert_eq!(campaign.strategy.name(), "balanced-clusters");
    assert_eq!(campaign.variants.len(), 3);
    fleet.run_all(&subject, 3);
    let mut expected = Ran::new();
    for words in &subject.runs {
        for (path, count) in ran(&alone(&fleet.site, &subject, words, "runs")) {
            *expected.entry(path).or_default() += count;
        }
    }
    let (document, _) = fleet.reported();
    let told = ran(&document);
    // Whole functions are carried, some by several instances: each adds what the same runs did there.
    let mut by_function: BTreeMap<&str, BTreeSet<u64>> = BTreeMap::new();
    for ((function, path), count) in &told {
        let once = expected[&(function.clone(), path.clone())];
        assert_eq!(count % once, 0, "{function} {path}");
        by_function
            .entry(function)
            .or_default()
            .insert(count / once);
    }
    assert!(
        by_function.values().all(|times| times.len() == 1),
        "{by_function:?}"
    );
    assert!(by_function.len() > 20, "{}", by_function.len());
    // Nothing that ran in a function that was carried is missing.
    let carried = functions(&told);
    let missing = expected
        .keys()
        .filter(|path| carried.contains(path.0.as_str()) && !told.contains_key(*path));
    assert_eq!(missing.count(), 0);
    let fleet_says = &document["fleet"];
    assert_eq!(fleet_says["instances"], 3);
    assert_eq!(fleet_says["runs"], 3 * subject.runs.len());
    let path = &document["functions"][0]["paths"][0];
    assert!(
        path["instances"]
            .as_u64()
            .is_some_and(|instances| instances >= 1),
        "{path}"
    );
    let text = fleet.site.tomo(&["fleet", "report", &fleet.id]);
    assert!(
        text.contains("paths ran,") && text.contains("never seen: "),
        "{text}"
    );
    let refusal = fleet
        .site
        .refusal(&["fleet", "report", &fleet.id, "--format", "lcov"]);
    assert!(refusal.contains("no such format"), "{refusal}");
}

/// Each process of a session has counters of its own; what is reported is all of them together.
#[test]
fn a_session_counts_what_all_that_it_starts_does() {
    const TIMES: u64 = 30;
    let site = Site::new();
    let subject = bzip2(&site);
    let words = ["campaign", "new", "--observe", "paths", "--variants", "1"];
    let fleet = Fleet::of(site, subject.program.clone(), &words);
    fleet.prepare(0);
    let run = &subject.runs[0];
    let script = format!(
        r#"i=0; while [ $i -lt {TIMES} ]; do "$0" "$@" >/dev/null || exit 9; i=$((i + 1)); done"#
    );
    let output = fleet.session(0, &script, run);
    assert!(output.status.success(), "{output:?}");
    assert!(output.stderr.is_empty(), "{output:?}");
    let once = ran(&alone(&fleet.site, &subject, run, "runs"));
    let expected: Ran = once
        .into_iter()
        .map(|(path, n)| (path, n * TIMES))
        .collect();
    let (document, _) = fleet.reported();
    assert_eq!(ran(&document), expected);
    assert_eq!(document["fleet"]["runs"], 1);
}

/// The hottest paths of a run, each to another instance: what each tells of its own is exact.
#[test]
fn selected_paths_are_shared_out_and_counted_apart() {
    let site = Site::new();
    let subject = bzip2(&site);
    let first = &subject.runs[0];
    let whole = ran(&alone(&site, &subject, first, "runs"));
    let runs = std::fs::read_dir(site.path("runs")).expect("runs");
    let run = runs.flatten().next().expect("a run").path();
    let run = run.to_str().expect("UTF-8").to_owned();
    let words = [
        "campaign",
        "new",
        "--observe",
        "paths",
        "--select",
        "hot:24",
        "--of",
        &run,
    ];
    let more = [
        "--probes",
        "8",
        "--variants",
        "3",
        "--strategy",
        "balanced-probes",
    ];
    let fleet = Fleet::of(site, subject.program.clone(), &[&words[..], &more].concat());
    for instance in 0..3 {
        fleet.prepare(instance);
        let words: Vec<&str> = first.iter().map(String::as_str).collect();
        assert!(fleet.tomo(instance, &[], &words).status.success());
    }
    let (document, _) = fleet.reported();
    let told = ran(&document);
    assert!(told.len() >= 20, "{}", told.len());
    for (path, count) in &told {
        assert_eq!(Some(count), whole.get(path), "{path:?}");
    }
    // The same document selects them for a single run.
    std::fs::write(fleet.site.path("hot.json"), document.to_string()).expect("a file");
    let mut command = Command::new(env!("CARGO_BIN_EXE_tomo"));
    command
        .args(["paths", "--select", "hot.json", "--", "/bin/true"])
        .current_dir(fleet.site.folder.path())
        .env("TOMO_CACHE_DIR", fleet.site.path("cache"));
    let other = String::from_utf8(command.output().expect("tomo").stderr).expect("text");
    assert!(other.contains("is of the build"), "{other}");
}

#[test]
fn runs_are_put_together_on_one_machine() {
    let site = Site::new();
    let subject = bzip2(&site);
    let mut expected = Ran::new();
    for words in subject.runs.iter().take(2) {
        for (path, count) in ran(&alone(&site, &subject, words, "runs")) {
            *expected.entry(path).or_default() += count;
        }
    }
    let runs = std::fs::read_dir(site.path("runs"))
        .expect("runs")
        .flatten();
    let runs: Vec<String> = runs
        .map(|run| run.path().to_str().expect("UTF-8").to_owned())
        .collect();
    assert_eq!(runs.len(), 2);
    let words = ["paths", "--format", "json", "--show", &runs[0], &runs[1]];
    let together: Value = serde_json::from_str(&site.tomo(&words)).expect("JSON");
    assert_eq!(ran(&together), expected);
    assert!(
        site.tomo(&["paths", "--show", &runs[0]])
            .contains("paths ran,")
    );
    let refusal = site.refusal(&["paths", "--show", "fleet"]);
    assert!(refusal.contains("fleet"), "{refusal}");
}

/// A report of an installation's first run with these counts.
fn counting(campaign: &Campaign, instance: u8, counted: &[(u32, u64)]) -> Vec<u8> {
    let units: Vec<u32> = counted.iter().map(|(unit, _)| *unit).collect();
    let bare = report(campaign, instance, 0, &units);
    let (head, rest) = zerocopy::FromBytes::read_from_prefix(&bare).expect("a header");
    let (head, rest): (Report, &[u8]) = (head, rest);
    let hits: Vec<U32> = units.iter().map(|unit| U32::new(*unit)).collect();
    assert_eq!(hits.as_bytes(), rest);
    let counts: Vec<U64> = counted.iter().map(|(_, count)| U64::new(*count)).collect();
    let body = [hits.as_bytes(), counts.as_bytes()].concat();
    let follows = Follows {
        hits: hits.len() as u32,
        counts: counts.len() as u32,
        ..Follows::default()
    };
    [head.sealed_over(follows, &body).as_slice(), &body].concat()
}

#[test]
fn counts_that_cannot_be_are_refused_with_the_reason() {
    let words = [
        "campaign",
        "new",
        "--observe",
        "paths",
        "--probes",
        "10",
        "--strategy",
        "balanced-probes",
    ];
    let fleet = Fleet::new("isolating.c", &words);
    let (campaign, client) = (fleet.campaign(), fleet.client());
    let send = |body: &[u8]| -> What {
        let answer: Answer = client.post_bytes(paths::REPORTS, body).expect("an answer");
        answer.verdicts[0].what.clone()
    };
    let why = |what: What| match what {
        What::Refused { why, again: false } => why,
        other => panic!("{other:?}"),
    };
    let carried = &campaign.variants[0].units;
    let (one, other) = (
        carried.iter().next().expect("a unit"),
        carried.iter().last().expect("a unit"),
    );
    let foreign = (0..campaign.units)
        .find(|unit| !carried.has(*unit))
        .expect("another");
    assert!(why(send(&report(&campaign, 1, 0, &[one]))).contains("does not count what it does"));
    assert!(why(send(&counting(&campaign, 1, &[(foreign, 3)]))).contains("does not carry"));
    let mut elsewhere = campaign.clone();
    elsewhere.id.0[0] ^= 1;
    assert!(why(send(&counting(&elsewhere, 1, &[(one, 3)]))).contains("another campaign"));
    // What is taken once is counted once.
    let most = u64::MAX - 1;
    let sound = counting(&campaign, 1, &[(one, 5), (other, most)]);
    assert_eq!(send(&sound), What::Stored);
    assert_eq!(send(&sound), What::Known);
    let (_, profile) = fleet.reported();
    let counts = |profile: &Profile| -> Vec<(u32, Option<u64>)> {
        profile
            .seen
            .iter()
            .map(|seen| (seen.unit, seen.count))
            .collect()
    };
    assert_eq!(counts(&profile), [(one, Some(5)), (other, Some(most))]);
    // Of more than 64 bits hold no number is told.
    assert_eq!(
        send(&counting(&campaign, 2, &[(one, 2), (other, 7)])),
        What::Stored
    );
    let refusal = fleet.site.refusal(&["fleet", "report", &fleet.id]);
    assert!(refusal.contains("more than 64 bits hold"), "{refusal}");
    // Nobody is told what others have seen: who counts goes on counting.
    let asked = paths::of_assignment(InstanceId([9; 16]), None);
    let assignment: tomo_protocol::Assignment = client.get(&asked).expect("an assignment");
    assert!(assignment.news.units.is_empty());
}

#[test]
fn campaigns_over_paths_that_make_no_sense_are_refused() {
    let site = Site::new();
    let new = |words: &[&str]| site.refusal(&[&["campaign", "new", "./prog"], words].concat());
    let said = new(&["--select", "hot:3"]);
    assert!(said.contains("--observe"), "{said}");
    let said = new(&["--observe", "predicates", "--select", "hot:3"]);
    assert!(said.contains("--observe paths"), "{said}");
    let said = new(&["--observe", "paths", "--level", "edge"]);
    assert!(said.contains("--level"), "{said}");
    let said = new(&["--observe", "paths", "--select", "hot:3"]);
    assert!(said.contains("no earlier run"), "{said}");
    let said = new(&["--observe", "paths", "--select", "none.json"]);
    assert!(said.contains("none.json"), "{said}");
    let said = new(&["--observe", "paths", "--probes", "0"]);
    assert!(said.contains("--probes 1"), "{said}");
}
