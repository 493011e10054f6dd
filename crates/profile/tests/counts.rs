//! Inference against random executions that count every arc and block themselves: whole ones, ones
//! that are cut short, and numbers that cannot have come about.

use proptest::collection::vec;
use proptest::prelude::*;
use std::collections::BTreeMap;
use tomo_graph::check::{Entropy, generate};
use tomo_graph::{EdgeId, FlowArc, FlowGraph, Graph, NodeId, Weight, WithExit};
use tomo_plan::counting::{CountingPlan, Frequencies, Role, with_cuts};
use tomo_profile::counts::{CountError, Counts, Cut, infer};

/// What happened, counted by the executions themselves.
#[derive(Default)]
struct Truth {
    arcs: BTreeMap<FlowArc, u64>,
    nodes: BTreeMap<NodeId, u64>,
    cuts: BTreeMap<NodeId, u64>,
}

impl Truth {
    /// One activation: at most so many steps, then it is cut.
    fn run(&mut self, graph: &FlowGraph, entropy: &mut Entropy<'_>, mut steps: usize) {
        let mut node = graph.entry();
        *self.arcs.entry(FlowArc::Return).or_default() += 1;
        loop {
            *self.nodes.entry(node).or_default() += 1;
            if steps == 0 {
                *self.cuts.entry(node).or_default() += 1;
                return;
            }
            steps -= 1;
            let hops: Vec<_> = graph.out_edges(node).collect();
            let choice = entropy.below(hops.len() + usize::from(graph.is_exit(node)));
            let Some(hop) = hops.get(choice) else {
                *self.arcs.entry(FlowArc::Exit(node)).or_default() += 1;
                return;
            };
            *self.arcs.entry(FlowArc::Edge(hop.edge)).or_default() += 1;
            node = hop.node;
        }
    }

    fn recorded(&self, plan: &CountingPlan) -> Vec<u64> {
        let count = |arc| self.arcs.get(arc).copied().unwrap_or(0);
        plan.counters().iter().map(count).collect()
    }

    fn cuts(&self) -> Vec<Cut> {
        let cuts = self.cuts.iter();
        cuts.map(|(&node, &count)| Cut { node, count }).collect()
    }

    /// Everything that the plan promises is as it was.
    fn check(&self, graph: &FlowGraph, plan: &CountingPlan, counts: &Counts) -> Result<(), String> {
        for each in plan.arcs() {
            let expected = self.arcs.get(&each.ends.arc).copied().unwrap_or(0);
            let expected = (each.role != Role::Lost).then_some(expected);
            if counts.of(each.ends.arc) != expected {
                return Err(format!("{each:?}: {:?}", counts.of(each.ends.arc)));
            }
        }
        for node in graph.nodes() {
            let expected = self.nodes.get(&node).copied().unwrap_or(0);
            let expected = (!plan.lost_nodes().contains(&node)).then_some(expected);
            if counts.of_node(node) != expected {
                return Err(format!(
                    "{node:?}: {:?}, not {expected:?}",
                    counts.of_node(node)
                ));
            }
        }
        Ok(())
    }
}

fn weights(entropy: &mut Entropy<'_>) -> impl Fn(FlowArc) -> Weight + use<> {
    let table: Vec<u8> = (0..16).map(|_| entropy.byte()).collect();
    move |arc| match arc {
        FlowArc::Edge(edge) if table[edge.index() % 16] < 220 => {
            Weight::Finite(u64::from(table[edge.index() % 16]))
        }
        FlowArc::Exit(node) if table[node.index() % 16] % 4 == 1 => Weight::Finite(1),
        FlowArc::Return if table[0] % 2 == 1 => Weight::Finite(1),
        _ => Weight::Infinite,
    }
}

fn config(cases: u32) -> ProptestConfig {
    ProptestConfig {
        cases,
        failure_persistence: None,
        rng_seed: proptest::test_runner::RngSeed::Fixed(1973),
        ..ProptestConfig::default()
    }
}

