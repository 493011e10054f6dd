//! Calls that come back more often than they are made.

use super::CallView;

/// What comes back more than once, leading underscores left out: gcc's list (`special_function_p`), what comes back in two
/// processes, and what other coroutines come back to.
const NAMES: [&str; 7] = [
    "savectx",
    "getcontext",
    "swapcontext",
    "vfork",
    "fork",
    "Fork",
    "libc_fork",
];

/// How the names end of what is made for that, the C library's and others' (`fpc_setjmp`).
const ENDING: &str = "setjmp";

impl CallView<'_> {
    /// Whether it may come back more often than it is made: by the name of whom it calls, or because that keeps the address
    /// to come back to ([`FunctionView::returns_again`](super::FunctionView::returns_again)).
    #[must_use]
    pub fn may_return_again(&self) -> bool {
        let function = self.function();
        let own = || function.and_then(|function| function.name());
        let name = self.import().or_else(own).unwrap_or_default();
        let name = name.split('@').next().unwrap_or_default();
        let name = name.trim_start_matches('_');
        let ends = name.len().checked_sub(ENDING.len());
        let ending = ends.and_then(|at| name.get(at..)).unwrap_or_default();
        NAMES.contains(&name)
            || ending.eq_ignore_ascii_case(ENDING)
            || function.is_some_and(|function| function.returns_again())
    }
}
