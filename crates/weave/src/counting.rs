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

mod block;

use std::collections::{HashMap, HashSet};

use rayon::prelude::*;
use tomo_graph::{FlowArc, FlowGraph, Graph as _, NodeId, Weight};
use tomo_plan::counting::{CountingPlan, Frequencies, Place, places};
use tomo_program::{EdgeKind, EdgeView, FunctionId, FunctionView, Graphs, Status};

use crate::place::{Surroundings, Unit};
use crate::staying::live::Liveness;
use block::{Code, Wants};

/// What a counter counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Counter {
    /// The block that is reached, or that the edge leaves.
    pub(crate) from: u64,
    /// The block that the edge enters; 0 for a block.
    pub(crate) to: u64,
}

/// The counters of some functions.
#[derive(Debug, Default)]
pub(crate) struct Counting {
    pub(crate) counters: Vec<Counter>,
    /// Windows, whose increments name counters by their position.
    pub(crate) units: Vec<Unit>,
    /// Entries of functions that cannot be counted at all.
    pub(crate) uncounted: Vec<u64>,
}

/// How often the arcs of functions ran in an earlier run, as far as that is known.
pub type Weights = HashMap<FunctionId, Frequencies>;

/// The counters of all functions, in order. What is not in `weights` is estimated.
pub(crate) fn all(around: &Surroundings<'_>, graphs: &Graphs<'_>, weights: &Weights) -> Counting {
    let live = Liveness::of(around.text, graphs);
    let functions: Vec<_> = graphs.functions().collect();
    let chunks = functions.par_chunks(64).map(|functions| {
        let mut counting = Counting::default();
        for function in functions {
            add(around, &live, function, weights, &mut counting);
        }
        counting
    });
    let mut all = Counting::default();
    for chunk in chunks.collect::<Vec<Counting>>() {
        let first = all.counters.len() as u32;
        all.counters.extend(chunk.counters);
        all.uncounted.extend(chunk.uncounted);
        all.units
            .extend(chunk.units.into_iter().map(|unit| unit.renumbered(first)));
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
        Some(planner) => planner.settle(counting),
        None => counting.uncounted.push(function.entry().0),
    }
}

struct Planner<'f> {
    graph: FlowGraph,
    frequencies: Frequencies,
    /// The function's own edges.
    edges: Vec<EdgeView>,
    blocks: Vec<Code<'f>>,
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
        Some(Self {
            frequencies: match weights.get(&function.id()) {
                Some(measured) => measured.clone(),
                None => Frequencies::estimate(&graph),
            },
            edges: edges.collect(),
            blocks: blocks.collect::<Option<_>>()?,
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
                Ok(units) => {
                    let counters = chosen.iter().map(|chosen| self.counter(*chosen));
                    counting.counters.extend(counters);
                    counting.units.extend(units);
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
            Place::Target(node) | Place::Source(node) => self.code(node).cost_of_start(),
            Place::Split => {
                let edge = self.edge(arc)?;
                let code = self.code(self.graph.source(edge_id(arc)?));
                match edge.kind {
                    EdgeKind::Taken => code.cost_of_branch(true, edge.address),
                    EdgeKind::NotTaken => code.cost_of_branch(false, edge.address),
                    _ => None,
                }
            }
        }
    }

    /// The block that a node enters or leaves.
    fn code(&self, node: NodeId) -> &Code<'f> {
        &self.blocks[node.index() / 2]
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
            to: split.map_or(0, |edge| edge.address.0),
        }
    }

    /// The windows of all these, counters being numbered from `first`; or a block in which they do not get
    /// along.
    fn place(&self, chosen: &[Chosen], first: u32) -> Result<Vec<Unit>, NodeId> {
        let mut wants: Vec<(NodeId, Wants)> = Vec::new();
        let mut numbered: Vec<(NodeId, u32, Chosen)> = (first..)
            .zip(chosen)
            .map(|(counter, chosen)| (self.node(*chosen), counter, *chosen))
            .collect();
        numbered.sort_by_key(|(node, ..)| *node);
        for (node, counter, chosen) in numbered {
            if wants.last().is_none_or(|(last, _)| *last != node) {
                wants.push((node, Wants::default()));
            }
            let Some((_, want)) = wants.last_mut() else {
                continue;
            };
            let kind = self.edge(chosen.arc).map(|edge| edge.kind);
            let slot = match (chosen.place, kind) {
                (Place::Split, Some(EdgeKind::Taken)) => &mut want.taken,
                (Place::Split, _) => &mut want.not_taken,
                _ => &mut want.start,
            };
            // Two arcs that are counted at one place are counted by one counter, and the other is no counter.
            if slot.replace(counter).is_some() {
                return Err(node);
            }
        }
        let placed = wants
            .into_iter()
            .map(|(node, wants)| self.code(node).place(&wants).ok_or(node));
        let placed: Vec<Vec<Unit>> = placed.collect::<Result<_, _>>()?;
        Ok(placed.into_iter().flatten().collect())
    }
}

fn edge_id(arc: FlowArc) -> Option<tomo_graph::EdgeId> {
    match arc {
        FlowArc::Edge(edge) => Some(edge),
        _ => None,
    }
}