proptest! {
    #![proptest_config(config(3000))]

    /// With the cuts known, everything promised is exact, whatever graph and weights.
    #[test]
    fn inferred_is_what_happened(bytes in vec(any::<u8>(), 0..200)) {
        let mut entropy = Entropy::new(&bytes);
        let graph = generate(&mut entropy, 12);
        let plan = CountingPlan::new(&graph, weights(&mut entropy));
        let mut truth = Truth::default();
        for _ in 0..entropy.below(8) {
            let steps = entropy.below(40);
            truth.run(&graph, &mut entropy, steps);
        }
        let counts = infer(&plan, &truth.recorded(&plan), &truth.cuts());
        let counts = counts.map_err(|error| TestCaseError::fail(error.to_string()))?;
        truth.check(&graph, &plan, &counts).map_err(TestCaseError::fail)?;
    }

    /// With exits wherever an activation was cut, nothing else need be known.
    #[test]
    fn planned_cuts_need_no_further_knowledge(bytes in vec(any::<u8>(), 0..200)) {
        let mut entropy = Entropy::new(&bytes);
        let graph = generate(&mut entropy, 12);
        let weigh = weights(&mut entropy);
        let mut truth = Truth::default();
        for _ in 0..entropy.below(8) {
            let steps = entropy.below(40);
            truth.run(&graph, &mut entropy, steps);
        }
        let graph = with_cuts(&graph, truth.cuts.keys().copied()).expect("nodes of the graph");
        for (&node, &count) in &truth.cuts {
            *truth.arcs.entry(FlowArc::Exit(node)).or_default() += count;
        }
        let plan = CountingPlan::new(&graph, weigh);
        let counts = infer(&plan, &truth.recorded(&plan), &[]);
        let counts = counts.map_err(|error| TestCaseError::fail(error.to_string()))?;
        truth.check(&graph, &plan, &counts).map_err(TestCaseError::fail)?;
    }

    /// Cuts of which nobody says are errors of at most one per activation, or are found out.
    #[test]
    fn unknown_cuts_do_bounded_harm(bytes in vec(any::<u8>(), 0..200)) {
        let mut entropy = Entropy::new(&bytes);
        let graph = generate(&mut entropy, 12);
        let plan = CountingPlan::new(&graph, weights(&mut entropy));
        let mut truth = Truth::default();
        for _ in 0..1 + entropy.below(8) {
            let steps = entropy.below(12);
            truth.run(&graph, &mut entropy, steps);
        }
        let cut: u64 = truth.cuts.values().sum();
        match infer(&plan, &truth.recorded(&plan), &[]) {
            Ok(counts) => for each in plan.arcs() {
                let expected = truth.arcs.get(&each.ends.arc).copied().unwrap_or(0);
                let off = counts.of(each.ends.arc).map_or(0, |count| count.abs_diff(expected));
                prop_assert!(off <= cut, "{each:?} is off by {off}, with {cut} cut");
            },
            Err(error) => prop_assert!(cut > 0, "{error}"),
        }
    }
}

fn chain_of_diamonds(length: u32) -> FlowGraph {
    let edges = (0..length).flat_map(|at| [(at, at + 1), (at, at + 1)]);
    let edges = edges.map(|(from, to)| (NodeId(from), NodeId(to)));
    FlowGraph::new(length as usize + 1, NodeId(0), edges).expect("a chain")
}

