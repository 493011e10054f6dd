//! How a campaign's probes are shared out over its variants: the techniques of PDT
//! ([`tomo_plan::distribution`]) over the units of its master plans.
//!
//! Clusters come with the request, and so may events; where it has none, each unit is an event, and the strategies for probes
//! and for events differ in how they fill variants only.
//!
//! A campaign of as many units and variants as are allowed would be climbed for hours, so the climb
//! ends after a number of moves that depends on the size alone: the same request gives the same
//! variants everywhere.

use tomo_plan::distribution::{
    self, Climb, Climber, DistributionError, Greedy, Packer, Repeats, UnitId, UnitSets,
    balanced_probes, greedy, random_probes, random_sets,
};
use tomo_protocol::{Bound, Strategy, Units, Variant};

/// Variants of one campaign at most.
pub(crate) const MOST_VARIANTS: u32 = 10_000;
/// Probes of all variants of a campaign together at most: what memory they take.
pub(crate) const MOST_PLACED: u64 = 200_000_000;
/// Drawn moves of a climb at most.
const MOST_MOVES: u64 = 2_000_000;

/// Why there are no variants.
#[derive(Debug, thiserror::Error)]
pub enum PlanningError {
    /// Numbers that make no sense.
    #[error(transparent)]
    Distribution(#[from] DistributionError),
    /// No clusters, where the strategy is for clusters.
    #[error("the strategy {} shares out clusters, and the request has none", .0.name())]
    NoClusters(Strategy),
    /// Too much of it.
    #[error("{variants} variants of up to {probes} probes are more than one collector plans")]
    TooLarge {
        /// Variants.
        variants: u32,
        /// Probes of each.
        probes: u64,
    },
    /// Nothing fits.
    #[error(
        "no variant carries anything: the bound of {0} is smaller than everything that must be placed together"
    )]
    Empty(u64),
}

/// Shares out `units` units over variants; `sets` are the clusters or the events, by what the strategy is for. With a `count`
/// of 0 there are as many variants as hold once whatever one can carry.
///
/// # Errors
/// Where the request makes no sense.
pub fn variants(
    units: u32,
    sets: &[Units],
    strategy: Strategy,
    count: u32,
    bound: Bound,
    seed: u64,
) -> Result<Vec<Variant>, PlanningError> {
    let Bound::Probes(limit) = bound else {
        let whole = Variant {
            units: Units::below(units),
        };
        check_size(count, u64::from(units))?;
        return Ok(vec![whole; count.max(1) as usize]);
    };
    if strategy.is_for_clusters() && sets.is_empty() {
        return Err(PlanningError::NoClusters(strategy));
    }
    let count = match count {
        0 => enough(units, sets, limit)?,
        count => count,
    };
    check_size(count, limit.min(units.into()))?;
    let bound = distribution::Bound::probes(limit);
    let distribution = distribute(units, sets, strategy, count, &bound, seed)?;
    let of = |variant: &distribution::Variant| Variant {
        units: Units::of(variant.units().iter().map(|unit| unit.0)),
    };
    let variants: Vec<Variant> = distribution.variants().iter().map(of).collect();
    let empty = variants.iter().all(|variant| variant.units.is_empty());
    if empty && units > 0 {
        return Err(PlanningError::Empty(limit));
    }
    Ok(variants)
}

/// As many variants as hold all units once, or all sets that do not exceed the bound.
fn enough(units: u32, sets: &[Units], limit: u64) -> Result<u32, PlanningError> {
    if limit == 0 {
        return Err(PlanningError::Empty(limit));
    }
    if sets.is_empty() {
        let count = u64::from(units).div_ceil(limit).max(1);
        return Ok(u32::try_from(count).unwrap_or(u32::MAX));
    }
    let bound = distribution::Bound::probes(limit);
    let sets = UnitSets::new(units as usize, sets.iter().map(members))?;
    let packer = Packer::new(&sets, &bound)?;
    let mut weights: Vec<u64> = sets.ids().map(|set| sets.length(set)).collect();
    let mut count = 0;
    while count <= MOST_VARIANTS {
        let variant = packer.pack(&weights);
        if variant.sets().is_empty() {
            break;
        }
        for set in variant.sets() {
            weights[set.index()] = 0;
        }
        count += 1;
    }
    Ok(count.max(1))
}

