//! Text is given back to its program: the module's own is mapped again, privately, and its probes are gone from this process.
//!
//! Two kinds of programs cannot do with probes any longer, and say so by what they call before:
//!
//! - who makes text writable is about to change it (tracing runtimes, hot patching). Ours is shared with other processes, and
//!   what a probe puts back is what was there when the image was made;
//! - who lets itself be traced (the child of a debugger, before it executes the debugger's program) would have its probes' traps
//!   taken for the debugger's own, and go on behind them.
//!
//! A third kind is noticed only when it has done so: who puts its text onto huge pages copies it, maps new memory in its place, and
//! copies it back, with the probes that were in it, or moves the copy there. Those that remove themselves would do so where nobody
//! executes them any more, and lead to themselves for ever. Before the new memory is made executable, or once it was moved there,
//! the module's own bytes are put into it.
//!
//! Trampolines, marks and the writable text stay where they are: a thread that is in a trampoline comes back to the module's
//! own bytes, and a trap on its way to the handler is found in the table as before. The records say that the process was not
//! observed from then on. What is asked comes by the C library's functions; system calls that a program makes by itself are
//! not seen.

use core::ffi::{CStr, c_int};
use core::ops::Range;
use core::slice;
use core::sync::atomic::Ordering;

use tomo_wire::record::Reason;
use tomo_wire::{PAGE, checksum};

use crate::arm;
use crate::armed::{self, Region};
use crate::system::{self, Access, File, Protection};

/// Memory may be written.
const WRITE: c_int = 2;
/// Memory may be executed.
const EXECUTE: c_int = 4;

/// Memory at `address` gets this protection.
pub(crate) fn before_protecting(address: usize, length: usize, protection: c_int) {
    let part = |r: &Region| part_of(r, address, length);
    if protection & WRITE != 0 {
        let meets = |r: &Region| !part(r).is_empty();
        armed::give_back(meets, |region| give(region, Reason::Patched));
    } else if protection & EXECUTE != 0 {
        let vanishing = |r: &Region| r.vanishing && !part(r).is_empty();
        armed::give_back(vanishing, |region| clean(region, part(region), fill));
    }
}

/// Memory was moved to `address`, over whatever was there, and may be executable already.
pub(crate) fn after_moving(address: usize, length: usize) {
    let part = |r: &Region| part_of(r, address, length);
    let vanishing = |r: &Region| r.vanishing && !part(r).is_empty();
    let put = |region: &Region, file: &File, part: &Range<usize>| {
        fill(region, file, part) || map_own(region, file, part.clone())
    };
    armed::give_back(vanishing, |region| clean(region, part(region), put));
}

/// The part of the region that lies in these bytes.
fn part_of(region: &Region, address: usize, length: usize) -> Range<usize> {
    let end = address.saturating_add(length);
    address.max(region.start)..end.min(region.start.saturating_add(region.length))
}

/// This process is traced by a debugger from now on.
pub(crate) fn to_traced() {
    let traps = |region: &Region| !region.windows.is_empty();
    armed::give_back(traps, |region| give(region, Reason::Traced));
}

/// A module has come that sets the base of `gs`, by which probes that stay find what they write.
pub(crate) fn to_who_takes_the_segment() {
    armed::give_back(|_| true, |region| give(region, Reason::Segment));
}

/// Maps the module's own text over the region, if its file is still there as it was; whether it was.
fn give(region: &Region, reason: Reason) -> bool {
    let all = region.start..region.start + region.length;
    let given = file_of(region).is_some_and(|file| map_own(region, &file, all));
    if given {
        note(region, reason);
    }
    given
}

