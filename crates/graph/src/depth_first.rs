//! Depth-first orders and the classes of edges they induce.
//!
//! Source: Tarjan, *Depth-First Search and Linear Graph Algorithms*, SIAM J. Computing 1(2), 1972,
//! §2; the four classes as in Cormen et al., *Introduction to Algorithms*, §"Depth-first search";
//! *retreating* for what that book calls back edges, after Aho, Sethi, Ullman, *Compilers*, 1986,
//! ch. 10, because in flow graphs a *back* edge is one whose target dominates its source.
//! O(nodes + edges), with an explicit stack.
//!
//! **Unreachable nodes** appear in no order and have no number; edges out of them have no class.

use crate::id::{NONE, node_or_none};
use crate::{EdgeId, Graph, Hop, NodeId};

/// A depth-first walk from the entry, successors in the order of the graph.
#[derive(Clone, Debug)]
pub struct DepthFirst {
    preorder: Vec<NodeId>,
    postorder: Vec<NodeId>,
    pre: Vec<u32>,
    post: Vec<u32>,
    /// Per node: the tree edge into it and where that comes from; `NONE` for the entry.
    parent: Vec<(u32, u32)>,
}

/// What an edge is to a depth-first walk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EdgeClass {
    /// By this edge the walk first reached its target.
    Tree,
    /// To a descendant that was reached otherwise.
    Forward,
    /// To an ancestor, or to the node itself.
    Retreating,
    /// To a node that was finished before this edge's source was reached.
    Cross,
}

impl DepthFirst {
    /// Walks `graph` from its entry.
    pub fn of<G: Graph>(graph: &G) -> Self {
        let mut walk = Self {
            preorder: Vec::with_capacity(graph.node_count()),
            postorder: Vec::with_capacity(graph.node_count()),
            pre: vec![NONE; graph.node_count()],
            post: vec![NONE; graph.node_count()],
            parent: vec![(NONE, NONE); graph.node_count()],
        };
        let entry = graph.entry();
        walk.enter(entry);
        let mut stack = vec![(entry, graph.out_edges(entry))];
        while let Some((node, edges)) = stack.last_mut() {
            match edges.next() {
                Some(hop) if !walk.is_reachable(hop.node) => {
                    walk.parent[hop.node.index()] = (hop.edge.0, node.0);
                    walk.enter(hop.node);
                    stack.push((hop.node, graph.out_edges(hop.node)));
                }
                Some(_) => {}
                None => {
                    walk.leave(*node);
                    stack.pop();
                }
            }
        }
        walk
    }

    fn enter(&mut self, node: NodeId) {
        self.pre[node.index()] = self.preorder.len() as u32;
        self.preorder.push(node);
    }

    fn leave(&mut self, node: NodeId) {
        self.post[node.index()] = self.postorder.len() as u32;
        self.postorder.push(node);
    }

    /// Whether the entry reaches `node`.
    #[must_use]
    pub fn is_reachable(&self, node: NodeId) -> bool {
        self.pre[node.index()] != NONE
    }

    /// The reachable nodes in the order in which they were first met.
    #[must_use]
    pub fn preorder(&self) -> &[NodeId] {
        &self.preorder
    }

    /// The reachable nodes in the order in which they were finished. Without the retreating edges
    /// this is a reverse topological order.
    #[must_use]
    pub fn postorder(&self) -> &[NodeId] {
        &self.postorder
    }

    /// The reachable nodes, last finished first: a topological order but for retreating edges.
    pub fn reverse_postorder(&self) -> impl DoubleEndedIterator<Item = NodeId> + ExactSizeIterator {
        self.postorder.iter().rev().copied()
    }

    /// The position of `node` in [`preorder`](Self::preorder).
    #[must_use]
    pub fn pre_number(&self, node: NodeId) -> Option<u32> {
        Some(self.pre[node.index()]).filter(|&number| number != NONE)
    }

    /// The position of `node` in [`postorder`](Self::postorder).
    #[must_use]
    pub fn post_number(&self, node: NodeId) -> Option<u32> {
        Some(self.post[node.index()]).filter(|&number| number != NONE)
    }

    /// The tree edge into `node` and the node it comes from; `None` for the entry and for what it
    /// does not reach.
    #[must_use]
    pub fn parent(&self, node: NodeId) -> Option<Hop> {
        let (edge, from) = self.parent[node.index()];
        node_or_none(from).map(|node| Hop {
            edge: EdgeId(edge),
            node,
        })
    }

    /// Whether `above` lies on the tree path from the entry to `below`, ends included. False if
    /// either is unreachable.
    #[must_use]
    pub fn is_ancestor(&self, above: NodeId, below: NodeId) -> bool {
        let (a, b) = (above.index(), below.index());
        self.pre[b] != NONE && self.pre[a] <= self.pre[b] && self.post[a] >= self.post[b]
    }

    /// The class of the edge `hop` out of `from`; `None` if `from` is unreachable.
    #[must_use]
    pub fn class(&self, from: NodeId, hop: Hop) -> Option<EdgeClass> {
        if !self.is_reachable(from) {
            return None;
        }
        Some(if self.parent[hop.node.index()].0 == hop.edge.0 {
            EdgeClass::Tree
        } else if self.is_ancestor(hop.node, from) {
            EdgeClass::Retreating
        } else if self.is_ancestor(from, hop.node) {
            EdgeClass::Forward
        } else {
            EdgeClass::Cross
        })
    }

    /// Whether the edge `hop` out of `from` leads back to an ancestor. False if `from` is
    /// unreachable.
    #[must_use]
    pub fn is_retreating(&self, from: NodeId, hop: Hop) -> bool {
        self.is_ancestor(hop.node, from)
    }
}
