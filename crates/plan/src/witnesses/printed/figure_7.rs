//! DPT Figures 5 and 7 (witnesses on edges, distributed over machines), as printed, for studies only: **on three to four of a
//! hundred small random graphs what three machines get does not satisfy our criterion**, since a diamond or a cycle that is broken
//! need not be told (`theorem_1.rs`).
//!
//! 1. All diamonds are listed, and all directed cycles that pass none; they are made jobs by a strategy (§4.2).
//! 2. Jobs go, as they come, to the machine with the least load (Figure 5).
//! 3. A profile knows its complement `ce`, at first all edges. A job's edges are removed from it, and what closes no
//!    cycle is put back, dearest first; what then is outside are the witnesses, and what they weigh is the load (Figure 7).
//!
//! Our reading of what the print leaves open: a function has one exit, to which all that leave lead, and from there an
//! edge to the entry if the function may be called again; neither can carry a witness. A cycle *passes* a
//! diamond if it has its first edge on one side. Two diamonds *share a cycle* if both have edges in one strongly connected component. Where
//! profiles are bounded, diamonds and cycles go one by one to the last profile of the machine, and to a new one if that
//! then were too large. Exponential: the diamonds are listed.

use std::collections::BTreeMap;

use tomo_graph::{
    Budget, Components, Diamond, EdgeId, FlowGraph, Graph, GraphError, NodeId, Weight, diamonds,
    directed_cycles, maximum_forest,
};

use crate::witnesses::{FunctionId, Machines, Place, Strategy};

/// A function as the figure takes it.
pub struct Listed {
    graph: FlowGraph,
    /// How many of the edges are its own.
    own: usize,
    /// Its diamonds.
    pub diamonds: Vec<Diamond>,
    /// The cycles that pass none of them.
    pub cycles: Vec<Vec<EdgeId>>,
}

impl Listed {
    /// A function that may be called again; `None` if it has more diamonds or cycles than `budget` allows to list.
    #[must_use]
    pub fn of(graph: &FlowGraph, budget: Budget) -> Option<Self> {
        let own = graph.edge_count();
        let closed = closed(graph).ok()?;
        let diamonds = diamonds(&closed, budget);
        if !diamonds.complete {
            return None;
        }
        let cycles = other_cycles(&closed, &diamonds.found, budget)?;
        Some(Self {
            graph: closed,
            own,
            diamonds: diamonds.found,
            cycles,
        })
    }

    /// The edges of each diamond, then of each cycle.
    fn items(&self) -> impl Iterator<Item = Vec<EdgeId>> {
        let both = |one: &Diamond| [&one.left[..], &one.right].concat();
        let diamonds = self.diamonds.iter().map(both);
        diamonds.chain(self.cycles.iter().cloned())
    }

    /// What its edges weigh; infinite are those that are not its own.
    fn weights(&self, weight: impl Fn(EdgeId) -> u64) -> Vec<Weight> {
        let weight = |edge: u32| match (edge as usize) < self.own {
            true => Weight::Finite(weight(EdgeId(edge))),
            false => Weight::Infinite,
        };
        (0..self.graph.edge_count() as u32).map(weight).collect()
    }

    /// The edges outside of `kept` when all have been put back that close no cycle.
    fn witnesses(&self, kept: &[bool], weights: &[Weight]) -> Vec<bool> {
        let arcs: Vec<_> = self
            .graph
            .edges()
            .iter()
            .zip(kept.iter().zip(weights))
            .map(|(&(from, to), (kept, weight))| match kept {
                true => (from, to, Weight::Infinite),
                false => (from, to, *weight),
            })
            .collect();
        let taken = maximum_forest(self.graph.node_count(), &arcs);
        let outside = (0..arcs.len()).map(|at| at < self.own && !kept[at] && !taken[at]);
        outside.collect()
    }
}

