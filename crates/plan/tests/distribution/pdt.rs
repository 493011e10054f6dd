//! The running example of PDT §4.2 (eight units, seven events, six clusters, a bound of five, three
//! variants), and Table 1.

use crate::exact;
use tomo_plan::distribution::check::{excess, keeps_its_promise, parts};
use tomo_plan::distribution::{
    Bound, Climb, Climber, Distribution, FROZEN, Packing, Repeats, SetId, UnitId, UnitSets,
    Variant, Weights, balanced_probes, greedy, random_probes, random_sets,
};
use tomo_plan::random::Random;

const UNITS: usize = 8;
const VARIANTS: usize = 3;

/// The paper counts units from one.
fn units<const N: usize>(numbers: [u32; N]) -> Vec<UnitId> {
    numbers.map(|number| UnitId(number - 1)).to_vec()
}

fn sets(ids: &[u32]) -> Vec<SetId> {
    ids.iter().map(|id| SetId(id - 1)).collect()
}

fn events() -> UnitSets {
    let events = [
        [1, 3, 5],
        [2, 4, 6],
        [3, 5, 7],
        [4, 6, 8],
        [1, 2, 3],
        [4, 5, 6],
        [6, 7, 8],
    ];
    UnitSets::new(UNITS, events.map(units)).unwrap()
}

fn clusters() -> UnitSets {
    let clusters = [
        units([1, 3, 5, 7]),
        units([1, 2, 3]),
        units([3, 5, 7, 8]),
        units([4, 5, 6, 8]),
        units([2, 4, 6]),
        units([6, 7, 8]),
    ];
    UnitSets::new(UNITS, clusters).unwrap()
}

fn bound() -> Bound {
    Bound::probes(5)
}

fn climb(sets: &UnitSets, climb: Climb, seed: u64) -> Distribution {
    let climb = Climb {
        frozen: 5_000,
        ..climb
    };
    let climbed = Climber::new(sets, &bound(), VARIANTS, climb, seed)
        .unwrap()
        .run();
    assert_eq!(
        keeps_its_promise(&climbed.distribution, sets, &bound()),
        Ok(())
    );
    climbed.distribution
}

fn is_all_used(distribution: &Distribution, sets: &UnitSets) -> bool {
    distribution
        .times_placed(sets)
        .iter()
        .all(|&times| times > 0)
}

/// "Data relative to e3 and e7 using v1", which Figure 1-b gives the probes u3, u5, u6, u7, u8.
#[test]
fn figure_1_b_shows_two_events_in_its_first_variant() {
    let variant = Variant::of_units(units([3, 5, 6, 7, 8]));
    let events = events();
    let seen = events
        .ids()
        .filter(|&event| variant.observes(events.units(event)));
    assert_eq!(seen.collect::<Vec<_>>(), sets(&[3, 7]));
}

/// Random-Probes may leave a unit without any probe; Balanced-Probes, with 15 probes for eight units,
/// gives each one or two.
#[test]
fn balanced_probes_leave_no_unit_out() {
    let bound = bound();
    let times = |found: &Distribution| found.times_probed(UNITS);
    let random = (0..100).map(|seed| random_probes(UNITS, &bound, VARIANTS, seed).unwrap());
    assert!(random.clone().any(|found| times(&found).contains(&0)));
    assert!(random.clone().any(|found| excess(&found, UNITS) > 0));
    for seed in 0..100 {
        let found = balanced_probes(UNITS, &bound, VARIANTS, seed).unwrap();
        assert_eq!(excess(&found, UNITS), 0);
        assert!(times(&found).iter().all(|times| (1..=2).contains(times)));
    }
}

/// "e4, e6 and e7 shared locations": three events of nine units with five probes, in Figure 1-e.
#[test]
fn figure_1_e_packs_three_events_into_the_third_variant() {
    let third = Variant::of_sets(&events(), sets(&[4, 6, 7]));
    assert_eq!(third.units(), units([4, 5, 6, 7, 8]));
    let distribution = Distribution::new(vec![third]);
    let packing = |packing| parts(&distribution, &events(), &bound(), packing).0.packing;
    // Of the 21 − 8 placements that all events together would save it saves 9 − 5.
    assert_eq!(packing(Packing::Meant), (13 - 4) << 20);
    assert_eq!(packing(Packing::Printed), 0);
}

