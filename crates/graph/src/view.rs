//! Views: the same graph seen otherwise, without copying its edges.
//!
//! - [`WithExit`] adds one virtual exit, as every algorithm wants that asks for ways out
//!   (Ferrante, Ottenstein, Warren 1987; BL94; BL96).
//! - [`Reversed`] turns every edge round; the virtual exit becomes the entry.
//! - [`Without`] hides edges, keeping the ids of the others: E − Ewit of DPT §3.2.
//!
//! **What never exits.** From some nodes no exit can be reached (an endless loop). The literature
//! assumes there are none; compiled programs have them. They all flow into strongly connected
//! components that nothing leaves (*terminal* components) and that hold no exit. Of each such
//! component one node, its *representative*, gets an edge to the virtual exit: the node that a
//! depth-first walk from the entry reaches first, which is the header of the endless loop when the
//! loop has one. A later node (the latch, say) would make it post-dominate the rest of the loop,
//! and so claim that each round passes it; of the header, the only way in, that is true anyway.
//! One edge per terminal component suffices for every node to reach the virtual exit.

use crate::id::NONE;
use crate::{Components, EdgeId, Graph, Hop, NodeId};

/// A graph with one more node, the virtual exit, to which an edge leads from every exit and from
/// the representative of every endless region.
///
/// Real nodes and edges keep their ids. The virtual exit is the node after the last one; the edges
/// to it come after the last edge, by node. The virtual exit is the only exit of the view.
#[derive(Clone, Debug)]
pub struct WithExit<'g, G> {
    base: &'g G,
    /// Nodes with an edge to the virtual exit, ascending.
    leaving: Vec<NodeId>,
    /// Per node: its position in `leaving`, or `NONE`.
    slot: Vec<u32>,
    /// Representatives, ascending.
    endless: Vec<NodeId>,
}

/// What an edge of [`WithExit`] stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ExitEdge {
    /// An edge of the graph itself.
    Real(EdgeId),
    /// Control leaves the graph at this node.
    Leave(NodeId),
    /// Control never leaves the endless region that this node represents.
    Endless(NodeId),
}

impl<'g, G: Graph> WithExit<'g, G> {
    /// Adds a virtual exit to `graph`. O(nodes + edges).
    pub fn of(graph: &'g G) -> Self {
        let endless = endless_representatives(graph);
        let mut slot = vec![NONE; graph.node_count()];
        for &node in &endless {
            slot[node.index()] = 0;
        }
        let mut leaving = Vec::new();
        for node in graph.nodes() {
            let slot = &mut slot[node.index()];
            if *slot == 0 || graph.is_exit(node) {
                *slot = leaving.len() as u32;
                leaving.push(node);
            }
        }
        Self {
            base: graph,
            leaving,
            slot,
            endless,
        }
    }

    /// The graph without its virtual exit.
    pub fn base(&self) -> &'g G {
        self.base
    }

    /// The virtual exit.
    pub fn exit(&self) -> NodeId {
        NodeId(self.slot.len() as u32)
    }

    /// The nodes that stand for endless regions, ascending. Empty if every node can exit.
    pub fn endless(&self) -> &[NodeId] {
        &self.endless
    }

    /// The edge from `node` to the virtual exit, if there is one.
    pub fn leave_edge(&self, node: NodeId) -> Option<EdgeId> {
        let slot = *self.slot.get(node.index())?;
        (slot != NONE).then(|| EdgeId(self.base.edge_count() as u32 + slot))
    }

    /// What `edge` stands for.
    pub fn origin(&self, edge: EdgeId) -> ExitEdge {
        match edge.index().checked_sub(self.base.edge_count()) {
            None => ExitEdge::Real(edge),
            Some(slot) => {
                let node = self.leaving[slot];
                if self.base.is_exit(node) {
                    ExitEdge::Leave(node)
                } else {
                    ExitEdge::Endless(node)
                }
            }
        }
    }

    fn is_real(&self, node: NodeId) -> bool {
        node.index() < self.slot.len()
    }
}

/// The first-reached node of every terminal component that holds no exit, ascending.
fn endless_representatives<G: Graph>(graph: &G) -> Vec<NodeId> {
    if every_node_can_exit(graph) {
        return Vec::new();
    }
    let components = Components::of(graph);
    let mut endless: Vec<NodeId> = components
        .ids()
        .filter(|&id| {
            components.members(id).iter().all(|&node| {
                let stays = |to| components.of_node(to) == id;
                !graph.is_exit(node) && graph.successors(node).all(stays)
            })
        })
        .map(|id| components.first(id))
        .collect();
    endless.sort_unstable();
    endless
}

