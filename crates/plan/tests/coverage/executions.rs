//! All executions of a small flow, by the definition: the sets of nodes of all walks from the entry
//! to a stop, and all unions of such sets.

use std::collections::BTreeSet;

use tomo_graph::{Graph, NodeId};
use tomo_plan::coverage::Flow;

/// The sets of nodes that runs pass, as bits; the run that never enters the function among them.
pub(crate) struct Executions {
    sets: Vec<u32>,
}

impl Executions {
    /// All executions of `flow`, which has at most 16 nodes or so.
    pub(crate) fn of(flow: &Flow<'_>) -> Self {
        let mut walks = BTreeSet::new();
        let start = (flow.entry(), 1u32 << flow.entry().0);
        let mut seen = BTreeSet::from([start]);
        let mut open = vec![start];
        while let Some((node, passed)) = open.pop() {
            if flow.is_exit(node) {
                walks.insert(passed);
            }
            for next in flow.successors(node) {
                let state = (next, passed | 1 << next.0);
                if seen.insert(state) {
                    open.push(state);
                }
            }
        }
        let mut sets = BTreeSet::from([0u32]);
        for walk in walks {
            let more: Vec<u32> = sets.iter().map(|set| set | walk).collect();
            sets.extend(more);
        }
        Self {
            sets: sets.into_iter().collect(),
        }
    }

    /// Whether `node` ever runs.
    pub(crate) fn ever(&self, node: NodeId) -> bool {
        self.sets.iter().any(|set| set >> node.0 & 1 == 1)
    }

    /// Whether any two executions that hit the same of `probes` agree about `node`.
    pub(crate) fn determine(&self, probes: u32, node: NodeId) -> bool {
        let mut told = std::collections::BTreeMap::new();
        self.sets.iter().all(|set| {
            let ran = set >> node.0 & 1;
            *told.entry(set & probes).or_insert(ran) == ran
        })
    }
}
