//! What probes cost a program: measured for growing numbers of them, and turned into the number that keeps a
//! bound.
//!
//! Source: PDT §5.2: "we inserted a number of probes in random locations of the program, ran an available
//! test suite, measured the overhead, and repeated the procedure while adjusting the number of inserted
//! probes until we converged at the target overhead level". Here all that is measured is kept, so that one
//! measurement serves every bound, and each share has its confidence: a bound is kept by the upper end of
//! the interval, not by its middle.

use serde::{Deserialize, Serialize};

use crate::Name;

/// The form of the file.
pub const SCHEMA: &str = "tomo.calibration/1";

/// What some numbers of probes cost a program.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Calibration {
    /// [`SCHEMA`].
    pub schema: String,
    /// Names the plans whose probes were placed; see [`tomo_wire::report::name_of_plans`].
    pub plans: Name,
    /// Probes in all.
    pub units: u32,
    /// How often each number was measured.
    pub rounds: u32,
    /// How sure it is that a share lies in its interval: 0 to 1.
    pub confidence: f64,
    /// Processor seconds of the program alone, the median.
    pub seconds: f64,
    /// By number of probes, ascending; the first has none.
    pub points: Vec<Cost>,
}

/// What so many probes cost, as a share of the processor time of the program alone.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cost {
    /// How many, at random places.
    pub probes: u32,
    /// The median.
    pub share: f64,
    /// The lower end of its interval.
    pub low: f64,
    /// The upper end.
    pub high: f64,
}

/// Why a bound gives no number of probes.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum CalibrationError {
    /// It is of another schema, or its points do not ascend.
    #[error("it is no calibration of this version of tomo: make it anew with `tomo calibrate`")]
    Form,
    /// It was measured with other plans.
    #[error("it was made of another build, level or placement, or by another version of tomo")]
    OtherPlans,
    /// No probe at all keeps the bound.
    #[error(
        "being armed without any probe costs up to {:.2} % of the program's time, more than the bound of {:.2} %: measure longer runs, or more rounds",
        100.0 * high, 100.0 * bound
    )]
    TooTight {
        /// The upper end of what it costs to be armed.
        high: f64,
        /// The bound.
        bound: f64,
    },
}

impl Calibration {
    /// The most probes that cost at most the share `bound` (0.01 is one per cent) with the confidence of the
    /// measurement, and whether these are all there are. Between two numbers that were measured the cost
    /// is taken to grow evenly, and never to fall.
    ///
    /// # Errors
    /// Where the plans are others, or none keep the bound.
    pub fn probes(&self, plans: Name, bound: f64) -> Result<(u32, bool), CalibrationError> {
        self.most(plans, bound, |cost| cost.high)
    }

    /// The same by the medians: as likely too many as too few.
    ///
    /// # Errors
    /// As for [`Self::probes`].
    pub fn likely_probes(&self, plans: Name, bound: f64) -> Result<(u32, bool), CalibrationError> {
        self.most(plans, bound, |cost| cost.share)
    }

    fn most(
        &self,
        plans: Name,
        bound: f64,
        of: impl Fn(&Cost) -> f64,
    ) -> Result<(u32, bool), CalibrationError> {
        let ascends = self.points.is_sorted_by(|a, b| a.probes < b.probes);
        let sound = |cost: &Cost| of(cost).is_finite() && cost.probes <= self.units;
        if self.schema != SCHEMA || !ascends || !self.points.iter().all(sound) {
            return Err(CalibrationError::Form);
        }
        if self.plans != plans {
            return Err(CalibrationError::OtherPlans);
        }
        let first = self.points.first().ok_or(CalibrationError::Form)?;
        let (mut probes, mut highest) = (first.probes, of(first));
        if highest > bound {
            let high = highest;
            return Err(CalibrationError::TooTight { high, bound });
        }
        for cost in &self.points {
            let high = of(cost).max(highest);
            if high > bound {
                let share = (bound - highest) / (high - highest);
                let more = f64::from(cost.probes - probes) * share;
                // At most what was measured, so it fits.
                return Ok((probes + more as u32, false));
            }
            (probes, highest) = (cost.probes, high);
        }
        Ok((probes, probes == self.units))
    }
}

#[cfg(test)]
mod tests {
    use super::{Calibration, CalibrationError, Cost, SCHEMA};
    use crate::Name;

    fn calibration(highs: &[(u32, f64)]) -> Calibration {
        let point = |&(probes, high): &(u32, f64)| Cost {
            probes,
            share: high / 2.0,
            low: 0.0,
            high,
        };
        Calibration {
            schema: SCHEMA.into(),
            plans: Name(3),
            units: 1000,
            rounds: 9,
            confidence: 0.95,
            seconds: 1.0,
            points: highs.iter().map(point).collect(),
        }
    }

    #[test]
    fn a_bound_is_kept_by_the_upper_end() {
        let measured = calibration(&[(0, 0.002), (100, 0.006), (500, 0.014), (1000, 0.03)]);
        assert_eq!(measured.probes(Name(3), 0.01), Ok((300, false)));
        assert_eq!(measured.probes(Name(3), 0.006), Ok((100, false)));
        assert_eq!(measured.probes(Name(3), 0.05), Ok((1000, true)));
        assert_eq!(measured.likely_probes(Name(3), 0.005), Ok((300, false)));
        let tight = measured.probes(Name(3), 0.001).unwrap_err();
        assert!(matches!(tight, CalibrationError::TooTight { .. }));
        assert_eq!(
            measured.probes(Name(4), 0.01),
            Err(CalibrationError::OtherPlans)
        );
    }

    #[test]
    fn noise_never_makes_more_probes_cheaper() {
        let measured = calibration(&[(0, 0.001), (100, 0.02), (500, 0.004), (1000, 0.03)]);
        assert_eq!(measured.probes(Name(3), 0.0105), Ok((50, false)));
        assert_eq!(measured.probes(Name(3), 0.02), Ok((500, false)));
    }

    #[test]
    fn what_is_no_calibration_is_refused() {
        for broken in [
            calibration(&[]),
            calibration(&[(5, 0.1), (5, 0.2)]),
            calibration(&[(0, f64::NAN)]),
            calibration(&[(2000, 0.1)]),
            Calibration {
                schema: "x".into(),
                ..calibration(&[(0, 0.0)])
            },
        ] {
            assert_eq!(broken.probes(Name(3), 1.0), Err(CalibrationError::Form));
        }
    }
}
