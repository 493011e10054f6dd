//! Implied branch predicates against all short executions of small graphs.

use std::collections::BTreeMap;

use proptest::prelude::*;
use tomo_graph::check::{Entropy, generate};
use tomo_graph::{EdgeId, FlowGraph, Graph, NodeId};
use tomo_plan::coverage::{Ending, Flow, Subdivision};
use tomo_plan::predicates::{Model, Removal, implied, printed};

fn graph(nodes: usize, edges: &[(u32, u32)]) -> FlowGraph {
    let edges = edges.iter().map(|&(from, to)| (NodeId(from), NodeId(to)));
    FlowGraph::new(nodes, NodeId(0), edges).expect("a graph")
}

fn divide(graph: &FlowGraph) -> Subdivision {
    Subdivision::of(&Flow::new(graph, Ending::AtExits, |_| false)).expect("small")
}

/// How often each node of a divided flow runs in each whole walk of at most `longest` nodes.
fn walks(flow: &Flow<'_>, longest: usize) -> Vec<Vec<u32>> {
    let mut whole = Vec::new();
    let mut open = vec![(flow.entry(), vec![0u32; flow.node_count()], 0)];
    while let Some((node, mut counts, length)) = open.pop() {
        counts[node.index()] += 1;
        if flow.is_exit(node) {
            whole.push(counts.clone());
        }
        if length < longest {
            let next = flow
                .successors(node)
                .map(|next| (next, counts.clone(), length + 1));
            open.extend(next);
        }
    }
    whole
}

fn told(removal: &Removal) -> impl Iterator<Item = (EdgeId, NodeId)> {
    let edges = (0..).map(EdgeId).zip(&removal.told_by);
    edges.filter_map(|(edge, site)| Some((edge, (*site)?)))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    #[test]
    fn implied_predicates_say_what_the_edges_do(
        bytes in prop::collection::vec(any::<u8>(), 0..48), values: u8, stops: u8,
    ) {
        let graph = generate(&mut Entropy::new(&bytes), 5);
        prop_assume!(graph.edge_count() <= 8);
        let flow = Flow::new(&graph, Ending::AtStops, |node| stops >> node.0 & 1 == 1);
        let loose = Flow::new(&graph, Ending::AtExits, |_| false);
        for flow in [flow, loose] {
            let divided = Subdivision::of(&flow).expect("small");
            let value = |node: NodeId| values >> (node.0 % 8) & 1 == 1 && node.index() < graph.node_count();
            let binary = implied(&divided, Model::Binary, value);
            let counts = implied(&divided, Model::Counts, value);
            for walk in walks(divided.flow(), 14) {
                let node = |edge: EdgeId| graph.node_count() + edge.index();
                for (edge, site) in told(&counts) {
                    prop_assert_eq!(walk[node(edge)], walk[site.index()], "{:?} {:?}", edge, site);
                }
                for (edge, site) in told(&binary) {
                    prop_assert_eq!(walk[node(edge)] > 0, walk[site.index()] > 0);
                }
            }
            ordered(&divided, &counts, value)?;
            ordered(&divided, &binary, value)?;
        }
    }

    #[test]
    fn what_always_runs_equally_often_is_implied(bytes in prop::collection::vec(any::<u8>(), 0..48)) {
        let graph = generate(&mut Entropy::new(&bytes), 4);
        prop_assume!(graph.edge_count() <= 6);
        let divided = divide(&graph);
        let walks = walks(divided.flow(), 16);
        for site in graph.nodes() {
            let removal = implied(&divided, Model::Counts, |node| node == site);
            let forks = (0..graph.edge_count() as u32)
                .map(EdgeId)
                .filter(|&edge| graph.out_edges(graph.source(edge)).nth(1).is_some());
            for edge in forks.filter(|&edge| removal.told_by[edge.index()].is_none()) {
                let node = graph.node_count() + edge.index();
                let never = walks.iter().all(|walk| walk[node] == 0);
                let differ = walks.iter().any(|walk| walk[node] != walk[site.index()]);
                prop_assert!(never || differ, "{edge:?} {site:?}");
            }
        }
    }
}

