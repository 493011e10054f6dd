//! Who handles fatal signals: first the agent keeps what is known of the thread (`crash.rs`), then happens what
//! would have happened without it.
//!
//! A program without a handler of its own: ours keeps, and notes what is cut (`cuts.rs`), puts the default action back and sends the signal once
//! more, with its cause, to the same thread; it comes when the program's registers are back, those of its own place if that is executed
//! elsewhere (`origins.rs`), which so stand in core files, too. A program with one: that is stood before (`handlers.rs`).
//!
//! A signal that comes while a handler runs on a stack of its own, as that by which a handler ends the program, keeps
//! what was kept before. Signals that are ignored, blocked, or handled by system calls of the
//! program's own, are not seen; nor is a stack that overflows in a thread without a stack for its handlers, but
//! for the first thread, which gets one unless it has. A program sees no trace of that stack, and loses it as
//! soon as it asks for handlers on a stack of their own. One that asks the system itself which stack there is takes ours for its own,
//! and could not do without it any more: Go's runtime does, so where it is in the program no stack is given, and one that comes later
//! finds that ours stays (`take_stack_back`).

use core::ffi::{CStr, c_int};
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};

use tomo_wire::PAGE;
use tomo_wire::crash::SIGNALS;

use crate::closed;
use crate::crash;
use crate::cuts;
use crate::emulator;
use crate::frame::{Context, Info};
use crate::handlers;
use crate::loader::weak;
use crate::origins;
use crate::system::{self, Action, Protection, Stack};
use crate::trap::{self, DEFAULT, IGNORE, ON_STACK, RESTORER, WITH_INFO};

/// By signal: how often it was caught.
static CAUGHT: [AtomicU32; SIGNALS.len()] = [const { AtomicU32::new(0) }; SIGNALS.len()];

/// The stack that the first thread was given for its handlers; 0 where it was given none.
static STACK: AtomicUsize = AtomicUsize::new(0);

/// Bytes of that stack, and of what is never mapped below it.
const ROOM: usize = 64 << 10;
const GUARD: usize = PAGE as usize;

/// A program that survives so many signals lives with them; no more is kept of its own handlers'.
const ENOUGH: u32 = 256;

/// From now on crashes are kept in the file at `path`.
pub(crate) fn begin(path: &CStr) -> Option<()> {
    if system::is_raised() || emulator::is_valgrind() {
        return None;
    }
    crash::begin(path)?;
    for signal in SIGNALS {
        if let Ok(told) = system::action_of(signal)
            && told.handler == DEFAULT
        {
            stand_before_default(signal, &told);
        }
    }
    give_stack();
    Some(())
}

fn number_of(signal: c_int) -> Option<usize> {
    let number = SIGNALS.iter().position(|one| *one == signal);
    number.filter(|_| crash::is_kept())
}

/// Whether the signal is stood before where the program has no handler: threads that get it are kept, or are where nobody would look.
pub(crate) fn is_ours(signal: c_int) -> bool {
    number_of(signal).is_some() || is_shown(signal)
}

/// Whether only what is ended by it is shown its own place. In a sandbox that the program has closed the system could not be asked to end
/// it then.
fn is_shown(signal: c_int) -> bool {
    cuts::FAULTS.contains(&signal) && origins::are_told() && !closed::is_closed()
}

/// The program is about to close a sandbox.
pub(crate) fn before_closing() {
    for signal in cuts::FAULTS {
        if number_of(signal).is_none()
            && let Ok(now) = system::action_of(signal)
            && is_by_default(now.handler)
        {
            let theirs = handlers::theirs(signal, now);
            // SAFETY: the default action is no function.
            let _ = unsafe { system::set_action(signal, &theirs) };
        }
    }
}

/// It has not closed it.
pub(crate) fn stay_open() {
    if origins::are_told() {
        handlers::stand_before_all();
    }
}

/// Whether the program has Go's runtime in it: by the function through which C code gets into Go, which such programs export.
fn is_of_go() -> bool {
    weak!("crosscall2") != 0
}

