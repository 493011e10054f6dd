//! Calls that come back more often than they are made.

use super::CallView;

/// How a call comes back once more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReturnsAgain {
    /// Where it has been before, since somebody has kept how things stood there (`setjmp`).
    Kept,
    /// In a process of its own, with memory of its own (`fork`).
    Copied,
    /// In a process of its own, on the same stack and before it comes back here (`vfork`).
    Lent,
}

/// What comes back where it has been, leading underscores left out: gcc's list (`special_function_p`), and what other coroutines
/// come back to.
const KEEPING: [&str; 3] = ["savectx", "getcontext", "swapcontext"];

/// How the names end of what is made for that, the C library's and others' (`fpc_setjmp`).
const ENDING: &str = "setjmp";

/// What comes back in two processes, leading underscores left out.
const FORKS: [&str; 4] = ["fork", "Fork", "libc_fork", "forkpty"];

impl<'g> CallView<'g> {
    /// Whether and how it may come back more often than it is made: by the name of whom it calls, or because that keeps the
    /// address to come back to ([`FunctionView::returns_again`](super::FunctionView::returns_again)).
    #[must_use]
    pub fn returns_again(&self) -> Option<ReturnsAgain> {
        let name = self.name().unwrap_or_default().trim_start_matches('_');
        let ends = name.len().checked_sub(ENDING.len());
        let ending = ends.and_then(|at| name.get(at..)).unwrap_or_default();
        let keeps = || {
            let function = self.function();
            KEEPING.contains(&name)
                || ending.eq_ignore_ascii_case(ENDING)
                || function.is_some_and(|function| function.returns_again())
        };
        match name {
            "vfork" => Some(ReturnsAgain::Lent),
            _ if FORKS.contains(&name) => Some(ReturnsAgain::Copied),
            _ => keeps().then_some(ReturnsAgain::Kept),
        }
    }

    /// The name of whom it calls, as far as that is known, without the version.
    fn name(&self) -> Option<&'g str> {
        let own = || self.function().and_then(|function| function.name());
        self.import().or_else(own)?.split('@').next()
    }
}
