//! Probe distribution over variants: which probes each of n variants of a program carries, so that
//! none costs more than a bound and all together show as much as can be.
//!
//! Source: Diep, Cohen, Elbaum, *Probe Distribution Techniques to Profile Events in Deployed
//! Software*, ISSRE 2006 (PDT), §4. Its three types and their techniques:
//!
//! | PDT | here |
//! |---|---|
//! | Random-Probes | [`random_probes`] |
//! | Balanced-Probes (Algorithm 1) | [`balanced_probes`] |
//! | Random-Events, Random-Clusters | [`random_sets`] |
//! | Balanced, Packed, Balanced-Packed, for events and for clusters (Algorithm 2, Table 1) | [`Climber`] with [`Climb::BALANCED`], [`Climb::PACKED`], [`Climb::BALANCED_PACKED`] |
//!
//! and beyond the paper [`greedy`], whose share of the optimum is proven, and bounds by expected
//! cost ([`Bound::expected`]).
//!
//! **Events and clusters are one thing** to the techniques (PDT footnote 1): sets of units of which
//! all must be probed in the same variant. Both are [`UnitSets`], and what is said of a *set* is
//! said of either.
//!
//! **Bad input has defined answers.** A set that alone exceeds the bound is never placed, and does
//! not count in the cost either, since no distribution could do better ([`oversized`] lists them).
//! A bound of zero gives variants without probes (unless units cost nothing). Units named twice in
//! a set count once. Everything else that makes no sense is a [`DistributionError`].
//!
//! **The same seed gives the same distribution** on every machine: all costs are integers, and
//! random numbers come from [`Random`](crate::random::Random).

mod bound;
mod climb;
mod error;
mod exchange;
mod greedy;
mod objective;
mod probes;
mod sets;
mod state;
mod tally;
mod upper;
mod variants;

#[doc(hidden)]
pub mod check;
#[cfg(feature = "lab")]
pub mod printed;

pub use bound::{Bound, oversized};
pub use climb::{Climb, Climbed, Climber, FROZEN};
pub use error::DistributionError;
pub use greedy::{Greedy, Packer, Repeats, greedy};
pub use objective::{Cost, Packing, Parts, Weights};
pub use probes::{balanced_probes, random_probes};
pub use sets::{SetId, UnitId, UnitSets, VariantId};
pub use state::random_sets;
pub use upper::upper_bound;
pub use variants::{Distribution, Variant};
