//! Traces are exact: what `tomo trace` says that the first thread did is, block for block, what a debugger saw that
//! executes the same run instruction by instruction.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use tomo_export::traced::Traced;
use tomo_profile::tracing::Ended;
use tomo_program::Cache;
use tomo_testkit::corpus::{Built, Compiler, Level, Recipe, Source, build};
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
    made.unwrap_or_else(|| panic!("{}: {said}", program.display())).path()
}

/// The blocks that the first thread passed, and how that ends.
fn blocks(traced: &Traced) -> (Vec<u64>, Ended) {
    let atlas = traced.atlas().expect("an atlas");
    let threads = traced.threads();
    let mut blocks = Vec::new();
    let first = threads.first().expect("a thread");
    let mut sink = |block: u32, _: u32| blocks.push(atlas.chart.blocks[block as usize].address.get());
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
        let repeats = address == last && !jumps_to_itself(&traced.located.path, address);
        if sizes.contains_key(&address) && !repeats {
            began.push(address);
        }
        last = address;
    }
    began
}

fn jumps_to_itself(_: &Path, _: u64) -> bool {
    false
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
    let models = Cache::at(&folder.join("cache"));
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
                let differs = blocks.iter().zip(&began).position(|(one, other)| one != other);
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
            assert!(began.len() > 100, "{}: {} blocks", built.name, began.len());
        }
    }
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
    check([Recipe::new(Source::Bzip2, Compiler::Clang, Level::O2)], &[&[]]);
}

/// Every number of runs, with every strategy and both kinds of witnesses, tells the same.
#[test]
fn traces_are_exact_however_witnesses_are_distributed() {
    let ways: Vec<Vec<String>> = (1..=7)
        .map(|runs: usize| {
            let strategy = ["fine", "function", "optimized"][runs % 3];
            let witness = ["auto", "edge", "node"][runs / 2 % 3];
            let runs = runs.to_string();
            let way = ["--runs", &runs, "--strategy", strategy, "--witness", witness];
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
