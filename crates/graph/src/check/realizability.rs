//! Diamonds, cycles and witnesses: against all sets of edges, and against all executions.

use std::collections::HashMap;

use super::naive::{all_cycles_and_diamonds, edge_list, reach_without};
use super::{Entropy, Outcome, ensure};
use crate::{
    Ambiguity, Budget, Diamond, EdgeId, FirstWitness, FlowGraph, Graph, Hop, NodeId, WithExit,
    ambiguity, conflict, diamonds, directed_cycles, witness_set,
};

/// Graphs with more edges than this are not taken apart into all sets of edges.
const MOST_EDGES: usize = 12;
const PLENTY: Budget = Budget {
    items: 100_000,
    steps: 10_000_000,
};

/// The edges that can run.
fn live_edges<G: Graph>(graph: &G) -> Vec<(EdgeId, NodeId, NodeId)> {
    let reached = reach_without(graph, graph.entry(), |_| false);
    edge_list(graph)
        .into_iter()
        .filter(|edge| reached[edge.1.index()])
        .collect()
}

/// The lists of directed cycles and of diamonds against all sets of edges that are such.
pub fn enumerations(graph: &FlowGraph) -> Outcome {
    let edges = live_edges(graph);
    if edges.len() > MOST_EDGES {
        return Ok(());
    }
    let [cycles, pairs] = all_cycles_and_diamonds(&edges);
    let found = directed_cycles(graph, PLENTY);
    ensure!(found.complete, "too many cycles");
    for cycle in &found.found {
        ensure!(leads_back(graph, cycle), "{cycle:?} is no directed cycle");
    }
    same_sets(cycles, found.found)?;
    let found = diamonds(graph, PLENTY);
    ensure!(found.complete, "too many diamonds");
    for diamond in &found.found {
        ensure!(is_diamond(graph, diamond), "{diamond:?} is no diamond");
    }
    let few = diamonds(
        graph,
        Budget {
            items: pairs.len().saturating_sub(1),
            ..PLENTY
        },
    );
    ensure!(few.complete == pairs.is_empty(), "a limit of one less");
    let sides = |diamond: Diamond| [diamond.left, diamond.right].concat();
    same_sets(pairs, found.found.into_iter().map(sides).collect())
}

fn same_sets(mut expected: Vec<Vec<EdgeId>>, mut found: Vec<Vec<EdgeId>>) -> Outcome {
    for set in &mut found {
        set.sort_unstable();
    }
    expected.sort_unstable();
    found.sort_unstable();
    ensure!(found == expected, "{found:?}, not {expected:?}");
    Ok(())
}

/// The end of the path of `edges` from `start`, if it is one.
fn follow<G: Graph>(graph: &G, start: NodeId, edges: &[EdgeId]) -> Option<NodeId> {
    edges.iter().try_fold(start, |node, &edge| {
        graph
            .out_edges(node)
            .find(|hop| hop.edge == edge)
            .map(|hop| hop.node)
    })
}

fn leads_back<G: Graph>(graph: &G, cycle: &[EdgeId]) -> bool {
    !cycle.is_empty()
        && graph
            .nodes()
            .any(|start| follow(graph, start, cycle) == Some(start))
}

/// Two paths from fork to join whose first edges and whose last edges differ, and no node twice.
fn is_diamond<G: Graph>(graph: &G, diamond: &Diamond) -> bool {
    let Diamond {
        fork,
        join,
        left,
        right,
    } = diamond;
    let inner = |side: &[EdgeId]| -> Option<Vec<NodeId>> {
        (follow(graph, *fork, side)? == *join).then_some(())?;
        (1..side.len())
            .map(|length| follow(graph, *fork, &side[..length]))
            .collect()
    };
    let (Some(a), Some(b)) = (inner(left), inner(right)) else {
        return false;
    };
    let mut nodes = [a, b, vec![*fork, *join]].concat();
    let count = nodes.len();
    nodes.sort_unstable();
    nodes.dedup();
    nodes.len() == count && left.first() != right.first() && left.last() != right.last()
}

