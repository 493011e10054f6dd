//! A program's functions with how often everything in them ran.

use std::collections::HashMap;

use serde::Deserialize;
use tomo_graph::{EdgeId, FlowArc, FlowGraph, Graph as _, NodeId, Weight};
use tomo_plan::counting::Frequencies;
use tomo_plan::witnesses::{Effort, Ends, Flow, FunctionId, Loose, Place, Program, place};
use tomo_program::{EdgeKind, EdgeView, FunctionView, Graphs, Status};

use crate::disposal::StudyError;

/// A function that can be traced, wherever witnesses are.
#[derive(Clone, Debug)]
pub struct Function {
    /// Its control flow.
    pub graph: FlowGraph,
    /// What surrounds it.
    pub loose: Loose,
    /// How often each block and each way runs by the estimate: blocks first.
    pub estimated: Vec<u64>,
    /// Where its blocks start.
    pub starts: Vec<u64>,
}

/// What `tomo count` tells of a run.
#[derive(Debug, Deserialize)]
struct Document {
    functions: Vec<Counted>,
}

#[derive(Debug, Deserialize)]
struct Counted {
    address: String,
    blocks: Vec<CountedBlock>,
    edges: Vec<CountedEdge>,
}

#[derive(Debug, Deserialize)]
struct CountedBlock {
    count: Option<u64>,
}

#[derive(Debug, Deserialize)]
struct CountedEdge {
    from: String,
    to: String,
    count: Option<u64>,
}

/// How often each block and each way of functions ran, by the function's entry.
pub type Counts = HashMap<u64, Vec<u64>>;

impl Function {
    /// `None` where too little is known of it, or its ways cannot be told apart.
    #[must_use]
    pub fn of(function: &FunctionView<'_>) -> Option<Self> {
        let mut jumps = function.indirect_jumps();
        if function.status() != Status::Exact || jumps.any(|jump| jump.resolution().is_open()) {
            return None;
        }
        let estimate = Frequencies::estimate(&function.counting_graph()?);
        let blocks = function.block_count();
        let mut estimated: Vec<u64> = (0..blocks)
            .map(|at| estimate.of(FlowArc::Edge(EdgeId(at as u32))))
            .collect();
        let whole = function.flow_graph()?;
        let mut edges: Vec<(NodeId, NodeId)> = Vec::new();
        let mut known: HashMap<(NodeId, NodeId), usize> = HashMap::new();
        let mut landings = Vec::new();
        // As the graph has them.
        let is_inside = |edge: &EdgeView| edge.block().and_then(|to| function.node(to)).is_some();
        let inside = function.edges().filter(is_inside);
        for ((at, &ends), edge) in (blocks as u32..).zip(whole.edges()).zip(inside) {
            if edge.kind == EdgeKind::LandingPad {
                landings.push(ends.1);
                continue;
            }
            let row = *known.entry(ends).or_insert_with(|| {
                edges.push(ends);
                estimated.push(0);
                estimated.len() - 1
            });
            estimated[row] += estimate.of(FlowArc::Edge(EdgeId(at)));
        }
        landings.sort_unstable();
        landings.dedup();
        let graph = FlowGraph::new(blocks, whole.entry(), edges).ok()?;
        let exits = whole.nodes().filter(|&node| whole.is_exit(node));
        let stops = function.may_stop_behind();
        let mut cuts: Vec<NodeId> = stops.filter_map(|block| function.node(block)).collect();
        cuts.sort_unstable();
        cuts.dedup();
        let made = Self {
            graph: graph.with_exits(exits).ok()?,
            loose: Loose { cuts, landings },
            estimated,
            starts: function.blocks().map(|block| block.address().0).collect(),
        };
        made.is_told().then_some(made)
    }

    /// Whether witnesses everywhere tell its ways apart.
    fn is_told(&self) -> bool {
        let parts = vec![(self.graph.clone(), self.loose.clone())];
        Program::of_loose(parts).is_ok_and(|program| {
            let flow = Flow::of_function(&program, FunctionId(0), Ends::Returns);
            place(&flow, |_| Weight::Finite(1), Effort::Forest).is_ok()
        })
    }

    /// The row of a place in tables.
    #[must_use]
    pub fn row(&self, place: Place) -> usize {
        match place {
            Place::Node(node) => node.index(),
            Place::Edge(edge) => self.graph.node_count() + edge.index(),
        }
    }

    /// What a run's counts say of it; `None` where they do not say all.
    fn counted(&self, counted: &Counted) -> Option<Vec<u64>> {
        let blocks = counted.blocks.iter().map(|block| block.count);
        let mut counts: Vec<u64> = blocks.collect::<Option<_>>()?;
        if counts.len() != self.starts.len() {
            return None;
        }
        counts.resize(self.graph.node_count() + self.graph.edge_count(), 0);
        let mut rows = HashMap::new();
        for (at, (from, to)) in self.graph.edges().iter().enumerate() {
            let ends = (self.starts[from.index()], self.starts[to.index()]);
            rows.insert(ends, self.graph.node_count() + at);
        }
        for edge in &counted.edges {
            let ends = (address(&edge.from)?, address(&edge.to)?);
            if let Some(&row) = rows.get(&ends) {
                counts[row] += edge.count?;
            }
        }
        Some(counts)
    }
}

/// All functions of a program that can be traced.
#[must_use]
pub fn functions(graphs: &Graphs<'_>) -> Vec<Function> {
    let functions = graphs.functions();
    functions.filter_map(|one| Function::of(&one)).collect()
}

/// How often everything ran in `functions`, by what `tomo count` tells of a run; functions of which that does not tell all
/// are missing.
///
/// # Errors
/// Where that is no such document.
pub fn counts(functions: &[Function], document: &[u8]) -> Result<Counts, StudyError> {
    let document: Document = serde_json::from_slice(document)?;
    let told = document.functions.iter();
    let told = told.filter_map(|one| Some((address(&one.address)?, one)));
    let told: HashMap<u64, &Counted> = told.collect();
    let each = functions.iter().filter_map(|function| {
        let entry = function.entry();
        Some((entry, function.counted(told.get(&entry)?)?))
    });
    Ok(each.collect())
}

impl Function {
    /// Where it is entered, which names it.
    #[must_use]
    pub fn entry(&self) -> u64 {
        self.starts[self.graph.entry().index()]
    }
}

fn address(text: &str) -> Option<u64> {
    u64::from_str_radix(text.strip_prefix("0x")?, 16).ok()
}
