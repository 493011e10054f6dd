//! What a distribution of probes would have shown of field data: its award, and what it reports
//! falsely.
//!
//! Source: Diep, Cohen, Elbaum, *Probe Distribution Techniques to Profile Events in Deployed
//! Software*, ISSRE 2006 (PDT), §4.1 (f, the award) and §5.3 (both metrics). Complete traces of runs are
//! masked with the probes that the run's instance would have carried, and what the masked traces
//! tell of the events is compared with what the complete ones tell (*Full*).
//!
//! - An event **happens** at a place of a trace where its units run one directly after the other, in
//!   its order.
//! - It is **reported** where the record of a run looks as if it had happened
//!   ([`Observation`]).
//! - It is **seen** if it is reported where it happened. The award is the number of different events
//!   that are seen in some run.
//! - It is **falsely reported** if it is reported where it did not happen: PDT's two cases, that Full does not
//!   detect it at all, or does, but not at this location.
//!
//! What could have been seen at best is in [`posterior`].
//!
//! Events are found with a trie, from each place of a trace along the events that begin there:
//! O(length of the trace · length of the longest event) a run for records in order, O(units of all
//! events) more for marks.

pub mod posterior;
mod trie;

use thiserror::Error;
use tomo_plan::distribution::{
    Distribution, DistributionError, SetId, UnitId, UnitSets, Variant, VariantId,
};
use tomo_plan::random::Random;
use trie::Trie;

/// Field data that make no sense.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum AwardError {
    /// The events are no sets of units that exist.
    #[error(transparent)]
    Events(#[from] DistributionError),
    /// A trace names a unit that is not there.
    #[error("a trace names unit {}, but there are {units} units", .unit.0)]
    NoSuchUnit {
        /// What it names.
        unit: UnitId,
        /// How many units there are.
        units: usize,
    },
    /// A run is of an instance that was assigned no variant.
    #[error("instance {0} has no variant")]
    NoVariant(usize),
    /// An instance was assigned a variant that is not there.
    #[error("there is no variant {}", .0.0)]
    NoSuchVariant(VariantId),
}

/// Events as sequences of units.
#[derive(Clone, Debug)]
pub struct Events {
    sets: UnitSets,
    trie: Trie,
}

impl Events {
    /// The events over units `0..unit_count`, numbered in this order. A unit may come twice in an
    /// event.
    ///
    /// # Errors
    /// [`AwardError::Events`].
    pub fn new<S: AsRef<[UnitId]>>(
        unit_count: usize,
        events: impl IntoIterator<Item = S>,
    ) -> Result<Self, AwardError> {
        let events: Vec<S> = events.into_iter().collect();
        let sets = UnitSets::new(unit_count, events.iter().map(AsRef::as_ref))?;
        let mut trie = Trie::default();
        for (id, event) in sets.ids().zip(&events) {
            trie.insert(event.as_ref(), id);
        }
        Ok(Self { sets, trie })
    }

    /// The units that each event needs.
    #[must_use]
    pub fn sets(&self) -> &UnitSets {
        &self.sets
    }

    /// The different events that happen in a trace, ascending: what Full detects.
    #[must_use]
    pub fn happened(&self, trace: &[UnitId]) -> Vec<SetId> {
        let mut found = Vec::new();
        for from in 0..trace.len() {
            self.trie
                .walk(trace[from..].iter().copied(), |event, _| found.push(event));
        }
        different(found)
    }

    fn check(&self, runs: &[Run]) -> Result<(), AwardError> {
        let units = self.sets.unit_count();
        let mut traced = runs.iter().flat_map(|run| &run.trace);
        match traced.find(|unit| unit.index() >= units) {
            Some(&unit) => Err(AwardError::NoSuchUnit { unit, units }),
            None => Ok(()),
        }
    }
}

/// One run, as it would be known if every unit had a probe.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Run {
    /// The instance that ran.
    pub instance: usize,
    /// The units that ran, in order.
    pub trace: Vec<UnitId>,
}

/// What the record of a run tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Observation {
    /// The probes that were hit, in order, every time. An event is reported where its units
    /// follow each other in the record. PDT's study is of this kind.
    Order,
    /// Which probes were hit, no more. An event is reported in a run in which all its units were
    /// hit; the place is the run.
    Marks,
}

