//! A flow graph in compressed rows: all out-edges in one array, all in-edges in another, with
//! offsets per node (the usual sparse-row layout, e.g. Duff, Erisman, Reid, *Direct Methods for
//! Sparse Matrices*, 1986).
//!
//! Built once in O(nodes + edges) by counting, with a handful of allocations whatever the size;
//! never changed afterwards, so ids stay what they are.

use std::fmt;

use crate::{EdgeId, Graph, Hop, NodeId};

/// A directed graph with an entry, dense edge ids, and marked exits.
#[derive(Clone, Debug)]
pub struct FlowGraph {
    entry: NodeId,
    ends: Vec<(NodeId, NodeId)>,
    out: Rows,
    into: Rows,
    leaves: Vec<bool>,
}

/// Why a list of edges is no flow graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GraphError {
    /// The entry is not below the number of nodes (in particular: there are no nodes).
    NoSuchEntry(NodeId),
    /// An edge, or the list of exits, names a node that is not below the number of nodes.
    NoSuchNode(NodeId),
    /// More nodes or edges than ids can count with room for virtual ones.
    TooLarge,
}

impl fmt::Display for GraphError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoSuchEntry(node) => write!(f, "the entry {node:?} is not a node of the graph"),
            Self::NoSuchNode(node) => write!(f, "{node:?} is not a node of the graph"),
            Self::TooLarge => write!(f, "more than {MOST} nodes or edges"),
        }
    }
}

impl std::error::Error for GraphError {}

/// Views add at most one edge per node and one more, so a quarter of the ids leaves ample room.
const MOST: usize = 1 << 30;

impl FlowGraph {
    /// The graph of `nodes` nodes with the given edges; the `k`-th pair becomes [`EdgeId`] `k`.
    /// A node without successors is an exit; see [`with_exits`](Self::with_exits) for others.
    pub fn new(
        nodes: usize,
        entry: NodeId,
        edges: impl IntoIterator<Item = (NodeId, NodeId)>,
    ) -> Result<Self, GraphError> {
        let ends: Vec<_> = edges.into_iter().collect();
        if nodes > MOST || ends.len() > MOST {
            return Err(GraphError::TooLarge);
        }
        if entry.index() >= nodes {
            return Err(GraphError::NoSuchEntry(entry));
        }
        if let Some(stranger) = ends
            .iter()
            .flat_map(|&(from, to)| [from, to])
            .find(|node| node.index() >= nodes)
        {
            return Err(GraphError::NoSuchNode(stranger));
        }
        let out = Rows::new(nodes, ends.iter().copied());
        let into = Rows::new(nodes, ends.iter().map(|&(from, to)| (to, from)));
        let leaves = (0..nodes).map(|node| out.row(node).is_empty()).collect();
        Ok(Self {
            entry,
            ends,
            out,
            into,
            leaves,
        })
    }

    /// The same graph, in which control may also leave at `exits` although they have successors.
    pub fn with_exits(
        mut self,
        exits: impl IntoIterator<Item = NodeId>,
    ) -> Result<Self, GraphError> {
        for node in exits {
            *self
                .leaves
                .get_mut(node.index())
                .ok_or(GraphError::NoSuchNode(node))? = true;
        }
        Ok(self)
    }

    /// The node that `edge` leaves.
    #[must_use]
    pub fn source(&self, edge: EdgeId) -> NodeId {
        self.ends[edge.index()].0
    }

    /// The node that `edge` enters.
    #[must_use]
    pub fn target(&self, edge: EdgeId) -> NodeId {
        self.ends[edge.index()].1
    }

    /// All edges by id, each as source and target.
    #[must_use]
    pub fn edges(&self) -> &[(NodeId, NodeId)] {
        &self.ends
    }
}

impl Graph for FlowGraph {
    fn node_count(&self) -> usize {
        self.leaves.len()
    }

    fn edge_count(&self) -> usize {
        self.ends.len()
    }

    fn entry(&self) -> NodeId {
        self.entry
    }

    fn out_edges(&self, node: NodeId) -> impl Iterator<Item = Hop> {
        self.out.row(node.index()).iter().copied()
    }

    fn in_edges(&self, node: NodeId) -> impl Iterator<Item = Hop> {
        self.into.row(node.index()).iter().copied()
    }

    fn is_exit(&self, node: NodeId) -> bool {
        self.leaves[node.index()]
    }
}

/// The hops of every node, one after the other.
#[derive(Clone, Debug)]
struct Rows {
    starts: Vec<u32>,
    hops: Vec<Hop>,
}

impl Rows {
    /// Sorts the edges by near end, by counting; edges of one node keep the order of their ids.
    fn new(nodes: usize, ends: impl Iterator<Item = (NodeId, NodeId)> + Clone) -> Self {
        let mut starts = vec![0u32; nodes + 1];
        for (near, _) in ends.clone() {
            starts[near.index() + 1] += 1;
        }
        for node in 0..nodes {
            starts[node + 1] += starts[node];
        }
        let mut hops = vec![
            Hop {
                edge: EdgeId(0),
                node: NodeId(0)
            };
            starts[nodes] as usize
        ];
        for (edge, (near, far)) in (0..).zip(ends) {
            // The start of a row serves as its cursor, and ends up as the start of the next.
            let slot = &mut starts[near.index()];
            hops[*slot as usize] = Hop {
                edge: EdgeId(edge),
                node: far,
            };
            *slot += 1;
        }
        starts.rotate_right(1);
        starts[0] = 0;
        Self { starts, hops }
    }

    fn row(&self, node: usize) -> &[Hop] {
        &self.hops[self.starts[node] as usize..self.starts[node + 1] as usize]
    }
}
