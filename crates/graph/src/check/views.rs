//! Views: both directions agree, ids are kept, and everything reaches the virtual exit.

use super::naive::{edge_list, reach_all};
use super::{Outcome, ensure};
use crate::{DepthFirst, EdgeId, ExitEdge, FlowGraph, Graph, NodeId, Reversed, WithExit, Without};

/// The graph itself and each view of it is consistent and is what it claims to be.
pub fn views(graph: &FlowGraph) -> Outcome {
    both_ways(graph)?;
    let listed = edge_list(graph);
    let stated = graph.edges();
    ensure!(listed.len() == stated.len(), "edges are lost");
    for &(edge, from, to) in &listed {
        ensure!(stated[edge.index()] == (from, to), "ends of {edge:?}");
    }
    let view = WithExit::of(graph);
    both_ways(&view)?;
    with_exit(graph, &view)?;
    let reversed = Reversed::from(&view, view.exit());
    both_ways(&reversed)?;
    let mut turned: Vec<_> = edge_list(&reversed)
        .iter()
        .map(|&(e, from, to)| (e, to, from))
        .collect();
    let mut straight = edge_list(&view);
    turned.sort_unstable();
    straight.sort_unstable();
    ensure!(turned == straight, "the reversed view has other edges");
    let odd = |edge: EdgeId| edge.0 % 2 == 1;
    let without = Without::edges(graph, odd);
    both_ways(&without)?;
    let kept: Vec<_> = listed.into_iter().filter(|edge| !odd(edge.0)).collect();
    ensure!(
        edge_list(&without) == kept,
        "the filtered view has other edges"
    );
    Ok(())
}

/// Every edge out of a node comes into its target, and the other way round; ids are distinct.
fn both_ways<G: Graph>(graph: &G) -> Outcome {
    let mut out = edge_list(graph);
    let into = |to| graph.in_edges(to).map(move |hop| (hop.edge, hop.node, to));
    let mut into: Vec<_> = graph.nodes().flat_map(into).collect();
    out.sort_unstable();
    into.sort_unstable();
    ensure!(out == into, "successors and predecessors differ");
    ensure!(
        out.windows(2).all(|pair| pair[0].0 != pair[1].0),
        "an edge id occurs twice"
    );
    ensure!(
        out.iter().all(|edge| edge.0.index() < graph.edge_count()),
        "an edge id is too large"
    );
    for node in graph.nodes() {
        let dead_end = graph.out_edges(node).next().is_none();
        ensure!(
            !dead_end || graph.is_exit(node),
            "{node:?} ends but is no exit"
        );
    }
    Ok(())
}

fn with_exit(graph: &FlowGraph, view: &WithExit<'_, FlowGraph>) -> Outcome {
    let (reach, walk) = (reach_all(graph), DepthFirst::of(graph));
    let whole = reach_all(view);
    let exits = |node: NodeId| {
        graph
            .nodes()
            .any(|to| reach[node.index()][to.index()] && graph.is_exit(to))
    };
    for node in graph.nodes() {
        ensure!(
            whole[node.index()][view.exit().index()],
            "{node:?} does not reach the virtual exit"
        );
        let origin = view.leave_edge(node).map(|edge| view.origin(edge));
        let expected = if graph.is_exit(node) {
            Some(ExitEdge::Leave(node))
        } else {
            view.endless()
                .contains(&node)
                .then_some(ExitEdge::Endless(node))
        };
        ensure!(
            origin == expected,
            "{node:?} leaves by {origin:?}, not {expected:?}"
        );
        // A terminal region without exit: whatever it reaches leads back. One member stands for it.
        let region: Vec<NodeId> = graph
            .nodes()
            .filter(|to| reach[node.index()][to.index()])
            .collect();
        let closed = region.iter().all(|to| reach[to.index()][node.index()]);
        if closed && !exits(node) {
            let chosen: Vec<_> = region
                .iter()
                .filter(|to| view.endless().contains(to))
                .collect();
            ensure!(
                chosen.len() == 1,
                "the endless region of {node:?} has {chosen:?}"
            );
            let first = region.iter().min_by_key(|&&to| walk.pre_number(to));
            ensure!(
                !walk.is_reachable(node) || first == Some(chosen[0]),
                "{chosen:?} is not first"
            );
        } else {
            ensure!(!view.endless().contains(&node), "{node:?} is not endless");
        }
    }
    Ok(())
}
