//! Paths: numbers, probes, splits and selections against all paths written down, random
//! executions, and the figures of the papers.

mod groups;
mod papers;
mod plans;
mod selections;

use proptest::prelude::*;
use std::collections::BTreeMap;
use tomo_graph::check::Entropy;
use tomo_graph::{EdgeId, FlowArc, FlowGraph, Graph, NodeId, Weight};
use tomo_plan::paths::{ArcId, DagNode, Op, PathDag, Probe, Way};

/// A graph from pairs of small numbers, entered at 0.
fn graph(nodes: usize, edges: &[(u32, u32)]) -> FlowGraph {
    let edges = edges.iter().map(|&(from, to)| (NodeId(from), NodeId(to)));
    FlowGraph::new(nodes, NodeId(0), edges).expect("the edges are between the nodes")
}

/// So many branches one after the other: 2^length paths.
fn chain_of_diamonds(length: u32) -> FlowGraph {
    let edges: Vec<_> = (0..length).flat_map(|at| [(at, at + 1); 2]).collect();
    graph(length as usize + 1, &edges)
}

fn config(cases: u32) -> ProptestConfig {
    ProptestConfig {
        cases,
        failure_persistence: None,
        rng_seed: proptest::test_runner::RngSeed::Fixed(96),
        ..ProptestConfig::default()
    }
}

/// All paths from source to sink, unless they are more than so many.
fn all_paths(dag: &PathDag, most: usize) -> Option<Vec<Vec<ArcId>>> {
    let (mut found, mut work) = (Vec::new(), vec![(DagNode::SOURCE, Vec::new())]);
    while let Some((node, arcs)) = work.pop() {
        if node == dag.sink() {
            found.push(arcs);
        } else {
            let on = |id: ArcId| (dag.arc(id).to, [&arcs[..], &[id]].concat());
            work.extend(dag.out(node).map(on));
        }
        if found.len() + work.len() > most {
            return None;
        }
    }
    Some(found)
}

/// Weights by arc: small numbers, some infinite if wanted.
fn weights(entropy: &mut Entropy<'_>, infinite: bool) -> impl Fn(FlowArc) -> Weight + use<> {
    let table: Vec<u8> = (0..32).map(|_| entropy.byte()).collect();
    move |arc| {
        let at = match arc {
            FlowArc::Return => 0,
            FlowArc::Exit(node) | FlowArc::Endless(node) => 1 + node.index(),
            FlowArc::Edge(edge) => 7 + edge.index(),
        };
        match table[at % table.len()] {
            240.. if infinite => Weight::Infinite,
            byte => Weight::Finite(u64::from(byte % 16)),
        }
    }
}

/// The machine that carries out probes: one register, which starts with rubbish, and a table.
struct Machine {
    register: u64,
    counts: BTreeMap<u64, u64>,
}

impl Machine {
    fn new() -> Self {
        Self {
            register: 0xdead_beef,
            counts: BTreeMap::new(),
        }
    }

    fn run(&mut self, op: Op) {
        let number = match op {
            Op::Set(value) => return self.register = value,
            Op::Add(value) => return self.register = self.register.wrapping_add(value),
            Op::Count(value) => self.register.wrapping_add(value),
            Op::CountAt(value) => value,
        };
        *self.counts.entry(number).or_default() += 1;
    }

    fn run_at(&mut self, probes: &[Probe], at: FlowArc) {
        for probe in probes.iter().filter(|probe| probe.at == at) {
            probe.ops.iter().for_each(|&op| self.run(op));
        }
    }
}

/// One execution of at most so many steps, as the arcs it passes and the paths it completes. The
/// function is told of every arc, of the ways of the path that runs behind it, and where that is.
fn execute(
    graph: &FlowGraph,
    dag: &PathDag,
    entropy: &mut Entropy<'_>,
    steps: usize,
    mut passed: impl FnMut(FlowArc, Option<&[ArcId]>, &[ArcId], NodeId),
) {
    let mut node = graph.entry();
    let start = |node| vec![dag.start_at(node).expect("paths start here")];
    let mut path = start(node);
    passed(FlowArc::Return, None, &path, node);
    for _ in 0..steps {
        let hops: Vec<_> = graph.out_edges(node).collect();
        let here = dag.node_of(node).expect("what runs is reachable");
        let way = |matches: &dyn Fn(Way) -> bool| {
            let mut ways = dag.out(here);
            ways.find(|&id| matches(dag.arc(id).way)).expect("a way")
        };
        let choice = entropy.below(hops.len() + usize::from(graph.is_exit(node)));
        let Some(hop) = hops.get(choice) else {
            path.push(way(&|way| way == Way::Exit(node)));
            return passed(FlowArc::Exit(node), Some(&path), &[], node);
        };
        let is_edge = |edge: EdgeId| edge == hop.edge;
        let id = way(&|way| matches!(way, Way::Edge(edge) | Way::Break(edge, _) if is_edge(edge)));
        path.push(id);
        node = hop.node;
        let arc = FlowArc::Edge(hop.edge);
        if matches!(dag.arc(id).way, Way::Break(..)) {
            let done = std::mem::replace(&mut path, start(node));
            passed(arc, Some(&done), &path, node);
        } else {
            passed(arc, None, &path, node);
        }
    }
}
