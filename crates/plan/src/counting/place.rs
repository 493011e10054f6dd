//! Where the counter of an arc may stand.
//!
//! Source: BL94, §3 (a counter for an edge goes into a block at one of its ends if that block has
//! no other edge there; else the edge must be split). O(out-degree + in-degree).

use tomo_graph::{FlowArc, FlowGraph, Graph, NodeId};

/// A place whose count is that of an arc.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Place {
    /// The start of the block that the arc enters: nothing else leads there.
    Target(NodeId),
    /// The block that the arc leaves: nothing else leads on from there. Counted is that the block
    /// begins, so an activation that is cut in it counts too.
    Source(NodeId),
    /// On the arc itself, which has to be split (a branch displaced, an edge's own code).
    Split,
}

/// The places for a counter of `arc`, best first. Empty if it can have none: the end of an
/// endless run, or leaving in the middle of a block that also goes on.
#[must_use]
pub fn places(graph: &FlowGraph, arc: FlowArc) -> Vec<Place> {
    let entered_once = |node| {
        let ways = graph.in_edges(node).count() + usize::from(node == graph.entry());
        ways == 1
    };
    let left_once = |node| {
        let ways = graph.out_edges(node).count() + usize::from(graph.is_exit(node));
        ways == 1
    };
    match arc {
        FlowArc::Endless(_) => Vec::new(),
        FlowArc::Return => {
            let entry = graph.entry();
            Vec::from_iter(entered_once(entry).then_some(Place::Target(entry)))
        }
        FlowArc::Exit(node) => Vec::from_iter(left_once(node).then_some(Place::Source(node))),
        FlowArc::Edge(edge) => {
            let (from, to) = (graph.source(edge), graph.target(edge));
            let target = entered_once(to).then_some(Place::Target(to));
            let source = left_once(from).then_some(Place::Source(from));
            target
                .into_iter()
                .chain(source)
                .chain([Place::Split])
                .collect()
        }
    }
}

/// Whether an arc can carry a counter as far as the graph says, if every block and edge can be
/// patched: whether it has [`places`]. The patcher knows better of conditional tail calls, say, and
/// of what it cannot patch.
#[must_use]
pub fn is_countable(graph: &FlowGraph, arc: FlowArc) -> bool {
    match arc {
        FlowArc::Edge(_) => true,
        FlowArc::Endless(_) => false,
        FlowArc::Return => graph.in_edges(graph.entry()).next().is_none(),
        FlowArc::Exit(node) => graph.is_exit(node) && graph.out_edges(node).next().is_none(),
    }
}
