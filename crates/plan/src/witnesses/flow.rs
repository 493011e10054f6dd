//! The paths that matter to a function's witnesses, as one graph of states.
//!
//! Sources: DPT §4.2 (an edge from exit to entry of what may be called again, and from call to
//! return) and BL94 (tracing of several procedures), redone for what reconstruction needs: whatever
//! the program may do between two hits of the function's own witnesses must be a path here.
//!
//! A state is a node, or lies between its calls and the choice of its way on. Moves out of a *fork*
//! are what reconstruction must choose between; other states with several moves are *silent*: what
//! happens there is decided elsewhere, or does not matter. Beside the function's own edges:
//! - **leaving** leads to the state *left*, and from there the record may end, and, if the function
//!   may be entered again, go on at its entry;
//! - **a recursive call** may lead to the entry first; and *left* may lead back to where the calls
//!   of that node are done;
//! - **a call that never comes back** leads to the end of the record and nowhere else;
//! - **a call that may end the run** leads to the end of the record too, if the witnesses shall tell
//!   every execution ([`Ends::All`]); they then are many, since much code calls what may abort;
//! - **an endless region** leads to the end from its representative
//!   (see [`WithExit`]): a run that is killed there ends too.
//!
//! **Deviation**: DPT adds the edge between call and return location as a real edge; as the
//! call itself is no branch of the caller, only recursion needs one. O(nodes + edges + calls).
//!
//! **A limit**: a node that calls its own function again and then *chooses* whether to leave cannot
//! be told by the function's own places (was it the inner or the outer activation that left?).
//! Where blocks end at calls there is none: what follows the call is a place of its own.
//!
//! **Unreachable nodes** have no moves: they never run.
//!
//! Of a function that is *loose* ([`Loose`]) nothing is believed but its own graph: each call may give control away for
//! good, or to another activation of the same function. Where blocks end at calls this costs little: what
//! separates two ways then stands before the next call.

use tomo_graph::{DepthFirst, EdgeId, ExitEdge, FlowGraph, Graph, NodeId, WithExit, Without};

use super::program::Loose;
use super::{FunctionId, Program};

/// Where a witness can be, in a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Place {
    /// On entering this node.
    Node(NodeId),
    /// On taking this edge.
    Edge(EdgeId),
}

/// How often a function without a program around it may be entered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Entered {
    /// Once in a run, at most.
    Once,
    /// Any number of times, but not while it is active.
    Again,
}

/// Which ends of a run the witnesses must tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Ends {
    /// All, also those inside what a function calls (`exit`, `abort`).
    All,
    /// The return of the main function; a run that ends elsewhere is told up to where it is
    /// certain.
    Returns,
}

/// No place.
pub(crate) const NO_PLACE: u32 = u32::MAX;

/// A move between states.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Move {
    pub(crate) to: u32,
    /// The place that is passed, besides that of the state entered; or `NO_PLACE`.
    pub(crate) place: u32,
}

/// The state graph of a function. Places are numbered: nodes first, then edges.
#[derive(Clone, Debug)]
pub struct Flow {
    starts: Vec<u32>,
    moves: Vec<Move>,
    /// Per state: the place that is passed on entering it, or `NO_PLACE`.
    entering: Vec<u32>,
    /// Per state: the node of which it is the choice, or `NO_PLACE` for others.
    choice: Vec<u32>,
    forks: Vec<u32>,
    nodes: u32,
    edges: u32,
}

impl Flow {
    /// The flow of a function by itself.
    #[must_use]
    pub fn of_graph(graph: &FlowGraph, entered: Entered) -> Self {
        let around = Around {
            again: entered == Entered::Again,
            calls: |_| Calls::default(),
            halts: &[],
        };
        Sketch::of(graph, &around).finish(graph)
    }

    /// The flow of a function of a program.
    #[must_use]
    pub fn of_function(program: &Program, id: FunctionId, ends: Ends) -> Self {
        let function = program.function(id);
        if let Some(loose) = program.loose(id) {
            return Sketch::of_loose(&function.graph, loose).finish(&function.graph);
        }
        let around = Around {
            again: program.entered_again(id),
            calls: |node| Calls::of(program, id, node, ends),
            halts: &function.halts,
        };
        Sketch::of(&function.graph, &around).finish(&function.graph)
    }

    /// How many places there are; the same number stands for the end of the record.
    #[must_use]
    pub fn places(&self) -> usize {
        (self.nodes + self.edges) as usize
    }

    /// The number of a place.
    #[must_use]
    pub fn number(&self, place: Place) -> u32 {
        match place {
            Place::Node(node) => node.0,
            Place::Edge(edge) => self.nodes + edge.0,
        }
    }

    /// The place of a number below [`places`](Self::places).
    #[must_use]
    pub fn place(&self, number: u32) -> Place {
        match number.checked_sub(self.nodes) {
            None => Place::Node(NodeId(number)),
            Some(edge) => Place::Edge(EdgeId(edge)),
        }
    }

