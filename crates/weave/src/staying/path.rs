//! What is done to the register of a path, and its end.
//!
//! The register is a word of 32 bits in the shadow of the stack, at the activation's return address
//! (`tomo_wire::paths`): `gs:[esp + offset]`, addressed with 32 bits, so that wherever the frame may be the word is in
//! the shadow. Nobody else has it, so it may be changed by several instructions; only counters are incremented by
//! one alone.
//!
//! A register that is in use is a function's own *tag* plus the sum of the path. At the end the tag is taken off, and
//! what is left counts only if it is the number of one of the function's paths: so whatever else may have been in the
//! word, nothing is counted for it, and no memory but the function's counters is changed.

use super::frame::Slot;
use super::live::Set;
use crate::trampoline::Writer;

/// What is done to a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PathOp {
    /// The register is set.
    Set(u32),
    /// So much is added to it, modulo 2^32.
    Add(u32),
    /// So much is added to what it holds, and the counter of that number is incremented; then it is set.
    End(PathEnd),
}

/// The end of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PathEnd {
    /// What is still missing from the number, less the tag.
    pub(crate) add: u32,
    /// The counter of number 0.
    pub(crate) first: u32,
    /// How many numbers there are.
    pub(crate) numbers: u32,
    /// What the register is set to.
    pub(crate) next: u32,
}

/// What no register in use is.
pub(crate) const UNUSED: u32 = 0;

/// A register in use without its sum: never so low that a sum could come from [`UNUSED`], different for most functions.
pub(crate) fn tag(entry: u64) -> u32 {
    let mixed = (entry as u32).wrapping_mul(0x9e37_79b1);
    0x4000_0000 | (mixed >> 2 & 0x3fff_ffff)
}

const RAX: u8 = 0;
const RSP: u8 = 4;

/// What it costs, in halves of what a plain increment does.
pub(crate) fn cost(op: &PathOp, live: Set) -> u64 {
    let looked_at = live.has_any(Set::STATUS);
    let spills = |count: usize| {
        if free(live, RSP).count() < count {
            6
        } else {
            0
        }
    };
    match op {
        PathOp::Set(_) => 1,
        PathOp::Add(_) if !looked_at => 2,
        PathOp::Add(_) => 4 + spills(1),
        PathOp::End(_) if !looked_at => 6 + spills(1),
        PathOp::End(_) => 10 + spills(2),
    }
}

/// Registers that nobody looks at, but for the stack pointer and `base`.
fn free(live: Set, base: u8) -> impl Iterator<Item = u8> {
    (0..16).filter(move |number| {
        *number != RSP && *number != base && !live.has_any(Set::numbered(*number))
    })
}

/// Appends what is done at `slot`, where `live` is looked at afterwards; counters start `slab` bytes from the `gs` base.
pub(crate) fn write(writer: &mut Writer, op: &PathOp, slot: Slot, live: Set, slab: u32) {
    match op {
        PathOp::Set(value) => set(writer, slot, *value),
        PathOp::Add(value) if !live.has_any(Set::STATUS) => add(writer, slot, *value),
        PathOp::Add(value) => {
            let kept = Kept::begin(writer, slot, live, false);
            load(writer, kept.register, kept.slot);
            lea(writer, kept.register, *value);
            store(writer, kept.register, kept.slot);
            kept.end(writer);
        }
        PathOp::End(end) => {
            let kept = Kept::begin(writer, slot, live, live.has_any(Set::STATUS));
            load(writer, kept.register, kept.slot);
            if end.add != 0 {
                lea(writer, kept.register, end.add);
            }
            count(writer, kept.register, end, slab);
            set(writer, kept.slot, end.next);
            kept.end(writer);
        }
    }
}

/// What was put aside so that a register, and perhaps the flags, may be changed.
struct Kept {
    /// What may be changed.
    register: u8,
    /// Where the path's register is meanwhile.
    slot: Slot,
    flags: bool,
    /// Where `rax` is, if the flags took its place and somebody looks at it.
    copied: Option<u8>,
    /// What lies on the stack below the red zone, in order.
    pushed: Vec<u8>,
}

