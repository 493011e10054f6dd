//! Acyclic paths: all of them, written down.

use super::{Outcome, ensure};
use crate::{AcyclicPath, AcyclicPaths, DepthFirst, FlowGraph, Graph, NodeId, PathCount, PathEnd};

/// More paths than this are not written down.
const MOST: usize = 3000;

/// The count and the numbering of the acyclic paths of `graph` against their list.
pub fn acyclic_paths(graph: &FlowGraph) -> Outcome {
    let walk = DepthFirst::of(graph);
    let paths = AcyclicPaths::of(graph);
    let Some(expected) = list(graph, &walk) else {
        return Ok(());
    };
    let count = PathCount::Exact(expected.len() as u64);
    ensure!(
        paths.count() == count,
        "{} paths, listed {count}",
        paths.count()
    );
    let mut taken = vec![false; expected.len()];
    for path in &expected {
        let number = paths
            .number(path)
            .ok_or_else(|| format!("no number for {path:?}"))?;
        let slot = taken
            .get_mut(number as usize)
            .ok_or_else(|| format!("{path:?}: {number}"))?;
        ensure!(!std::mem::replace(slot, true), "{number} is taken twice");
        ensure!(
            paths.path(number).as_ref() == Some(path),
            "{number} is not {path:?}"
        );
    }
    ensure!(
        paths.path(expected.len() as u64).is_none(),
        "a path beyond the last"
    );
    for node in graph.nodes() {
        let starting = expected.iter().filter(|path| path.start == node).count();
        ensure!(
            paths.starts().any(|start| start == node) == (starting > 0),
            "{node:?} as a start"
        );
        ensure!(
            paths.start_value(node).is_some() == (starting > 0),
            "start value of {node:?}"
        );
        if starting > 0 {
            ensure!(
                paths.count_from(node) == PathCount::Exact(starting as u64),
                "from {node:?}"
            );
        } else if !walk.is_reachable(node) {
            ensure!(
                paths.count_from(node) == PathCount::Exact(0),
                "unreachable {node:?}"
            );
        }
        values(graph, &walk, &paths, node)?;
    }
    Ok(())
}

/// All acyclic paths as the module defines them, unless there are too many.
fn list(graph: &FlowGraph, walk: &DepthFirst) -> Option<Vec<AcyclicPath>> {
    let mut result = Vec::new();
    for &start in walk.preorder() {
        let retreats = |hop: crate::Hop| walk.is_ancestor(start, hop.node);
        if start != graph.entry() && !graph.in_edges(start).any(retreats) {
            continue;
        }
        let mut work = vec![(start, Vec::new())];
        while let Some((node, edges)) = work.pop() {
            let mut ends = Vec::from_iter(graph.is_exit(node).then_some(PathEnd::Exit(node)));
            for hop in graph.out_edges(node) {
                if walk.is_retreating(node, hop) {
                    ends.push(PathEnd::Retreat(hop.edge));
                } else {
                    work.push((hop.node, [&edges[..], &[hop.edge]].concat()));
                }
            }
            let path = |end| AcyclicPath {
                start,
                edges: edges.clone(),
                end,
            };
            result.extend(ends.into_iter().map(path));
            if result.len() + work.len() > MOST {
                return None;
            }
        }
    }
    Some(result)
}

/// The values at a node list its ways in order, and the intervals they begin do not overlap.
fn values(
    graph: &FlowGraph,
    walk: &DepthFirst,
    paths: &AcyclicPaths<'_, FlowGraph>,
    node: NodeId,
) -> Outcome {
    let mut sum = 0;
    let mut hops = graph.out_edges(node);
    for (hop, value) in paths.values(node) {
        ensure!(walk.is_reachable(node), "values at unreachable {node:?}");
        ensure!(hop == hops.next(), "order of the ways from {node:?}");
        ensure!(
            value == sum,
            "value {value} of {hop:?} from {node:?}, not {sum}"
        );
        sum += match hop {
            Some(hop) if !walk.is_retreating(node, hop) => {
                paths.count_from(hop.node).exact().ok_or("too many")?
            }
            _ => 1,
        };
    }
    ensure!(
        paths.count_from(node) == PathCount::Exact(sum),
        "values at {node:?} sum up"
    );
    Ok(())
}
