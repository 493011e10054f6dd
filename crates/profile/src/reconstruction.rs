//! The exact trace of a run, from the partial traces of several profiles of the same run.
//!
//! Source: DPT §4.3, Figure 8, on our criterion (`tomo_plan::witnesses`) rather than the printed
//! theorems. The program is run along: calls are entered and returned from with a stack, and at each
//! branch what the partial traces go on with tells the way. Every witness that is passed must be the
//! next event of each profile that holds it, and at the end nothing may be left, so the result
//! agrees with all partial traces; by the criterion no other execution does.
//!
//! - A profile's trace is read twice: as a whole, and per function, because a branch is told by the
//!   next event of its *own function* in the profile that decides. Each event knows the next of the
//!   same function.
//! - **What is inconsistent** (truncated, of another run, of another program) is an error that names
//!   profile and position. A wrong trace is never given.
//! - **A run that was cut short** is told up to where it is certain ([`Ending::Cut`]): the end of a
//!   partial trace then says nothing, so branches are told by events alone. As long as any event
//!   remains, the run went on, and every step that was forced is certain; behind the last event
//!   nothing is. *Certain* is meant in the sense of the criterion, which looks one event ahead per
//!   function: where a function has no events left at a branch, the trace ends there, although
//!   events of its callees might tell more.
//! - **Nothing hangs.** Between two events each branch goes the same way each time; so whoever passes
//!   more branches in one activation, or more calls, without an event than there are, never meets
//!   one.
//!
//! **Deviations** from Figure 8: the printed loop compares a first guess with all other targets; we
//! look the way up directly where one profile decides the whole branch, and only else compare
//! pairs, by elimination. O(blocks + events) with a small lookup a branch; 12 bytes an event.

mod code;
mod decide;
mod error;
mod run;

use tomo_plan::witnesses::{Criterion, Distribution, Program, Step, WitnessId};

pub(crate) use decide::{Decider, Verdict};
pub use error::{Position, TraceError};

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Ending {
    /// Its main function returned.
    Returned,
    /// It ended by itself elsewhere: at a halt, or killed in an endless region.
    Halted,
    /// It was cut short, at any block; partial traces may even end at different ones.
    Cut,
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trace {
    /// The blocks that ran, in order.
    pub steps: Vec<Step>,
    /// Whether these are all. If not, the run went on, or may have gone on, behind the last.
    pub is_complete: bool,
}

/// Reconstructs traces of one program and distribution.
#[derive(Debug)]
pub struct Reconstructor {
    code: code::Code,
    /// The most steps of a trace.
    most: usize,
}

/// A trace of more steps is an error unless another limit is set: as many as 64 GB hold.
const MOST_STEPS: usize = 1 << 32;

impl Reconstructor {
    /// Prepares the tables. `criterion` must be of this program and distribution. O(program).
    #[must_use]
    pub fn new(program: &Program, distribution: &Distribution, criterion: &Criterion) -> Self {
        Self {
            code: code::Code::of(program, distribution, criterion),
            most: MOST_STEPS,
        }
    }

    /// The same, for traces of at most so many steps; a longer one is an error. Blocks between two
    /// events can be exponentially many in the size of the program.
    #[must_use]
    pub fn with_limit(mut self, steps: usize) -> Self {
        self.most = steps;
        self
    }

    /// Merges the partial traces of one run, one per profile in the order of the distribution.
    pub fn trace(&self, partial: &[Vec<WitnessId>], ending: Ending) -> Result<Trace, TraceError> {
        run::Run::new(&self.code, partial, ending, self.most)?.finish()
    }
}