/// Puts the module's own bytes into `part` of the region by `put`, where the program has put memory of its own with a copy of
/// ours, and maps them over the rest; whether that was so.
fn clean(
    region: &Region,
    part: Range<usize>,
    put: impl Fn(&Region, &File, &Range<usize>) -> bool,
) -> bool {
    let Some(file) = file_of(region) else {
        return false;
    };
    let is_moved = has_probe(region, &part, &file) && put(region, &file, &part);
    if is_moved {
        map_own(region, &file, region.start..part.start);
        map_own(region, &file, part.end..region.start + region.length);
        note(region, Reason::Patched);
    }
    is_moved
}

/// Whether some byte of `part` of the region is a probe's: what the text has there now, and the module's file has not.
fn has_probe(region: &Region, part: &Range<usize>, file: &File) -> bool {
    let mut own = [0; 512];
    part.clone().step_by(own.len()).any(|address| {
        let is_new = address == part.start || address.is_multiple_of(PAGE as usize);
        if is_new && !system::is_readable(address) {
            return false;
        }
        let length = own.len().min(part.end - address);
        let read = file.read_at(&mut own[..length], offset_of(region, address));
        let read = read.unwrap_or(0).min(length);
        own[..read].iter().enumerate().any(|(at, own)| {
            let (text, alias) = ((address + at) as *const u8, region.alias.cast_const());
            // SAFETY: the kernel has read from this page; the alias is mapped as long as the module.
            let (is, ours) = unsafe {
                (
                    text.read_volatile(),
                    alias.add(address + at - region.start).read_volatile(),
                )
            };
            is == ours && ours != *own
        })
    })
}

/// Writes the module's own bytes to `part` of the region, if it may be written, which our text may not; whether that is so.
fn fill(region: &Region, file: &File, part: &Range<usize>) -> bool {
    // SAFETY: the bytes do what the program's copy of our text does; the kernel writes them, and refuses to where the program
    // could not.
    let written = unsafe { file.read_to(part.start, part.len(), offset_of(region, part.start)) };
    written == Ok(part.len())
}

/// Maps the module's own bytes over `part` of the region; whether that worked.
fn map_own(region: &Region, file: &File, part: Range<usize>) -> bool {
    let offset = offset_of(region, part.start);
    // SAFETY: these are the bytes that the loader had mapped here, and that the text did as; a thread that is in a trampoline
    // or on its way to the handler goes on with them.
    let mapped = unsafe {
        system::map_privately_over(
            part.start,
            part.len(),
            Protection::ReadExecute,
            file,
            offset,
        )
    };
    mapped.is_ok()
}

/// The module's file, if it holds the text that was armed.
fn file_of(region: &Region) -> Option<File> {
    // SAFETY: the path is there as long as the module, which was not unloaded.
    let path = unsafe { CStr::from_ptr(region.file.path.load(Ordering::Relaxed)) };
    let file = system::open(path, Access::Read, true).ok()?;
    let status = file.status().ok()?;
    let is_it = match region.file.stamp {
        Some(stamp) => arm::stamp_of(&status) == stamp,
        None => holds_text(&file, status.length as u64, region),
    };
    is_it.then_some(file)
}

/// Whether a file of this length has the region's text where the module's has it.
fn holds_text(file: &File, length: u64, region: &Region) -> bool {
    let end = region.file.offset.saturating_add(region.length as u64);
    if end > length.saturating_add(PAGE - 1) & !(PAGE - 1) {
        return false;
    }
    let Ok(start) = system::map(region.length, Protection::Read, file, region.file.offset) else {
        return false;
    };
    // SAFETY: mapped just now, all of it from the file, and unmapped when nobody looks at it any more.
    unsafe {
        let is_same = checksum(slice::from_raw_parts(start, region.length)) == region.file.original;
        system::unmap(start as usize, region.length);
        is_same
    }
}

/// Where in the module's file the byte at this address is.
fn offset_of(region: &Region, address: usize) -> u64 {
    region.file.offset + (address - region.start) as u64
}

/// Notes in the record that the region's text was given back.
fn note(region: &Region, reason: Reason) {
    region.common().note_refused(reason, 0);
}
