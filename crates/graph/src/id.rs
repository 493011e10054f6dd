//! Dense typed indices of nodes and edges.
//!
//! An index says nothing of what it stands for: callers keep their own tables beside the graph.
//! They are four bytes because graphs of whole programs are held in memory many at a time.

use std::fmt;

/// A node of a graph, counted from zero.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(pub u32);

/// An edge of a graph, counted from zero. Parallel edges are told apart by it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EdgeId(pub u32);

impl NodeId {
    /// The position in a table with one row per node.
    #[must_use]
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

impl EdgeId {
    /// The position in a table with one row per edge.
    #[must_use]
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

impl fmt::Debug for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "n{}", self.0)
    }
}

impl fmt::Debug for EdgeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "e{}", self.0)
    }
}

/// The absent index in tables of `u32`. No graph has so many nodes or edges.
pub(crate) const NONE: u32 = u32::MAX;

/// A table entry as an optional node.
pub(crate) fn node_or_none(entry: u32) -> Option<NodeId> {
    (entry != NONE).then_some(NodeId(entry))
}
