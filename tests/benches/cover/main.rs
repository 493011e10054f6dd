//! What `tomo cover` costs: whole processes, as ratios of CPU time to the same program alone, beside
//! what compilers' own coverage costs. Every round runs every way once, in an order of its own, and a ratio is the
//! median of the rounds' ratios, so that a busy machine hits all ways alike.
//!
//! Prints one JSON object a line. Run by `cargo xtask bench cover`; a word as argument chooses the
//! cases whose names contain it. `TOMO` names the command, if it is not to be that of the tests.

mod cases;
mod inputs;
mod pools;
mod ways;

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result};
use cases::Case;
use pools::Contents;
use serde_json::json;
use tomo_testkit::processor::{median, seconds};
use ways::{Promise, Way};

fn main() -> Result<()> {
    let folder = pools::in_memory()?;
    let only = std::env::args()
        .nth(1)
        .filter(|name| !name.starts_with('-'));
    let wanted = |name: &str| only.as_ref().is_none_or(|only| name.contains(only));
    for (number, case) in cases::all(folder.path(), wanted)?.iter().enumerate() {
        let own = folder.path().join(number.to_string());
        measure(case, &own).with_context(|| format!("measuring {}", case.name))?;
    }
    Ok(())
}

/// Prints what each way to run `case` costs.
fn measure(case: &Case, folder: &Path) -> Result<()> {
    fs::create_dir_all(folder)?;
    let ways = ways::of(case, folder)?;
    let mut spent: Vec<Vec<f64>> = ways.iter().map(|_| Vec::new()).collect();
    for round in 0..=case.rounds {
        for way in order(ways.len(), round) {
            let sample = run(case, &ways[way], folder)?;
            // The first round fills caches, and bakes what is missing.
            if round > 0 {
                spent[way].push(sample);
            }
        }
    }
    for (way, own) in ways.iter().zip(&spent) {
        let base = ways.iter().position(|other| other.name == way.base);
        let base = &spent[base.context("no such way")?];
        let ratio = median(own.iter().zip(base).map(|(a, b)| a / b));
        let more = 1e3 * median(own.iter().zip(base).map(|(a, b)| a - b));
        let (value, unit, promise) = match way.promise {
            Some(Promise::Ratio(most)) => (ratio, "", Some(format!("at most {most}"))),
            Some(Promise::MoreMilliseconds(most)) => {
                (more, "ms more", Some(format!("at most {most} ms more")))
            }
            None => (ratio, "", None),
        };
        let unarmed = match &way.pool {
            Some(pool) => Contents::of(pool)?.unarmed()?,
            None => 0,
        };
        let line = json!({
            "bench": "cover", "case": case.name, "way": way.name, "base": way.base,
            "cpu_ms": 1e3 * median(own.iter().copied()), "ratio": ratio, "more_ms": more,
            "rounds": own.len(), "value": value, "unit": unit, "promise": promise, "unarmed": unarmed,
        });
        println!("{line}");
    }
    Ok(())
}

/// The order of the ways in a round, another in each: a run finds the processor's caches as the one before left them, which
/// to a program of a millisecond is a tenth of its time.
fn order(ways: usize, round: usize) -> Vec<usize> {
    let mut state = round as u32 + 1;
    let mut order: Vec<usize> = (0..ways).collect();
    order.sort_by_cached_key(|_| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        state >> 8
    });
    order
}

/// Seconds of the processor that one run takes.
fn run(case: &Case, way: &Way, folder: &Path) -> Result<f64> {
    way.fresh.put_back()?;
    let stdin = match &case.input {
        Some(path) => Stdio::from(fs::File::open(path)?),
        None => Stdio::null(),
    };
    let mut command = Command::new(&way.program);
    command
        .args(&way.before)
        .args(&case.arguments)
        .envs(&way.environment)
        .env("LLVM_PROFILE_FILE", folder.join("clang.profraw"))
        .current_dir(case.folder.as_deref().unwrap_or(folder))
        .stdin(stdin)
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    seconds(&mut command).with_context(|| format!("running it {}", way.name))
}
