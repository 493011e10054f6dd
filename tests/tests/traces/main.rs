//! Traces are exact: what `tomo trace` says that the first thread did is, block for block, what a debugger saw that
//! executes the same run instruction by instruction.

mod attended;
mod calm;
mod forked;
mod generated;
mod kit;
mod lacking;
mod rounds;

use std::process::Command;

use tomo_testkit::corpus::{Compiler, Level, Recipe, Source, compiled};
use tomo_testkit::coverage::complete;
use tomo_testkit::tomo;

use kit::{blocks, check, counting, entered, read, traced};

#[test]
fn traces_of_c_features_are_exact() {
    check(Recipe::family(Source::CFeatures), &[&[]]);
}

#[test]
fn traces_of_cpp_exceptions_are_exact() {
    check(
        [
            Recipe::new(Source::CppFeatures, Compiler::Gcc, Level::O2),
            Recipe::new(Source::CppFeatures, Compiler::Clang, Level::O0),
        ],
        &[&[]],
    );
}

#[test]
fn traces_of_rust_panics_are_exact() {
    check(Recipe::family(Source::RustFeatures), &[&[]]);
}

#[test]
fn traces_of_bzip2_are_exact() {
    check(
        [Recipe::new(Source::Bzip2, Compiler::Clang, Level::O2)],
        &[&[]],
    );
}

/// Every number of runs, with every strategy and both kinds of witnesses, tells the same.
#[test]
fn traces_are_exact_however_witnesses_are_distributed() {
    let ways: Vec<Vec<String>> = (1..=7)
        .map(|runs: usize| {
            let strategy = ["fine", "function", "optimized"][runs % 3];
            let witness = ["auto", "edge", "node"][runs / 2 % 3];
            let runs = runs.to_string();
            let way = [
                "--runs",
                &runs,
                "--strategy",
                strategy,
                "--witness",
                witness,
            ];
            way.map(String::from).into()
        })
        .collect();
    let ways: Vec<Vec<&str>> = ways
        .iter()
        .map(|way| way.iter().map(String::as_str).collect())
        .collect();
    let ways: Vec<&[&str]> = ways.iter().map(Vec::as_slice).collect();
    check(
        [
            Recipe::new(Source::CFeatures, Compiler::Gcc, Level::O2),
            Recipe::new(Source::CppFeatures, Compiler::Clang, Level::O0),
        ],
        &ways,
    );
}

/// A known number of calls of `work` in each scenario, in threads and processes of all kinds, that return, exit, are
/// killed, or are left by a signal handler.
#[test]
fn traces_are_whole_whatever_threads_and_processes_do() {
    let folder = tempfile::tempdir().expect("a folder");
    for (scenario, times, threads) in [
        ("once", 1, 1),
        ("threads", 8, 9),
        ("left", 8, 9),
        ("forks", 18, 19),
        ("vfork", 2, 1),
        ("killed", 1, 1),
        ("exits", 2, 2),
    ] {
        let trace = counting(scenario, &[], folder.path());
        assert_eq!(kit::threads(&trace), threads, "{scenario}");
        assert_eq!(entered(&trace, "work"), 20_000 * times, "{scenario}");
    }
    let trace = counting("leaps", &[], folder.path());
    assert_eq!(entered(&trace, "work"), 100);
    assert_eq!(entered(&trace, "handler"), 100);
}

/// Threads that several runs record are merged one by one.
#[test]
fn threads_of_several_runs_are_merged() {
    let folder = tempfile::tempdir().expect("a folder");
    let trace = counting("threads", &["--runs", "3"], folder.path());
    assert_eq!(kit::threads(&trace), 9);
    assert_eq!(entered(&trace, "work"), 160_000);
}

/// Runs that do not do the same are noticed, and nothing is claimed of what follows.
#[test]
fn runs_that_differ_are_told_apart() {
    let program = compiled("gcc", "differs.c", &["-O1"]).expect("built");
    let folder = tempfile::tempdir().expect("a folder");
    let state = folder.path().join("state");
    let words = [state.to_str().expect("UTF-8").to_owned()];
    let trace = traced(&program, &words, b"", &["--runs", "3"], folder.path());
    let (blocks, ended) = blocks(&read(&trace, folder.path()));
    assert!(ended.divergence.is_some(), "{ended:?}");
    assert!(blocks.len() > 1000, "{ended:?}");
    // What each run does of its own comes behind a thousand rounds that are the same.
    assert!(ended.certain >= 1000, "{ended:?}");
}

/// Runs side by side tell what runs one after the other do.
#[test]
fn runs_may_be_side_by_side() {
    let folder = tempfile::tempdir().expect("a folder");
    let trace = counting("once", &["--runs", "4", "-j", "3"], folder.path());
    assert_eq!(trace.runs.len(), 4);
    assert_eq!(trace.differences, Vec::<String>::new());
    assert_eq!(blocks(&trace).1.divergence, None);
    assert_eq!(entered(&trace, "work"), 20_000);
}

/// What a run did before says where witnesses cost least, without being told where that is written.
#[test]
fn counts_of_an_earlier_run_are_found() {
    let folder = tempfile::tempdir().expect("a folder");
    let program = compiled("gcc", "counting.c", &["-O2", "-pthread"]).expect("built");
    let words = |trace: &tomo_export::traced::Traced| -> usize {
        let atlas = trace.atlas().expect("an atlas");
        let threads = trace.threads(&atlas);
        threads
            .iter()
            .map(|thread| thread.runs[0].words.len())
            .sum()
    };
    let before = counting("once", &[], folder.path());
    let mut command = Command::new(tomo::path().expect("tomo"));
    command
        .env("TOMO_CACHE_DIR", folder.path().join("cache"))
        .current_dir(folder.path())
        .arg("count")
        .arg("--")
        .arg(&program)
        .arg("once");
    complete(command, b"").expect("counted");
    let after = counting("once", &[], folder.path());
    assert_eq!(entered(&after, "work"), entered(&before, "work"));
    assert!(words(&after) <= words(&before));
    let name = |trace: &tomo_export::traced::Traced| trace.atlas().expect("an atlas").chart.name();
    assert_ne!(name(&before), name(&after), "the plan is another one");
}
