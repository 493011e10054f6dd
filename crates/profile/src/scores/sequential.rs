//! When the data suffice: a sequential test that may be looked at after every report.
//!
//! ABI §4.4 asks to wait until the analysis is confident enough, and its study then waits for a fixed
//! number of runs. Asking a test of fixed size again and again is wrong more often each time (the
//! tests show it). This is a test that is meant to be asked so: Wald, *Sequential Analysis*, 1947,
//! chapter 6 (double dichotomies), on his sequential probability ratio test (chapter 3).
//!
//! Of each predicate, the failed and the successful runs that reached its site are paired in the
//! order in which they come. Pairs that agree say nothing. A pair that differs has the failed run
//! true with probability u / (1 + u), where u is the odds ratio of p in failed to p in successful
//! runs: whatever the rates themselves are. So it is a ratio test of u = 1 (not predictive) against
//! u = `odds`, and ends when
//!
//! ```text
//! log(likelihood ratio) ≥ log((1 − β) / α)   predictive
//! log(likelihood ratio) ≤ log(β / (1 − α))   not predictive
//! ```
//!
//! **What is promised.** The ratio is a martingale where u = 1 (and a supermartingale where u < 1), so
//! the chance that it ever reaches 1/α is at most α (Ville): the upper bound used is 1/α, a little
//! stricter than Wald's, and so α is exact whenever one stops, also when one stops for other reasons.
//! Likewise a predicate with u ≥ `odds` is called not predictive with a chance of at most β, by the
//! lower bound β. Over k predicates α is divided by k (Bonferroni), so that the chance that any is
//! wrongly called predictive is at most α.
//!
//! It assumes that runs are independent and that rates do not change while one looks. Pairing uses
//! each failed run with one successful run, which is wasteful where failures are rare; it keeps the
//! test exact.

use serde::{Deserialize, Serialize};

use super::Outcome;

/// What is tested, and how often it may go wrong.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct OddsTest {
    odds: f64,
    alpha: f64,
    beta: f64,
}

/// Why there is no such test.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum TestError {
    /// The odds ratio to be found must be above 1.
    #[error("the odds ratio {0} is not a number above 1")]
    Odds(f64),
    /// The chances of an error must be between 0 and 1, and together below 1.
    #[error("the error rates {0} and {1} are not between 0 and 1, with a sum below 1")]
    Rates(f64, f64),
}

impl OddsTest {
    /// A test that takes odds of 1 for predictive with a chance of at most `alpha`, and odds of
    /// `odds` or more for not predictive with a chance of at most `beta`.
    pub fn new(odds: f64, alpha: f64, beta: f64) -> Result<Self, TestError> {
        if !(odds > 1.0 && odds.is_finite()) {
            return Err(TestError::Odds(odds));
        }
        if !(alpha > 0.0 && beta > 0.0 && alpha + beta < 1.0) {
            return Err(TestError::Rates(alpha, beta));
        }
        Ok(Self { odds, alpha, beta })
    }

    /// The same test as one of `many`, so that all together keep `alpha`.
    #[must_use]
    pub fn one_of(self, many: usize) -> Self {
        Self {
            alpha: self.alpha / many.max(1) as f64,
            ..self
        }
    }
}

/// What a test has found so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Decision {
    /// Nothing yet.
    Open,
    /// True more often in failed runs.
    Predictive,
    /// Not true so much more often in failed runs.
    NotPredictive,
}

/// The test of one predicate. Once decided it stays so.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DoubleDichotomy {
    test: OddsTest,
    /// Truths of runs of one outcome that wait for their partner: (of failed runs, false and true).
    failed: Waiting,
    passed: Waiting,
    /// Pairs that differ: true in the failed run, true in the successful one.
    with: u64,
    against: u64,
    decision: Decision,
}

/// Truths that wait, the oldest first.
type Waiting = std::collections::VecDeque<bool>;

impl DoubleDichotomy {
    /// No runs yet.
    #[must_use]
    pub fn new(test: OddsTest) -> Self {
        Self {
            test,
            failed: Waiting::new(),
            passed: Waiting::new(),
            with: 0,
            against: 0,
            decision: Decision::Open,
        }
    }

    /// A run reached the predicate's site.
    pub fn run(&mut self, outcome: Outcome, truth: bool) -> Decision {
        if self.decision != Decision::Open {
            return self.decision;
        }
        match outcome {
            Outcome::Failure => self.failed.push_back(truth),
            Outcome::Success => self.passed.push_back(truth),
        }
        if !self.failed.is_empty()
            && let Some(passed) = self.passed.pop_front()
            && let Some(failed) = self.failed.pop_front()
        {
            self.with += u64::from(failed && !passed);
            self.against += u64::from(passed && !failed);
            self.decide();
        }
        self.decision
    }

    fn decide(&mut self) {
        let OddsTest { odds, alpha, beta } = self.test;
        let (with, against) = (self.with as f64, self.against as f64);
        // Under odds u a differing pair is for the predicate with u / (1 + u), under 1 with a half.
        let ratio = with * (2.0 * odds / (1.0 + odds)).ln() + against * (2.0 / (1.0 + odds)).ln();
        if ratio >= -alpha.ln() {
            self.decision = Decision::Predictive;
        } else if ratio <= beta.ln() {
            self.decision = Decision::NotPredictive;
        }
    }

    /// What it has found.
    #[must_use]
    pub fn decision(&self) -> Decision {
        self.decision
    }

    /// How many pairs differed: for the predicate, and against it.
    #[must_use]
    pub fn evidence(&self) -> (u64, u64) {
        (self.with, self.against)
    }
}

/// When to stop waiting.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum SufficiencyRule {
    /// As soon as one predicate is predictive, or all are decided.
    FirstFound,
    /// When all are decided.
    AllDecided,
}

/// Whether the data of one plan suffice: the tests of its predicates together.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sufficiency {
    rule: SufficiencyRule,
    tests: Vec<DoubleDichotomy>,
    open: usize,
    found: usize,
    runs: u64,
    most_runs: u64,
}

impl Sufficiency {
    /// No runs yet, of a plan with so many predicates. After `most_runs` runs one goes on in any case:
    /// a site that is hardly ever reached decides nothing, and must not hold up the search. That makes
    /// no wrong discovery likelier.
    #[must_use]
    pub fn new(test: OddsTest, predicates: usize, rule: SufficiencyRule, most_runs: u64) -> Self {
        Self {
            rule,
            tests: vec![DoubleDichotomy::new(test.one_of(predicates)); predicates],
            open: predicates,
            found: 0,
            runs: 0,
            most_runs,
        }
    }

    /// Begins a run; its sites follow.
    pub fn run(&mut self) {
        self.runs = self.runs.saturating_add(1);
    }

    /// A run reached a site whose first predicate of this plan is `first`.
    pub fn site(&mut self, outcome: Outcome, first: usize, truths: &[bool]) {
        for (test, &truth) in self.tests.iter_mut().skip(first).zip(truths) {
            let before = test.decision();
            let after = test.run(outcome, truth);
            if before == Decision::Open && after != Decision::Open {
                self.open -= 1;
                self.found += usize::from(after == Decision::Predictive);
            }
        }
    }

    /// Whether to go on to the next plan.
    #[must_use]
    pub fn is_reached(&self) -> bool {
        let early = self.rule == SufficiencyRule::FirstFound && self.found > 0;
        early || self.open == 0 || self.runs >= self.most_runs
    }

    /// What has been found of each predicate.
    pub fn decisions(&self) -> impl Iterator<Item = Decision> {
        self.tests.iter().map(DoubleDichotomy::decision)
    }
}
