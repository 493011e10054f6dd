//! `tomo merge`: several records made one.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Result, bail};
use clap::Args;
use tomo_export::{collect, write_merged};

use crate::bar::Bar;
use crate::report::say_refused;

/// Merge the records of several runs and pools into one folder.
///
/// What was seen to run in one of them ran in the merged one, and what follows from each of them or from all together
/// is inferred: the reports of the merged folder are those of all its runs. Order does not matter, and merging a record
/// twice is merging it once. Records of different builds of one program are refused.
#[derive(Args)]
pub(crate) struct Arguments {
    /// The folder to write; `tomo report` reads it like any other. What an earlier merge has put there is replaced,
    /// unless it has seen what these runs have not: then nothing is written.
    #[arg(short, long, value_name = "OUT")]
    output: PathBuf,

    /// Folders with records.
    #[arg(required = true, value_name = "DIR")]
    folders: Vec<PathBuf>,
}

/// Does what the arguments ask for.
pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode> {
    let bar = Bar::new();
    let collected = collect(&arguments.folders, &bar);
    bar.finish();
    say_refused(&collected);
    if collected.groups.is_empty() {
        bail!("there is nothing to merge");
    }
    write_merged(&collected, &arguments.output)?;
    Ok(ExitCode::SUCCESS)
}
