//! Placement: realizable whenever anything is, and how far from the cheapest.

use tomo_graph::check::{Entropy, generate};
use tomo_graph::{FlowGraph, NodeId, Weight};
use tomo_plan::witnesses::check::{Dice, Shape, program};
use tomo_plan::witnesses::place::verify;
use tomo_plan::witnesses::{Clash, Effort, Ends, Entered, Flow, Place, place};

use super::brute::alike;
use super::graphs::{graph, random};

/// Which places carry probes.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Nodes,
    Edges,
    Both,
    /// Both, but some places cannot be patched.
    Some,
}

const KINDS: [Kind; 4] = [Kind::Nodes, Kind::Edges, Kind::Both, Kind::Some];

fn weights(dice: &mut Dice, flow: &Flow, kind: Kind) -> Vec<Weight> {
    let weight = |number| {
        let weight = Weight::Finite(1 + dice.roll() % 9);
        let is_node = matches!(flow.place(number), Place::Node(_));
        let allowed = match kind {
            Kind::Nodes => is_node,
            Kind::Edges => !is_node,
            Kind::Both => true,
            Kind::Some => dice.below(3) > 0,
        };
        if allowed { weight } else { Weight::Infinite }
    };
    (0..flow.places() as u32).map(weight).collect()
}

fn allowed(flow: &Flow, weights: &[Weight]) -> Vec<Place> {
    (0..flow.places() as u32)
        .filter(|&number| weights[number as usize] != Weight::Infinite)
        .map(|number| flow.place(number))
        .collect()
}

/// Placement succeeds exactly where all allowed places together would do, and its result does.
fn hold(flow: &Flow, weights: &[Weight]) -> Option<[u64; 2]> {
    let weight = |place| weights[flow.number(place) as usize];
    let all = verify(flow, &allowed(flow, weights));
    let forest = place(flow, weight, Effort::Forest);
    let pruned = place(flow, weight, Effort::Pruned(u64::MAX));
    assert_eq!(forest.is_ok(), all.is_ok(), "{flow:?} {weights:?}");
    assert_eq!(pruned.is_ok(), all.is_ok());
    let (forest, pruned) = (forest.ok()?, pruned.ok()?);
    for placed in [&forest, &pruned] {
        assert_eq!(
            verify(flow, &placed.witnesses),
            Ok(()),
            "{flow:?} {weights:?}"
        );
        assert!(
            placed
                .witnesses
                .iter()
                .all(|&each| weight(each) != Weight::Infinite)
        );
    }
    assert!(pruned.cost <= forest.cost);
    Some([forest.cost, pruned.cost])
}

#[test]
fn placement_is_realizable_whenever_anything_is() {
    let mut dice = Dice(3);
    let (mut done, mut none) = (0, 0);
    for round in 0..8000 {
        let bytes = dice.bytes(80);
        let graph = generate(&mut Entropy::new(&bytes), 14);
        let entered = [Entered::Once, Entered::Again][round % 2];
        let flow = Flow::of_graph(&graph, entered);
        let weights = weights(&mut dice, &flow, KINDS[round / 2 % 4]);
        match hold(&flow, &weights) {
            Some(_) => done += 1,
            None => none += 1,
        }
    }
    assert!(
        done > 4000 && none > 300,
        "{done} placed, {none} not realizable"
    );
}

#[test]
fn placement_in_programs() {
    let mut dice = Dice(4);
    let shape = Shape {
        functions: 5,
        nodes: 10,
        several_targets: true,
        halts: true,
    };
    for round in 0..1500 {
        let program = program(&mut dice, shape);
        for id in program.ids() {
            for ends in [Ends::All, Ends::Returns] {
                let flow = Flow::of_function(&program, id, ends);
                let weights = weights(&mut dice, &flow, KINDS[round % 4]);
                hold(&flow, &weights);
            }
        }
    }
}

/// The cheapest of all sets of places.
fn cheapest(flow: &Flow, weights: &[Weight]) -> Option<u64> {
    let allowed = allowed(flow, weights);
    let mut best = None;
    for bits in 0u32..1 << allowed.len() {
        let chosen = (0..allowed.len()).filter(|at| bits >> at & 1 == 1);
        let chosen: Vec<Place> = chosen.map(|at| allowed[at]).collect();
        let costs = chosen
            .iter()
            .map(|&place| match weights[flow.number(place) as usize] {
                Weight::Finite(weight) => weight,
                Weight::Infinite => u64::MAX,
            });
        let cost: u64 = costs.sum();
        if best.is_none_or(|best| cost < best) && verify(flow, &chosen).is_ok() {
            best = Some(cost);
        }
    }
    best
}

