//! Control dependence: which branches decide whether a node runs.
//!
//! Source: Ferrante, Ottenstein, Warren, *The Program Dependence Graph and Its Use in
//! Optimization*, TOPLAS 9(3), 1987, Definition 3 and §3.1.1: node w is control dependent on the
//! edge u→v if w post-dominates v and does not strictly post-dominate u. These w are the path of
//! the post-dominator tree from v up to, but without, the immediate post-dominator of u.
//!
//! The relation can be quadratic in the size of the graph (deeply nested `do … while`), so it is
//! kept implicit, as Pingali, Bilardi, *Optimal Control Dependence Computation and the Roman
//! Chariots Problem*, TOPLAS 19(3), 1997, keep it: per edge only the ends of that path. Asking
//! takes O(1), listing the dependents of an edge as long as the list;
//! [`size`](ControlDependence::size) tells in O(edges) what writing all of it down costs before
//! [`controllers`](ControlDependence::controllers) does.
//!
//! Deviations: the source adds an edge from the entry to the exit, so that what always runs depends
//! on the entry; ours depends on nothing. A node that stands for an endless region and has one
//! successor only does not decide anything, although the virtual exit makes it a fork.
//!
//! **Unreachable nodes** decide nothing and depend on nothing: edges out of them never run.

use std::collections::HashMap;

use crate::id::NONE;
use crate::{DepthFirst, EdgeId, Graph, Hop, NodeId, PostDominators};

/// The control dependence relation of a graph, implicitly.
#[derive(Clone, Debug)]
pub struct ControlDependence<'p> {
    post: &'p PostDominators,
    /// Per edge: source and target, or `NONE` where it decides nothing.
    ends: Vec<(u32, u32)>,
}

impl<'p> ControlDependence<'p> {
    /// The control dependence of `graph`, of which `post` are the post-dominators.
    pub fn of<G: Graph>(graph: &G, post: &'p PostDominators) -> Self {
        Self::with_walk(graph, &DepthFirst::of(graph), post)
    }

    /// The same, where a depth-first walk of `graph` is at hand.
    pub fn with_walk<G: Graph>(graph: &G, walk: &DepthFirst, post: &'p PostDominators) -> Self {
        let mut ends = vec![(NONE, NONE); graph.edge_count()];
        for &from in walk.preorder() {
            if !is_fork(graph, from) {
                continue;
            }
            let decides = |hop: &Hop| post.tree().immediate(from) != Some(hop.node);
            for Hop { edge, node } in graph.out_edges(from).filter(decides) {
                ends[edge.index()] = (from.0, node.0);
            }
        }
        Self { post, ends }
    }

    fn ends(&self, edge: EdgeId) -> Option<(NodeId, NodeId)> {
        let &(from, to) = self.ends.get(edge.index())?;
        (from != NONE).then_some((NodeId(from), NodeId(to)))
    }

    /// The edges on which some node depends, ascending.
    pub fn deciding_edges(&self) -> impl Iterator<Item = EdgeId> {
        (0..)
            .map(EdgeId)
            .zip(&self.ends)
            .filter(|(_, ends)| ends.0 != NONE)
            .map(|(edge, _)| edge)
    }

    /// Whether `node` is control dependent on `edge`. O(1).
    #[must_use]
    pub fn depends(&self, node: NodeId, edge: EdgeId) -> bool {
        self.ends(edge).is_some_and(|(from, to)| {
            self.post.post_dominates(node, to) && !self.post.strictly_post_dominates(node, from)
        })
    }

    /// The nodes that are control dependent on `edge`, its target first.
    pub fn dependents(&self, edge: EdgeId) -> impl Iterator<Item = NodeId> {
        let tree = self.post.tree();
        let (stop, start) = match self.ends(edge) {
            Some((from, to)) => (tree.immediate(from), Some(to)),
            None => (None, None),
        };
        std::iter::successors(start, |&node| tree.immediate(node))
            .take_while(move |&node| Some(node) != stop)
    }

    /// How many pairs of a node and an edge on which it depends there are.
    #[must_use]
    pub fn size(&self) -> u64 {
        let tree = self.post.tree();
        let depth = |node| u64::from(tree.depth(node).unwrap_or(0));
        let length = |(from, to)| (depth(to) + 1).saturating_sub(depth(from));
        self.deciding_edges()
            .filter_map(|edge| self.ends(edge))
            .map(length)
            .sum()
    }

    /// The relation written down by node, or `None` if it has more than `limit` pairs.
    #[must_use]
    pub fn controllers(&self, limit: u32) -> Option<Controllers> {
        if self.size() > u64::from(limit) {
            return None;
        }
        let nodes = self.post.virtual_exit().index();
        let pairs = || {
            self.deciding_edges()
                .flat_map(|edge| self.dependents(edge).map(move |node| (node, edge)))
        };
        let mut starts = vec![0u32; nodes + 1];
        for (node, _) in pairs() {
            starts[node.index()] += 1;
        }
        let mut sum = 0;
        for start in &mut starts {
            sum += std::mem::replace(start, sum);
        }
        let mut cursors = starts.clone();
        let mut edges = vec![EdgeId(0); sum as usize];
        for (node, edge) in pairs() {
            let cursor = &mut cursors[node.index()];
            edges[*cursor as usize] = edge;
            *cursor += 1;
        }
        Some(Controllers { starts, edges })
    }
}

/// Whether more than one thing can happen behind `node`.
fn is_fork<G: Graph>(graph: &G, node: NodeId) -> bool {
    graph.out_edges(node).take(2).count() + usize::from(graph.is_exit(node)) > 1
}

/// Per node, the edges on which it is control dependent.
#[derive(Clone, Debug)]
pub struct Controllers {
    starts: Vec<u32>,
    edges: Vec<EdgeId>,
}

impl Controllers {
    /// The edges on which `node` is control dependent, ascending.
    #[must_use]
    pub fn of(&self, node: NodeId) -> &[EdgeId] {
        &self.edges[self.starts[node.index()] as usize..self.starts[node.index() + 1] as usize]
    }

    /// The region of every node, by node: two have the same number exactly if they depend on the
    /// same edges, that is if they run under the same conditions (the source's region nodes).
    /// Numbered in the order of their first nodes. Unreachable nodes share the region of what
    /// always runs, since they depend on nothing either.
    #[must_use]
    pub fn regions(&self) -> Vec<u32> {
        let mut known = HashMap::new();
        (0..self.starts.len() as u32 - 1)
            .map(|node| {
                let next = known.len() as u32;
                *known.entry(self.of(NodeId(node))).or_insert(next)
            })
            .collect()
    }
}