    /// The nodes at which there is a choice, ascending.
    pub fn forks(&self) -> impl Iterator<Item = NodeId> {
        let mut nodes: Vec<_> = self
            .fork_states()
            .iter()
            .map(|&at| self.node_of(at))
            .collect();
        nodes.sort_unstable();
        nodes.into_iter()
    }

    /// How many ways lead on from a node: its edges in order, then leaving, if it may.
    #[must_use]
    pub fn ways(&self, node: NodeId) -> usize {
        self.choice_of(node)
            .map_or(0, |state| self.moves(state).len())
    }

    pub(crate) fn states(&self) -> usize {
        self.entering.len()
    }

    pub(crate) fn moves(&self, state: u32) -> &[Move] {
        let at = state as usize;
        &self.moves[self.starts[at] as usize..self.starts[at + 1] as usize]
    }

    pub(crate) fn entering(&self, state: u32) -> u32 {
        self.entering[state as usize]
    }

    pub(crate) fn fork_states(&self) -> &[u32] {
        &self.forks
    }

    /// The node of a state at which a way is chosen.
    pub(crate) fn node_of(&self, fork: u32) -> NodeId {
        NodeId(self.choice[fork as usize])
    }

    pub(crate) fn is_choice(&self, state: u32) -> bool {
        self.choice[state as usize] != NO_PLACE
    }

    /// The state in which the way on from `node` is chosen, if control gets there.
    pub(crate) fn choice_of(&self, node: NodeId) -> Option<u32> {
        if self.choice.get(node.index()) == Some(&node.0) {
            return Some(node.0);
        }
        let split = self.nodes as usize + 2;
        let after = self.choice.get(split..)?;
        let at = after.binary_search(&node.0).ok()?;
        Some((split + at) as u32)
    }

    /// The state in which the record has ended.
    pub(crate) fn end(&self) -> u32 {
        self.nodes + 1
    }

    /// The number that stands for the end of the record among places.
    pub(crate) fn end_place(&self) -> u32 {
        self.nodes + self.edges
    }
}

/// What the calls in a node mean to the function.
#[derive(Clone, Copy, Debug, Default)]
struct Calls {
    recursive: bool,
    dead: bool,
    ends: bool,
}

impl Calls {
    fn of(program: &Program, id: FunctionId, node: NodeId, ends: Ends) -> Self {
        let mut result = Self::default();
        for call in program.calls_in(id, node) {
            let targets = || call.targets.iter().copied();
            result.recursive |= targets().any(|to| program.recursive(id, to));
            result.ends |= ends == Ends::All && targets().any(|to| program.may_halt(to));
            result.dead = !targets().any(|to| program.returns(to));
            if result.dead {
                result.ends = true;
                break;
            }
        }
        result
    }

    fn splits(self) -> bool {
        self.recursive || self.dead || self.ends
    }
}

/// What surrounds a graph.
struct Around<'a, F> {
    again: bool,
    calls: F,
    halts: &'a [NodeId],
}

/// A flow while it is made.
struct Sketch {
    arcs: Vec<(u32, Move)>,
    /// Nodes that are split, ascending; the k-th has its choice in state nodes + 2 + k.
    split: Vec<u32>,
    live: Vec<bool>,
}

impl Sketch {
    fn of<F: Fn(NodeId) -> Calls>(graph: &FlowGraph, around: &Around<'_, F>) -> Self {
        let calls: Vec<Calls> = graph.nodes().map(&around.calls).collect();
        let dead = |edge| calls[graph.source(edge).index()].dead;
        let view = Without::edges(graph, dead);
        let exits = WithExit::of(&view);
        let walk = DepthFirst::of(&view);
        let mut sketch = Self {
            arcs: Vec::with_capacity(graph.edge_count() + graph.node_count()),
            split: Vec::new(),
            live: graph.nodes().map(|node| walk.is_reachable(node)).collect(),
        };
        let live = &sketch.live;
        let splits = |at: &u32| live[*at as usize] && calls[*at as usize].splits();
        sketch.split = (0..graph.node_count() as u32).filter(splits).collect();
        let (left, end) = (graph.node_count() as u32, graph.node_count() as u32 + 1);
        sketch.silent(left, end);
        if around.again {
            sketch.silent(left, graph.entry().0);
        }
        for &node in walk.preorder() {
            if let Some(from) = sketch.calls(graph, node, calls[node.index()]) {
                sketch.choices(graph, &exits, around.halts, node, from);
            }
        }
        sketch
    }

