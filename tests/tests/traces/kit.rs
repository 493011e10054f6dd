//! Traces made by the command, and held against single steps.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use tomo_export::traced::Traced;
use tomo_profile::tracing::Ended;
use tomo_program::Cache;
use tomo_testkit::corpus::{Built, Recipe, build, compiled};
use tomo_testkit::coverage::complete;
use tomo_testkit::steps::{Outside, observe_in_order};
use tomo_testkit::tomo;

/// Far more steps than any workload takes.
pub(crate) const LIMIT: u64 = 60_000_000;

/// The folder of the trace of a run.
pub(crate) fn traced(
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

/// The trace in a folder.
pub(crate) fn read(trace: &Path, folder: &Path) -> Traced {
    let models = Cache::at(folder.join("cache"));
    Traced::read(trace, None, Some(&models), &()).expect("a trace")
}

/// How many threads a trace has.
pub(crate) fn threads(traced: &Traced) -> usize {
    traced.threads(&traced.atlas().expect("an atlas")).len()
}

/// The blocks that the first thread passed, and how that ends.
pub(crate) fn blocks(traced: &Traced) -> (Vec<u64>, Ended) {
    let atlas = traced.atlas().expect("an atlas");
    let threads = traced.threads(&atlas);
    let mut blocks = Vec::new();
    let first = threads.first().expect("a thread");
    let mut sink =
        |block: u32, _: u32| blocks.push(atlas.chart.blocks[block as usize].address.get());
    let ended = traced.walk(&atlas, &threads, first, &mut sink);
    (blocks, ended)
}

/// The blocks of traced functions in the order in which they began.
pub(crate) fn began(traced: &Traced, order: &[u64]) -> Vec<u64> {
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

pub(crate) fn title(traced: &Traced, address: u64) -> String {
    let graphs = traced.located.model.graphs().expect("graphs");
    let block = graphs.block_at(tomo_program::Address(address));
    let function = block.and_then(|block| block.function());
    function.map_or_else(String::new, |function| function.title())
}

/// The first few blocks from `at` on, with some before.
pub(crate) fn some(trace: &Traced, blocks: &[u64], at: usize) -> Vec<String> {
    let some = blocks[at.saturating_sub(5)..blocks.len().min(at + 5)].iter();
    some.map(|one| format!("{one:#x} {}", title(trace, *one)))
        .collect()
}

/// Compares what is traced with each of these options with what happened.
pub(crate) fn compare(built: &Built, ways: &[&[&str]], folder: &Path) {
    let models = Cache::at(folder.join("cache"));
    let mut compared = 0;
    for workload in &built.workloads {
        let input = workload.stdin.as_deref().unwrap_or_default();
        let truth = observe_in_order(&built.program, workload, Outside::Leap, LIMIT);
        let truth = truth.expect("steps");
        for options in ways {
            let trace = traced(&built.program, &workload.args, input, options, folder);
            let trace = Traced::read(&trace, None, Some(&models), &()).expect("a trace");
            let (mut blocks, ended) = blocks(&trace);
            let began = began(&trace, &truth.order);
            if options.contains(&"breakpoint") {
                // Single steps begin at the entry point; before that the loader may call functions that choose others.
                let entry = blocks.iter().position(|block| Some(block) == began.first());
                blocks.drain(..entry.unwrap_or(0));
            }
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

pub(crate) fn check(recipes: impl IntoIterator<Item = Recipe>, ways: &[&[&str]]) {
    for recipe in recipes {
        let built = build(&recipe).expect("built");
        let folder = tempfile::tempdir().expect("a folder");
        compare(&built, ways, folder.path());
    }
}

/// The trace of `counting.c` in this scenario.
pub(crate) fn counting(scenario: &str, options: &[&str], folder: &Path) -> Traced {
    let program = compiled("gcc", "counting.c", &["-O2", "-pthread"]).expect("built");
    let trace = traced(&program, &[scenario.into()], b"", options, folder);
    read(&trace, folder)
}

/// How often a function was entered, by all threads together.
pub(crate) fn entered(traced: &Traced, name: &str) -> u64 {
    let atlas = traced.atlas().expect("an atlas");
    let graphs = traced.located.model.graphs().expect("graphs");
    // Newer compilers have a copy of it alone, whose name goes on behind a point.
    let is_it = |title: String| title.split('.').next() == Some(name);
    let function = graphs.functions().find(|one| is_it(one.title()));
    let entry = function.expect("the function").entry().0;
    let mut times = 0;
    let mut sink = |block: u32, _: u32| {
        times += u64::from(atlas.chart.blocks[block as usize].address.get() == entry);
    };
    let threads = traced.threads(&atlas);
    for thread in &threads {
        traced.walk(&atlas, &threads, thread, &mut sink);
    }
    times
}
