//! Branch predicates that need no probe because sites further on tell the same.
//!
//! Source: ABI §3.1 (static removal of instrumentation). A branch predicate is an edge out of a
//! block with several; a *value site* is a block in which some value is looked at whenever the block
//! runs, so that exactly one of its predicates is true each time (negative, zero, positive). A branch
//! predicate is *implied* by a site in block w if its edge runs when, or as often as, w does.
//!
//! **The printed condition is too weak.** It asks that u, the edge's source, dominate its target v
//! and that the site be in v or in a block control equivalent to v. In u→v, u→w, w→v, u dominates v,
//! yet v runs without the edge: *the edge* must dominate v. For counts even that is too weak: where a
//! loop leads back to v (u→v, v→v, v→x) the edge dominates v and v runs oftener. Both stand in the
//! tests. What is right depends on what is recorded:
//!
//! - **Binary** data: the edge dominates w, and w post-dominates the edge. (Then one runs exactly if
//!   the other does.) Always the site lies deeper in the dominator tree than what it implies, so
//!   recovery ends.
//! - **Counts**: the edge and w depend on the same edges for control, and both or neither
//!   post-dominate the entry. For a walk binds itself to pass n exactly once for each time that it
//!   takes an edge on which n depends, and once at the entry if n post-dominates it; so n runs as
//!   often as those together. Recovery ends: going round would mean that some fork takes one of its
//!   ways always, in all executions.
//!
//! All on the graph whose edges are nodes, with control stopping where the flow says. A branch where
//! control may stop does not count as a site: it may run without any of its predicates being true.
//! That holds for [`Ending::Anywhere`](crate::coverage::Ending) everywhere, so there only value sites
//! imply anything. Counts of runs that do not end as promised may differ by one for each cut.
//!
//! O(m log n) for binary data. For counts the control dependence relation is written down; where it
//! has more than [`MOST_PAIRS`] pairs (deeply nested `do … while`), nothing is implied.

mod classes;
#[cfg(feature = "lab")]
pub mod printed;
mod removal;

pub use removal::{MOST_PAIRS, Model, Removal, implied};
