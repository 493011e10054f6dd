//! `tomo calibrate`: how many probes keep a bound.

use std::ffi::OsString;
use std::io::{Write as _, stdout};
use std::path::PathBuf;

use anyhow::{Result, bail};
use clap::Args;
use indicatif::ProgressBar;
use tomo_instance::{Measured, calibrate};
use tomo_launch::Target;
use tomo_protocol::Calibration;

use crate::observe::{Store, What};
use crate::session::{answer, is_stdout};

/// Measure what probes cost a program, to turn a share of run time into a number of probes.
///
/// Runs the program many times, alone and with growing numbers of probes at random places, and compares its
/// processor time. Give it a run as users do it, of a second or more: the longer, the surer. What it
/// prints goes nowhere, and its input is empty.
#[derive(Args)]
#[command(after_long_help = EXAMPLES, args_override_self = true)]
pub(crate) struct Arguments {
    #[command(flatten)]
    what: What,

    /// The share of run time that probes may cost, such as 1%: says how many probes keep it.
    #[arg(long, value_name = "SHARE", default_value = "1%", value_parser = share, allow_hyphen_values = true)]
    overhead: f64,

    /// How often each number of probes is measured.
    #[arg(long, value_name = "N", default_value_t = 11, value_parser = clap::value_parser!(u32).range(6..=1000))]
    rounds: u32,

    /// Write the measurement into FILE (- for standard output), for `tomo campaign new --overhead 1% --calibration FILE`.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,

    /// The program and its arguments.
    #[arg(required = true, trailing_var_arg = true, value_name = "PROGRAM")]
    command: Vec<OsString>,
}

const EXAMPLES: &str = "\
Example:
  tomo calibrate -o cost.json -- ./prog its-usual-work
  tomo campaign new --overhead 1% --calibration cost.json …

The cost is that of a first run. A probe is gone once it was hit, so later runs
of the same installation pay less.";

/// A share: `1%` or `0.01`.
pub(crate) fn share(text: &str) -> Result<f64, String> {
    let number = |text: &str| text.trim().parse::<f64>().ok();
    let share = match text.strip_suffix('%') {
        Some(percent) => number(percent).map(|percent| percent / 100.0),
        None => number(text),
    };
    share
        .filter(|share| (0.0..=10.0).contains(share))
        .ok_or_else(|| format!("{text:?} is no share; say 1% or 0.01"))
}

/// Measures, prints the table and what it means for the bound.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let [name, rest @ ..] = arguments.command.as_slice() else {
        bail!("no program");
    };
    let target = Target::find(name, std::env::var_os("PATH").as_deref())?;
    let store = Store::open()?;
    let modules = arguments.what.modules(&target)?;
    let measured = Measured {
        target: &target,
        name,
        arguments: rest,
        modules: &modules,
        how: arguments.what.how(),
        rounds: arguments.rounds,
    };
    let bar = ProgressBar::new(0);
    let told = |done: u32, all: u32| {
        bar.set_length(all.into());
        bar.set_position(done.into());
    };
    let calibration = calibrate(&measured, &store.folder, &told);
    bar.finish_and_clear();
    let calibration = calibration?;
    if let Some(path) = &arguments.output {
        let text = serde_json::to_string_pretty(&calibration)?;
        answer(Some(path), (text + "\n").as_bytes())?;
        if is_stdout(path) {
            return Ok(());
        }
    }
    print(&calibration, arguments.overhead)
}

fn print(calibration: &Calibration, bound: f64) -> Result<()> {
    let Calibration {
        seconds,
        rounds,
        confidence,
        ..
    } = calibration;
    let sure = 100.0 * confidence;
    writeln!(
        stdout(),
        "{seconds:.3} s of processor time alone; {rounds} rounds, intervals of {sure:.1} %"
    )?;
    writeln!(stdout(), "{:>10}  {:>8}  interval", "probes", "costs")?;
    for cost in &calibration.points {
        let [share, low, high] = [cost.share, cost.low, cost.high].map(|share| 100.0 * share);
        writeln!(
            stdout(),
            "{:>10}  {share:>6.2} %  {low:.2} to {high:.2} %",
            cost.probes
        )?;
    }
    let bound_in_words = format!("{:.2} %", 100.0 * bound);
    let outcome = match calibration.probes(calibration.plans, bound) {
        Ok((probes, true)) => format!("All {probes} probes keep a bound of {bound_in_words}."),
        Ok((probes, false)) => format!("{probes} probes keep a bound of {bound_in_words}."),
        Err(error) => format!("No number of probes keeps a bound of {bound_in_words}: {error}."),
    };
    writeln!(stdout(), "{outcome}")?;
    Ok(())
}
