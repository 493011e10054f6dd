//! Units, and the sets of them that must be observed together: events, or clusters that
//! over-approximate events (PDT §4.1: U, E and C).
//!
//! Sets are kept one behind the other in one list, each ascending and without repetition: five
//! words a set at most beside four bytes a unit, however many there are.

use super::DistributionError;

macro_rules! typed_index {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub u32);

        impl $name {
            /// The position in a table with one row for each.
            #[must_use]
            pub fn index(self) -> usize {
                self.0 as usize
            }
        }
    };
}

typed_index!(
    /// A unit that a probe can observe, counted from zero: u of PDT.
    UnitId
);
typed_index!(
    /// A set of units, an event or a cluster, counted from zero.
    SetId
);
typed_index!(
    /// A variant, counted from zero.
    VariantId
);

/// Sets of units that must be observed together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnitSets {
    unit_count: usize,
    /// Where each set begins in `members`, and the end of the last.
    starts: Vec<u32>,
    members: Vec<UnitId>,
}

impl UnitSets {
    /// The sets over units `0..unit_count`, numbered in this order. Units may stand in any order
    /// and more than once.
    ///
    /// # Errors
    /// [`DistributionError::EmptySet`], [`NoSuchUnit`](DistributionError::NoSuchUnit),
    /// [`TooLarge`](DistributionError::TooLarge).
    pub fn new<S: AsRef<[UnitId]>>(
        unit_count: usize,
        sets: impl IntoIterator<Item = S>,
    ) -> Result<Self, DistributionError> {
        narrow(unit_count)?;
        let mut all = Self {
            unit_count,
            starts: vec![0],
            members: Vec::new(),
        };
        for set in sets {
            all.push(set.as_ref())?;
        }
        Ok(all)
    }

    fn push(&mut self, units: &[UnitId]) -> Result<(), DistributionError> {
        let set = SetId(narrow(self.len())?);
        let mut units = units.to_vec();
        units.sort_unstable();
        units.dedup();
        let last = *units.last().ok_or(DistributionError::EmptySet(set))?;
        if last.index() >= self.unit_count {
            return Err(DistributionError::NoSuchUnit {
                set,
                unit: last,
                units: self.unit_count,
            });
        }
        self.members.append(&mut units);
        self.starts.push(narrow(self.members.len())?);
        Ok(())
    }

    /// How many units there are, in sets or not.
    #[must_use]
    pub fn unit_count(&self) -> usize {
        self.unit_count
    }

    /// How many sets there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.starts.len() - 1
    }

    /// Whether there is no set.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// All sets.
    pub fn ids(&self) -> impl DoubleEndedIterator<Item = SetId> + ExactSizeIterator + use<> {
        (0..self.len() as u32).map(SetId)
    }

    /// The units of a set, ascending. Panics if there is no such set.
    #[must_use]
    pub fn units(&self, set: SetId) -> &[UnitId] {
        let (from, to) = (self.starts[set.index()], self.starts[set.index() + 1]);
        &self.members[from as usize..to as usize]
    }

    /// How many units a set has: PDT's length(e).
    #[must_use]
    pub fn length(&self, set: SetId) -> u64 {
        self.units(set).len() as u64
    }

    /// Per unit, the sets that hold it.
    pub(super) fn holders(&self) -> Holders {
        let mut starts = vec![0_u32; self.unit_count + 1];
        for unit in &self.members {
            starts[unit.index() + 1] += 1;
        }
        for at in 0..self.unit_count {
            starts[at + 1] += starts[at];
        }
        let mut next = starts.clone();
        let mut sets = vec![SetId(0); self.members.len()];
        for set in self.ids() {
            for unit in self.units(set) {
                let at = &mut next[unit.index()];
                sets[*at as usize] = set;
                *at += 1;
            }
        }
        Holders { starts, sets }
    }
}

fn narrow(count: usize) -> Result<u32, DistributionError> {
    u32::try_from(count).map_err(|_| DistributionError::TooLarge)
}

/// Per unit, the sets that hold it, ascending.
#[derive(Clone, Debug)]
pub(super) struct Holders {
    starts: Vec<u32>,
    sets: Vec<SetId>,
}

impl Holders {
    pub(super) fn of(&self, unit: UnitId) -> &[SetId] {
        let (from, to) = (self.starts[unit.index()], self.starts[unit.index() + 1]);
        &self.sets[from as usize..to as usize]
    }

    /// In how many sets a unit is.
    pub(super) fn degree(&self, unit: UnitId) -> u64 {
        self.of(unit).len() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::{DistributionError, SetId, UnitId, UnitSets};

    fn units<const N: usize>(units: [u32; N]) -> Vec<UnitId> {
        units.map(UnitId).to_vec()
    }

    #[test]
    fn sets_are_ascending_and_without_repetition() {
        let sets = UnitSets::new(9, [units([5, 2, 5]), units([8])]).unwrap();
        assert_eq!(sets.units(SetId(0)), units([2, 5]));
        assert_eq!(sets.length(SetId(1)), 1);
        assert_eq!(sets.holders().of(UnitId(5)), [SetId(0)]);
        assert_eq!(sets.holders().degree(UnitId(3)), 0);
    }

    #[test]
    fn empty_sets_and_foreign_units_are_refused() {
        let empty = UnitSets::new(3, [units([1]), Vec::new()]);
        assert_eq!(empty, Err(DistributionError::EmptySet(SetId(1))));
        let foreign = UnitSets::new(3, [units([3, 0])]).unwrap_err();
        let said = "set 0 names unit 3, but there are 3 units";
        assert_eq!(foreign.to_string(), said);
    }
}
