//! Traces are exact: what `tomo trace` says that the first thread did is, block for block, what a debugger saw that
//! executes the same run instruction by instruction.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use tomo_export::traced::Traced;
use tomo_profile::tracing::Ended;
use tomo_program::Cache;
use tomo_testkit::corpus::{Built, Compiler, Level, Recipe, Source, build, compiled};
use tomo_testkit::coverage::complete;
use tomo_testkit::steps::{Outside, observe_in_order};
use tomo_testkit::tomo;

/// Far more steps than any workload takes.
const LIMIT: u64 = 60_000_000;

/// The folder of the trace of a run.
fn traced(
    program: &Path,
    arguments: &[String],
    input: &[u8],
    options: &[&str],
    folder: &Path,
) -> PathBuf {
    let mut command = Command::new(tomo::path().expect("tomo"));
    command
        .env("TOMO_CACHE_DIR", folder.join("cache"))
        .current_dir(folder);
    let out = tempfile::tempdir_in(folder).expect("a folder").keep();
    command.arg("trace").args(options).arg("-o").arg(&out);
    command.arg("--").arg(program).args(arguments);
    let output = complete(command, input).expect("run");
    let said = String::from_utf8_lossy(&output.stderr);
    let made = std::fs::read_dir(&out).expect("traces").flatten().next();
    made.unwrap_or_else(|| panic!("{}: {said}", program.display()))
        .path()
}

/// The blocks that the first thread passed, and how that ends.
fn blocks(traced: &Traced) -> (Vec<u64>, Ended) {
    let atlas = traced.atlas().expect("an atlas");
    let threads = traced.threads();
    let mut blocks = Vec::new();
    let first = threads.first().expect("a thread");
    let mut sink =
        |block: u32, _: u32| blocks.push(atlas.chart.blocks[block as usize].address.get());
    let ended = traced.walk(&atlas, first, &mut sink);
    (blocks, ended)
}

/// The blocks of traced functions in the order in which they began.
fn began(traced: &Traced, order: &[u64]) -> Vec<u64> {
    let atlas = traced.atlas().expect("an atlas");
    let sizes: BTreeMap<u64, u32> = atlas
        .chart
        .blocks
        .iter()
        .map(|block| (block.address.get(), block.size.get()))
        .collect();
    let mut began = Vec::new();
    let mut last = 0;
    for &address in order {
        // An instruction that repeats itself takes a step for each time.
        if sizes.contains_key(&address) && address != last {
            began.push(address);
        }
        last = address;
    }
    began
}

fn title(traced: &Traced, address: u64) -> String {
    let graphs = traced.located.model.graphs().expect("graphs");
    let block = graphs.block_at(tomo_program::Address(address));
    let function = block.and_then(|block| block.function());
    function.map_or_else(String::new, |function| function.title())
}

/// The first few blocks from `at` on, with some before.
fn some(trace: &Traced, blocks: &[u64], at: usize) -> Vec<String> {
    let some = blocks[at.saturating_sub(5)..blocks.len().min(at + 5)].iter();
    some.map(|one| format!("{one:#x} {}", title(trace, *one)))
        .collect()
}

/// Compares what is traced with each of these options with what happened.
fn compare(built: &Built, ways: &[&[&str]], folder: &Path) {
    let models = Cache::at(folder.join("cache"));
    let mut compared = 0;
    for workload in &built.workloads {
        let input = workload.stdin.as_deref().unwrap_or_default();
        let truth = observe_in_order(&built.program, workload, Outside::Leap, LIMIT);
        let truth = truth.expect("steps");
        for options in ways {
            let trace = traced(&built.program, &workload.args, input, options, folder);
            let trace = Traced::read(&trace, Some(&models), &()).expect("a trace");
            let (blocks, ended) = blocks(&trace);
            let began = began(&trace, &truth.order);
            if blocks != began {
                let differs = blocks
                    .iter()
                    .zip(&began)
                    .position(|(one, other)| one != other);
                let at = differs.unwrap_or(blocks.len().min(began.len()));
                panic!(
                    "{} {:?} {options:?}: block {at} of {} (traced {}) differs\nended {ended:?}\ntrace {:#?}\ntruth {:#?}",
                    built.name,
                    workload.args,
                    began.len(),
                    blocks.len(),
                    some(&trace, &blocks, at),
                    some(&trace, &began, at)
                );
            }
            assert_eq!(ended.divergence, None, "{}", built.name);
            compared += began.len();
        }
    }
    assert!(compared > 100, "{}: {compared} blocks", built.name);
}