/// The graph with one exit, and an edge from there to the entry.
fn closed(graph: &FlowGraph) -> Result<FlowGraph, GraphError> {
    let exit = NodeId(graph.node_count() as u32);
    let exits = graph.nodes().filter(|&node| graph.is_exit(node));
    let added = exits.map(|node| (node, exit));
    let again = (exit, graph.entry());
    let edges = graph.edges().iter().copied().chain(added).chain([again]);
    FlowGraph::new(graph.node_count() + 1, graph.entry(), edges)?.with_exits([exit])
}

/// The directed cycles that pass no diamond; `None` if they are too many.
fn other_cycles(
    graph: &FlowGraph,
    diamonds: &[Diamond],
    budget: Budget,
) -> Option<Vec<Vec<EdgeId>>> {
    let mut passes = vec![false; graph.edge_count()];
    for side in diamonds.iter().flat_map(|one| [&one.left, &one.right]) {
        if let Some(first) = side.first() {
            passes[first.index()] = true;
        }
    }
    let kept: Vec<usize> = (0..passes.len()).filter(|&at| !passes[at]).collect();
    // From a root of their own all nodes are reached, whatever was left out.
    let root = NodeId(graph.node_count() as u32);
    let rest = kept.iter().map(|&at| graph.edges()[at]);
    let rooted = rest.chain(graph.nodes().map(|node| (root, node)));
    let rooted = FlowGraph::new(graph.node_count() + 1, root, rooted).ok()?;
    let cycles = directed_cycles(&rooted, budget);
    let named = |cycle: Vec<EdgeId>| {
        let edges = cycle
            .into_iter()
            .map(|edge| EdgeId(kept[edge.index()] as u32));
        edges.collect()
    };
    cycles
        .complete
        .then(|| cycles.found.into_iter().map(named).collect())
}

/// What is covered in one machine: diamonds and cycles of a function, by their edges.
struct Job {
    function: usize,
    items: Vec<Vec<EdgeId>>,
}

fn jobs(functions: &[&Listed], strategy: Strategy) -> Vec<Job> {
    let mut jobs = Vec::new();
    for (function, listed) in functions.iter().enumerate() {
        let items: Vec<_> = listed.items().collect();
        let groups: Vec<usize> = match strategy {
            Strategy::FineGrained => (0..items.len()).collect(),
            Strategy::FunctionWise => vec![0; items.len()],
            Strategy::Grouped => optimizable(listed, &items),
        };
        let mut grouped: BTreeMap<usize, Vec<Vec<EdgeId>>> = BTreeMap::new();
        for (group, item) in groups.into_iter().zip(items) {
            grouped.entry(group).or_default().push(item);
        }
        jobs.extend(grouped.into_values().map(|items| Job { function, items }));
    }
    jobs
}

/// The group of each diamond, which are those that share an edge or a cycle; cycles are by themselves.
fn optimizable(listed: &Listed, items: &[Vec<EdgeId>]) -> Vec<usize> {
    let components = Components::of(&listed.graph);
    let edges = listed.graph.edge_count();
    // Groups are connected parts of a graph of diamonds, their edges, and the components of these.
    let mut links = Vec::new();
    for (number, item) in items.iter().take(listed.diamonds.len()).enumerate() {
        for edge in item {
            let (from, to) = listed.graph.edges()[edge.index()];
            let own = items.len() + edge.index();
            links.push((number, own));
            if components.of_node(from) == components.of_node(to) {
                links.push((
                    own,
                    items.len() + edges + components.of_node(from).0 as usize,
                ));
            }
        }
    }
    let nodes = items.len() + edges + components.count();
    let node = |at: usize| NodeId(at as u32);
    let both = links
        .iter()
        .flat_map(|&(a, b)| [(node(a), node(b)), (node(b), node(a))]);
    match FlowGraph::new(nodes.max(1), node(0), both) {
        Ok(graph) => {
            let groups = Components::of(&graph);
            let group = |at: usize| groups.of_node(node(at)).0 as usize;
            (0..items.len()).map(group).collect()
        }
        Err(_) => (0..items.len()).collect(),
    }
}

