//! Selective path profiling as published, for study only: **it does not keep its promise.**
//!
//! Source: SPP, Figure 4, all three phases in their order. O(nodes + arcs).
//!
//! Phase 2 moves the value of a node's only way in onto all its ways on, and phase 3 clears those
//! outside EI. A path that leaves EI there loses the value, and may end with the sum of a path of
//! interest. The smallest case known: 0→1, 0→2, 1→3, 2→3, 2→4, 3→4, paths of interest 0-2-4 and
//! 0-1-3-4; the path 0-2-3-4 gets the sum of 0-1-3-4. What to use instead:
//! [`Selection`](super::Selection).

use super::super::{Interest, PathDag, PathError};
use super::printed::{phase_1, phase_3};

/// The values on the ways after the published phases, by [`ArcId`](super::ArcId).
///
/// # Errors
/// If there are more paths than 64 bits count.
pub fn values(dag: &PathDag, interest: &Interest) -> Result<Vec<u64>, PathError> {
    let mut values = phase_1(dag, interest)?;
    phase_2(dag, &mut values);
    phase_3(dag, interest, &mut values);
    Ok(values)
}

/// Lines 13 to 20: values go down past every node with one way in.
pub fn phase_2(dag: &PathDag, values: &mut [u64]) {
    for node in dag.nodes() {
        if let [only] = *dag.into(node)
            && values[only.index()] > 0
        {
            let moved = std::mem::take(&mut values[only.index()]);
            // No sum of a path changes here, and these are below the number of paths: it fits.
            for id in dag.out(node) {
                values[id.index()] = values[id.index()].saturating_add(moved);
            }
        }
    }
}
