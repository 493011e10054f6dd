//! The checker: proves of a placement that what it promises can be recovered from what it records.
//!
//! In the manner of regalloc2's checker: it shares nothing with the placement but the graph, and
//! works from the definition. For each block b it leaves b out: what can then still be reached from
//! the entry and still stop is on a walk without b, so the other blocks are those that imply b. Then
//! it looks for a walk through b that passes no probe among them. O(n (n + m)).
//!
//! The proof that such a walk is exactly what makes b unknown is in the module above; tests hold
//! that against all executions of small graphs.

use std::fmt;

use tomo_graph::{Graph, NodeId};

use super::{Fate, Flow, Placement};

/// What is wrong with a placement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flaw {
    /// The placement is of another graph.
    Shape,
    /// The list of probes and the fate of this block differ.
    Listing(NodeId),
    /// This block is said to be inferred, yet some walk through it passes no probe that implies it.
    Unknown(NodeId),
}

impl fmt::Display for Flaw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Shape => write!(f, "the placement is of a graph of another size"),
            Self::Listing(node) => write!(f, "{node:?} is listed otherwise than its fate says"),
            Self::Unknown(node) => {
                write!(
                    f,
                    "{node:?} can run and not run while all probes are hit alike"
                )
            }
        }
    }
}

impl std::error::Error for Flaw {}

/// Proves that all that `placement` calls inferred is so, or names the first block that is not.
pub fn check(flow: &Flow<'_>, placement: &Placement) -> Result<(), Flaw> {
    if placement.fates.len() != flow.node_count() {
        return Err(Flaw::Shape);
    }
    let mut probed = vec![false; flow.node_count()];
    for &node in &placement.probes {
        *probed.get_mut(node.index()).ok_or(Flaw::Shape)? = true;
    }
    for node in flow.nodes() {
        let fate = placement.fates[node.index()];
        if probed[node.index()] != (fate == Fate::Probed) {
            return Err(Flaw::Listing(node));
        }
        if fate == Fate::Inferred && !is_known(flow, &probed, node) {
            return Err(Flaw::Unknown(node));
        }
    }
    Ok(())
}

/// Whether every walk through `block` passes a probe that implies it.
fn is_known(flow: &Flow<'_>, probed: &[bool], block: NodeId) -> bool {
    let other = |node: NodeId| node != block;
    let before = Reach::forwards(flow, &[flow.entry()], other);
    let after = Reach::backwards(flow, &stops(flow), other);
    let shows = |node: NodeId| {
        probed[node.index()] && (node == block || !(before.has(node) && after.has(node)))
    };
    let quiet = |node| !shows(node);
    let arrives = Reach::forwards(flow, &[flow.entry()], quiet).has(block);
    let leaves = Reach::backwards(flow, &stops(flow), quiet).has(block);
    !(arrives && leaves)
}

fn stops(flow: &Flow<'_>) -> Vec<NodeId> {
    flow.nodes().filter(|&node| flow.is_exit(node)).collect()
}

/// The nodes that are reached from some without leaving those that are allowed.
struct Reach(Vec<bool>);

impl Reach {
    fn forwards(flow: &Flow<'_>, from: &[NodeId], allowed: impl Fn(NodeId) -> bool) -> Self {
        Self::walk(flow.node_count(), from, allowed, |node| {
            flow.successors(node).collect()
        })
    }

    fn backwards(flow: &Flow<'_>, from: &[NodeId], allowed: impl Fn(NodeId) -> bool) -> Self {
        Self::walk(flow.node_count(), from, allowed, |node| {
            flow.predecessors(node).collect()
        })
    }

    fn walk(
        nodes: usize,
        from: &[NodeId],
        allowed: impl Fn(NodeId) -> bool,
        next: impl Fn(NodeId) -> Vec<NodeId>,
    ) -> Self {
        let mut seen = vec![false; nodes];
        let mut open: Vec<NodeId> = from.to_vec();
        while let Some(node) = open.pop() {
            if allowed(node) && !std::mem::replace(&mut seen[node.index()], true) {
                open.extend(next(node));
            }
        }
        Self(seen)
    }

    fn has(&self, node: NodeId) -> bool {
        self.0[node.index()]
    }
}
