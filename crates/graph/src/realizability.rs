//! Whether a set of witnesses tells which path was taken.
//!
//! Source: DPT §3.2, after BL94. Witnesses are edges whose passing is recorded, in order;
//! *realizable* means that the record determines the execution. Two conditions:
//!
//! - **CFG condition**: E − Ewit contains no directed cycle and no diamond. [`ambiguity`] decides
//!   it and names one that is left.
//! - **path condition**: at every fork, the sets of what can be recorded next, one set per edge out
//!   of it, are disjoint. [`conflict`] decides it and names what two sets share.
//!
//! DPT says that they are equivalent. By exhaustive trial on small graphs that is so under these
//! assumptions, most of them unstated, and the smallest counterexamples (all unit tests) are:
//! - *Every node reaches the exit.* One block that jumps to itself and carries no witness has a
//!   directed cycle, but no fork, so nothing conflicts. The CFG condition is the one to trust.
//! - *There is one exit, without successors.* With two, 0→1 and 0→2, the end of the record follows
//!   either way, yet there is no diamond.
//! - *Edges at a fork, and at a join, differ*, see [`diamonds`](crate::diamonds).
//! - *No parallel edges*, or else two of them count as a diamond.
//!
//! So ask about [`WithExit`](crate::WithExit): it makes the first two true of every graph, and
//! the conditions agree on all of them. (What never exits counts as ending at its representative:
//! a run that is killed there leaves a record that ends too.)
//!
//! CFG condition: a cycle is found in O(n + m). Without cycles, there is a diamond exactly if two
//! different paths lead from one node to another, exactly if some node that nothing in E − Ewit
//! enters reaches another by two ways; a walk from each of these stops at the first node it meets
//! twice, so O(n) each, O(n²) in all at worst. Path condition: O(n m).
//!
//! **Unreachable nodes**: what they do never runs and does not count.

use crate::cycles::find_cycle;
use crate::diamonds::Diamond;
use crate::id::NONE;
use crate::{DepthFirst, EdgeId, Graph, Hop, NodeId, Without};

/// What witnesses leave undecided, seen in the graph.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ambiguity {
    /// A directed cycle without a witness: how often was it run?
    Cycle(Vec<EdgeId>),
    /// A diamond without a witness: which way was taken?
    Diamond(Diamond),
}

/// What can be recorded next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum FirstWitness {
    /// The passing of this edge.
    Edge(EdgeId),
    /// Nothing more (the paper's EOF).
    End,
}

/// Two ways on from a node after which the same may be recorded next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Conflict {
    /// The fork.
    pub node: NodeId,
    /// Two edges out of it.
    pub edges: (EdgeId, EdgeId),
    /// What both may be followed by.
    pub shared: FirstWitness,
}

/// A directed cycle or diamond without any edge of which `is_witness` holds, if there is one: the
/// CFG condition is that there is none.
pub fn ambiguity<G: Graph>(graph: &G, is_witness: impl Fn(EdgeId) -> bool) -> Option<Ambiguity> {
    let walk = DepthFirst::of(graph);
    let rest = Without::edges(graph, is_witness);
    let nodes = walk.preorder();
    if let Some(cycle) = find_cycle(&rest, nodes) {
        return Some(Ambiguity::Cycle(cycle));
    }
    let mut twice = TwoWays::new(&rest);
    let enters = |&node: &NodeId| rest.predecessors(node).any(|from| walk.is_reachable(from));
    let mut sources = nodes.iter().copied().filter(|node| !enters(node));
    sources
        .find_map(|source| twice.from(source))
        .map(Ambiguity::Diamond)
}

/// The search for two paths from one node to another in a graph without directed cycles.
struct TwoWays<'g, G> {
    graph: &'g G,
    /// Per node: the source from which it was last met.
    met_from: Vec<u32>,
    /// Per node: by which edge.
    by: Vec<Hop>,
    work: Vec<NodeId>,
}

impl<'g, G: Graph> TwoWays<'g, G> {
    fn new(graph: &'g G) -> Self {
        let nowhere = Hop {
            edge: EdgeId(NONE),
            node: NodeId(NONE),
        };
        let nodes = graph.node_count();
        Self {
            graph,
            met_from: vec![NONE; nodes],
            by: vec![nowhere; nodes],
            work: Vec::new(),
        }
    }

    fn from(&mut self, source: NodeId) -> Option<Diamond> {
        self.met_from[source.index()] = source.0;
        self.work.push(source);
        while let Some(node) = self.work.pop() {
            for hop in self.graph.out_edges(node) {
                if self.met_from[hop.node.index()] == source.0 {
                    let again = Hop {
                        edge: hop.edge,
                        node,
                    };
                    return Some(self.diamond(source, hop.node, again));
                }
                self.met_from[hop.node.index()] = source.0;
                self.by[hop.node.index()] = Hop {
                    edge: hop.edge,
                    node,
                };
                self.work.push(hop.node);
            }
        }
        None
    }

