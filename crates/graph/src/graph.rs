//! What an analysis needs to know of a graph: one small trait, so that one engine serves several
//! views (a flow graph, the same reversed, with one exit added, or without some edges).
//!
//! Every analysis of this crate walks its graph with explicit stacks, never by recursion, and
//! takes nodes and edges in the order in which the graph lists them, so results are deterministic.

use crate::{EdgeId, NodeId};

/// An edge seen from one of its ends: which edge, and the node at the *other* end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Hop {
    /// The edge.
    pub edge: EdgeId,
    /// The node it leads to (for an edge out) or comes from (for an edge in).
    pub node: NodeId,
}

/// A directed graph with one entry. Parallel edges and self loops are allowed, and so are nodes
/// that the entry does not reach.
///
/// Node ids are below [`node_count`](Self::node_count) and edge ids below
/// [`edge_count`](Self::edge_count); a view that hides edges leaves gaps in the latter. Methods
/// that take a node may panic on one that is not of the graph.
pub trait Graph {
    /// How many nodes there are, at least one.
    fn node_count(&self) -> usize;

    /// A bound above every edge id.
    fn edge_count(&self) -> usize;

    /// Where control comes in.
    fn entry(&self) -> NodeId;

    /// The edges that leave `node`.
    fn out_edges(&self, node: NodeId) -> impl Iterator<Item = Hop>;

    /// The edges that enter `node`.
    fn in_edges(&self, node: NodeId) -> impl Iterator<Item = Hop>;

    /// Whether control may leave the graph at `node`. True of every node without successors, and
    /// of others that say so (a conditional tail call, a call that may throw).
    fn is_exit(&self, node: NodeId) -> bool;

    /// All nodes, reachable or not.
    fn nodes(&self) -> impl Iterator<Item = NodeId> + use<Self> {
        (0..u32::try_from(self.node_count()).unwrap_or(u32::MAX)).map(NodeId)
    }

    /// The nodes to which an edge leads from `node`, once per edge.
    fn successors(&self, node: NodeId) -> impl Iterator<Item = NodeId> {
        self.out_edges(node).map(|hop| hop.node)
    }

    /// The nodes from which an edge leads to `node`, once per edge.
    fn predecessors(&self, node: NodeId) -> impl Iterator<Item = NodeId> {
        self.in_edges(node).map(|hop| hop.node)
    }
}