/// How many units a variant could carry that none of these does.
pub(crate) fn left_out(units: u32, sets: &[Units], bound: Bound, variants: &[Variant]) -> u32 {
    let fits = |set: &&Units| match bound {
        Bound::Probes(limit) => set.len() <= limit,
        Bound::None => true,
    };
    let mut is_left = vec![sets.is_empty(); units as usize];
    let placeable = sets.iter().filter(fits).flat_map(Units::iter);
    placeable.for_each(|unit| is_left[unit as usize] = true);
    let carried = variants.iter().flat_map(|variant| variant.units.iter());
    carried.for_each(|unit| is_left[unit as usize] = false);
    is_left.into_iter().filter(|is_left| *is_left).count() as u32
}

fn check_size(variants: u32, probes: u64) -> Result<(), PlanningError> {
    if variants > MOST_VARIANTS || u64::from(variants) * probes > MOST_PLACED {
        return Err(PlanningError::TooLarge { variants, probes });
    }
    Ok(())
}

fn distribute(
    units: u32,
    given: &[Units],
    strategy: Strategy,
    count: u32,
    bound: &distribution::Bound,
    seed: u64,
) -> Result<distribution::Distribution, PlanningError> {
    let (all, count) = (units as usize, count as usize);
    let sets = || match given.is_empty() {
        false => UnitSets::new(all, given.iter().map(members)),
        true => UnitSets::new(all, (0..units).map(|unit| [UnitId(unit)])),
    };
    Ok(match strategy {
        Strategy::RandomProbes => random_probes(all, bound, count, seed)?,
        Strategy::BalancedProbes => balanced_probes(all, bound, count, seed)?,
        Strategy::RandomEvents | Strategy::RandomClusters => {
            random_sets(&sets()?, bound, count, seed)?
        }
        Strategy::BalancedEvents | Strategy::BalancedClusters => {
            climbed(&sets()?, bound, count, Climb::BALANCED, seed)?
        }
        Strategy::PackedEvents | Strategy::PackedClusters => {
            climbed(&sets()?, bound, count, Climb::PACKED, seed)?
        }
        Strategy::BalancedPackedEvents | Strategy::BalancedPackedClusters => {
            climbed(&sets()?, bound, count, Climb::BALANCED_PACKED, seed)?
        }
    })
}

fn members(units: &Units) -> Vec<UnitId> {
    units.iter().map(UnitId).collect()
}

/// From a greedy start, which is the better the more there is to place.
fn climbed(
    sets: &UnitSets,
    bound: &distribution::Bound,
    count: usize,
    climb: Climb,
    seed: u64,
) -> Result<distribution::Distribution, DistributionError> {
    let weights = sets.ids().map(|set| sets.length(set) * Repeats::FIRST);
    let weights: Vec<u64> = weights.collect();
    let Greedy { distribution, .. } = greedy(sets, &weights, bound, count, Repeats::Later)?;
    let start = distribution;
    let mut climber = Climber::from(&start, sets, bound, climb, seed)?;
    let mut bad = 0;
    for _ in 0..MOST_MOVES {
        if bad >= climb.frozen || climber.cost().numerator == 0 {
            break;
        }
        bad = if climber.step() { 0 } else { bad + 1 };
    }
    let top = climber.distribution();
    // Sets that nothing observes are no price for balance.
    let unplaced = |one: &distribution::Distribution| {
        let times = one.times_placed(sets);
        times.into_iter().filter(|times| *times == 0).count()
    };
    Ok(match unplaced(&top) > unplaced(&start) {
        true => start,
        false => top,
    })
}

#[cfg(test)]
mod tests {
    use super::{PlanningError, left_out, variants};
    use tomo_protocol::{Bound, Strategy, Units};

    fn clusters() -> Vec<Units> {
        (0..20).map(|at| Units::of(at * 5..at * 5 + 5)).collect()
    }