/// Every told edge is in the order once, behind all that it is recovered from.
fn ordered(
    divided: &Subdivision,
    removal: &Removal,
    value: impl Fn(NodeId) -> bool,
) -> Result<(), TestCaseError> {
    let place: BTreeMap<EdgeId, usize> = removal.order.iter().copied().zip(0..).collect();
    prop_assert_eq!(place.len(), removal.order.len());
    prop_assert_eq!(place.len(), told(removal).count());
    for (edge, site) in told(removal).filter(|&(_, site)| !value(site)) {
        for node in divided.flow().successors(site) {
            let tomo_plan::coverage::Unit::Edge(needed) = divided.unit(node) else {
                continue;
            };
            if removal.told_by[needed.index()].is_some() {
                prop_assert!(place[&needed] < place[&edge], "{needed:?} before {edge:?}");
            }
        }
    }
    Ok(())
}

/// ABI Figure 1a: B1 decides between B2 and B4, and B2 between B5 and B6; B2 and B3 run if and only
/// if B1 is true.
fn figure_1() -> FlowGraph {
    // B1 = 0, B2 = 1, B3 = 2, B4 = 3, B5 = 4, B6 = 5; what follows B3 and B4 is left out there.
    graph(6, &[(0, 1), (0, 3), (1, 4), (1, 5), (4, 2), (5, 2)])
}

#[test]
fn abi_figure_1_a_site_in_b2_or_b3_tells_of_the_edge_from_b1() {
    let graph = figure_1();
    let divided = divide(&graph);
    for model in [Model::Binary, Model::Counts] {
        for block in [1, 2] {
            let removal = implied(&divided, model, |node| node == NodeId(block));
            assert_eq!(removal.told_by[0], Some(NodeId(block)));
            assert_eq!(removal.told_by[1], None);
        }
        // B2 ends in a branch, which is a site already.
        let removal = implied(&divided, model, |_| false);
        assert_eq!(removal.told_by[0], Some(NodeId(1)));
    }
}

#[test]
fn printed_condition_accepts_an_edge_that_is_not_the_only_way() {
    // u→v, u→w, w→v: u dominates v, and v runs without u→v.
    let graph = graph(3, &[(0, 1), (0, 2), (2, 1)]);
    assert!(printed::condition(&graph, EdgeId(0), NodeId(1)));
    let divided = divide(&graph);
    let wrong = |walk: &Vec<u32>| walk[3] == 0 && walk[1] == 1;
    assert!(walks(divided.flow(), 8).iter().any(wrong));
    for model in [Model::Binary, Model::Counts] {
        let removal = implied(&divided, model, |node| node == NodeId(1));
        assert_eq!(removal.told_by[0], None);
    }
}

#[test]
fn an_edge_that_dominates_its_target_need_not_run_as_often() {
    // 0→1, 1→1, 1→2, 0→2: the edge 0→1 dominates 1, which runs again and again.
    let graph = graph(3, &[(0, 1), (1, 1), (1, 2), (0, 2)]);
    let divided = divide(&graph);
    let site = |node| node == NodeId(1);
    assert_eq!(
        implied(&divided, Model::Binary, site).told_by[0],
        Some(NodeId(1))
    );
    assert_eq!(implied(&divided, Model::Counts, site).told_by[0], None);
}

#[test]
fn a_loop_s_head_runs_once_more_than_its_body() {
    let graph = graph(4, &[(0, 1), (1, 2), (2, 1), (1, 3)]);
    let removal = implied(&divide(&graph), Model::Counts, |node| node == NodeId(1));
    assert_eq!(removal.told_by[1], None);
    let removal = implied(&divide(&graph), Model::Counts, |node| node == NodeId(2));
    assert_eq!(removal.told_by[1], Some(NodeId(2)));
}
