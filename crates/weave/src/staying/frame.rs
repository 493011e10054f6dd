//! Where an activation's return address is, told from its registers.
//!
//! Forwards over the flow of a function (Kildall, *A Unified Approach to Global Program Optimization*, POPL 1973): what
//! each register holds, as a distance from the stack pointer at the entry, where the return address is; nothing
//! where ways that meet disagree. Only what instructions themselves say counts: moves, constants that are added,
//! pushes and pops. Of calls it is believed that they come back with the stack pointer that they were made with, and
//! with the registers that the System V ABI has them keep (§3.2.1), as do the compilers whose code looks for its frame
//! there. Were that not so, a path would be kept in another word of the shadow, and not be found again: nothing else
//! would be harmed (`staying/path.rs`).

use iced_x86::{Instruction, InstructionInfoFactory, Mnemonic, OpAccess, OpKind, Register};
use tomo_program::{EdgeKind, FunctionView};

use super::code::Code;

/// A place on the stack: so many bytes from where a register points.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Slot {
    /// The number of a register that calls keep.
    pub(crate) base: u8,
    pub(crate) offset: i32,
}

const RSP: usize = 4;
/// What calls keep, and names of a frame: the stack pointer first.
const KEPT: [usize; 7] = [RSP, 5, 3, 12, 13, 14, 15];

/// What registers hold, from the entry's stack pointer on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Frame([Option<i32>; 16]);

impl Frame {
    fn at_entry() -> Self {
        let mut registers = [None; 16];
        registers[RSP] = Some(0);
        Self(registers)
    }

    /// Where the return address is.
    pub(crate) fn slot(&self) -> Option<Slot> {
        KEPT.into_iter().find_map(|base| {
            let offset = self.0[base]?.checked_neg()?;
            Some(Slot {
                base: base as u8,
                offset,
            })
        })
    }

    fn meet(&self, other: &Self) -> Self {
        let mut both = *self;
        for (here, there) in both.0.iter_mut().zip(other.0) {
            if *here != there {
                *here = None;
            }
        }
        both
    }

    fn of(&self, register: Register) -> Option<i32> {
        let is_whole = register.is_gpr64();
        is_whole.then(|| self.0[register.number()]).flatten()
    }

    /// Behind an instruction.
    pub(crate) fn after(&self, one: &Instruction, factory: &mut InstructionInfoFactory) -> Self {
        let mut next = *self;
        for used in factory.info(one).used_registers() {
            let written = !matches!(used.access(), OpAccess::Read | OpAccess::CondRead);
            if written && used.register().is_gpr() {
                next.0[used.register().full_register().number()] = None;
            }
        }
        let target = one.op0_register();
        if let Some(value) = self.result(one)
            && target.is_gpr64()
        {
            next.0[target.number()] = Some(value);
        }
        let moved = match one.mnemonic() {
            Mnemonic::Leave => self.0[5].and_then(|frame| frame.checked_add(8)),
            Mnemonic::Push => self.0[RSP].and_then(|stack| stack.checked_sub(8)),
            Mnemonic::Pop if target != Register::RSP => {
                self.0[RSP].and_then(|stack| stack.checked_add(8))
            }
            _ => return next,
        };
        let whole = one.op0_register() == Register::None || target.size() == 8;
        let memory = one.op_count() > 0 && one.op0_kind() == OpKind::Memory;
        let wide = !memory || one.memory_size().size() == 8;
        next.0[RSP] = moved.filter(|_| whole && wide);
        next
    }

    /// What an instruction leaves in its first register, if that can be told.
    fn result(&self, one: &Instruction) -> Option<i32> {
        let constant = || i32::try_from(one.immediate(1).cast_signed()).ok();
        let is_constant = matches!(
            one.op1_kind(),
            OpKind::Immediate8to64 | OpKind::Immediate32to64
        );
        let first = self.of(one.op0_register());
        match one.mnemonic() {
            Mnemonic::Mov if one.op1_kind() == OpKind::Register => self.of(one.op1_register()),
            Mnemonic::Add if is_constant => first?.checked_add(constant()?),
            Mnemonic::Sub if is_constant => first?.checked_sub(constant()?),
            Mnemonic::Lea if one.memory_index() == Register::None => {
                let displacement = i32::try_from(one.memory_displacement64().cast_signed()).ok()?;
                self.of(one.memory_base())?.checked_add(displacement)
            }
            _ => None,
        }
    }

