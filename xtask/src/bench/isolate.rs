//! `bench isolate`: what adaptive bug isolation costs, held against what is promised. The bench itself is
//! `crates/lab/benches/isolate/main.rs`; it takes some minutes.

use super::plan::{measure, table};
use super::rows::verdict;
use crate::house;
use crate::page;
use anyhow::{Result, bail};

const PAGE: &str = "docs/BENCH.md";
/// Lines with a promise. A bench that falls silent keeps none.
const PROMISES: usize = 5;

/// What adaptive bug isolation costs, held against its promises.
///
/// Measures a step over a million reports, arming new plans, and whole processes of lua, sqlite and bzip2 with the plans of
/// a search, and rewrites the table in docs/BENCH.md. Fails if a promise is not kept.
#[derive(clap::Args)]
pub(crate) struct Isolate {
    /// Print the table, but leave the page alone
    #[arg(long)]
    no_write: bool,
}

impl Isolate {
    pub(crate) fn run(self) -> Result<()> {
        let rows = measure("tomo-lab", "isolate")?;
        let (table, broken) = table(&rows)?;
        println!("{table}");
        if rows.iter().filter(|row| row.is_promised()).count() != PROMISES {
            bail!("the bench no longer measures what is promised");
        }
        if !self.no_write {
            page::rewrite(&house::root()?.join(PAGE), "bench isolate", &table)?;
        }
        if broken > 0 {
            bail!(verdict(broken));
        }
        Ok(())
    }
}
