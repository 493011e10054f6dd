//! Counting plans against the definition: every promise by the rank of the flow equations, least
//! cost by trying all sets of counters, the papers' examples, and what cannot be counted.

mod examples;
mod oracle;

use proptest::collection::vec;
use proptest::prelude::*;
use tomo_graph::check::{Entropy, generate};
use tomo_graph::{EdgeId, FlowArc, FlowGraph, Graph, NodeId, Weight};
use tomo_plan::counting::{
    CountingPlan, Frequencies, Place, Role, is_countable, places, verify, with_cuts,
};

/// A graph from pairs of small numbers, entered at 0.
fn graph(nodes: usize, edges: &[(u32, u32)]) -> FlowGraph {
    let edges = edges.iter().map(|&(from, to)| (NodeId(from), NodeId(to)));
    FlowGraph::new(nodes, NodeId(0), edges).expect("the edges are between the nodes")
}

fn edge(id: u32) -> FlowArc {
    FlowArc::Edge(EdgeId(id))
}

/// Weights by arc: mostly small numbers, some infinite.
fn weights(entropy: &mut Entropy<'_>) -> impl Fn(FlowArc) -> Weight + use<> {
    let table: Vec<u8> = (0..64).map(|_| entropy.byte()).collect();
    move |arc| {
        let at = match arc {
            FlowArc::Return => 0,
            FlowArc::Exit(node) => 1 + 2 * node.index(),
            FlowArc::Endless(node) => 2 + 2 * node.index(),
            FlowArc::Edge(edge) => 33 + edge.index(),
        };
        match table[at % table.len()] {
            230.. => Weight::Infinite,
            byte => Weight::Finite(u64::from(byte % 16)),
        }
    }
}

fn config(cases: u32) -> ProptestConfig {
    ProptestConfig {
        cases,
        failure_persistence: None,
        rng_seed: proptest::test_runner::RngSeed::Fixed(94),
        ..ProptestConfig::default()
    }
}

proptest! {
    #![proptest_config(config(3000))]

    /// The checker accepts every plan, and the rank of the equations says the same of every arc
    /// and node as the plan does.
    #[test]
    fn promises_are_those_of_the_rank(bytes in vec(any::<u8>(), 0..160)) {
        let mut entropy = Entropy::new(&bytes);
        let graph = generate(&mut entropy, 10);
        let plan = CountingPlan::new(&graph, weights(&mut entropy));
        prop_assert_eq!(verify(&graph, &plan), Ok(()));
        let known = oracle::Known::of(&plan, |role| matches!(role, Role::Counted(_)));
        for (at, each) in plan.arcs().iter().enumerate() {
            prop_assert_eq!(each.role != Role::Lost, known.has_arc(at), "{:?}", each.ends.arc);
        }
        for node in graph.nodes() {
            let promised = !plan.lost_nodes().contains(&node);
            prop_assert_eq!(promised, known.has_node(&plan, node), "{:?}", node);
        }
    }
}

proptest! {
    #![proptest_config(config(400))]

    /// No set of countable arcs that weighs less determines all that the plan determines.
    #[test]
    fn no_cheaper_set_of_counters_does(bytes in vec(any::<u8>(), 0..60)) {
        let mut entropy = Entropy::new(&bytes);
        let graph = generate(&mut entropy, 6);
        let weigh = weights(&mut entropy);
        let plan = CountingPlan::new(&graph, &weigh);
        prop_assume!(plan.arcs().len() <= 10);
        let cost = |at: usize| match (plan.arcs()[at].ends.arc, weigh(plan.arcs()[at].ends.arc)) {
            (FlowArc::Endless(_), _) | (_, Weight::Infinite) => None,
            (_, Weight::Finite(weight)) => Some(u128::from(weight)),
        };
        for set in 0u32..1 << plan.arcs().len() {
            let chosen = |at: usize| set >> at & 1 == 1;
            let costs = (0..plan.arcs().len()).filter(|&at| chosen(at)).map(cost);
            let Some(cost) = costs.sum::<Option<u128>>() else {
                continue;
            };
            if cost < plan.cost() {
                let known = oracle::Known::of_set(&plan, chosen);
                let all = (0..plan.arcs().len())
                    .all(|at| plan.arcs()[at].role == Role::Lost || known.has_arc(at));
                prop_assert!(!all, "{set:b} does it for {cost}, not {}", plan.cost());
            }
        }
    }

    /// An estimate respects the flow as far as rounding allows, and any graph has one.
    #[test]
    fn estimates_are_never_more_than_what_comes_in(bytes in vec(any::<u8>(), 0..160)) {
        let graph = generate(&mut Entropy::new(&bytes), 20);
        let estimate = Frequencies::estimate(&graph);
        for node in graph.nodes() {
            let into = graph.in_edges(node).map(|hop| estimate.edges[hop.edge.index()]);
            let entered = if node == graph.entry() { estimate.entries } else { 0 };
            let into: u64 = into.fold(entered, u64::saturating_add);
            let out = graph.out_edges(node).map(|hop| estimate.edges[hop.edge.index()]);
            let out = out.fold(estimate.exits[node.index()], u64::saturating_add);
            // A loop's rounds are counted at its head, wherever control comes back from.
            prop_assert!(out <= into.saturating_mul(10), "{out} of {into} at {node:?}");
        }
        let plan = CountingPlan::new(&graph, |arc| estimate.weight(&graph, arc));
        prop_assert_eq!(verify(&graph, &plan), Ok(()));
        for &arc in plan.counters() {
            prop_assert!(is_countable(&graph, arc));
        }
        for each in plan.arcs() {
            let arc = each.ends.arc;
            prop_assert_eq!(is_countable(&graph, arc), !places(&graph, arc).is_empty());
        }
    }
}

