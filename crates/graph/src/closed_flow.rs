//! The closed flow graph: every way along which control can pass, as one list of arcs.
//!
//! Source: Knuth, Stevenson, *Optimal Measurement Points for Program Frequency Counts*, BIT 13,
//! 1973, and BL94: the exits lead to a virtual exit, and that back to the entry, so that what flows
//! into a node flows out of it, everywhere. O(nodes + edges), and a sort.
//!
//! **Unreachable nodes**: arcs out of them never run and are left out. **What never exits** closes
//! its flow through the virtual edge of its representative (see [`WithExit`]), which counts runs
//! that ended there.

use crate::{DepthFirst, EdgeId, ExitEdge, Graph, NodeId, WithExit};

/// An arc of the closed flow graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum FlowArc {
    /// From the virtual exit back to the entry.
    Return,
    /// To the virtual exit.
    Exit(NodeId),
    /// From the representative of an endless region to the virtual exit.
    Endless(NodeId),
    /// An edge of the graph itself.
    Edge(EdgeId),
}

/// An arc of the closed flow graph with its ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FlowEnds {
    /// The arc.
    pub arc: FlowArc,
    /// The node it leaves; for [`FlowArc::Return`] the virtual exit.
    pub from: NodeId,
    /// The node it enters.
    pub to: NodeId,
}

/// The arcs between the reachable nodes of `view`, that from the virtual exit to the entry among
/// them, ascending by arc.
pub fn closed_flow<G: Graph>(view: &WithExit<'_, G>) -> Vec<FlowEnds> {
    let walk = DepthFirst::of(view);
    let mut arcs = vec![FlowEnds {
        arc: FlowArc::Return,
        from: view.exit(),
        to: view.entry(),
    }];
    for &from in walk.preorder() {
        arcs.extend(view.out_edges(from).map(|hop| FlowEnds {
            arc: of_edge(view.origin(hop.edge)),
            from,
            to: hop.node,
        }));
    }
    arcs.sort_unstable_by_key(|each| each.arc);
    arcs
}

fn of_edge(edge: ExitEdge) -> FlowArc {
    match edge {
        ExitEdge::Real(edge) => FlowArc::Edge(edge),
        ExitEdge::Leave(node) => FlowArc::Exit(node),
        ExitEdge::Endless(node) => FlowArc::Endless(node),
    }
}
