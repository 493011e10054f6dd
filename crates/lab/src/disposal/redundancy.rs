//! Redundant probe executions (DIS §3.3): RPE = Σ probes executed − Σ unique probes executed.
//!
//! Each process counts for itself, so a probe that ten runs of a suite come to is unique ten times: that
//! is what local disposal pays. The paper divides RPE by "the execution time of compress", to account
//! for the different times of programs; but one divisor for all accounts for nothing. Here RPE is
//! divided by the row's own seconds, which makes it a rate.

use serde::{Deserialize, Serialize};

use super::{Counts, Units};

/// What a row's runs executed, of one set of probes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Redundancy {
    /// What was run.
    pub task: String,
    /// What carries probes.
    pub units: Units,
    /// Probes that were executed, each time counted.
    pub executed: u64,
    /// Probes that were executed, counted once in each process.
    pub unique: u64,
}

impl Redundancy {
    /// Of a row's runs.
    #[must_use]
    pub fn of<'c>(task: &str, units: Units, runs: impl IntoIterator<Item = &'c Counts>) -> Self {
        let mut sum = Self {
            task: task.into(),
            units,
            executed: 0,
            unique: 0,
        };
        for run in runs {
            sum.executed += run.executed();
            sum.unique += run.unique();
        }
        sum
    }

    /// RPE.
    #[must_use]
    pub fn redundant(&self) -> u64 {
        self.executed - self.unique
    }
}

#[cfg(test)]
mod tests {
    use super::Redundancy;
    use crate::disposal::{Counts, Units};

    #[test]
    fn each_process_counts_for_itself() {
        let run = |probes: &[u64]| Counts {
            length: 1,
            probes: probes.iter().map(|&count| (count, 0)).collect(),
        };
        let runs = [run(&[5, 0, 1]), run(&[1, 1, 0])];
        let sum = Redundancy::of("t", Units::Block, &runs);
        assert_eq!((sum.executed, sum.unique, sum.redundant()), (8, 4, 4));
    }
}
