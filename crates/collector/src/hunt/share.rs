//! Which runs count: those that can be labelled, as far as their instance has not had its share.
//!
//! Of each edition an instance counts with `instance_runs` runs at most. So a broken or hostile one weighs no more than any
//! that runs that often. Where more than half of those that report an edition have had their share, it is doubled: so a
//! fleet of few instances with many runs goes on, and a minority raises nothing. What is beyond the share is counted
//! as such, and counts later if the share grows. Runs are taken in the order in which they were accepted.

use std::collections::BTreeMap;

use tomo_protocol::Search;
use tomo_wire::report::{Outcome, Told};

use crate::state::{Evidence, Instance, MOST_RUNS, State};

/// How a run went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Label {
    /// It did not fail.
    Passed,
    /// It failed for this cause.
    Failed(u64),
}

/// A run that counts.
#[derive(Clone, Copy, Debug)]
pub(super) struct Counted<'e> {
    pub(super) instance: [u8; 16],
    pub(super) variant: u32,
    pub(super) label: Label,
    pub(super) evidence: &'e Evidence,
}

/// All runs that count, in order, and those that do not.
#[derive(Debug, Default)]
pub(super) struct Shared<'e> {
    pub(super) runs: Vec<Counted<'e>>,
    pub(super) unlabelled: u64,
    pub(super) beyond: u64,
}

/// The signals by which a program's own fault ends it, where nothing is known of a crash.
const OWN: [i32; 8] = [3, 4, 5, 6, 7, 8, 11, 31];

/// How a run went; nothing where somebody ended it from outside, or nobody saw it end.
pub(super) fn label(evidence: &Evidence, spec: &Search) -> Option<Label> {
    let of = |kind: u64, what: i64| {
        let bytes = [kind.to_le_bytes(), what.to_le_bytes()].concat();
        tomo_wire::checksum(&bytes).max(1)
    };
    let cause = evidence.cause;
    let named = |otherwise: u64| if cause != 0 { cause } else { otherwise };
    match (evidence.told(), evidence.outcome()) {
        (Told::Success, _) => Some(Label::Passed),
        (Told::Failure, _) => Some(Label::Failed(named(of(3, 0)))),
        (Told::Nothing, Outcome::Exited) => {
            let code = evidence.status;
            match spec.success.contains(&code) {
                true => Some(Label::Passed),
                false => Some(Label::Failed(named(of(1, code.into())))),
            }
        }
        (Told::Nothing, Outcome::Signal) => {
            let signal = evidence.status;
            let own = OWN.contains(&signal);
            own.then(|| Label::Failed(named(of(2, signal.into()))))
        }
        (Told::Nothing, Outcome::Running | Outcome::Unseen) => None,
    }
}

/// The runs of a state that count.
pub(super) fn runs<'e>(state: &'e State, spec: &Search) -> Shared<'e> {
    let mut all = Vec::new();
    for (id, instance) in state.instances() {
        let each = instance.evidence.all();
        all.extend(each.map(|(variant, evidence)| (id.0, variant, evidence)));
    }
    all.sort_unstable_by_key(|(id, _, evidence)| (evidence.at, *id, evidence.run));
    let mut shared = Shared::default();
    let mut editions: BTreeMap<u32, Edition<'e>> = BTreeMap::new();
    for (instance, variant, evidence) in all {
        let Some(label) = label(evidence, spec) else {
            shared.unlabelled += 1;
            continue;
        };
        let run = Counted {
            instance,
            variant,
            label,
            evidence,
        };
        let edition = editions.entry(variant >> 8).or_insert_with(|| Edition {
            share: spec.instance_runs.max(1),
            counted: BTreeMap::new(),
            full: 0,
            waiting: Vec::new(),
        });
        edition.take(run, &mut shared.runs);
    }
    let waiting = editions
        .values()
        .map(|edition| edition.waiting.len() as u64);
    shared.beyond = waiting.sum::<u64>() + cut(state);
    shared
}

/// Runs that are not kept one by one any more, since their instance had made so many of a variant.
fn cut(state: &State) -> u64 {
    let of = |instance: &Instance| -> u64 {
        let each = instance.runs.by_variant().into_iter();
        let full = each.filter_map(|(variant, sums)| {
            let kept = instance.evidence.of_variant(variant);
            let over = sums.runs.saturating_sub(sums.running + sums.unobserved);
            (kept == MOST_RUNS).then(|| over.saturating_sub(kept as u64))
        });
        full.sum()
    };
    state.instances().map(|(_, instance)| of(instance)).sum()
}

/// The shares of one edition.
struct Edition<'e> {
    share: u64,
    /// By instance: runs that count.
    counted: BTreeMap<[u8; 16], u64>,
    /// Instances that have had their share.
    full: usize,
    waiting: Vec<Counted<'e>>,
}

impl<'e> Edition<'e> {
    /// Takes a run, and those that waited and count now.
    fn take(&mut self, run: Counted<'e>, runs: &mut Vec<Counted<'e>>) {
        self.count(run, runs);
        while self.full * 2 > self.counted.len() && !self.waiting.is_empty() {
            self.share = self.share.saturating_mul(2);
            self.full = 0;
            for run in std::mem::take(&mut self.waiting) {
                self.count(run, runs);
            }
        }
    }

    fn count(&mut self, run: Counted<'e>, runs: &mut Vec<Counted<'e>>) {
        let counted = self.counted.entry(run.instance).or_default();
        if *counted == self.share {
            return self.waiting.push(run);
        }
        *counted += 1;
        self.full += usize::from(*counted == self.share);
        runs.push(run);
    }
}
