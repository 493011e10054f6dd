//! Maximum spanning trees of the closed flow graph, and their chords.
//!
//! Sources: Kruskal, *On the Shortest Spanning Subtree of a Graph and the Traveling Salesman
//! Problem*, Proc. AMS 7, 1956 (greedy by weight, turned round: heaviest first); Ball, Larus,
//! *Optimally Profiling and Tracing Programs*, TOPLAS 16(4), 1994 (BL94), and before it Knuth,
//! Stevenson, *Optimal Measurement Points for Program Frequency Counts*, BIT 13, 1973: counts on
//! the chords of a spanning tree determine the counts on the tree, because what flows into a node
//! flows out of it; with a maximum tree the chords are the cheapest. O(m log m).
//!
//! The flow must be closed: every exit leads to the virtual exit, and that back to the entry. These
//! arcs take part like others. Direction does not matter to the tree.
//!
//! Ties go to the virtual arcs, because they can carry no counter, then to the smaller edge id.
//!
//! Deviation: some edges cannot carry a counter at all. They weigh [`Weight::Infinite`], more than
//! any number; if such edges close a cycle among themselves one of them is a chord all the same,
//! and [`uncountable`](SpanningTree::uncountable) names it rather than hide it.
//!
//! **Unreachable nodes**: edges out of them never run; they are neither in the tree nor chords.
//! **What never exits** closes its flow through the virtual edge of its representative (see
//! [`WithExit`]), which counts runs that ended there.

use crate::union_find::UnionFind;
use crate::{DepthFirst, EdgeId, ExitEdge, Graph, NodeId, WithExit};

/// What not counting an edge is worth: as a rule, how often it runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Weight {
    /// So much.
    Finite(u64),
    /// It cannot be counted.
    Infinite,
}

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

/// A maximum spanning tree of the reachable part of a closed flow graph.
#[derive(Clone, Debug)]
pub struct SpanningTree {
    tree: Vec<FlowArc>,
    chords: Vec<(FlowArc, Weight)>,
}

struct Arc {
    arc: FlowArc,
    from: NodeId,
    to: NodeId,
    weight: Weight,
}

impl SpanningTree {
    /// A tree over the reachable nodes of `view` and its virtual exit whose arcs weigh most.
    /// `weight` is asked once per arc.
    pub fn maximum<G: Graph>(
        view: &WithExit<'_, G>,
        mut weight: impl FnMut(FlowArc) -> Weight,
    ) -> Self {
        let mut arcs = arcs(view, &mut weight);
        arcs.sort_unstable_by_key(|arc| (std::cmp::Reverse(arc.weight), arc.arc));
        let mut parts = UnionFind::new(view.node_count());
        let mut result = Self {
            tree: Vec::new(),
            chords: Vec::new(),
        };
        for Arc {
            arc,
            from,
            to,
            weight,
        } in arcs
        {
            if parts.absorb(from.0, to.0) {
                result.tree.push(arc);
            } else {
                result.chords.push((arc, weight));
            }
        }
        result.tree.sort_unstable();
        result.chords.sort_unstable();
        result
    }

    /// The arcs of the tree, ascending.
    #[must_use]
    pub fn tree(&self) -> &[FlowArc] {
        &self.tree
    }

    /// The arcs that are not in the tree, ascending, with their weights.
    #[must_use]
    pub fn chords(&self) -> &[(FlowArc, Weight)] {
        &self.chords
    }

    /// The chords that cannot be counted. If there are any, counters on the others do not
    /// determine all counts.
    pub fn uncountable(&self) -> impl Iterator<Item = FlowArc> {
        self.chords
            .iter()
            .filter(|chord| chord.1 == Weight::Infinite)
            .map(|chord| chord.0)
    }

    /// Whether `arc` is in the tree. O(log m).
    #[must_use]
    pub fn contains(&self, arc: FlowArc) -> bool {
        self.tree.binary_search(&arc).is_ok()
    }
}

/// The arcs between reachable nodes, that from the virtual exit to the entry among them.
fn arcs<G: Graph>(view: &WithExit<'_, G>, weight: &mut dyn FnMut(FlowArc) -> Weight) -> Vec<Arc> {
    let walk = DepthFirst::of(view);
    let edges = walk.preorder().iter().flat_map(|&from| {
        view.out_edges(from)
            .map(move |hop| (of_edge(view.origin(hop.edge)), from, hop.node))
    });
    let back = (FlowArc::Return, view.exit(), view.entry());
    edges
        .chain([back])
        .map(|(arc, from, to)| Arc {
            arc,
            from,
            to,
            weight: weight(arc),
        })
        .collect()
}

fn of_edge(edge: ExitEdge) -> FlowArc {
    match edge {
        ExitEdge::Real(edge) => FlowArc::Edge(edge),
        ExitEdge::Leave(node) => FlowArc::Exit(node),
        ExitEdge::Endless(node) => FlowArc::Endless(node),
    }
}