/// Lets handlers of the first thread run on a stack of their own, unless they do.
fn give_stack() {
    if is_of_go() {
        return;
    }
    let none = |stack: &Stack| stack.flags & Stack::NONE != 0;
    if !system::handlers_stack().as_ref().is_some_and(none) {
        return;
    }
    let Ok(start) = system::map_nothing(GUARD + ROOM) else {
        return;
    };
    // SAFETY: mapped just now, and known to nobody.
    let guarded = unsafe { system::protect(start, GUARD, Protection::None) };
    let stack = Stack {
        start: start + GUARD,
        flags: 0,
        length: ROOM,
    };
    // SAFETY: the memory is this stack's alone.
    if guarded.is_ok() && unsafe { system::set_handlers_stack(&stack) }.is_ok() {
        STACK.store(stack.start, Ordering::Relaxed);
    }
}

/// What the program is told of the stack of its handlers: not ours.
///
/// # Safety
/// `old` is null or points at a `stack_t`.
pub(crate) unsafe fn hide_stack(old: *mut Stack) {
    let ours = STACK.load(Ordering::Relaxed);
    // SAFETY: the caller's.
    if let Some(old) = unsafe { old.as_mut() }
        && ours != 0
        && old.start == ours
    {
        *old = Stack {
            start: 0,
            flags: Stack::NONE,
            length: 0,
        };
    }
}

/// The program asks for a handler on a stack of its own; it would not have had ours. Who asks first decides: if that is not the first
/// thread, it may be Go's runtime, which a library brings along, in a thread of its own, and the first thread may take our stack for one
/// of its own from then on.
pub(crate) fn take_stack_back() {
    static IS_DECIDED: AtomicBool = AtomicBool::new(false);
    if IS_DECIDED.swap(true, Ordering::Relaxed) {
        return;
    }
    let ours = STACK.load(Ordering::Relaxed);
    let is_ours = |stack: &Stack| stack.start == ours;
    if ours != 0 && system::handlers_stack().as_ref().is_some_and(is_ours) {
        let none = Stack {
            start: 0,
            flags: Stack::NONE,
            length: 0,
        };
        // SAFETY: there is no memory. The kernel refuses while somebody runs there.
        let _ = unsafe { system::set_handlers_stack(&none) };
    }
}

/// Whether the kernel was told this handler by us, where the program has none.
pub(crate) fn is_by_default(handler: usize) -> bool {
    handler == by_default as *const () as usize
}

/// Stands before the default action, which the program has asked for so. What is kept takes more of a stack than the kernel needs.
pub(crate) fn stand_before_default(signal: c_int, told: &Action) {
    let more = if crash::is_kept() { ON_STACK } else { 0 };
    let ours = Action {
        handler: by_default as *const () as usize,
        flags: told.flags | WITH_INFO | RESTORER | more,
        restorer: trap::restorer(),
        mask: told.mask,
    };
    // SAFETY: it takes what the flags hand over, and may run at any time.
    let _ = unsafe { system::set_action(signal, &ours) };
}

/// Called by the kernel where the program has no handler.
///
/// # Safety
/// `info` and `context` are what the kernel hands to a handler that asked for them.
unsafe extern "C" fn by_default(signal: c_int, info: *mut Info, context: *mut Context) {
    // SAFETY: the caller's.
    unsafe {
        cuts::end(context);
        origins::show(info, context);
        crash::keep(info, context, false);
        trap::end(signal, info, context);
    }
}

/// Keeps, where the program has a handler for the signal.
///
/// # Safety
/// As for [`by_default`].
pub(crate) unsafe fn caught(signal: c_int, info: *const Info, context: *const Context) {
    let caught = number_of(signal).and_then(|number| CAUGHT.get(number));
    if caught.is_some_and(|caught| caught.fetch_add(1, Ordering::Relaxed) < ENOUGH) {
        // SAFETY: the caller's.
        unsafe { crash::keep(info, context, true) };
    }
}

/// Whether the program asks for a handler, on a stack of its own, by these flags.
pub(crate) fn asks_for_stack(handler: usize, flags: c_int) -> bool {
    !matches!(handler, DEFAULT | IGNORE) && flags as u32 as u64 & ON_STACK != 0
}
