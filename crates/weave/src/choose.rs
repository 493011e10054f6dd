//! Which units of a function are to get probes, and which are known from those of others.
//!
//! With [`Placement::Reduced`], `tomo_plan::coverage` decides by what a probe at each place would
//! cost: a trap a thousand times a detour. It is asked only about *exact* functions that
//! are entered nowhere but at their entry: what is inferred rests on all ways being known. Control may
//! stop behind calls and behind instructions that enter the system.
//!
//! Edges are units where control can choose: out of blocks with several ways on. One that is
//! the only way into its block is implied by it, with any placement.

use tomo_graph::{EdgeId, NodeId};
use tomo_plan::coverage::{self, Cost, Ending, Flow, Subdivision, Unit};
use tomo_program::{BlockId, BlockView, EdgeView, FunctionView, Status};
use tomo_wire::plan::Level;

use crate::spots::Ways;
use crate::{Options, Placement};

/// What is to become of a unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// It gets a probe if there is a place.
    Probe,
    /// Others tell.
    Infer,
    /// It is no unit of the plan.
    Ignore,
}

impl From<coverage::Fate> for Fate {
    fn from(fate: coverage::Fate) -> Self {
        match fate {
            // What cannot be known gets no probe either; the attempt says why.
            coverage::Fate::Probed | coverage::Fate::Unobservable => Self::Probe,
            coverage::Fate::Inferred => Self::Infer,
            coverage::Fate::Unasked => Self::Ignore,
        }
    }
}

/// The fates of a function's units.
pub(crate) struct Choice {
    /// By block, as the function lists them.
    pub(crate) blocks: Vec<Fate>,
    /// By edge, as the function lists them.
    pub(crate) edges: Vec<Fate>,
}

/// What probes would cost; see [`Cost`].
pub(crate) struct Costs {
    /// By block.
    pub(crate) blocks: Vec<Cost>,
    /// By edge.
    pub(crate) edges: Vec<Cost>,
    /// Blocks behind which control may stop.
    pub(crate) stops: Vec<bool>,
}

impl Choice {
    /// The fates under `options`. `costs` are asked for only where something may be inferred.
    pub(crate) fn of(
        function: &FunctionView<'_>,
        ways: &Ways,
        options: &Options,
        costs: impl FnOnce() -> Costs,
    ) -> Self {
        let whole = function.status() == Status::Exact
            && !function
                .blocks()
                .any(|block| ways.foreign.has(block.address()));
        let mut choice = Self::all(function, options.level, whole);
        // A function is observed where it is entered, which is one probe already.
        let fewer = options.placement == Placement::Reduced && options.level != Level::Function;
        if fewer && whole {
            let _ = choice.reduce(function, options.level, &costs());
        }
        choice
    }

    fn all(function: &FunctionView<'_>, level: Level, whole: bool) -> Self {
        let entry = function.entry();
        let block =
            |block: BlockView<'_>| match level == Level::Function && block.address() != entry {
                true => Fate::Ignore,
                false => Fate::Probe,
            };
        Self {
            blocks: function.blocks().map(block).collect(),
            edges: match level {
                Level::Edge => all_edges(function, whole),
                Level::Function | Level::Block => Vec::new(),
            },
        }
    }

    /// Nothing, and no change, where the function has no graph.
    fn reduce(&mut self, function: &FunctionView<'_>, level: Level, costs: &Costs) -> Option<()> {
        let graph = function.flow_graph()?;
        let stops = |node: NodeId| costs.stops.get(node.index()).copied().unwrap_or(true);
        let flow = Flow::new(&graph, Ending::AtStops, stops);
        let cost = |node: NodeId| costs.blocks.get(node.index()).copied().flatten();
        if level != Level::Edge {
            let placement = coverage::reduced(&flow, cost);
            self.blocks = placement.fates.into_iter().map(Fate::from).collect();
            return Some(());
        }
        let inner: Vec<usize> = inner_edges(function).map(|(index, _)| index).collect();
        let divided = Subdivision::of(&flow).ok()?;
        // What is no unit of the plan carries nothing.
        let cost_of_edge = |index: usize| match self.edges[index] {
            Fate::Ignore => None,
            Fate::Probe | Fate::Infer => costs.edges[index],
        };
        let placement = coverage::edges(&divided, |unit| match unit {
            Unit::Block(node) => cost(node),
            Unit::Edge(EdgeId(edge)) => cost_of_edge(inner[edge as usize]),
        });
        self.blocks = placement.blocks.into_iter().map(Fate::from).collect();
        for (index, fate) in inner.into_iter().zip(placement.edges) {
            // What the placement is not asked for is no choice inside the function, but may be one
            // between staying and leaving it.
            if self.edges[index] != Fate::Ignore && fate != coverage::Fate::Unasked {
                self.edges[index] = fate.into();
            }
        }
        Some(())
    }
}

/// The edges of the function's graph, in its order, with their numbers among all.
fn inner_edges<'g>(
    function: &FunctionView<'g>,
) -> impl Iterator<Item = (usize, EdgeView)> + use<'g> {
    let function = *function;
    let inner = move |edge: &EdgeView| {
        let node = |block: BlockId| function.node(block);
        node(edge.from).is_some() && edge.block().and_then(node).is_some()
    };
    function
        .edges()
        .enumerate()
        .filter(move |(_, edge)| inner(edge))
}

fn all_edges(function: &FunctionView<'_>, whole: bool) -> Vec<Fate> {
    let mut ways_in = vec![0u32; function.block_count()];
    for edge in function.edges() {
        if let Some(to) = edge.block().and_then(|block| function.position_of(block)) {
            ways_in[to] += 1;
        }
    }
    if let Some(entry) = function
        .entry_block()
        .and_then(|entry| function.position_of(entry.id()))
    {
        ways_in[entry] += 1;
    }
    let only_way = |edge: &EdgeView| {
        let to = edge.block().and_then(|block| function.position_of(block));
        whole && to.is_some_and(|to| ways_in[to] == 1)
    };
    let mut fates = Vec::new();
    for block in function.blocks() {
        let edges: Vec<_> = block.successors().collect();
        let chooses = edges.len() > 1;
        let mut before = None;
        for edge in edges {
            // Two edges between the same blocks are one unit.
            let again = before.replace(edge.address) == Some(edge.address);
            fates.push(match (chooses && !again, only_way(&edge)) {
                (false, _) => Fate::Ignore,
                (true, true) => Fate::Infer,
                (true, false) => Fate::Probe,
            });
        }
    }
    fates
}
