//! Depth-first walks and strongly connected components.

use super::naive::{edge_list, reach_all};
use super::{Outcome, ensure};
use crate::{Components, DepthFirst, EdgeClass, FlowGraph, Graph, NodeId};

/// The walk reaches what is reachable, its tree is a tree of edges numbered as it says, and no edge
/// leads from a finished subtree to a later one: that is what makes a tree depth-first.
pub fn depth_first(graph: &FlowGraph) -> Outcome {
    let walk = DepthFirst::of(graph);
    let reach = &reach_all(graph)[graph.entry().index()];
    for node in graph.nodes() {
        ensure!(
            walk.is_reachable(node) == reach[node.index()],
            "reachability of {node:?}"
        );
        let (pre, post) = (walk.pre_number(node), walk.post_number(node));
        ensure!(
            pre.is_some() == reach[node.index()] && post.is_some() == pre.is_some(),
            "{node:?}"
        );
        let found =
            |order: &[NodeId], at: Option<u32>| at.is_none_or(|at| order[at as usize] == node);
        ensure!(
            found(walk.preorder(), pre) && found(walk.postorder(), post),
            "number of {node:?}"
        );
        parent(graph, &walk, node)?;
    }
    let count = reach.iter().filter(|&&reached| reached).count();
    ensure!(
        walk.preorder().len() == count && walk.postorder().len() == count,
        "orders are longer"
    );
    for (edge, from, to) in edge_list(graph) {
        let hop = crate::Hop { edge, node: to };
        let up = ancestors(&walk, from).contains(&to);
        let down = ancestors(&walk, to).contains(&from);
        let tree = walk.parent(to).is_some_and(|parent| parent.edge == edge);
        let expected = match (walk.is_reachable(from), tree, up, down) {
            (false, ..) => None,
            (_, true, ..) => Some(EdgeClass::Tree),
            (.., true, _) => Some(EdgeClass::Retreating),
            (.., true) => Some(EdgeClass::Forward),
            _ => Some(EdgeClass::Cross),
        };
        ensure!(
            walk.class(from, hop) == expected,
            "{edge:?} is not {expected:?}"
        );
        let retreats = expected == Some(EdgeClass::Retreating);
        ensure!(
            walk.is_retreating(from, hop) == retreats,
            "{edge:?} retreating"
        );
        if expected == Some(EdgeClass::Cross) {
            ensure!(
                walk.pre_number(to) < walk.pre_number(from),
                "{edge:?} leads to a later subtree"
            );
        }
        if expected.is_some_and(|class| class != EdgeClass::Retreating) {
            ensure!(
                walk.post_number(to) < walk.post_number(from),
                "{edge:?} against the postorder"
            );
        }
    }
    Ok(())
}

fn parent(graph: &FlowGraph, walk: &DepthFirst, node: NodeId) -> Outcome {
    let Some(up) = walk.parent(node) else {
        let root = node == graph.entry();
        ensure!(root || !walk.is_reachable(node), "{node:?} has no parent");
        return Ok(());
    };
    ensure!(
        graph.source(up.edge) == up.node && graph.target(up.edge) == node,
        "parent of {node:?}"
    );
    ensure!(
        walk.pre_number(up.node) < walk.pre_number(node),
        "{node:?} is before its parent"
    );
    ensure!(
        walk.post_number(up.node) > walk.post_number(node),
        "{node:?} ends after its parent"
    );
    Ok(())
}

/// The node and all above it in the tree.
fn ancestors(walk: &DepthFirst, node: NodeId) -> Vec<NodeId> {
    let start = walk.is_reachable(node).then_some(node);
    std::iter::successors(start, |&node| walk.parent(node).map(|hop| hop.node)).collect()
}

/// Two nodes share a component exactly if each reaches the other, and edges ascend.
pub fn components(graph: &FlowGraph) -> Outcome {
    let (found, walk, reach) = (
        Components::of(graph),
        DepthFirst::of(graph),
        reach_all(graph),
    );
    for a in graph.nodes() {
        for b in graph.nodes() {
            let mutual = reach[a.index()][b.index()] && reach[b.index()][a.index()];
            ensure!(
                (found.of_node(a) == found.of_node(b)) == mutual,
                "{a:?} and {b:?}"
            );
        }
    }
    for (edge, from, to) in edge_list(graph) {
        ensure!(
            found.of_node(from) <= found.of_node(to),
            "{edge:?} descends"
        );
    }
    let listed: usize = found.ids().map(|id| found.members(id).len()).sum();
    ensure!(listed == graph.node_count(), "{listed} members");
    for id in found.ids() {
        let members = found.members(id);
        ensure!(
            members.iter().all(|&node| found.of_node(node) == id),
            "members of {id:?}"
        );
        let met_first = members
            .iter()
            .copied()
            .min_by_key(|&node| walk.pre_number(node));
        let reachable = walk.is_reachable(members[0]);
        ensure!(
            !reachable || met_first == Some(found.first(id)),
            "first of {id:?}"
        );
        let cyclic = edge_list(graph)
            .iter()
            .any(|&(_, from, to)| members.contains(&from) && members.contains(&to));
        ensure!(found.is_cyclic(id) == cyclic, "{id:?} cyclic");
    }
    Ok(())
}
