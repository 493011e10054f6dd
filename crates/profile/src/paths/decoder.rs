//! The path of a number.
//!
//! Source: BL96, §3.4: from the source on, the way with the largest value that is not above what is
//! left of the number; the value is taken off, and so on to the sink. Values ascend along the ways
//! of a node, so the way is found by bisection: O(length · log ways), without allocation where the
//! caller keeps the list. What is no choice is not looked at (`stretches.rs`).
//!
//! Beyond the paper: the part of a path that was run when it was cut short. The sum of values up to
//! a block is the number of the path that goes on from there by first ways, because these have
//! value zero; so that path is decoded, and cut at the block.

use tomo_graph::{AcyclicPath, NodeId};
use tomo_plan::paths::{ArcId, Numbering, PathDag, PathPlan};

use super::stretches::Stretches;

/// Decodes the numbers of one function's paths. Made in O(ways); worth keeping.
#[derive(Clone, Debug)]
pub struct Decoder<'p> {
    dag: &'p PathDag,
    numbering: &'p Numbering,
    stretches: Stretches,
}

impl<'p> Decoder<'p> {
    /// For the paths of `plan`.
    #[must_use]
    pub fn of(plan: &'p PathPlan) -> Self {
        Self::new(plan.dag(), plan.numbering())
    }

    /// For the paths of `dag` with these numbers.
    #[must_use]
    pub fn new(dag: &'p PathDag, numbering: &'p Numbering) -> Self {
        Self {
            dag,
            numbering,
            stretches: Stretches::of(dag, numbering),
        }
    }

    /// Puts the ways of the path `number` into `arcs`, in place of what is there. False, and
    /// nothing, if there are not so many paths.
    pub fn decode(&self, number: u64, arcs: &mut Vec<ArcId>) -> bool {
        arcs.clear();
        if number >= self.numbering.total() {
            return false;
        }
        for stretch in self.stretches.of_path(number) {
            arcs.extend(stretch.map(ArcId));
        }
        true
    }

    /// The path `number`; `None` if there are not so many.
    #[must_use]
    pub fn path(&self, number: u64) -> Option<AcyclicPath> {
        let mut arcs = Vec::new();
        self.decode(number, &mut arcs)
            .then(|| self.dag.path_along(&arcs))
            .flatten()
    }

    /// The ways that were taken to `block`, when the values on them sum up to `sum` (see
    /// [`PathPlan::prefix_sum`]). `None` if no path comes by there with that sum.
    #[must_use]
    pub fn prefix(&self, block: NodeId, sum: u64) -> Option<Vec<ArcId>> {
        let node = self.dag.node_of(block)?;
        let mut arcs = Vec::new();
        if !self.decode(sum, &mut arcs) {
            return None;
        }
        let at = arcs.iter().position(|&id| self.dag.arc(id).to == node)?;
        arcs.truncate(at + 1);
        (self.numbering.number(&arcs) == sum).then_some(arcs)
    }
}
