//! What no distribution can exceed: an upper bound on the weight of the sets that n variants can
//! observe.
//!
//! A unit in d sets is charged to each of them with a d-th of its cost. The sets observed by one
//! variant are then charged no more than its probes cost: each probe pays at most d shares of a d-th.
//! So what any n variants observe is a choice of sets (each as often as a repetition is worth
//! something) whose charges sum up to at most n times the bound, and the best fractional choice, by
//! weight per charge (Dantzig, *Discrete-Variable Extremum Problems*, Operations Research 5(2),
//! 1957), weighs at least as much. Charges are rounded down and the weight up, so the bound stays one.
//! O(sets · log sets), with at most 64 repetitions of each.

use super::bound::{count_variants, placeable};
use super::greedy::{Repeats, check_weights};
use super::sets::Holders;
use super::{Bound, DistributionError, SetId, UnitSets};
use std::cmp::Reverse;

/// No distribution over so many variants observes sets of more weight together.
///
/// # Errors
/// [`DistributionError::NoVariants`] and the like, [`DistributionError::Mismatch`],
/// [`DistributionError::Overflow`].
pub fn upper_bound(
    sets: &UnitSets,
    weights: &[u64],
    bound: &Bound,
    variants: usize,
    repeats: Repeats,
) -> Result<u128, DistributionError> {
    let variants = count_variants(variants)?;
    check_weights(sets, weights)?;
    let placeable = placeable(sets, bound)?;
    let charges = Charges::new(sets, bound);
    let mut items = Vec::new();
    for set in placeable {
        let charge = charges.of(set);
        let worth = repeats.worth(weights[set.index()]).take(variants);
        items.extend(worth.map(|weight| Item { weight, charge }));
    }
    // By weight per charge, without division: what costs nothing comes first.
    items.sort_by_key(|&item| Reverse(item));
    let limit = u128::from(bound.limit()) << charges.scale;
    Ok(fractional(&items, limit.saturating_mul(variants as u128)))
}

fn fractional(items: &[Item], mut left: u128) -> u128 {
    let mut weight = 0;
    for item in items {
        let charge = u128::from(item.charge);
        if charge > left {
            return weight + (u128::from(item.weight) * left).div_ceil(charge);
        }
        left -= charge;
        weight += u128::from(item.weight);
    }
    weight
}

/// Something to choose; the greater, the more weight per charge.
#[derive(Clone, Copy, Debug)]
pub(super) struct Item {
    pub(super) weight: u64,
    pub(super) charge: u64,
}

impl Ord for Item {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        let product = |weight: u64, charge: u64| u128::from(weight) * u128::from(charge);
        let (ours, theirs) = (
            product(self.weight, other.charge),
            product(other.weight, self.charge),
        );
        // Two that cost nothing are told apart by their weight.
        ours.cmp(&theirs)
            .then(other.charge.cmp(&self.charge))
            .then(self.weight.cmp(&other.weight))
    }
}

impl PartialOrd for Item {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Item {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Item {}

/// The shares of units' costs that sets are charged with, times a power of two.
struct Charges<'a> {
    sets: &'a UnitSets,
    bound: &'a Bound,
    holders: Holders,
    scale: u32,
}

impl<'a> Charges<'a> {
    fn new(sets: &'a UnitSets, bound: &'a Bound) -> Self {
        let units = (0..sets.unit_count() as u32).map(super::UnitId);
        let total = units.fold(0, |sum: u64, unit| sum.saturating_add(bound.cost(unit)));
        Self {
            sets,
            bound,
            holders: sets.holders(),
            scale: total.leading_zeros().min(20),
        }
    }

    /// Below 2^64, since all costs together are, with this scale.
    fn of(&self, set: SetId) -> u64 {
        let units = self.sets.units(set).iter();
        let shares =
            units.map(|&unit| (self.bound.cost(unit) << self.scale) / self.holders.degree(unit));
        shares.sum()
    }
}

#[cfg(test)]
mod tests {
    use super::{Item, Repeats, upper_bound};
    use crate::distribution::{Bound, UnitId, UnitSets};

    fn pairs() -> UnitSets {
        let pairs = [[0, 1], [2, 3], [4, 5]].map(|pair| pair.map(UnitId));
        UnitSets::new(6, pairs).unwrap()
    }

    #[test]
    fn without_sharing_it_is_the_fractional_knapsack() {
        let sets = pairs();
        let bound = |limit| {
            upper_bound(
                &sets,
                &[10, 20, 30],
                &Bound::probes(limit),
                1,
                Repeats::Worthless,
            )
            .unwrap()
        };
        assert_eq!([2, 3, 4, 5, 6, 7].map(bound), [30, 40, 50, 55, 60, 60]);
        assert_eq!(bound(1), 0); // nothing fits
    }

    #[test]
    fn repetitions_count_once_per_variant() {
        let upper = |variants, repeats| {
            upper_bound(&pairs(), &[8, 0, 0], &Bound::probes(2), variants, repeats).unwrap()
        };
        assert_eq!(upper(3, Repeats::Worthless), 8);
        assert_eq!(upper(3, Repeats::Halved), 8 + 4 + 2);
        assert_eq!(upper(9, Repeats::Halved), 8 + 4 + 2 + 1);
    }

    #[test]
    fn the_largest_costs_and_weights_do_not_overflow() {
        let sets = pairs();
        let costs = vec![u64::MAX - 5, 1, 1, 1, 1, 1];
        let bound = Bound::expected(u64::MAX, costs).unwrap();
        let weights = [u64::MAX - 2, 1, 1];
        let upper = upper_bound(&sets, &weights, &bound, 1 << 24, Repeats::Worthless);
        assert_eq!(upper.unwrap(), u128::from(u64::MAX));
    }

    #[test]
    fn items_are_ordered_by_weight_per_charge() {
        let item = |weight, charge| Item { weight, charge };
        assert!(item(3, 1) > item(5, 2));
        assert!(item(1, 0) > item(u64::MAX, 1));
        assert!(item(2, 4) < item(1, 2));
        assert!(item(2, 0) > item(1, 0));
    }
}
