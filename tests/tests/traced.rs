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
    made.unwrap_or_else(|| panic!("{}: {said}", program.display()))
        .path()
}

/// The blocks that the first thread passed, and how that ends.
fn blocks(traced: &Traced) -> (Vec<u64>, Ended) {
    let atlas = traced.atlas().expect("an atlas");
    let threads = traced.threads().expect("threads");
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

fn compare(built: &Built, options: &[&str], cache: &Path) -> f64 {
    let mut share = 1.0f64;
    for workload in &built.workloads {
        let input = workload.stdin.as_deref().unwrap_or_default();
        let folder = traced(&built.program, &workload.args, input, options, cache);
        let models = Cache::at(&cache.join("cache"));
        let trace = Traced::read(&folder, Some(&models), &()).expect("a trace");
        let truth =
            observe_in_order(&built.program, workload, Outside::Leap, LIMIT).expect("steps");
        let (blocks, ended) = blocks(&trace);
        let began = began(&trace, &truth.order);
        let differs = blocks
            .iter()
            .zip(&began)
            .position(|(one, other)| one != other);
        if blocks != began {
            let at = differs.unwrap_or(blocks.len().min(began.len()));
            let around = |blocks: &[u64]| -> Vec<String> {
                let from = at.saturating_sub(5);
                let some = blocks[from..blocks.len().min(at + 5)].iter();
                some.map(|one| format!("{one:#x} {}", title(&trace, *one)))
                    .collect()
            };
            panic!(
                "{} {:?} {options:?}: block {at} of {} (traced {}) differs\nended {ended:?}\ntrace {:#?}\ntruth {:#?}",
                built.name,
                workload.args,
                began.len(),
                blocks.len(),
                around(&blocks),
                around(&began)
            );
        }
        assert_eq!(ended.divergence, None, "{}", built.name);
        let all = trace
            .located
            .model
            .graphs()
            .expect("graphs")
            .functions()
            .count();
        let atlas = trace.atlas().expect("an atlas");
        share = share.min(atlas.chart.functions.len() as f64 / all as f64);
        eprintln!(
            "{}: {} blocks, {} of {all} functions, {ended:?}",
            built.name,
            began.len(),
            atlas.chart.functions.len()
        );
    }
    share
}

fn check(recipes: impl IntoIterator<Item = Recipe>, options: &[&str]) {
    for recipe in recipes {
        let built = build(&recipe).expect("built");
        let folder = tempfile::tempdir().expect("a folder");
        compare(&built, options, folder.path());
    }
}

#[test]
fn traces_of_c_features_are_exact() {
    check(Recipe::family(Source::CFeatures), &[]);
}

#[test]
fn traces_of_cpp_exceptions_are_exact() {
    check(
        [
            Recipe::new(Source::CppFeatures, Compiler::Gcc, Level::O2),
            Recipe::new(Source::CppFeatures, Compiler::Clang, Level::O0),
        ],
        &[],
    );
}

#[test]
fn traces_of_rust_panics_are_exact() {
    check(Recipe::family(Source::RustFeatures), &[]);
}

#[test]
fn traces_of_bzip2_are_exact() {
    check(
        [Recipe::new(Source::Bzip2, Compiler::Clang, Level::O2)],
        &[],
    );
}
