//! Functions that the C library calls in threads that it makes for that (`SIGEV_THREAD`), with all signals blocked.
//!
//! A trap in such a thread would end the program. So the C library is told another function, a *door*, behind which SIGTRAP is
//! deliverable, and the program's own begins with all that it would find without us. There is one door for each function, which is
//! never given to another one, so that it does not matter for how long somebody keeps it.

use core::ffi::c_int;
use core::sync::atomic::{AtomicUsize, Ordering};

use crate::label::label;
use crate::signals::is_watching;
use crate::system::{self, How, SIGTRAP_BIT};

/// `struct sigevent` of the C libraries.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct Event {
    value: usize,
    signal: c_int,
    how: c_int,
    function: usize,
    attributes: usize,
    rest: [usize; 4],
}

const _: () = assert!(size_of::<Event>() == 64);

/// By a function in a thread.
const IN_THREAD: c_int = 2;

/// Functions at most; further ones begin with SIGTRAP blocked.
const MOST: usize = 64;
/// Bytes of a door.
const DOOR: usize = 16;
/// By door.
static FUNCTIONS: [AtomicUsize; MOST] = [const { AtomicUsize::new(0) }; MOST];

// Who calls a door calls the function: with the same argument, stack and return address. Each door says where it is.
core::arch::global_asm!(
    ".pushsection .text.tomo_agent_doors, \"ax\", @progbits",
    ".local tomo_agent_doors",
    ".balign {size}",
    "tomo_agent_doors:",
    ".rept {most}",
    "lea rax, [rip]",
    "jmp 2f",
    ".balign {size}",
    ".endr",
    "2: push rdi",
    "mov rdi, rax",
    "call {open}",
    "pop rdi",
    "jmp rax",
    ".popsection",
    most = const MOST,
    size = const DOOR,
    open = sym open,
);

fn doors() -> usize {
    label!("tomo_agent_doors")
}

/// The function of the door that has this address inside.
extern "C" fn open(inside: usize) -> usize {
    system::change_mask(How::Unblock, SIGTRAP_BIT);
    let door = inside.wrapping_sub(doors()) / DOOR;
    let function = FUNCTIONS.get(door).or(FUNCTIONS.first());
    function.map_or(0, |function| function.load(Ordering::Relaxed))
}

/// The door of this function, if there is one left.
fn door(function: usize) -> Option<usize> {
    let is_its = |place: &AtomicUsize| {
        let taken = place.compare_exchange(0, function, Ordering::Relaxed, Ordering::Relaxed);
        taken.is_ok() || taken == Err(function)
    };
    let number = FUNCTIONS.iter().position(is_its)?;
    Some(doors() + number * DOOR)
}

/// Calls `with` with the event at `event`, of which a thread is notified by way of a door if there may be traps.
///
/// # Safety
/// `event` is null or points at an event.
pub(crate) unsafe fn by_door<R>(event: *const Event, with: impl FnOnce(*const Event) -> R) -> R {
    if event.is_null() || !is_watching() {
        return with(event);
    }
    // SAFETY: the caller's.
    let mut copy = unsafe { *event };
    if copy.how != IN_THREAD || copy.function == 0 {
        return with(event);
    }
    copy.function = door(copy.function).unwrap_or(copy.function);
    with(&raw const copy)
}
