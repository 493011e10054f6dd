//! What an image executes elsewhere: in front of which of the module's instructions control is, by where in the trampolines it is.
//!
//! Whoever finds a thread in there (a handler of a signal, who reads a crash, a debugger) learns where in the module it is, and how much
//! lower than the module's own its stack pointer is, where something that was added lies on the stack.
//!
//! A table of [`Run`]s, ascending. Each goes on to the next, and the last one to the end.

use core::mem::size_of;

use zerocopy::little_endian::U32;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use crate::door::{Refusal, part};
use crate::image::Image;

/// Places in a row of which the same is said.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct Run {
    /// Where they begin, from the trampolines' start.
    pub offset: U32,
    /// What is said: the module's instruction, from the first region's start, and in the highest bit whether
    /// the ones behind it follow.
    said: U32,
    /// How much lower the stack pointer is; of the module's own, how far behind the first instruction the last one begins.
    more: U32,
}

/// What is said of places in a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// The module's own instructions from this one on, to that which begins so far behind it. All but the last one are as long as they
    /// are there; that may be a branch that became longer.
    Own(u32, u32),
    /// What was added: control is in front of this instruction, with a stack pointer that is lower by so much.
    Before(u32, u32),
    /// Nothing.
    Nowhere,
}

/// The bit of [`Place::Own`]. No module is so large.
const OWN: u32 = 1 << 31;
const NOWHERE: u32 = u32::MAX;

impl Run {
    /// Of the places from `offset` on this is said.
    #[must_use]
    pub fn of(offset: u32, place: Place) -> Self {
        let (said, more) = match place {
            Place::Own(from, reach) => (from | OWN, reach),
            Place::Before(next, lower) => (next, lower),
            Place::Nowhere => (NOWHERE, 0),
        };
        Self {
            offset: offset.into(),
            said: said.into(),
            more: more.into(),
        }
    }

    /// What is said.
    #[must_use]
    pub fn place(&self) -> Place {
        match self.said.get() {
            NOWHERE => Place::Nowhere,
            said if said & OWN != 0 => Place::Own(said & !OWN, self.more.get()),
            said => Place::Before(said, self.more.get()),
        }
    }
}

/// Where a thread is in the module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Origin {
    /// The instruction in front of which it is, from the first region's start.
    pub from: u32,
    /// How much lower than the module's its stack pointer is.
    pub lower: u32,
    /// Whether what it executes next is that instruction.
    pub is_own: bool,
}

/// Where a thread is in the module that is `offset` bytes into the trampolines; `None` where that is not said.
#[must_use]
pub fn origin(runs: &[Run], offset: u32) -> Option<Origin> {
    let behind = runs.partition_point(|run| run.offset.get() <= offset);
    let run = runs.get(behind.checked_sub(1)?)?;
    let (from, lower, is_own) = match run.place() {
        Place::Own(from, _) => {
            let within = offset.checked_sub(run.offset.get())?;
            (from.checked_add(within)?, 0, true)
        }
        Place::Before(next, lower) => (next, lower, false),
        Place::Nowhere => return None,
    };
    Some(Origin {
        from,
        lower,
        is_own,
    })
}

/// Where in the trampolines the module's instruction is executed that is `from` bytes behind its first region's start; `None`
/// where it is executed at its own place. Looks at all runs.
#[must_use]
pub fn copy_of(runs: &[Run], from: u32) -> Option<u32> {
    let ends = runs.iter().skip(1).map(|next| next.offset.get());
    runs.iter().zip(ends).find_map(|(run, end)| {
        let Place::Own(first, reach) = run.place() else {
            return None;
        };
        let within = from.checked_sub(first).filter(|within| *within <= reach)?;
        let offset = run.offset.get().checked_add(within)?;
        (offset < end).then_some(offset)
    })
}

impl Image {
    /// Bytes that the table of what is said of its trampolines takes in its file, if it does not say more than that can hold.
    #[must_use]
    pub fn moved_length(&self) -> Option<u64> {
        self.moved_count.get().checked_mul(size_of::<Run>() as u64)
    }

    /// What is said of its trampolines, in `file`, which holds it.
    ///
    /// # Errors
    /// Where it is cut short, damaged, or not in order.
    pub fn moved<'f>(&self, file: &'f [u8]) -> Result<&'f [Run], Refusal> {
        let start = self.moved.get().min(file.len() as u64);
        let runs = self.unchecked_moved_in(part(file, start, file.len() as u64 - start)?)?;
        if crate::checksum(runs.as_bytes()) != self.moved_checksum.get() {
            return Err(Refusal::Damaged);
        }
        match runs.is_sorted_by(|one, other| one.offset.get() < other.offset.get()) {
            true => Ok(runs),
            false => Err(Refusal::Inconsistent),
        }
    }

    /// The same in the bytes of its file from where the table starts, for who knows that it is not damaged, and so need not read all of it.
    ///
    /// # Errors
    /// Where it is cut short.
    pub fn unchecked_moved_in<'f>(&self, bytes: &'f [u8]) -> Result<&'f [Run], Refusal> {
        let size = self.moved_length().ok_or(Refusal::Inconsistent)?;
        let bytes = part(bytes, 0, size)?;
        <[Run]>::ref_from_bytes(bytes).map_err(|_| Refusal::Inconsistent)
    }
}
