//! Execution counts: from the counters of a module to how often its functions, blocks and edges ran.
//!
//! The plan that chose the counters is not stored: which arcs were counted follows from what each counter
//! counts and from the graph, and everything else from the arcs (BL94 §3.1, `tomo_profile::counts`).

mod merging;

pub use merging::{TooMany, merge};

use std::collections::{BTreeMap, HashMap, HashSet};

use rayon::prelude::*;
use rustc_hash::FxHashMap;
use tomo_graph::{FlowArc, FlowGraph, NodeId, Weight};
use tomo_plan::counting::{CountingPlan, Frequencies, Place, Role, places};
use tomo_profile::counts::{CountError, Counts as Inferred, Cut, infer_with};
use tomo_program::{
    Address, BlockView, EdgeId, EdgeView, FunctionId, FunctionView, Graphs, Status,
};
use tomo_wire::counting::Row;

/// How often the parts of a function ran. What no counter tells is `None`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FunctionCounts {
    /// The function.
    pub function: FunctionId,
    /// How often it was entered.
    pub activations: Option<u64>,
    /// Its blocks, by address: how often each started.
    pub blocks: Vec<Option<u64>>,
    /// Its edges that stay in it, with how often control passed along each.
    pub edges: Vec<(EdgeId, Option<u64>)>,
}

/// Of which functions something is to be said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// All of them.
    All,
    /// Those of which a counter is not zero, or that have none: of others there is nothing to be found out, which takes its time.
    Ran,
}

/// The counts of a module.
#[derive(Debug, Default)]
pub struct Counts {
    /// Functions, in the order of the model.
    pub functions: Vec<FunctionCounts>,
    /// Functions of which too little is known to count them.
    pub uncounted: Vec<FunctionId>,
    /// Functions whose counters contradict each other.
    pub contradictory: Vec<(FunctionId, CountError)>,
}

/// What was recorded of a module: what each counter counts, its value, and where faults took threads out of the middle of a block.
#[derive(Clone, Copy, Debug)]
pub struct Recorded<'r> {
    /// What each counter counts.
    pub rows: &'r [Row],
    /// Their values.
    pub values: &'r [u64],
    /// By instruction: how often threads were taken out there, less how often they came back.
    pub cuts: &'r BTreeMap<u64, i64>,
}

/// The counts of the module with these graphs.
#[must_use]
pub fn counts(graphs: &Graphs<'_>, recorded: Recorded<'_>, extent: Extent) -> Counts {
    let Recorded { rows, values, cuts } = recorded;
    let known = known(rows, values);
    let idle = (extent == Extent::Ran).then(|| idle(graphs, rows, values));
    let is_countable = countable(graphs);
    let (countable, others): (Vec<_>, Vec<_>) = graphs.functions().partition(is_countable);
    let asked: Vec<_> = countable
        .into_iter()
        .filter(|function| {
            !idle
                .as_ref()
                .is_some_and(|idle| idle.contains(&function.id()))
        })
        .collect();
    let all: Vec<_> = asked
        .par_iter()
        .map(|function| (function.id(), counts_of(function, &known, cuts)))
        .collect();
    let mut counts = Counts {
        uncounted: others.iter().map(FunctionView::id).collect(),
        ..Counts::default()
    };
    for (id, outcome) in all {
        match outcome {
            None => counts.uncounted.push(id),
            Some(Ok(function)) => counts.functions.push(function),
            Some(Err(error)) => counts.contradictory.push((id, error)),
        }
    }
    counts.uncounted.sort_unstable();
    counts
}

/// Tells of which functions enough is known. Jumps of others into the middle of one would be ways in that its graph has not.
fn countable(graphs: &Graphs<'_>) -> impl Fn(&FunctionView<'_>) -> bool + use<> {
    let entered = graphs.entered_within();
    move |function| {
        let is_known = function.status() == Status::Exact && function.entry_block().is_some();
        is_known && !entered.contains(&function.id())
    }
}

/// Functions with counters, all of which are zero.
fn idle(graphs: &Graphs<'_>, rows: &[Row], values: &[u64]) -> HashSet<FunctionId> {
    let function = |row: &Row| {
        let block = graphs.block_at(Address(row.from.get()))?;
        Some(block.function()?.id())
    };
    let counted = rows.iter().zip(values);
    let (ran, mut idle): (HashSet<_>, HashSet<_>) = (
        counted
            .filter(|(_, value)| **value > 0)
            .filter_map(|(row, _)| function(row))
            .collect(),
        rows.iter().filter_map(function).collect(),
    );
    idle.retain(|function| !ran.contains(function));
    idle
}

/// How often the arcs of each function ran, for the next choice of counters; what is not known counts as never.
#[must_use]
pub fn frequencies(
    graphs: &Graphs<'_>,
    rows: &[Row],
    values: &[u64],
) -> HashMap<FunctionId, Frequencies> {
    let known = known(rows, values);
    let functions: Vec<_> = graphs.functions().filter(countable(graphs)).collect();
    let each = functions.par_iter().filter_map(|function| {
        let mapped = Mapped::of(function)?;
        let counts = mapped.infer(&known, &BTreeMap::new()).ok()?;
        Some((function.id(), counts.frequencies(&mapped.graph)))
    });
    each.collect()
}

