//! `bench trace`: what exact traces cost, how much room they take and how fast they are merged, held against what is
//! promised.

use super::{figures, ratios};
use anyhow::Result;

/// What exact traces cost, held against their promises.
///
/// Runs lua, sqlite, bzip2 and, if it is installed, ripgrep alone and under `tomo trace`, in turn, and rewrites the
/// table in docs/BENCH.md. Takes some minutes on a machine that does nothing else. Fails if a promise is not kept.
#[derive(clap::Args)]
pub(crate) struct Trace {
    /// Measure only cases whose name contains this
    #[arg(long, value_name = "NAME")]
    only: Option<String>,
    /// Print the table, but leave the page alone
    #[arg(long)]
    no_write: bool,
}

impl Trace {
    pub(crate) fn run(self) -> Result<()> {
        ratios::bench_as(
            "trace",
            self.only.as_deref(),
            !self.no_write,
            figures::table,
        )
    }
}
