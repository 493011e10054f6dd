//! Complete data: what every case shows of every predicate, all sites armed at once. What a search is measured by.

use crate::asked::IsolateError;
use crate::session::Session;
use crate::state::Known;
use crate::tallied::Teller;
use tomo_profile::scores::Outcome;

/// What every case showed of every predicate.
#[derive(Clone, Debug)]
pub struct Complete {
    /// The cases that were armed, by number, with how each ended.
    pub cases: Vec<(usize, Outcome)>,
    /// By row of the module: in which of those cases it was true, a bit each.
    truths: Vec<Box<[u64]>>,
    /// By row: the rows of its site.
    sites: Vec<(usize, usize)>,
    /// Seconds that the runs took, over those of the same cases as they are.
    pub slower: f64,
}

/// Some cases, a bit each.
#[derive(Clone, Debug)]
pub(crate) struct Picked {
    failed: Box<[u64]>,
    passed: Box<[u64]>,
}

impl Session {
    /// Runs every case with all sites armed that may be watched.
    ///
    /// # Errors
    /// Where a case cannot be run, or nothing was recorded.
    pub fn complete(&self) -> Result<Complete, IsolateError> {
        let all: Vec<usize> = (0..self.options.cases.cases.len()).collect();
        let watched = self.observable();
        let (shown, (recorded, rows)) = self.show(&watched, &all)?;
        let teller = Teller::of(recorded, &rows);
        let armed: Vec<_> = shown.iter().filter(|run| run.marks.is_some()).collect();
        let words = armed.len().div_ceil(64);
        let mut complete = Complete {
            cases: armed.iter().map(|run| (run.case, run.outcome)).collect(),
            truths: vec![vec![0; words].into_boxed_slice(); self.sites.rows.len()],
            sites: vec![(0, 0); self.sites.rows.len()],
            slower: 1.0,
        };
        for &site in &watched {
            let site = &self.sites.sites[site];
            let rows = (site.first, site.first + site.told.len());
            complete.sites[rows.0..rows.1].fill(rows);
        }
        for (number, run) in armed.iter().enumerate() {
            let told = teller.told(run.marks.as_deref().unwrap_or_default());
            for (row, truths) in self.sites.rows.iter().zip(&mut complete.truths) {
                if teller.is_true(row, &told) {
                    truths[number / 64] |= 1 << (number % 64);
                }
            }
        }
        let plain = armed.iter().map(|run| self.state.plain[run.case].seconds);
        let with: f64 = armed.iter().map(|run| run.seconds).sum();
        complete.slower = with / plain.sum::<f64>();
        Ok(complete)
    }

    /// The sites that can be observed, and may be.
    pub(crate) fn observable(&self) -> Vec<usize> {
        let sites = 0..self.sites.sites.len();
        sites
            .filter(|&site| self.allowed[site] && self.map.id(site).is_some())
            .collect()
    }
}

impl Complete {
    /// These cases, by their number in the file; those that were not armed are left out.
    pub(crate) fn some(&self, is_in: impl Fn(usize) -> bool) -> Picked {
        let words = self.cases.len().div_ceil(64);
        let mut some = Picked {
            failed: vec![0; words].into_boxed_slice(),
            passed: vec![0; words].into_boxed_slice(),
        };
        for (number, &(case, outcome)) in self.cases.iter().enumerate() {
            let bits = match outcome {
                Outcome::Failure => &mut some.failed,
                Outcome::Success => &mut some.passed,
            };
            bits[number / 64] |= u64::from(is_in(case)) << (number % 64);
        }
        some
    }

    /// What these cases say of a row.
    pub(crate) fn known(&self, row: usize, some: &Picked) -> Known {
        let (first, end) = self.sites[row];
        let mut known = Known::default();
        for (word, (failed, passed)) in some.failed.iter().zip(&some.passed).enumerate() {
            let held = self.truths[row][word];
            let seen = self.truths[first..end]
                .iter()
                .fold(0, |seen, row| seen | row[word]);
            let count = |bits: u64| u64::from(bits.count_ones());
            known.failed_true += count(held & failed);
            known.passed_true += count(held & passed);
            known.failed_seen += count(seen & failed);
            known.passed_seen += count(seen & passed);
            known.failed += count(*failed);
            known.passed += count(*passed);
        }
        known
    }

    /// Whether a row was true in the case that was armed as number `number`.
    pub(crate) fn is_true(&self, row: usize, number: usize) -> bool {
        let word = self.truths.get(row).and_then(|row| row.get(number / 64));
        word.is_some_and(|word| word >> (number % 64) & 1 == 1)
    }

    /// The rows of a row's site, from the first to behind the last; none where the site was not watched.
    #[must_use]
    pub fn site(&self, row: usize) -> std::ops::Range<usize> {
        let (first, end) = self.sites.get(row).copied().unwrap_or_default();
        first..end
    }

    /// The same, of these cases alone.
    #[must_use]
    pub fn only(&self, is_in: impl Fn(usize) -> bool) -> Self {
        let kept: Vec<usize> = (0..self.cases.len())
            .filter(|number| is_in(self.cases[*number].0))
            .collect();
        let words = kept.len().div_ceil(64);
        let truths = (0..self.rows()).map(|row| {
            let mut bits = vec![0; words].into_boxed_slice();
            for (new, &old) in kept.iter().enumerate() {
                bits[new / 64] |= u64::from(self.is_true(row, old)) << (new % 64);
            }
            bits
        });
        Self {
            cases: kept.iter().map(|number| self.cases[*number]).collect(),
            truths: truths.collect(),
            sites: self.sites.clone(),
            slower: self.slower,
        }
    }

    /// How many rows the module has.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.truths.len()
    }

    /// Whether the site of a row was watched.
    pub(crate) fn has(&self, row: usize) -> bool {
        self.sites[row].1 > 0
    }
}
