//! What people ask of a campaign, derived from its state: nothing here is kept.

mod chains;

use std::collections::BTreeMap;

use tomo_protocol::{
    Campaign, Curve, Growth, Instance, Numbers, Profile, Seen, Totals, Units, Unseen, VariantTotals,
};
use tomo_wire::record::Reason;

use crate::state::{self, State, Sums};

fn totals(sums: &Sums) -> Totals {
    Totals {
        runs: sums.runs,
        running: sums.running,
        cut: sums.cut,
        unobserved: sums.unobserved,
        duration: sums.duration,
        cpu: sums.cpu,
    }
}

fn all_runs(state: &State) -> Totals {
    let mut all = Sums::default();
    for (_, instance) in state.instances() {
        all.add(&instance.runs.sums());
    }
    totals(&all)
}

/// Per unit that was seen: when first, and by how many.
fn seen(state: &State) -> BTreeMap<u32, (i64, u32)> {
    let mut seen: BTreeMap<u32, (i64, u32)> = BTreeMap::new();
    for (_, instance) in state.instances() {
        for &(unit, at) in instance.hits.rows() {
            let (first, instances) = seen.entry(unit).or_insert((at, 0));
            *first = at.min(*first);
            *instances += 1;
        }
    }
    seen
}

/// How often each unit was hit, of those that are counted.
fn counts(state: &State) -> BTreeMap<u32, u64> {
    let mut counts = BTreeMap::new();
    for (_, instance) in state.instances() {
        instance.counts.add_to(&mut counts);
    }
    counts
}

/// What all instances saw together; `searched` are the variants that came and went, of a search.
/// O(hits of all instances + units of all variants), of a search units of all instances' variants.
pub(crate) fn profile(
    campaign: &Campaign,
    state: &State,
    searched: Option<&BTreeMap<u32, Units>>,
) -> Profile {
    let seen = seen(state);
    let (watched, counts) = (watched(state), counts(state));
    // Sums stay at the largest number.
    let count = |unit: u32| counts.get(&unit).copied().filter(|sum| *sum < u64::MAX);
    let planned = |one: u32| campaign.variants.get(one as usize).map(|one| &one.units);
    Profile {
        campaign: campaign.id,
        units: campaign.units,
        instances: state.instances().len() as u64,
        totals: all_runs(state),
        variants: by_variant(state, &watched),
        chains: chains::of(state),
        unseen: match searched {
            Some(all) => unseen(&seen, watch_of(campaign.units, state, |one| all.get(&one))),
            None => unseen(&seen, watch_of(campaign.units, state, planned)),
        },
        seen: seen
            .into_iter()
            .map(|(unit, (first, instances))| Seen {
                unit,
                first,
                instances,
                count: count(unit),
            })
            .collect(),
    }
}

/// Per variant, what instances' reports say they ran. That an instance was once assigned another
/// variant does not matter.
fn watched(state: &State) -> BTreeMap<u32, Sums> {
    let mut watched: BTreeMap<u32, Sums> = BTreeMap::new();
    for (_, instance) in state.instances() {
        for (variant, sums) in instance.runs.by_variant() {
            watched.entry(variant).or_default().add(&sums);
        }
    }
    watched
}

fn by_variant(state: &State, watched: &BTreeMap<u32, Sums>) -> Vec<VariantTotals> {
    let mut instances: BTreeMap<u32, u64> = watched.keys().map(|&variant| (variant, 0)).collect();
    let assigned = state
        .instances()
        .filter_map(|(_, instance)| instance.variant());
    for variant in assigned {
        *instances.entry(variant).or_default() += 1;
    }
    let row = |(variant, instances)| VariantTotals {
        variant,
        instances,
        totals: totals(&watched.get(&variant).copied().unwrap_or_default()),
    };
    instances.into_iter().map(row).collect()
}

/// How a unit was watched.
#[derive(Clone, Copy, Default)]
struct Watch {
    duration: u64,
    instances: u64,
    /// The last instance that was counted, from 1.
    last: u64,
}

