//! Random programs: loops, recursion, several calls in a node, calls with several targets, calls
//! that never come back, halts, endless loops, code that nothing reaches.

use tomo_graph::check::{Entropy, generate};
use tomo_graph::{FlowGraph, Graph, NodeId};

use super::Dice;
use crate::witnesses::{Call, Function, FunctionId, Program};

/// What programs are wanted.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// At most so many functions.
    pub functions: usize,
    /// At most so many nodes each.
    pub nodes: usize,
    /// Whether calls may have several targets.
    pub several_targets: bool,
    /// Whether runs may end elsewhere than in the return of the main function.
    pub halts: bool,
}

/// A random program.
///
/// # Panics
///
/// Never: what it makes is a program.
pub fn program(dice: &mut Dice, shape: Shape) -> Program {
    let count = 1 + dice.below(shape.functions);
    let functions = (0..count).map(|_| function(dice, shape, count)).collect();
    let main = FunctionId(dice.below(count) as u32);
    Program::new(functions, main).expect("calls and halts are of nodes and functions that exist")
}

fn function(dice: &mut Dice, shape: Shape, count: usize) -> Function {
    let bytes = dice.bytes(40 + shape.nodes * 4);
    let graph = without_parallels(&generate(&mut Entropy::new(&bytes), shape.nodes));
    let nodes = graph.node_count();
    let node = |dice: &mut Dice| NodeId(dice.below(nodes) as u32);
    let mut calls = Vec::new();
    for _ in 0..dice.below(4) {
        let width = if shape.several_targets && dice.below(4) == 0 {
            3
        } else {
            1
        };
        let targets = (0..width).map(|_| FunctionId(dice.below(count) as u32));
        let targets = targets.collect();
        let node = node(dice);
        // Now and then several calls in one node.
        for _ in 0..1 + dice.below(2) {
            let targets = Vec::clone(&targets);
            calls.push(Call { node, targets });
        }
    }
    let halts = match shape.halts && dice.below(3) == 0 {
        true => vec![node(dice)],
        false => Vec::new(),
    };
    Function {
        graph,
        calls,
        halts,
    }
}

/// The graph with one edge between two nodes at most, so that witnesses on nodes may do.
fn without_parallels(graph: &FlowGraph) -> FlowGraph {
    let mut edges: Vec<_> = Vec::new();
    for &edge in graph.edges() {
        if !edges.contains(&edge) {
            edges.push(edge);
        }
    }
    let exits: Vec<NodeId> = graph.nodes().filter(|&node| graph.is_exit(node)).collect();
    FlowGraph::new(graph.node_count(), graph.entry(), edges)
        .and_then(|made| made.with_exits(exits))
        .expect("a part of a graph is one")
}