    /// Behind a call.
    fn after_call(&self) -> Self {
        let mut next = Self([None; 16]);
        for kept in KEPT {
            next.0[kept] = self.0[kept];
        }
        next
    }
}

/// What registers hold at the start of each block of a function; `None` where nothing is known to lead.
pub(crate) fn frames(function: &FunctionView<'_>, codes: &[Code<'_>]) -> Vec<Option<Frame>> {
    let mut factory = InstructionInfoFactory::new();
    let mut frames: Vec<Option<Frame>> = vec![None; codes.len()];
    let entry = function.entry_block();
    let entry = entry.and_then(|block| function.position_of(block.id()));
    let Some(entry) = entry.filter(|entry| *entry < codes.len()) else {
        return frames;
    };
    let mut ways = vec![Vec::new(); codes.len()];
    for edge in function.edges() {
        let ends = function.position_of(edge.from).zip(edge.block());
        let ends = ends.and_then(|(from, to)| Some((from, function.position_of(to)?)));
        if let Some((from, to)) = ends {
            ways[from].push((to, edge.kind));
        }
    }
    frames[entry] = Some(Frame::at_entry());
    let mut waiting = vec![entry];
    while let Some(block) = waiting.pop() {
        let Some(start) = frames[block] else { continue };
        let end = codes[block].frame_at_end(&start, &mut factory);
        for &(to, kind) in &ways[block] {
            let arrives = match kind {
                EdgeKind::CallFallthrough => end.after_call(),
                EdgeKind::LandingPad => codes[block].landing(&end.after_call()),
                _ => end,
            };
            let met = frames[to].map_or(arrives, |known| known.meet(&arrives));
            if frames[to] != Some(met) {
                frames[to] = Some(met);
                waiting.push(to);
            }
        }
    }
    frames
}

impl Frame {
    /// In a landing pad, whose call was made behind pushes of which the unwinder may have taken arguments away.
    pub(crate) fn without_stack(&self) -> Self {
        let mut next = *self;
        next.0[RSP] = None;
        next
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use iced_x86::{Decoder, DecoderOptions};

    /// The slot behind each of the instructions.
    fn slots(code: &[u8]) -> Vec<Option<(u8, i32)>> {
        let mut factory = InstructionInfoFactory::new();
        let mut frame = Frame::at_entry();
        let decoder = &mut Decoder::with_ip(64, code, 0x1000, DecoderOptions::NONE);
        let after = decoder.into_iter().map(|one| {
            frame = frame.after(&one, &mut factory);
            frame.slot().map(|slot| (slot.base, slot.offset))
        });
        after.collect()
    }

    #[test]
    fn a_frame_with_a_pointer() {
        // push rbp; mov rbp, rsp; sub rsp, 0x20; and rsp, -32; leave
        let code = [
            0x55, 0x48, 0x89, 0xe5, 0x48, 0x83, 0xec, 0x20, 0x48, 0x83, 0xe4, 0xe0, 0xc9,
        ];
        let expected = [(4, 8), (4, 8), (4, 40), (5, 8), (4, 0)];
        assert_eq!(slots(&code), expected.map(Some));
    }

    #[test]
    fn pushes_pops_and_sums() {
        // push r12; push 7; lea rsp, [rsp-0x10]; add rsp, 0x18; pop r12
        let code = [
            0x41, 0x54, 0x6a, 0x07, 0x48, 0x8d, 0x64, 0x24, 0xf0, 0x48, 0x83, 0xc4, 0x18, 0x41,
            0x5c,
        ];
        let expected = [(4, 8), (4, 16), (4, 32), (4, 8), (4, 0)];
        assert_eq!(slots(&code), expected.map(Some));
    }

    #[test]
    fn what_is_computed_is_not_known() {
        // sub rsp, rax; mov rbx, rsp
        assert_eq!(slots(&[0x48, 0x29, 0xc4, 0x48, 0x89, 0xe3]), [None, None]);
        // mov rbx, rsp; xchg rsp, rax; pop rsp
        let code = [0x48, 0x89, 0xe3, 0x48, 0x94, 0x5c];
        assert_eq!(slots(&code), [(4, 0), (3, 0), (3, 0)].map(Some));
    }
}
