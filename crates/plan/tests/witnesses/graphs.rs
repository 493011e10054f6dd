//! Graphs with names, and random ones.

use std::collections::BTreeMap;

use tomo_graph::{FlowGraph, Graph, NodeId};
use tomo_plan::witnesses::check::Dice;
use tomo_plan::witnesses::{Distribution, Function, FunctionId, Place, Program};

/// The graph of numbered nodes.
pub(crate) fn graph(nodes: usize, edges: &[(u32, u32)]) -> FlowGraph {
    let edges = edges.iter().map(|&(a, b)| (NodeId(a), NodeId(b)));
    FlowGraph::new(nodes, NodeId(0), edges).expect("a graph")
}

/// A graph out of "a>b c>d"; names are numbered as they come, the first is the entry.
pub(crate) fn named(text: &str) -> (FlowGraph, BTreeMap<String, NodeId>) {
    let mut names = BTreeMap::new();
    let mut edges = Vec::new();
    for arrow in text.split_whitespace() {
        let (from, to) = arrow.split_once('>').expect("an arrow");
        let mut id = |name: &str| {
            let next = NodeId(names.len() as u32);
            *names.entry(name.to_owned()).or_insert(next)
        };
        let from = id(from);
        edges.push((from, id(to)));
    }
    let made = FlowGraph::new(names.len(), NodeId(0), edges).expect("a graph");
    (made, names)
}

/// The program of one function.
pub(crate) fn alone(graph: &FlowGraph) -> Program {
    Program::new(vec![Function::leaf(graph.clone())], FunctionId(0)).expect("a program")
}

/// Profiles of nodes of the first function.
pub(crate) fn of_nodes(profiles: &[Vec<NodeId>]) -> Distribution {
    let profile = |(machine, nodes): (u32, &Vec<NodeId>)| {
        let places = nodes.iter().map(|&node| (FunctionId(0), Place::Node(node)));
        (machine, places.collect())
    };
    let profiles: Vec<_> = (0..).zip(profiles).map(profile).collect();
    Distribution::new(&profiles)
}

/// A random graph of 3 to `most` nodes, the last one the exit; all are reached and reach it, and
/// between two there is one edge at most, none from a node to itself.
pub(crate) fn random(dice: &mut Dice, most: usize) -> FlowGraph {
    loop {
        let nodes = 3 + dice.below(most - 2);
        let mut edges = Vec::new();
        for from in 0..nodes as u32 - 1 {
            for _ in 0..1 + dice.below(3) {
                let to = dice.below(nodes) as u32;
                if to != from && !edges.contains(&(from, to)) {
                    edges.push((from, to));
                }
            }
        }
        let made = graph(nodes, &edges);
        let backwards: Vec<_> = edges.iter().map(|&(a, b)| (b, a)).collect();
        if reaches_all(&made, 0) && reaches_all(&graph(nodes, &backwards), nodes as u32 - 1) {
            return made;
        }
    }
}

fn reaches_all(graph: &FlowGraph, from: u32) -> bool {
    let mut reached = vec![false; graph.node_count()];
    let mut work = vec![NodeId(from)];
    while let Some(node) = work.pop() {
        if !std::mem::replace(&mut reached[node.index()], true) {
            work.extend(graph.successors(node));
        }
    }
    reached.into_iter().all(|reached| reached)
}

/// A random set of nodes.
pub(crate) fn some_nodes(dice: &mut Dice, graph: &FlowGraph) -> Vec<NodeId> {
    graph.nodes().filter(|_| dice.below(2) == 0).collect()
}
