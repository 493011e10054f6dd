//! `bench collector`: what one collector takes from a fleet of a thousand instances, held against what is
//! promised. The bench itself is `crates/collector/benches/fleet.rs`; it takes half a minute.

use super::plan::{measure, table};
use super::rows::verdict;
use crate::house;
use crate::page;
use anyhow::{Result, bail};

const PAGE: &str = "docs/BENCH.md";
/// Lines with a promise. A bench that falls silent keeps none.
const PROMISES: usize = 3;

/// What one collector takes from a fleet of a thousand instances.
///
/// Runs the fleet on this machine, over HTTP, and rewrites the table in docs/BENCH.md. Fails if a promise is
/// not kept.
#[derive(clap::Args)]
pub(crate) struct Collector {
    /// Print the table, but leave the page alone
    #[arg(long)]
    no_write: bool,
}

impl Collector {
    pub(crate) fn run(self) -> Result<()> {
        let rows = measure("tomo-collector", "fleet")?;
        let (table, broken) = table(&rows)?;
        println!("{table}");
        if rows.iter().filter(|row| row.is_promised()).count() != PROMISES {
            bail!("the bench no longer measures what is promised");
        }
        if !self.no_write {
            page::rewrite(&house::root()?.join(PAGE), "bench collector", &table)?;
        }
        if broken > 0 {
            bail!(verdict(broken));
        }
        Ok(())
    }
}
