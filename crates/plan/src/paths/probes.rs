//! What the probes of a path plan do, and where they stand.
//!
//! Source: BL96, §3.3 and Figure 8: the register is set as late as every path still sets it once,
//! the table is counted up as early as the rest is certain, and both are merged with the increment
//! of a chord where they meet one. O(nodes + arcs).
//!
//! Deviations: ways that add nothing get no probe; a path on which nothing but a count is left is
//! counted at a constant. Where moving a probe would put it on a place that cannot be patched, the
//! unmoved placement (set at the start, count at the end) is taken if it does better.

use tomo_graph::{FlowArc, Weight};

use super::{ArcId, DagNode, Increments, PathDag, Way};

/// What a probe does with the path register r and the table of counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Op {
    /// r = value.
    Set(u64),
    /// r += value, modulo 2^64.
    Add(u64),
    /// count\[r + value\] += 1, the sum modulo 2^64.
    Count(u64),
    /// count\[value\] += 1.
    CountAt(u64),
}

/// A place and what is done there, in this order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Probe {
    /// The place: an edge, an exit, or (as [`FlowArc::Return`]) the function's entry.
    pub at: FlowArc,
    /// A broken edge ends one path and starts another, so there may be two.
    pub ops: Vec<Op>,
}

/// What is known of the register at a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Register {
    /// Not set yet; one way leads here, with this sum of values.
    Unset(u64),
    /// Set.
    Set,
    /// The path is counted already.
    Counted,
}

/// What is known of the register at every node, ways into one node being of one kind.
pub(super) fn registers(dag: &PathDag, values: &[u64], ops: &[Option<Op>]) -> Vec<Register> {
    let mut registers = vec![Register::Unset(0); dag.node_count()];
    for id in dag.ids() {
        let arc = dag.arc(id);
        registers[arc.to.index()] = match (ops[id.index()], registers[arc.from.index()]) {
            (None, Register::Unset(sum)) => Register::Unset(sum.wrapping_add(values[id.index()])),
            (None, known) => known,
            (Some(Op::Set(_) | Op::Add(_)), _) => Register::Set,
            (Some(Op::Count(_) | Op::CountAt(_)), _) => Register::Counted,
        };
    }
    registers
}

/// Sets at every start, counts at every end, adds in between.
pub(super) fn unmoved(dag: &PathDag, increments: &Increments) -> Vec<Option<Op>> {
    let op = |id: ArcId| match (dag.arc(id).way, increments.of_arc(id)) {
        (Way::Start(_), value) => Some(Op::Set(value)),
        (Way::Exit(_) | Way::Break(..), value) => Some(Op::Count(value)),
        (Way::Edge(_), 0) => None,
        (Way::Edge(_), value) => Some(Op::Add(value)),
    };
    dag.ids().map(op).collect()
}

/// The placement of Figure 8.
pub(super) fn moved(dag: &PathDag, increments: &Increments) -> Vec<Option<Op>> {
    let mut ops = vec![None; dag.arcs().len()];
    set_late(dag, increments, &mut ops);
    count_early(dag, increments, &mut ops);
    for id in dag.ids() {
        let value = increments.of_arc(id);
        if ops[id.index()].is_none() && value != 0 {
            ops[id.index()] = Some(Op::Add(value));
        }
    }
    ops
}

fn set_late(dag: &PathDag, increments: &Increments, ops: &mut [Option<Op>]) {
    let mut work = vec![DagNode::SOURCE];
    while let Some(node) = work.pop() {
        for id in dag.out(node) {
            let to = dag.arc(id).to;
            let goes_on = to != dag.sink() && dag.into(to).len() == 1;
            if goes_on && !increments.is_chord(id) {
                work.push(to);
            } else {
                ops[id.index()] = Some(Op::Set(increments.of_arc(id)));
            }
        }
    }
}

fn count_early(dag: &PathDag, increments: &Increments, ops: &mut [Option<Op>]) {
    let mut work = vec![dag.sink()];
    while let Some(node) = work.pop() {
        for &id in dag.into(node) {
            let from = dag.arc(id).from;
            let op = &mut ops[id.index()];
            match *op {
                Some(Op::Set(value)) => *op = Some(Op::CountAt(value)),
                _ if !increments.is_chord(id) && dag.out(from).len() == 1 => work.push(from),
                _ => *op = Some(Op::Count(increments.of_arc(id))),
            }
        }
    }
}

/// The operations by where they stand: those of a start behind broken edges on each of these.
pub(super) fn by_place(dag: &PathDag, ops: &[Option<Op>]) -> Vec<Probe> {
    let mut probes = Vec::new();
    let op = |id: ArcId| ops[id.index()];
    let mut put = |at: FlowArc, ops: [Option<Op>; 2]| {
        let ops: Vec<Op> = ops.into_iter().flatten().collect();
        if !ops.is_empty() {
            probes.push(Probe { at, ops });
        }
    };
    for id in dag.ids() {
        match dag.arc(id).way {
            Way::Start(node) if node == dag.entry() => put(FlowArc::Return, [op(id), None]),
            Way::Start(_) => {}
            Way::Edge(edge) => put(FlowArc::Edge(edge), [op(id), None]),
            Way::Exit(node) => put(FlowArc::Exit(node), [op(id), None]),
            Way::Break(edge, next) => {
                put(
                    FlowArc::Edge(edge),
                    [op(id), dag.start_at(next).and_then(op)],
                );
            }
        }
    }
    probes.sort_unstable_by_key(|probe| probe.at);
    probes
}

/// The places of probes that cannot be patched.
pub(super) fn unplaceable(probes: &[Probe], weight: &dyn Fn(FlowArc) -> Weight) -> Vec<FlowArc> {
    let places = probes.iter().map(|probe| probe.at);
    places
        .filter(|&at| weight(at) == Weight::Infinite)
        .collect()
}

/// What the probes weigh together, those that cannot be placed apart.
pub(super) fn cost(probes: &[Probe], weight: &dyn Fn(FlowArc) -> Weight) -> (usize, u128) {
    let weights = probes.iter().map(|probe| weight(probe.at));
    weights.fold((0, 0), |(infinite, sum), weight| match weight {
        Weight::Infinite => (infinite + 1, sum),
        Weight::Finite(weight) => (infinite, sum + u128::from(weight)),
    })
}
