//! Selective path profiling: probes that tell paths of interest from all others, and only these.
//!
//! Source: Apiwattanapong, Harrold, *Selective Path Profiling*, PASTE 2002 (SPP), §3 and Figure 4.
//! O(m log m).
//!
//! **What is promised.** Let a path be *selected* if all its ways are in EI, the ways of paths of
//! interest. The sum of a selected path is that of no other path, selected or not. (The paper
//! promises it of the paths of interest; those are selected, and what is made of EI alone cannot
//! tell them from the others that are.)
//!
//! **Phase 1** gives values in order of the ways, those outside EI first ([`printed`]). **Phase 3**
//! clears the values outside EI. Together they keep the promise: let a selected path and another
//! part at node v. The selected one goes on by a way in EI of value x, and all its ways on lie
//! in EI. Sums of the rest are then x plus those of selected paths from the way's head. What the
//! other adds from v on lies in a range that no such sum is in: below x if its way came first in
//! phase 1 (clearing only lowers it), above if it came later. Up to v the sums are the same, so the
//! whole sums differ.
//!
//! **Phase 2 as printed breaks this**: it moves values onto ways outside EI, which phase 3 then
//! clears, so that sums change. It is kept in `published.rs`, for study (feature `lab`).
//!
//! **Phase 2 corrected**: phase 3 first; then values are moved as in BL96 §3.2 ([`Increments`]),
//! with the ways outside EI weighing infinitely. These are then put in the spanning tree before all
//! others; one that finds no room closes a cycle of ways outside EI, and since all values round
//! that cycle are zero, so is its increment. So nothing is ever moved onto a way outside EI, and
//! since moving keeps all sums as they are (potentials cancel along each path), the promise that
//! held before still holds, for each path just the same number as after phases 1 and 3.
//!
//! Then probes are saved (`selective/fewer.rs`): the potential of a node, or of all those that ways outside EI
//! join, is shifted wherever that makes the probes cheaper.
//!
//! **Deviation in phase 1.** The printed values leave room for every path outside EI, though
//! clearing puts their sums close together; a function of 10^30 paths could not be handled even
//! if one path is of interest. [`compact`] values leave just the room that is needed: see there.

mod compact;
mod fewer;
mod printed;
#[cfg(feature = "lab")]
pub mod published;
mod sums;

pub use compact::compact;
pub use printed::{phase_1, phase_3, printed};
pub use sums::{Ranges, Sums};

use tomo_graph::{FlowArc, Weight};

use self::sums::path_of;
use super::plan::arc_weights;
use super::{ArcId, Increments, Interest, Op, PathDag, PathError, Way};

/// Probes for the paths of interest of a function.
#[derive(Clone, Debug)]
pub struct Selection {
    interest: Interest,
    values: Vec<u64>,
    increments: Increments,
}

impl Selection {
    /// Tells the paths of `interest` apart by probes that cost little under `weight`.
    ///
    /// # Errors
    /// If that takes sums of more than 64 bits.
    pub fn new(
        dag: &PathDag,
        interest: Interest,
        weight: impl Fn(FlowArc) -> Weight,
    ) -> Result<Self, PathError> {
        let values = compact(dag, &interest)?;
        Ok(Self::with_values(dag, interest, values, weight))
    }

    /// The same from other values that keep the promise and are zero outside EI: the corrected
    /// phase 2 alone.
    pub fn with_values(
        dag: &PathDag,
        interest: Interest,
        values: Vec<u64>,
        weight: impl Fn(FlowArc) -> Weight,
    ) -> Self {
        let weights: Vec<Weight> = arc_weights(dag, &weight);
        let increments = fewer::place(dag, &interest, &values, &weights);
        Self {
            interest,
            values,
            increments,
        }
    }

    /// Which ways are in EI.
    #[must_use]
    pub fn interest(&self) -> &Interest {
        &self.interest
    }

    /// The value of each way, by [`ArcId`], as after phases 1 and 3: the sum over a path is what is
    /// recorded of it.
    #[must_use]
    pub fn values(&self) -> &[u64] {
        &self.values
    }

    /// What each way adds to the register, as after phase 2.
    #[must_use]
    pub fn increments(&self) -> &Increments {
        &self.increments
    }

    /// The sum that is recorded of a path.
    #[must_use]
    pub fn sum(&self, arcs: &[ArcId]) -> u64 {
        let values = arcs.iter().map(|id| self.values[id.index()]);
        values.fold(0, u64::wrapping_add)
    }

    /// What probes do, by [`ArcId`]: the register is set wherever a path starts that could come to
    /// an end of interest, and counted only there; other paths leave no trace or a sum that is no
    /// selected path's.
    #[must_use]
    pub fn ops(&self, dag: &PathDag) -> Vec<Option<Op>> {
        let mut counted = vec![false; dag.node_count()];
        for node in dag.nodes().rev() {
            let mut ways = dag.out(node);
            counted[node.index()] = ways.any(|id| {
                let to = dag.arc(id).to;
                counted[to.index()] || to == dag.sink() && self.interest.has(id)
            });
        }
        let op = |id: ArcId| {
            let value = self.increments.of_arc(id);
            let arc = dag.arc(id);
            match arc.way {
                Way::Start(_) => counted[arc.to.index()].then_some(Op::Set(value)),
                Way::Exit(_) | Way::Break(..) => self.interest.has(id).then_some(Op::Count(value)),
                Way::Edge(_) => (value != 0).then_some(Op::Add(value)),
            }
        };
        dag.ids().map(op).collect()
    }

    /// How many ways add something (SPP §4 counts these; the setting at starts and the counting at
    /// ends come on top).
    #[must_use]
    pub fn probes(&self) -> usize {
        self.increments.probes()
    }

    /// The selected path of which `sum` is recorded, by its ways; `None` if it belongs to others.
    /// O(path · log ways).
    #[must_use]
    pub fn path(&self, dag: &PathDag, ranges: &Ranges, sum: u64) -> Option<Vec<ArcId>> {
        path_of(dag, (&self.interest, &self.values), ranges, sum)
    }

    /// From where to where the sums of selected paths go, from each node on.
    #[must_use]
    pub fn ranges(&self, dag: &PathDag) -> Ranges {
        Ranges::of_values(dag, &self.interest, &self.values)
    }
}
