//! Witnesses for tracing: probes whose hits are recorded in order, placed so that the record tells
//! which way was taken, and distributed over several runs of one input.
//!
//! Sources: BL94 (edge witnesses), DPT §3–5 (node witnesses, distribution over profiles). The
//! printed theory of distribution does not hold (`printed.rs` keeps it for study, with
//! counterexamples); what stands here rests on the following.
//!
//! # The criterion
//!
//! A *view* is a set of places of which some profile records every passing; the record of a view
//! is found in that profile's partial trace by leaving out the rest. For a branch and one of its
//! targets, the *first witnesses* of a view are what it may record next when that target is taken,
//! with the end of the record ([`first`]).
//!
//! > **If for every branch and each two of its targets some view's sets of first witnesses are
//! > disjoint, the execution can be told from the partial traces.**
//!
//! *Proof.* By induction over the steps of the execution. Let it be known up to a branch; then of
//! each view it is known what has been recorded, so the head of what remains is what the view
//! records next. It is a first witness of the target that was taken, by every view. Compare any
//! other target with it: the view that separates the two has a head that is not among the first
//! witnesses of the other, which is thereby ruled out. ∎
//!
//! The sets may be larger than what can happen: then the head still is in that of the target that
//! was taken. This is what makes the criterion **interprocedural** at no price: for each function a
//! [`Flow`] is built whose paths include what happens in callers, callees and later activations, as
//! far as the function's own witnesses are concerned ([`flow`]), and its views are its own
//! witnesses in each profile. Functions then do not depend on each other's witnesses.
//!
//! **Where it stands.** Whether *any* observer who sees all partial traces can tell executions
//! apart is joint observability, undecidable for three and more (Tripakis, *Undecidable Problems of
//! Decentralized Observation and Control on Regular Languages*, IPL 90, 2004). That at least one
//! profile alone can tell is decidable (ibid.: *at least one can tell* local observability, for
//! finite automata). Ours is neither: at each branch *some* profile must tell, another one at
//! another branch, and by its next witness alone; so it accepts distributions of which no profile
//! can tell the execution, rejects some that can be told only by looking further ahead or at
//! several profiles together, and takes time O(branches × graph).
//!
//! **More witnesses never hurt** a view: if a witness that is added is met first behind two targets,
//! then what follows it was met behind both before. So what separates two targets may be extended,
//! pruned and shared between branches; placement and distribution below rest on that.

mod blame;
pub mod criterion;
pub mod distribution;
mod exact;
pub mod first;
pub mod flow;
pub mod place;
#[cfg(feature = "lab")]
pub mod printed;
pub mod program;
mod prune;

#[doc(hidden)]
pub mod check;

pub use criterion::{Criterion, Undecided};
pub use distribution::{
    Distribution, DistributionError, Machines, Placed, Profile, Strategy, WitnessId, distribute,
};
pub use first::{Clash, Firsts};
pub use flow::{Ends, Entered, Flow, Place};
pub use place::{Effort, NotRealizable, Placement, place};
pub use program::{Call, Function, FunctionId, Loose, Program, ProgramError, Step};