fn check(recipes: impl IntoIterator<Item = Recipe>, ways: &[&[&str]]) {
    for recipe in recipes {
        let built = build(&recipe).expect("built");
        let folder = tempfile::tempdir().expect("a folder");
        compare(&built, ways, folder.path());
    }
}

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

/// The trace of `counting.c` in this scenario.
fn counting(scenario: &str, options: &[&str], folder: &Path) -> Traced {
    let program = compiled("gcc", "counting.c", &["-O2", "-pthread"]).expect("built");
    let trace = traced(&program, &[scenario.into()], b"", options, folder);
    let models = Cache::at(folder.join("cache"));
    Traced::read(&trace, Some(&models), &()).expect("a trace")
}

/// How often a function was entered, by all threads together.
fn entered(traced: &Traced, name: &str) -> u64 {
    let atlas = traced.atlas().expect("an atlas");
    let graphs = traced.located.model.graphs().expect("graphs");
    let function = graphs.functions().find(|one| one.title() == name);
    let entry = function.expect("the function").entry().0;
    let mut times = 0;
    let mut sink = |block: u32, _: u32| {
        times += u64::from(atlas.chart.blocks[block as usize].address.get() == entry);
    };
    for thread in traced.threads() {
        traced.walk(&atlas, &thread, &mut sink);
    }
    times
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
        assert_eq!(trace.threads().len(), threads, "{scenario}");
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
    assert_eq!(trace.threads().len(), 9);
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
    let models = Cache::at(folder.path().join("cache"));
    let trace = Traced::read(&trace, Some(&models), &()).expect("a trace");
    let (blocks, ended) = blocks(&trace);
    assert!(ended.divergence.is_some(), "{ended:?}");
    assert!(blocks.len() > 1000, "{ended:?}");
    // What each run does of its own comes behind a thousand rounds that are the same.
    assert!(ended.certain >= 1000, "{ended:?}");
}

/// A run that is missing, and a record of another plan, are errors that say so.
#[test]
fn traces_that_lack_something_are_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let program = compiled("gcc", "counting.c", &["-O2", "-pthread"]).expect("built");
    let trace = traced(
        &program,
        &["once".into()],
        b"",
        &["--runs", "2"],
        folder.path(),
    );
    let models = Cache::at(folder.path().join("cache"));
    let stated = std::fs::read_to_string(trace.join("trace.json")).expect("a document");
    let mut document: serde_json::Value = serde_json::from_str(&stated).expect("a document");
    let runs = document["runs"].as_array_mut().expect("runs");
    let last = runs.pop().expect("a run");
    let last = trace.join(last.as_str().expect("a name"));
    std::fs::write(trace.join("trace.json"), document.to_string()).expect("written");
    let error = Traced::read(&trace, Some(&models), &()).expect_err("a run is missing");
    assert!(error.to_string().contains("1 of 2 runs"), "{error}");
    std::fs::write(trace.join("trace.json"), stated).expect("written");
    let tracks = last.join("tracks.zst");
    let bytes = std::fs::read(&tracks).expect("tracks");
    std::fs::write(&tracks, &bytes[..bytes.len() / 2]).expect("written");
    assert!(Traced::read(&trace, Some(&models), &()).is_err());
}
