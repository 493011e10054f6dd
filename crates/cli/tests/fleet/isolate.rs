//! Fleets that observe predicates: which were true anywhere, and which predict failure.

use std::process::Command;

use serde_json::Value;

use crate::instances::Fleet;

/// How the search stands.
fn standing(fleet: &Fleet) -> Value {
    let output = fleet
        .site
        .output(&["fleet", "isolate", &fleet.id, "--json"]);
    serde_json::from_slice(&output.stdout).expect("JSON")
}

/// The line of the program with this text.
fn line_of(text: &str) -> u64 {
    let source = include_str!("../../../../tests/programs/isolating.c");
    let at = source.lines().position(|line| line.contains(text));
    at.expect("the line") as u64 + 1
}

/// Where the crash of a run is told to be, the innermost frame.
fn place(group: &Value) -> String {
    group["where"][0].as_str().unwrap_or_default().to_owned()
}

#[test]
fn a_fleet_finds_the_planted_bug() {
    let words = [
        "campaign",
        "isolate",
        "--runs-per-step",
        "12",
        "--instance-runs",
        "6",
    ];
    let fleet = Fleet::new("isolating.c", &words);
    let cases: [&[&str]; 4] = [
        &["look", "66"],
        &["look", "5", "7"],
        &["look", "8"],
        &["weigh", "3", "60"],
    ];
    let mut found = Value::Null;
    for round in 0..30 {
        for instance in 0..3 {
            fleet.prepare(instance);
            for (number, words) in cases.iter().enumerate() {
                let output = fleet.tomo(instance, &[], words);
                // As it would have ended by itself.
                let code = if number == 0 { 139 } else { 0 };
                assert_eq!(output.status.code(), Some(code), "{round}: {output:?}");
            }
        }
        found = standing(&fleet);
        if found["groups"][0]["answer"]["complete"] == true {
            break;
        }
    }
    let groups = found["groups"].as_array().expect("groups");
    assert_eq!(groups.len(), 1, "{found:#}");
    assert_eq!(groups[0]["cause"]["signal"], 11);
    assert!(place(&groups[0]).starts_with("look_up at "), "{found:#}");
    let best = &groups[0]["answer"]["findings"][0];
    assert_eq!(best["line"], line_of("number == 66"), "{found:#}");
    assert_eq!(best["what"], "`number == 66` was true");
    assert_eq!(best["failures"]["true"], best["failures"]["all"]);
    assert_eq!(best["successes"]["true"], 0);
    // In words, for people.
    let text = fleet.site.tomo(&["fleet", "isolate", &fleet.id]);
    assert!(text.contains("Cause 1: SIGSEGV\n    look_up at "), "{text}");
    assert!(text.contains("`number == 66` was true"), "{text}");
    // What it is made of are runs, not cases that somebody wrote down.
    assert!(text.contains(" runs failed, "), "{text}");
    assert!(!text.contains("case"), "{text}");
    // Asked again, it is told as before.
    let again = standing(&fleet);
    assert_eq!(again, found);
}

#[test]
fn programs_and_their_errors_say_how_runs_went() {
    let fleet = Fleet::new("telling.c", &["campaign", "isolate"]);
    for instance in 0..2 {
        fleet.prepare(instance);
        let flags = ["--stderr-regex", "^error: (\\w+)"];
        for (words, code) in [("fine", 0), ("errors", 0), ("tells", 0), ("well", 3)] {
            let output = fleet.tomo(instance, &flags, &[words]);
            assert_eq!(output.status.code(), Some(code), "{output:?}");
            let errors = match words {
                "errors" => "starting\nerror: disk is full\n",
                _ => "",
            };
            assert_eq!(String::from_utf8_lossy(&output.stderr), errors);
        }
    }
    // What the errors say and what the program says have the same words; the words themselves stay where they are.
    let found = standing(&fleet);
    let groups = found["groups"].as_array().expect("groups");
    assert_eq!(groups.len(), 1, "{found:#}");
    assert_eq!(groups[0]["cause"]["cause"], "told", "{found:#}");
    assert_eq!(groups[0]["instances"], 2);
    let answer = &groups[0]["answer"];
    assert_eq!(
        (&answer["failures"], &answer["successes"]),
        (&4.into(), &4.into())
    );
    assert!(!found.to_string().contains("disk"));
}