/// Functions with what their edges weigh.
struct Weighed<'l> {
    functions: &'l [&'l Listed],
    weights: Vec<Vec<Weight>>,
}

/// A profile while it grows: of each function what is kept of its edges, the witnesses and what they weigh.
#[derive(Clone, Default)]
struct Draft {
    parts: BTreeMap<usize, (Vec<bool>, Vec<bool>, u64)>,
}

impl Draft {
    /// Figure 7, `EdgeBasedIncrementalAdd2Machine`.
    fn add(&mut self, weighed: &Weighed<'_>, function: usize, items: &[Vec<EdgeId>]) {
        let (listed, weights) = (&weighed.functions[function], &weighed.weights[function]);
        let edges = listed.graph.edge_count();
        let part = self.parts.entry(function);
        let (kept, witness, cost) =
            part.or_insert_with(|| (vec![true; edges], vec![false; edges], 0));
        for edge in items.iter().flatten() {
            kept[edge.index()] = false;
        }
        *witness = listed.witnesses(kept, weights);
        for (kept, witness) in kept.iter_mut().zip(&*witness) {
            *kept = !witness;
        }
        let weighed = weights.iter().zip(&*witness);
        *cost = weighed.fold(0, |sum, (weight, witness)| match (weight, witness) {
            (Weight::Finite(weight), true) => sum.saturating_add(*weight),
            _ => sum,
        });
    }

    fn size(&self) -> usize {
        let witnesses = self.parts.values().flat_map(|part| &part.1);
        witnesses.filter(|witness| **witness).count()
    }

    fn cost(&self) -> u64 {
        let costs = self.parts.values().map(|part| part.2);
        costs.fold(0, u64::saturating_add)
    }

    fn places(&self) -> Vec<(FunctionId, Place)> {
        let parts = self.parts.iter().flat_map(|(&function, part)| {
            let edges = (0..part.1.len()).filter(|&at| part.1[at]);
            edges.map(move |at| {
                let place = Place::Edge(EdgeId(at as u32));
                (FunctionId(function as u32), place)
            })
        });
        parts.collect()
    }
}

/// The profiles that the figures yield, each with its machine; functions are numbered as they are listed.
#[must_use]
pub fn distribute(
    functions: &[&Listed],
    weight: impl Fn(FunctionId, EdgeId) -> u64,
    strategy: Strategy,
    machines: Machines,
) -> Vec<(u32, Vec<(FunctionId, Place)>)> {
    let numbered = (0..).map(FunctionId).zip(functions);
    let weights = numbered.map(|(id, listed)| listed.weights(|edge| weight(id, edge)));
    let weighed = Weighed {
        functions,
        weights: weights.collect(),
    };
    let count = machines.count.max(1) as usize;
    let mut all = vec![vec![Draft::default()]; count];
    let mut loads = vec![0; count];
    for Job { function, items } in jobs(functions, strategy) {
        let least = (0..count)
            .min_by_key(|&machine| loads[machine])
            .unwrap_or(0);
        let profiles = &mut all[least];
        match machines.bound {
            None => profiles[0].add(&weighed, function, &items),
            Some(bound) => {
                for item in items {
                    add_bounded(profiles, &weighed, (function, item), bound as usize);
                }
            }
        }
        loads[least] = profiles
            .iter()
            .map(Draft::cost)
            .fold(0, u64::saturating_add);
    }
    let profiles = (0..)
        .zip(&all)
        .flat_map(|(machine, drafts)| drafts.iter().map(move |draft| (machine, draft.places())));
    profiles.collect()
}

fn add_bounded(
    profiles: &mut Vec<Draft>,
    weighed: &Weighed<'_>,
    (function, item): (usize, Vec<EdgeId>),
    bound: usize,
) {
    let item = [item];
    let mut grown = profiles.pop().unwrap_or_default();
    let before = grown.clone();
    grown.add(weighed, function, &item);
    if grown.size() > bound && before.size() > 0 {
        profiles.push(before);
        grown = Draft::default();
        grown.add(weighed, function, &item);
    }
    profiles.push(grown);
}