/// Values by what they count.
fn known(rows: &[Row], values: &[u64]) -> FxHashMap<(u64, u64), u64> {
    let pairs = rows.iter().zip(values);
    pairs
        .map(|(row, value)| ((row.from.get(), row.to.get()), *value))
        .collect()
}

/// A function's graph, with what its nodes and edges are.
struct Mapped<'g> {
    graph: FlowGraph,
    blocks: Vec<BlockView<'g>>,
    edges: Vec<EdgeView>,
    /// What leaves blocks that end in a call, or in a system call that forks: each may come back more often than it is made,
    /// for whoever is called may fork.
    returns_again: HashSet<NodeId>,
}

impl<'g> Mapped<'g> {
    fn of(function: &FunctionView<'g>) -> Option<Self> {
        let edges = function.edges().filter(|edge| edge.block().is_some());
        Some(Self {
            graph: function.counting_graph()?,
            blocks: function.blocks().collect(),
            edges: edges.collect(),
            returns_again: function
                .may_stop_behind()
                .filter_map(|block| function.node(block))
                .map(|node| NodeId(2 * node.0 + 1))
                .collect(),
        })
    }

    /// Where the block starts that a node enters or leaves.
    fn address(&self, node: NodeId) -> Option<u64> {
        Some(self.blocks.get(node.index() / 2)?.address().0)
    }

    /// The number of the function's own edge that an edge of the graph is.
    fn own(&self, edge: tomo_graph::EdgeId) -> Option<usize> {
        edge.index().checked_sub(self.blocks.len())
    }

    /// The value of the counter that an arc has, if it has one, and where that is.
    fn counted(&self, arc: FlowArc, known: &FxHashMap<(u64, u64), u64>) -> Option<(u64, Place)> {
        places(&self.graph, arc).into_iter().find_map(|place| {
            let key = match (place, arc) {
                (Place::Target(node) | Place::Source(node), _) => (self.address(node)?, 0),
                (Place::Split, FlowArc::Edge(edge)) => {
                    let from = self.address(self.graph.source(edge))?;
                    (from, self.edges.get(self.own(edge)?)?.key())
                }
                _ => return None,
            };
            Some((known.get(&key).copied()?, place))
        })
    }

    /// All counts, from those that are known.
    fn infer(
        &self,
        known: &FxHashMap<(u64, u64), u64>,
        cuts: &BTreeMap<u64, i64>,
    ) -> Result<Inferred, CountError> {
        let plan = CountingPlan::new(&self.graph, |arc| match self.counted(arc, known) {
            Some(_) => Weight::Finite(1),
            None => Weight::Infinite,
        });
        let cuts = self.cuts(cuts)?;
        let counted = plan.arcs().iter();
        let counted = counted.filter(|arc| matches!(arc.role, Role::Counted(_)));
        let recorded = counted.map(|arc| {
            let arc = arc.ends.arc;
            let (value, place) = self.counted(arc, known).unwrap_or((0, Place::Split));
            // Counted is that the block begins; those that were cut in it have not left it by this arc.
            let cut = cuts.iter().find(|cut| place == Place::Source(cut.node));
            let cut = cut.map_or(0, |cut| cut.count);
            value.checked_sub(cut).ok_or(CountError::Negative {
                arc,
                count: i128::from(value) - i128::from(cut),
            })
        });
        let recorded: Vec<u64> = recorded.collect::<Result<_, _>>()?;
        infer_with(&plan, &recorded, &cuts, |node| {
            self.returns_again.contains(&node)
        })
    }

    /// Activations that faults have cut, by block. They were counted in it: no counter stands behind what may fault.
    fn cuts(&self, cuts: &BTreeMap<u64, i64>) -> Result<Vec<Cut>, CountError> {
        let blocks = (0..).zip(&self.blocks).filter(|_| !cuts.is_empty());
        let sums = blocks.map(|(number, block)| {
            let range = block.range();
            let inside = cuts.range(range.start().0..range.end().0);
            let sum: i64 = inside.map(|(_, count)| count).sum();
            (NodeId(2 * number + 1), sum)
        });
        let cut = |(node, sum): (NodeId, i64)| match u64::try_from(sum) {
            Ok(count) => Ok(Cut { node, count }),
            Err(_) => Err(CountError::CameBack { node, count: sum }),
        };
        let some = sums.filter(|(_, sum)| *sum != 0);
        some.map(cut).collect()
    }
}

/// `None` where the function cannot be counted.
fn counts_of(
    function: &FunctionView<'_>,
    known: &FxHashMap<(u64, u64), u64>,
    cuts: &BTreeMap<u64, i64>,
) -> Option<Result<FunctionCounts, CountError>> {
    let mapped = Mapped::of(function)?;
    Some(mapped.infer(known, cuts).map(|counts| {
        let count = mapped.blocks.len() as u32;
        let edges = (count..).zip(&mapped.edges).map(|(number, edge)| {
            let arc = FlowArc::Edge(tomo_graph::EdgeId(number));
            (edge.id, counts.of(arc))
        });
        let nodes = (0..count).map(|block| counts.of_node(NodeId(2 * block)));
        FunctionCounts {
            function: function.id(),
            activations: counts.activations(),
            blocks: nodes.collect(),
            edges: edges.collect(),
        }
    }))
}