/// As a rule this is so, and then there is no need to look for components.
fn every_node_can_exit<G: Graph>(graph: &G) -> bool {
    let mut can_exit: Vec<bool> = graph.nodes().map(|node| graph.is_exit(node)).collect();
    let mut open: Vec<NodeId> = graph.nodes().filter(|at| can_exit[at.index()]).collect();
    let mut found = open.len();
    while let Some(node) = open.pop() {
        for before in graph.in_edges(node).map(|hop| hop.node) {
            if !std::mem::replace(&mut can_exit[before.index()], true) {
                open.push(before);
                found += 1;
            }
        }
    }
    found == can_exit.len()
}

impl<G: Graph> Graph for WithExit<'_, G> {
    fn node_count(&self) -> usize {
        self.slot.len() + 1
    }

    fn edge_count(&self) -> usize {
        self.base.edge_count() + self.leaving.len()
    }

    fn entry(&self) -> NodeId {
        self.base.entry()
    }

    fn out_edges(&self, node: NodeId) -> impl Iterator<Item = Hop> {
        let real = self.is_real(node).then(|| self.base.out_edges(node));
        let leave = self.leave_edge(node).map(|edge| Hop {
            edge,
            node: self.exit(),
        });
        real.into_iter().flatten().chain(leave)
    }

    fn in_edges(&self, node: NodeId) -> impl Iterator<Item = Hop> {
        let real = self.is_real(node).then(|| self.base.in_edges(node));
        let leaving: &[NodeId] = if self.is_real(node) {
            &[]
        } else {
            &self.leaving
        };
        let first = self.base.edge_count() as u32;
        let leave = (first..)
            .map(EdgeId)
            .zip(leaving)
            .map(|(edge, &node)| Hop { edge, node });
        real.into_iter().flatten().chain(leave)
    }

    fn is_exit(&self, node: NodeId) -> bool {
        node == self.exit()
    }
}

/// A graph with every edge turned round, entered at a node of choice.
#[derive(Clone, Copy, Debug)]
pub struct Reversed<'g, G> {
    base: &'g G,
    entry: NodeId,
}

impl<'g, G: Graph> Reversed<'g, G> {
    /// `graph` backwards, from `entry` (most often the virtual exit).
    pub fn from(graph: &'g G, entry: NodeId) -> Self {
        Self { base: graph, entry }
    }
}

impl<G: Graph> Graph for Reversed<'_, G> {
    fn node_count(&self) -> usize {
        self.base.node_count()
    }

    fn edge_count(&self) -> usize {
        self.base.edge_count()
    }

    fn entry(&self) -> NodeId {
        self.entry
    }

    fn out_edges(&self, node: NodeId) -> impl Iterator<Item = Hop> {
        self.base.in_edges(node)
    }

    fn in_edges(&self, node: NodeId) -> impl Iterator<Item = Hop> {
        self.base.out_edges(node)
    }

    fn is_exit(&self, node: NodeId) -> bool {
        node == self.base.entry() || self.base.in_edges(node).next().is_none()
    }
}

/// A graph without the edges that a predicate names. The others keep their ids; exits stay what
/// they are.
#[derive(Clone, Copy, Debug)]
pub struct Without<'g, G, F> {
    base: &'g G,
    hidden: F,
}

impl<'g, G: Graph, F: Fn(EdgeId) -> bool> Without<'g, G, F> {
    /// `graph` without the edges of which `hidden` is true.
    pub fn edges(graph: &'g G, hidden: F) -> Self {
        Self {
            base: graph,
            hidden,
        }
    }
}

impl<G: Graph, F: Fn(EdgeId) -> bool> Graph for Without<'_, G, F> {
    fn node_count(&self) -> usize {
        self.base.node_count()
    }

    fn edge_count(&self) -> usize {
        self.base.edge_count()
    }

    fn entry(&self) -> NodeId {
        self.base.entry()
    }

    fn out_edges(&self, node: NodeId) -> impl Iterator<Item = Hop> {
        self.base
            .out_edges(node)
            .filter(|hop| !(self.hidden)(hop.edge))
    }

    fn in_edges(&self, node: NodeId) -> impl Iterator<Item = Hop> {
        self.base
            .in_edges(node)
            .filter(|hop| !(self.hidden)(hop.edge))
    }

    fn is_exit(&self, node: NodeId) -> bool {
        self.base.is_exit(node) || self.out_edges(node).next().is_none()
    }
}
