//! The four numbers: F(p), S(p), F(p observed), S(p observed) of ABI §4.3, from reports.

/// How a run ended, as far as scores care.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// It succeeded.
    Success,
    /// It failed.
    Failure,
}

/// In how many runs a predicate was observed, and true.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Tally {
    /// F(p): failed runs in which it was true at least once.
    pub failed_true: u64,
    /// S(p): successful runs in which it was true at least once.
    pub passed_true: u64,
    /// F(p observed): failed runs in which its site was reached.
    pub failed_seen: u64,
    /// S(p observed): successful runs in which its site was reached.
    pub passed_seen: u64,
}

impl Tally {
    /// Both together: reports of disjoint sets of runs.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            failed_true: self.failed_true.saturating_add(other.failed_true),
            passed_true: self.passed_true.saturating_add(other.passed_true),
            failed_seen: self.failed_seen.saturating_add(other.failed_seen),
            passed_seen: self.passed_seen.saturating_add(other.passed_seen),
        }
    }
}

/// The tallies of many predicates, site by site.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tallies {
    /// By predicate.
    pub predicates: Vec<Tally>,
    /// NumF: all failed runs.
    pub failed: u64,
    /// All successful runs.
    pub passed: u64,
}

impl Tallies {
    /// No runs, `predicates` predicates.
    #[must_use]
    pub fn new(predicates: usize) -> Self {
        Self {
            predicates: vec![Tally::default(); predicates],
            ..Self::default()
        }
    }

    /// Begins a run: every run is reported so, whether it reached a site or not.
    pub fn run(&mut self, outcome: Outcome) {
        match outcome {
            Outcome::Failure => self.failed += 1,
            Outcome::Success => self.passed += 1,
        }
    }

    /// One site of one run: `first` is its first predicate, `truths` says of each whether it was true
    /// at least once. A site none of whose predicates was true was not reached, since they partition
    /// what can be. Predicates that are not known are left out.
    pub fn site(&mut self, outcome: Outcome, first: usize, truths: &[bool]) {
        if !truths.contains(&true) {
            return;
        }
        for (tally, &truth) in self.predicates.iter_mut().skip(first).zip(truths) {
            let (seen, held) = match outcome {
                Outcome::Failure => (&mut tally.failed_seen, &mut tally.failed_true),
                Outcome::Success => (&mut tally.passed_seen, &mut tally.passed_true),
            };
            *seen += 1;
            *held += u64::from(truth);
        }
    }
}
