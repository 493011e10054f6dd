//! The main job, end to end: `tomo demo`, built as users have it.

use crate::house;
use anyhow::Result;

/// Builds `tomo` and lets it show a fleet at work on this machine.
#[derive(clap::Args)]
pub(crate) struct Demo {}

impl Demo {
    pub(crate) fn run(self) -> Result<()> {
        let tomo = house::build_tomo()?;
        house::run(house::command(&tomo)?.arg("demo"))
    }
}