/// Random-Events may leave events out; the balanced and the balanced-packed ones find places for all
/// seven, and packing alone, which is content with three events in each variant, at least sometimes.
#[test]
fn balanced_climbs_observe_all_events() {
    let events = events();
    let random = (0..100).map(|seed| random_sets(&events, &bound(), VARIANTS, seed).unwrap());
    assert!(random.filter(|found| !is_all_used(found, &events)).count() > 20);
    let of_ten = |table| {
        let found = (0..10).map(|seed| climb(&events, table, seed));
        found.filter(|found| is_all_used(found, &events)).count()
    };
    assert_eq!(of_ten(Climb::BALANCED), 10);
    assert_eq!(of_ten(Climb::BALANCED_PACKED), 10);
    assert!(of_ten(Climb::PACKED) > 0);
}

/// What PACKING is for: it places more events than balancing alone does, and than PACKING as
/// printed. (The paper's example is too small to tell: no three variants can take more than nine.)
#[test]
fn packing_places_more_events() {
    let mut random = Random::new(4);
    let walks = (0..80).map(|_| [(); 4].map(|()| UnitId(random.below(30) as u32)));
    let (events, bound) = (UnitSets::new(30, walks).unwrap(), Bound::probes(10));
    let placed = |table, packing| {
        let climb = Climb {
            frozen: 3_000,
            packing,
            ..table
        };
        let found = Climber::new(&events, &bound, 5, climb, 1).unwrap().run();
        found.distribution.times_placed(&events).iter().sum::<u32>()
    };
    let balanced = placed(Climb::BALANCED, Packing::Meant);
    let packed = placed(Climb::PACKED, Packing::Meant);
    let printed = placed(Climb::PACKED, Packing::Printed);
    assert!(packed > balanced, "{packed} {balanced}");
    assert!(packed > printed, "{packed} {printed}");
}

#[test]
fn clusters_are_distributed_like_events() {
    let clusters = clusters();
    for table in [Climb::BALANCED, Climb::PACKED, Climb::BALANCED_PACKED] {
        let found = climb(&clusters, table, 1);
        let times = found.times_placed(&clusters);
        let best = exact::optimum(&clusters, &[1; 6], &bound(), VARIANTS);
        let used = times.iter().filter(|&&times| times > 0).count();
        assert_eq!(used as u128, best, "{table:?}: {found:?}");
    }
}

#[test]
fn the_optimum_observes_all_seven_events_and_greedy_finds_it() {
    assert_eq!(exact::optimum(&events(), &[1; 7], &bound(), VARIANTS), 7);
    let found = greedy(&events(), &[1; 7], &bound(), VARIANTS, Repeats::Worthless).unwrap();
    assert_eq!(found.value, 7);
    assert_eq!(found.degree, 4); // u6 is in e2, e4, e6 and e7
}

#[test]
fn table_1() {
    let table = |balance, packing, all_used| Weights::new(balance, packing, all_used).unwrap();
    assert_eq!(Climb::BALANCED.weights, table(500, 0, 500));
    assert_eq!(Climb::PACKED.weights, table(0, 500, 500));
    assert_eq!(Climb::BALANCED_PACKED.weights, table(400, 200, 400));
    assert_eq!(FROZEN, 500_000);
    assert_eq!(Climb::BALANCED.frozen, FROZEN);
}

/// The same seeds give the same distributions on every machine: these were found on one.
#[test]
fn seeds_give_the_same_everywhere() {
    let events = events();
    let random = random_sets(&events, &bound(), VARIANTS, 2006).unwrap();
    let placed = |found: &Distribution| -> Vec<Vec<u32>> {
        let variants = found.variants().iter();
        variants
            .map(|variant| variant.sets().iter().map(|set| set.0 + 1).collect())
            .collect()
    };
    let climbed = climb(&events, Climb::BALANCED_PACKED, 2006);
    assert_eq!(placed(&random), [[1, 6], [3, 5], [1, 6]]);
    let expected: [&[u32]; 3] = [&[4, 6, 7], &[2, 5], &[1, 3]];
    assert_eq!(placed(&climbed), expected);
}
