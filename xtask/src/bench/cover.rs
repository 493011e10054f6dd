//! `bench cover`: what `tomo cover` costs whole processes, beside what compilers' own coverage costs the
//! same sources, held against what is promised. A promise that is not kept is marked in the table and
//! is an error.

use super::ratios;
use anyhow::Result;

/// What coverage costs whole processes, held against its promises.
///
/// Runs lua, sqlite, bzip2, python3, git and clang alone, under `tomo cover`, armed by a pool,
/// and built by the compilers to count, in turn, and rewrites the table in docs/BENCH.md. Takes some
/// minutes on a machine that does nothing else. Fails if a promise is not kept.
#[derive(clap::Args)]
pub(crate) struct Cover {
    /// Measure only cases whose name contains this
    #[arg(long, value_name = "NAME")]
    only: Option<String>,
    /// Print the table, but leave the page alone
    #[arg(long)]
    no_write: bool,
}

impl Cover {
    pub(crate) fn run(self) -> Result<()> {
        ratios::bench("cover", self.only.as_deref(), !self.no_write)
    }
}
