//! The sums that selected paths have, and which path has which.

use super::super::{ArcId, DagNode, Increments, Interest, PathDag, PathError};
use super::{compact, fewer};
use tomo_graph::Weight;

/// What keeps the paths of interest of a function apart, wherever its probes stand: [`compact`] values.
#[derive(Clone, Debug)]
pub struct Sums {
    interest: Interest,
    values: Vec<u64>,
    ranges: Ranges,
    numbers: u64,
    top: u64,
}

impl Sums {
    /// Those of the paths of `interest`.
    ///
    /// # Errors
    /// If they do not fit into 64 bits.
    pub fn of(dag: &PathDag, interest: Interest) -> Result<Self, PathError> {
        let values = compact(dag, &interest)?;
        let ranges = Ranges::of_values(dag, &interest, &values);
        let highest = ranges.of(DagNode::SOURCE).map(|(_, high)| high);
        let numbers = match highest {
            None => 0,
            Some(high) => high.checked_add(1).ok_or(PathError::SumsTooLarge)?,
        };
        let mut tops = vec![0u64; dag.node_count()];
        for node in dag.nodes().rev() {
            let ways = dag.out(node).map(|id| {
                let on: u64 = tops[dag.arc(id).to.index()];
                on.saturating_add(values[id.index()])
            });
            tops[node.index()] = ways.max().unwrap_or(0);
        }
        Ok(Self {
            top: tops[DagNode::SOURCE.index()],
            interest,
            values,
            ranges,
            numbers,
        })
    }

    /// The paths of interest.
    #[must_use]
    pub fn interest(&self) -> &Interest {
        &self.interest
    }

    /// The sums of selected paths are below this; sums of others may be, too, but are no selected path's.
    #[must_use]
    pub fn numbers(&self) -> u64 {
        self.numbers
    }

    /// The largest sum of any path.
    #[must_use]
    pub fn top(&self) -> u64 {
        self.top
    }

    /// What each way adds so that probes cost little under `weights`, by [`ArcId`]: phase 2, corrected.
    #[must_use]
    pub fn increments(&self, dag: &PathDag, weights: &[Weight]) -> Increments {
        fewer::place(dag, &self.interest, &self.values, weights)
    }

    /// The selected path that has this sum, by its ways.
    #[must_use]
    pub fn path(&self, dag: &PathDag, sum: u64) -> Option<Vec<ArcId>> {
        path_of(dag, (&self.interest, &self.values), &self.ranges, sum)
    }
}

/// The selected path of which `sum` is recorded under these values.
pub(super) fn path_of(
    dag: &PathDag,
    (interest, values): (&Interest, &[u64]),
    ranges: &Ranges,
    sum: u64,
) -> Option<Vec<ArcId>> {
    let (mut node, mut rest, mut arcs) = (DagNode::SOURCE, sum, Vec::new());
    while node != dag.sink() {
        let fits = |id: &ArcId| {
            let (low, high) = ranges.of(dag.arc(*id).to).unwrap_or((1, 0));
            let left = rest.checked_sub(values[id.index()]);
            interest.has(*id) && left.is_some_and(|left| (low..=high).contains(&left))
        };
        let id = dag.out(node).find(fits)?;
        rest -= values[id.index()];
        arcs.push(id);
        node = dag.arc(id).to;
    }
    (rest == 0).then_some(arcs)
}

/// Per node: the least and the largest sum of ways in EI from there to the sink.
#[derive(Clone, Debug)]
pub struct Ranges(Vec<Option<(u64, u64)>>);

impl Ranges {
    /// The range at `node`, unless no path in EI leads on from there.
    #[must_use]
    pub fn of(&self, node: DagNode) -> Option<(u64, u64)> {
        self.0[node.index()]
    }

    pub(super) fn of_values(dag: &PathDag, interest: &Interest, values: &[u64]) -> Self {
        let mut ranges = vec![None; dag.node_count()];
        ranges[dag.sink().index()] = Some((0, 0));
        for node in dag.nodes().rev() {
            let ways = dag.out(node).filter(|&id| interest.has(id));
            ranges[node.index()] = ways.fold(None, |sum: Option<(u64, u64)>, id| {
                let Some((low, high)) = ranges[dag.arc(id).to.index()] else {
                    return sum;
                };
                let value = values[id.index()];
                let (low, high) = (low.saturating_add(value), high.saturating_add(value));
                Some(sum.map_or((low, high), |sum| (sum.0.min(low), sum.1.max(high))))
            });
        }
        Self(ranges)
    }
}
