//! Dominators and post-dominators: by leaving out a node and asking what is still reached.

use super::naive::dominance;
use super::{Outcome, ensure};
use crate::{DepthFirst, Dominators, FlowGraph, Graph, NodeId, PostDominators, Reversed, WithExit};

/// The dominator tree of `graph` against the definition.
pub fn dominators(graph: &FlowGraph) -> Outcome {
    tree(graph, &Dominators::of(graph))
}

fn tree<G: Graph>(graph: &G, found: &Dominators) -> Outcome {
    let expected = dominance(graph);
    let is = |a: NodeId, b: NodeId| expected[a.index()][b.index()];
    ensure!(found.root() == graph.entry(), "root");
    for b in graph.nodes() {
        ensure!(found.is_reachable(b) == is(b, b), "reachability of {b:?}");
        let strict: Vec<NodeId> = graph.nodes().filter(|&a| a != b && is(a, b)).collect();
        for a in graph.nodes() {
            ensure!(
                found.dominates(a, b) == is(a, b),
                "{a:?} dominates {b:?}: {}",
                is(a, b)
            );
            let strictly = strict.contains(&a);
            ensure!(
                found.strictly_dominates(a, b) == strictly,
                "{a:?} strictly dominates {b:?}"
            );
            let common = graph.nodes().filter(|&c| is(c, a) && is(c, b));
            let lowest = common.max_by_key(|&c| found.depth(c));
            ensure!(
                found.common(a, b) == lowest,
                "common dominator of {a:?} and {b:?}"
            );
        }
        let closest = strict
            .iter()
            .copied()
            .find(|&a| strict.iter().all(|&other| is(other, a)));
        ensure!(
            found.immediate(b) == closest,
            "immediate dominator of {b:?}: {closest:?}"
        );
        let depth = is(b, b).then_some(strict.len() as u32);
        ensure!(found.depth(b) == depth, "depth of {b:?}");
        let chain = found.dominators_of(b).count();
        ensure!(
            chain == depth.map_or(0, |depth| depth as usize + 1),
            "chain of {b:?}"
        );
        below(graph, found, b, &is)?;
    }
    Ok(())
}

fn below<G: Graph>(
    graph: &G,
    found: &Dominators,
    node: NodeId,
    is: &impl Fn(NodeId, NodeId) -> bool,
) -> Outcome {
    let sorted = |mut list: Vec<NodeId>| {
        list.sort_unstable();
        list
    };
    let expected: Vec<NodeId> = graph.nodes().filter(|&other| is(node, other)).collect();
    let listed = found.dominated_by(node);
    ensure!(
        sorted(listed.to_vec()) == expected,
        "what {node:?} dominates"
    );
    ensure!(
        listed.first().is_none_or(|&first| first == node),
        "{node:?} is not first"
    );
    let children: Vec<_> = graph
        .nodes()
        .filter(|&c| found.immediate(c) == Some(node))
        .collect();
    ensure!(
        sorted(found.children(node).collect()) == children,
        "children of {node:?}"
    );
    Ok(())
}

/// The post-dominator tree of `graph` against the definition, over the graph with a virtual exit
/// (which the check of views holds against its own definition).
pub fn post_dominators(graph: &FlowGraph) -> Outcome {
    let view = WithExit::of(graph);
    let found = PostDominators::of(graph);
    let reversed = Reversed::from(&view, view.exit());
    tree(&reversed, found.tree())?;
    ensure!(found.endless() == view.endless(), "endless nodes");
    ensure!(found.virtual_exit() == view.exit(), "virtual exit");
    let expected = dominance(&reversed);
    for b in graph.nodes() {
        ensure!(
            found.immediate(b) != Some(view.exit()),
            "the virtual exit shows"
        );
        for a in graph.nodes() {
            let is = expected[a.index()][b.index()];
            ensure!(
                found.post_dominates(a, b) == is,
                "{a:?} post-dominates {b:?}: {is}"
            );
            let strictly = found.strictly_post_dominates(a, b);
            ensure!(
                strictly == (is && a != b),
                "{a:?} strictly post-dominates {b:?}"
            );
        }
    }
    unreachable_do_not_matter(graph, &found)
}

/// Post-dominance between reachable nodes is the same in the graph without the others' edges.
fn unreachable_do_not_matter(graph: &FlowGraph, found: &PostDominators) -> Outcome {
    let walk = DepthFirst::of(graph);
    let edges = graph
        .edges()
        .iter()
        .copied()
        .filter(|edge| walk.is_reachable(edge.0));
    let exits = graph.nodes().filter(|&node| graph.is_exit(node));
    let pruned = FlowGraph::new(graph.node_count(), graph.entry(), edges)
        .and_then(|pruned| pruned.with_exits(exits))
        .map_err(|error| error.to_string())?;
    let pruned = PostDominators::of(&pruned);
    for &node in walk.preorder() {
        let (whole, part) = (found.immediate(node), pruned.immediate(node));
        ensure!(
            whole == part,
            "{node:?}: {whole:?}, without unreachable nodes {part:?}"
        );
    }
    Ok(())
}
