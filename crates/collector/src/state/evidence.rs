//! What runs of a search say: how each ended, and what was true in it.
//!
//! Of each variant only the first 512 runs of an instance are kept, by when they were accepted: the smallest
//! of a union are a join, too, and nobody fills the memory. Nor are more than 16 places kept at
//! which an instance crashed.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use tomo_wire::report::{Outcome, ReportView, Told};

/// Runs of an instance that are kept of each variant.
pub(crate) const MOST_RUNS: usize = 512;
/// Places of crashes that are kept of an instance.
pub(super) const MOST_CRASHES: usize = 16;
/// Frames that tell one crash from another, the innermost first.
const TELLING: usize = 5;

/// The final word of one run. The order is that in which runs are looked at.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Evidence {
    /// When it was accepted.
    pub at: i64,
    /// The run.
    pub run: u64,
    outcome: u32,
    /// The exit code or the signal.
    pub status: i32,
    told: u32,
    /// Names the place of a crash, or what the program told; 0 where there is neither.
    pub cause: u64,
    /// Units that were hit, ascending.
    pub hits: Vec<u32>,
}

impl Evidence {
    /// How it ended.
    #[must_use]
    pub fn outcome(&self) -> Outcome {
        Outcome::from_number(self.outcome).unwrap_or(Outcome::Unseen)
    }

    /// What the program told.
    #[must_use]
    pub fn told(&self) -> Told {
        Told::from_number(self.told).unwrap_or(Told::Nothing)
    }
}

/// A place at which a run crashed: the signal; build ids and stated addresses, the innermost first.
pub type Crashed = (u32, Vec<(Vec<u8>, u64)>);

/// What the runs of an instance say.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Evidences {
    /// By variant; by run within it.
    runs: BTreeMap<u32, BTreeMap<u64, Evidence>>,
    crashes: BTreeMap<u64, Crashed>,
}

impl Evidences {
    /// Takes a run's final report.
    pub(super) fn report(&mut self, report: &ReportView<'_>, at: i64) {
        if !report.outcome.is_final() || report.header.armed.get() == 0 {
            return;
        }
        let header = &report.header;
        let place = crashed(report);
        let cause = match &place {
            Some(place) => name_of(place),
            None => header.cause.get(),
        };
        if let Some(place) = place {
            self.place(cause, place);
        }
        let evidence = Evidence {
            at,
            run: header.run.get(),
            outcome: header.outcome.get(),
            status: header.status.get().cast_signed(),
            told: header.told.get(),
            cause,
            hits: report.hits.iter().map(|hit| hit.get()).collect(),
        };
        self.add(header.variant.get(), evidence);
        self.cut();
    }

    /// Of several places of one cause, which differ in frames that do not tell, the least is kept: whoever hears of them
    /// in whatever order keeps the same.
    fn place(&mut self, cause: u64, place: Crashed) {
        let known = self.crashes.entry(cause).or_insert_with(|| place.clone());
        if place < *known {
            *known = place;
        }
    }

    fn add(&mut self, variant: u32, evidence: Evidence) {
        let runs = self.runs.entry(variant).or_default();
        match runs.entry(evidence.run) {
            std::collections::btree_map::Entry::Vacant(free) => {
                free.insert(evidence);
            }
            std::collections::btree_map::Entry::Occupied(mut known) => {
                if evidence < *known.get() {
                    known.insert(evidence);
                }
            }
        }
    }

    /// Takes what another knows.
    pub(super) fn join(&mut self, other: Self) {
        for (variant, runs) in other.runs {
            for evidence in runs.into_values() {
                self.add(variant, evidence);
            }
        }
        for (cause, place) in other.crashes {
            self.place(cause, place);
        }
        self.cut();
    }

    /// Leaves the first of each.
    fn cut(&mut self) {
        for runs in self.runs.values_mut() {
            while runs.len() > MOST_RUNS {
                let last = runs.values().max().map(|last| last.run);
                last.map(|run| runs.remove(&run));
            }
        }
        while self.crashes.len() > MOST_CRASHES {
            self.crashes.pop_last();
        }
    }

    /// Whether it is as joins leave it.
    pub(super) fn are_sound(&self) -> bool {
        let sound = |runs: &BTreeMap<u64, Evidence>| {
            let ascend = |one: &Evidence| one.hits.is_sorted_by(|a, b| a < b);
            runs.len() <= MOST_RUNS && runs.iter().all(|(run, one)| *run == one.run && ascend(one))
        };
        self.runs.values().all(sound) && self.crashes.len() <= MOST_CRASHES
    }

    /// All that is kept, with the variant of each.
    pub fn all(&self) -> impl Iterator<Item = (u32, &Evidence)> {
        let each = self.runs.iter();
        each.flat_map(|(variant, runs)| runs.values().map(move |one| (*variant, one)))
    }

    /// How much is kept of a variant.
    pub(crate) fn of_variant(&self, variant: u32) -> usize {
        self.runs.get(&variant).map_or(0, BTreeMap::len)
    }

    /// The place that this cause names.
    #[must_use]
    pub fn crash(&self, cause: u64) -> Option<&Crashed> {
        self.crashes.get(&cause)
    }
}

fn crashed(report: &ReportView<'_>) -> Option<Crashed> {
    let frames = report.frames.iter();
    let frames: Vec<_> = frames
        .map(|frame| (frame.build_id().to_vec(), frame.address.get()))
        .collect();
    (!frames.is_empty()).then(|| (report.header.signal.get(), frames))
}

/// Names a place: what its innermost frames are.
fn name_of((signal, frames): &Crashed) -> u64 {
    let mut bytes = signal.to_le_bytes().to_vec();
    for (id, address) in frames.iter().take(TELLING) {
        bytes.extend(id);
        bytes.extend(address.to_le_bytes());
    }
    tomo_wire::checksum(&bytes).max(1)
}
