//! A collector that is not what it should be: nothing that it says becomes code, and the program does what it does.

use serde_json::{Value, json};
use tomo_protocol::Assignment;

use crate::site::{Site, alone, errors};
use crate::stub::{Manner, Stub};

/// The assignment with a part changed.
fn changed(sound: &Assignment, change: impl FnOnce(&mut Value)) -> String {
    let mut value = serde_json::to_value(sound).unwrap();
    change(&mut value);
    value.to_string()
}

#[test]
fn impossible_assignments_are_refused_as_a_whole() {
    let site = Site::new();
    let sound = site.assignment(|_| true);
    let stub = Stub::new(None);
    let probes = sound.modules[0].probes;
    let mut said = vec![
        changed(&sound, |v| v["units"] = json!([[0, probes]])),
        changed(&sound, |v| v["units"] = json!([[0, u32::MAX]])),
        changed(&sound, |v| v["units"] = json!([[5, 9], [1, 2]])),
        changed(&sound, |v| v["units"] = json!([[9, 5]])),
        changed(&sound, |v| v["units"] = json!([[-1, 5]])),
        changed(&sound, |v| v["modules"] = json!([])),
        changed(&sound, |v| {
            v["modules"][0]["stem"] = json!("../../../tmp/x")
        }),
        changed(&sound, |v| v["modules"][0]["probes"] = json!(u32::MAX)),
        changed(&sound, |v| v["modules"][0]["level"] = json!("all of it")),
        changed(&sound, |v| v["plans"] = json!("0000000000000001")),
        changed(&sound, |v| v["news"]["units"] = json!([[0, u32::MAX]])),
        String::new(),
        "{}".into(),
        "[".repeat(100_000),
        format!("{{\"campaign\":\"{}", "0".repeat(1 << 20)),
    ];
    said.push(changed(&sound, |v| v["variant"] = json!(-4)));
    for (number, text) in said.into_iter().enumerate() {
        stub.behave(Manner::Says(text));
        let state = format!("s{number}");
        let output = site.run(&stub.url(), &state, &[], "ab");
        assert_eq!(
            (output.stdout.clone(), output.status.code()),
            (alone("ab"), Some(0)),
            "{number}"
        );
        assert!(
            errors(&output).starts_with("tomo: "),
            "{number}: {}",
            errors(&output)
        );
        assert_eq!(site.count(&state, "images"), 0, "{number}");
    }
}

#[test]
fn another_build_and_another_version_are_told_apart() {
    let site = Site::new();
    let sound = site.assignment(|_| true);
    let stub = Stub::new(None);
    let name = |plan: u64| tomo_protocol::Name(tomo_wire::report::name_of_plans(&[plan.into()]));
    let mut other = sound.clone();
    other.modules[0].stem = "0123456789abcdef-77".into();
    stub.behave(Manner::Says(serde_json::to_string(&other).unwrap()));
    let output = site.run(&stub.url(), "build", &[], "a");
    assert_eq!(output.stdout, alone("a"));
    assert!(
        errors(&output).contains("another build"),
        "{}",
        errors(&output)
    );
    let mut other = sound;
    other.modules[0].plan.0 ^= 1;
    other.plans = name(other.modules[0].plan.0);
    stub.behave(Manner::Says(serde_json::to_string(&other).unwrap()));
    let output = site.run(&stub.url(), "version", &[], "a");
    assert_eq!(output.stdout, alone("a"));
    assert!(
        errors(&output).contains("another version of tomo"),
        "{}",
        errors(&output)
    );
    assert_eq!(
        site.count("build", "images") + site.count("version", "images"),
        0
    );
}

/// Of counters and marks somebody in the program must take care.
#[test]
fn what_takes_an_agent_is_refused_for_a_static_program() {
    let site = Site::of_static();
    let stub = Stub::new(None);
    for level in ["predicate", "path", "chain"] {
        let mut asked = site.assignment(|_| true);
        asked.modules[0].level = level.into();
        stub.behave(Manner::Says(serde_json::to_string(&asked).unwrap()));
        let output = site.run(&stub.url(), level, &[], "a");
        assert_eq!(output.stdout, alone("a"), "{level}");
        let said = errors(&output);
        assert!(said.contains("takes an agent"), "{level}: {said}");
        assert_eq!(site.count(level, "images"), 0, "{level}");
    }
}

#[test]
fn answers_that_are_none_change_nothing() {
    let site = Site::new();
    let assignment = site.assignment(|_| true);
    let stub = Stub::new(Some(assignment));
    site.prepare(&stub.url(), "s");
    let answers = [
        json!({ "verdicts": [], "unread": null, "interval_ms": 0, "news": null }),
        json!({ "verdicts": [], "unread": null, "interval_ms": u64::MAX,
                "news": { "epoch": "0000000000000009", "upto": u64::MAX, "units": [[0, u32::MAX]] } }),
        json!({ "verdicts": [{ "run": 999, "sequence": 1, "verdict": "stored" }], "unread": "all of it",
                "interval_ms": 1, "news": null }),
        json!(7),
    ];
    for answer in answers {
        stub.behave(Manner::Says(answer.to_string()));
        let output = site.run(&stub.url(), "s", &["--policy", "interval=0.05"], "ab");
        assert_eq!(
            (output.stdout, output.status.code()),
            (alone("ab"), Some(0)),
            "{answer}"
        );
    }
    assert!(stub.asked() > 4);
    assert_eq!(site.count("s", "spool"), 4, "none of them was settled");
    stub.behave(Manner::Serves);
    assert_eq!(
        site.flush(&stub.url(), "s"),
        "4 reports sent, 0 refused, 0 waiting\n"
    );
}
