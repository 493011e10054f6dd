//! The award of a distribution against its definition, and the posterior optimum against the exact
//! one of small cases.

use proptest::collection::vec;
use proptest::prelude::*;
use std::collections::BTreeSet;
use tomo_plan::distribution::check::keeps_its_promise;
use tomo_plan::distribution::{
    Bound, Distribution, DistributionError, SetId, UnitId, Variant, VariantId, balanced_probes,
};
use tomo_profile::award::posterior::{by_dropping, optimum};
use tomo_profile::award::{Award, AwardError, Events, Observation, Run, assign, award};

fn units(numbers: &[u32]) -> Vec<UnitId> {
    numbers.iter().copied().map(UnitId).collect()
}

fn sets(ids: &[u32]) -> Vec<SetId> {
    ids.iter().copied().map(SetId).collect()
}

fn run(instance: usize, trace: &[u32]) -> Run {
    let trace = units(trace);
    Run { instance, trace }
}

/// One variant with these probes, on the only instance.
fn award_of(events: &Events, probes: &[u32], runs: &[Run], observation: Observation) -> Award {
    let distribution = Distribution::new(vec![Variant::of_units(units(probes))]);
    award(events, &distribution, &[VariantId(0)], runs, observation).unwrap()
}

/// The events of PDT §4.2, units counted from one: e1 is event 0.
fn pdt() -> Events {
    let events = [
        [1, 3, 5],
        [2, 4, 6],
        [3, 5, 7],
        [4, 6, 8],
        [1, 2, 3],
        [4, 5, 6],
        [6, 7, 8],
    ];
    Events::new(9, events.map(|event| units(&event))).unwrap()
}

/// PDT §4.2 on Figure 1-b: in v1, with probes at u3, u5, u6, u7 and u8, "the execution of event e1 may
/// lead us to infer that e3 occurred simply because u1 did not contain a probe".
#[test]
fn a_missing_probe_makes_one_event_look_like_another() {
    let runs = [run(0, &[1, 3, 5, 6, 7, 8])];
    let award = award_of(&pdt(), &[3, 5, 6, 7, 8], &runs, Observation::Marks);
    assert_eq!(award.happened, sets(&[0, 6]));
    assert_eq!(award.seen, sets(&[6]));
    assert_eq!(award.falsely, sets(&[2]));
    assert_eq!(award.false_ratio(), Some(1.0));
    // A record in order is not deceived here: u6 ran between u5 and u7.
    let award = award_of(&pdt(), &[3, 5, 6, 7, 8], &runs, Observation::Order);
    assert_eq!(award.falsely, []);
}

/// PDT §5.3: a report is false if Full does not detect the chain, or not at this location.
#[test]
fn a_report_at_another_location_is_false() {
    let events = Events::new(4, [units(&[0, 1, 2]), units(&[0, 2])]).unwrap();
    let nowhere = award_of(&events, &[0, 2], &[run(0, &[0, 1, 2])], Observation::Order);
    assert_eq!((nowhere.seen, nowhere.falsely), (vec![], sets(&[1])));
    let elsewhere = [run(0, &[0, 1, 2, 3, 0, 2])];
    let elsewhere = award_of(&events, &[0, 2], &elsewhere, Observation::Order);
    assert_eq!(
        (elsewhere.seen, elsewhere.falsely),
        (sets(&[1]), sets(&[1]))
    );
}

#[test]
fn an_event_may_hold_a_unit_twice() {
    let events = Events::new(2, [units(&[0, 1, 0])]).unwrap();
    let happened = award_of(&events, &[0, 1], &[run(0, &[0, 1, 0])], Observation::Order);
    assert_eq!(happened.seen, sets(&[0]));
    let not = award_of(&events, &[0, 1], &[run(0, &[0, 1])], Observation::Order);
    assert_eq!(not, Award::default());
    let marks = award_of(&events, &[0, 1], &[run(0, &[0, 1])], Observation::Marks);
    assert_eq!(marks.falsely, sets(&[0]));
}

#[test]
fn variants_are_assigned_evenly() {
    let assigned = assign(7, 3, 1);
    let count = |id| {
        assigned
            .iter()
            .filter(|&&variant| variant == VariantId(id))
            .count()
    };
    assert_eq!([0, 1, 2].map(count), [3, 2, 2]);
    assert_eq!(assigned, assign(7, 3, 1));
    assert_ne!(assigned, assign(7, 3, 2));
    assert_eq!(assign(2, 0, 1), []);
}

