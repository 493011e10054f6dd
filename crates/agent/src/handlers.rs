//! The program's handlers, called by way of ours.
//!
//! The kernel gets the address of a few instructions in place of a handler's, with the program's own flags, mask and stack.
//! They do what is ours to do, and *jump* to the program's handler: it finds stack, arguments and return address as the kernel
//! made them. Whoever asks for the disposition is told the program's own.
//!
//! Stood before are handlers of fatal signals while crashes are kept (`fatal.rs`), and all while code of the program is
//! executed elsewhere (`origins.rs`); SIGTRAP is handled otherwise where traps may be met (`trap.rs`). What a program, or the
//! C library for itself, asks of the system by calls of its own is not seen.

use core::arch::naked_asm;
use core::ffi::c_int;
use core::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use tomo_wire::crash::register;

use crate::closed;
use crate::fatal;
use crate::forked;
use crate::frame::{Context, Info};
use crate::origins;
use crate::signals;
use crate::system::{self, Action, FAULTS, How, SIGTRAP};
use crate::tables::tables;
use crate::trap::{DEFAULT, IGNORE, ON_STACK, RESET, RESTORER, WITH_INFO};

const SIGNALS: usize = 64;
/// Those that are the C libraries' own. That which musl takes besides is the program's in glibc.
const INTERNAL: core::ops::RangeInclusive<c_int> = 32..=33;

/// Whether another library comes between us and the C library whose functions remember handlers for the program, and give the kernel their
/// own: the thread sanitizer of GCC, for one.
static OTHERS: AtomicBool = AtomicBool::new(false);

/// Notes whether one does.
pub(crate) fn told_by_others(are_there: bool) {
    OTHERS.store(are_there, Ordering::Relaxed);
}

/// What the program wants done on a signal. The parts may be seen from two different calls of `sigaction` if one happens just now
/// on another thread, as little as that is defined anyway.
struct Wanted {
    /// Its last handler, if it ever had one. To ignore a signal or to take the default is left to the kernel: who is called
    /// late, while that is asked for, still finds the handler.
    handler: AtomicUsize,
    flags: AtomicU64,
}

tables! {
    static WANTED: [Wanted; SIGNALS] = [const {
        Wanted {
            handler: AtomicUsize::new(0),
            flags: AtomicU64::new(0),
        }
    }; SIGNALS];
}

/// What a program that asks is told in place of what the kernel has.
#[derive(Clone, Copy)]
pub(crate) struct Told {
    handler: usize,
    flags: u64,
}

/// Flags that the kernel is told otherwise than the program has said; of all others it may know more: the C library's `siginterrupt`
/// changes them.
const OURS: u64 = WITH_INFO | ON_STACK | RESTORER;

impl Told {
    fn of(wanted: &Wanted) -> Self {
        Self {
            handler: wanted.handler.load(Ordering::Relaxed),
            flags: wanted.flags.load(Ordering::Relaxed),
        }
    }

    /// What is told where the kernel has this handler, if that is ours.
    pub(crate) fn handler(&self, of_kernel: usize) -> Option<usize> {
        match of_kernel {
            _ if of_kernel == before_theirs as *const () as usize => Some(self.handler),
            _ if fatal::is_by_default(of_kernel) => Some(DEFAULT),
            // The kernel has taken back one that is called once, and keeps its flags.
            DEFAULT if self.flags & RESET != 0 => Some(DEFAULT),
            _ => None,
        }
    }

    /// What is told of the flags where the kernel has these.
    pub(crate) fn flags(&self, of_kernel: u64) -> u64 {
        of_kernel & !OURS | self.flags & OURS
    }
}

fn wanted(signal: c_int) -> Option<&'static Wanted> {
    WANTED.get(usize::try_from(signal).ok()?.checked_sub(1)?)
}

/// Whether the signal's handlers are stood before.
pub(crate) fn is_ours(signal: c_int) -> bool {
    let is_traps = signal == SIGTRAP && signals::is_watching();
    let is_told = !is_traps && !INTERNAL.contains(&signal) && origins::are_told();
    is_told && wanted(signal).is_some() || fatal::is_ours(signal)
}

/// The disposition of a signal is asked for or changed by `real`, which gives whether that went well; afterwards the
/// handler there is ours again. No handler comes in between, which may change it, too. Of a child of `vfork`, which has
/// dispositions of its own and no memory, nothing is kept. Others who remember handlers find in the kernel meanwhile what they put there.
pub(crate) fn change(signal: c_int, sets: bool, real: impl FnOnce() -> bool) -> Option<Told> {
    let wanted = wanted(signal)?;
    let before = Told::of(wanted);
    let others = OTHERS.load(Ordering::Relaxed);
    if forked::is_guest() || !(sets || others) {
        real();
        return Some(before);
    }
    // In a sandbox that the program has closed the system is asked for no more than it asks for itself.
    let mask = (!closed::is_closed()).then(|| system::change_mask(How::Block, !FAULTS));
    if others {
        stand_aside(signal);
    }
    if real() || others {
        stand_before(signal, wanted);
    }
    if let Some(mask) = mask {
        system::change_mask(How::Set, mask);
    }
    Some(before)
}

