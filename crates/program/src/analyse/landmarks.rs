//! What is known of tables over the whole program while jumps are resolved: where they begin and end, and which jumps keep changing.

use std::collections::BTreeSet;

use rustc_hash::{FxHashMap, FxHashSet};

use super::code::Pos;
use super::state::Resolved;
use super::tables::Finding;
use crate::{Address, Resolution};

/// How often a jump may take back where it leads before it is given up: the code that its table brings to light may
/// come back to it in a way that makes the table unknown, so that the code is unknown again, and so on for ever.
const MOST_RETRACTIONS: u32 = 8;

/// Facts about the whole program that decide where tables end.
#[derive(Default)]
pub(crate) struct Landmarks {
    /// Where known tables begin.
    pub(crate) tables: BTreeSet<Address>,
    /// Tables, by their first entry, that were once found to have no entry behind the given one.
    /// What an unexplored entry seems to be may change once it is explored; a table only shrinks.
    pub(crate) caps: FxHashMap<Address, Address>,
    /// Jumps, by the end of their block, whose guard once turned out not to bound the table.
    pub(crate) loose: FxHashSet<Pos>,
    /// How often jumps, by the end of their block, took back where they lead.
    retractions: FxHashMap<Pos, u32>,
    /// Words of data that hold an address of code that is no fragment's start: the address held,
    /// then the word's own.
    pub(crate) labels: Vec<(Pos, Address)>,
}

impl Landmarks {
    /// Remembers what examining a function again took away from its tables; whether that is
    /// anything.
    pub(crate) fn note_shrinking(&mut self, old: &[Finding], new: &[Finding]) -> bool {
        let mut shrunk = false;
        for (old, new) in old
            .iter()
            .filter_map(|old| Some((old, new.iter().find(|new| new.end == old.end)?)))
        {
            let was_guarded = old.resolved.resolution == Resolution::GuardedTable;
            if was_guarded && new.resolved.resolution != Resolution::GuardedTable {
                shrunk |= self.loose.insert(new.end);
            }
            if takes_back(&old.resolved, &new.resolved) {
                shrunk |= self.note_retraction(new.end);
            }
            for (first, last) in &new.resolved.tables {
                if old
                    .resolved
                    .tables
                    .iter()
                    .any(|table| table.0 == *first && table.1 > *last)
                {
                    shrunk |= self.caps.insert(*first, *last) != Some(*last);
                }
            }
        }
        shrunk
    }

    /// Notes that a jump took something back; whether it is given up for that.
    fn note_retraction(&mut self, end: Pos) -> bool {
        let retractions = self.retractions.entry(end).or_default();
        *retractions += 1;
        *retractions == MOST_RETRACTIONS
    }

    /// Gives a jump up; whether that is news.
    pub(crate) fn give_up(&mut self, end: Pos) -> bool {
        !self.is_given_up(end) && {
            self.retractions.insert(end, MOST_RETRACTIONS);
            true
        }
    }

    /// Whether the jump is unresolved, whatever the graph.
    pub(crate) fn is_given_up(&self, end: Pos) -> bool {
        let retractions = self.retractions.get(&end);
        retractions.is_some_and(|&retractions| retractions >= MOST_RETRACTIONS)
    }

    /// The labels in a run of code but for its start.
    pub(crate) fn labels_in(&self, start: Pos, end: Pos) -> &[(Pos, Address)] {
        let from = self.labels.partition_point(|label| label.0 <= start);
        let to = self.labels.partition_point(|label| label.0 < end);
        &self.labels[from..to.max(from)]
    }
}

/// Whether a jump no longer leads where it was said to.
pub(crate) fn takes_back(old: &Resolved, new: &Resolved) -> bool {
    let kept: FxHashSet<Pos> = new.targets.iter().copied().collect();
    old.targets.iter().any(|target| !kept.contains(target))
}
