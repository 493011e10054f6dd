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
use crate::{FlowArc, Graph, NodeId, WithExit, closed_flow};

/// What not counting an edge is worth: as a rule, how often it runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Weight {
    /// So much.
    Finite(u64),
    /// It cannot be counted.
    Infinite,
}

/// A maximum spanning tree of the reachable part of a closed flow graph.
#[derive(Clone, Debug)]
pub struct SpanningTree {
    tree: Vec<FlowArc>,
    chords: Vec<(FlowArc, Weight)>,
}

impl SpanningTree {
    /// A tree over the reachable nodes of `view` and its virtual exit whose arcs weigh most.
    /// `weight` is asked once per arc.
    pub fn maximum<G: Graph>(
        view: &WithExit<'_, G>,
        mut weight: impl FnMut(FlowArc) -> Weight,
    ) -> Self {
        let arcs = closed_flow(view);
        let weighted: Vec<_> = arcs
            .iter()
            .map(|each| (each.from, each.to, weight(each.arc)))
            .collect();
        let taken = maximum_forest(view.node_count(), &weighted);
        let mut result = Self {
            tree: Vec::new(),
            chords: Vec::new(),
        };
        for ((each, taken), (.., weight)) in arcs.into_iter().zip(taken).zip(weighted) {
            if taken {
                result.tree.push(each.arc);
            } else {
                result.chords.push((each.arc, weight));
            }
        }
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

/// Which of `arcs` are in a maximum spanning forest of the nodes below `nodes`. Direction does not
/// matter; of arcs that weigh the same those that come first are preferred. O(m log m).
///
/// # Panics
/// If an arc has an end that is not below `nodes`.
#[must_use]
pub fn maximum_forest(nodes: usize, arcs: &[(NodeId, NodeId, Weight)]) -> Vec<bool> {
    let mut finite = Vec::with_capacity(arcs.len());
    let mut infinite = Vec::new();
    for (at, &(.., weight)) in (0u32..).zip(arcs) {
        match weight {
            Weight::Finite(weight) => finite.push((std::cmp::Reverse(weight), at)),
            Weight::Infinite => infinite.push(at),
        }
    }
    finite.sort_unstable();
    let mut parts = UnionFind::new(nodes);
    let mut taken = vec![false; arcs.len()];
    let mut open = nodes.saturating_sub(1);
    for at in infinite
        .into_iter()
        .chain(finite.into_iter().map(|each| each.1))
    {
        // Once everything is one tree nothing more can join it.
        if open == 0 {
            break;
        }
        let (from, to, _) = arcs[at as usize];
        let joins = parts.absorb(from.0, to.0);
        taken[at as usize] = joins;
        open -= usize::from(joins);
    }
    taken
}
