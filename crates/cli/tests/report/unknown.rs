//! What nobody looked at is unknown, and what was looked at is not.

use serde_json::Value;

use crate::bench::{Bench, RAN, Seen};
use crate::formats::json;
use tomo_wire::plan::Level;

/// The runs of a fleet carry parts of the probes. An edge without one did not run if an end of it was watched and never ran.
#[test]
fn edges_of_what_no_part_saw_run_did_not_run() {
    let bench = Bench::new();
    let program = bench.sample();
    let mut seen = Seen::blocks(&RAN);
    seen.level = Level::Edge;
    bench.run("tomo-out", 1, &program, &seen);
    bench.carried_a_part("tomo-out/run-1");
    let document = json(&bench, &[]);
    let sides = |line: u64| {
        let branches = document["files"][0]["branches"].as_array().expect("a list");
        let branch = branches.iter().find(|it| it["line"] == line).expect("one");
        ["taken", "not_taken"]
            .map(|side| branch[side]["state"].as_str().expect("a state").to_owned())
    };
    // The block at line 7, to which the first is taken, and the one at line 21, behind the second, were silent.
    assert_eq!(sides(3), ["not-run", "ran"]);
    assert_eq!(sides(20)[1], "not-run");
}

/// Where only functions were asked for nothing is said of what is in them, whether lines are known or not.
#[test]
fn of_functions_alone_nothing_is_counted_but_functions() {
    let document = json(&Bench::with_functions(), &[]);
    let module = &document["modules"][0];
    let file = &document["files"][0];
    let all = [&document, module, &module["functions"][0], file];
    for totals in all
        .map(|it| &it["totals"])
        .into_iter()
        .filter(|it| !it.is_null())
    {
        for what in ["lines", "branches", "blocks"] {
            let of = |state: &str| totals[what][state].as_u64().unwrap_or(0);
            assert_eq!(of("ran") + of("missed") + of("unknown"), 0, "{totals}");
        }
    }
    assert_eq!(module["totals"]["functions"]["ran"], 2);
}

/// A module of which no process was armed says the same in every format: nothing.
#[test]
fn a_module_that_nobody_observed_is_unknown() {
    let bench = Bench::new();
    let program = bench.sample();
    bench.run("out", 1, &program, &Seen::blocks(&[]));
    bench.forget_processes("out/run-1");
    let told = |format: &str| {
        let said = bench.tomo(&["report", "out", "--format", format]);
        assert_eq!(said.code, Some(0), "{}", said.err);
        said
    };
    let document: Value = serde_json::from_str(&told("json").out).expect("JSON");
    for what in ["lines", "branches", "functions", "blocks"] {
        let totals = &document["totals"][what];
        assert_eq!(
            (&totals["ran"], &totals["missed"]),
            (&0.into(), &0.into()),
            "{what}"
        );
    }
    // For comments lcov's tracefile has no place.
    let lcov = told("lcov");
    assert!(
        lcov.out.lines().all(|line| !line.starts_with('#')),
        "{lcov:?}"
    );
    assert!(
        !lcov.out.contains("DA:") && lcov.err.contains("sample: No process was observed"),
        "{lcov:?}"
    );
    assert!(told("cobertura").out.contains("lines-valid=\"0\""));
    assert!(told("text").out.contains("nothing is known"));
    let demand = ["report", "out", "--fail-under-lines", "1"];
    assert_eq!(bench.tomo(&demand).code, Some(1));
    // A run that was observed is not spoiled by one that was not.
    bench.run("out", 2, &program, &Seen::blocks(&RAN));
    bench.run("alone", 1, &program, &Seen::blocks(&RAN));
    let of = |folder: &str| json(&bench, &[folder])["totals"].clone();
    assert_eq!(of("out"), of("alone"));
}

/// As of most in a folder of plugins or of builds, of which each report would say nothing at length.
#[test]
fn modules_that_nobody_observed_are_named_together_beside_one_that_was() {
    let bench = Bench::new();
    bench.run("out", 1, &bench.sample(), &Seen::blocks(&RAN));
    let flags = ["-g", "-O0"];
    for number in 2..=8 {
        let source = format!("int main(void) {{ return {number}; }}\n");
        let name = format!("other-{number}");
        let other = bench.build(&name, "other.c", &source, &flags);
        bench.run("out", number, &other, &Seen::blocks(&[]));
        bench.forget_processes(&format!("out/run-{number}"));
    }
    let document = json(&bench, &["out"]);
    let count = |what: &str| document[what].as_array().expect("a list").len();
    assert_eq!((count("modules"), count("unseen")), (1, 7));
    let alone = json(&bench, &["out/run-1"]);
    assert_eq!(document["files"], alone["files"]);
    let said = bench.tomo(&["report", "out"]);
    assert_eq!((said.code, said.err.as_str()), (Some(0), ""));
    let words = said.out.split_whitespace().collect::<Vec<_>>().join(" ");
    let at = |number| bench.path(format!("other-{number}")).display().to_string();
    let names = [2, 3, 4, 5].map(at).join(", ");
    let told = format!(
        "No process was observed in 7 more modules, so nothing is known there: {names} and 3 others."
    );
    assert!(words.ends_with(&told), "{words}");
    let lcov = bench.tomo(&["report", "out", "--format", "lcov"]);
    assert!(lcov.err.contains(&told), "{}", lcov.err);
}

/// The loader calls resolvers before anything can be armed, so that their silence says nothing.
#[test]
fn resolvers_that_were_silent_may_have_run() {
    const SOURCE: &str = "static int one(void) { return 1; }\n\
        static int two(void) { return 2; }\n\
        static void *resolve(void) { return one() > 1 ? two : one; }\n\
        int chosen(void) __attribute__((ifunc(\"resolve\")));\n\
        int main(void) { return chosen(); }\n";
    let bench = Bench::new();
    let program = bench.build("chosen", "chosen.c", SOURCE, &["-g", "-O0"]);
    let graphs = program.model.graphs().expect("a model");
    let blocks = graphs.functions().flat_map(|function| function.blocks());
    let probes: Vec<_> = blocks.map(|block| (block.address().0, false)).collect();
    let state = |folder: &str, hit: u64| {
        let probes = probes.iter().map(|(at, _)| (*at, *at == hit)).collect();
        bench.run(
            folder,
            1,
            &program,
            &Seen {
                probes,
                ..Seen::blocks(&[])
            },
        );
        let document = json(&bench, &[folder]);
        let functions = document["modules"][0]["functions"]
            .as_array()
            .expect("a list");
        let state = |name: &str| {
            let function = functions.iter().find(|function| function["name"] == name);
            function.expect(name)["state"]
                .as_str()
                .expect("a state")
                .to_owned()
        };
        ["resolve", "two"].map(state)
    };
    assert_eq!(state("silent", 0), ["unknown", "not-run"]);
    let functions = graphs.functions();
    let resolve = functions
        .into_iter()
        .find(|function| function.name() == Some("resolve"));
    let entry = resolve.expect("a resolver").entry().0;
    assert_eq!(state("hit", entry), ["ran", "not-run"]);
}
