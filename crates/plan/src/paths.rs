//! Acyclic paths: a number for each, kept in one register while it is run along.
//!
//! Sources: Ball, Larus, *Efficient Path Profiling*, MICRO 1996 (BL96): numbering, increments on
//! chords, placement; Apiwattanapong, Harrold, *Selective Path Profiling*, PASTE 2002 (SPP): only
//! some paths are told apart, by fewer probes ([`selective`], [`groups`], [`Interest::unseen`]).
//!
//! A [`PathDag`] lists the ways on at each block. [`Numbering`] gives each path a number, the sum
//! of values on its ways; [`Increments`] moves the values to where little runs; [`PathPlan`] does
//! all that for a function and says what each probe does to the register and the table. A function
//! with more paths than a table holds gets a hash table or is [`split`]; more than 2^64 paths
//! cannot be numbered at all, and that is a typed error with their number. [`verify`] proves of a
//! plan that each path is counted once, under its own number.
//!
//! **An activation that is cut short** (see [`counting`](crate::counting)) is on a path that does
//! not end: it is not counted, except that a count may stand as early as where only one way is left
//! to the path's end. Until then the register tells the part that was run:
//! [`PathPlan::prefix_sum`].

mod dag;
pub mod groups;
mod increments;
mod interest;
mod numbering;
mod plan;
mod probes;
pub mod selective;
pub mod split;
mod verify;

pub use dag::{ArcId, DagArc, DagNode, PathDag, Way};
pub use increments::Increments;
pub use interest::Interest;
pub use numbering::{Numbering, PathError};
pub use plan::{Beyond, PathPlan, Policy, Storage};
pub use probes::{Op, Probe};
pub use verify::{PathFlaw, verify};
