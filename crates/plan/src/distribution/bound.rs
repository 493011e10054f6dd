//! What one variant may cost: h_bound of PDT §4.1, a number of probes, or beyond the paper the
//! expected cost of its probes, since probes do not cost the same.
//!
//! Expected costs are integers in a unit of the caller's choice (nanoseconds a run, millionths of the
//! run time), so that sums are exact and the same everywhere. Probes' costs are taken to add up;
//! one that several sets of a variant share is paid once.

use super::{DistributionError, SetId, UnitId, UnitSets};

/// What one variant may cost at most.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bound {
    limit: u64,
    /// Per unit; `None` if every probe costs 1.
    costs: Option<Vec<u64>>,
}

impl Bound {
    /// At most this many probes.
    #[must_use]
    pub fn probes(limit: u64) -> Self {
        Self { limit, costs: None }
    }

    /// At most this expected cost, where a probe of unit `i` costs `costs[i]`, maybe nothing.
    ///
    /// # Errors
    /// [`DistributionError::Overflow`] if all costs together exceed 64 bits.
    pub fn expected(limit: u64, costs: Vec<u64>) -> Result<Self, DistributionError> {
        let sum = costs
            .iter()
            .try_fold(0_u64, |sum, &cost| sum.checked_add(cost));
        sum.ok_or(DistributionError::Overflow("costs"))?;
        Ok(Self {
            limit,
            costs: Some(costs),
        })
    }

    /// The most that one variant may cost.
    #[must_use]
    pub fn limit(&self) -> u64 {
        self.limit
    }

    /// What a probe of this unit costs. Panics if the bound knows no such unit.
    #[must_use]
    pub fn cost(&self, unit: UnitId) -> u64 {
        self.costs.as_ref().map_or(1, |costs| costs[unit.index()])
    }

    /// What probes of these units cost together, each counted as often as it stands there.
    #[must_use]
    pub fn cost_of(&self, units: &[UnitId]) -> u64 {
        let costs = units.iter().map(|&unit| self.cost(unit));
        costs.fold(0, u64::saturating_add)
    }

    /// Whether probes have costs of their own.
    pub(super) fn is_expected(&self) -> bool {
        self.costs.is_some()
    }

    /// Refuses a list of costs that is not one per unit.
    pub(super) fn agree(&self, unit_count: usize) -> Result<(), DistributionError> {
        match &self.costs {
            Some(costs) if costs.len() != unit_count => Err(DistributionError::Mismatch {
                what: "costs",
                expected: unit_count,
                found: costs.len(),
            }),
            _ => Ok(()),
        }
    }
}

/// The sets that no variant can hold, since each exceeds the bound all alone.
///
/// # Errors
/// [`DistributionError::Mismatch`] if the bound does not have one cost per unit.
pub fn oversized(sets: &UnitSets, bound: &Bound) -> Result<Vec<SetId>, DistributionError> {
    bound.agree(sets.unit_count())?;
    let exceeds = |set: &SetId| bound.cost_of(sets.units(*set)) > bound.limit;
    Ok(sets.ids().filter(exceeds).collect())
}

/// The sets that a variant can hold, ascending.
pub(super) fn placeable(sets: &UnitSets, bound: &Bound) -> Result<Vec<SetId>, DistributionError> {
    bound.agree(sets.unit_count())?;
    let fits = |set: &SetId| bound.cost_of(sets.units(*set)) <= bound.limit;
    Ok(sets.ids().filter(fits).collect())
}

/// Refuses numbers of variants that make no sense.
pub(super) fn count_variants(variants: usize) -> Result<usize, DistributionError> {
    match variants {
        0 => Err(DistributionError::NoVariants),
        1..=0x100_0000 => Ok(variants),
        _ => Err(DistributionError::TooManyVariants(variants)),
    }
}

#[cfg(test)]
mod tests {
    use super::{Bound, DistributionError, SetId, UnitId, UnitSets, oversized};

    #[test]
    fn costs_that_overflow_are_refused() {
        let refused = Bound::expected(1, vec![u64::MAX, 1]);
        assert_eq!(refused, Err(DistributionError::Overflow("costs")));
        assert!(Bound::expected(1, vec![u64::MAX, 0]).is_ok());
    }

    #[test]
    fn sets_that_exceed_the_bound_alone_are_named() {
        let sets = UnitSets::new(3, [vec![UnitId(0), UnitId(1)], vec![UnitId(2)]]).unwrap();
        assert_eq!(oversized(&sets, &Bound::probes(1)).unwrap(), [SetId(0)]);
        let dear = Bound::expected(5, vec![1, 1, 6]).unwrap();
        assert_eq!(oversized(&sets, &dear).unwrap(), [SetId(1)]);
        assert_eq!(oversized(&sets, &Bound::probes(2)).unwrap(), []);
    }

    #[test]
    fn one_cost_per_unit_is_asked_for() {
        let sets = UnitSets::new(2, [[UnitId(0)]]).unwrap();
        let error = oversized(&sets, &Bound::expected(5, vec![1]).unwrap()).unwrap_err();
        assert_eq!(error.to_string(), "1 costs where 2 are expected");
    }
}
