//! DPT Figure 11 (node witnesses), as printed, for studies only: **on about a quarter of small
//! random graphs what it yields is not realizable**, and where it is, often not the cheapest.
//!
//! 1. For every diamond whose fork has an edge to its join, that edge goes into MCST.
//! 2. MCST is completed to a maximum spanning tree; Ewit′ is what is outside.
//! 3. For each edge of Ewit′: its target, if its source is a fork; else its source, if its target is
//!    a join; else whichever weighs less.
//!
//! Counterexample: 0→{2,3}, 1→2, 2→{1,3}, exit 3. The diamond 0→2→3, 0→3 puts the edge 0→3 first,
//! the tree takes two more, and the witness chosen for what is left does not tell how often the loop
//! 1→2→1 ran apart from the ways around it. What goes wrong: a node stands for all edges into it,
//! so a chord's target may be hit on the way that the chord was to be told from.
//!
//! Fork edges that close a cycle among themselves are all kept in MCST, as step 1 says.
//! Exponential: the diamonds are listed.

use tomo_graph::{Budget, EdgeId, FlowGraph, Graph, NodeId, Weight, diamonds, maximum_forest};

/// The node witnesses that the figure yields, ascending; `None` if there are too many diamonds to
/// list. Edges weigh `edge`, nodes `node`.
#[must_use]
pub fn witnesses(
    graph: &FlowGraph,
    edge: impl Fn(EdgeId) -> u64,
    node: impl Fn(NodeId) -> u64,
    budget: Budget,
) -> Option<Vec<NodeId>> {
    let outside = outside(graph, edge, budget)?;
    let is_fork = |node| graph.out_edges(node).nth(1).is_some();
    let is_join = |node| graph.in_edges(node).nth(1).is_some();
    let choose = |edge: EdgeId| {
        let (source, target) = (graph.source(edge), graph.target(edge));
        if is_fork(source) {
            target
        } else if is_join(target) {
            source
        } else if node(target) < node(source) {
            target
        } else {
            source
        }
    };
    let mut chosen: Vec<NodeId> = outside.into_iter().map(choose).collect();
    chosen.sort_unstable();
    chosen.dedup();
    Some(chosen)
}

/// Ewit′.
fn outside(
    graph: &FlowGraph,
    weight: impl Fn(EdgeId) -> u64,
    budget: Budget,
) -> Option<Vec<EdgeId>> {
    let diamonds = diamonds(graph, budget);
    if !diamonds.complete {
        return None;
    }
    let mut first = vec![false; graph.edge_count()];
    for diamond in &diamonds.found {
        for side in [&diamond.left, &diamond.right] {
            if let [edge] = side[..] {
                first[edge.index()] = true;
            }
        }
    }
    let arcs: Vec<_> = (0..)
        .map(EdgeId)
        .zip(graph.edges())
        .map(|(edge, &(from, to))| match first[edge.index()] {
            true => (from, to, Weight::Infinite),
            false => (from, to, Weight::Finite(weight(edge))),
        })
        .collect();
    let taken = maximum_forest(graph.node_count(), &arcs);
    let edges = (0..arcs.len()).filter(|&at| !taken[at] && !first[at]);
    Some(edges.map(|at| EdgeId(at as u32)).collect())
}
