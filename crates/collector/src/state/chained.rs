//! By which chains of calls the functions of an instance were called, and how often.
//!
//! A chain is named by a checksum of what it is: of the name of that above it, and its last step. So two who know of different
//! chains have the same names for those that both know. The names are the instance's own affair: between instances chains are
//! put together by their steps (`answers.rs`), so that nobody can make one of his look like another's.

use std::collections::{BTreeMap, HashMap};

use serde::{Deserialize, Serialize};
use tomo_wire::checksum;
use tomo_wire::report::{Link, ReportView};
use zerocopy::IntoBytes as _;

use super::Counts;

/// What names a chain; 0 is none.
pub type ChainName = u128;

/// The last step of a chain, and the chain above.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Step {
    /// The chain above; of the first step no chain but the variant, by number.
    pub above: ChainName,
    /// Whether it is the first step.
    pub is_first: bool,
    /// How the function was entered, and from where, as the report has it.
    pub way: u32,
    /// From where.
    pub site: u32,
    /// The function.
    pub unit: u32,
}

/// The chains of an instance.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Chained {
    steps: BTreeMap<ChainName, Step>,
    calls: Counts<ChainName>,
}

impl Step {
    fn of(link: &Link, above: Option<ChainName>, variant: u32) -> Self {
        Self {
            above: above.unwrap_or(variant.into()),
            is_first: above.is_none(),
            way: link.way.get(),
            site: link.site.get(),
            unit: link.unit.get(),
        }
    }

    /// Its name: two checksums of 64 bits over different words.
    fn name(&self) -> ChainName {
        let words = [self.way, self.site, self.unit, u32::from(self.is_first)];
        let half = |salt: u8| {
            let above = self.above.to_le_bytes();
            u128::from(checksum(&[&above, words.as_bytes(), &[salt]].concat()))
        };
        half(0) << 64 | half(1)
    }
}

/// The chains of a report by name, each with its last step and how often it was called.
fn chains_of(report: &ReportView<'_>) -> BTreeMap<ChainName, (Step, u64)> {
    let variant = report.header.variant.get();
    let mut names: Vec<ChainName> = Vec::with_capacity(report.links.len());
    let mut chains: BTreeMap<ChainName, (Step, u64)> = BTreeMap::new();
    for link in report.links {
        let above = link.parent.get().checked_sub(1);
        let above = above.and_then(|at| names.get(at as usize).copied());
        let step = Step::of(link, above, variant);
        let name = step.name();
        names.push(name);
        let (_, sum) = chains.entry(name).or_insert((step, 0));
        *sum = sum.saturating_add(link.calls.get());
    }
    chains
}

fn rows(chains: &BTreeMap<ChainName, (Step, u64)>) -> Vec<(ChainName, u64)> {
    chains
        .iter()
        .map(|(name, (_, calls))| (*name, *calls))
        .collect()
}

impl Chained {
    pub(super) fn report(&mut self, report: &ReportView<'_>) {
        let chains = chains_of(report);
        self.calls.report(report, rows(&chains));
        for (name, (step, _)) in chains {
            self.add(name, step);
        }
    }

    pub(super) fn knows(&self, report: &ReportView<'_>) -> bool {
        self.calls.knows(report, rows(&chains_of(report)))
    }

    pub(super) fn join(&mut self, other: Self) {
        self.calls.join(other.calls);
        for (name, step) in other.steps {
            self.add(name, step);
        }
    }

    /// Of two steps of one name, which do not occur by chance, the lesser stays with everybody.
    fn add(&mut self, name: ChainName, step: Step) {
        let known = self.steps.entry(name).or_insert(step);
        *known = step.min(*known);
    }

    pub(super) fn are_sound(&self) -> bool {
        self.calls.are_sound()
    }

    /// What is kept: steps, and rows of counts.
    pub(crate) fn rows(&self) -> u64 {
        self.steps.len() as u64 + self.calls.rows()
    }

    /// Each chain of the instance, those above before those below: its last step, where the one above it is among them, and
    /// how often it was called.
    #[must_use]
    pub fn all(&self) -> Vec<(Step, Option<usize>, u64)> {
        let mut calls = BTreeMap::new();
        self.calls.add_to(&mut calls);
        let mut below: HashMap<Option<ChainName>, Vec<ChainName>> = HashMap::new();
        for (name, step) in &self.steps {
            let above = (!step.is_first).then_some(step.above);
            below.entry(above).or_default().push(*name);
        }
        let mut all = Vec::with_capacity(self.steps.len());
        let mut open: Vec<(ChainName, Option<usize>)> = Vec::new();
        let mut next = |open: &mut Vec<_>, above: Option<ChainName>, at: Option<usize>| {
            let names = below.remove(&above).unwrap_or_default();
            open.extend(names.into_iter().map(|name| (name, at)));
        };
        next(&mut open, None, None);
        while let Some((name, above)) = open.pop() {
            if let Some(step) = self.steps.get(&name) {
                next(&mut open, Some(name), Some(all.len()));
                all.push((*step, above, calls.get(&name).copied().unwrap_or(0)));
            }
        }
        all
    }
}
