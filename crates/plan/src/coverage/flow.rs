//! A function's graph together with where control may stop in it: what the theory of placement
//! calls the set of executions. Flow graphs of the literature stop at exits only (BL94 §2); machine
//! code stops in calls that never come back, in endless loops, and wherever a signal finds it.

use std::borrow::Cow;

use tomo_graph::{DepthFirst, EdgeId, FlowGraph, Graph, GraphError, Hop, NodeId, WithExit};

/// Where an activation of a function may end. Each allows all that the next one allows.
///
/// It is a promise about runs. A run that was killed, that died of a signal, that ended while other
/// threads were at work, or that is looked at while it goes on, keeps only the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Ending {
    /// Behind any block.
    Anywhere,
    /// At exits, at blocks of which the caller says so (those that end in a call, which may exit,
    /// throw, jump far or wait for ever), and in any loop, which may be endless.
    AtStops,
    /// At exits only, as the literature has it. What can never exit may stop where it is entered.
    AtExits,
}

/// A flow graph whose exits are all nodes at which control may stop; from each node one is reached.
#[derive(Clone, Debug)]
pub struct Flow<'g> {
    graph: Cow<'g, FlowGraph>,
    ending: Ending,
    stops: Vec<bool>,
    /// Retreating edges out of nodes that are stops for no other reason, with these nodes.
    loops: Vec<(NodeId, EdgeId)>,
}

impl<'g> Flow<'g> {
    /// The executions of `graph` under `ending`; `may_stop` is asked for [`Ending::AtStops`].
    /// O(nodes + edges).
    pub fn new(graph: &'g FlowGraph, ending: Ending, may_stop: impl Fn(NodeId) -> bool) -> Self {
        let exits = graph.nodes().map(|node| graph.is_exit(node));
        let mut stops: Vec<bool> = match ending {
            Ending::Anywhere => vec![true; graph.node_count()],
            Ending::AtStops => exits
                .zip(graph.nodes())
                .map(|(exit, node)| exit || may_stop(node))
                .collect(),
            Ending::AtExits => exits.collect(),
        };
        let loops = match ending {
            Ending::AtStops => loops(graph, &stops),
            Ending::Anywhere | Ending::AtExits => Vec::new(),
        };
        for (latch, _) in &loops {
            stops[latch.index()] = true;
        }
        Self {
            loops,
            ..Self::closed(Cow::Borrowed(graph), ending, stops)
        }
    }

    /// The flow of a graph with known stops, to which endless regions add theirs.
    pub(super) fn closed(graph: Cow<'g, FlowGraph>, ending: Ending, stops: Vec<bool>) -> Self {
        let mut flow = Self {
            graph,
            ending,
            stops,
            loops: Vec::new(),
        };
        if ending != Ending::Anywhere {
            let endless = WithExit::of(&flow).endless().to_vec();
            for node in endless {
                flow.stops[node.index()] = true;
            }
        }
        flow
    }

    /// The graph.
    #[must_use]
    pub fn graph(&self) -> &FlowGraph {
        &self.graph
    }

    /// The edges on which walks stop for loops that may be endless, with the nodes that stand for them here: those out of
    /// which they lead.
    pub(super) fn loops(&self) -> &[(NodeId, EdgeId)] {
        &self.loops
    }

    /// What is promised of runs.
    #[must_use]
    pub fn ending(&self) -> Ending {
        self.ending
    }
}

/// `graph` with one more node, the last, as its entry: from there control comes to the old entry, to
/// each of `ways_in`, and to something before each node that would be out of reach otherwise, for
/// whoever calls code unreachable may have overlooked a way. Nodes and edges keep their numbers. The
/// new node is none of the program's and cannot be patched.
pub fn entered_at(
    graph: &FlowGraph,
    ways_in: impl IntoIterator<Item = NodeId>,
) -> Result<FlowGraph, GraphError> {
    let entry = NodeId(graph.node_count() as u32);
    let mut seen = vec![false; graph.node_count()];
    let mut ways = vec![];
    for way in [graph.entry()].into_iter().chain(ways_in) {
        if way.index() >= graph.node_count() {
            return Err(GraphError::NoSuchNode(way));
        }
        reach(graph, way, &mut seen);
        ways.push(way);
    }
    for node in graph.nodes() {
        if !seen[node.index()] {
            reach(graph, node, &mut seen);
            ways.push(node);
        }
    }
    ways.sort_unstable();
    ways.dedup();
    let edges = graph.edges().iter().copied();
    let edges = edges.chain(ways.into_iter().map(|way| (entry, way)));
    FlowGraph::new(graph.node_count() + 1, entry, edges)?
        .with_exits(graph.nodes().filter(|&node| graph.is_exit(node)))
}

fn reach(graph: &FlowGraph, from: NodeId, seen: &mut [bool]) {
    let mut open = vec![from];
    while let Some(node) = open.pop() {
        if !std::mem::replace(&mut seen[node.index()], true) {
            open.extend(graph.successors(node));
        }
    }
}

/// The retreating edges out of nodes that are no stops. An endless walk passes some retreating edge again and again, so what it
/// runs, some finite walk that ends on that edge runs.
fn loops(graph: &FlowGraph, stops: &[bool]) -> Vec<(NodeId, EdgeId)> {
    let walk = DepthFirst::of(graph);
    let mut loops = Vec::new();
    for latch in graph.nodes().filter(|node| !stops[node.index()]) {
        let hops = graph.out_edges(latch);
        let retreating = hops.filter(|hop| walk.is_retreating(latch, *hop));
        loops.extend(retreating.map(|hop| (latch, hop.edge)));
    }
    loops
}

impl Graph for Flow<'_> {
    fn node_count(&self) -> usize {
        self.graph.node_count()
    }

    fn edge_count(&self) -> usize {
        self.graph.edge_count()
    }

    fn entry(&self) -> NodeId {
        self.graph.entry()
    }

    fn out_edges(&self, node: NodeId) -> impl Iterator<Item = Hop> {
        self.graph.out_edges(node)
    }

    fn in_edges(&self, node: NodeId) -> impl Iterator<Item = Hop> {
        self.graph.in_edges(node)
    }

    fn is_exit(&self, node: NodeId) -> bool {
        self.stops[node.index()]
    }
}
