//! What exact profiles cost: whole processes under `tomo count`, `paths`, `chains` and `predicates`, as ratios of CPU time to
//! the same program alone, beside what the compilers' own counters cost the same sources. Every round runs every way once, and a ratio is the median
//! of the rounds' ratios, so that a busy machine hits all ways alike.
//!
//! Prints one JSON object a line. Run by `cargo xtask bench profiles`; a word as argument chooses the cases whose
//! names contain it. `TOMO` names the command, if it is not to be that of the tests.

#[path = "../cover/cases.rs"]
mod cases;
#[path = "../cover/inputs.rs"]
mod inputs;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result};
use cases::Case;
use serde_json::json;
use tomo_testkit::corpus::{Compiler, Level, Recipe, build};
use tomo_testkit::processor::{median, seconds};
use tomo_testkit::tomo;

/// At most, over all cases.
const PROMISED: [(&str, f64); 5] = [
    (COUNT, 1.15),
    (PATHS, 1.35),
    (SELECTED, 1.01),
    (CHAINS, 1.5),
    (PREDICATES, 1.02),
];
/// How often everything is measured.
const ROUNDS: usize = 9;

/// A way to run a case.
struct Way {
    name: &'static str,
    program: PathBuf,
    /// What comes before the case's arguments.
    before: Vec<OsString>,
}

fn main() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let only = std::env::args()
        .nth(1)
        .filter(|name| !name.starts_with('-'));
    let all = cases::all(folder.path(), cases::is_profiled)?;
    let mut ratios: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    for (number, case) in all.iter().enumerate() {
        if only.as_ref().is_some_and(|only| !case.name.contains(only)) {
            continue;
        }
        let own = folder.path().join(format!("case-{number}"));
        fs::create_dir(&own)?;
        let measured = measure(case, &ways(case, &own)?, &own);
        for (way, ratio) in measured.with_context(|| format!("measuring {}", case.name))? {
            ratios.entry(way).or_default().push(ratio);
        }
    }
    for (way, ratios) in ratios.iter().filter(|(way, _)| **way != "alone") {
        let logarithms = ratios.iter().map(|ratio| ratio.ln());
        let mean = (logarithms.sum::<f64>() / ratios.len() as f64).exp();
        let promise = PROMISED.iter().find(|(promised, _)| *promised == *way);
        let promise = promise.map(|(_, most)| format!("at most {most}"));
        let line = json!({
            "case": "geometric mean", "way": way, "base": "alone", "cpu_ms": 0.0, "ratio": mean,
            "more_ms": 0.0, "value": mean, "unit": "", "promise": promise, "unarmed": 0,
        });
        println!("{line}");
    }
    Ok(())
}

const COUNT: &str = "tomo count";
const WEIGHTED: &str = "tomo count --weights";
const PATHS: &str = "tomo paths";
const SELECTED: &str = "tomo paths --select, five a function";
const CHAINS: &str = "tomo chains";
const PREDICATES: &str = "tomo predicates";

/// How many paths of a function are selected.
const FEW: usize = 5;

