//! Processes that let themselves be traced, as debuggers start programs.
//!
//! Their text is given back before ([`crate::given`]), for the probes' traps would stop them. That of a child of `vfork` is its
//! parent's: the debugger itself (gdb) would not be observed any more, and its other threads would run through text that
//! changes. What such a child does next is to execute a program; so what it has asked for is done when it does that. Nobody can tell
//! the difference: its parent waits until then. Where the program cannot be executed, the text is given back after all.
//!
//! A child that has never executed anything leaves its request behind; it is not taken for that of another one which has
//! its number later, which has another identity.

use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use crate::system::TRACE_ME;
use crate::{armed, forked, given, own, system, tracer};

/// A child that has asked to be traced.
struct Request {
    /// Its number; 0 if there is none.
    process: AtomicU32,
    /// What tells it from others of that number.
    identity: AtomicU64,
}

/// Children that several threads have made; where there are more, they are not waited for.
static REQUESTS: [Request; 4] = [const {
    Request {
        process: AtomicU32::new(0),
        identity: AtomicU64::new(0),
    }
}; 4];

/// Something is asked of `ptrace`, by `ask`.
pub(crate) fn asking<R: Default>(request: usize, ask: impl FnOnce() -> R) -> R {
    if request != TRACE_ME {
        return ask();
    }
    // Who asks twice is told that he is traced already.
    if !fulfil() && postpone().is_some() {
        return R::default();
    }
    given::to_traced();
    ask()
}

/// Keeps in mind that this process wants to be traced, if that can be done later.
fn postpone() -> Option<()> {
    if armed::regions().next().is_none() || !forked::is_surely_guest() {
        return None;
    }
    // Who is traced is refused, and wants to know it.
    let identity = own::identity().filter(|_| tracer::tracer().is_none())?;
    let process = system::process();
    let takes = |request: &&Request| {
        let (none, relaxed) = (0, Ordering::Relaxed);
        let taken = request
            .process
            .compare_exchange(none, process, relaxed, relaxed);
        taken.is_ok()
    };
    let request = REQUESTS.iter().find(takes)?;
    request.identity.store(identity, Ordering::Relaxed);
    Some(())
}

/// Has this process traced if it has asked for that; whether it had.
fn fulfil() -> bool {
    let is_any = |request: &Request| request.process.load(Ordering::Relaxed) != 0;
    if !REQUESTS.iter().any(is_any) {
        return false;
    }
    let process = system::process();
    let is_own = |request: &&Request| request.process.load(Ordering::Relaxed) == process;
    let Some(request) = REQUESTS.iter().find(is_own) else {
        return false;
    };
    let identity = request.identity.load(Ordering::Relaxed);
    request.process.store(0, Ordering::Relaxed);
    let has_asked = own::identity() == Some(identity);
    if has_asked {
        system::be_traced();
    }
    has_asked
}

/// This process executes another program, by `execute`.
pub(crate) fn executing<R>(execute: impl FnOnce() -> R) -> R {
    let is_traced = fulfil();
    let result = execute();
    if is_traced {
        given::to_traced();
    }
    result
}
