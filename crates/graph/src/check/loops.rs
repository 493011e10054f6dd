//! Loops: by taking strongly connected regions apart, by the definition of natural loops, and
//! reducibility by Hecht and Ullman's transformations.

use super::naive::{dominance, edge_list, reach_without};
use super::{Outcome, ensure};
use crate::{DepthFirst, Dominators, FlowGraph, Graph, LoopId, LoopKind, Loops, NodeId};

/// A loop by definition: its header, its members ascending, and the header of the loop around it.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Expected {
    header: NodeId,
    members: Vec<NodeId>,
    outer: Option<NodeId>,
}

/// The loops of `graph` against the definitions.
pub fn loops(graph: &FlowGraph) -> Outcome {
    let walk = DepthFirst::of(graph);
    let doms = Dominators::of(graph);
    let found = Loops::of(graph, &doms);
    let mut listed: Vec<Expected> = found.ids().map(|id| describe(&found, id)).collect();
    let mut expected = by_definition(graph, &walk);
    listed.sort_unstable();
    expected.sort_unstable();
    ensure!(
        listed == expected,
        "loops are {expected:?}, found {listed:?}"
    );
    let dominates = dominance(graph);
    for id in found.ids() {
        each(graph, &doms, &dominates, &found, id)?;
    }
    for node in graph.nodes() {
        let around = expected
            .iter()
            .filter(|each| each.members.contains(&node))
            .count();
        ensure!(found.depth_of(node) as usize == around, "depth of {node:?}");
        ensure!(
            found.around(node).count() == around,
            "loops around {node:?}"
        );
        let heads = expected.iter().any(|each| each.header == node);
        ensure!(
            found.headed_by(node).is_some() == heads,
            "{node:?} as header"
        );
        for other in graph.nodes() {
            let hold =
                |each: &&Expected| each.members.contains(&node) && each.members.contains(&other);
            let innermost = expected
                .iter()
                .filter(hold)
                .min_by_key(|each| each.members.len());
            let both = found.around_both(node, other).map(|id| found.header(id));
            ensure!(
                both == innermost.map(|each| each.header),
                "around {node:?} and {other:?}: {both:?}"
            );
        }
    }
    let reducible = is_reducible(graph, &walk);
    ensure!(found.is_reducible() == reducible, "reducible: {reducible}");
    Ok(())
}

fn describe(found: &Loops, id: LoopId) -> Expected {
    let mut members = found.members(id).to_vec();
    members.sort_unstable();
    let outer = found.parent(id).map(|outer| found.header(outer));
    Expected {
        header: found.header(id),
        members,
        outer,
    }
}

/// Cyclic strongly connected regions of the reachable nodes; then of each without its header.
fn by_definition(graph: &FlowGraph, walk: &DepthFirst) -> Vec<Expected> {
    let mut result = Vec::new();
    let mut work = vec![(walk.preorder().to_vec(), None)];
    while let Some((nodes, outer)) = work.pop() {
        let inside = |node: NodeId| nodes.contains(&node);
        let reach = |from| reach_without(graph, from, |node| !inside(node));
        let reaches: Vec<(NodeId, Vec<bool>)> =
            nodes.iter().map(|&node| (node, reach(node))).collect();
        // In preorder, so the first node of each region comes first.
        let mut done: Vec<NodeId> = Vec::new();
        for (header, ahead) in &reaches {
            let mutual = |node: NodeId, to: &[bool]| ahead[node.index()] && to[header.index()];
            let back = |each: &&(NodeId, Vec<bool>)| mutual(each.0, &each.1);
            let region: Vec<NodeId> = reaches.iter().filter(back).map(|each| each.0).collect();
            let cyclic = region.len() > 1 || graph.successors(*header).any(|to| to == *header);
            if done.contains(header) || !cyclic {
                continue;
            }
            done.extend(&region);
            let rest = region
                .iter()
                .copied()
                .filter(|node| node != header)
                .collect();
            work.push((rest, Some(*header)));
            let mut members = region;
            members.sort_unstable();
            result.push(Expected {
                header: *header,
                members,
                outer,
            });
        }
    }
    result
}

fn each(
    graph: &FlowGraph,
    doms: &Dominators,
    dominates: &[Vec<bool>],
    found: &Loops,
    id: LoopId,
) -> Outcome {
    let (header, members) = (found.header(id), found.members(id));
    let is = |a: NodeId, b: NodeId| dominates[a.index()][b.index()];
    let natural = members.iter().all(|&node| is(header, node));
    ensure!(
        (found.kind(id) == LoopKind::Natural) == natural,
        "{id:?} natural: {natural}"
    );
    let enters = |&to: &NodeId| {
        let outside = |from: NodeId| is(from, from) && !members.contains(&from);
        to == graph.entry() || graph.predecessors(to).any(outside)
    };
    let entries: Vec<NodeId> = members.iter().copied().filter(enters).collect();
    ensure!(
        found.entries(graph, doms, id) == entries,
        "entries of {id:?}: {entries:?}"
    );
    ensure!(
        (entries == [header]) == natural,
        "{id:?} is entered at {entries:?}"
    );
    ensure!(
        found.parent(id).is_none_or(|outer| outer < id),
        "{id:?} is before its parent"
    );
    for node in graph.nodes() {
        ensure!(
            found.contains(id, node) == members.contains(&node),
            "{node:?} in {id:?}"
        );
        if natural {
            let body = node == header || in_natural_loop(graph, &is, header, node);
            ensure!(
                body == members.contains(&node),
                "{node:?} in the natural loop of {header:?}"
            );
        }
    }
    Ok(())
}

/// Whether `node` reaches a back edge to `header` without passing it.
fn in_natural_loop(
    graph: &FlowGraph,
    is: &impl Fn(NodeId, NodeId) -> bool,
    header: NodeId,
    node: NodeId,
) -> bool {
    let ahead = reach_without(graph, node, |other| other == header);
    let mut latches = graph.predecessors(header).filter(|&from| is(header, from));
    is(node, node) && latches.any(|latch| ahead[latch.index()])
}

/// T1: drop a self loop. T2: merge a node into its only predecessor. Reducible if one node is left.
fn is_reducible(graph: &FlowGraph, walk: &DepthFirst) -> bool {
    let reachable = edge_list(graph)
        .into_iter()
        .filter(|edge| walk.is_reachable(edge.1));
    let mut edges: Vec<(NodeId, NodeId)> = reachable.map(|(_, from, to)| (from, to)).collect();
    let mut nodes = walk.preorder().to_vec();
    loop {
        edges.retain(|(from, to)| from != to);
        edges.sort_unstable();
        edges.dedup();
        let only = |&node: &NodeId| {
            let mut into = edges.iter().filter(|edge| edge.1 == node);
            let from = into.next()?.0;
            (into.next().is_none() && node != graph.entry()).then_some((node, from))
        };
        let Some((node, into)) = nodes.iter().find_map(only) else {
            return nodes.len() == 1;
        };
        nodes.retain(|&other| other != node);
        edges.retain(|edge| edge.1 != node);
        for edge in edges.iter_mut().filter(|edge| edge.0 == node) {
            edge.0 = into;
        }
    }
}
