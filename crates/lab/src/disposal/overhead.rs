//! What the tables on local disposal say, from samples.
//!
//! The paper's columns (DIS Tables 2 to 4 and 6) are *overhead with respect to No-I* and *gain with respect
//! to Basic-I*; its figures show that the gain is meant in points of No-I's time: for jess, (1060 − 562) /
//! 521 is the 96 % of Table 2. Both are made here from each round by itself and then the median is
//! taken, since a busy machine moves the times of a round together.

use serde::{Deserialize, Serialize};

use super::numbers::median;
use super::{Summary, Way};

/// One row's samples.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Timed {
    /// What was run.
    pub task: String,
    /// How many runs that is.
    pub runs: usize,
    /// For each way, seconds of the processor in each round.
    pub samples: Vec<(Way, Vec<f64>)>,
}

impl Timed {
    /// The samples of a way, by round.
    #[must_use]
    pub fn of(&self, way: Way) -> Option<&[f64]> {
        let found = self.samples.iter().find(|(one, _)| *one == way);
        found.map(|(_, seconds)| seconds.as_slice())
    }

    /// Mean and deviation of a way's seconds.
    #[must_use]
    pub fn summary(&self, way: Way) -> Option<Summary> {
        Summary::of(self.of(way)?)
    }

    /// By how much `way` takes longer than the program as it is, as a share of what that takes.
    #[must_use]
    pub fn overhead(&self, way: Way) -> Option<f64> {
        self.gain(way, Way::Bare)
    }

    /// By how much `way` takes longer than `better`, as a share of what the program as it is takes.
    #[must_use]
    pub fn gain(&self, way: Way, better: Way) -> Option<f64> {
        let rounds = self.of(way)?.iter().zip(self.of(better)?);
        let shares = rounds.zip(self.of(Way::Bare)?);
        median(shares.map(|((way, better), bare)| (way - better) / bare))
    }

    /// How far two equal ways come out apart: the median over rounds, without a sign, as a share.
    #[must_use]
    pub fn noise(&self) -> Option<f64> {
        let rounds = self.of(Way::Again)?.iter().zip(self.of(Way::Bare)?);
        median(rounds.map(|(again, bare)| ((again - bare) / bare).abs()))
    }
}

#[cfg(test)]
mod tests {
    use super::Timed;
    use crate::disposal::paper;
    use crate::disposal::{Stay, Units, Way};

    #[test]
    fn overheads_and_gains_are_medians_of_rounds() {
        let basic = Way::Lasting(Units::Block, Stay::Woven);
        let timed = Timed {
            task: "t".into(),
            runs: 1,
            samples: vec![
                (Way::Bare, vec![1.0, 2.0, 4.0]),
                (Way::Again, vec![1.1, 2.0, 3.8]),
                (basic, vec![1.5, 4.0, 4.0]),
                (Way::Armed(Units::Block), vec![1.1, 2.0, 6.0]),
            ],
        };
        assert_eq!(timed.overhead(basic), Some(0.5));
        let gain = timed.gain(basic, Way::Armed(Units::Block)).expect("both");
        assert!((gain - 0.4).abs() < 1e-12);
        assert!((timed.noise().expect("both") - 0.05).abs() < 1e-12);
        assert_eq!(timed.overhead(Way::Covered(Units::Block)), None);
    }

    /// The definitions above, applied to the paper's own means, give the paper's own columns, but for
    /// what rounding explains.
    #[test]
    fn the_papers_columns_follow_from_its_means() {
        for table in [
            &paper::TABLE_2,
            &paper::TABLE_3,
            &paper::TABLE_4,
            &paper::TABLE_6,
        ] {
            for row in table.rows {
                let timed = Timed {
                    task: row.program.into(),
                    runs: 1,
                    samples: vec![
                        (Way::Bare, vec![row.bare]),
                        (Way::Again, vec![row.lasting]),
                        (Way::Covered(Units::Block), vec![row.disposed]),
                    ],
                };
                let overhead = |way| 100.0 * timed.overhead(way).expect("timed");
                let gain = timed.gain(Way::Again, Way::Covered(Units::Block));
                for (ours, printed) in [
                    (overhead(Way::Again), row.lasting_overhead),
                    (overhead(Way::Covered(Units::Block)), row.disposed_overhead),
                    (100.0 * gain.expect("timed"), row.gain),
                ] {
                    assert!(
                        (ours - printed).abs() < 1.0,
                        "{} {ours} {printed}",
                        row.program
                    );
                }
            }
        }
    }
}
