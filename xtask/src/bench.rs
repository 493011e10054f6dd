//! Measurements, and the pages they are written to. Programs are run as their users run them: as
//! processes of their own, seen from outside.

mod growth;
mod map;
mod measure;
mod page;
mod programs;

use anyhow::Result;

/// Measure, and rewrite the tables of the benchmark page.
#[derive(clap::Subcommand)]
pub(crate) enum Bench {
    /// How fast, how large and how complete the models of real programs are
    Map(map::Map),
    /// Run one command and print its seconds, peak memory and output as JSON
    #[command(hide = true)]
    Measure(measure::Measure),
}

impl Bench {
    pub(crate) fn run(self) -> Result<()> {
        match self {
            Self::Map(map) => map.run(),
            Self::Measure(measure) => measure.run(),
        }
    }
}
