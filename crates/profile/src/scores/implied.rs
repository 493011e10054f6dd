//! The branch predicates that carried no probe, recovered from the sites that imply them.
//!
//! Source: ABI §3.1: "the count for p can be derived offline by summing all predicates at site s".
//! Linear in the number of predicates.

use tomo_graph::{EdgeId, Graph, NodeId};
use tomo_plan::coverage::{Subdivision, Unit};
use tomo_plan::predicates::Removal;

/// Fills `edges` (by edge: how often the branch predicate was true; of binary data, 0 or 1) for all
/// edges that `removal` left out. `value_site` gives for a block the sum over its value site's
/// predicates, or nothing if it has no such site. Sums saturate.
pub fn recover(
    divided: &Subdivision,
    removal: &Removal,
    value_site: impl Fn(NodeId) -> Option<u64>,
    edges: &mut [u64],
) {
    let total = |site: NodeId, edges: &[u64]| {
        value_site(site).unwrap_or_else(|| {
            divided
                .flow()
                .successors(site)
                .filter_map(|node| count(divided, node, edges))
                .fold(0, u64::saturating_add)
        })
    };
    for &edge in &removal.order {
        if let Some(site) = removal.told_by[edge.index()] {
            edges[edge.index()] = total(site, edges);
        }
    }
}

fn count(divided: &Subdivision, node: NodeId, edges: &[u64]) -> Option<u64> {
    match divided.unit(node) {
        Unit::Edge(EdgeId(edge)) => edges.get(edge as usize).copied(),
        Unit::Block(_) => None,
    }
}
