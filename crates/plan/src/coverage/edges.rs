//! Edge placement for branch coverage: the same theory on the graph whose edges have become nodes.
//!
//! Source: the reduction is folklore (BL94 §2 treats both kinds of probes on one graph); Agrawal,
//! POPL 1994, §4, has it for branch coverage. An edge counts as run if control went along it to the
//! first byte of its target. So no walk stops on an edge, whatever the [`Ending`], but on those that close loops: what
//! stands for an endless walk ends on an edge that it passes again and again, not before it. The only edge
//! into a block shares the block's fate even if runs are cut anywhere, and needs no probe of its
//! own; nor does the only edge out of a block where control cannot stop. What is left are critical
//! edges, and edges from stops into joins. O((n + m) log n).
//!
//! [`Ending`]: super::Ending

use std::borrow::Cow;

use tomo_graph::{EdgeId, FlowGraph, Graph, GraphError, NodeId};

use super::{Cost, Fate, Flow, Placement, place};

/// What an edge placement observes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Unit {
    /// A block, by a probe at its start.
    Block(NodeId),
    /// An edge, by a probe on the way.
    Edge(EdgeId),
}

/// A flow whose edges are nodes too: each node keeps its number, edge k is the node behind the last
/// one and k more.
#[derive(Debug)]
pub struct Subdivision {
    flow: Flow<'static>,
    blocks: u32,
}

impl Subdivision {
    /// Puts a node on each edge of `flow`. An error only if there are too many edges to count.
    pub fn of(flow: &Flow<'_>) -> Result<Self, GraphError> {
        let graph = flow.graph();
        let (blocks, edges) = (graph.node_count(), graph.edge_count());
        let middle = (blocks as u32..).map(NodeId);
        let halves = middle
            .zip(graph.edges())
            .flat_map(|(node, &(from, to))| [(from, node), (node, to)]);
        let divided = FlowGraph::new(blocks + edges, graph.entry(), halves)?;
        let mut stops: Vec<bool> = divided
            .nodes()
            .map(|node| node.index() < blocks && flow.is_exit(node))
            .collect();
        for (latch, edge) in flow.loops() {
            stops[latch.index()] = false;
            stops[blocks + edge.index()] = true;
        }
        Ok(Self {
            flow: Flow::closed(Cow::Owned(divided), flow.ending(), stops),
            blocks: blocks as u32,
        })
    }

    /// The flow with a node for every unit.
    #[must_use]
    pub fn flow(&self) -> &Flow<'static> {
        &self.flow
    }

    /// How many edges there are.
    #[must_use]
    pub fn edge_count(&self) -> usize {
        self.flow.node_count() - self.blocks as usize
    }

    /// What a node stands for.
    #[must_use]
    pub fn unit(&self, node: NodeId) -> Unit {
        match node.0.checked_sub(self.blocks) {
            None => Unit::Block(node),
            Some(edge) => Unit::Edge(EdgeId(edge)),
        }
    }

    /// The node that stands for `unit`.
    #[must_use]
    pub fn node(&self, unit: Unit) -> NodeId {
        match unit {
            Unit::Block(node) => node,
            Unit::Edge(edge) => NodeId(self.blocks + edge.0),
        }
    }
}

/// Which blocks and edges carry a probe, and what becomes known of each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EdgePlacement {
    /// Units with a probe, ascending.
    pub probes: Vec<Unit>,
    /// By block.
    pub blocks: Vec<Fate>,
    /// By edge. An edge that is the only one out of its block is no branch and not asked for.
    pub edges: Vec<Fate>,
    /// The same by node of the subdivision, for its reading and its check.
    pub divided: Placement,
}

/// Probes from which it follows of every block, and of every edge out of a block with several,
/// whether it ran.
pub fn edges(divided: &Subdivision, cost: impl Fn(Unit) -> Cost) -> EdgePlacement {
    let flow = divided.flow();
    let asked = |node| match divided.unit(node) {
        Unit::Block(_) => true,
        Unit::Edge(_) => flow
            .predecessors(node)
            .any(|from| flow.successors(from).nth(1).is_some()),
    };
    let placement = place(flow, |node| cost(divided.unit(node)), asked);
    let (blocks, edges) = placement.fates.split_at(divided.blocks as usize);
    EdgePlacement {
        probes: placement
            .probes
            .iter()
            .map(|&node| divided.unit(node))
            .collect(),
        blocks: blocks.to_vec(),
        edges: edges.to_vec(),
        divided: placement,
    }
}
