//! Control dependence: Definition 3 of Ferrante, Ottenstein, Warren for every node and edge.

use super::naive::{dominance, edge_list, reach_all};
use super::{Outcome, ensure};
use crate::{ControlDependence, FlowGraph, Graph, NodeId, PostDominators, Reversed, WithExit};

/// The control dependence of `graph` against the definition.
pub fn control_dependence(graph: &FlowGraph) -> Outcome {
    let view = WithExit::of(graph);
    let post = dominance(&Reversed::from(&view, view.exit()));
    let reached = &reach_all(graph)[graph.entry().index()];
    let is = |a: NodeId, b: NodeId| post[a.index()][b.index()];
    let trees = PostDominators::of(graph);
    let found = ControlDependence::of(graph, &trees);
    let table = found.controllers(u32::MAX).ok_or("no table")?;
    let mut pairs = 0;
    for (edge, from, to) in edge_list(graph) {
        let ways = graph.out_edges(from).count() + usize::from(graph.is_exit(from));
        let mut listed: Vec<NodeId> = found.dependents(edge).collect();
        listed.sort_unstable();
        let depends = |&node: &NodeId| {
            let strictly = node != from && is(node, from);
            reached[from.index()] && ways > 1 && is(node, to) && !strictly
        };
        let expected: Vec<NodeId> = graph.nodes().filter(depends).collect();
        ensure!(
            listed == expected,
            "dependents of {edge:?}: {listed:?}, not {expected:?}"
        );
        for node in graph.nodes() {
            let holds = expected.contains(&node);
            ensure!(found.depends(node, edge) == holds, "{node:?} on {edge:?}");
            ensure!(
                table.of(node).contains(&edge) == holds,
                "table: {node:?} on {edge:?}"
            );
        }
        let decides = found.deciding_edges().any(|other| other == edge);
        ensure!(decides != expected.is_empty(), "{edge:?} decides");
        pairs += expected.len();
    }
    ensure!(
        found.size() == pairs as u64,
        "{} pairs, not {pairs}",
        found.size()
    );
    ensure!(
        pairs == 0 || found.controllers(pairs as u32 - 1).is_none(),
        "the limit is ignored"
    );
    let regions = table.regions();
    for a in graph.nodes() {
        ensure!(
            table.of(a).is_sorted(),
            "controllers of {a:?} are not sorted"
        );
        for b in graph.nodes() {
            let same = regions[a.index()] == regions[b.index()];
            ensure!(
                same == (table.of(a) == table.of(b)),
                "regions of {a:?} and {b:?}"
            );
        }
    }
    Ok(())
}
