//! Moving the values of selected paths to where few and cheap probes do.
//!
//! Source: BL96 §3.2 for the spanning tree; the descent is ours. Finding the least number of
//! probes is a nearest-codeword problem and not attempted: two good starts, and a descent from each.
//! O(m log m), and O(m log m) a round of the descent; each round but the last saves something.
//!
//! Nodes that ways outside EI join must keep the same potential, lest those ways add something; the
//! argument is in the module above. Such nodes are one *group*; source and sink are in one as well,
//! and its potential is zero. Shifting the potential of any other group keeps every sum, and clears
//! those of its ways in EI whose increments equal the shift.

use std::collections::BTreeMap;

use tomo_graph::Weight;

use super::super::{ArcId, DagNode, Increments, Interest, PathDag};

/// More rounds than this are not made.
const ROUNDS: usize = 8;

/// What some ways cost: how many cannot be patched, the weight of the others, their number.
type Cost = (usize, u128, usize);

/// Increments with the sums of `values`, which are zero outside EI.
pub(super) fn place(
    dag: &PathDag,
    interest: &Interest,
    values: &[u64],
    weights: &[Weight],
) -> Increments {
    let groups = Groups::of(dag, interest);
    let starts = [
        Increments::unmoved(dag, values),
        Increments::of(dag, values, &outside_first(interest, dag, weights)),
    ];
    let [first, second] = starts.map(|start| groups.descend(dag, values, weights, &start));
    if cost(&second, weights) < cost(&first, weights) {
        second
    } else {
        first
    }
}

/// Weights in which just the ways outside EI are infinite; others that were weigh all but that.
fn outside_first(interest: &Interest, dag: &PathDag, weights: &[Weight]) -> Vec<Weight> {
    let weigh = |(id, &weight): (ArcId, &Weight)| match weight {
        _ if !interest.has(id) => Weight::Infinite,
        Weight::Infinite => Weight::Finite(u64::MAX),
        weight => weight,
    };
    dag.ids().zip(weights).map(weigh).collect()
}

/// What the ways cost that add something.
fn cost(increments: &Increments, weights: &[Weight]) -> Cost {
    let probes = increments.all().iter().zip(weights);
    let probes = probes.filter(|each| *each.0 != 0);
    probes.fold((0, 0, 0), |sum, (_, &weight)| plus(sum, weight))
}

fn plus(cost: Cost, weight: Weight) -> Cost {
    match weight {
        Weight::Infinite => (cost.0 + 1, cost.1, cost.2),
        Weight::Finite(weight) => (cost.0, cost.1 + u128::from(weight), cost.2 + 1),
    }
}

/// Nodes whose potentials move together.
struct Groups {
    /// Per node: the least node of its group. That of source and sink is 0, and fixed.
    group: Vec<u32>,
    /// Per group but that: the ways in EI between it and others.
    ways: BTreeMap<u32, Vec<ArcId>>,
}

impl Groups {
    fn of(dag: &PathDag, interest: &Interest) -> Self {
        let group = group(dag, interest);
        let mut ways: BTreeMap<u32, Vec<ArcId>> = BTreeMap::new();
        for id in dag.ids().filter(|&id| interest.has(id)) {
            let arc = dag.arc(id);
            let (from, to) = (group[arc.from.index()], group[arc.to.index()]);
            for side in [from, to]
                .into_iter()
                .filter(|&side| from != to && side != 0)
            {
                ways.entry(side).or_default().push(id);
            }
        }
        Self { group, ways }
    }

    /// Shifts groups as long as that saves something.
    fn descend(
        &self,
        dag: &PathDag,
        values: &[u64],
        weights: &[Weight],
        start: &Increments,
    ) -> Increments {
        let mut shifted = vec![0u64; dag.node_count()];
        let mut increments = start.all().to_vec();
        for _ in 0..ROUNDS {
            let before = shifted.clone();
            for (&group, ways) in &self.ways {
                let shift = self.best_shift(dag, group, ways, &increments, weights);
                shifted[group as usize] = shifted[group as usize].wrapping_add(shift);
                for &id in ways {
                    let change = self.change(dag, group, id, shift);
                    increments[id.index()] = increments[id.index()].wrapping_add(change);
                }
            }
            if shifted == before {
                break;
            }
        }
        let potential = |(node, &group): (u32, &u32)| {
            let before = start.potential(DagNode(node));
            before.wrapping_add(shifted[group as usize])
        };
        let potentials = (0..).zip(&self.group).map(potential).collect();
        Increments::by_potentials(dag, values, potentials, |at| increments[at] != 0)
    }

    /// What a way's increment changes by when a group at one of its ends is shifted.
    fn change(&self, dag: &PathDag, group: u32, id: ArcId, shift: u64) -> u64 {
        if self.group[dag.arc(id).from.index()] == group {
            shift
        } else {
            shift.wrapping_neg()
        }
    }

    /// The shift under which the ways of a group cost least; zero if none is better than that.
    fn best_shift(
        &self,
        dag: &PathDag,
        group: u32,
        ways: &[ArcId],
        increments: &[u64],
        weights: &[Weight],
    ) -> u64 {
        // What each shift would clear.
        let mut cleared: BTreeMap<u64, Cost> = BTreeMap::new();
        for &id in ways {
            let needed = increments[id.index()].wrapping_neg();
            let sum = cleared
                .entry(self.change(dag, group, id, needed))
                .or_default();
            *sum = plus(*sum, weights[id.index()]);
        }
        let stay = cleared.get(&0).copied().unwrap_or_default();
        let best = cleared
            .into_iter()
            .max_by_key(|&(shift, gain)| (gain, shift == 0));
        best.filter(|best| best.1 > stay).map_or(0, |best| best.0)
    }
}

/// Per node: the least node that ways outside EI join it with, source and sink being joined.
fn group(dag: &PathDag, interest: &Interest) -> Vec<u32> {
    let mut group: Vec<Option<u32>> = vec![None; dag.node_count()];
    let sink = dag.sink();
    for first in dag.nodes().chain([sink]) {
        let mut work = vec![first];
        while let Some(node) = work.pop() {
            if group[node.index()].is_some() {
                continue;
            }
            group[node.index()] = Some(first.0);
            let others = |id: &ArcId| !interest.has(*id);
            work.extend(dag.out(node).filter(others).map(|id| dag.arc(id).to));
            let into = dag.into(node).iter().copied().filter(others);
            work.extend(into.map(|id| dag.arc(id).from));
            if node == DagNode::SOURCE {
                work.push(sink);
            } else if node == sink {
                work.push(DagNode::SOURCE);
            }
        }
    }
    group.into_iter().map(Option::unwrap_or_default).collect()
}
