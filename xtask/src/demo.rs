//! The main job, end to end: `tomo demo`, built as users have it.

use crate::house;
use anyhow::Result;

/// Builds `tomo` and lets it show a fleet at work on this machine.
#[derive(clap::Args)]
pub(crate) struct Demo {
    /// Build it as the tests do: where they have run there is nothing left to build
    #[arg(long)]
    as_tests: bool,
}

impl Demo {
    pub(crate) fn run(self) -> Result<()> {
        let tomo = match self.as_tests {
            true => house::build_tomo_as_tests()?,
            false => house::build_tomo()?,
        };
        house::run(house::command(&tomo)?.arg("demo"))
    }
}