/// The exact search against all sets, and the other efforts against it.
#[test]
fn exact_is_exact_and_pruned_is_near() {
    let mut dice = Dice(5);
    let mut sums = [[0u64; 4]; 4];
    for round in 0..1200 {
        let graph = random(&mut dice, 6);
        let entered = [Entered::Once, Entered::Again][round % 2];
        let flow = Flow::of_graph(&graph, entered);
        let weights = weights(&mut dice, &flow, KINDS[round / 2 % 4]);
        if allowed(&flow, &weights).len() > 11 {
            continue;
        }
        let weight = |place| weights[flow.number(place) as usize];
        let exact = place(&flow, weight, Effort::Exact(100_000));
        assert_eq!(
            exact.as_ref().ok().map(|exact| exact.cost),
            cheapest(&flow, &weights)
        );
        let (Some([forest, pruned]), Ok(exact)) = (hold(&flow, &weights), exact) else {
            continue;
        };
        assert!(exact.is_optimal && verify(&flow, &exact.witnesses).is_ok());
        let sum = &mut sums[round / 2 % 4];
        for (sum, cost) in sum.iter_mut().zip([1, forest, pruned, exact.cost]) {
            *sum += cost;
        }
    }
    for (kind, [count, forest, pruned, exact]) in KINDS.iter().zip(sums) {
        println!("{kind:?}: {count} graphs, forest {forest}, pruned {pruned}, exact {exact}");
        assert!(
            count > 20 && pruned * 100 <= exact * 115,
            "{kind:?}: {pruned} to {exact}"
        );
    }
}

/// On nodes, of which executions show that the record tells them apart.
#[test]
fn placed_nodes_tell_executions_apart() {
    let mut dice = Dice(6);
    let mut looked_at = 0;
    for _ in 0..600 {
        let graph = random(&mut dice, 5);
        let flow = Flow::of_graph(&graph, Entered::Once);
        let weights = weights(&mut dice, &flow, Kind::Nodes);
        let weight = |place| weights[flow.number(place) as usize];
        let placed = place(&flow, weight, Effort::Exact(10_000)).expect("nodes do");
        let nodes: Vec<NodeId> = placed
            .witnesses
            .iter()
            .filter_map(|place| match place {
                Place::Node(node) => Some(*node),
                Place::Edge(_) => None,
            })
            .collect();
        if let Ok(found) = alike(&graph, &[nodes], 12, 20_000) {
            looked_at += 1;
            assert_eq!(found, None, "{:?}", graph.edges());
        }
    }
    assert!(looked_at > 300);
}

fn cost(graph: &FlowGraph, entered: Entered) -> u64 {
    let weight = |place| match place {
        Place::Node(_) => Weight::Infinite,
        Place::Edge(_) => Weight::Finite(1),
    };
    let flow = Flow::of_graph(graph, entered);
    place(&flow, weight, Effort::Forest).expect("edges do").cost
}

/// Tracing needs one witness for a lone `if`, two if it may run again; no branch, no witness.
#[test]
fn tracing_is_not_counting() {
    let lone = graph(4, &[(0, 1), (0, 2), (1, 3), (2, 3)]);
    assert_eq!(cost(&lone, Entered::Once), 1);
    assert_eq!(cost(&lone, Entered::Again), 2);
    let line = graph(3, &[(0, 1), (1, 2)]);
    assert_eq!(cost(&line, Entered::Again), 0);
}

/// Parallel edges are alike to witnesses on nodes, and the error names them.
#[test]
fn parallel_edges_need_edges() {
    let flow = Flow::of_graph(&graph(2, &[(0, 1), (0, 1)]), Entered::Once);
    let weight = |place| match place {
        Place::Node(_) => Weight::Finite(1),
        Place::Edge(_) => Weight::Infinite,
    };
    let refused = place(&flow, weight, Effort::Pruned(1000)).expect_err("nodes do not");
    let clash = Clash {
        node: NodeId(0),
        ways: (0, 1),
        shared: flow.number(Place::Node(NodeId(1))),
    };
    assert_eq!(refused.clash, clash);
    assert!(!refused.to_string().is_empty());
}

/// What never exits counts as ending at its representative; what nothing reaches does not count.
#[test]
fn endless_and_unreachable_blocks() {
    assert_eq!(cost(&graph(1, &[(0, 0)]), Entered::Once), 1);
    assert_eq!(
        cost(&graph(4, &[(0, 1), (2, 2), (2, 3), (3, 1)]), Entered::Again),
        0
    );
}
