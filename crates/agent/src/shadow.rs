//! The shadow of a thread's stacks, behind its counters (`tomo_wire::paths`): memory for a word at each address of a
//! stack, by the low 32 bits of the address.
//!
//! All of it is taken at once and given by the system as it is touched, which is as much as of the stacks themselves. Who walks
//! through the memory of a program that crashes (the system, to write it down; Redis, to test it) would touch all of it, so it
//! is left out of the one, and looks like what the others leave alone: a file, or a stack.
//! A child of `fork` has a copy of its parent's, as it has of the stack, and goes on in it; only the counters in front
//! of it become its own.

use tomo_wire::paths::{BELOW, SHADOW};

use crate::system::{self, File, Protection};

/// Bytes from where a thread's counters start to its `gs` base.
pub(crate) const DISTANCE: usize = BELOW as usize;

/// Takes memory for counters and a shadow, all zero; where it starts.
pub(crate) fn reserve() -> Option<usize> {
    let length = DISTANCE + SHADOW as usize;
    let place = system::map_nothing(length).ok()?;
    match system::zeros() {
        // SAFETY: mapped just now, and nobody knows it.
        Some(zeros) => unsafe { system::list_as(&zeros, place, length) }.ok()?,
        None => system::name_memory(place, length, c"tomo: shadow of a stack"),
    }
    system::prefer_small_pages(place, length);
    system::leave_out_of_dumps(place, length);
    Some(place)
}

/// Puts `size` bytes of `file` from `start` where the counters at `place` are.
pub(crate) fn put_counters(place: usize, size: usize, file: &File, start: u64) -> Option<()> {
    // SAFETY: `reserve` took these bytes, of which a slab has at most `DISTANCE` (checked at the door), for this.
    unsafe { system::map_over(place, size, Protection::ReadWrite, file, start) }.ok()?;
    system::bring_in_one_by_one(place, size);
    Some(())
}

/// Moves `size` bytes that are mapped at `from` to where the counters at `place` are.
pub(crate) fn move_counters(place: usize, size: usize, from: usize) -> Option<()> {
    // SAFETY: as above; what is at `from` is a slab that this thread was given just now.
    unsafe { system::move_over(place, size, from) }.ok()
}
