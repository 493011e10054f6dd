//! `bench cover`: what `tomo cover` costs whole processes, beside what compilers' own coverage costs the
//! same sources, and what its parts cost, held against what is promised. A promise that is not kept is
//! marked in the table and is an error.

use super::{figures, ratios};
use anyhow::Result;

/// What coverage costs whole processes, held against its promises.
///
/// Runs lua, sqlite, bzip2, python3, git and clang alone, under `tomo cover`, armed by a pool,
/// and built by the compilers to count, in turn; then measures arming, first hits and memory by themselves; and
/// rewrites the tables in docs/BENCH.md. Takes a quarter of an hour on a machine that does nothing else. Fails if a
/// promise is not kept.
#[derive(clap::Args)]
pub(crate) struct Cover {
    /// Measure only whole processes, of cases whose name contains this; other rows stay
    #[arg(long, value_name = "NAME")]
    only: Option<String>,
    /// Measure only its parts; the rows of whole processes stay
    #[arg(long, conflicts_with = "only")]
    parts: bool,
    /// Print the table, but leave the page alone
    #[arg(long)]
    no_write: bool,
}

impl Cover {
    pub(crate) fn run(self) -> Result<()> {
        let parts = || ratios::bench_as("probe", None, !self.no_write, figures::table);
        if self.parts {
            return parts();
        }
        let processes = ratios::bench("cover", self.only.as_deref(), !self.no_write);
        if self.only.is_some() {
            return processes;
        }
        // Measured whatever came of the others: a promise that is not kept hides no other.
        processes.and(parts())
    }
}
