//! ABI §3.1's condition as it is printed, **for study only**: it is too weak.
//!
//! Source: ABI §3.1 (static removal): u, where the edge starts, dominates v, where it leads, and the site is
//! in v or in a block control equivalent to v. In u→v, u→w, w→v that holds of the edge u→v, yet v runs
//! without it. O(edges · answers of control dependence).

use tomo_graph::{ControlDependence, Dominators, EdgeId, FlowGraph, Graph, NodeId, PostDominators};

/// Whether `edge` is said to be implied by `site`: u dominates v, and `site` is v or depends on the same
/// edges for control.
#[must_use]
pub fn condition(graph: &FlowGraph, edge: EdgeId, site: NodeId) -> bool {
    let (from, to) = (graph.source(edge), graph.target(edge));
    let post = PostDominators::of(graph);
    let control = ControlDependence::of(graph, &post);
    let alike = (0..graph.edge_count() as u32)
        .map(EdgeId)
        .all(|edge| control.depends(to, edge) == control.depends(site, edge));
    Dominators::of(graph).dominates(from, to) && (site == to || alike)
}
