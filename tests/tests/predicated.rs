//! Predicates are those of the run: what `tomo predicates` says of each branch and each result is what a debugger that
//! executes the same run instruction by instruction saw.

use std::io::{Seek as _, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};

use serde::Deserialize;
use tomo_testkit::corpus::{Built, Compiler, Level, Recipe, Source, Workload, build, given};
use tomo_testkit::held::tell;
use tomo_testkit::steps::{Kind, Outside, Trace, Transition, observe};
use tomo_testkit::tomo;

/// Far more steps than any workload takes.
const LIMIT: u64 = 60_000_000;

#[derive(Deserialize)]
struct Document {
    sites: Vec<Site>,
    lost_threads: u64,
}

#[derive(Deserialize)]
struct Site {
    id: String,
    function: String,
    predicates: Vec<Predicate>,
    bits: Option<u64>,
}

#[derive(Deserialize)]
struct Predicate {
    id: String,
    case: String,
    #[serde(rename = "true")]
    value: Option<Value>,
    how: String,
    to: Option<String>,
}

/// Whether it was true, or how often.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(untagged)]
enum Value {
    Ever(bool),
    Times(u64),
}

impl Value {
    fn agrees(self, times: u64) -> bool {
        match self {
            Self::Ever(ever) => ever == (times > 0),
            Self::Times(count) => count == times,
        }
    }
}

fn address(text: &str) -> u64 {
    let digits = text
        .trim_start_matches(|c| c != '@')
        .trim_start_matches('@');
    let digits = if digits.is_empty() { text } else { digits };
    let digits = digits.strip_prefix("0x").expect("an address");
    u64::from_str_radix(digits, 16).expect("an address")
}

/// How often a predicate was true, by the debugger.
fn times(site: &Site, predicate: &Predicate, trace: &Trace) -> u64 {
    let place = address(&site.id);
    if let Some(to) = &predicate.to {
        let passage = Transition {
            from: Some(place),
            to: Some(address(to)),
            kind: Kind::Flow,
        };
        return trace.transitions.get(&passage).copied().unwrap_or(0);
    }
    let width = match site.bits.expect("a width") {
        8 => 0,
        16 => 1,
        32 => 2,
        _ => 3,
    };
    let sign = match predicate.case.as_str() {
        "negative" => 0,
        "zero" => 1,
        _ => 2,
    };
    let results = trace.results.get(&place);
    results.map_or(0, |results| results[width][sign])
}

/// What `tomo predicates` says of a run in the very surroundings in which the debugger has it: some results are addresses, or what
/// the surroundings were.
fn predicates(program: &Path, options: &[&str], workload: &Workload, cache: &Path) -> Document {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("predicates");
    let mut input = tempfile::tempfile().expect("a file");
    let bytes = workload.stdin.as_deref().unwrap_or_default();
    input.write_all(bytes).expect("the input");
    input.rewind().expect("the input");
    let mut command = Command::new("setarch");
    command.arg("--addr-no-randomize");
    command.arg(tomo::path().expect("tomo"));
    command.args(["predicates", "--json", "--to"]).arg(&file);
    command.args(options).arg("--output").arg(folder.path());
    command.arg("--").arg(program).args(&workload.args);
    if let Some(folder) = &workload.cwd {
        command.current_dir(folder);
    }
    command.env_clear().envs([
        ("PATH", "/usr/bin:/bin"),
        ("LC_ALL", "C"),
        ("TZ", "UTC"),
        ("LD_BIND_NOW", "1"),
    ]);
    command.env("TOMO_CACHE_DIR", cache);
    command.stdin(input).stdout(Stdio::null());
    let output = command.stderr(Stdio::piped()).output().expect("run");
    let text = std::fs::read(&file).unwrap_or_else(|error| {
        let said = String::from_utf8_lossy(&output.stderr);
        panic!("{}: {error}: {said}", program.display())
    });
    serde_json::from_slice(&text).expect("a document")
}

/// What was compared.
#[derive(Debug, Default)]
struct Tally {
    agreed: usize,
    ran: usize,
    inferred: usize,
    unknown: usize,
}

/// Panics where one does not agree.
fn compare(built: &Built, document: &Document, trace: &Trace) -> Tally {
    let name = &built.name;
    assert_eq!(document.lost_threads, 0, "{name}");
    let (mut wrong, mut tally) = (Vec::new(), Tally::default());
    for site in &document.sites {
        for predicate in &site.predicates {
            let times = times(site, predicate, trace);
            let Some(value) = predicate.value else {
                assert!(predicate.how.starts_with("unobservable"), "{name}");
                tally.unknown += usize::from(times > 0);
                continue;
            };
            tally.inferred += usize::from(predicate.how == "inferred");
            tally.ran += usize::from(times > 0);
            match value.agrees(times) {
                true => tally.agreed += 1,
                false => wrong.push(format!(
                    "{}: {} was true {times} times, not {value:?} ({})",
                    site.function, predicate.id, predicate.how
                )),
            }
        }
    }
    let some: Vec<&String> = wrong.iter().take(20).collect();
    assert!(wrong.is_empty(), "{name}: {} wrong: {some:#?}", wrong.len());
    tally
}

fn check(recipes: impl IntoIterator<Item = Recipe>) {
    for recipe in recipes {
        let built = build(&recipe).expect("built");
        let tallies = tallies(&built);
        for tally in &tallies {
            let (ran, unknown) = (tally.ran, tally.unknown);
            assert!(unknown * 20 < ran, "{}: {tally:?}", built.name);
        }
        // Some workloads only print a text.
        let most = tallies.iter().map(|tally| tally.ran).max();
        assert!(most > Some(100), "{}: {most:?}", built.name);
    }
}

/// Holds the predicates of each workload of a build against single steps, those that vanish and those that are counted.
fn tallies(built: &Built) -> Vec<Tally> {
    let cache = tempfile::tempdir().expect("a folder");
    let mut tallies = Vec::new();
    for workload in &built.workloads {
        let trace = observe(&built.program, workload, Outside::Leap, LIMIT).expect("traced");
        for options in [&[] as &[&str], &["--counts"]] {
            let document = predicates(&built.program, options, workload, cache.path());
            tallies.push(compare(built, &document, &trace));
        }
    }
    let agreed = tallies.iter().map(|tally| tally.agreed).sum();
    tell("predicates", &built.name, agreed);
    tallies
}

#[test]
#[ignore = "cargo xtask held names the program"]
fn predicates_hold_for_the_named_program() {
    let tallies = tallies(&given().expect("a program"));
    assert!(tallies.iter().any(|tally| tally.ran > 0), "{tallies:?}");
}

#[test]
fn predicates_of_c_features_are_those_of_the_run() {
    check(Recipe::family(Source::CFeatures));
}

#[test]
fn predicates_of_cpp_exceptions_are_those_of_the_run() {
    check(Recipe::family(Source::CppFeatures));
}

#[test]
fn predicates_of_rust_panics_are_those_of_the_run() {
    check(Recipe::family(Source::RustFeatures));
}

#[test]
fn predicates_of_bzip2_are_those_of_the_run() {
    check([
        Recipe::new(Source::Bzip2, Compiler::Clang, Level::O2),
        Recipe::new(Source::Bzip2, Compiler::Gcc, Level::O2),
    ]);
}

#[test]
#[ignore = "single steps take minutes; cargo xtask bench truth runs it"]
fn predicates_of_large_programs_are_those_of_the_run() {
    check(Recipe::large());
}
