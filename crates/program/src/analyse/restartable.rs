//! Restartable sequences: code that a thread executes as a whole, or not to its end. When the kernel interrupts or moves a
//! thread in the midst of one, it has the thread go on at an abort handler instead (Linux, `kernel/rseq.c`; librseq,
//! tcmalloc).
//!
//! It compares the instruction pointer with addresses that a descriptor states. Code of a sequence that was executed elsewhere
//! would not be interrupted, and what it overwrites is another thread's; a trap in a sequence would be met, at the abort
//! handler's address, again and again. So nothing is changed in functions with a sequence, or with an abort handler.

use super::code::{Code, Pos};
use crate::Address;
use crate::elf::Binary;

/// Where descriptors are, by a convention that lets debuggers find them, too.
const SECTION: &str = "__rseq_cs";
/// Bytes of a descriptor (`struct rseq_cs`): version and flags, start, length, abort handler.
const SIZE: usize = 32;

/// From where to where sequences go, and abort handlers' first bytes, in order and apart.
pub(crate) fn ranges(binary: &Binary<'_>, code: &Code<'_>) -> Vec<(Pos, Pos)> {
    let Some((at, bytes)) = binary.mapped_section(SECTION) else {
        return Vec::new();
    };
    let word = |offset: usize| {
        let stated = bytes.get(offset..)?.first_chunk()?;
        Some(u64::from_le_bytes(*stated))
    };
    let pointer = |offset: usize| {
        let relocated = binary.pointer_in_slot(at.checked_add(offset as u64)?);
        Some(relocated.map_or(word(offset)?, |address| address.0))
    };
    let range = |start: u64, length: u64| {
        let last = code.pos(Address(start.checked_add(length.checked_sub(1)?)?))?;
        Some((code.pos(Address(start))?, last.plus(1)))
    };
    let descriptor = |offset: usize| {
        let sequence = range(pointer(offset + 8)?, word(offset + 16)?);
        Some([sequence, range(pointer(offset + 24)?, 1)])
    };
    let descriptors = (0..bytes.len()).step_by(SIZE).filter_map(descriptor);
    let mut all: Vec<(Pos, Pos)> = descriptors.flatten().flatten().collect();
    all.sort_unstable();
    all.dedup_by(|next, last| {
        let meets = next.0 <= last.1;
        if meets {
            last.1 = last.1.max(next.1);
        }
        meets
    });
    all
}
