//! What can be wrong with partial traces.

use tomo_graph::NodeId;
use tomo_plan::witnesses::{FunctionId, WitnessId};

/// An event in a partial trace, or just behind the last one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Position {
    /// The profile.
    pub profile: usize,
    /// How many events of it come before.
    pub event: usize,
}

impl std::fmt::Display for Position {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "profile {}, event {}", self.profile, self.event)
    }
}

/// Why there is no trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TraceError {
    /// As many partial traces are needed as there are profiles.
    #[error("{given} partial traces for {profiles} profiles")]
    Profiles {
        /// How many there are.
        given: usize,
        /// How many there should be.
        profiles: usize,
    },
    /// A witness that the profile does not hold: the trace is of another distribution or program.
    #[error("{at}: {witness:?} is not a witness of this profile")]
    Foreign {
        /// Where.
        at: Position,
        /// The witness.
        witness: WitnessId,
    },
    /// The run passes one witness where the partial trace has another.
    #[error("{at}: the run passes {expected:?}, the partial trace has {found:?}")]
    Mismatch {
        /// Where.
        at: Position,
        /// What the run passes.
        expected: WitnessId,
        /// What the partial trace has.
        found: WitnessId,
    },
    /// The run passes a witness, but the partial trace has ended, and the run was not cut short.
    #[error("{at}: the partial trace ends where the run passes {expected:?}")]
    Truncated {
        /// Where.
        at: Position,
        /// What the run passes.
        expected: WitnessId,
    },
    /// A branch none of whose ways leads to what the partial trace goes on with.
    #[error("{at}: no way out of {node:?} of {function:?} leads to what comes next")]
    NoWay {
        /// Where the profile stands that should have told.
        at: Position,
        /// The function.
        function: FunctionId,
        /// The branch.
        node: NodeId,
    },
    /// The run ends, but the partial trace goes on.
    #[error("{at}: the run has ended before this event")]
    Leftover {
        /// The first event that is left.
        at: Position,
    },
    /// The run ends in another manner than was told.
    #[error("{at}: the run ends in {node:?} of {function:?}, which is not how it ended")]
    WrongEnd {
        /// Where the first profile stands.
        at: Position,
        /// The function.
        function: FunctionId,
        /// The last block.
        node: NodeId,
    },
    /// By what the partial traces say, the run goes round for ever without an event.
    #[error("{at}: from {node:?} of {function:?} on, the run would never meet another witness")]
    Endless {
        /// Where the first profile stands.
        at: Position,
        /// The function.
        function: FunctionId,
        /// A block that it passes again and again.
        node: NodeId,
    },
    /// More steps than the limit, or more events than 32 bits can number.
    #[error("{at}: the trace is longer than the limit")]
    TooLong {
        /// Where the first profile stands.
        at: Position,
    },
}
