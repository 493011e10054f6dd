//! How often things run: measured, or estimated where no measurement is at hand.
//!
//! Source: BL94, §3.2 (the heuristic weights). The function is entered once; a loop that is
//! entered N times makes ten times as many rounds; its exits are taken N times in all, each as
//! often as the others; what is left of a block's count goes to its other ways in equal shares.
//! O(nodes + edges · loop depth).
//!
//! Deviations:
//! - In whole numbers: one activation is [`SCALE`], shares are rounded down, and products stop at
//!   the largest number (after a dozen nested loops) instead of wrapping.
//! - A way out of several loops at once belongs to the outermost, which is left least often.
//! - Leaving the graph in a loop leaves the loop. An irreducible loop is entered as often as the
//!   node that was met first.

use tomo_graph::{DepthFirst, Dominators, FlowArc, FlowGraph, Graph, Loops, NodeId, Weight};

/// What one activation of the function counts for in an estimate.
pub const SCALE: u64 = 1 << 24;

/// How many rounds a loop makes each time it is entered, by estimate.
const ROUNDS: u64 = 10;

/// How often each edge, exit and the function itself runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frequencies {
    /// By edge.
    pub edges: Vec<u64>,
    /// By node: how often control leaves the graph there.
    pub exits: Vec<u64>,
    /// How often the graph is entered.
    pub entries: u64,
}

impl Frequencies {
    /// Nothing ran yet.
    #[must_use]
    pub fn none(graph: &FlowGraph) -> Self {
        Self {
            edges: vec![0; graph.edge_count()],
            exits: vec![0; graph.node_count()],
            entries: 0,
        }
    }

    /// Everything runs equally often: what weighs is the number of probes.
    #[must_use]
    pub fn uniform(graph: &FlowGraph) -> Self {
        Self {
            edges: vec![1; graph.edge_count()],
            exits: vec![1; graph.node_count()],
            entries: 1,
        }
    }

    /// An estimate from the shape of `graph`.
    #[must_use]
    pub fn estimate(graph: &FlowGraph) -> Self {
        let walk = DepthFirst::of(graph);
        let loops =
            has_loop(graph, &walk).then(|| Loops::with_walk(graph, &walk, &Dominators::of(graph)));
        let mut estimate = Estimate::new(graph, loops.as_ref());
        for node in walk.reverse_postorder() {
            estimate.visit(&walk, node);
        }
        Self {
            edges: estimate
                .edges
                .into_iter()
                .map(Option::unwrap_or_default)
                .collect(),
            exits: estimate
                .exits
                .into_iter()
                .map(Option::unwrap_or_default)
                .collect(),
            entries: SCALE,
        }
    }

    /// How often `arc` runs. Endless regions are never left; nothing runs that is not in the
    /// tables.
    #[must_use]
    pub fn of(&self, arc: FlowArc) -> u64 {
        match arc {
            FlowArc::Return => self.entries,
            FlowArc::Exit(node) => self.exits.get(node.index()).copied().unwrap_or(0),
            FlowArc::Edge(edge) => self.edges.get(edge.index()).copied().unwrap_or(0),
            FlowArc::Endless(_) => 0,
        }
    }

    /// What counting `arc` costs where everything can be patched that the graph lets count.
    #[must_use]
    pub fn weight(&self, graph: &FlowGraph, arc: FlowArc) -> Weight {
        if super::is_countable(graph, arc) {
            Weight::Finite(self.of(arc))
        } else {
            Weight::Infinite
        }
    }
}

/// Most functions have no loop, and are spared the search for them.
fn has_loop(graph: &FlowGraph, walk: &DepthFirst) -> bool {
    let leads_back = |&node: &NodeId| graph.successors(node).any(|to| walk.is_ancestor(to, node));
    walk.preorder().iter().any(leads_back)
}

struct Estimate<'a> {
    graph: &'a FlowGraph,
    loops: Option<&'a Loops>,
    /// By loop: the ways out of it that leave no outer loop.
    ways_out: Vec<Vec<FlowArc>>,
    edges: Vec<Option<u64>>,
    exits: Vec<Option<u64>>,
}

impl<'a> Estimate<'a> {
    fn new(graph: &'a FlowGraph, loops: Option<&'a Loops>) -> Self {
        let mut result = Self {
            graph,
            loops,
            ways_out: vec![Vec::new(); loops.map_or(0, Loops::count)],
            edges: vec![None; graph.edge_count()],
            exits: vec![None; graph.node_count()],
        };
        let Some(loops) = loops else {
            return result;
        };
        for from in graph.nodes() {
            if loops.innermost(from).is_none() {
                continue;
            }
            for hop in graph.out_edges(from) {
                result.note_way_out(loops, from, Some(hop.node), FlowArc::Edge(hop.edge));
            }
            if graph.is_exit(from) {
                result.note_way_out(loops, from, None, FlowArc::Exit(from));
            }
        }
        result
    }

    /// Files a way under the outermost loop that it leaves.
    fn note_way_out(&mut self, loops: &Loops, from: NodeId, to: Option<NodeId>, way: FlowArc) {
        let kept = to.and_then(|to| loops.around_both(from, to));
        let left = loops.around(from).take_while(|id| Some(*id) != kept).last();
        if let Some(left) = left {
            self.ways_out[left.0 as usize].push(way);
        }
    }

    fn slot(&mut self, way: FlowArc) -> Option<&mut Option<u64>> {
        match way {
            FlowArc::Edge(edge) => self.edges.get_mut(edge.index()),
            FlowArc::Exit(node) => self.exits.get_mut(node.index()),
            FlowArc::Return | FlowArc::Endless(_) => None,
        }
    }

    fn visit(&mut self, walk: &DepthFirst, node: NodeId) {
        let mut count = if node == self.graph.entry() { SCALE } else { 0 };
        for hop in self.graph.in_edges(node) {
            if !walk.is_ancestor(node, hop.node) {
                count = count.saturating_add(self.edges[hop.edge.index()].unwrap_or(0));
            }
        }
        if let Some(id) = self.loops.and_then(|loops| loops.headed_by(node)) {
            let ways = std::mem::take(&mut self.ways_out[id.0 as usize]);
            for &way in &ways {
                if let Some(slot) = self.slot(way) {
                    slot.get_or_insert(count / ways.len() as u64);
                }
            }
            count = count.saturating_mul(ROUNDS);
        }
        self.share(node, count);
    }

    /// Gives what no loop exit takes to the other ways.
    fn share(&mut self, node: NodeId, count: u64) {
        let graph = self.graph;
        let ways = || {
            let exit = graph.is_exit(node).then_some(FlowArc::Exit(node));
            let edges = graph.out_edges(node).map(|hop| FlowArc::Edge(hop.edge));
            edges.chain(exit)
        };
        let (mut open, mut rest) = (0, count);
        for way in ways() {
            match self.slot(way) {
                Some(Some(taken)) => rest = rest.saturating_sub(*taken),
                _ => open += 1,
            }
        }
        for way in ways() {
            if let Some(slot) = self.slot(way) {
                slot.get_or_insert(rest / u64::max(open, 1));
            }
        }
    }
}
