//! Faults take threads out of the middle of a block: where, is noted in the record of a module that is counted, so that what is inferred
//! from its counters holds for what comes behind as well (`tomo_wire::cuts`).
//!
//! A thread is taken out when a handler of its fault begins, or the fault ends the program; it is back when the handler returns. A
//! handler that throws, jumps away or ends the program leaves it out.

use core::ffi::c_int;
use core::sync::atomic::{AtomicU64, Ordering};

use tomo_wire::counting::Contents;
use tomo_wire::cuts::{CUTS, Cut, LOST, MOST};

use crate::armed::Counters;
use crate::frame::{Context, Frame, Info};
use crate::{origins, slabs};

/// Signals by which the system tells of faults: SIGILL, SIGBUS, SIGFPE, SIGSEGV.
pub(crate) const FAULTS: [c_int; 4] = [4, 7, 8, 11];

/// The thread that a signal has interrupted is taken out where it is.
///
/// # Safety
/// `info` and `context` are what the kernel hands to a handler, which begins.
pub(crate) unsafe fn take_out(info: *const Info, context: *const Context) {
    // SAFETY: the caller's.
    unsafe { note(&*info, context, 1) };
}

/// It goes on from its context.
///
/// # Safety
/// The context is that of the kernel's frame of a signal.
pub(crate) unsafe fn bring_back(context: *const Context) {
    // SAFETY: the caller's: the cause is in the same frame.
    unsafe { note(&*context.byte_add(Frame::CAUSE).cast(), context, -1) };
}

/// # Safety
/// The context is the kernel's.
unsafe fn note(info: &Info, context: *const Context, by: i32) {
    // Who sends such a signal has no fault.
    if !FAULTS.contains(&info.signal) || info.code <= 0 || !slabs::have(Contents::Counters) {
        return;
    }
    // SAFETY: the caller's. Who comes to an entrance is counted there.
    if let Some(within) = unsafe { origins::place_of(context) }.filter(|it| !it.is_entrance) {
        add(within.counters, within.offset, by);
    }
}

/// The program ends where this thread is, by its own fault or because that signal was sent: as by a handler that had a fault
/// happen once more.
///
/// # Safety
/// The context is the kernel's.
pub(crate) unsafe fn end(context: *const Context) {
    if !slabs::have(Contents::Counters) {
        return;
    }
    // SAFETY: the caller's. In what was added it is not known whether it was counted.
    if let Some(within) = unsafe { origins::place_of(context) }.filter(|it| it.is_own) {
        add(within.counters, within.offset, 1);
    }
}

/// Adds to a word of that place, or else to one that says nothing. Two threads may take two words for one place: sums do not mind.
fn add(counters: Counters, place: u32, by: i32) {
    let words = || (0..MOST as u64).map(|number| counters.word(CUTS + 8 * number));
    let is_of_place = |cut: Cut| cut.place == place && cut.count != 0;
    let is_free = |cut: Cut| cut.count == 0;
    for is_wanted in [&is_of_place as &dyn Fn(Cut) -> bool, &is_free] {
        for word in words() {
            if try_add(word, place, by, is_wanted) {
                return;
            }
        }
    }
    counters.word(LOST).fetch_add(1, Ordering::Relaxed);
}

/// Adds to a word, if what it says is wanted.
fn try_add(word: &AtomicU64, place: u32, by: i32, is_wanted: &dyn Fn(Cut) -> bool) -> bool {
    let next = |now: u64| {
        let cut = Cut::of(now);
        let count = cut.count.checked_add(by).filter(|_| is_wanted(cut))?;
        Some(Cut { place, count }.word())
    };
    word.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next)
        .is_ok()
}
