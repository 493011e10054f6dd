//! Everything that profiling a function's paths takes: breaks, numbers, probes, a table.
//!
//! Source: BL96, §3 and §4 (an array of counts, or a hash table where there are too many paths for
//! one). O(m log m).

use tomo_graph::{EdgeId, FlowArc, FlowGraph, NodeId, Weight};

use super::probes::{self, Register};
use super::split::{SplitError, split};
use super::{Increments, Numbering, Op, PathDag, PathError, Probe, Way};

/// How to keep the counts of paths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policy {
    /// Functions with at most so many paths get an array.
    pub array: u64,
    /// What others get.
    pub beyond: Beyond,
}

/// What functions get that have more paths than an array may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Beyond {
    /// A hash table. Functions with more than 2^64 paths are refused.
    Hash,
    /// A hash table; functions with more than 2^64 paths are split into pieces of so many paths.
    HashOrSplit(u64),
    /// They are split into pieces of so many paths, and get an array if that makes them fit, else
    /// a hash table.
    Split(u64),
}

/// How the counts of a function are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Storage {
    /// In an array of so many counts.
    Array(u64),
    /// In a hash table, by path number. One that runs full has to say how many it did not count.
    Hash,
}

/// Why a function's paths cannot be profiled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PathPlanError {
    /// Too many to number.
    #[error(transparent)]
    Paths(#[from] PathError),
    /// Too many, and no way to split.
    #[error(transparent)]
    Split(#[from] SplitError),
}

/// The plan for the paths of one function.
#[derive(Clone, Debug)]
pub struct PathPlan {
    dag: PathDag,
    breaks: Vec<EdgeId>,
    numbering: Numbering,
    increments: Increments,
    ops: Vec<Option<Op>>,
    registers: Vec<Register>,
    probes: Vec<Probe>,
    unplaceable: Vec<FlowArc>,
    storage: Storage,
}

impl PathPlan {
    /// The plan for `graph` whose probes stand where little runs. `weight` says how often an arc
    /// runs, or that it cannot be patched.
    ///
    /// # Errors
    /// If there are too many paths for what the policy allows.
    pub fn new(
        graph: &FlowGraph,
        policy: Policy,
        weight: impl Fn(FlowArc) -> Weight,
    ) -> Result<Self, PathPlanError> {
        let mut dag = PathDag::of(graph);
        let mut numbering = Numbering::of(&dag);
        let mut breaks = Vec::new();
        let piece = match (policy.beyond, &numbering) {
            (_, Ok(numbering)) if numbering.total() <= policy.array => None,
            (Beyond::Hash, _) | (Beyond::HashOrSplit(_), Ok(_)) => None,
            (Beyond::HashOrSplit(piece), Err(_)) | (Beyond::Split(piece), _) => Some(piece),
        };
        if let Some(piece) = piece {
            breaks = split(graph, piece, &weight)?;
            dag = PathDag::broken(graph, |edge| breaks.binary_search(&edge).is_ok());
            numbering = Numbering::of(&dag);
        }
        let numbering = numbering?;
        let storage = if numbering.total() <= policy.array {
            Storage::Array(numbering.total())
        } else {
            Storage::Hash
        };
        Ok(Self::with(dag, breaks, numbering, storage, &weight))
    }

    fn with(
        dag: PathDag,
        breaks: Vec<EdgeId>,
        numbering: Numbering,
        storage: Storage,
        weight: &dyn Fn(FlowArc) -> Weight,
    ) -> Self {
        let weights = arc_weights(&dag, weight);
        let increments = Increments::of(&dag, numbering.values(), &weights);
        let placements = [
            probes::moved(&dag, &increments),
            probes::unmoved(&dag, &increments),
        ];
        let placements = placements.map(|ops| (probes::by_place(&dag, &ops), ops));
        let [moved, unmoved] = placements;
        let better = probes::cost(&unmoved.0, weight) < probes::cost(&moved.0, weight);
        let (probes, ops) = if better { unmoved } else { moved };
        let unplaceable = probes::unplaceable(&probes, weight);
        Self {
            registers: probes::registers(&dag, numbering.values(), &ops),
            dag,
            breaks,
            numbering,
            increments,
            ops,
            probes,
            unplaceable,
            storage,
        }
    }

    /// The path graph.
    #[must_use]
    pub fn dag(&self) -> &PathDag {
        &self.dag
    }

    /// The numbers of its paths.
    #[must_use]
    pub fn numbering(&self) -> &Numbering {
        &self.numbering
    }

    /// What ways add to the register.
    #[must_use]
    pub fn increments(&self) -> &Increments {
        &self.increments
    }

    /// The edges at which paths were broken, retreating ones aside, ascending.
    #[must_use]
    pub fn breaks(&self) -> &[EdgeId] {
        &self.breaks
    }

    /// What is done on each way, by [`ArcId`](super::ArcId).
    #[must_use]
    pub fn ops(&self) -> &[Option<Op>] {
        &self.ops
    }

    /// The same by place, ascending.
    #[must_use]
    pub fn probes(&self) -> &[Probe] {
        &self.probes
    }

    /// Places of probes that cannot be patched. Unless this is empty the plan must not be carried
    /// out: counts of paths through them would be wrong, and not only of those.
    #[must_use]
    pub fn unplaceable(&self) -> &[FlowArc] {
        &self.unplaceable
    }

    /// How the counts are kept.
    #[must_use]
    pub fn storage(&self) -> Storage {
        self.storage
    }

    /// The sum of the values from the start of the running path to `block`, when the register
    /// holds `register` there. With the block this determines the part of the path that was run.
    /// `None` if the block is unreachable, or the path may be counted already.
    #[must_use]
    pub fn prefix_sum(&self, block: NodeId, register: u64) -> Option<u64> {
        let node = self.dag.node_of(block)?;
        match self.registers[node.index()] {
            Register::Unset(sum) => Some(sum),
            Register::Set => Some(register.wrapping_add(self.increments.potential(node))),
            Register::Counted => None,
        }
    }
}

/// How often each way of the path graph runs: a start, as often as all broken edges before it.
pub(crate) fn arc_weights(dag: &PathDag, weight: &dyn Fn(FlowArc) -> Weight) -> Vec<Weight> {
    let mut weights: Vec<Weight> = dag
        .arcs()
        .iter()
        .map(|arc| match arc.way {
            Way::Start(node) if node == dag.entry() => weight(FlowArc::Return),
            Way::Start(_) => Weight::Finite(0),
            Way::Edge(edge) | Way::Break(edge, _) => weight(FlowArc::Edge(edge)),
            Way::Exit(node) => weight(FlowArc::Exit(node)),
        })
        .collect();
    for &end in dag.into(dag.sink()) {
        if let Way::Break(_, next) = dag.arc(end).way
            && let Some(start) = dag.start_at(next)
        {
            weights[start.index()] = sum(weights[start.index()], weights[end.index()]);
        }
    }
    weights
}

fn sum(a: Weight, b: Weight) -> Weight {
    match (a, b) {
        (Weight::Finite(a), Weight::Finite(b)) => Weight::Finite(a.saturating_add(b)),
        _ => Weight::Infinite,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::paths::{PathFlaw, verify};

    /// Two branches one after the other: each probe that does something else, or nothing, and each
    /// probe more is found out by the checker.
    #[test]
    fn damaged_plans_are_found_out() {
        let edges = [(0, 1), (0, 2), (1, 2), (2, 3), (2, 4), (3, 4)];
        let edges = edges.map(|(from, to)| (NodeId(from), NodeId(to)));
        let graph = FlowGraph::new(5, NodeId(0), edges).expect("a graph");
        let policy = Policy {
            array: 8,
            beyond: Beyond::Hash,
        };
        let plan = PathPlan::new(&graph, policy, |_| Weight::Finite(1)).expect("four paths");
        assert_eq!(verify(&plan), Ok(()));
        let mut tried = 0;
        for at in 0..plan.ops.len() {
            let others = [Op::Set(1), Op::Add(1), Op::Count(1), Op::CountAt(9)];
            for op in others.into_iter().map(Some).chain([None]) {
                let mut damaged = plan.clone();
                if std::mem::replace(&mut damaged.ops[at], op) == op {
                    continue;
                }
                assert!(verify(&damaged).is_err(), "{op:?} at {at}");
                tried += 1;
            }
        }
        assert!(tried > 30, "{tried}");
        let mut misnumbered = plan;
        misnumbered.numbering =
            Numbering::of(&PathDag::broken(&graph, |edge| edge == EdgeId(2))).expect("few paths");
        assert!(matches!(verify(&misnumbered), Err(PathFlaw::Values(_))));
    }
}
