//! Independent of the algorithms: what a distribution promises, and its cost by definition. Written
//! from PDT §4 anew, in the plainest way, to hold the fast ways against.

use super::objective::{FRACTION, Packing, Parts};
use super::{Bound, Distribution, UnitId, UnitSets, Variant};

/// The outcome of a check: what is wrong, if anything.
pub type Outcome = Result<(), String>;

/// Holds that every variant keeps the bound, has no probe twice, and has just the probes of the sets
/// it was given (if it was given sets).
///
/// # Errors
/// Says what is wrong.
pub fn keeps_its_promise(distribution: &Distribution, sets: &UnitSets, bound: &Bound) -> Outcome {
    for (number, variant) in distribution.variants().iter().enumerate() {
        let wrong = |what: &str| Err(format!("variant {number} {what}: {variant:?}"));
        if bound.cost_of(variant.units()) > bound.limit() {
            return wrong("exceeds the bound");
        }
        if variant.units().windows(2).any(|pair| pair[0] >= pair[1]) {
            return wrong("is not ascending");
        }
        if !variant.sets().is_empty() && needed(variant, sets) != variant.units() {
            return wrong("has other probes than its sets need");
        }
    }
    Ok(())
}

fn needed(variant: &Variant, sets: &UnitSets) -> Vec<UnitId> {
    let is_needed = |unit: &UnitId| {
        variant
            .sets()
            .iter()
            .any(|&set| sets.units(set).contains(unit))
    };
    let units = (0..sets.unit_count() as u32).map(UnitId);
    units.filter(is_needed).collect()
}

/// The parts of the cost of a distribution, recomputed from nothing by their definitions, and the
/// number of placeable sets.
#[must_use]
pub fn parts(
    distribution: &Distribution,
    sets: &UnitSets,
    bound: &Bound,
    packing: Packing,
) -> (Parts, usize) {
    let placeable: Vec<_> = sets
        .ids()
        .filter(|&set| bound.cost_of(sets.units(set)) <= bound.limit())
        .collect();
    let times = distribution.times_placed(sets);
    let times = |set: super::SetId| u128::from(times[set.index()]);
    let length = |set| u128::from(sets.length(set));
    let uses: u128 = placeable.iter().map(|&set| times(set)).sum();
    let count = placeable.len() as u128;
    let balance = placeable
        .iter()
        .map(|&set| length(set) * (count * times(set)).abs_diff(uses));
    let unused = placeable.iter().filter(|&&set| times(set) == 0);
    let parts = Parts {
        balance: balance.sum(),
        all_used: unused.map(|&set| length(set)).sum(),
        packing: self::packing(distribution, sets, &placeable, packing),
    };
    (parts, placeable.len())
}

fn packing(
    distribution: &Distribution,
    sets: &UnitSets,
    placeable: &[super::SetId],
    packing: Packing,
) -> u128 {
    let overlap = |variant: &Variant| {
        let lengths = variant.sets().iter().map(|&set| sets.length(set));
        lengths.sum::<u64>() - variant.units().len() as u64
    };
    let overlaps = distribution.variants().iter().map(overlap);
    let most = overlap(&Variant::of_sets(sets, placeable.to_vec()));
    match packing {
        #[cfg(feature = "lab")]
        Packing::Printed => super::printed::packing(&overlaps.collect::<Vec<_>>()),
        Packing::Meant => overlaps
            .map(|overlap| u128::from(most - overlap) * FRACTION)
            .sum(),
    }
}

/// What PDT §4.3 calls the cost of a probe-based distribution: the units whose number of probes
/// exceeds the smallest such number by more than one.
#[must_use]
pub fn excess(distribution: &Distribution, unit_count: usize) -> usize {
    let times = distribution.times_probed(unit_count);
    let least = times.iter().copied().min().unwrap_or(0);
    times.iter().filter(|&&times| times > least + 1).count()
}
