//! Recognises what is done to the register of a path, whole, with what puts aside and brings back what it changes.
//!
//! By decoded instructions, and by what these do: what a register held before, what it holds behind.

use std::ops::Range;

use iced_x86::{Code, Decoder, DecoderOptions, Instruction, Mnemonic, OpKind, Register};

use crate::staying::live::Set;

/// What is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Done {
    /// The register is set.
    Set(u32),
    /// So much is added to it.
    Add(u32),
    /// If the register and `add` are below `numbers`, the counter of that number is incremented; then the register is set.
    End {
        add: u32,
        /// Where the counter of number 0 is, from the `gs` base.
        counter: u32,
        numbers: u32,
        next: u32,
    },
}

/// Something that is done to a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Found {
    pub(super) done: Done,
    /// The register that points at the frame, and how far from there the path's register is in the shadow.
    pub(super) slot: (u8, i64),
    /// What it leaves otherwise than it was.
    pub(super) changes: Set,
    /// Bytes of all of it.
    pub(super) length: usize,
    /// Those in which sums stand.
    pub(super) sums: Vec<Range<usize>>,
}

/// Code that is read instruction by instruction.
struct Reading<'c> {
    decoder: Decoder<'c>,
    next: Instruction,
    sums: Vec<Range<usize>>,
}

impl<'c> Reading<'c> {
    fn new(code: &'c [u8]) -> Self {
        let mut decoder = Decoder::with_ip(64, code, 0, DecoderOptions::NONE);
        let next = decoder.decode();
        Self {
            decoder,
            next,
            sums: Vec::new(),
        }
    }

    /// Notes that the last `count` bytes of an instruction are a sum.
    fn sum_in(&mut self, one: &Instruction, count: usize) {
        let end = one.next_ip() as usize;
        self.sums.push(end - count..end);
    }

    /// The next instruction, if it pleases.
    fn take(&mut self, pleases: impl Fn(&Instruction) -> bool) -> Option<Instruction> {
        let this = self.next;
        if this.is_invalid() || !pleases(&this) {
            return None;
        }
        self.next = self.decoder.decode();
        Some(this)
    }

    /// The next instruction, if it is of this kind.
    fn code(&mut self, code: Code) -> Option<Instruction> {
        self.take(|one| one.code() == code)
    }
}

fn number(register: Register) -> u8 {
    register.full_register().number() as u8
}

/// What was put aside.
#[derive(Default)]
struct Aside {
    /// In order.
    pushed: Vec<Register>,
    /// Where `rax` was copied to.
    copy: Option<Register>,
    flags: bool,
}

impl Aside {
    fn read(reading: &mut Reading<'_>) -> Option<Self> {
        let mut aside = Self::default();
        if reading.take(|one| moves_stack(one, -128)).is_some() {
            while let Some(push) = reading.code(Code::Push_r64) {
                aside.pushed.push(push.op0_register());
            }
            if aside.pushed.is_empty() {
                return None;
            }
        }
        let copies = |one: &Instruction| {
            let from = one.code() == Code::Mov_rm64_r64 && one.op1_register() == Register::RAX;
            from && one.op0_kind() == OpKind::Register
        };
        aside.copy = reading.take(copies).map(|one| one.op0_register());
        if reading.code(Code::Lahf).is_some() {
            let seto = reading.take(|one| one.mnemonic() == Mnemonic::Seto)?;
            (seto.op0_register() == Register::AL).then_some(())?;
            aside.flags = true;
        }
        Some(aside)
    }

    fn bring_back(&self, reading: &mut Reading<'_>) -> Option<()> {
        if self.flags {
            let add = reading.code(Code::Add_AL_imm8)?;
            (add.immediate8() == 127).then_some(())?;
            reading.code(Code::Sahf)?;
        }
        if let Some(copy) = self.copy {
            let back = |one: &Instruction| {
                one.code() == Code::Mov_r64_rm64
                    && one.op0_register() == Register::RAX
                    && one.op1_kind() == OpKind::Register
                    && one.op1_register() == copy
            };
            reading.take(back)?;
        }
        for register in self.pushed.iter().rev() {
            let pop = reading.code(Code::Pop_r64)?;
            (pop.op0_register() == *register).then_some(())?;
        }
        if !self.pushed.is_empty() {
            reading.take(|one| moves_stack(one, 128))?;
        }
        Some(())
    }

