//! The definitions, executed as they stand: reachability with something left out, cycles as sets of
//! edges, and the conditions of DPT §3.2 as printed.

use crate::{EdgeId, FlowGraph, Graph, NodeId};

/// The edges of any graph, with their ends, by node.
pub(super) fn edge_list<G: Graph>(graph: &G) -> Vec<(EdgeId, NodeId, NodeId)> {
    let out = |from| {
        graph
            .out_edges(from)
            .map(move |hop| (hop.edge, from, hop.node))
    };
    graph.nodes().flat_map(out).collect()
}

/// Per node, whether a path leads to it from `start` that does not touch `without`.
pub(super) fn reach_without<G: Graph>(
    graph: &G,
    start: NodeId,
    without: impl Fn(NodeId) -> bool,
) -> Vec<bool> {
    let mut reached = vec![false; graph.node_count()];
    reached[start.index()] = !without(start);
    let edges = edge_list(graph);
    loop {
        let mut grew = false;
        for &(_, from, to) in &edges {
            if reached[from.index()] && !reached[to.index()] && !without(to) {
                reached[to.index()] = true;
                grew = true;
            }
        }
        if !grew {
            return reached;
        }
    }
}

/// Per node, what it reaches, itself included.
pub(super) fn reach_all<G: Graph>(graph: &G) -> Vec<Vec<bool>> {
    graph
        .nodes()
        .map(|node| reach_without(graph, node, |_| false))
        .collect()
}

/// Per pair, whether all paths from the entry to `b` (there are some) touch `a`.
pub(super) fn dominance<G: Graph>(graph: &G) -> Vec<Vec<bool>> {
    let reached = reach_without(graph, graph.entry(), |_| false);
    graph
        .nodes()
        .map(|a| {
            let around = reach_without(graph, graph.entry(), |node| node == a);
            let passed = |b: NodeId| reached[b.index()] && !around[b.index()];
            graph
                .nodes()
                .map(|b| reached[a.index()] && passed(b))
                .collect()
        })
        .collect()
}

/// The simple undirected cycles among `edges` with no fork (directed cycles) and with just one
/// (diamonds), as ascending sets of edges: connected, and two edge ends at each node touched.
#[must_use]
pub fn all_cycles_and_diamonds(edges: &[(EdgeId, NodeId, NodeId)]) -> [Vec<Vec<EdgeId>>; 2] {
    let mut found = [Vec::new(), Vec::new()];
    for bits in 1u32..1 << edges.len() {
        let chosen: Vec<_> = (0..edges.len())
            .filter(|at| bits >> at & 1 == 1)
            .map(|at| edges[at])
            .collect();
        if let Some(forks) = simple_cycle_forks(&chosen)
            && let Some(list) = found.get_mut(forks)
        {
            let mut ids: Vec<EdgeId> = chosen.iter().map(|edge| edge.0).collect();
            ids.sort_unstable();
            list.push(ids);
        }
    }
    found
}

/// How many forks a simple undirected cycle has; `None` if the edges are none.
fn simple_cycle_forks(edges: &[(EdgeId, NodeId, NodeId)]) -> Option<usize> {
    let mut nodes: Vec<NodeId> = edges.iter().flat_map(|&(_, from, to)| [from, to]).collect();
    nodes.sort_unstable();
    nodes.dedup();
    let out = |node| edges.iter().filter(|edge| edge.1 == node).count();
    let into = |node| edges.iter().filter(|edge| edge.2 == node).count();
    if nodes.iter().any(|&node| out(node) + into(node) != 2) {
        return None;
    }
    let mut joined = vec![edges[0].1];
    let mut at = 0;
    while at < joined.len() {
        for &(_, from, to) in edges {
            for (near, far) in [(from, to), (to, from)] {
                if near == joined[at] && !joined.contains(&far) {
                    joined.push(far);
                }
            }
        }
        at += 1;
    }
    (joined.len() == nodes.len()).then(|| nodes.iter().filter(|&&node| out(node) == 2).count())
}

/// The two conditions of DPT §3.2 on the graph as it is, without a virtual exit, exits being the
/// nodes without successors: (CFG condition, path condition). Witnesses by edge.
#[must_use]
pub fn printed_conditions(graph: &FlowGraph, witness: &[bool]) -> (bool, bool) {
    let free: Vec<_> = edge_list(graph)
        .into_iter()
        .filter(|edge| !witness[edge.0.index()])
        .collect();
    let left = all_cycles_and_diamonds(&free)
        .iter()
        .any(|list| !list.is_empty());
    let rest = FlowGraph::new(
        graph.node_count(),
        graph.entry(),
        free.iter().map(|&(_, from, to)| (from, to)),
    );
    let Ok(rest) = rest else {
        return (!left, false);
    };
    let reach = reach_all(&rest);
    let set = |edge: EdgeId| -> Vec<Option<EdgeId>> {
        if witness[edge.index()] {
            return vec![Some(edge)];
        }
        let from_here = &reach[graph.target(edge).index()];
        let recorded = edge_list(graph).into_iter().filter_map(|(next, from, _)| {
            (witness[next.index()] && from_here[from.index()]).then_some(Some(next))
        });
        let ends = graph
            .nodes()
            .any(|node| from_here[node.index()] && graph.is_exit(node));
        recorded.chain(ends.then_some(None)).collect()
    };
    let disjoint = |(a, from, _): &(EdgeId, NodeId, NodeId), (b, other, _): &(EdgeId, _, _)| {
        a == b || from != other || set(*a).iter().all(|next| !set(*b).contains(next))
    };
    let edges = edge_list(graph);
    (
        !left,
        edges.iter().all(|a| edges.iter().all(|b| disjoint(a, b))),
    )
}
