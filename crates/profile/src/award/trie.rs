//! All events in one tree, so that a walk along a trace tries all that begin at one place at once.
//!
//! Source: Fredkin, *Trie Memory*, Comm. ACM 3(9), 1960. One hash table for the edges of all nodes.

use std::collections::HashMap;
use tomo_plan::distribution::{SetId, UnitId};

/// Events by their sequences of units.
#[derive(Clone, Debug, Default)]
pub(super) struct Trie {
    edges: HashMap<(u32, UnitId), u32>,
    /// Per node that ends an event, the events. The root is node 0 and ends none.
    ends: HashMap<u32, Vec<SetId>>,
}

impl Trie {
    /// Adds an event. There are less than 2^32 units in all, so nodes do not run out.
    pub(super) fn insert(&mut self, units: &[UnitId], event: SetId) {
        let mut node = 0;
        for &unit in units {
            let next = self.edges.len() as u32 + 1;
            node = *self.edges.entry((node, unit)).or_insert(next);
        }
        self.ends.entry(node).or_default().push(event);
    }

    /// Calls `found` with every event that these units begin with, and its length.
    pub(super) fn walk(
        &self,
        units: impl Iterator<Item = UnitId>,
        mut found: impl FnMut(SetId, usize),
    ) {
        let mut node = 0;
        for (index, unit) in units.enumerate() {
            match self.edges.get(&(node, unit)) {
                Some(&next) => node = next,
                None => return,
            }
            for &event in self.ends.get(&node).into_iter().flatten() {
                found(event, index + 1);
            }
        }
    }
}
