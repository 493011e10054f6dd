//! What marks mean, and what many runs say of a plan's predicates in sum.
//!
//! The file of a plan's predicates has all rows of its module. Those of which nobody asked are left out here first, so
//! that a run costs what its plan has, not what its module has.

use std::collections::HashMap;

use tomo_profile::scores::Outcome;
use tomo_wire::predicates::{Recorded, Row, Told, values};

use crate::state::Known;

/// Tells what marks mean.
#[derive(Clone, Debug)]
pub struct Teller {
    recorded: Recorded,
    /// The rows that are told, site by site.
    rows: Vec<Row>,
    /// Where each site's rows are.
    sites: Vec<(usize, usize)>,
    here: HashMap<(u8, u64, u8), usize>,
}

impl Teller {
    /// Of these rows, all those of a module.
    #[must_use]
    pub fn of(recorded: Recorded, all: &[Row]) -> Self {
        let told = |row: &Row| matches!(row.told(), Some(Told::Itself | Told::BySite));
        let mut teller = Self {
            recorded,
            rows: Vec::new(),
            sites: Vec::new(),
            here: HashMap::new(),
        };
        let mut moved = HashMap::new();
        let mut old = 0;
        for site in all.chunk_by(|_, next| next.case > 0) {
            if site.iter().any(told) {
                let first = teller.rows.len();
                moved.insert(old, first);
                teller.rows.extend_from_slice(site);
                teller.sites.push((first, teller.rows.len()));
            }
            old += site.len();
        }
        for row in &mut teller.rows {
            if row.told() == Some(Told::BySite) {
                match moved.get(&(row.by.get() as usize)) {
                    Some(&first) => row.by = (first as u32).into(),
                    None => row.told = Told::Unasked as u8,
                }
            }
        }
        let names = teller.rows.iter().map(name).enumerate();
        teller.here = names.map(|(at, name)| (name, at)).collect();
        teller
    }

    /// What a run with these marks says of each row that is told.
    #[must_use]
    pub fn told(&self, marks: &[u8]) -> Vec<Option<u64>> {
        let mut told = vec![None; self.rows.len()];
        self.tell(marks, &mut told);
        told
    }

    fn tell(&self, marks: &[u8], told: &mut [Option<u64>]) {
        let mark = |probe: u32| {
            let mark = marks.get(probe as usize);
            mark.map_or(0, |mark| u64::from(*mark != 0))
        };
        values(&self.rows, self.recorded, mark, told);
    }

    /// Whether `row`, one of the module's, is said to be true.
    pub(crate) fn is_true(&self, row: &Row, told: &[Option<u64>]) -> bool {
        let at = self.here.get(&name(row));
        at.and_then(|&at| told[at]).is_some_and(|value| value > 0)
    }
}

fn name(row: &Row) -> (u8, u64, u8) {
    (row.kind, row.site.get(), row.case)
}

/// The sum of what runs say.
#[derive(Clone, Debug)]
pub struct Tally<'t> {
    teller: &'t Teller,
    /// By row that is told.
    known: Vec<Known>,
    told: Vec<Option<u64>>,
    failed: u64,
    passed: u64,
}

impl<'t> Tally<'t> {
    /// Of no run.
    #[must_use]
    pub fn new(teller: &'t Teller) -> Self {
        Self {
            known: vec![Known::default(); teller.rows.len()],
            told: vec![None; teller.rows.len()],
            failed: 0,
            passed: 0,
            teller,
        }
    }

    /// Adds a run.
    pub fn add(&mut self, marks: &[u8], outcome: Outcome) {
        self.teller.tell(marks, &mut self.told);
        match outcome {
            Outcome::Failure => self.failed += 1,
            Outcome::Success => self.passed += 1,
        }
        let held = |told: &Option<u64>| told.is_some_and(|value| value > 0);
        for &(first, end) in &self.teller.sites {
            let told = &self.told[first..end];
            if !told.iter().any(held) {
                continue;
            }
            for (known, told) in self.known[first..end].iter_mut().zip(told) {
                let (seen, truth) = match outcome {
                    Outcome::Failure => (&mut known.failed_seen, &mut known.failed_true),
                    Outcome::Success => (&mut known.passed_seen, &mut known.passed_true),
                };
                *seen += 1;
                *truth += u64::from(held(told));
            }
        }
    }

    /// Adds what others say who know the same teller.
    pub fn join(&mut self, other: &Self) {
        self.failed += other.failed;
        self.passed += other.passed;
        for (one, other) in self.known.iter_mut().zip(&other.known) {
            one.failed_true += other.failed_true;
            one.passed_true += other.passed_true;
            one.failed_seen += other.failed_seen;
            one.passed_seen += other.passed_seen;
        }
    }

    /// What is known of `row`, one of the module's.
    #[must_use]
    pub fn known(&self, row: &Row) -> Known {
        let at = self.teller.here.get(&name(row));
        let known = at.map_or_else(Known::default, |&at| self.known[at]);
        Known {
            failed: self.failed,
            passed: self.passed,
            ..known
        }
    }
}
