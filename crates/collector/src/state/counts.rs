//! How often an instance's runs have hit units, or called functions by chains, added up exactly.
//!
//! Sums of runs can be joined only where both are of the same runs. So runs are folded as in `runs.rs`: in blocks of 64
//! consecutive numbers, once all of a block have ended, when everybody's sums are the same; then 64 such blocks in a larger
//! one, and so on. Of runs that have all ended there are 63 words of each size at most.
//!
//! Sums that reach the largest number stay there, which is as associative as adding: then it is known that they are more than 64
//! bits hold, and no number is told.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use tomo_wire::report::ReportView;

/// Bits of a number that tell apart what is folded together.
const BITS: u32 = 6;
/// Words of one block.
const BLOCK: u64 = 1 << BITS;
/// The largest size.
const LARGEST: u8 = 10;

/// The last word on a run, or what those of a block add up to. The order is that of the join.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
struct Word<K> {
    is_final: bool,
    sequence: u32,
    /// How often each, ascending.
    rows: Vec<(K, u64)>,
}

/// How often units were hit, or chains called, in the runs of an instance.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts<K> {
    /// By size and number: 0 for runs, which are numbered from 0 here, 1 for blocks of them, and so on.
    words: BTreeMap<(u8, u64), Word<K>>,
    /// Rows of all words.
    rows: u64,
}

/// Of nothing, neutral in the join.
impl<K> Default for Counts<K> {
    fn default() -> Self {
        Self {
            words: BTreeMap::new(),
            rows: 0,
        }
    }
}

impl<K: Copy + Ord> Word<K> {
    fn of(report: &ReportView<'_>, rows: Vec<(K, u64)>) -> Self {
        Self {
            is_final: report.outcome.is_final(),
            sequence: report.header.sequence.get(),
            rows,
        }
    }

    fn sum<'w>(words: impl Iterator<Item = &'w Self>) -> Self
    where
        K: 'w,
    {
        let mut sums: BTreeMap<K, u64> = BTreeMap::new();
        words.for_each(|word| word.add_to(&mut sums));
        Self {
            is_final: true,
            sequence: 0,
            rows: sums.into_iter().collect(),
        }
    }

    fn add_to(&self, sums: &mut BTreeMap<K, u64>) {
        for (unit, count) in &self.rows {
            let sum = sums.entry(*unit).or_default();
            *sum = sum.saturating_add(*count);
        }
    }
}

impl<K: Copy + Ord> Counts<K> {
    /// Takes the word of a report, which is these rows, ascending.
    pub(super) fn report(&mut self, report: &ReportView<'_>, rows: Vec<(K, u64)>) {
        self.put((0, number(report)), Word::of(report, rows));
    }

    /// Whether a report's word on its run adds nothing.
    pub(super) fn knows(&self, report: &ReportView<'_>, rows: Vec<(K, u64)>) -> bool {
        let place = (0, number(report));
        let known = self.words.get(&place);
        known.is_some_and(|known| *known >= Word::of(report, rows)) || self.is_folded(place)
    }

    /// Takes what another knows.
    pub(super) fn join(&mut self, other: Self) {
        for (place, word) in other.words {
            self.put(place, word);
        }
    }

    /// Whether it is as joins leave it, as it is unless somebody else wrote it.
    pub(super) fn are_sound(&self) -> bool {
        let fits = |(size, number): &(u8, u64)| {
            *size <= LARGEST && number.leading_zeros() >= BITS * u32::from(*size)
        };
        let ascend = |word: &Word<K>| word.rows.is_sorted_by(|one, other| one.0 < other.0);
        if !self.words.keys().all(fits) || !self.words.values().all(ascend) {
            return false;
        }
        let mut again = Self::default();
        again.join(self.clone());
        again == *self
    }

    /// How many rows are kept.
    #[must_use]
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Adds how often each was hit in all runs.
    pub fn add_to(&self, sums: &mut BTreeMap<K, u64>) {
        self.words.values().for_each(|word| word.add_to(sums));
    }

    /// Whether it is in a larger word.
    fn is_folded(&self, (size, number): (u8, u64)) -> bool {
        let mut larger = size + 1..=LARGEST;
        larger.any(|of| {
            let within = number >> (BITS * u32::from(of - size));
            self.words.contains_key(&(of, within))
        })
    }

    fn put(&mut self, place: (u8, u64), word: Word<K>) {
        if self.is_folded(place) {
            return;
        }
        let (size, number) = place;
        for of in 0..size {
            let shift = BITS * u32::from(size - of);
            self.remove(
                (of, number << shift),
                (of, (number << shift) | ((1 << shift) - 1)),
            );
        }
        match self.words.get_mut(&place) {
            Some(known) if *known >= word => return,
            Some(known) => {
                self.rows += word.rows.len() as u64;
                self.rows -= std::mem::replace(known, word).rows.len() as u64;
            }
            None => {
                self.rows += word.rows.len() as u64;
                self.words.insert(place, word);
            }
        }
        self.fold((size, number / BLOCK));
    }

    /// Folds a block of words of this size, if there is nothing more to learn of it.
    fn fold(&mut self, (size, block): (u8, u64)) {
        let (first, last) = ((size, block * BLOCK), (size, block * BLOCK + (BLOCK - 1)));
        let words = self.words.range(first..=last).map(|(_, word)| word);
        let ended = words.clone().filter(|word| word.is_final).count() as u64;
        if ended == BLOCK && size < LARGEST {
            let sum = Word::sum(words);
            self.remove(first, last);
            self.put((size + 1, block), sum);
        }
    }

    fn remove(&mut self, first: (u8, u64), last: (u8, u64)) {
        let places: Vec<_> = self
            .words
            .range(first..=last)
            .map(|(place, _)| *place)
            .collect();
        for place in places {
            let gone = self.words.remove(&place);
            self.rows -= gone.map_or(0, |word| word.rows.len() as u64);
        }
    }
}

/// How often the units of a report were hit.
pub(super) fn of_units(report: &ReportView<'_>) -> Vec<(u32, u64)> {
    let pairs = report.hits.iter().zip(report.counts);
    pairs
        .map(|(unit, count)| (unit.get(), count.get()))
        .collect()
}

/// Runs are numbered from 1.
fn number(report: &ReportView<'_>) -> u64 {
    report.header.run.get().saturating_sub(1)
}