impl Kept {
    fn begin(writer: &mut Writer, slot: Slot, live: Set, flags: bool) -> Self {
        let mut free: Vec<u8> = free(live, slot.base).collect();
        let (mut copied, mut pushed) = (None, Vec::new());
        if flags {
            match free.iter().position(|number| *number == RAX) {
                Some(at) => drop(free.remove(at)),
                None if free.len() > 1 => copied = free.pop(),
                None => pushed.push(RAX),
            }
        }
        let register = free.first().copied().unwrap_or_else(|| {
            let taken = |number: u8| number == slot.base || (flags && number == RAX);
            // Of three registers two at most are taken.
            let register = [RAX, 1, 2].into_iter().find(|number| !taken(*number));
            pushed.extend(register);
            register.unwrap_or(RAX)
        });
        let mut moved = slot;
        if !pushed.is_empty() {
            writer.copy(&[0x48, 0x8d, 0x64, 0x24, 0x80]); // lea rsp, [rsp - 128]
            pushed
                .iter()
                .for_each(|number| writer.copy(&[0x50 | number]));
            if slot.base == RSP {
                moved.offset += 128 + 8 * pushed.len() as i32;
            }
        }
        if let Some(copy) = copied {
            writer.copy(&[0x48 | copy >> 3, 0x89, 0xc0 | copy & 7]); // mov copy, rax
        }
        if flags {
            writer.copy(&[0x9f, 0x0f, 0x90, 0xc0]); // lahf; seto al
        }
        Self {
            register,
            slot: moved,
            flags,
            copied,
            pushed,
        }
    }

    fn end(self, writer: &mut Writer) {
        if self.flags {
            writer.copy(&[0x04, 0x7f, 0x9e]); // add al, 127; sahf
        }
        if let Some(copy) = self.copied {
            writer.copy(&[0x48 | copy >> 3, 0x8b, 0xc0 | copy & 7]); // mov rax, copy
        }
        if !self.pushed.is_empty() {
            let pops = self.pushed.iter().rev();
            pops.for_each(|number| writer.copy(&[0x58 | number]));
            writer.copy(&[0x48, 0x8d, 0xa4, 0x24, 0x80, 0, 0, 0]); // lea rsp, [rsp + 128]
        }
    }
}

/// An instruction of `opcode` on the word at `slot`, with `register` or a part of the opcode beside it.
fn on_word(writer: &mut Writer, opcode: u8, register: u8, slot: Slot) {
    // Addressed with 32 bits, from the `gs` base on.
    writer.copy(&[0x67, 0x65]);
    let extension = (register >> 3) << 2 | slot.base >> 3;
    if extension != 0 {
        writer.copy(&[0x40 | extension]);
    }
    let near = i8::try_from(slot.offset);
    let mode = if near.is_ok() { 0x40 } else { 0x80 };
    writer.copy(&[opcode, mode | (register & 7) << 3 | slot.base & 7]);
    if slot.base & 7 == RSP {
        writer.copy(&[0x24]);
    }
    match near {
        Ok(near) => writer.copy(&near.to_le_bytes()),
        Err(_) => writer.copy(&slot.offset.to_le_bytes()),
    }
}

/// `mov dword ptr gs:[slot], value`.
fn set(writer: &mut Writer, slot: Slot, value: u32) {
    on_word(writer, 0xc7, 0, slot);
    writer.copy(&value.to_le_bytes());
}

/// `add dword ptr gs:[slot], value`.
fn add(writer: &mut Writer, slot: Slot, value: u32) {
    match i8::try_from(value.cast_signed()) {
        Ok(near) => {
            on_word(writer, 0x83, 0, slot);
            writer.copy(&near.to_le_bytes());
        }
        Err(_) => {
            on_word(writer, 0x81, 0, slot);
            writer.copy(&value.to_le_bytes());
        }
    }
}

/// `mov register, dword ptr gs:[slot]`.
fn load(writer: &mut Writer, register: u8, slot: Slot) {
    on_word(writer, 0x8b, register, slot);
}

/// `mov dword ptr gs:[slot], register`.
fn store(writer: &mut Writer, register: u8, slot: Slot) {
    on_word(writer, 0x89, register, slot);
}

/// `lea register, [register + value]`, of which 32 bits are kept.
fn lea(writer: &mut Writer, register: u8, value: u32) {
    let (high, low) = (register >> 3, register & 7);
    if high != 0 {
        writer.copy(&[0x45]);
    }
    writer.copy(&[0x8d, 0x80 | low << 3 | low]);
    if low == RSP {
        writer.copy(&[0x24]);
    }
    writer.copy(&value.to_le_bytes());
}

/// Increments the counter whose number is in `register`, if there is one.
fn count(writer: &mut Writer, register: u8, end: &PathEnd, slab: u32) {
    let (high, low) = (register >> 3, register & 7);
    if high != 0 {
        writer.copy(&[0x41]);
    }
    writer.copy(&[0x81, 0xf8 | low]); // cmp register, numbers
    writer.copy(&end.numbers.to_le_bytes());
    writer.copy(&[0x73, 9]); // jae behind the increment
    // inc qword ptr gs:[register * 8 + first]
    writer.copy(&[0x65, 0x48 | high << 1, 0xff, 0x04, 0xc5 | low << 3]);
    let first = slab.wrapping_add(8u32.wrapping_mul(end.first));
    writer.copy(&first.to_le_bytes());
}
