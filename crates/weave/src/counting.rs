//! Which counters a program gets, and where: for each function the cheapest set that tells how often every
//! edge and block ran (BL94 §3, `tomo_plan::counting`), at places where they can be.
//!
//! The plan asks what counting an arc costs; a place that cannot be had weighs infinitely. Whether two
//! counters get along in one block is known only when both are asked for: where they do not, the dearer way is
//! given up and the plan made anew, so that what is planned can be had. What no set of counters can tell
//! is lost, and named (`CountingPlan::lost`).
//!
//! Every call may be one that never comes back, so blocks that end in one are exits of the graph as well (see
//! there, "What is counted when an activation is cut short"): counts stay exact when exceptions, `longjmp` or
//! `exit` leave functions in the middle.

use std::collections::{HashMap, HashSet};

use rayon::prelude::*;
use tomo_graph::{FlowArc, FlowGraph, Graph as _, NodeId, Weight};
use tomo_plan::counting::{CountingPlan, Frequencies, Place, places};
use tomo_program::{EdgeKind, EdgeView, FunctionId, FunctionView, Graphs, Status};

use crate::place::Surroundings;
use crate::staying::action::What;
use crate::staying::code::{Code, Wants};
use crate::staying::live::Liveness;
use crate::staying::region::{Call, Region};
use crate::staying::whole::MovedBlocks;

/// What a counter counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Counter {
    /// The block that is reached, or that the edge leaves.
    pub(crate) from: u64,
    /// The key of the edge; 0 for a block.
    pub(crate) to: u64,
}

/// The counters of some functions.
#[derive(Debug, Default)]
pub(crate) struct Counting {
    pub(crate) counters: Vec<Counter>,
    /// What is executed elsewhere, where increments name counters by their position.
    pub(crate) regions: Vec<Region>,
    /// Direct calls of functions that are counted.
    pub(crate) calls: Vec<Call>,
    /// Entries of functions that cannot be counted at all.
    pub(crate) uncounted: Vec<u64>,
}

/// How often the arcs of functions ran in an earlier run, as far as that is known.
pub type Weights = HashMap<FunctionId, Frequencies>;

/// The counters of all functions, in order. What is not in `weights` is estimated.
pub(crate) fn all(around: &Surroundings<'_>, graphs: &Graphs<'_>, weights: &Weights) -> Counting {
    let live = Liveness::of(around.text, graphs);
    let functions: Vec<_> = graphs.functions().collect();
    let entered = graphs.entered_within();
    let chunks = functions.par_chunks(64).map(|functions| {
        let mut counting = Counting::default();
        for function in functions {
            // What comes in by others' jumps into its middle is in no graph of it.
            match entered.contains(&function.id()) {
                true => counting.uncounted.push(function.entry().0),
                false => add(around, &live, function, weights, &mut counting),
            }
        }
        counting
    });
    let mut all = Counting::default();
    for chunk in chunks.collect::<Vec<Counting>>() {
        let first = all.counters.len() as u32;
        all.counters.extend(chunk.counters);
        all.uncounted.extend(chunk.uncounted);
        all.calls.extend(chunk.calls);
        for mut region in chunk.regions {
            region.renumber(first);
            all.regions.push(region);
        }
    }
    all
}

/// Adds the counters of one function.
fn add(
    around: &Surroundings<'_>,
    live: &Liveness<'_>,
    function: &FunctionView<'_>,
    weights: &Weights,
    counting: &mut Counting,
) {
    let planner = Planner::of(around, live, function, weights);
    match planner {
        Some(planner) => {
            planner.settle(counting);
            counting
                .calls
                .extend(planner.blocks.iter().filter_map(Code::call));
        }
        None => counting.uncounted.push(function.entry().0),
    }
}

struct Planner<'f> {
    graph: FlowGraph,
    frequencies: Frequencies,
    /// The function's own edges.
    edges: Vec<EdgeView>,
    blocks: Vec<Code<'f>>,
    moved: MovedBlocks,
}

/// An arc with the place where it is counted.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Chosen {
    arc: FlowArc,
    place: Place,
}

impl<'f> Planner<'f> {
    fn of(
        around: &Surroundings<'f>,
        live: &Liveness<'_>,
        function: &FunctionView<'f>,
        weights: &Weights,
    ) -> Option<Self> {
        if function.status() != Status::Exact {
            return None;
        }
        let graph = function.counting_graph()?;
        let blocks = function
            .blocks()
            .map(|block| Code::of(around, live, &block));
        let edges = function.edges().filter(|edge| edge.block().is_some());
        let blocks: Vec<Code<'f>> = blocks.collect::<Option<_>>()?;
        Some(Self {
            moved: MovedBlocks::of(around, function, &blocks),
            frequencies: match weights.get(&function.id()) {
                Some(measured) => measured.clone(),
                None => Frequencies::estimate(&graph),
            },
            edges: edges.collect(),
            blocks,
            graph,
        })
    }

