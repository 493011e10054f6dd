//! What a campaign's state means, from the definition: a list of all that was ever accepted, and
//! questions answered by going over it.

use std::collections::{BTreeMap, BTreeSet};

use tomo_wire::report::Outcome;

use crate::fleet::Word;

/// All words with the times at which they were accepted.
#[derive(Clone, Debug, Default)]
pub(crate) struct Naive {
    pub(crate) words: Vec<(Word, i64)>,
}

impl Naive {
    /// When the first instance was first known to have hit each unit, and by how many it was.
    pub(crate) fn seen(&self) -> BTreeMap<u32, (i64, u32)> {
        let mut who: BTreeMap<u32, (i64, BTreeSet<u8>)> = BTreeMap::new();
        for (word, at) in &self.words {
            for &unit in &word.hits {
                let (first, instances) = who.entry(unit).or_insert((*at, BTreeSet::new()));
                *first = (*first).min(*at);
                instances.insert(word.instance);
            }
        }
        let counted = |(unit, (first, instances)): (u32, (i64, BTreeSet<u8>))| {
            (unit, (first, instances.len() as u32))
        };
        who.into_iter().map(counted).collect()
    }

    /// The last word on each run: the final one, or else that with the highest sequence.
    fn runs(&self) -> BTreeMap<(u8, u64), &Word> {
        let mut runs: BTreeMap<(u8, u64), &Word> = BTreeMap::new();
        for (word, _) in &self.words {
            let last = runs.entry((word.instance, word.run)).or_insert(word);
            let key = |word: &Word| (word.outcome != Outcome::Running, word.sequence);
            if key(word) > key(last) {
                *last = word;
            }
        }
        runs
    }

    /// Runs of an instance: how many, how many of them have no end, and how long they were.
    pub(crate) fn sums(&self, instance: u8) -> (u64, u64, u64) {
        let (mut count, mut running, mut duration) = (0, 0, 0);
        for ((of, _), word) in self.runs() {
            if of == instance {
                count += 1;
                running += u64::from(word.outcome == Outcome::Running);
                duration += word.duration;
            }
        }
        (count, running, duration)
    }

    pub(crate) fn instances(&self) -> BTreeSet<u8> {
        self.words.iter().map(|(word, _)| word.instance).collect()
    }
}