    /// The nodes between `source` and `node`, both included, backwards.
    fn back(&self, source: NodeId, node: NodeId) -> Vec<NodeId> {
        let above = |&node: &NodeId| (node != source).then(|| self.by[node.index()].node);
        std::iter::successors(Some(node), above).collect()
    }

    /// The diamond that is closed by meeting `join` once more.
    fn diamond(&self, source: NodeId, join: NodeId, again: Hop) -> Diamond {
        let first = self.back(source, join);
        let second = self.back(source, again.node);
        let shared = first
            .iter()
            .rev()
            .zip(second.iter().rev())
            .take_while(|(a, b)| a == b)
            .count();
        let fork = first[first.len() - shared];
        let edges = |way: &[NodeId]| -> Vec<EdgeId> {
            let apart = &way[..way.len() - shared];
            apart
                .iter()
                .rev()
                .map(|node| self.by[node.index()].edge)
                .collect()
        };
        let (left, mut right) = (edges(&first), edges(&second));
        right.push(again.edge);
        Diamond {
            fork,
            join,
            left,
            right,
        }
    }
}

/// Two edges out of one node after which the same may be recorded next, if there are any: the path
/// condition is that there are none.
pub fn conflict<G: Graph>(graph: &G, is_witness: impl Fn(EdgeId) -> bool) -> Option<Conflict> {
    let walk = DepthFirst::of(graph);
    let mut sets = WitnessSets::new(graph, &is_witness);
    walk.preorder()
        .iter()
        .find_map(|&node| sets.conflict_at(node))
}

/// All that can be recorded first when control takes the edge `hop` (the paper's witness-set of
/// the branch and its target), ascending.
pub fn witness_set<G: Graph>(
    graph: &G,
    is_witness: impl Fn(EdgeId) -> bool,
    hop: Hop,
) -> Vec<FirstWitness> {
    let mut sets = WitnessSets::new(graph, &is_witness);
    let mut set = Vec::new();
    sets.of(hop, |witness| set.push(witness));
    set.sort_unstable();
    set.dedup();
    set
}

/// Witness sets, computed one after the other in the same memory.
struct WitnessSets<'g, G, F> {
    graph: &'g G,
    is_witness: &'g F,
    /// Per node: the edge by which the walk that met it last began.
    met_from: Vec<u32>,
    work: Vec<NodeId>,
    /// Per edge, and last for the end: the fork, and the edge out of it, that it last followed.
    follows: Vec<(u32, u32)>,
}

impl<'g, G: Graph, F: Fn(EdgeId) -> bool> WitnessSets<'g, G, F> {
    fn new(graph: &'g G, is_witness: &'g F) -> Self {
        let met_from = vec![NONE; graph.node_count()];
        let follows = vec![(NONE, NONE); graph.edge_count() + 1];
        Self {
            graph,
            is_witness,
            met_from,
            work: Vec::new(),
            follows,
        }
    }

    fn conflict_at(&mut self, fork: NodeId) -> Option<Conflict> {
        // A node with one way on decides nothing; most nodes are such.
        self.graph.out_edges(fork).nth(1)?;
        let mut follows = std::mem::take(&mut self.follows);
        let mut found = None;
        for hop in self.graph.out_edges(fork) {
            self.of(hop, |shared| {
                let slot = match shared {
                    FirstWitness::Edge(edge) => edge.index(),
                    FirstWitness::End => follows.len() - 1,
                };
                let (last_fork, last_edge) = follows[slot];
                if last_fork == fork.0 && last_edge != hop.edge.0 {
                    let edges = (EdgeId(last_edge), hop.edge);
                    found = found.or(Some(Conflict {
                        node: fork,
                        edges,
                        shared,
                    }));
                }
                follows[slot] = (fork.0, hop.edge.0);
            });
        }
        self.follows = follows;
        found
    }

    fn of(&mut self, first: Hop, mut record: impl FnMut(FirstWitness)) {
        if (self.is_witness)(first.edge) {
            return record(FirstWitness::Edge(first.edge));
        }
        self.met_from[first.node.index()] = first.edge.0;
        self.work.push(first.node);
        while let Some(node) = self.work.pop() {
            if self.graph.is_exit(node) {
                record(FirstWitness::End);
            }
            for hop in self.graph.out_edges(node) {
                if (self.is_witness)(hop.edge) {
                    record(FirstWitness::Edge(hop.edge));
                } else if self.met_from[hop.node.index()] != first.edge.0 {
                    self.met_from[hop.node.index()] = first.edge.0;
                    self.work.push(hop.node);
                }
            }
        }
    }
}