    /// Plans until all that is planned has its place.
    fn settle(&self, counting: &mut Counting) {
        let mut given_up: HashSet<Chosen> = HashSet::new();
        loop {
            let choose = |arc| self.choose(arc, &given_up);
            let plan = CountingPlan::new(&self.graph, |arc| match choose(arc) {
                Some((_, cost)) => Weight::Finite(cost),
                None => Weight::Infinite,
            });
            let chosen: Vec<Chosen> = plan
                .counters()
                .iter()
                .filter_map(|&arc| choose(arc).map(|(place, _)| Chosen { arc, place }))
                .collect();
            match self.place(&chosen, counting.counters.len() as u32) {
                Ok(regions) => {
                    let counters = chosen.iter().map(|chosen| self.counter(*chosen));
                    counting.counters.extend(counters);
                    counting.regions.extend(regions);
                    return;
                }
                Err(node) => {
                    let dearest = chosen.iter().filter(|chosen| self.node(**chosen) == node);
                    let dearest = dearest.max_by_key(|chosen| self.frequencies.of(chosen.arc));
                    given_up.extend(dearest);
                }
            }
        }
    }

    /// Where an arc is best counted, and what that costs.
    fn choose(&self, arc: FlowArc, given_up: &HashSet<Chosen>) -> Option<(Place, u64)> {
        let frequency = self.frequencies.of(arc);
        let possible = places(&self.graph, arc).into_iter();
        let possible = possible.filter(|&place| !given_up.contains(&Chosen { arc, place }));
        let costs = possible.filter_map(|place| {
            let cost = self.cost(arc, place)?;
            Some((place, frequency.saturating_mul(cost)))
        });
        costs.min_by_key(|(_, cost)| *cost)
    }

    fn cost(&self, arc: FlowArc, place: Place) -> Option<u64> {
        match place {
            Place::Target(node) | Place::Source(node) => {
                let is_moved = self.moved.has(block_of(node));
                self.code(node).cost_of_start(is_moved)
            }
            Place::Split => {
                let edge = self.edge(arc)?;
                let node = self.graph.source(edge_id(arc)?);
                let (code, is_moved) = (self.code(node), self.moved.has(block_of(node)));
                match edge.kind {
                    EdgeKind::Taken => code.cost_of_branch(is_moved, true, edge.address),
                    EdgeKind::NotTaken => code.cost_of_branch(is_moved, false, edge.address),
                    _ => None,
                }
            }
        }
    }

    /// The block that a node enters or leaves.
    fn code(&self, node: NodeId) -> &Code<'f> {
        &self.blocks[block_of(node)]
    }

    /// The edge of the function that an arc is; the first arcs are its blocks.
    fn edge(&self, arc: FlowArc) -> Option<&EdgeView> {
        let number = edge_id(arc)?.index().checked_sub(self.blocks.len())?;
        self.edges.get(number)
    }

    /// The block in which a counter is.
    fn node(&self, chosen: Chosen) -> NodeId {
        let node = match (chosen.place, edge_id(chosen.arc)) {
            (Place::Target(node) | Place::Source(node), _) => node,
            (Place::Split, Some(edge)) => self.graph.source(edge),
            (Place::Split, None) => self.graph.entry(),
        };
        // That which enters the block stands for it.
        NodeId(node.0 & !1)
    }

    fn counter(&self, chosen: Chosen) -> Counter {
        let from = self.code(self.node(chosen)).start().0;
        let split = self
            .edge(chosen.arc)
            .filter(|_| chosen.place == Place::Split);
        Counter {
            from,
            to: split.map_or(0, EdgeView::key),
        }
    }

    /// What is executed elsewhere so that all these are counted, counters being numbered from `first`; or a block in
    /// which they do not get along.
    fn place(&self, chosen: &[Chosen], first: u32) -> Result<Vec<Region>, NodeId> {
        let wants = self.wants(chosen, first)?;
        let mut function = Region::default();
        let mut regions = Vec::new();
        for (block, wants) in wants.iter().enumerate() {
            let code = &self.blocks[block];
            if self.moved.has(block) {
                function.pieces.push(code.whole(wants));
                function.entrances.extend(self.moved.entrance(block));
            } else if *wants != Wants::default() {
                let node = NodeId(2 * block as u32);
                let parts = code.parts(wants).ok_or(node)?;
                regions.extend(parts.into_iter().map(Region::of));
            }
        }
        if !function.pieces.is_empty() {
            regions.push(function);
        }
        Ok(regions)
    }

    /// What each block is to count.
    fn wants(&self, chosen: &[Chosen], first: u32) -> Result<Vec<Wants>, NodeId> {
        let mut wants = vec![Wants::default(); self.blocks.len()];
        for (counter, chosen) in (first..).zip(chosen) {
            let node = self.node(*chosen);
            let want = &mut wants[block_of(node)];
            let kind = self.edge(chosen.arc).map(|edge| edge.kind);
            let slot = match (chosen.place, kind) {
                (Place::Split, Some(EdgeKind::Taken)) => &mut want.taken,
                (Place::Split, _) => &mut want.not_taken,
                _ => &mut want.start,
            };
            // Two arcs that are counted at one place are counted by one counter, and the other is no counter.
            if !slot.is_empty() {
                return Err(node);
            }
            slot.push(What::Count(counter));
        }
        Ok(wants)
    }
}

/// The number of the block that a node enters or leaves.
fn block_of(node: NodeId) -> usize {
    node.index() / 2
}

fn edge_id(arc: FlowArc) -> Option<tomo_graph::EdgeId> {
    match arc {
        FlowArc::Edge(edge) => Some(edge),
        _ => None,
    }
}
