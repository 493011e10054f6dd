//! Coverage placement: which blocks and edges to probe so that it is known of every one whether it
//! ran.
//!
//! Sources: Agrawal, *Dominators, Super Blocks, and Program Coverage*, POPL 1994, §3 (super blocks
//! and their dominators); Tikir, Hollingsworth, *Efficient Instrumentation for Code Coverage
//! Testing*, ISSTA 2002, §3.2 (probe leaves of the dominator tree and what leads out of a subtree);
//! both as used by DIS §3.2 (Dom-I). What follows is stronger than either and says when it holds.
//!
//! # What an execution is
//!
//! An activation of a function is a walk through its graph that begins at the entry and ends at a
//! block where control *may stop*; see [`Ending`] for which these are. A run executes the union of
//! any number of walks, and a probe tells whether its block is in that union.
//!
//! **Nothing is free.** If a run may be cut behind any block ([`Ending::Anywhere`]) every block
//! needs its probe: a path to b, and the same without its last block b, differ in b alone. (That
//! also rules out the popular "v post-dominates u and u ran, so v ran".) Fewer probes are bought by
//! promising where control cannot stop. What remains true without any promise is *v ran and u
//! dominates v, so u ran*.
//!
//! # What can be inferred
//!
//! p **implies** b if every walk that passes p passes b. Cut a walk at p: that is so exactly if b
//! dominates p or b post-dominates p, with a way out wherever control may stop.
//!
//! **Theorem.** b without a probe is known in all executions exactly if every walk through b passes
//! a probe that implies b; then *b ran if and only if such a probe was hit*. (If some walk W through
//! b passes none, let Y be the union of all walks that avoid b. All probes of W are in Y, since none
//! of them implies b; so Y and Y ∪ W look the same, and differ in b.)
//!
//! Blocks that imply each other form a **super block**. It is a path of the dominator tree in which
//! each next block post-dominates the one before. Every walk that passes it comes in from the entry,
//! goes from each member to the next, and leaves for a stop: these are its *gaps*. A gap is open if
//! it can be crossed without passing anything that implies the super block:
//!
//! - the first, if its head is the entry, or an edge leads to the head from a block that the head
//!   neither dominates nor post-dominates;
//! - one between members, if an edge leads from the one straight to the next;
//! - the last, if control may stop at its tail, or an edge leads from the tail to a block that the
//!   tail neither dominates nor post-dominates (a way out that need not come back).
//!
//! **Theorem.** The super blocks all of whose gaps are open need one probe each; no other needs any.
//! *Needed:* the ways through the gaps are one walk that passes nothing else that implies the super
//! block. *Enough:* behind a member with a closed gap, every walk goes on, when it leaves it for the
//! last time, to a block that this member immediately dominates and that is not of the super block.
//! That block's own super block lies deeper in the tree, implies the one above, and is not closed by
//! its first gap alone (else it would post-dominate the member); so it has a probe or is known from
//! deeper still. A super block that only its first gap closes is known likewise from those that it
//! post-dominates. Thus the cheapest member of each super block with open gaps is a placement of
//! minimal cost, found in O(m log n), the time of dominators.
//!
//! Where some blocks cannot be patched, or not everything is asked for, the choice between a super
//! block and those that lie next below (or above) it is made by price, bottom up; what then remains
//! unknown is said to be [`Fate::Unobservable`]. The classic rules look at the last gap only, and
//! block by block: Tikir and Hollingsworth's probes the join of a diamond besides its sides.
//!
//! # What it needs
//!
//! All ways in and all edges: of a function whose graph may lack some, nothing may be inferred; use
//! [`all_blocks`]. Several entries are modelled by a virtual one ([`entered_at`]), landing pads by
//! edges from the calls that may throw. Parallel edges and irreducible graphs are fine.
//! Blocks that the entry does not reach are probed each by itself.

mod check;
mod edges;
mod flow;
mod place;
mod super_blocks;

pub use check::{Flaw, check};
pub use edges::{EdgePlacement, Subdivision, Unit, edges};
pub use flow::{Ending, Flow, entered_at};
pub use place::{Cost, Fate, Placement, all_blocks, functions, place, reduced};
pub use super_blocks::SuperBlocks;
