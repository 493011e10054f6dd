//! FailCount, Increase, Importance with its confidence interval, MaxImportance.
//!
//! Source: ABI §4.3; Liblit et al., PLDI 2005, §3.1 and §3.3.
//!
//! ```text
//! Failure(p)    = F(p) / (S(p) + F(p))
//! Context(p)    = F(p observed) / (S(p observed) + F(p observed))
//! Increase(p)   = Failure(p) − Context(p)
//! Importance(p) = 2 / (1/Increase(p) + 1/(log F(p) / log NumF))
//! ```
//!
//! Importance is 0 where it is undefined (PLDI 2005 says so too): nothing true in a failed run, at
//! most one failed run, or Increase not positive.
//!
//! MaxImportance is Importance of a predicate h that could be found behind p: true in all failed runs
//! in which p was true and in no other, so Increase(h) = 1 − F(p) / (F(p) + S(p)) and F(h) = F(p).
//! (So it is 0 of a p that was true in failed runs only: nothing behind it can do better.)
//!
//! **The interval** is that of the delta method (PLDI 2005 names it and prints no formula). The runs
//! fall into cells: failed or not, by true, observed but not true, not observed. Importance is a
//! function of those counts; its variance is that of the linear function with its gradient under the
//! multinomial distribution. It is a large-sample approximation, and poor below some five runs a cell.

use super::Tally;

/// FailCount(p) = F(p).
#[must_use]
pub fn fail_count(tally: &Tally) -> f64 {
    tally.failed_true as f64
}

/// Increase(p); −1, the lowest it can get, if p was never true.
#[must_use]
pub fn increase(tally: &Tally) -> f64 {
    match share(tally.failed_true, tally.passed_true) {
        Some(failure) => failure - share(tally.failed_seen, tally.passed_seen).unwrap_or(0.0),
        None => -1.0,
    }
}

fn share(failed: u64, passed: u64) -> Option<f64> {
    let all = failed as f64 + passed as f64;
    (all > 0.0).then(|| failed as f64 / all)
}

/// Importance(p), where `failed` runs failed in all.
#[must_use]
pub fn importance(tally: &Tally, failed: u64) -> f64 {
    harmonic(increase(tally), sensitivity(tally.failed_true, failed))
}

/// MaxImportance(p), where `failed` runs failed in all.
#[must_use]
pub fn max_importance(tally: &Tally, failed: u64) -> f64 {
    let rise = share(tally.passed_true, tally.failed_true).unwrap_or(0.0);
    harmonic(rise, sensitivity(tally.failed_true, failed))
}

/// Ochiai(p) = F(p) / √(NumF (F(p) + S(p))), from 0 to 1, where `failed` runs failed in all: high of what ran in
/// most failed runs and in few others. Source: Ochiai, *Zoogeographical Studies on the Soleoid Fishes*, 1957, as Abreu,
/// Zoeteweij, van Gemund, *An Evaluation of Similarity Coefficients for Software Fault Localization*, PRDC 2006, have it.
/// Unlike Increase it looks at all runs, not only at those that reached the site.
#[must_use]
pub fn ochiai(tally: &Tally, failed: u64) -> f64 {
    let held = tally.failed_true as f64;
    let all = failed as f64 * (held + tally.passed_true as f64);
    if all > 0.0 { held / all.sqrt() } else { 0.0 }
}

/// log F(p) / log NumF.
fn sensitivity(held: u64, failed: u64) -> f64 {
    if held == 0 || failed < 2 {
        return 0.0;
    }
    (held as f64).ln() / (failed as f64).ln()
}

fn harmonic(a: f64, b: f64) -> f64 {
    if a > 0.0 && b > 0.0 {
        2.0 * a * b / (a + b)
    } else {
        0.0
    }
}

/// A value with the bounds between which the true one lies with some confidence.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// The lower bound.
    pub low: f64,
    /// The estimate.
    pub value: f64,
    /// The upper bound.
    pub high: f64,
}