/// What the program wants done on a signal on which the kernel does `this`.
pub(crate) fn theirs(signal: c_int, this: Action) -> Action {
    let told = wanted(signal).map(Told::of);
    let of_kernel = this.handler;
    match told.and_then(|told| Some((told, told.handler(of_kernel)?))) {
        Some((told, handler)) => Action {
            handler,
            flags: told.flags(this.flags),
            ..this
        },
        None => this,
    }
}

/// Stands before all handlers that there are.
pub(crate) fn stand_before_all() {
    let signals = (1..).zip(&WANTED).filter(|(signal, _)| is_ours(*signal));
    for (signal, wanted) in signals {
        stand_before(signal, wanted);
    }
}

/// Lets the kernel do for a moment what it would without us.
fn stand_aside(signal: c_int) {
    if let Ok(ours) = system::action_of(signal) {
        // SAFETY: it is what the program, or who remembers its handlers, has asked for.
        let _ = unsafe { system::set_action(signal, &theirs(signal, ours)) };
    }
}

/// Stands before what the kernel has been told just now.
fn stand_before(signal: c_int, wanted: &Wanted) {
    let Ok(told) = system::action_of(signal) else {
        return;
    };
    if fatal::is_by_default(told.handler) {
        return;
    }
    let ours = before_theirs as *const () as usize;
    if told.handler != ours {
        wanted.flags.store(told.flags, Ordering::Relaxed);
    }
    match told.handler {
        IGNORE => {}
        DEFAULT if fatal::is_ours(signal) => fatal::stand_before_default(signal, &told),
        DEFAULT => {}
        handler => {
            if handler != ours {
                wanted.handler.store(handler, Ordering::Relaxed);
            }
            let action = Action {
                handler: ours,
                flags: told.flags | WITH_INFO,
                ..told
            };
            // SAFETY: it takes what the flag hands over, and does what the program's own does.
            let _ = unsafe { system::set_action(signal, &action) };
        }
    }
}

/// Called by the kernel in place of the program's handler: goes on there with everything as it was.
// SAFETY: entered as a function; the three arguments are saved around the call, at which the stack is aligned, and
// nothing is left on it when the handler is jumped to. `note` gets where the address is to which the handler returns, too.
#[unsafe(naked)]
unsafe extern "C" fn before_theirs() {
    naked_asm!(
        "push rdi",
        "push rsi",
        "push rdx",
        "lea rcx, [rsp + 24]",
        "call {note}",
        "pop rdx",
        "pop rsi",
        "pop rdi",
        "jmp rax",
        note = sym note,
    )
}

/// Of signals that are let in at once the kernel has each interrupt the handler of the one before in front of its first instruction. That
/// one begins now, so that who looks for callers finds the program's.
///
/// # Safety
/// The context is the kernel's.
unsafe fn begin_interrupted(context: *mut Context) {
    // SAFETY: the caller's.
    let registers = unsafe { &mut (*context).registers };
    if registers[register::RIP] == before_theirs as *const () as usize {
        let [signal, info, interrupted, back] =
            [register::RDI, register::RSI, register::RDX, register::RSP].map(|it| registers[it]);
        // SAFETY: before its first instruction what was handed to it is in registers.
        registers[register::RIP] =
            unsafe { note(signal as c_int, info as _, interrupted as _, back as _) };
    }
}

/// Does what is ours to do, and gives the program's handler.
///
/// # Safety
/// `info` and `context` are what the kernel hands to a handler that asked for them, `back` is where its stack begins.
unsafe extern "C" fn note(
    signal: c_int,
    info: *mut Info,
    context: *mut Context,
    back: *mut usize,
) -> usize {
    // SAFETY: the caller's. What is kept is what the handler is told.
    unsafe {
        begin_interrupted(context);
        origins::begin(info, context, back);
        fatal::caught(signal, info, context);
    }
    // It was stored before the kernel was told of ours.
    let Some(told) = wanted(signal).map(Told::of) else {
        return 0;
    };
    // Of one that is called once the kernel has made the default its own.
    if told.flags & RESET != 0
        && fatal::is_ours(signal)
        && let Ok(now) = system::action_of(signal)
        && now.handler == DEFAULT
    {
        fatal::stand_before_default(signal, &theirs(signal, now));
    }
    told.handler
}
