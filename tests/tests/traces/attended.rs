//! Witnesses that are breakpoints: nothing is put into the program but `int3`, and the trace is the same.

use std::process::Command;

use tomo_testkit::corpus::{Compiler, Level, Recipe, Source, compiled};
use tomo_testkit::coverage::complete;
use tomo_testkit::tomo;

use super::kit::{blocks, check, counting, entered, read, threads as threads_of, traced};

const ATTENDED: [&str; 2] = ["--collect", "breakpoint"];

fn ways(more: &[&'static str]) -> Vec<&'static str> {
    [&ATTENDED, more].concat()
}

#[test]
fn breakpoints_tell_of_c_features_what_happens() {
    check(
        [
            Recipe::new(Source::CFeatures, Compiler::Gcc, Level::O2),
            Recipe::new(Source::CFeatures, Compiler::Clang, Level::O0),
        ],
        &[
            &ATTENDED,
            &ways(&["--runs", "3", "-j", "3", "--witness", "edge"]),
        ],
    );
}

#[test]
fn breakpoints_tell_of_cpp_exceptions_what_happens() {
    check(
        [Recipe::new(Source::CppFeatures, Compiler::Gcc, Level::O2)],
        &[&ATTENDED, &ways(&["--runs", "2", "--strategy", "fine"])],
    );
}

#[test]
fn breakpoints_tell_of_rust_panics_what_happens() {
    check(
        [Recipe::new(
            Source::RustFeatures,
            Compiler::Rustc,
            Level::O2,
        )],
        &[&ways(&["--witness", "node"])],
    );
}

/// As many runs as it takes for none to have more breakpoints, and no fewer than arrivals need.
#[test]
fn no_run_has_more_breakpoints_than_allowed() {
    let folder = tempfile::tempdir().expect("a folder");
    let program = compiled("gcc", "counting.c", &["-O2", "-pthread"]).expect("built");
    for (collect, limit, why) in [
        ("breakpoint", "3", "arrivals cannot be distributed"),
        ("detour", "1", "one run must have 2 witnesses"),
    ] {
        let mut command = Command::new(tomo::path().expect("tomo"));
        command
            .env("TOMO_CACHE_DIR", folder.path().join("cache"))
            .current_dir(folder.path())
            .args(["trace", "--collect", collect, "--limit", limit, "--"])
            .arg(&program)
            .arg("once");
        let output = complete(command, b"").expect("run");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(said.contains(why), "{said}");
        assert_eq!(output.status.code(), Some(0), "it runs as it would");
    }
    let program = compiled("gcc", "attended.c", &["-O2", "-pthread"]).expect("built");
    let options = ways(&["--function", "work", "--limit", "2"]);
    let trace = traced(&program, &["alone".into()], b"", &options, folder.path());
    let trace = read(&trace, folder.path());
    assert!(trace.runs.len() > 1);
    assert_eq!(entered(&trace, "work"), 150);
    assert_eq!(blocks(&trace).1.divergence, None);
}

/// A known number of calls in each scenario, all of which are met.
fn all_are_met(scenarios: &[(&str, usize, u64)], folder: &std::path::Path) {
    let program = compiled("gcc", "attended.c", &["-O2", "-pthread"]).expect("built");
    for &(scenario, threads, times) in scenarios {
        let trace = traced(&program, &[scenario.into()], b"", &ATTENDED, folder);
        let trace = read(&trace, folder);
        assert_eq!(trace.runs[0].outcome["exit"], 7, "{scenario}");
        assert_eq!(threads_of(&trace), threads, "{scenario}");
        assert_eq!(entered(&trace, "work"), times, "{scenario}");
        assert_eq!(blocks(&trace).1.divergence, None, "{scenario}");
    }
}

#[test]
fn breakpoints_are_met_by_all_threads() {
    let folder = tempfile::tempdir().expect("a folder");
    all_are_met(&[("threads", 5, 4 * 150)], folder.path());
}

/// Forks, `vfork`, signals, side by side.
#[test]
fn breakpoints_are_met_by_all_processes() {
    let folder = tempfile::tempdir().expect("a folder");
    let scenarios = [
        ("forks", 4, 3 * 150),
        ("vfork", 1, 150),
        ("signals", 1, 150),
    ];
    all_are_met(&scenarios, folder.path());
    match goes_on_behind_int1() {
        true => all_are_met(&[("stops", 1, 150)], folder.path()),
        false => eprintln!("not tested: this machine executes int1 over and over"),
    }
    let trace = counting("leaps", &ATTENDED, folder.path());
    assert_eq!(entered(&trace, "work"), 100);
    assert_eq!(entered(&trace, "handler"), 100);
}

/// Whether the machine does so, as it should: virtual ones on AMD's processors may not.
fn goes_on_behind_int1() -> bool {
    let program = compiled("gcc", "attended.c", &["-O2", "-pthread"]).expect("built");
    let code = Command::new(program)
        .arg("stops")
        .status()
        .expect("run")
        .code();
    assert!(matches!(code, Some(3 | 7)), "{code:?}");
    code == Some(7)
}

/// Where many threads end at once nobody waits for anybody.
#[test]
fn a_program_that_is_killed_with_all_its_threads_is_told_up_to_there() {
    let folder = tempfile::tempdir().expect("a folder");
    let program = compiled("gcc", "attended.c", &["-O2", "-pthread"]).expect("built");
    let trace = traced(&program, &["killed".into()], b"", &ATTENDED, folder.path());
    let trace = read(&trace, folder.path());
    assert_eq!(trace.runs[0].outcome["signal"], 9);
    assert!(entered(&trace, "work") > 0);
}

/// What is linked statically can be traced too, with the C library that is in it.
#[test]
fn static_programs_are_traced_by_breakpoints() {
    let folder = tempfile::tempdir().expect("a folder");
    let program = compiled("gcc", "counting.c", &["-O2", "-pthread", "-static"]).expect("built");
    let options = ["--function", "main", "--function", "work"];
    let trace = traced(&program, &["once".into()], b"", &options, folder.path());
    let trace = read(&trace, folder.path());
    assert_eq!(entered(&trace, "work"), 20_000);
    assert_eq!(blocks(&trace).1.divergence, None);
}
