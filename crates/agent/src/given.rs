//! Text is given back to its program: the module's own is mapped again, privately, and its probes are gone from this process.
//!
//! Two kinds of programs cannot do with probes any longer, and say so by what they call before:
//!
//! - who makes text writable is about to change it (tracing runtimes, hot patching). Ours is shared with other processes, and
//!   what a probe puts back is what was there when the image was made;
//! - who lets itself be traced (the child of a debugger, before it executes the debugger's program) would have its probes' traps
//!   taken for the debugger's own, and go on behind them.
//!
//! Trampolines, marks and the writable text stay where they are: a thread that is in a trampoline comes back to the module's
//! own bytes, and a trap on its way to the handler is found in the table as before. The records say that the process was not
//! observed from then on. What is asked comes by the C library's functions; system calls that a program makes by itself are
//! not seen.

use core::ffi::{CStr, c_int};

use tomo_wire::record::Reason;

use crate::armed::{self, Region};
use crate::system::{self, Access, Protection};
use crate::{arm, forked};

/// Memory may be written.
const WRITE: c_int = 2;
/// The request of who lets itself be traced.
const TRACE_ME: usize = 0;

/// Memory at `address` gets this protection.
pub(crate) fn before_protecting(address: usize, length: usize, protection: c_int) {
    if protection & WRITE != 0 {
        let end = address.saturating_add(length);
        let meets = |r: &Region| address < r.start.saturating_add(r.length) && r.start < end;
        armed::give_back(meets, |region| give(region, Reason::Patched));
    }
}

/// Something is asked of `ptrace`.
pub(crate) fn before_tracing(request: usize) {
    if request == TRACE_ME {
        let traps = |region: &Region| !region.windows.is_empty();
        armed::give_back(traps, |region| give(region, Reason::Traced));
    }
}

/// Maps the module's own text over the region, if its file is still there as it was; whether it was.
fn give(region: &Region, reason: Reason) -> bool {
    // SAFETY: the path is there as long as the module, which was not unloaded.
    let path = unsafe { CStr::from_ptr(region.file.path) };
    let Ok(file) = system::open(path, Access::Read, true) else {
        return false;
    };
    let now = file.status().ok().map(|status| arm::stamp_of(&status));
    if now.is_none() || now != region.file.stamp {
        return false;
    }
    let access = Protection::ReadExecute;
    let (start, length, offset) = (region.start, region.length, region.file.offset);
    // SAFETY: these are the bytes that the loader had mapped here, and that the text did as; a thread that is in a trampoline
    // or on its way to the handler goes on with them.
    let given = unsafe { system::map_privately_over(start, length, access, &file, offset) };
    if given.is_ok() {
        let counters = region.counters;
        forked::shared(counters)
            .unwrap_or(counters)
            .note_refused(reason, 0);
    }
    given.is_ok()
}