    /// From a cut everything may follow that may follow when the function is not active, and other way round: what
    /// was given away may come back to any activation.
    fn of_loose(graph: &FlowGraph, loose: &Loose) -> Self {
        let nodes = graph.node_count() as u32;
        let mut split: Vec<u32> = loose.cuts.iter().map(|node| node.0).collect();
        split.sort_unstable();
        split.dedup();
        // Where control is given away the record may end: no region with such a place is endless.
        let is_cut = |edge| split.binary_search(&graph.source(edge).0).is_ok();
        let uncut = Without::edges(graph, is_cut);
        let exits = WithExit::of(&uncut);
        let leaves = |node: NodeId| exits.leave_edge(node).is_some();
        let endless: Vec<bool> = graph.nodes().map(leaves).collect();
        let mut sketch = Self {
            arcs: Vec::with_capacity(graph.edge_count() + graph.node_count()),
            split,
            live: vec![true; graph.node_count()],
        };
        let (left, end) = (nodes, nodes + 1);
        sketch.silent(left, end);
        sketch.silent(left, graph.entry().0);
        for landing in &loose.landings {
            sketch.silent(left, landing.0);
        }
        for node in graph.nodes() {
            let mut from = node.0;
            if let Ok(at) = sketch.split.binary_search(&node.0) {
                let choice = end + 1 + at as u32;
                sketch.silent(node.0, left);
                sketch.silent(left, choice);
                from = choice;
            }
            for hop in graph.out_edges(node) {
                let (to, place) = (hop.node.0, nodes + hop.edge.0);
                sketch.arcs.push((from, Move { to, place }));
            }
            if graph.is_exit(node) {
                sketch.silent(from, left);
            } else if from == node.0 && endless[node.index()] {
                sketch.silent(from, end);
            }
        }
        sketch
    }

    fn silent(&mut self, from: u32, to: u32) {
        let place = NO_PLACE;
        self.arcs.push((from, Move { to, place }));
    }

    /// Adds what calls in `node` bring, and gives the state in which its way on is chosen.
    fn calls(&mut self, graph: &FlowGraph, node: NodeId, calls: Calls) -> Option<u32> {
        if !calls.splits() {
            return Some(node.0);
        }
        let (left, end) = (graph.node_count() as u32, graph.node_count() as u32 + 1);
        let at = self.split.partition_point(|&split| split < node.0);
        let choice = end + 1 + at as u32;
        if calls.recursive {
            self.silent(node.0, graph.entry().0);
        }
        if calls.ends {
            self.silent(node.0, end);
        }
        if calls.dead {
            return None;
        }
        self.silent(node.0, choice);
        if calls.recursive {
            self.silent(left, choice);
        }
        Some(choice)
    }

    fn choices<G: Graph>(
        &mut self,
        graph: &FlowGraph,
        exits: &WithExit<'_, G>,
        halts: &[NodeId],
        node: NodeId,
        from: u32,
    ) {
        let nodes = graph.node_count() as u32;
        for hop in graph.out_edges(node) {
            let (to, place) = (hop.node.0, nodes + hop.edge.0);
            self.arcs.push((from, Move { to, place }));
        }
        let leave = exits.leave_edge(node).map(|edge| exits.origin(edge));
        match leave {
            Some(ExitEdge::Leave(_)) if !halts.contains(&node) => self.silent(from, nodes),
            Some(_) => self.silent(from, nodes + 1),
            None => {}
        }
    }

    fn finish(self, graph: &FlowGraph) -> Flow {
        let nodes = graph.node_count();
        let states = nodes + 2 + self.split.len();
        let (starts, moves) = rows(states, &self.arcs);
        let mut entering: Vec<u32> = (0..nodes as u32).collect();
        entering.resize(states, NO_PLACE);
        let mut choice: Vec<u32> = (0..nodes as u32).collect();
        for &node in &self.split {
            choice[node as usize] = NO_PLACE;
        }
        for (node, live) in self.live.iter().enumerate().take(nodes) {
            if !live {
                choice[node] = NO_PLACE;
            }
        }
        choice.extend([NO_PLACE; 2]);
        choice.extend(&self.split);
        let several = |&at: &u32| {
            choice[at as usize] != NO_PLACE && starts[at as usize + 1] - starts[at as usize] > 1
        };
        let forks = (0..states as u32).filter(several).collect();
        Flow {
            starts,
            moves,
            entering,
            choice,
            forks,
            nodes: nodes as u32,
            edges: graph.edge_count() as u32,
        }
    }
}

/// Moves by state, in the order given, by counting.
fn rows(states: usize, arcs: &[(u32, Move)]) -> (Vec<u32>, Vec<Move>) {
    let mut starts = vec![0u32; states + 1];
    for (from, _) in arcs {
        starts[*from as usize + 1] += 1;
    }
    for state in 0..states {
        starts[state + 1] += starts[state];
    }
    let mut cursor = starts.clone();
    let mut moves = vec![Move { to: 0, place: 0 }; arcs.len()];
    for &(from, step) in arcs {
        moves[cursor[from as usize] as usize] = step;
        cursor[from as usize] += 1;
    }
    (starts, moves)
}