    /// What differs behind, if `scratch` and flags, as is said, were changed in between.
    fn changes(&self, scratch: Option<Register>, flags: bool) -> Option<Set> {
        let mut changed = Set::NONE;
        if self.flags {
            changed = changed.with(Set::register(Register::RAX));
        } else if flags {
            changed = changed.with(Set::STATUS);
        }
        if let Some(copy) = self.copy {
            changed = changed.without(Set::register(Register::RAX));
            changed = changed.with(Set::register(copy));
        }
        if let Some(scratch) = scratch {
            // It may not be where something else was put.
            let full = scratch.full_register();
            let is_copy = self.copy == Some(full);
            let holds_flags = self.flags && full == Register::RAX;
            (!is_copy && !holds_flags && full != Register::RSP).then_some(())?;
            changed = changed.with(Set::register(scratch));
        }
        let back = self
            .pushed
            .iter()
            .fold(Set::NONE, |all, one| all.with(Set::register(*one)));
        Some(changed.without(back))
    }
}

/// `lea rsp, [rsp + by]`.
fn moves_stack(one: &Instruction, by: i64) -> bool {
    one.code() == Code::Lea_r64_m
        && one.op0_register() == Register::RSP
        && one.memory_base() == Register::RSP
        && one.memory_index() == Register::None
        && one.memory_displacement64().cast_signed() == by
}

/// The word of the shadow that an instruction names: `gs:[register + offset]`, addressed with 32 bits.
fn word(one: &Instruction) -> Option<(u8, i64)> {
    let base = one.memory_base();
    let is_word = one.segment_prefix() == Register::GS
        && base.is_gpr32()
        && one.memory_index() == Register::None
        && one.memory_size().size() == 4;
    let offset = i64::from(one.memory_displacement32().cast_signed());
    is_word.then(|| (number(base), offset))
}

/// What the body does, at which word, by which register, and whether it changes flags.
type Body = (Done, (u8, i64), Option<Register>, bool);

fn body(reading: &mut Reading<'_>) -> Option<Body> {
    if let Some(set) = reading.code(Code::Mov_rm32_imm32) {
        reading.sum_in(&set, 4);
        return Some((Done::Set(set.immediate32()), word(&set)?, None, false));
    }
    let adds = |one: &Instruction| matches!(one.code(), Code::Add_rm32_imm32 | Code::Add_rm32_imm8);
    if let Some(add) = reading.take(adds) {
        let value = add.immediate(1) as u32;
        reading.sum_in(
            &add,
            if add.code() == Code::Add_rm32_imm8 {
                1
            } else {
                4
            },
        );
        return Some((Done::Add(value), word(&add)?, None, true));
    }
    let load = reading.code(Code::Mov_r32_rm32)?;
    let (slot, register) = (word(&load)?, load.op0_register());
    (number(register) != slot.0).then_some(())?;
    let sums = |one: &Instruction| {
        one.code() == Code::Lea_r32_m
            && one.op0_register() == register
            && one.memory_base() == register.full_register()
            && one.memory_index() == Register::None
    };
    let add = reading.take(sums);
    if let Some(lea) = &add {
        reading.sum_in(lea, 4);
    }
    let add = add.map_or(0, |lea| lea.memory_displacement64() as u32);
    if let Some(store) = reading.code(Code::Mov_rm32_r32) {
        let same = word(&store)? == slot && store.op1_register() == register;
        return same.then_some((Done::Add(add), slot, Some(register), false));
    }
    let compare = reading.code(Code::Cmp_rm32_imm32)?;
    (compare.op0_kind() == OpKind::Register && compare.op0_register() == register).then_some(())?;
    let skip = reading.code(Code::Jae_rel8_64)?;
    let counts = reading.code(Code::Inc_rm64)?;
    let indexed = counts.segment_prefix() == Register::GS
        && counts.memory_base() == Register::None
        && counts.memory_index() == register.full_register()
        && counts.memory_index_scale() == 8;
    (indexed && skip.near_branch_target() == counts.next_ip()).then_some(())?;
    let set = reading.code(Code::Mov_rm32_imm32)?;
    (word(&set)? == slot).then_some(())?;
    reading.sum_in(&set, 4);
    let done = Done::End {
        add,
        counter: counts.memory_displacement64() as u32,
        numbers: compare.immediate32(),
        next: set.immediate32(),
    };
    Some((done, slot, Some(register), true))
}

