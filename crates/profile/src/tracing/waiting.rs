//! Who waits on a thread's stack, and what was about to happen.

/// Who waits below on the stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Frame {
    /// A block that called.
    Caller(u32),
    /// Code that is not traced.
    Outside,
    /// Code that a signal handler has interrupted, which goes on so.
    Interrupted(Resume),
}

/// What was about to happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Resume {
    /// This block was to begin.
    Run(u32),
    /// The rest of this block was to run.
    End(u32),
    /// Control was to leave this block.
    Choose(u32),
    /// Control was to arrive at this block by its address.
    Arrive(u32),
    /// A function was to be entered at this block, which is witnessed.
    Enter(u32),
    /// Control was to leave this block by this of its ways, of which the value was passed.
    Go(u32, usize),
}

impl Resume {
    /// The block in which that is.
    pub(super) fn block(self) -> u32 {
        match self {
            Self::Run(block)
            | Self::End(block)
            | Self::Choose(block)
            | Self::Arrive(block)
            | Self::Enter(block)
            | Self::Go(block, _) => block,
        }
    }
}