/// Both conditions of DPT §3.2, with witnesses of choice, against each other and against the lists.
pub fn realizability(graph: &FlowGraph, entropy: &mut Entropy<'_>) -> Outcome {
    let view = WithExit::of(graph);
    let witness = choose_witnesses(&view, entropy);
    let is_witness = |edge: EdgeId| witness[edge.index()];
    let (left, clash) = (ambiguity(&view, is_witness), conflict(&view, is_witness));
    ensure!(left.is_some() == clash.is_some(), "{left:?} but {clash:?}");
    let free: Vec<_> = live_edges(&view)
        .into_iter()
        .filter(|edge| !is_witness(edge.0))
        .collect();
    if free.len() <= MOST_EDGES {
        let broken = all_cycles_and_diamonds(&free)
            .iter()
            .all(|list| list.is_empty());
        ensure!(
            broken == left.is_none(),
            "all broken: {broken}, but {left:?}"
        );
    }
    match &left {
        Some(Ambiguity::Cycle(cycle)) => {
            ensure!(leads_back(&view, cycle), "{cycle:?} is no directed cycle");
            ensure!(
                !cycle.iter().any(|&edge| is_witness(edge)),
                "{cycle:?} has a witness"
            );
        }
        Some(Ambiguity::Diamond(diamond)) => {
            ensure!(is_diamond(&view, diamond), "{diamond:?} is no diamond");
            let mut edges = diamond.left.iter().chain(&diamond.right);
            ensure!(
                !edges.any(|&edge| is_witness(edge)),
                "{diamond:?} has a witness"
            );
        }
        None => {}
    }
    if let Some(clash) = clash {
        let hop = |edge: EdgeId| view.out_edges(clash.node).find(|hop| hop.edge == edge);
        let (Some(a), Some(b)) = (hop(clash.edges.0), hop(clash.edges.1)) else {
            return Err(format!("{clash:?} names edges that are not there"));
        };
        ensure!(a != b, "{clash:?} is one edge");
        for hop in [a, b] {
            let set = witness_set(&view, is_witness, hop);
            ensure!(set.contains(&clash.shared), "{clash:?}: {set:?}");
            ensure!(
                set == set_by_definition(&view, &witness, hop),
                "witness set of {hop:?}"
            );
        }
    }
    Ok(())
}

fn choose_witnesses<G: Graph>(graph: &G, entropy: &mut Entropy<'_>) -> Vec<bool> {
    let often = 1 + entropy.below(4);
    (0..graph.edge_count())
        .map(|_| entropy.below(4) < often)
        .collect()
}

/// {the edge, if a witness} or all witnesses and the end that paths without witness lead to.
fn set_by_definition<G: Graph>(graph: &G, witness: &[bool], hop: Hop) -> Vec<FirstWitness> {
    if witness[hop.edge.index()] {
        return vec![FirstWitness::Edge(hop.edge)];
    }
    let rest = crate::Without::edges(graph, |edge: EdgeId| witness[edge.index()]);
    let reached = reach_without(&rest, hop.node, |_| false);
    let leads =
        |edge: &(EdgeId, NodeId, NodeId)| witness[edge.0.index()] && reached[edge.1.index()];
    let edges = edge_list(graph)
        .into_iter()
        .filter(leads)
        .map(|edge| FirstWitness::Edge(edge.0));
    let ends = graph
        .nodes()
        .any(|node| reached[node.index()] && graph.is_exit(node));
    let mut set: Vec<_> = edges.chain(ends.then_some(FirstWitness::End)).collect();
    set.sort_unstable();
    set
}

/// What realizable means: no two executions leave the same record. All executions up to a length
/// are run, long enough that each ambiguity shows: to it, twice through it, and to the end.
pub fn executions(graph: &FlowGraph, entropy: &mut Entropy<'_>) -> Outcome {
    const MOST: usize = 20_000;
    let view = WithExit::of(graph);
    let witness = choose_witnesses(&view, entropy);
    let realizable = ambiguity(&view, |edge: EdgeId| witness[edge.index()]).is_none();
    let mut records: HashMap<Vec<EdgeId>, Vec<EdgeId>> = HashMap::new();
    let mut work: Vec<(NodeId, Vec<EdgeId>)> = vec![(view.entry(), Vec::new())];
    let (mut started, mut cut) = (0, false);
    while let Some((node, path)) = work.pop() {
        if view.is_exit(node) {
            let recorded = |edge: &EdgeId| witness[edge.index()];
            let record = path.iter().copied().filter(recorded).collect();
            if let Some(other) = records.insert(record, path.clone()) {
                ensure!(!realizable, "{path:?} and {other:?} leave the same record");
                return Ok(());
            }
        }
        if path.len() >= 3 * view.node_count() {
            continue;
        }
        started += 1;
        cut |= started > MOST;
        if !cut {
            let next = view.out_edges(node);
            work.extend(next.map(|hop| (hop.node, [&path[..], &[hop.edge]].concat())));
        }
    }
    ensure!(
        realizable || cut,
        "not realizable, but every record is of one execution"
    );
    Ok(())
}
