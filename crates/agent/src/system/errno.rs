//! What the C library tells the program of what went wrong. It is the program's: only read, but for calls that we make in its place.

use core::ffi::c_int;
use core::mem::transmute;

use crate::loader::weak;

/// Tells the program, as the C library does, that the system lacks what it has asked for.
#[cold]
pub(crate) fn lack() {
    const NO_SUCH_CALL: c_int = 38;
    if let Some(place) = place() {
        // SAFETY: the calling thread's own word.
        unsafe { *place = NO_SUCH_CALL };
    }
}

/// What went wrong in this thread last.
#[cold]
pub(crate) fn errno() -> Option<c_int> {
    // SAFETY: the calling thread's own word.
    place().map(|place| unsafe { *place })
}

/// Where the C library tells this thread.
fn place() -> Option<*mut c_int> {
    let function = weak!("__errno_location");
    // SAFETY: the C library's function of this name has this type.
    let ask = || unsafe { transmute::<usize, unsafe extern "C" fn() -> *mut c_int>(function)() };
    (function != 0).then(ask)
}
