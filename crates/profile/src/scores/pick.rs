//! The best of many predicates by one of the heuristics, fast enough for a step of the search over
//! millions.
//!
//! Source: ABI Procedure 1, `best`. The t test costs a microsecond, and only the best is wanted: with
//! any degrees of freedom Student's tails are heavier than the normal ones, so |t| bounds the
//! confidence, and a predicate whose bound does not reach the best so far is passed over.

use statrs::distribution::{ContinuousCDF, Normal};

use super::{
    Tallies, fail_count, importance, mann_whitney, max_importance, ochiai, t_statistic, t_test,
};

/// A scoring heuristic of ABI §4.3 that works on data. Breadth-first, random and oracle search need
/// none; the search itself has them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Heuristic {
    /// F(p).
    FailCount,
    /// Importance(p).
    Importance,
    /// MaxImportance(p); meant for forward search.
    MaxImportance,
    /// The confidence of Student's t test; meant for forward search.
    TTest,
    /// The confidence of the U test.
    MannWhitney,
    /// Ochiai(p), which is not the paper's.
    Ochiai,
}

impl Heuristic {
    /// The score of one predicate; 0 or less for one that `tallies` does not know.
    #[must_use]
    pub fn score(self, tallies: &Tallies, predicate: usize) -> f64 {
        let tally = tallies.predicates.get(predicate).copied();
        let tally = tally.unwrap_or_default();
        match self {
            Self::FailCount => fail_count(&tally),
            Self::Importance => importance(&tally, tallies.failed),
            Self::MaxImportance => max_importance(&tally, tallies.failed),
            Self::TTest => t_test(&tally),
            Self::MannWhitney => mann_whitney(&tally),
            Self::Ochiai => ochiai(&tally, tallies.failed),
        }
    }
}

/// The candidate with the highest score, the first of several, with its score.
pub fn best(
    heuristic: Heuristic,
    tallies: &Tallies,
    candidates: impl IntoIterator<Item = usize>,
) -> Option<(usize, f64)> {
    let mut best: Option<(usize, f64)> = None;
    let mut least = f64::NEG_INFINITY;
    for candidate in candidates {
        if heuristic == Heuristic::TTest && below(tallies, candidate, least) {
            continue;
        }
        let score = heuristic.score(tallies, candidate);
        if best.is_none_or(|(_, highest)| score > highest) {
            best = Some((candidate, score));
            least = least_t(score);
        }
    }
    best
}

/// Whether the candidate's t is too small for its confidence to exceed the best.
fn below(tallies: &Tallies, candidate: usize, least: f64) -> bool {
    let tally = tallies.predicates.get(candidate);
    tally
        .and_then(t_statistic)
        .is_some_and(|(t, _)| t.is_finite() && t < least)
}

/// A little less than the |t| that the confidence `score` takes with infinite degrees of freedom.
fn least_t(score: f64) -> f64 {
    if score <= 0.0 {
        return f64::NEG_INFINITY;
    }
    let tail = (1.0 - score) / 2.0;
    // The tail behind 7.9 deviations is 1.4e-15; further out the quantile loses its digits.
    match tail < 1.4e-15 {
        true => 7.9,
        false => -Normal::standard().inverse_cdf(tail) * 0.999_999,
    }
}