/// Per unit, for how long it was watched, and by how many instances: each counts once, of however many variants it has reported runs. Of
/// a search it has one after the other. O(units of all variants + of those of each instance with several).
pub(crate) fn watch_of<'v>(
    units: u32,
    state: &State,
    units_of: impl Fn(u32) -> Option<&'v Units>,
) -> Vec<(u64, u64)> {
    let mut watch = vec![Watch::default(); units as usize];
    let mut each = |variant: u32, change: &dyn Fn(&mut Watch)| {
        for unit in units_of(variant).into_iter().flat_map(Units::iter) {
            watch.get_mut(unit as usize).map(change);
        }
    };
    let mut alone: BTreeMap<u32, (u64, u64)> = BTreeMap::new();
    for (number, (_, instance)) in (1..).zip(state.instances()) {
        let runs = instance.runs.by_variant().into_iter();
        let observed = runs.filter(|(_, sums)| sums.unobserved < sums.runs);
        let observed: Vec<(u32, Sums)> = observed.collect();
        if let [(variant, sums)] = observed.as_slice() {
            let (duration, instances) = alone.entry(*variant).or_default();
            *duration = duration.saturating_add(sums.duration);
            *instances += 1;
            continue;
        }
        for (variant, sums) in observed {
            each(variant, &|watch| {
                watch.duration = watch.duration.saturating_add(sums.duration);
                watch.instances += u64::from(watch.last != number);
                watch.last = number;
            });
        }
    }
    for (variant, (duration, instances)) in alone {
        each(variant, &|watch| {
            watch.duration = watch.duration.saturating_add(duration);
            watch.instances += instances;
        });
    }
    let told = watch
        .into_iter()
        .map(|unit| (unit.duration, unit.instances));
    told.collect()
}

/// The units that were not seen, those that were watched equally together; those that were watched for longest come first.
fn unseen(seen: &BTreeMap<u32, (i64, u32)>, watch: Vec<(u64, u64)>) -> Vec<Unseen> {
    let mut groups: BTreeMap<(u64, u64), Vec<u32>> = BTreeMap::new();
    for (unit, watch) in (0..).zip(watch) {
        if !seen.contains_key(&unit) {
            groups.entry(watch).or_default().push(unit);
        }
    }
    let group = |((duration, instances), units)| Unseen {
        units: Units::of(units),
        instances,
        duration,
    };
    groups.into_iter().rev().map(group).collect()
}

/// How a campaign stands.
pub(crate) fn numbers(campaign: &Campaign, state: &State, retired: bool) -> Numbers {
    let seen = seen(state);
    let mut carried = vec![false; campaign.units as usize];
    for unit in campaign.variants.iter().flat_map(|one| one.units.iter()) {
        if let Some(carried) = carried.get_mut(unit as usize) {
            *carried = true;
        }
    }
    Numbers {
        campaign: campaign.id,
        retired,
        units: campaign.units,
        carried: carried.iter().filter(|carried| **carried).count() as u32,
        seen: seen.len() as u32,
        last_new: seen.values().map(|(first, _)| *first).max(),
        totals: all_runs(state),
        instances: state
            .instances()
            .map(|(id, known)| row(id, known))
            .collect(),
    }
}

fn row(id: tomo_protocol::InstanceId, known: &state::Instance) -> Instance {
    let latest = known.latest.clone().unwrap_or_default();
    let reason = Reason::from_number(latest.reason).filter(|_| latest.refused > 0);
    Instance {
        instance: id,
        variant: known.variant(),
        first_heard: known.first_heard,
        last_heard: known.last_heard,
        version: latest.version.clone(),
        totals: totals(&known.runs.sums()),
        hits: known.hits.rows().len() as u32,
        refused: latest.refused,
        reason: reason.map(|reason| reason.words().to_owned()),
        dropped: latest.dropped().into(),
        unfit: latest.unfit().into(),
    }
}

/// How coverage grew, of all together and of each instance (DIS, Fig. 5).
pub(crate) fn growth(campaign: &Campaign, state: &State) -> Growth {
    let all = seen(state).into_values().map(|(first, _)| first);
    Growth {
        campaign: campaign.id,
        created: campaign.created,
        units: campaign.units,
        all: points(all.collect()),
        instances: state
            .instances()
            .map(|(instance, known)| Curve {
                instance,
                points: points(known.hits.rows().iter().map(|(_, at)| *at).collect()),
            })
            .collect(),
    }
}

/// How many of these times had come by when: a point for each change.
fn points(mut times: Vec<i64>) -> Vec<(i64, u32)> {
    times.sort_unstable();
    let mut points: Vec<(i64, u32)> = Vec::new();
    for (count, time) in (1..).zip(times) {
        match points.last_mut() {
            Some((last, known)) if *last == time => *known = count,
            _ => points.push((time, count)),
        }
    }
    points
}
