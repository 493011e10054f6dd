//! Sandboxes that the program closes around itself (seccomp).
//!
//! Nobody knows what may still be asked of the system there, and one that ends whoever asks for more than it allows would end the
//! program for what the agent asks. So what will be needed is made ready before, and from then on the agent asks for nothing when
//! threads start, processes are forked, stacks for handlers are named or calls are noted: slabs are those that were
//! taken before ([`reserved`]), numbers are those that the C library knows, and whose thread is gone is told by what
//! comes in its place. What would take more than that is lost, and counted as such.

use core::ffi::c_int;
use core::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

use crate::loader::weak;
use crate::{chains, fatal, forked, reserved, system, tracks, trap};

/// How many sandboxes the program has closed by itself, or is about to.
static CLOSED: AtomicU32 = AtomicU32::new(0);
/// Where in what the C library keeps of a thread its number is; 0 where that is not known.
static NUMBER_AT: AtomicUsize = AtomicUsize::new(0);

/// The option of `prctl` that closes one.
pub(crate) const SET_SANDBOX: c_int = 22;

/// Whether it has, by the C library's `prctl` or `syscall`.
pub(crate) fn is_closed() -> bool {
    CLOSED.load(Ordering::Relaxed) != 0
}

/// Makes the call of `prctl` with this option, or one that does the same; it gives -1 where it fails.
pub(crate) fn controlling<R: PartialEq + From<i8>>(option: c_int, make: impl FnOnce() -> R) -> R {
    // A child of `vfork` closes its own, and this memory is its parent's.
    if option != SET_SANDBOX || forked::is_guest() {
        return make();
    }
    if !is_closed() {
        prepare();
    }
    CLOSED.fetch_add(1, Ordering::Relaxed);
    let result = make();
    if result == R::from(-1) {
        // Who only asks whether there are sandboxes is in none.
        if CLOSED.fetch_sub(1, Ordering::Relaxed) == 1 {
            fatal::stay_open();
        }
    }
    result
}

fn prepare() {
    find_numbers();
    trap::before_closing();
    reserved::before_closing();
    tracks::before_closing();
    chains::before_closing();
    fatal::before_closing();
}

/// Finds out where threads' numbers are (glibc, `nptl/descr.h`, `struct pthread`; musl, `src/internal/pthread_impl.h`): there is
/// the calling one's, which the system knows, too.
fn find_numbers() {
    const OF_GLIBC: usize = 0x2d0;
    const OF_OTHERS: usize = 0x30;
    let place = match weak!("gnu_get_libc_version") {
        0 => OF_OTHERS,
        _ => OF_GLIBC,
    };
    if number_at(place) == system::thread() {
        NUMBER_AT.store(place, Ordering::Relaxed);
    }
}

fn number_at(place: usize) -> u32 {
    let address = system::control_block().wrapping_add(place);
    // SAFETY: inside of what either C library keeps of each thread, which begins with its control block.
    unsafe { (address as *const u32).read_volatile() }
}

/// The number of this thread, if it can be known.
pub(crate) fn thread() -> Option<u32> {
    if !is_closed() {
        return Some(system::thread());
    }
    let place = NUMBER_AT.load(Ordering::Relaxed);
    (place != 0).then(|| number_at(place))
}

/// The number of this process.
pub(crate) fn process() -> u32 {
    match is_closed() {
        false => system::process(),
        true => forked::owner(),
    }
}
