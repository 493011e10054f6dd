//! Numbers for acyclic paths: each is the sum of the values on its ways.
//!
//! Source: BL96, §3.1, Figure 5: NumPaths(v) is the sum of NumPaths over the ways on, and the value
//! of the k-th way is the sum over those before it. Then paths have the numbers from 0 on, each
//! just once, by induction from the sink. O(nodes + arcs).
//!
//! Deviation: numbers have 64 bits, as the register that holds them. A function with more paths is
//! refused by [`PathError::TooMany`], which says how many there are (up to 128 bits).

use super::{ArcId, PathDag};

/// Why paths cannot be told apart by a sum in one register.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PathError {
    /// More paths than a register has values.
    #[error("there are {} acyclic paths, and 64 bits number no more than {}", exactly(.0), u64::MAX)]
    TooMany(
        /// How many, unless it is more than 128 bits hold.
        Option<u128>,
    ),
    /// Keeping the paths of interest apart from the others takes larger sums than a register holds.
    #[error("paths of interest would need sums beyond 64 bits")]
    SumsTooLarge,
    /// A path of interest is none of this function.
    #[error("path {0} of those of interest is no path of the function")]
    NoSuchPath(
        /// Its position in the list.
        usize,
    ),
}

fn exactly(count: &Option<u128>) -> String {
    count.map_or_else(|| "more than 10^38".into(), |count| count.to_string())
}

/// The value of every way, and how many paths there are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Numbering {
    values: Vec<u64>,
    total: u64,
}

impl Numbering {
    /// Numbers the paths of `dag`.
    ///
    /// # Errors
    /// If there are more than 64 bits count.
    pub fn of(dag: &PathDag) -> Result<Self, PathError> {
        let counts = count_paths(dag);
        let total = counts.first().copied().flatten();
        let too_many = PathError::TooMany(total);
        let total = total
            .and_then(|total| u64::try_from(total).ok())
            .ok_or(too_many)?;
        let mut values = vec![0; dag.arcs().len()];
        for node in dag.nodes() {
            let mut sum = 0u128;
            for id in dag.out(node) {
                values[id.index()] = u64::try_from(sum).map_err(|_| too_many)?;
                sum += counts[dag.arc(id).to.index()].ok_or(too_many)?;
            }
        }
        Ok(Self { values, total })
    }

    /// What a way adds to the sum (the paper's Val).
    #[must_use]
    pub fn value(&self, id: ArcId) -> u64 {
        self.values[id.index()]
    }

    /// The values of all ways, by [`ArcId`]. Those of one node ascend strictly.
    #[must_use]
    pub fn values(&self) -> &[u64] {
        &self.values
    }

    /// How many paths there are: their numbers are those below.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.total
    }

    /// The number of a path, given by its ways.
    #[must_use]
    pub fn number(&self, arcs: &[ArcId]) -> u64 {
        let values = arcs.iter().map(|&id| self.value(id));
        values.fold(0, u64::wrapping_add)
    }
}

/// Per node: how many paths lead from it to the sink; `None` beyond 128 bits.
pub(crate) fn count_paths(dag: &PathDag) -> Vec<Option<u128>> {
    let mut counts = vec![Some(1); dag.node_count()];
    for node in dag.nodes().rev() {
        let ways = dag.out(node).map(|id| counts[dag.arc(id).to.index()]);
        counts[node.index()] = add_all(ways);
    }
    counts
}

/// Per node: how many ways lead to it from the source; `None` beyond 128 bits.
pub(crate) fn count_paths_to(dag: &PathDag) -> Vec<Option<u128>> {
    let mut counts = vec![Some(1); dag.node_count()];
    for node in dag.nodes().skip(1).chain([dag.sink()]) {
        let ways = dag
            .into(node)
            .iter()
            .map(|&id| counts[dag.arc(id).from.index()]);
        counts[node.index()] = add_all(ways);
    }
    counts
}

fn add_all(mut counts: impl Iterator<Item = Option<u128>>) -> Option<u128> {
    counts.try_fold(0u128, |sum, count| sum.checked_add(count?))
}
