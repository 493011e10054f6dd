//! One process, measured from outside: seconds by the clock and peak memory by the kernel. The
//! kernel keeps the peak only of all children together, so each measured command becomes the only
//! child of a fresh process: ours, run again as `xtask bench measure`.

use crate::house;
use anyhow::{Context, Result};
use nix::sys::resource::{UsageWho, getrusage};
use serde_json::{Value, json};
use std::path::Path;
use std::process::Command;
use std::time::Instant;

/// Run one command and print its seconds, peak memory and output as JSON.
#[derive(clap::Args)]
pub(crate) struct Measure {
    /// The program and its arguments
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
    command: Vec<String>,
}

impl Measure {
    pub(crate) fn run(self) -> Result<()> {
        let (program, arguments) = self.command.split_first().context("no command")?;
        let start = Instant::now();
        let printed = house::output(Command::new(program).args(arguments))?;
        let seconds = start.elapsed().as_secs_f64();
        let kilobytes = getrusage(UsageWho::RUSAGE_CHILDREN)?.max_rss();
        let measured = json!({
            "seconds": seconds,
            "peak_bytes": kilobytes * 1024,
            "printed": printed,
        });
        println!("{measured}");
        Ok(())
    }
}

/// What one run took, and what it printed.
#[derive(Clone, Debug)]
pub(super) struct Measured {
    pub(super) seconds: f64,
    pub(super) peak_bytes: f64,
    pub(super) printed: Value,
}

/// Runs `tomo map --format json` on a program, with its models kept in `cache`.
pub(super) fn map(tomo: &Path, program: &Path, cache: &Path, is_cached: bool) -> Result<Measured> {
    let mut command = Command::new(std::env::current_exe()?);
    command
        .args(["bench", "measure", "--"])
        .arg(tomo)
        .args(["map", "--format", "json"]);
    if !is_cached {
        command.arg("--no-cache");
    }
    let measured = house::output(command.arg(program).env("TOMO_CACHE_DIR", cache))?;
    let measured: Value = serde_json::from_str(&measured)?;
    let number = |name: &str| {
        measured[name]
            .as_f64()
            .with_context(|| format!("no {name}"))
    };
    let printed = measured["printed"].as_str().unwrap_or_default();
    Ok(Measured {
        seconds: number("seconds")?,
        peak_bytes: number("peak_bytes")?,
        printed: serde_json::from_str(printed).context("tomo map printed no JSON")?,
    })
}
