//! Phases 1 and 3 of selective path profiling.
//!
//! Source: SPP, Figure 4, lines 1 to 12 and 21 to 23. O(nodes + arcs).

use super::super::numbering::count_paths;
use super::super::{Interest, PathDag, PathError};

/// The values of phase 1: at each node the ways outside EI first, then those in EI, each group in
/// its order; a way's value is the number of paths by those before it.
///
/// # Errors
/// If there are more paths than 64 bits count.
pub fn phase_1(dag: &PathDag, interest: &Interest) -> Result<Vec<u64>, PathError> {
    let counts = count_paths(dag);
    let total = counts.first().copied().flatten();
    let too_many = PathError::TooMany(total);
    let narrow = |count: Option<u128>| u64::try_from(count?).ok();
    narrow(total).ok_or(too_many)?;
    let mut values = vec![0; dag.arcs().len()];
    for node in dag.nodes() {
        let others = dag.out(node).filter(|&id| !interest.has(id));
        let of_interest = dag.out(node).filter(|&id| interest.has(id));
        let mut sum = 0u64;
        for id in others.chain(of_interest) {
            values[id.index()] = sum;
            let paths = narrow(counts[dag.arc(id).to.index()]);
            sum = paths
                .and_then(|paths| sum.checked_add(paths))
                .ok_or(too_many)?;
        }
    }
    Ok(values)
}

/// Phase 3: no values outside EI.
pub fn phase_3(dag: &PathDag, interest: &Interest, values: &mut [u64]) {
    for id in dag.ids().filter(|&id| !interest.has(id)) {
        values[id.index()] = 0;
    }
}

/// The values after phases 1 and 3.
///
/// # Errors
/// If there are more paths than 64 bits count.
pub fn printed(dag: &PathDag, interest: &Interest) -> Result<Vec<u64>, PathError> {
    let mut values = phase_1(dag, interest)?;
    phase_3(dag, interest, &mut values);
    Ok(values)
}
