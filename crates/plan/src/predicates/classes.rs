//! Which nodes of a flow run exactly as often as each other: the same control dependences (Ferrante,
//! Ottenstein, Warren, TOPLAS 9(3), 1987, §3.2, whose entry region is told apart here by asking
//! whether a node post-dominates the entry, since otherwise the head of a `while` loop, which runs
//! once more, would be in one class with its body).

use std::collections::HashMap;

use tomo_graph::{ControlDependence, Dominators, Graph, NodeId, PostDominators, WithExit};

use crate::coverage::Flow;

/// The class of each reachable node; two of one class run equally often in every whole run.
/// Nothing if the relation has more than `limit` pairs.
pub(super) fn equally_often(flow: &Flow<'_>, limit: u32) -> Option<Vec<Option<u32>>> {
    let post = PostDominators::with_exit(&WithExit::of(flow));
    let controllers = ControlDependence::of(flow, &post).controllers(limit)?;
    let dominators = Dominators::of(flow);
    let mut known = HashMap::new();
    let mut class = |node: NodeId| {
        dominators.is_reachable(node).then(|| {
            let next = known.len() as u32;
            let bound = post.post_dominates(node, flow.entry());
            *known.entry((bound, controllers.of(node))).or_insert(next)
        })
    };
    Some(flow.nodes().map(&mut class).collect())
}
