//! What is done on the ways of a path graph, given what each adds.
//!
//! A node that all ways reach with the same sum needs no register. It is set where such a way meets others, if it is
//! looked at further on, and counted at a constant where a path ends before that.

use tomo_plan::paths::{ArcId, DagArc, DagNode, PathDag};

use crate::staying::path::PathOp;

/// How a path's number is had at its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// It is this.
    At(u32),
    /// The register and so much, modulo 2^32.
    Plus(u32),
}

/// What is done on each way.
#[derive(Debug)]
pub(crate) struct Ops {
    ways: Vec<Option<PathOp>>,
    ends: Vec<Option<End>>,
}

impl Ops {
    /// On a way that ends no path.
    pub(crate) fn on_way(&self, id: ArcId) -> Option<PathOp> {
        self.ways[id.index()]
    }

    /// On a way that does.
    pub(crate) fn at_end(&self, id: ArcId) -> Option<End> {
        self.ends[id.index()]
    }
}

/// What is done if each way adds so much and paths count that end by ways that are `counted`. Sums fit into 32 bits where
/// paths are counted.
pub(crate) fn ops(dag: &PathDag, increments: &[u64], counted: impl Fn(&DagArc) -> bool) -> Ops {
    let sums = sums(dag, increments);
    let needed = needed(dag, &sums, &counted);
    let mut ops = Ops {
        ways: vec![None; dag.arcs().len()],
        ends: vec![None; dag.arcs().len()],
    };
    for id in dag.ids() {
        let arc = dag.arc(id);
        let adds = increments[id.index()];
        let sum = sums[arc.from.index()].map(|sum| sum.wrapping_add(adds) as u32);
        if arc.to == dag.sink() {
            let end = sum.map_or(End::Plus(adds as u32), End::At);
            ops.ends[id.index()] = counted(&arc).then_some(end);
        } else if needed[arc.to.index()] {
            ops.ways[id.index()] = match sum {
                Some(sum) => Some(PathOp::Set(sum)),
                None => (adds != 0).then_some(PathOp::Add(adds as u32)),
            };
        }
    }
    ops
}

/// The sum at each node, if there is but one.
fn sums(dag: &PathDag, increments: &[u64]) -> Vec<Option<u64>> {
    let mut sums = vec![None; dag.node_count()];
    for node in dag.nodes() {
        let mut ways = dag.into(node).iter().map(|id| {
            let from: Option<u64> = sums[dag.arc(*id).from.index()];
            from.map(|sum| sum.wrapping_add(increments[id.index()]))
        });
        sums[node.index()] = match ways.next() {
            None => Some(0),
            Some(first) => first.filter(|_| ways.all(|other| other == first)),
        };
    }
    sums
}

/// Nodes at which the register must hold what was run.
fn needed(dag: &PathDag, sums: &[Option<u64>], counted: &impl Fn(&DagArc) -> bool) -> Vec<bool> {
    let mut needed = vec![false; dag.node_count()];
    for node in dag.nodes().rev().filter(|&node| node != DagNode::SOURCE) {
        let looks = |id: ArcId| {
            let arc = dag.arc(id);
            match arc.to == dag.sink() {
                true => counted(&arc),
                false => needed[arc.to.index()],
            }
        };
        needed[node.index()] = sums[node.index()].is_none() && dag.out(node).any(looks);
    }
    needed
}
