//! The roster, kept for what comes after the start: modules that are loaded later, processes that are
//! forked.

use core::cell::UnsafeCell;
use core::ffi::CStr;
use core::slice;
use core::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

use tomo_wire::roster::RosterView;

use crate::tables::tables;

static LENGTH: AtomicUsize = AtomicUsize::new(0);
static BYTES: AtomicPtr<u8> = AtomicPtr::new(core::ptr::null_mut());
tables! {
    static PATH: Path = Path(UnsafeCell::new([0; 4096]));
}

/// A copy of the roster's path: programs write over their environment to change what they are
/// called.
struct Path(UnsafeCell<[u8; 4096]>);

// SAFETY: written once, by `keep`, while there is one thread; read by who finds `BYTES` set after.
unsafe impl Sync for Path {}

/// Keeps the roster in `bytes`, which stays mapped, and its path. Called once, while there is one thread.
pub(crate) fn keep(bytes: &'static [u8], path: &CStr) -> Option<()> {
    let path = path.to_bytes_with_nul();
    // SAFETY: nobody reads it before `BYTES` is set.
    let copy = unsafe { (*PATH.0.get()).get_mut(..path.len())? };
    copy.copy_from_slice(path);
    LENGTH.store(bytes.len(), Ordering::Relaxed);
    BYTES.store(bytes.as_ptr().cast_mut(), Ordering::Release);
    Some(())
}

/// The roster that was kept, and its path.
pub(crate) fn roster() -> Option<(RosterView<'static>, &'static CStr)> {
    let start = BYTES.load(Ordering::Acquire);
    if start.is_null() {
        return None;
    }
    let length = LENGTH.load(Ordering::Relaxed);
    // SAFETY: `keep` was given these bytes, which stay mapped and are never written, and put a path
    // there that ends with a zero byte.
    let (bytes, path) = unsafe {
        (
            slice::from_raw_parts(start.cast_const(), length),
            CStr::from_ptr(PATH.0.get().cast()),
        )
    };
    Some((RosterView::read(bytes).ok()?, path))
}
