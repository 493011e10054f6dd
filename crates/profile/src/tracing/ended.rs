//! How the trace of a thread ends, and what is said of it.

/// How a trace ends.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ended {
    /// Blocks that were handed over.
    pub steps: u64,
    /// How many of them are certain.
    pub certain: u64,
    /// Why there are no more, if it is not that the thread had come to its end.
    pub divergence: Option<Divergence>,
    /// Whether the thread was in code that is not traced when its events ended.
    pub is_outside: bool,
    /// Whether the program's end may have come before the last blocks that are not certain.
    pub is_open: bool,
    /// Signal handlers that came between two events: where exactly is not recorded, or not at which visit.
    pub interruptions: u64,
    /// Arrivals for which several activations could have been meant, of which the innermost was taken.
    pub inferred: u64,
    /// Loops that a register counts and that were left unseen, by a signal handler that did not come back: how often they went round
    /// before that is not known, and none of it is handed over but the beginning.
    pub unfinished: u64,
    /// Whether the thread is the copy of another one that could not be followed to where it forked, so that who called is not
    /// known.
    pub is_orphan: bool,
}

/// What does not fit.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Divergence {
    /// The events of a run end before the trace does.
    #[error("the record of run {run} ends here")]
    Ends {
        /// The run.
        run: usize,
    },
    /// A run goes on otherwise than the others do.
    #[error(
        "run {run} goes on otherwise than the trace after {position} of its events, behind the block {block}"
    )]
    Differs {
        /// The run.
        run: usize,
        /// How many of its events fit.
        position: usize,
        /// The last block that all agree on.
        block: u32,
    },
    /// So many blocks without an event that something must be wrong.
    #[error(
        "no run has an event any more, and the program would run on for ever behind the block {block}"
    )]
    Endless {
        /// A block of them.
        block: u32,
    },
}
