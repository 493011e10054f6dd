//! Counting: how often every edge and block runs, from as few and as cheap counters as possible.
//!
//! Sources: Ball, Larus, *Optimally Profiling and Tracing Programs*, TOPLAS 16(4), 1994 (BL94),
//! §3 (edge profiles from edge counters, and the static weights); Knuth, Stevenson, *Optimal
//! Measurement Points for Program Frequency Counts*, BIT 13, 1973.
//!
//! A [`CountingPlan`] puts counters on the chords of a maximum spanning tree of the closed flow
//! graph; what it weighs is said by [`Frequencies`], estimated or measured, and by what cannot be
//! patched. Where a counter may physically stand says [`places`]. A plan carries its own proof,
//! which [`verify`] replays. What was recorded becomes counts in the crate of profiles.
//!
//! # What is counted when an activation is cut short
//!
//! An *activation* is one passage through the function, from its entry. An edge is counted when
//! control passes along it; a block is counted when it is entered. Conservation (in = out) holds
//! of every activation that leaves by an exit of the graph. An activation that ends inside a block
//! (the block calls what never comes back: `longjmp`, `exit`, a throw without a landing pad; or the
//! process is killed, or looked at while it runs) has entered that block and not left it. There
//! are three ways to keep the books balanced, all exact:
//!
//! 1. Make the block an exit of the graph ([`with_cuts`]). [`FlowArc::Exit`] of it then counts
//!    the activations that ended in it, and is inferred or counted like any other arc. Each such
//!    place costs at most one more counter.
//! 2. Know from elsewhere where activations were cut (an unwinder that walked the stack at the end
//!    knows each live function's block) and hand that to the inference.
//! 3. Both: calls that are known not to return as exits, the rest from the unwinder.
//!
//! **If cuts happen and nobody says so**, the inferred counts are those of activations that were
//! completed along the tree, from where they were cut back to the entry: each inferred count is
//! off by at most one per cut activation, counted ones are right. A count below zero is then an error,
//! not a number; but not every cut shows in that way.
//!
//! **Endless regions** are never left, so each activation that is in one has to be cut in the end.
//! Without knowledge of where, [`FlowArc::Endless`] absorbs them, as if all had been cut at the
//! region's first node; given the cuts, it is inferred to be zero.

mod frequencies;
mod place;
mod plan;
mod verify;

pub use frequencies::{Frequencies, SCALE};
pub use place::{Place, is_countable, places};
pub use plan::{CounterId, CountingPlan, PlannedArc, Role, Step};
pub use verify::{Flaw, verify};

use tomo_graph::{FlowGraph, GraphError, NodeId};

#[cfg(doc)]
use tomo_graph::FlowArc;

/// `graph` with further nodes in which activations may end.
///
/// # Errors
/// If one of `cuts` is not a node of the graph.
pub fn with_cuts(
    graph: &FlowGraph,
    cuts: impl IntoIterator<Item = NodeId>,
) -> Result<FlowGraph, GraphError> {
    graph.clone().with_exits(cuts)
}