/// What a distribution shows of field data, each list ascending.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Award {
    /// The events that happened.
    pub happened: Vec<SetId>,
    /// Those reported where they happened. Their number is the award.
    pub seen: Vec<SetId>,
    /// Those reported where they did not happen. An event may be in both lists.
    pub falsely: Vec<SetId>,
}

impl Award {
    /// The events seen for each one that the best distribution would have shown (PDT's first
    /// metric); 1 if there is none.
    #[must_use]
    pub fn share_of(&self, best: usize) -> f64 {
        if best == 0 {
            1.0
        } else {
            self.seen.len() as f64 / best as f64
        }
    }

    /// The events falsely reported for each one seen (PDT's second metric, Figure 3); none if nothing was
    /// seen.
    #[must_use]
    pub fn false_ratio(&self) -> Option<f64> {
        let seen = self.seen.len();
        (seen > 0).then(|| self.falsely.len() as f64 / seen as f64)
    }
}

/// Variants for instances, in a random order: each variant to as many instances as any other, but
/// for one. Empty if there are no variants.
#[must_use]
pub fn assign(instances: usize, variants: usize, seed: u64) -> Vec<VariantId> {
    let mut assigned: Vec<_> = (0..variants as u32)
        .cycle()
        .take(instances)
        .map(VariantId)
        .collect();
    Random::new(seed).shuffle(&mut assigned);
    assigned
}

/// The award of a distribution, where instance `i` carries the variant `assignment[i]`.
///
/// # Errors
/// [`AwardError::NoSuchUnit`], [`NoVariant`](AwardError::NoVariant),
/// [`NoSuchVariant`](AwardError::NoSuchVariant).
pub fn award(
    events: &Events,
    distribution: &Distribution,
    assignment: &[VariantId],
    runs: &[Run],
    observation: Observation,
) -> Result<Award, AwardError> {
    events.check(runs)?;
    let mut award = Award::default();
    for run in runs {
        let id = *assignment
            .get(run.instance)
            .ok_or(AwardError::NoVariant(run.instance))?;
        let variant = distribution.variants().get(id.index());
        let variant = variant.ok_or(AwardError::NoSuchVariant(id))?;
        award.happened.append(&mut events.happened(&run.trace));
        match observation {
            Observation::Order => add_ordered(&mut award, events, variant, &run.trace),
            Observation::Marks => add_marked(&mut award, events, variant, &run.trace),
        }
    }
    Ok(Award {
        happened: different(award.happened),
        seen: different(award.seen),
        falsely: different(award.falsely),
    })
}

fn add_ordered(award: &mut Award, events: &Events, variant: &Variant, trace: &[UnitId]) {
    let recorded = trace
        .iter()
        .enumerate()
        .filter(|(_, unit)| variant.has(**unit));
    let (places, units): (Vec<usize>, Vec<UnitId>) = recorded.map(|(at, &unit)| (at, unit)).unzip();
    for from in 0..units.len() {
        events
            .trie
            .walk(units[from..].iter().copied(), |event, length| {
                // It happened here if nothing ran in between that has no probe.
                let is_whole = places[from + length - 1] - places[from] == length - 1;
                let list = if is_whole {
                    &mut award.seen
                } else {
                    &mut award.falsely
                };
                list.push(event);
            });
    }
}

fn add_marked(award: &mut Award, events: &Events, variant: &Variant, trace: &[UnitId]) {
    let mut is_marked = vec![false; events.sets.unit_count()];
    for unit in trace.iter().filter(|unit| variant.has(**unit)) {
        is_marked[unit.index()] = true;
    }
    let happened = events.happened(trace);
    for event in events.sets.ids() {
        if events
            .sets
            .units(event)
            .iter()
            .all(|unit| is_marked[unit.index()])
        {
            let has_happened = happened.binary_search(&event).is_ok();
            let list = if has_happened {
                &mut award.seen
            } else {
                &mut award.falsely
            };
            list.push(event);
        }
    }
}

fn different(mut events: Vec<SetId>) -> Vec<SetId> {
    events.sort_unstable();
    events.dedup();
    events
}
