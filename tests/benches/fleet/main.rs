//! What it costs to be an instance of a fleet: whole processes, launcher included, as ratios of CPU time to the
//! same program alone, under a bound of 1 % that `tomo calibrate` turned into a number of probes.
//!
//! Every round runs every way once; a ratio is the median over the rounds of the ratio to the same round's
//! run alone. The program alone is run twice in each round: the interval of the ratio of these two is the noise, what
//! cannot be told from nothing. Intervals are those of the sign test, as in `tomo calibrate`.
//!
//! Prints one JSON object a line. Run by `cargo xtask bench fleet`; a word as argument chooses the cases whose
//! names contain it. `TOMO` names the command.

#[path = "../cover/cases.rs"]
mod cases;
#[path = "../cover/inputs.rs"]
mod inputs;
mod served;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result};
use cases::Case;
use serde_json::json;
use served::Served;
use tomo_testkit::processor::{median, seconds};

/// How often everything is measured.
const ROUNDS: usize = 15;
/// What is gone in a moment is also measured where it is started so often in one session.
const TIMES: u32 = 20;
/// Processor seconds that are a moment.
const MOMENT: f64 = 0.3;
/// The share of run time that probes may cost.
const BOUND: &str = "1%";
/// What is measured of each case, in this order; ratios are to the first.
const WAYS: [&str; 5] = [
    "alone",
    "alone again: the noise",
    "first instance, first run",
    "second instance, first run",
    "second instance, later runs",
];

/// The same of sessions.
const SESSIONS: [&str; 3] = [
    "alone",
    "alone again: the noise",
    "second instance, a session",
];

fn main() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let tomo = PathBuf::from(std::env::var_os("TOMO").context("TOMO names the command")?);
    let served = Served::start(&tomo, folder.path())?;
    let only = std::env::args()
        .nth(1)
        .filter(|name| !name.starts_with('-'));
    let wanted = |name: &str| {
        // Calibration hands no input over.
        !name.contains("bzip2")
            && !name.contains("millisecond")
            && only.as_ref().is_none_or(|only| name.contains(only))
    };
    for (number, case) in cases::all(folder.path(), wanted)?.iter().enumerate() {
        let own = folder.path().join(format!("case-{number}"));
        std::fs::create_dir(&own)?;
        measure(case, &served, &own).with_context(|| format!("measuring {}", case.name))?;
    }
    Ok(())
}

/// Prints what being an instance costs `case`.
fn measure(case: &Case, served: &Served, folder: &Path) -> Result<()> {
    let probes = served.calibrate(case, BOUND)?;
    let lasting = served.campaign(case, probes, &folder.join("token"))?;
    let second = folder.join("second");
    let mut prepared = Vec::new();
    let mut spent: Vec<Vec<f64>> = vec![Vec::new(); WAYS.len()];
    // The first instance, and the first run of the second: not measured, but seen by the fleet.
    for state in ["first", "second"] {
        let state = folder.join(state);
        served.prepare(case, &lasting, &state)?;
        cpu(&mut served.run(case, &lasting, &state))?;
    }
    for round in 0..ROUNDS {
        let [new, other] = ["new", "other"].map(|name| folder.join(format!("{name}-{round}")));
        let fresh = served.campaign(case, probes, &folder.join("fresh-token"))?;
        prepared.push(served.prepare(case, &fresh, &new)?);
        served.prepare(case, &lasting, &other)?;
        let samples = [
            cpu(&mut served.alone(case))?,
            cpu(&mut served.alone(case))?,
            cpu(&mut served.run(case, &fresh, &new))?,
            cpu(&mut served.run(case, &lasting, &other))?,
            cpu(&mut served.run(case, &lasting, &second))?,
        ];
        for (spent, sample) in spent.iter_mut().zip(samples) {
            spent.push(sample);
        }
    }
    let prepare = median(prepared.iter().copied());
    print(case.name, &WAYS, &spent, (probes, prepare));
    if median(spent[0].iter().copied()) < MOMENT {
        let sessions = sessions(case, served, &lasting, &second)?;
        let name = format!("{}, {TIMES} times", case.name);
        print(&name, &SESSIONS, &sessions, (probes, prepare));
    }
    Ok(())
}

/// What a session costs in which `case` is started again and again, by ways.
fn sessions(case: &Case, served: &Served, token: &Path, state: &Path) -> Result<Vec<Vec<f64>>> {
    let mut spent: Vec<Vec<f64>> = vec![Vec::new(); SESSIONS.len()];
    for _ in 0..ROUNDS {
        let samples = [
            cpu(&mut served.alone_often(case, TIMES))?,
            cpu(&mut served.alone_often(case, TIMES))?,
            cpu(&mut served.session(case, TIMES, token, state))?,
        ];
        for (spent, sample) in spent.iter_mut().zip(samples) {
            spent.push(sample);
        }
    }
    Ok(spent)
}

/// Prints what the ways to run a case took, as ratios to the first.
fn print(case: &str, ways: &[&str], spent: &[Vec<f64>], (probes, prepare): (u64, f64)) {
    for (way, own) in ways.iter().zip(spent) {
        let mut ratios: Vec<f64> = own.iter().zip(&spent[0]).map(|(a, b)| a / b).collect();
        ratios.sort_by(f64::total_cmp);
        let line = json!({
            "bench": "fleet", "case": case, "way": way, "probes": probes, "rounds": ROUNDS,
            "cpu_ms": 1e3 * median(own.iter().copied()), "ratio": median(ratios.iter().copied()),
            // Of fifteen values the fourth and the twelfth hold the median with 96.5 %.
            "low": ratios[3], "high": ratios[ROUNDS - 4],
            "prepare_ms": 1e3 * prepare,
        });
        println!("{line}");
    }
}

/// Processor seconds of a command and all that it waits for.
fn cpu(command: &mut Command) -> Result<f64> {
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    seconds(command)
}