/// Importance(p) with `deviations` standard deviations to each side (1.96 for 95 %), where `failed`
/// runs failed and `passed` did not. Where Importance is undefined, the interval is the point 0.
#[must_use]
pub fn importance_interval(tally: &Tally, failed: u64, passed: u64, deviations: f64) -> Interval {
    let value = importance(tally, failed);
    if value <= 0.0 {
        return Interval {
            low: 0.0,
            value: 0.0,
            high: 0.0,
        };
    }
    let reach = deviations * variance(tally, failed, passed).max(0.0).sqrt();
    Interval {
        low: (value - reach).max(0.0),
        value,
        high: (value + reach).min(1.0),
    }
}

/// The variance of Importance by the delta method.
fn variance(tally: &Tally, failed: u64, passed: u64) -> f64 {
    let (cells, gradient) = (cells(tally, failed, passed), gradient(tally, failed));
    let all: f64 = cells.iter().sum();
    let both = || gradient.iter().zip(&cells);
    let linear: f64 = both().map(|(slope, cell)| slope * cell).sum();
    let square: f64 = both().map(|(slope, cell)| slope * slope * cell).sum();
    square - linear * linear / all
}

/// Failed and true, failed and seen only, passed and true, passed and seen only, failed and not seen,
/// passed and not seen.
fn cells(tally: &Tally, failed: u64, passed: u64) -> [f64; 6] {
    [
        tally.failed_true,
        tally.failed_seen.saturating_sub(tally.failed_true),
        tally.passed_true,
        tally.passed_seen.saturating_sub(tally.passed_true),
        failed.saturating_sub(tally.failed_seen),
        passed.saturating_sub(tally.passed_seen),
    ]
    .map(|runs| runs as f64)
}

/// The derivatives of Importance by each cell.
fn gradient(tally: &Tally, failed: u64) -> [f64; 6] {
    let (held, passing) = (tally.failed_true as f64, tally.passed_true as f64);
    let (seen, passed_seen) = (tally.failed_seen as f64, tally.passed_seen as f64);
    let (rise, depth) = (increase(tally), sensitivity(tally.failed_true, failed));
    let (true_runs, seen_runs) = (held + passing, seen + passed_seen);
    let by_failing_context = -passed_seen / (seen_runs * seen_runs);
    let by_passing_context = seen / (seen_runs * seen_runs);
    let by_rise = 2.0 * (depth / (rise + depth)) * (depth / (rise + depth));
    let by_depth = 2.0 * (rise / (rise + depth)) * (rise / (rise + depth));
    let log_failed = (failed as f64).ln();
    let by_failed = -depth / (failed as f64 * log_failed);
    [
        by_rise * (passing / (true_runs * true_runs) + by_failing_context)
            + by_depth * (1.0 / (held * log_failed) + by_failed),
        by_rise * by_failing_context + by_depth * by_failed,
        by_rise * (-held / (true_runs * true_runs) + by_passing_context),
        by_rise * by_passing_context,
        by_depth * by_failed,
        0.0,
    ]
}

#[cfg(test)]
mod tests {
    use super::{Tally, ochiai};

    #[test]
    fn what_ran_in_failed_runs_alone_is_the_highest() {
        let of = |failed_true, passed_true| {
            let tally = Tally {
                failed_true,
                passed_true,
                failed_seen: 10,
                passed_seen: 100,
            };
            ochiai(&tally, 10)
        };
        assert_eq!(of(10, 0), 1.0);
        assert_eq!(of(0, 100), 0.0);
        // 10 / √(10 · 40), and 5 / √(10 · 5).
        assert!((of(10, 30) - 0.5).abs() < 1e-12);
        assert!((of(5, 0) - 0.5f64.sqrt()).abs() < 1e-12);
        assert!(of(9, 1) > of(10, 30));
    }
}
