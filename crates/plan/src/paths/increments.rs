//! Values moved to the chords of a spanning tree, where little runs.
//!
//! Source: BL96, §3.2 (event counting), after Ball, *Efficiently Counting Program Events with
//! Support for On-Line Queries*, TOPLAS 16(5), 1994. O(m log m).
//!
//! The argument, without cycles: give every node a potential, and add to the value of each way the
//! potential of where it comes from, less that of where it goes. Along a path potentials cancel,
//! but for those of source and sink; these are the same (the tree joins them by an arc of value
//! zero), so every sum stays. Potentials such that all ways in the tree come to zero exist, because
//! it is a tree. What is left stands on chords; with a maximum tree, on the cheapest.
//!
//! Deviation: arithmetic is modulo 2^64. Increments may be below zero, and sums on the way may wrap;
//! whole sums are right because they fit.

use tomo_graph::{NodeId, Weight, maximum_forest};

use super::{ArcId, DagNode, PathDag};

/// What each way adds to the register, so that sums along whole paths are those of the values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Increments {
    increments: Vec<u64>,
    is_chord: Vec<bool>,
    potentials: Vec<u64>,
}

impl Increments {
    /// Moves `values` to the chords of a maximum spanning tree under `weights`; both by [`ArcId`].
    #[must_use]
    pub fn of(dag: &PathDag, values: &[u64], weights: &[Weight]) -> Self {
        // Sink and source are one node to the tree.
        let end = |node: DagNode| NodeId(if node == dag.sink() { 0 } else { node.0 });
        let arcs: Vec<_> = dag
            .arcs()
            .iter()
            .zip(weights)
            .map(|(arc, &weight)| (end(arc.from), end(arc.to), weight))
            .collect();
        let in_tree = maximum_forest(dag.node_count(), &arcs);
        let potentials = potentials(dag, values, &in_tree);
        Self::by_potentials(dag, values, potentials, |at| !in_tree[at])
    }

    /// The values as they stand.
    #[must_use]
    pub fn unmoved(dag: &PathDag, values: &[u64]) -> Self {
        let potentials = vec![0; dag.node_count()];
        Self::by_potentials(dag, values, potentials, |at| values[at] != 0)
    }

    pub(super) fn by_potentials(
        dag: &PathDag,
        values: &[u64],
        potentials: Vec<u64>,
        is_chord: impl Fn(usize) -> bool,
    ) -> Self {
        let moved = |(arc, value): (&super::DagArc, &u64)| {
            let before = value.wrapping_add(potentials[arc.from.index()]);
            before.wrapping_sub(potentials[arc.to.index()])
        };
        Self {
            increments: dag.arcs().iter().zip(values).map(moved).collect(),
            is_chord: (0..values.len()).map(is_chord).collect(),
            potentials,
        }
    }

    /// What a way adds, modulo 2^64.
    #[must_use]
    pub fn of_arc(&self, id: ArcId) -> u64 {
        self.increments[id.index()]
    }

    /// What all ways add, by [`ArcId`].
    #[must_use]
    pub fn all(&self) -> &[u64] {
        &self.increments
    }

    /// Whether a way is a chord. Others add nothing.
    #[must_use]
    pub fn is_chord(&self, id: ArcId) -> bool {
        self.is_chord[id.index()]
    }

    /// At `node` the register is short of the sum of the values so far by this, modulo 2^64.
    #[must_use]
    pub fn potential(&self, node: DagNode) -> u64 {
        self.potentials[node.index()]
    }

    /// How many ways add something: the number of probes, as SPP §4 counts them.
    #[must_use]
    pub fn probes(&self) -> usize {
        self.increments.iter().filter(|&&value| value != 0).count()
    }
}

/// The potentials under which the ways in the tree add nothing. Source and sink have zero.
fn potentials(dag: &PathDag, values: &[u64], in_tree: &[bool]) -> Vec<u64> {
    let mut potentials = vec![0u64; dag.node_count()];
    let mut known = vec![false; dag.node_count()];
    let mut work = vec![DagNode::SOURCE, dag.sink()];
    while let Some(node) = work.pop() {
        if std::mem::replace(&mut known[node.index()], true) {
            continue;
        }
        let here = potentials[node.index()];
        let out = dag.out(node).map(|id| (id, dag.arc(id).to, true));
        let into = dag
            .into(node)
            .iter()
            .map(|&id| (id, dag.arc(id).from, false));
        for (id, other, forward) in out.chain(into) {
            if in_tree[id.index()] && !known[other.index()] {
                let value = values[id.index()];
                potentials[other.index()] = if forward {
                    here.wrapping_add(value)
                } else {
                    here.wrapping_sub(value)
                };
                work.push(other);
            }
        }
    }
    potentials
}
