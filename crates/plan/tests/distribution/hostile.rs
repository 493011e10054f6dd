//! Input that makes no sense has defined answers: an error that says what is wrong, or what the
//! documentation says.

use tomo_plan::distribution::{
    Bound, Climb, Climber, Distribution, DistributionError, Packer, Repeats, SetId, UnitId,
    UnitSets, Variant, balanced_probes, greedy, oversized, random_probes, random_sets, upper_bound,
};

fn events() -> UnitSets {
    let events = [
        vec![UnitId(0)],
        vec![UnitId(1), UnitId(2)],
        vec![UnitId(0), UnitId(2), UnitId(3)],
    ];
    UnitSets::new(4, events).unwrap()
}

/// Every way to distribute these sets, with equal weights.
fn all(
    sets: &UnitSets,
    bound: &Bound,
    variants: usize,
) -> [Result<Distribution, DistributionError>; 5] {
    let climb = Climb {
        frozen: 500,
        ..Climb::BALANCED_PACKED
    };
    let weights = vec![1; sets.len()];
    [
        random_probes(sets.unit_count(), bound, variants, 1),
        balanced_probes(sets.unit_count(), bound, variants, 1),
        random_sets(sets, bound, variants, 1),
        Climber::new(sets, bound, variants, climb, 1).map(|climber| climber.run().distribution),
        greedy(sets, &weights, bound, variants, Repeats::Worthless).map(|found| found.distribution),
    ]
}

#[test]
fn no_variants_are_refused_and_so_are_too_many() {
    let too_many = (1 << 24) + 1;
    for found in all(&events(), &Bound::probes(2), 0) {
        assert_eq!(found, Err(DistributionError::NoVariants));
    }
    for found in all(&events(), &Bound::probes(2), too_many) {
        assert_eq!(found, Err(DistributionError::TooManyVariants(too_many)));
    }
}

#[test]
fn a_bound_of_zero_gives_variants_without_probes() {
    for found in all(&events(), &Bound::probes(0), 2) {
        assert_eq!(
            found.unwrap().variants(),
            [Variant::default(), Variant::default()]
        );
    }
}

#[test]
fn an_event_larger_than_the_bound_is_left_out_and_stops_nothing() {
    let (events, bound) = (events(), Bound::probes(2));
    assert_eq!(oversized(&events, &bound).unwrap(), [SetId(2)]);
    for found in &all(&events, &bound, 2)[2..] {
        assert_eq!(found.clone().unwrap().times_placed(&events)[2], 0);
    }
    // The others are all placed, equally often: a cost of zero but for what could be packed.
    let climb = Climb {
        frozen: 500,
        ..Climb::BALANCED
    };
    let climbed = Climber::new(&events, &bound, 2, climb, 1).unwrap().run();
    assert_eq!(climbed.cost.numerator, 0);
    assert_eq!(climbed.distribution.times_placed(&events), [1, 1, 0]);
}

#[test]
fn no_events_give_variants_without_probes() {
    let none = UnitSets::new(3, Vec::<Vec<UnitId>>::new()).unwrap();
    for found in &all(&none, &Bound::probes(2), 2)[2..] {
        assert_eq!(
            found.as_ref().unwrap().variants(),
            [Variant::default(), Variant::default()]
        );
    }
    let nothing = UnitSets::new(0, Vec::<Vec<UnitId>>::new()).unwrap();
    for found in all(&nothing, &Bound::probes(2), 1) {
        assert_eq!(found.unwrap().variants(), [Variant::default()]);
    }
}

#[test]
fn a_bound_above_all_places_everything_everywhere() {
    for found in all(&events(), &Bound::probes(u64::MAX), 1) {
        assert_eq!(found.unwrap().times_observed(&events()), [1, 1, 1]);
    }
}

#[test]
fn probes_that_cost_nothing_are_placed_beside_the_dearest() {
    let bound = Bound::expected(7, vec![0, 0, 0, 7]).unwrap();
    let weights = [1, 1, 1];
    let found = greedy(&events(), &weights, &bound, 1, Repeats::Worthless).unwrap();
    assert_eq!((found.value, found.upper), (3, 3));
    let free = Bound::expected(0, vec![0; 4]).unwrap();
    assert_eq!(
        greedy(&events(), &weights, &free, 1, Repeats::Worthless)
            .unwrap()
            .value,
        3
    );
}

#[test]
fn weights_that_overflow_are_refused_and_the_largest_are_not() {
    let (events, bound) = (events(), Bound::probes(4));
    let run = |weights: &[u64]| greedy(&events, weights, &bound, 1, Repeats::Worthless);
    assert_eq!(
        run(&[u64::MAX, 1, 0]),
        Err(DistributionError::Overflow("weights"))
    );
    assert_eq!(
        run(&[u64::MAX - 3, 1, 2]).unwrap().value,
        u128::from(u64::MAX)
    );
    assert!(matches!(
        run(&[1]),
        Err(DistributionError::Mismatch {
            expected: 3,
            found: 1,
            ..
        })
    ));
}

#[test]
fn lists_of_the_wrong_length_are_refused() {
    let (events, short) = (events(), Bound::expected(2, vec![1; 3]).unwrap());
    for found in all(&events, &short, 1) {
        assert!(matches!(
            found,
            Err(DistributionError::Mismatch {
                expected: 4,
                found: 3,
                ..
            })
        ));
    }
    assert!(Packer::new(&events, &short).is_err());
    assert!(upper_bound(&events, &[1; 3], &short, 1, Repeats::Halved).is_err());
}

#[test]
fn a_start_that_names_sets_which_are_not_there_is_refused() {
    let (few, bound) = (
        UnitSets::new(4, [vec![UnitId(0)]]).unwrap(),
        Bound::probes(4),
    );
    let start = random_sets(&events(), &bound, 1, 1).unwrap();
    let found = Climber::from(&start, &few, &bound, Climb::BALANCED, 1);
    assert!(matches!(found, Err(DistributionError::NoSuchSet(_))));
    let found = Climber::from(&Distribution::default(), &few, &bound, Climb::BALANCED, 1);
    assert!(matches!(found, Err(DistributionError::NoVariants)));
}

#[test]
fn counters_that_would_fill_the_memory_are_refused() {
    let many = (0..1000).map(|unit| [UnitId(unit)]);
    let sets = UnitSets::new(1000, many).unwrap();
    let found = random_sets(&sets, &Bound::probes(1), 1 << 24, 1);
    assert_eq!(found, Err(DistributionError::TooLarge));
}
