//! Probe-based distributions: Random-Probes and Balanced-Probes (PDT §4.2, Algorithm 1).
//! Probes are placed without regard to events, which serves where one unit is one event.
//!
//! **Algorithm 1** takes a random unit among those with the fewest probes so far, and goes on with
//! the next number once it has run out of them. As printed it may then choose a unit that this
//! variant already has. Here each variant takes the units in the order of their number of probes,
//! randomly within the same number: the same choice at every step, and no unit twice. Where the
//! bound is a count, the numbers of probes of any two units therefore differ by one at most (what
//! PDT calls a cost of zero, [`excess`](super::check::excess)): a variant takes h of those with the
//! fewest first.
//!
//! Where the bound is an expected cost, a unit that does not fit any more is passed over; dear units
//! then get fewer probes. O(variants · units · log units).

use super::bound::count_variants;
use super::{Bound, Distribution, DistributionError, UnitId, Variant};
use crate::random::Random;

/// Random-Probes: each variant gets probes in random units until the bound is met.
///
/// # Errors
/// [`DistributionError::NoVariants`] and the like, [`DistributionError::Mismatch`].
pub fn random_probes(
    unit_count: usize,
    bound: &Bound,
    variants: usize,
    seed: u64,
) -> Result<Distribution, DistributionError> {
    let mut units = all(unit_count, bound)?;
    let mut random = Random::new(seed);
    let variants = (0..count_variants(variants)?).map(|_| {
        random.shuffle(&mut units);
        first_fit(&units, bound)
    });
    Ok(Distribution::new(variants.collect()))
}

/// Balanced-Probes: each variant gets probes in random units among those that have the fewest.
///
/// # Errors
/// As [`random_probes`].
pub fn balanced_probes(
    unit_count: usize,
    bound: &Bound,
    variants: usize,
    seed: u64,
) -> Result<Distribution, DistributionError> {
    let mut units = all(unit_count, bound)?;
    let mut random = Random::new(seed);
    let mut times = vec![0_u32; unit_count];
    let variants = (0..count_variants(variants)?).map(|_| {
        random.shuffle(&mut units);
        units.sort_by_key(|unit| times[unit.index()]);
        let variant = first_fit(&units, bound);
        variant
            .units
            .iter()
            .for_each(|unit| times[unit.index()] += 1);
        variant
    });
    Ok(Distribution::new(variants.collect()))
}

fn all(unit_count: usize, bound: &Bound) -> Result<Vec<UnitId>, DistributionError> {
    bound.agree(unit_count)?;
    let count = u32::try_from(unit_count).map_err(|_| DistributionError::TooLarge)?;
    Ok((0..count).map(UnitId).collect())
}

/// Takes units in this order, but none that exceeds the bound.
fn first_fit(units: &[UnitId], bound: &Bound) -> Variant {
    let mut left = bound.limit();
    let mut taken = Vec::new();
    for &unit in units {
        if let Some(rest) = left.checked_sub(bound.cost(unit)) {
            left = rest;
            taken.push(unit);
        }
    }
    Variant::of_units(taken)
}
