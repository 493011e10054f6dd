//! Instructions moved to another place, where they mean the same.
//!
//! The bytes are kept, for nearly all instructions mean the same anywhere. Two kinds do not: operands that are
//! addressed relative to the instruction get their displacement anew, and direct branches are taken apart,
//! since whoever moves one wants to do something on each of its ways. What cannot be moved without a
//! change of meaning is not: a call leaves its own address behind as the return address, which unwinders,
//! profilers and the program itself look at; so does an entry into the system, in `rcx`; branches that
//! count have no long form; a transaction names a place.
//!
//! Reader, relocator and writer apart, in the manner of Frida's `gumx86relocator.c` (ideas only).

use iced_x86::{Code, ConditionCode, Decoder, DecoderOptions, FlowControl, Instruction, Mnemonic};
use tomo_program::Address;

use crate::trampoline::{Spot, Writer};

/// Why an instruction stays where it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Immovable {
    /// It is none.
    Undecodable,
    /// It leaves its address behind: a call, or an entry into the system.
    LeavesItsAddress,
    /// It has no form that reaches far: `jrcxz`, `loop`, `xbegin`.
    Short,
    /// What it does is between it and the system: interrupts, faults, privileged ones.
    System,
}

/// An instruction that can be moved.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Movable<'t> {
    /// Where it is.
    pub(crate) from: Address,
    /// Its bytes there.
    pub(crate) bytes: &'t [u8],
    /// Where among them a displacement of four bytes is that is counted from its end.
    pub(crate) relative: Option<usize>,
    pub(crate) way: Way,
}

/// Where control goes from an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// To the next one.
    On,
    /// To the next one, or to this address if the condition holds.
    Branch(Condition, Address),
    /// To this address.
    Jump(Address),
    /// To where a register, memory or the stack says.
    Away,
}

/// The condition of a branch: the low half of its opcode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Condition(pub(crate) u8);

impl Condition {
    fn of(instruction: &Instruction) -> Self {
        use ConditionCode::*;
        // In the order of their encodings (Intel SDM vol. 2, appendix B.1.4.7).
        let all = [o, no, b, ae, e, ne, be, a, s, ns, p, np, l, ge, le, g];
        let code = instruction.condition_code();
        let at = all.iter().position(|each| *each == code);
        Self(at.unwrap_or_default() as u8)
    }
}

/// Reads instructions that are to be moved, one after the other.
pub(crate) struct Reader<'t> {
    decoder: Decoder<'t>,
    bytes: &'t [u8],
    start: Address,
}

impl<'t> Reader<'t> {
    /// Reads the `bytes` at `start`.
    pub(crate) fn new(start: Address, bytes: &'t [u8]) -> Self {
        let decoder = Decoder::with_ip(64, bytes, start.0, DecoderOptions::NONE);
        Self {
            decoder,
            bytes,
            start,
        }
    }

    fn read(&mut self) -> Result<Movable<'t>, Immovable> {
        let instruction = self.decoder.decode();
        if instruction.is_invalid() {
            return Err(Immovable::Undecodable);
        }
        let from = Address(instruction.ip());
        let offset = (from.0 - self.start.0) as usize;
        let bytes = self.bytes.get(offset..offset + instruction.len());
        let relative = instruction.is_ip_rel_memory_operand().then(|| {
            let offsets = self.decoder.get_constant_offsets(&instruction);
            offsets.displacement_offset()
        });
        Ok(Movable {
            from,
            bytes: bytes.ok_or(Immovable::Undecodable)?,
            relative,
            way: way(&instruction)?,
        })
    }
}

impl<'t> Iterator for Reader<'t> {
    type Item = Result<Movable<'t>, Immovable>;

    fn next(&mut self) -> Option<Self::Item> {
        self.decoder.can_decode().then(|| self.read())
    }
}

fn way(instruction: &Instruction) -> Result<Way, Immovable> {
    let target = Address(instruction.near_branch_target());
    match instruction.flow_control() {
        FlowControl::Next if is_of_the_system(instruction) => Err(Immovable::System),
        FlowControl::Next => Ok(Way::On),
        FlowControl::ConditionalBranch
            if instruction.is_jcc_short() || instruction.is_jcc_near() =>
        {
            Ok(Way::Branch(Condition::of(instruction), target))
        }
        FlowControl::ConditionalBranch | FlowControl::XbeginXabortXend => Err(Immovable::Short),
        FlowControl::UnconditionalBranch
            if matches!(instruction.code(), Code::Jmp_rel8_64 | Code::Jmp_rel32_64) =>
        {
            Ok(Way::Jump(target))
        }
        FlowControl::IndirectBranch if instruction.is_jmp_near_indirect() => Ok(Way::Away),
        FlowControl::Return if instruction.mnemonic() == Mnemonic::Ret => Ok(Way::Away),
        FlowControl::Call | FlowControl::IndirectCall => Err(Immovable::LeavesItsAddress),
        _ => Err(Immovable::System),
    }
}

/// Whether it is not for programs.
fn is_of_the_system(instruction: &Instruction) -> bool {
    instruction.is_privileged() || instruction.mnemonic() == Mnemonic::Int3
}

impl Movable<'_> {
    /// Appends it to `writer`, if it is no direct branch; `from` is the spot where it is now.
    pub(crate) fn write(&self, writer: &mut Writer, from: Spot) {
        debug_assert!(matches!(self.way, Way::On | Way::Away));
        match self.relative {
            Some(at) => writer.moved(self.bytes, at, from),
            None => writer.copy(self.bytes),
        }
    }
}