/// What `code` begins with, if that is done to a path.
pub(super) fn read(code: &[u8]) -> Option<Found> {
    let mut reading = Reading::new(code);
    let aside = Aside::read(&mut reading)?;
    let (done, (base, offset), scratch, flags) = body(&mut reading)?;
    // What was put aside moved the stack, and perhaps the value of the base.
    let moved = match (number(Register::RSP) == base, aside.pushed.len() as i64) {
        (true, pushed) if pushed > 0 => 128 + 8 * pushed,
        _ => 0,
    };
    let taken = aside.flags && base == number(Register::RAX);
    let is_copy = aside.copy.is_some_and(|copy| number(copy) == base);
    let changes = aside.changes(scratch, flags)?;
    aside.bring_back(&mut reading)?;
    (!taken && !is_copy).then_some(Found {
        done,
        slot: (base, offset - moved),
        changes,
        length: reading.next.ip() as usize,
        sums: reading.sums,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::staying::frame::Slot;
    use crate::staying::path::{PathEnd, PathOp, write};
    use crate::trampoline::{Spot, Writer};

    #[test]
    fn what_is_written_is_recognised_whatever_is_live() {
        let end = PathEnd {
            add: 0x1234_5678,
            first: 7,
            numbers: 300,
            next: 5,
        };
        let ops = [
            PathOp::Set(77),
            PathOp::Add(3),
            PathOp::Add(1 << 20),
            PathOp::End(end),
        ];
        let but = |numbers: &[u8]| {
            let free = numbers
                .iter()
                .fold(Set::NONE, |all, one| all.with(Set::numbered(*one)));
            Set::ALL.without(free)
        };
        let lives = [
            Set::NONE,
            Set::STATUS,
            Set::ALL,
            but(&[0]),
            but(&[1]),
            but(&[12]),
            but(&[0, 12]),
            but(&[3, 9]),
            Set::ALL.without(Set::STATUS),
        ];
        let slots = [(4, 8), (4, 400), (5, 8), (12, 16), (13, -8)];
        for (op, live) in ops.iter().flat_map(|op| lives.map(|live| (op, live))) {
            for (base, offset) in slots {
                let mut writer = Writer::new(Spot(0), 64);
                write(&mut writer, op, Slot { base, offset }, live, 0x100);
                let length = writer.bytes.len();
                writer.copy(&[0xcc; 16]);
                let found = read(&writer.bytes).expect("what was written");
                assert_eq!((found.length, found.slot), (length, (base, offset.into())));
                assert!(!live.has_any(found.changes), "{op:?} {live:?}");
                let expected = match *op {
                    PathOp::Set(value) => Done::Set(value),
                    PathOp::Add(value) => Done::Add(value),
                    PathOp::End(end) => Done::End {
                        add: end.add,
                        counter: 0x100 + 8 * end.first,
                        numbers: end.numbers,
                        next: end.next,
                    },
                };
                assert_eq!(found.done, expected);
                for cut in 0..length {
                    assert_eq!(read(&writer.bytes[..cut]), None, "{op:?}, {cut} bytes");
                }
            }
        }
    }
}