#[test]
fn data_that_make_no_sense_are_refused() {
    let (events, bound) = (pdt(), Bound::probes(5));
    let one = Distribution::new(vec![Variant::default()]);
    let ask = |assignment: &[u32], run: Run| {
        let assignment: Vec<_> = assignment.iter().copied().map(VariantId).collect();
        award(&events, &one, &assignment, &[run], Observation::Order).unwrap_err()
    };
    let (unit, units) = (UnitId(9), 9);
    assert_eq!(
        ask(&[0], run(0, &[9])),
        AwardError::NoSuchUnit { unit, units }
    );
    assert_eq!(ask(&[0], run(1, &[1])), AwardError::NoVariant(1));
    assert_eq!(
        ask(&[1], run(0, &[1])),
        AwardError::NoSuchVariant(VariantId(1))
    );
    let beyond = optimum(&events, &[run(2, &[1])], 2, &bound);
    assert_eq!(beyond, Err(AwardError::NoVariant(2)));
    let empty = Events::new(1, [Vec::new()]).unwrap_err();
    assert_eq!(empty, DistributionError::EmptySet(SetId(0)).into());
}

#[test]
fn without_runs_nothing_could_have_been_seen() {
    let best = optimum(&pdt(), &[], 2, &Bound::probes(5)).unwrap();
    assert_eq!((best.seen.len(), best.upper), (0, 0));
    assert_eq!(best.distribution.variants().len(), 2);
    assert_eq!(Award::default().share_of(0), 1.0);
    let none = optimum(&pdt(), &[], 0, &Bound::probes(5)).unwrap();
    assert_eq!(none.distribution.variants(), []);
}

/// Two instances that both ran e1 and e3 with room for four probes: both are seen with either, and the
/// other instance is free for what happened there only.
#[test]
fn the_optimum_does_not_spend_twice_on_the_same_event() {
    let runs = [run(0, &[1, 3, 5, 7]), run(1, &[1, 3, 5, 7, 4, 6, 8])];
    let best = optimum(&pdt(), &runs, 2, &Bound::probes(4)).unwrap();
    assert_eq!(best.seen, sets(&[0, 2, 3]));
    assert_eq!(best.upper, 3);
}

/// Seen and falsely reported events by the definition: every window of the record.
fn by_definition(
    events: &[Vec<UnitId>],
    probes: &[UnitId],
    trace: &[UnitId],
) -> [BTreeSet<usize>; 2] {
    let full: Vec<_> = trace.iter().copied().enumerate().collect();
    let masked: Vec<_> = full
        .iter()
        .copied()
        .filter(|(_, unit)| probes.contains(unit))
        .collect();
    let detections = |record: &[(usize, UnitId)]| {
        let mut found = BTreeSet::new();
        for (id, event) in events.iter().enumerate() {
            for window in record.windows(event.len()) {
                if window.iter().map(|(_, unit)| unit).eq(event) {
                    found.insert((id, window.iter().map(|(at, _)| *at).collect::<Vec<_>>()));
                }
            }
        }
        found
    };
    let (full, masked) = (detections(&full), detections(&masked));
    let ids = |found: BTreeSet<&(usize, Vec<usize>)>| found.iter().map(|(id, _)| *id).collect();
    [
        ids(masked.intersection(&full).collect()),
        ids(masked.difference(&full).collect()),
    ]
}

/// The most different events that any choice of happened events per instance shows, within the bound.
fn exact(events: &Events, runs: &[Run], instances: usize, bound: &Bound) -> usize {
    let mut unions = BTreeSet::from([0_u32]);
    for instance in 0..instances {
        let own = runs.iter().filter(|run| run.instance == instance);
        let here: BTreeSet<_> = own.flat_map(|run| events.happened(&run.trace)).collect();
        let here: Vec<_> = here.into_iter().collect();
        let choices = (0..1_u32 << here.len()).filter_map(|choice| {
            let chosen = (0..here.len())
                .filter(|at| choice >> at & 1 == 1)
                .map(|at| here[at]);
            let chosen: Vec<_> = chosen.collect();
            let variant = Variant::of_sets(events.sets(), chosen.clone());
            let bits = chosen.iter().fold(0, |bits, set| bits | 1 << set.0);
            (bound.cost_of(variant.units()) <= bound.limit()).then_some(bits)
        });
        let choices: Vec<u32> = choices.collect();
        unions = unions
            .iter()
            .flat_map(|union| choices.iter().map(move |c| union | c))
            .collect();
    }
    unions
        .into_iter()
        .map(|union| union.count_ones() as usize)
        .max()
        .unwrap_or(0)
}