    #[test]
    fn every_strategy_keeps_the_bound_and_is_the_same_again() {
        for strategy in Strategy::ALL {
            let plan = || variants(100, &clusters(), strategy, 7, Bound::Probes(22), 3).unwrap();
            let planned = plan();
            assert_eq!(planned, plan(), "{strategy:?}");
            assert_eq!(planned.len(), 7);
            for variant in &planned {
                let count = variant.units.len();
                assert!((20..=22).contains(&count), "{strategy:?}: {count}");
                assert!(variant.units.are_below(100));
            }
            if strategy.is_for_clusters() {
                let whole = |units: &Units| {
                    let mut held = clusters().into_iter().map(|cluster| {
                        let here = cluster.iter().filter(|unit| units.has(*unit)).count();
                        here == 0 || here == 5
                    });
                    held.all(|whole| whole)
                };
                assert!(planned.iter().all(|variant| whole(&variant.units)));
            }
        }
    }

    #[test]
    fn balanced_strategies_reach_every_unit() {
        for strategy in [
            Strategy::BalancedProbes,
            Strategy::BalancedEvents,
            Strategy::BalancedClusters,
        ] {
            let planned = variants(100, &clusters(), strategy, 5, Bound::Probes(20), 3).unwrap();
            let all = planned.iter().flat_map(|variant| variant.units.iter());
            assert_eq!(Units::of(all), Units::below(100), "{strategy:?}");
        }
    }

    #[test]
    fn without_a_bound_all_variants_are_whole() {
        let planned = variants(9, &[], Strategy::RandomProbes, 2, Bound::None, 0).unwrap();
        assert!(planned.iter().all(|one| one.units == Units::below(9)));
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        let plan = |units, strategy, count, bound| {
            variants(units, &[], strategy, count, bound, 1).unwrap_err()
        };
        let probes = Strategy::BalancedProbes;
        let none = plan(9, probes, 0, Bound::Probes(0));
        assert!(matches!(none, PlanningError::Empty(0)), "{none}");
        let many = plan(9, probes, 1_000_000, Bound::Probes(1));
        assert!(matches!(many, PlanningError::TooLarge { .. }), "{many}");
        let many = plan(1 << 24, probes, 9999, Bound::None);
        assert!(matches!(many, PlanningError::TooLarge { .. }), "{many}");
        let bare = plan(9, Strategy::PackedClusters, 1, Bound::Probes(1));
        assert!(matches!(bare, PlanningError::NoClusters(_)), "{bare}");
        let empty = plan(9, probes, 1, Bound::Probes(0));
        assert!(matches!(empty, PlanningError::Empty(0)), "{empty}");
    }

    /// Sets of every size up to 30, which overlap; those of more than 20 units fit nowhere.
    fn uneven() -> Vec<Units> {
        (0..60)
            .map(|at| {
                let (first, length) = (at * 37 % 400, at * 7 % 30 + 1);
                Units::of(first..first + length)
            })
            .collect()
    }

    #[test]
    fn as_many_variants_as_are_needed_hold_all_that_one_can_carry() {
        let sets = uneven();
        for strategy in [
            Strategy::BalancedClusters,
            Strategy::PackedClusters,
            Strategy::BalancedPackedEvents,
        ] {
            let plan = |count| variants(430, &sets, strategy, count, Bound::Probes(20), 3).unwrap();
            let planned = plan(0);
            assert_eq!(left_out(430, &sets, Bound::Probes(20), &planned), 0);
            assert!(planned.iter().all(|variant| !variant.units.is_empty()));
            // With half of them it does not go, and that is counted.
            let half = plan(planned.len() as u32 / 2);
            assert!(left_out(430, &sets, Bound::Probes(20), &half) > 0);
            let twice = plan(planned.len() as u32 * 2);
            assert_eq!(left_out(430, &sets, Bound::Probes(20), &twice), 0);
        }
        let probes = variants(430, &[], Strategy::BalancedProbes, 0, Bound::Probes(20), 3);
        assert_eq!(probes.unwrap().len(), 22);
        let whole = variants(
            100,
            &clusters(),
            Strategy::BalancedClusters,
            0,
            Bound::Probes(22),
            3,
        );
        assert_eq!(whole.unwrap().len(), 5);
    }
}
