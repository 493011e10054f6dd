//! Values that keep paths of interest apart with no more room than is needed.
//!
//! Source: ours, after phase 1 of SPP, Figure 4. O(nodes + arcs).
//!
//! From the sink up, for each node: `selected`, the range of the sums of selected paths from there,
//! and `top`, the largest sum of any path from there; nothing is below zero. Ways outside EI get
//! value 0. Each way in EI, in order, gets the least value x such that
//!
//! - its selected sums lie above all sums by the ways before it (x + low > their top), and
//! - all sums by it lie above the selected sums by the ways before it (x > their high).
//!
//! So where two paths part, the sums that a selected one can still come to by its way and those
//! that another can come to by another way are disjoint, whichever of the two ways came first. That
//! is what the promise needs. One path of interest through a chain of n diamonds takes sums up to n,
//! where the printed values take 2^n.

use super::super::{Interest, PathDag, PathError};

/// What the paths from a node can sum up to.
#[derive(Clone, Copy, Default)]
struct Sums {
    /// Least and largest of selected paths, if there are any.
    selected: Option<(u64, u64)>,
    /// Largest of all.
    top: u64,
}

/// The values of all ways, zero outside EI, by [`ArcId`](super::ArcId).
///
/// # Errors
/// If that takes sums of more than 64 bits.
pub fn compact(dag: &PathDag, interest: &Interest) -> Result<Vec<u64>, PathError> {
    let mut values = vec![0; dag.arcs().len()];
    let mut sums = vec![Sums::default(); dag.node_count()];
    sums[dag.sink().index()].selected = Some((0, 0));
    for node in dag.nodes().rev() {
        let others = dag.out(node).filter(|&id| !interest.has(id));
        // The largest sum by the ways so far.
        let mut top = others.map(|id| sums[dag.arc(id).to.index()].top).max();
        let mut selected: Option<(u64, u64)> = None;
        for id in dag.out(node).filter(|&id| interest.has(id)) {
            let on = sums[dag.arc(id).to.index()];
            let (low, high) = on.selected.unwrap_or_default();
            let above_all = top.map_or(0, |top| (top + 1).saturating_sub(low));
            let above_selected = selected.map_or(0, |selected| selected.1 + 1);
            let value = above_all.max(above_selected);
            values[id.index()] = value;
            let all = total(value, on.top)?;
            top = Some(top.map_or(all, |top| top.max(all)));
            let (low, high) = (total(value, low)?, total(value, high)?);
            selected = Some(selected.map_or((low, high), |before| (before.0.min(low), high)));
        }
        let top = top.unwrap_or_default();
        sums[node.index()] = Sums { selected, top };
    }
    Ok(values)
}

/// The sum, if one more would still fit.
fn total(value: u64, sum: u64) -> Result<u64, PathError> {
    let total = value.checked_add(sum);
    total
        .filter(|&total| total < u64::MAX)
        .ok_or(PathError::SumsTooLarge)
}