fn ways(case: &Case, folder: &Path) -> Result<Vec<Way>> {
    let command = match std::env::var_os("TOMO") {
        Some(command) => PathBuf::from(command),
        None => tomo::path()?.to_owned(),
    };
    let observing = |kind: &str, output: &str, more: &[&Path]| -> Vec<OsString> {
        let mut words: Vec<OsString> = vec![kind.into(), "-o".into()];
        words.push(folder.join(output).into());
        words.extend(more.iter().map(OsString::from));
        words.extend(["--".into(), case.program.clone().into()]);
        words
    };
    let way = |name, program: &Path, before| Way {
        name,
        program: program.to_owned(),
        before,
    };
    // Earlier runs of the same work.
    let unweighted = ["--weights", "none"].map(Path::new);
    let first = way(COUNT, &command, observing("count", "earlier", &unweighted));
    spent(case, &first, folder)?;
    let earlier = fs::read_dir(folder.join("earlier"))?.next();
    let earlier = earlier.context("it left no run")??.path();
    let all = folder.join("all-paths");
    let json = [
        Path::new("--format"),
        Path::new("json"),
        Path::new("--to"),
        &all,
    ];
    spent(
        case,
        &way(PATHS, &command, observing("paths", "first", &json)),
        folder,
    )?;
    let selection = folder.join("selection");
    fs::write(&selection, selected(&fs::read(&all)?)?)?;
    let weights = [Path::new("--weights"), &earlier];
    let select = [Path::new("--select"), &selection];
    let mut ways = vec![way("alone", &case.program, Vec::new())];
    for (name, program) in peers(case)? {
        ways.push(way(name, &program, Vec::new()));
    }
    ways.extend([
        way(COUNT, &command, observing("count", "out", &unweighted)),
        way(WEIGHTED, &command, observing("count", "weighted", &weights)),
        way(PATHS, &command, observing("paths", "out", &[])),
        way(SELECTED, &command, observing("paths", "out", &select)),
        way(CHAINS, &command, observing("chains", "out", &[])),
        way(PREDICATES, &command, observing("predicates", "out", &[])),
    ]);
    Ok(ways)
}

/// The same sources, built by gcc to count.
fn peers(case: &Case) -> Result<Vec<(&'static str, PathBuf)>> {
    let Some(source) = case.source else {
        return Ok(Vec::new());
    };
    let plain = ["--coverage"].as_slice();
    let atomic = ["--coverage", "-fprofile-update=atomic"].as_slice();
    let each = [
        ("gcc --coverage", plain),
        ("gcc --coverage, atomic", atomic),
    ];
    let built = each.map(|(name, flags)| -> Result<(&str, PathBuf)> {
        let mut recipe = Recipe::new(source, Compiler::Gcc, Level::O2);
        recipe.extra = flags.iter().map(|&flag| flag.to_owned()).collect();
        Ok((name, build(&recipe)?.program))
    });
    built.into_iter().collect()
}

/// The most frequent paths of each function of a document.
fn selected(document: &[u8]) -> Result<String> {
    let mut document: serde_json::Value = serde_json::from_slice(document)?;
    let functions = document["functions"].as_array_mut();
    for function in functions.context("no functions")? {
        let paths = function["paths"].as_array_mut().context("no paths")?;
        paths.truncate(FEW);
    }
    Ok(document.to_string())
}

/// Prints what each way costs; the first is the program alone. Gives the ratios.
fn measure(case: &Case, ways: &[Way], folder: &Path) -> Result<Vec<(&'static str, f64)>> {
    let mut samples: Vec<Vec<f64>> = ways.iter().map(|_| Vec::new()).collect();
    for round in 0..=ROUNDS {
        for (way, samples) in ways.iter().zip(&mut samples) {
            let sample = spent(case, way, folder)?;
            // The first round fills caches, and bakes what is missing.
            if round > 0 {
                samples.push(sample);
            }
        }
    }
    let mut ratios = Vec::new();
    for (way, own) in ways.iter().zip(&samples) {
        let pairs = || own.iter().zip(&samples[0]);
        let ratio = median(pairs().map(|(a, b)| a / b));
        ratios.push((way.name, ratio));
        let line = json!({
            "case": case.name, "way": way.name, "base": "alone", "cpu_ms": 1e3 * median(own.iter().copied()),
            "ratio": ratio, "more_ms": 1e3 * median(pairs().map(|(a, b)| a - b)), "value": ratio,
            "unit": "", "promise": null, "unarmed": 0,
        });
        println!("{line}");
    }
    Ok(ratios)
}

/// Processor seconds of one run.
fn spent(case: &Case, way: &Way, folder: &Path) -> Result<f64> {
    let input = match &case.input {
        Some(path) => Stdio::from(File::open(path)?),
        None => Stdio::null(),
    };
    let mut command = Command::new(&way.program);
    command
        .args(&way.before)
        .args(&case.arguments)
        .env("TOMO_CACHE_DIR", folder.join("cache"))
        .current_dir(case.folder.as_deref().unwrap_or(folder))
        .stdin(input)
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    seconds(&mut command).with_context(|| way.name)
}
