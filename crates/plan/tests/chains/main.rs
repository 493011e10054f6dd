//! Call chains against their definition, written as a plain recursion.

use proptest::collection::vec;
use proptest::prelude::*;
use std::collections::HashSet;
use tomo_graph::PathCount;
use tomo_plan::chains::{Call, CallGraph, ChainsError, FunctionId};
use tomo_plan::distribution::UnitSets;

fn call((caller, site, callee): (u32, u32, u32)) -> Call {
    Call {
        caller: FunctionId(caller),
        site,
        callee: FunctionId(callee),
    }
}

fn graph(functions: usize, calls: &[(u32, u32, u32)]) -> CallGraph {
    CallGraph::new(functions, calls.iter().copied().map(call)).unwrap()
}

/// The sites of all chains of a root.
fn sites(graph: &CallGraph, root: u32) -> Vec<Vec<u32>> {
    let chains = graph.chains(FunctionId(root)).unwrap();
    chains
        .iter()
        .map(|chain| chain.iter().map(|call| call.site).collect())
        .collect()
}

/// `main` calls `a` twice and `b` once, both call `c`: chains differ by the site of the call.
#[test]
fn chains_are_told_apart_by_call_site() {
    let graph = graph(4, &[(0, 0, 1), (0, 1, 1), (0, 2, 2), (1, 3, 3), (2, 4, 3)]);
    assert_eq!(sites(&graph, 0), [[0, 3], [1, 3], [2, 4]]);
    let chains = graph.chains(FunctionId(0)).unwrap();
    assert_eq!(chains.count(), PathCount::Exact(3));
    let events: Vec<_> = chains.events().collect();
    assert_eq!(
        events[1],
        [
            graph.entry_unit(FunctionId(0)),
            graph.site_unit(1),
            graph.site_unit(3)
        ]
    );
}

#[test]
fn back_edges_are_not_taken_and_a_function_with_no_other_call_ends_a_chain() {
    // 0 → 1 → 2 → {1, 3}, and 3 calls only itself and 0.
    let graph = graph(
        4,
        &[
            (0, 0, 1),
            (1, 1, 2),
            (2, 2, 1),
            (2, 3, 3),
            (3, 4, 3),
            (3, 5, 0),
        ],
    );
    assert_eq!(sites(&graph, 0), [[0, 1, 3]]);
    // From 2 on the call of 1 is no back edge, but the one of 2 by 1 is.
    assert_eq!(sites(&graph, 2), [vec![2], vec![3, 5, 0]]);
    assert_eq!(sites(&graph, 3), [[5, 0, 1]]);
}

#[test]
fn an_indirect_call_is_observed_at_its_callee_as_well() {
    let graph = graph(3, &[(0, 0, 1), (0, 0, 2)]);
    let events: HashSet<_> = graph.chains(FunctionId(0)).unwrap().events().collect();
    assert_eq!(events.len(), 2);
    assert!(events.iter().all(|event| event.len() == 3));
}

#[test]
fn a_root_that_calls_nothing_is_a_chain() {
    let graph = graph(1, &[]);
    assert_eq!(sites(&graph, 0), [[0; 0]]);
    let events: Vec<_> = graph.chains(FunctionId(0)).unwrap().events().collect();
    assert!(UnitSets::new(graph.unit_count(), events).is_ok());
}

/// 2^100 chains, of which the first thousand are had at once.
#[test]
fn chains_explode_but_neither_their_count_nor_their_enumeration_does() {
    let calls = (0..100).flat_map(|at| [(at, 2 * at, at + 1), (at, 2 * at + 1, at + 1)]);
    let graph = graph(101, &calls.collect::<Vec<_>>());
    let chains = graph.chains(FunctionId(0)).unwrap();
    assert_eq!(chains.count(), PathCount::TooMany);
    assert_eq!(
        graph.chains(FunctionId(37)).unwrap().count(),
        PathCount::Exact(1 << 63)
    );
    assert_eq!(chains.iter().take(1000).collect::<HashSet<_>>().len(), 1000);
}

