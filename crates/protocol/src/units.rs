//! Sets of units as they are sent: ascending ranges, each by its first and last unit.
//!
//! A unit of a campaign is a probe of one of its modules' master plans: the probes of the modules
//! before, then the probe's number in its own plan.

use serde::{Deserialize, Serialize};

/// A set of units.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Vec<(u32, u32)>", into = "Vec<(u32, u32)>")]
pub struct Units {
    /// Ascending, with at least one unit between any two.
    ranges: Vec<(u32, u32)>,
}

/// Ranges that are no set of units.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the ranges of units do not ascend")]
pub struct UnitsError;

impl Units {
    /// The set of the units that an iterator gives in ascending order; what comes again or out of
    /// order is added where it belongs, at a price.
    #[must_use]
    pub fn of(units: impl IntoIterator<Item = u32>) -> Self {
        let mut units: Vec<u32> = units.into_iter().collect();
        units.sort_unstable();
        let mut set = Self::default();
        for unit in units {
            match set.ranges.last_mut() {
                Some((_, last)) if unit <= last.saturating_add(1) => *last = unit,
                _ => set.ranges.push((unit, unit)),
            }
        }
        set
    }

    /// All units below `count`.
    #[must_use]
    pub fn below(count: u32) -> Self {
        let ranges = count.checked_sub(1).map(|last| (0, last));
        Self {
            ranges: ranges.into_iter().collect(),
        }
    }

    /// The ranges, first and last unit of each.
    #[must_use]
    pub fn ranges(&self) -> &[(u32, u32)] {
        &self.ranges
    }

    /// How many units there are.
    #[must_use]
    pub fn len(&self) -> u64 {
        let lengths = self.ranges.iter();
        lengths
            .map(|(first, last)| u64::from(last - first) + 1)
            .sum()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// Whether all units are below `count`. Ask this of what came from outside before [`Self::iter`]:
    /// a few bytes can state four billion units.
    #[must_use]
    pub fn are_below(&self, count: u32) -> bool {
        self.ranges.last().is_none_or(|(_, last)| *last < count)
    }

    /// Whether `unit` is one of them. O(log ranges).
    #[must_use]
    pub fn has(&self, unit: u32) -> bool {
        let behind = self.ranges.partition_point(|(first, _)| *first <= unit);
        let before = behind.checked_sub(1).and_then(|at| self.ranges.get(at));
        before.is_some_and(|(_, last)| unit <= *last)
    }

    /// Whether all of these ascending units are among them. O(units · log ranges).
    #[must_use]
    pub fn have(&self, units: impl IntoIterator<Item = u32>) -> bool {
        let mut rest = self.ranges.as_slice();
        units.into_iter().all(|unit| {
            // Most units are in the range of the one before, or in the next.
            while let [(_, last), behind @ ..] = rest
                && *last < unit
            {
                let behind_it = behind.partition_point(|(_, last)| *last < unit);
                rest = &behind[behind_it..];
            }
            rest.first().is_some_and(|(first, _)| *first <= unit)
        })
    }

    /// The units, ascending.
    pub fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        self.ranges.iter().flat_map(|&(first, last)| first..=last)
    }
}

impl TryFrom<Vec<(u32, u32)>> for Units {
    type Error = UnitsError;

    fn try_from(ranges: Vec<(u32, u32)>) -> Result<Self, UnitsError> {
        let ordered = ranges.iter().all(|(first, last)| first <= last);
        let apart =
            |pair: &[(u32, u32)]| pair[0].1.checked_add(1).is_some_and(|end| end < pair[1].0);
        if ordered && ranges.windows(2).all(apart) {
            Ok(Self { ranges })
        } else {
            Err(UnitsError)
        }
    }
}

impl From<Units> for Vec<(u32, u32)> {
    fn from(units: Units) -> Self {
        units.ranges
    }
}

#[cfg(test)]
mod tests {
    use super::Units;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    #[test]
    fn units_are_written_as_ranges() {
        let units = Units::of([1, 2, 3, 7, u32::MAX]);
        let text = serde_json::to_string(&units).unwrap();
        assert_eq!(text, "[[1,3],[7,7],[4294967295,4294967295]]");
        assert!(!units.are_below(u32::MAX) && Units::default().are_below(0));
        assert_eq!(Units::below(3), Units::of(0..3));
        assert_eq!(Units::below(0), Units::default());
    }

    #[test]
    fn what_is_no_set_is_refused() {
        for text in [
            "[[2,1]]",
            "[[1,2],[3,4]]",
            "[[5,6],[1,2]]",
            "[[1]]",
            "[[-1,2]]",
        ] {
            assert!(serde_json::from_str::<Units>(text).is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn a_set_is_what_it_was_made_of(
            units in prop::collection::vec(prop_oneof![0u32..80, u32::MAX - 9..=u32::MAX], 0..60),
        ) {
            let set = Units::of(units.iter().copied());
            let expected: BTreeSet<u32> = units.iter().copied().collect();
            prop_assert!(set.iter().eq(expected.iter().copied()));
            prop_assert_eq!(set.len(), expected.len() as u64);
            for unit in (0..90).chain(u32::MAX - 12..=u32::MAX) {
                prop_assert_eq!(set.has(unit), expected.contains(&unit));
                let other = BTreeSet::from([4, 70, unit]);
                prop_assert_eq!(set.have(other.iter().copied()), other.is_subset(&expected));
            }
            prop_assert!(set.have(set.iter()));
            let text = serde_json::to_string(&set).unwrap();
            prop_assert_eq!(serde_json::from_str::<Units>(&text).unwrap(), set);
        }
    }
}