/// Counters at their largest: sums do not wrap, and what 64 bits do not hold is an error.
#[test]
fn sums_beyond_64_bits_are_errors() {
    let graph = chain_of_diamonds(1);
    let weight = |arc| match arc {
        FlowArc::Edge(_) => Weight::Finite(1),
        _ => Weight::Finite(2),
    };
    // Return and exit are heavier, so one edge is inferred; both edges counted would be dearer.
    let plan = CountingPlan::new(&graph, weight);
    let all = vec![u64::MAX; plan.counters().len()];
    assert!(matches!(
        infer(&plan, &all, &[]),
        Err(CountError::ArcOverflow { .. } | CountError::Negative { .. } | CountError::Node { .. })
    ));
    let plan = CountingPlan::new(&graph, |arc| match arc {
        FlowArc::Return => Weight::Infinite,
        FlowArc::Exit(_) => Weight::Finite(9),
        _ => Weight::Finite(1),
    });
    assert_eq!(plan.role(FlowArc::Return), Some(Role::Inferred));
    let expected = 2 * i128::from(u64::MAX);
    assert_eq!(
        infer(&plan, &[u64::MAX, u64::MAX], &[]),
        Err(CountError::ArcOverflow {
            arc: FlowArc::Return,
            count: expected
        })
    );
}

#[test]
fn recordings_that_do_not_fit_are_refused() {
    let graph = chain_of_diamonds(2);
    let uniform = Frequencies::uniform(&graph);
    let plan = CountingPlan::new(&graph, |arc| uniform.weight(&graph, arc));
    let expected = plan.counters().len();
    let found = expected + 1;
    assert_eq!(
        infer(&plan, &vec![0; found], &[]),
        Err(CountError::Length { expected, found })
    );
    let cut = Cut {
        node: NodeId(3),
        count: 1,
    };
    assert_eq!(
        infer(&plan, &vec![0; expected], &[cut]),
        Err(CountError::NoSuchNode(NodeId(3)))
    );
}

/// A branch with a counter on one side and one before it: more than came in cannot go out.
#[test]
fn less_than_never_is_an_error() {
    let edges = [(0, 1), (1, 2), (1, 2)].map(|(from, to)| (NodeId(from), NodeId(to)));
    let graph = FlowGraph::new(3, NodeId(0), edges).expect("a graph");
    let plan = CountingPlan::new(&graph, |arc| match arc {
        FlowArc::Edge(EdgeId(0 | 1)) => Weight::Finite(1),
        _ => Weight::Infinite,
    });
    assert_eq!(
        plan.counters(),
        [FlowArc::Edge(EdgeId(0)), FlowArc::Edge(EdgeId(1))]
    );
    let negative = CountError::Negative {
        arc: FlowArc::Edge(EdgeId(2)),
        count: -4,
    };
    assert_eq!(infer(&plan, &[3, 7], &[]), Err(negative));
    let counts = infer(&plan, &[7, 3], &[]).expect("possible counts");
    assert_eq!(counts.of(FlowArc::Edge(EdgeId(2))), Some(4));
    assert_eq!(counts.activations(), Some(7));
    assert_eq!(counts.of_node(NodeId(2)), Some(7));
}

/// An endless region, its activations cut where they stood: nothing is left for the virtual end.
#[test]
fn endless_regions_with_known_cuts() {
    let edges = [(0, 1), (1, 2), (2, 1)].map(|(from, to)| (NodeId(from), NodeId(to)));
    let graph = FlowGraph::new(3, NodeId(0), edges).expect("a graph");
    let uniform = Frequencies::uniform(&graph);
    let plan = CountingPlan::new(&graph, |arc| uniform.weight(&graph, arc));
    let view = WithExit::of(&graph);
    let endless = FlowArc::Endless(view.endless()[0]);
    let mut truth = Truth::default();
    for steps in [5, 8] {
        truth.run(&graph, &mut Entropy::new(&[]), steps);
    }
    let recorded = truth.recorded(&plan);
    let counts = infer(&plan, &recorded, &truth.cuts()).expect("possible counts");
    assert_eq!(counts.of(endless), Some(0));
    assert_eq!(
        counts.of_node(NodeId(2)),
        truth.nodes.get(&NodeId(2)).copied()
    );
    let blind = infer(&plan, &recorded, &[]).expect("possible counts");
    assert_eq!(blind.of(endless), Some(2));
}