/// Both sides of a branch that cannot be patched, and the way around it: the sides are lost, what
/// lies before and behind is not.
#[test]
fn what_cannot_be_counted_is_named() {
    // 0 → {1, 2} → 3, and 0 → 3.
    let graph = graph(4, &[(0, 1), (0, 2), (1, 3), (2, 3), (0, 3)]);
    let weight = |arc| match arc {
        FlowArc::Edge(EdgeId(0..=3)) => Weight::Infinite,
        _ => Weight::Finite(1),
    };
    let plan = CountingPlan::new(&graph, weight);
    assert!(!plan.is_complete());
    assert_eq!(plan.lost(), [edge(0), edge(1), edge(2), edge(3)]);
    assert_eq!(plan.lost_nodes(), [NodeId(1), NodeId(2)]);
    for arc in [FlowArc::Return, FlowArc::Exit(NodeId(3)), edge(4)] {
        assert_ne!(plan.role(arc), Some(Role::Lost), "{arc:?}");
    }
    assert_eq!(verify(&graph, &plan), Ok(()));
}

/// Two uncountable edges side by side: which was taken is lost, that one was is not.
#[test]
fn nodes_between_lost_edges_are_known() {
    let graph = graph(3, &[(0, 1), (0, 1), (1, 2)]);
    let weight = |arc| match arc {
        FlowArc::Edge(EdgeId(0 | 1)) => Weight::Infinite,
        _ => Weight::Finite(1),
    };
    let plan = CountingPlan::new(&graph, weight);
    assert_eq!(plan.lost(), [edge(0), edge(1)]);
    assert_eq!(plan.lost_nodes(), []);
}

/// A function that is one endless loop: rounds can be counted, entries only before the loop.
#[test]
fn endless_loops() {
    let alone = graph(1, &[(0, 0)]);
    let plan = CountingPlan::new(&alone, |arc| {
        Frequencies::uniform(&alone).weight(&alone, arc)
    });
    let endless = FlowArc::Endless(NodeId(0));
    assert_eq!(plan.lost(), [FlowArc::Return, endless]);
    assert_eq!(plan.counters(), [edge(0)]);
    assert_eq!(plan.lost_nodes(), [NodeId(0)]);
    let behind = graph(2, &[(0, 1), (1, 1)]);
    let plan = CountingPlan::new(&behind, |arc| {
        Frequencies::uniform(&behind).weight(&behind, arc)
    });
    assert!(plan.is_complete());
    assert_eq!(plan.counters().len(), 2);
}

/// A block that may not come back costs one more counter, and no more.
#[test]
fn a_cut_costs_a_counter() {
    let whole = graph(4, &[(0, 1), (0, 2), (1, 3), (2, 3)]);
    let plan = |graph: &FlowGraph| {
        CountingPlan::new(graph, |arc| match arc {
            FlowArc::Edge(_) => Weight::Finite(1),
            _ => Weight::Infinite,
        })
    };
    let cut = with_cuts(&whole, [NodeId(2)]).expect("a node of the graph");
    assert_eq!(plan(&whole).counters().len(), 2);
    assert_eq!(plan(&cut).counters().len(), 3);
    assert_eq!(
        plan(&cut).role(FlowArc::Exit(NodeId(2))),
        Some(Role::Inferred)
    );
    assert!(plan(&cut).is_complete());
    assert!(with_cuts(&whole, [NodeId(4)]).is_err());
}

#[test]
fn places_of_counters() {
    // 0 → {1, 2}, 1 → 2, 2 → 0 or out.
    let graph = graph(3, &[(0, 1), (0, 2), (1, 2), (2, 0)])
        .with_exits([NodeId(2)])
        .expect("a node of the graph");
    let target = |node| Place::Target(NodeId(node));
    assert_eq!(places(&graph, edge(0)), [target(1), Place::Split]);
    assert_eq!(places(&graph, edge(1)), [Place::Split]);
    assert_eq!(
        places(&graph, edge(2)),
        [Place::Source(NodeId(1)), Place::Split]
    );
    // The entry is come back to, and the exit goes on.
    assert_eq!(places(&graph, FlowArc::Return), []);
    assert_eq!(places(&graph, FlowArc::Exit(NodeId(2))), []);
}
