//! `tomo outcome`: a program tells its fleet how its run went.

use std::ffi::OsStr;
use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::Path;

use anyhow::{Context as _, Result};
use clap::{Args, ValueEnum};
use tomo_wire::environment;

/// Tell whether the run that this is called in is a success or a failure.
///
/// For programs under `tomo run`, and scripts and programs that they start: exit codes and signals need not be
/// told. Outside of such a run it does nothing.
#[derive(Args)]
#[command(after_long_help = NOTES)]
pub(crate) struct Arguments {
    /// How it went. The last word counts.
    #[arg(value_enum)]
    how: How,

    /// Words that tell one cause of failure from another. They stay on this machine; reports have their checksum.
    #[arg(value_name = "WORDS")]
    words: Vec<String>,
}

const NOTES: &str = "\
A program can do the same by itself: it writes `success`, or `failure` and
perhaps words, into the file that TOMO_OUTCOME names. In C:

  static void tomo_outcome(const char *how) {  /* such as \"failure disk\" */
      const char *p = getenv(\"TOMO_OUTCOME\"); FILE *f = p ? fopen(p, \"w\") : 0;
      if (f) { fputs(how, f); fclose(f); }
  }

In Rust:

  if let Some(p) = std::env::var_os(\"TOMO_OUTCOME\") {
      let _ = std::fs::write(p, \"failure disk\");
  }";

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum How {
    Success,
    Failure,
}

/// Tells it.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let Some(path) = std::env::var_os(environment::OUTCOME) else {
        return Ok(());
    };
    let how = match arguments.how {
        How::Success => "success",
        How::Failure => "failure",
    };
    let text = format!("{how} {}\n", arguments.words.join(" "));
    write(&path, &text).with_context(|| Path::new(&path).display().to_string())
}

fn write(path: &OsStr, text: &str) -> std::io::Result<()> {
    let mut options = OpenOptions::new();
    let mut file = options.write(true).create(true).truncate(true).open(path)?;
    file.write_all(text.as_bytes())
}
