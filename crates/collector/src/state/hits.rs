//! Which units an instance has hit, and when the collector first heard of each: the join takes the
//! earlier time.

use serde::{Deserialize, Serialize};
use zerocopy::little_endian::U32;

/// Units with the earliest time that is known for each; ascending by unit.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hits {
    rows: Vec<(u32, i64)>,
}

impl Hits {
    /// Units and times, ascending by unit.
    #[must_use]
    pub fn rows(&self) -> &[(u32, i64)] {
        &self.rows
    }

    /// The units, ascending.
    pub fn units(&self) -> impl Iterator<Item = u32> {
        self.rows.iter().map(|(unit, _)| *unit)
    }

    /// Whether units ascend, as they do unless somebody else wrote them.
    pub(super) fn are_sound(&self) -> bool {
        self.rows.is_sorted_by(|one, other| one.0 < other.0)
    }

    /// Whether all of these ascending units are there. O(units).
    #[must_use]
    pub fn have(&self, units: &[U32]) -> bool {
        let mut rows = self.rows.iter();
        units
            .iter()
            .all(|unit| rows.any(|(known, _)| *known == unit.get()))
    }

    /// Takes ascending units that were heard of at one time; gives those that are new.
    pub fn add(&mut self, units: &[U32], at: i64) -> Vec<u32> {
        self.merge(units.len(), units.iter().map(|unit| (unit.get(), at)))
    }

    /// Takes what another knows; gives the units that are new.
    pub fn join(&mut self, other: &Self) -> Vec<u32> {
        self.merge(other.rows.len(), other.rows.iter().copied())
    }

    /// O(rows + others). What is known already is changed in place; only units that are new move rows.
    fn merge(&mut self, count: usize, others: impl Iterator<Item = (u32, i64)>) -> Vec<u32> {
        let mut new = Vec::new();
        let mut at = 0;
        for (unit, time) in others {
            at += self.rows[at..].partition_point_near(|(known, _)| *known < unit);
            match self.rows.get_mut(at) {
                Some((known, first)) if *known == unit => *first = time.min(*first),
                _ => new.push((unit, time)),
            }
        }
        debug_assert!(new.len() <= count);
        let units = new.iter().map(|(unit, _)| *unit).collect();
        if !new.is_empty() {
            // Two ascending runs, which the sort merges.
            self.rows.append(&mut new);
            self.rows.sort_by_key(|(unit, _)| *unit);
        }
        units
    }
}

trait PartitionNear<T> {
    /// As `partition_point`, for an answer that is likely near the start. O(log answer).
    fn partition_point_near(&self, is_before: impl Fn(&T) -> bool) -> usize;
}

impl<T> PartitionNear<T> for [T] {
    fn partition_point_near(&self, is_before: impl Fn(&T) -> bool) -> usize {
        let mut reach = 1;
        while self.get(reach - 1).is_some_and(&is_before) {
            reach *= 2;
        }
        let (from, to) = (reach / 2, reach.min(self.len()));
        from + self[from..to].partition_point(is_before)
    }
}

#[cfg(test)]
mod tests {
    use super::Hits;
    use proptest::prelude::*;
    use std::collections::{BTreeMap, BTreeSet};
    use zerocopy::little_endian::U32;

    proptest! {
        #[test]
        fn hits_are_a_map_to_the_earliest_time(
            adds in prop::collection::vec((prop::collection::btree_set(0u32..60, 0..20), -5i64..5), 0..12),
        ) {
            let (mut hits, mut expected) = (Hits::default(), BTreeMap::new());
            for (units, at) in &adds {
                let sent: Vec<U32> = units.iter().map(|&unit| unit.into()).collect();
                let known: BTreeSet<u32> = expected.keys().copied().collect();
                let had = units.iter().all(|unit| known.contains(unit));
                prop_assert_eq!(hits.have(&sent), had);
                let new = hits.add(&sent, *at);
                prop_assert!(new.iter().copied().eq(units.difference(&known).copied()));
                for &unit in units {
                    let first = expected.entry(unit).or_insert(*at);
                    *first = (*first).min(*at);
                }
            }
            prop_assert!(hits.rows().iter().copied().eq(expected));
        }
    }
}
