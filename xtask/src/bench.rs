//! Measurements, and the pages they are written to. Programs are run as their users run them: as
//! processes of their own, seen from outside.

mod collector;
mod cover;
mod figures;
mod fleet;
mod growth;
mod isolate;
mod map;
mod measure;
mod plan;
mod profiles;
mod programs;
mod promise;
mod ratios;
mod rows;
mod trace;
mod truth;

use crate::packages;
use anyhow::Result;

/// Measure, and rewrite the tables of the benchmark page.
#[derive(clap::Subcommand)]
pub(crate) enum Bench {
    /// What one collector takes from a fleet of a thousand instances
    Collector(collector::Collector),
    /// What coverage costs whole processes, beside what compilers' own does
    Cover(cover::Cover),
    /// What it costs to be an instance of a fleet
    Fleet(fleet::Fleet),
    /// What adaptive bug isolation costs, held against its promises
    Isolate(isolate::Isolate),
    /// How fast, how large and how complete the models of real programs are
    Map(map::Map),
    /// How long the planning library takes, held against its promises
    Plan(plan::Plan),
    /// What exact counts cost, beside what compilers' own counters do
    Profiles(profiles::Profiles),
    /// What exact traces cost, how much room they take and how fast they are merged
    Trace(trace::Trace),
    /// Models and coverage held against single steps
    Truth(truth::Truth),
    /// Run one command and print its seconds, peak memory and output as JSON
    #[command(hide = true)]
    Measure(measure::Measure),
}

impl Bench {
    pub(crate) fn run(self) -> Result<()> {
        if !matches!(self, Self::Measure(_)) {
            packages::ensure_measured()?;
        }
        match self {
            Self::Collector(collector) => collector.run(),
            Self::Cover(cover) => cover.run(),
            Self::Fleet(fleet) => fleet.run(),
            Self::Isolate(isolate) => isolate.run(),
            Self::Map(map) => map.run(),
            Self::Plan(plan) => plan.run(),
            Self::Profiles(profiles) => profiles.run(),
            Self::Trace(trace) => trace.run(),
            Self::Truth(truth) => truth.run(),
            Self::Measure(measure) => measure.run(),
        }
    }
}
