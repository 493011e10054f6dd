//! Executions, step by step, with a stack, from the definition.

use tomo_graph::{EdgeId, FlowGraph, Graph, Hop, NodeId, WithExit, Without};

use super::Dice;
use crate::witnesses::{Distribution, Function, FunctionId, Place, Program, Step, WitnessId};

/// How an execution ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// The main function returned.
    Returned,
    /// At a halt, or in an endless region, at its representative.
    Halted,
    /// It was cut off after some step.
    Cut,
}

/// An execution.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Execution {
    /// The blocks that ran.
    pub steps: Vec<Step>,
    /// How it ended.
    pub ending: Ending,
}

/// What is in progress: a function, the node it is in, and how many of its calls are done.
struct Frame {
    function: FunctionId,
    node: NodeId,
    calls: usize,
}

/// Runs the program with random choices. After half of `most` steps, choices are those that bring
/// the run to its end, if any do; after `most` it is cut off.
pub fn execute(program: &Program, dice: &mut Dice, most: usize) -> Execution {
    let ways_out = WaysOut::of(program);
    let mut steps = Vec::new();
    let mut stack = Vec::new();
    enter(program, program.main(), &mut stack, &mut steps);
    let ending = loop {
        if steps.len() >= most || stack.len() >= most {
            break Ending::Cut;
        }
        let hurry = steps.len() + stack.len() > most / 2;
        let Some(frame) = stack.last_mut() else {
            break Ending::Returned;
        };
        let (function, node) = (frame.function, frame.node);
        if let Some(call) = program.calls_in(function, node).get(frame.calls) {
            frame.calls += 1;
            let target = match hurry {
                true => ways_out.best_target(&call.targets),
                false => call.targets[dice.below(call.targets.len())],
            };
            enter(program, target, &mut stack, &mut steps);
            continue;
        }
        let ways = ways_out.ways(function, node);
        let way = match hurry {
            true => ways_out.best_way(function, ways),
            false => ways[dice.below(ways.len())],
        };
        match way {
            Way::Edge(hop) => {
                frame.node = hop.node;
                frame.calls = 0;
                steps.push(step(function, hop.node, Some(hop.edge)));
            }
            Way::Return => {
                stack.pop();
            }
            Way::Halt => break Ending::Halted,
        }
    };
    Execution { steps, ending }
}

fn step(function: FunctionId, node: NodeId, by: Option<EdgeId>) -> Step {
    Step { function, node, by }
}

fn enter(program: &Program, function: FunctionId, stack: &mut Vec<Frame>, steps: &mut Vec<Step>) {
    let node = program.function(function).graph.entry();
    steps.push(step(function, node, None));
    stack.push(Frame {
        function,
        node,
        calls: 0,
    });
}

/// A way on from a node.
#[derive(Clone, Copy, Debug)]
enum Way {
    Edge(Hop),
    Return,
    Halt,
}

/// The ways on from every node, and how far each is from the end of its activation.
struct WaysOut {
    ways: Vec<Vec<Vec<Way>>>,
    /// Per function and node: steps to the return, at least; or to a halt, far behind.
    distance: Vec<Vec<u64>>,
}

const FAR: u64 = 1 << 40;
const NEVER: u64 = 1 << 60;

impl WaysOut {
    fn of(program: &Program) -> Self {
        let ways = program.ids().map(|id| ways(program, id)).collect();
        let nodes = program.functions().iter();
        let distance = nodes
            .map(|each| vec![NEVER; each.graph.node_count()])
            .collect();
        let mut result = Self { ways, distance };
        while result.shorten(program) {}
        result
    }

    fn shorten(&mut self, program: &Program) -> bool {
        let mut shorter = false;
        for id in program.ids() {
            for node in program.function(id).graph.nodes() {
                let calls = program.calls_in(id, node).iter();
                let inside: u64 = calls
                    .map(|call| self.entry(program, self.nearest(program, &call.targets)))
                    .sum();
                let on = self.ways[id.index()][node.index()].iter();
                let on = on.map(|&way| self.along(id, way)).min();
                let total = NEVER.min(1 + inside + on.unwrap_or(NEVER));
                let known = &mut self.distance[id.index()][node.index()];
                shorter |= total < *known;
                *known = total.min(*known);
            }
        }
        shorter
    }

    fn entry(&self, program: &Program, id: FunctionId) -> u64 {
        self.distance[id.index()][program.function(id).graph.entry().index()]
    }

    fn nearest(&self, program: &Program, targets: &[FunctionId]) -> FunctionId {
        let nearest = targets.iter().min_by_key(|&&to| self.entry(program, to));
        nearest.copied().unwrap_or(program.main())
    }

    fn along(&self, id: FunctionId, way: Way) -> u64 {
        match way {
            Way::Return => 0,
            Way::Halt => FAR,
            Way::Edge(hop) => self.distance[id.index()][hop.node.index()],
        }
    }

    fn ways(&self, id: FunctionId, node: NodeId) -> &[Way] {
        &self.ways[id.index()][node.index()]
    }

    fn best_way(&self, id: FunctionId, ways: &[Way]) -> Way {
        let best = ways.iter().min_by_key(|&&way| self.along(id, way));
        best.copied().unwrap_or(Way::Halt)
    }

    fn best_target(&self, targets: &[FunctionId]) -> FunctionId {
        let near = |id: &&FunctionId| self.distance[id.index()].first().copied();
        targets
            .iter()
            .min_by_key(near)
            .copied()
            .unwrap_or(FunctionId(0))
    }
}

/// The ways on from each node. An endless region may be left by being killed, as [`WithExit`] has it.
fn ways(program: &Program, id: FunctionId) -> Vec<Vec<Way>> {
    let Function { graph, halts, .. } = program.function(id);
    let blocked = |edge| !program.passes(id, graph.source(edge));
    let live = Without::edges(graph, blocked);
    let view = WithExit::of(&live);
    let of_node = |node: NodeId| {
        let edges = graph.out_edges(node).map(Way::Edge);
        let killed = view.endless().contains(&node);
        let leave = match graph.is_exit(node) {
            true if halts.contains(&node) => Some(Way::Halt),
            true => Some(Way::Return),
            false => killed.then_some(Way::Halt),
        };
        edges.chain(leave).collect()
    };
    FlowGraph::nodes(graph).map(of_node).collect()
}

/// The partial traces that the profiles of a distribution yield for the first `steps` blocks of an
/// execution.
#[must_use]
pub fn record(distribution: &Distribution, steps: &[Step]) -> Vec<Vec<WitnessId>> {
    let mut traces = vec![Vec::new(); distribution.profiles().len()];
    for step in steps {
        let edge = step.by.map(Place::Edge);
        for place in edge.into_iter().chain([Place::Node(step.node)]) {
            if let Some(witness) = distribution.witness_at(step.function, place) {
                for &profile in distribution.profiles_of(witness) {
                    traces[profile as usize].push(witness);
                }
            }
        }
    }
    traces
}