fn sequences(units: u32, count: std::ops::Range<usize>) -> impl Strategy<Value = Vec<Vec<UnitId>>> {
    vec(vec((0..units).prop_map(UnitId), 1..4), count)
}

fn runs(units: u32, instances: usize) -> impl Strategy<Value = Vec<Run>> {
    let trace = vec((0..units).prop_map(UnitId), 0..16);
    vec(
        (0..instances, trace).prop_map(|(instance, trace)| Run { instance, trace }),
        0..6,
    )
}

fn config(cases: u32) -> ProptestConfig {
    ProptestConfig {
        cases,
        failure_persistence: None,
        rng_seed: proptest::test_runner::RngSeed::Fixed(2006),
        ..ProptestConfig::default()
    }
}

proptest! {
    #![proptest_config(config(1500))]

    #[test]
    fn reports_are_those_of_the_definition(
        sequences in sequences(5, 1..8), probes in vec((0_u32..5).prop_map(UnitId), 0..5),
        trace in vec((0_u32..5).prop_map(UnitId), 0..20),
    ) {
        let events = Events::new(5, &sequences).unwrap();
        let distribution = Distribution::new(vec![Variant::of_units(probes.clone())]);
        let runs = [Run { instance: 0, trace: trace.clone() }];
        let found = award(&events, &distribution, &[VariantId(0)], &runs, Observation::Order).unwrap();
        let [seen, falsely] = by_definition(&sequences, &probes, &trace);
        prop_assert_eq!(found.seen.iter().map(|set| set.index()).collect::<BTreeSet<_>>(), seen);
        prop_assert_eq!(found.falsely.iter().map(|set| set.index()).collect::<BTreeSet<_>>(), falsely);
        // With marks the same events are seen, since what happened has hit all its units.
        let marks = award(&events, &distribution, &[VariantId(0)], &runs, Observation::Marks).unwrap();
        prop_assert_eq!(marks.seen, found.seen);
    }

    #[test]
    fn probes_everywhere_show_all_and_nothing_false(sequences in sequences(5, 1..8), runs in runs(5, 3)) {
        let events = Events::new(5, &sequences).unwrap();
        let all = Variant::of_units((0..5).map(UnitId).collect());
        let full = Distribution::new(vec![all]);
        let found = award(&events, &full, &[VariantId(0); 3], &runs, Observation::Order).unwrap();
        prop_assert_eq!(&found.seen, &found.happened);
        prop_assert_eq!(found.falsely, []);
    }

    #[test]
    fn the_posterior_optimum_is_close_to_the_exact_one(
        sequences in sequences(6, 1..8), runs in runs(6, 3), limit in 0_u64..6,
    ) {
        let (events, bound) = (Events::new(6, &sequences).unwrap(), Bound::probes(limit));
        let best = optimum(&events, &runs, 3, &bound).unwrap();
        let exact = exact(&events, &runs, 3, &bound);
        prop_assert!(best.seen.len() <= exact && exact <= best.upper, "{exact} of {best:?}");
        let degree = (0..6).map(|unit| sequences.iter().filter(|s| s.contains(&UnitId(unit))).count());
        prop_assert!(best.seen.len() * (2 * degree.max().unwrap() + 3) >= exact);
        prop_assert_eq!(keeps_its_promise(&best.distribution, events.sets(), &bound), Ok(()));
        // Its award on these runs is what it says, and no other distribution has more than the exact.
        let own = [0, 1, 2].map(VariantId);
        let awarded = award(&events, &best.distribution, &own, &runs, Observation::Order).unwrap();
        prop_assert_eq!(awarded.seen, best.seen);
        let other = balanced_probes(6, &bound, 3, limit).unwrap();
        let other = award(&events, &other, &own, &runs, Observation::Order).unwrap();
        prop_assert!(other.seen.len() <= exact);
        let dropped = by_dropping(&events, &runs, 3, &bound).unwrap();
        prop_assert_eq!(keeps_its_promise(&dropped, events.sets(), &bound), Ok(()));
    }
}