/// Deep recursion of the program is none of ours.
#[test]
fn a_chain_of_a_million_calls_needs_no_deep_stack() {
    let calls: Vec<_> = (0..1_000_000).map(|at| (at, at, at + 1)).collect();
    let graph = graph(1_000_001, &calls);
    assert_eq!(
        graph
            .chains(FunctionId(0))
            .unwrap()
            .iter()
            .next()
            .unwrap()
            .len(),
        1_000_000
    );
}

#[test]
fn what_is_no_call_graph_is_refused() {
    let new = |calls: &[(u32, u32, u32)]| CallGraph::new(2, calls.iter().copied().map(call));
    let missing = new(&[(0, 0, 2)]).unwrap_err();
    assert_eq!(
        missing.to_string(),
        "function 2 is named, but there are 2 functions"
    );
    let callers = [FunctionId(0), FunctionId(1)];
    let twice = ChainsError::TwoCallers { site: 7, callers };
    assert_eq!(new(&[(0, 7, 1), (1, 7, 0)]).unwrap_err(), twice);
    assert_eq!(new(&[(0, u32::MAX, 1)]).unwrap_err(), ChainsError::TooLarge);
    assert!(new(&[]).unwrap().chains(FunctionId(2)).is_err());
    assert!(new(&[]).unwrap().cluster(FunctionId(2)).is_err());
}

/// By definition: on the graph without its back edges, from the root to where no call is left.
fn by_definition(graph: &CallGraph, root: u32) -> Vec<Vec<u32>> {
    let mut back = HashSet::new();
    find_back(
        graph,
        FunctionId(root),
        &mut Vec::new(),
        &mut HashSet::new(),
        &mut back,
    );
    let mut found = Vec::new();
    extend(graph, FunctionId(root), &back, &mut Vec::new(), &mut found);
    found
}

fn find_back(
    graph: &CallGraph,
    function: FunctionId,
    open: &mut Vec<FunctionId>,
    met: &mut HashSet<FunctionId>,
    back: &mut HashSet<Call>,
) {
    met.insert(function);
    open.push(function);
    for &call in graph.calls(function) {
        if open.contains(&call.callee) {
            back.insert(call);
        } else if !met.contains(&call.callee) {
            find_back(graph, call.callee, open, met, back);
        }
    }
    open.pop();
}

fn extend(
    graph: &CallGraph,
    function: FunctionId,
    back: &HashSet<Call>,
    chain: &mut Vec<u32>,
    found: &mut Vec<Vec<u32>>,
) {
    let calls: Vec<_> = graph
        .calls(function)
        .iter()
        .filter(|call| !back.contains(call))
        .collect();
    if calls.is_empty() {
        found.push(chain.clone());
    }
    for call in calls {
        chain.push(call.site);
        extend(graph, call.callee, back, chain, found);
        chain.pop();
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 1000,
        failure_persistence: None,
        rng_seed: proptest::test_runner::RngSeed::Fixed(2006),
        ..ProptestConfig::default()
    })]

    #[test]
    fn chains_are_those_of_the_definition(calls in vec((0_u32..7, 0_u32..7), 0..14)) {
        let calls: Vec<_> = (0..).zip(calls).map(|(site, (from, to))| (from, site, to)).collect();
        let graph = graph(7, &calls);
        for root in 0..7 {
            let expected = by_definition(&graph, root);
            let chains = graph.chains(FunctionId(root)).unwrap();
            prop_assert_eq!(chains.count(), PathCount::Exact(expected.len() as u64));
            prop_assert_eq!(sites(&graph, root), expected);
            let cluster: HashSet<_> = graph.cluster(FunctionId(root)).unwrap().into_iter().collect();
            for event in chains.events() {
                prop_assert!(event.iter().all(|unit| cluster.contains(unit)));
            }
        }
    }
}
