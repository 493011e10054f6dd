//! What a collector knows of a campaign: a join of all that was accepted.
//!
//! States form a join semilattice: [`State::join`] is commutative, associative and idempotent, and
//! taking a report or an assignment is joining the small state that it stands for. So reports may come
//! twice and in any order, segments may be read in any order and again, and two collectors that read
//! the same segments know the same. Everything that people ask is derived from it (`answers.rs`).
//!
//! One promise of instances enters: a run has at most one final report. Where an instance breaks it,
//! what is wrong is the length of its own runs, and nothing else.

mod chained;
mod counts;
mod evidence;
mod hits;
mod instance;
mod runs;

pub use chained::{ChainName, Chained, Step};
pub use counts::Counts;
pub(crate) use evidence::MOST_RUNS;
pub use evidence::{Crashed, Evidence, Evidences};
pub use hits::Hits;
pub use instance::{Instance, Latest};
pub use runs::{Run, Runs, Sums};

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use tomo_protocol::InstanceId;
use tomo_wire::report::ReportView;

use crate::hunt::Edition;

/// What is known of a campaign.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct State {
    instances: BTreeMap<[u8; 16], Instance>,
    /// Of a search: what was decided, by number, and when; of several decisions of one number the earliest counts.
    editions: BTreeMap<u32, (i64, Edition)>,
    keeps: Keeps,
}

/// What is kept beside what each run says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Keeps {
    /// What runs say one by one, as a search wants it.
    pub evidence: bool,
    /// How often units were hit.
    pub counts: bool,
    /// By which chains of calls.
    pub chains: bool,
}

impl State {
    /// Of nothing.
    #[must_use]
    pub fn of(keeps: Keeps) -> Self {
        Self {
            keeps,
            ..Self::default()
        }
    }

    /// Takes what was decided at this time; whether that changed anything.
    pub fn edition(&mut self, edition: Edition, at: i64) -> bool {
        let (number, new) = (edition.number, (at, edition));
        match self.editions.get(&number) {
            Some(known) if *known <= new => false,
            _ => {
                self.editions.insert(number, new);
                true
            }
        }
    }

    /// What was decided, in order, and when.
    pub fn editions(&self) -> impl Iterator<Item = (i64, &Edition)> {
        self.editions.values().map(|(at, edition)| (*at, edition))
    }

    /// Takes a report that was accepted at this time; gives those of its units that the instance had not
    /// hit before.
    pub fn report(&mut self, report: &ReportView<'_>, at: i64) -> Vec<u32> {
        let instance = self.instances.entry(report.header.instance).or_default();
        instance.report(report, at, self.keeps)
    }

    /// Takes an assignment that was made at this time.
    pub fn assign(&mut self, instance: InstanceId, variant: u32, at: i64) {
        let instance = self.instances.entry(instance.0).or_default();
        instance.assign(variant, at);
    }

    /// Takes all that another state knows of one instance; gives those of its units that the instance
    /// had not hit before.
    pub fn join_instance(&mut self, id: InstanceId, other: Instance) -> Vec<u32> {
        match self.instances.entry(id.0) {
            std::collections::btree_map::Entry::Vacant(free) => {
                let units = other.hits.units().collect();
                free.insert(other);
                units
            }
            std::collections::btree_map::Entry::Occupied(mut known) => known.get_mut().join(other),
        }
    }

    /// Takes all that another state knows.
    pub fn join(&mut self, other: Self) {
        for (id, instance) in other.instances {
            self.join_instance(InstanceId(id), instance);
        }
        for (at, edition) in other.editions.into_values() {
            self.edition(edition, at);
        }
        self.keeps.evidence |= other.keeps.evidence;
        self.keeps.counts |= other.keeps.counts;
        self.keeps.chains |= other.keeps.chains;
    }

    /// Whether a report would add nothing.
    #[must_use]
    pub fn knows(&self, report: &ReportView<'_>) -> bool {
        let instance = self.instances.get(&report.header.instance);
        instance.is_some_and(|instance| instance.knows(report, self.keeps))
    }

    /// What is known of one instance.
    #[must_use]
    pub fn instance(&self, id: InstanceId) -> Option<&Instance> {
        self.instances.get(&id.0)
    }

    /// All instances, in the order of their names.
    pub fn instances(&self) -> impl ExactSizeIterator<Item = (InstanceId, &Instance)> {
        let instances = self.instances.iter();
        instances.map(|(id, instance)| (InstanceId(*id), instance))
    }
}
