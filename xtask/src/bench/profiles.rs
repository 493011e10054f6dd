//! `bench profiles`: what exact profiles cost whole processes, beside what the compilers' own counters cost the same
//! sources, held against what is promised.

use super::ratios;
use anyhow::Result;

/// What exact counts, paths, chains and predicates cost whole processes, held against their promises.
///
/// Runs lua, sqlite, bzip2 and, if it is installed, ripgrep alone, under `tomo count`, `paths`, `chains` and `predicates`, and built by gcc to
/// count, in turn, and rewrites the table in docs/BENCH.md. Takes some minutes on a machine that does nothing
/// else. Fails if a promise is not kept.
#[derive(clap::Args)]
pub(crate) struct Profiles {
    /// Measure only cases whose name contains this
    #[arg(long, value_name = "NAME")]
    only: Option<String>,
    /// Print the table, but leave the page alone
    #[arg(long)]
    no_write: bool,
}

impl Profiles {
    pub(crate) fn run(self) -> Result<()> {
        ratios::bench("profiles", self.only.as_deref(), !self.no_write)
    }
}