/// One run tells failures from nothing; that it was heard of is said.
#[test]
fn a_step_that_lasts_is_told() {
    let fleet = Fleet::new("telling.c", &["campaign", "isolate"]);
    fleet.prepare(0);
    let output = fleet.tomo(0, &[], &["tells"]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let shown = fleet.site.output(&["fleet", "isolate", &fleet.id]);
    let text = String::from_utf8_lossy(&shown.stdout);
    let words =
        "No step of its search is over yet: 1 run that failed so and 0 that did not were reported.";
    assert!(text.contains(words), "{text}");
    assert_eq!(shown.status.code(), Some(1));
}

#[test]
fn outcomes_are_told_from_scripts() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("told");
    let says = |words: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tomo"));
        command.arg("outcome").args(words);
        command
    };
    // Outside of a run nothing happens.
    let status = says(&["failure"]).env_remove("TOMO_OUTCOME").status();
    assert!(status.expect("tomo").success());
    for (words, told) in [
        (&["failure", "the", "disk"][..], "failure the disk\n"),
        (&["success"], "success \n"),
    ] {
        let status = says(words).env("TOMO_OUTCOME", &file).status();
        assert!(status.expect("tomo").success());
        assert_eq!(std::fs::read_to_string(&file).expect("a word"), told);
    }
}

#[test]
fn predicates_are_observed_in_parts() {
    let words = [
        "campaign",
        "new",
        "--observe",
        "predicates",
        "--probes",
        "20",
        "--strategy",
        "balanced-probes",
    ];
    let fleet = Fleet::new("isolating.c", &words);
    let shown = fleet.site.tomo(&["campaign", "show", &fleet.id, "--json"]);
    let campaign: Value = serde_json::from_str(&shown).expect("JSON");
    let variants = campaign["variants"].as_array().expect("variants").len();
    assert!(variants > 1);
    for instance in 0..variants {
        fleet.prepare(instance);
        let output = fleet.tomo(instance, &[], &["weigh", "3", "60", "13"]);
        assert_eq!(output.status.code(), Some(0), "{output:?}");
    }
    let report = fleet.site.tomo(&["fleet", "report", &fleet.id]);
    // As one run with all of them says it.
    let mut whole = Command::new(env!("CARGO_BIN_EXE_tomo"));
    whole
        .args(["predicates", "-o"])
        .arg(fleet.site.path("whole"))
        .arg("--")
        .arg(&fleet.program)
        .args(["weigh", "3", "60", "13"])
        .env("TOMO_CACHE_DIR", fleet.site.path("cache"));
    let whole = whole.output().expect("tomo");
    let whole = String::from_utf8(whole.stderr).expect("text");
    let sites = |text: &str| -> Vec<String> {
        let lines = text.lines().take_while(|line| !line.is_empty());
        lines.map(str::to_owned).collect()
    };
    assert_eq!(sites(&report), sites(&whole));
    // What is asked for is done, or refused.
    let ask = ["fleet", "report", &fleet.id];
    fleet
        .site
        .tomo(&[&ask[..], &["--format", "json", "-o", "seen.json"]].concat());
    let document = std::fs::read(fleet.site.path("seen.json")).expect("written");
    let document: Value = serde_json::from_slice(&document).expect("JSON");
    assert_eq!(document["modules"][0]["schema"], "tomo.predicates/1");
    let name = fleet.program.file_name().and_then(|name| name.to_str());
    assert_eq!(
        document["modules"][0]["module"].as_str(),
        name,
        "it is not told where it was for a moment"
    );
    for flag in [
        "--format=lcov",
        "--fail-under-lines=50",
        "--html=pages",
        "--include=src",
    ] {
        let refusal = fleet.site.refusal(&[&ask[..], &[flag]].concat());
        assert!(refusal.contains("of it"), "{refusal}");
    }
}
