//! A block, decoded: where its instructions start, which of these are certain to be reached once
//! the first byte runs, and what may be covered behind its end.
//!
//! A probe says that a block's first byte ran. It may stand at a later instruction only if
//! nothing before it can fault, so that whatever starts the block also reaches the probe, "up to a
//! signal" from elsewhere. Which instructions cannot fault is a list of what may, not of what
//! may not: an instruction without a memory operand whose mnemonic is known to raise nothing.

use iced_x86::{
    Code, Decoder, DecoderOptions, FlowControl, Instruction, Mnemonic, OpKind, Register,
};
use tomo_program::Address;

/// How control leaves a block at its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Leaves {
    /// It may run on into the byte behind it.
    RunsOn,
    /// Never to the byte behind it: a jump, a return, a deliberate fault.
    ForGood,
    /// By a call: what is behind it is entered by a return, if at all.
    Calls,
}

/// A decoded block. Kept and filled again and again, so that nothing is allocated for each.
#[derive(Debug)]
pub(crate) struct Decoded {
    /// Starts of the instructions that are certain to be reached; the block's start is the first.
    pub(crate) certain: Vec<Address>,
    /// Bytes of the first instruction.
    pub(crate) first: u32,
    /// The last instruction.
    pub(crate) last: Instruction,
    /// How control leaves.
    pub(crate) leaves: Leaves,
    /// Whether it enters the system, perhaps never to come back.
    pub(crate) enters_system: bool,
    instruction: Instruction,
}

impl Decoded {
    pub(crate) fn new() -> Self {
        Self {
            certain: Vec::with_capacity(16),
            first: 0,
            last: Instruction::default(),
            leaves: Leaves::RunsOn,
            enters_system: false,
            instruction: Instruction::default(),
        }
    }

    /// Decodes the block at `start` that has these bytes. False where they are no whole number of
    /// instructions, so that the model means something else.
    pub(crate) fn read(&mut self, start: Address, bytes: &[u8]) -> bool {
        let mut decoder = Decoder::with_ip(64, bytes, start.0, DecoderOptions::NONE);
        let mut certain = true;
        self.certain.clear();
        self.enters_system = false;
        while decoder.can_decode() {
            let at = decoder.ip();
            decoder.decode_out(&mut self.instruction);
            if self.instruction.is_invalid() {
                return false;
            }
            if certain {
                self.certain.push(Address(at));
                certain = cannot_fault(&self.instruction) || touches_stack(&self.instruction);
            }
            if at == start.0 {
                self.first = self.instruction.len() as u32;
            }
            self.enters_system |= self.instruction.code() == Code::Syscall;
        }
        self.last = self.instruction;
        self.leaves = leaves(&self.last);
        !bytes.is_empty()
    }
}

/// Whether it is a call, and no other thing that control may come back from, as system calls are.
pub(crate) fn is_call(last: &Instruction) -> bool {
    last.mnemonic() == Mnemonic::Call
}

/// Whether control never runs on behind it.
pub(crate) fn leaves_for_good(last: &Instruction) -> bool {
    leaves(last) == Leaves::ForGood
}

fn leaves(last: &Instruction) -> Leaves {
    match last.flow_control() {
        FlowControl::UnconditionalBranch | FlowControl::IndirectBranch | FlowControl::Return => {
            Leaves::ForGood
        }
        FlowControl::Exception if last.mnemonic() == Mnemonic::Ud2 => Leaves::ForGood,
        FlowControl::Call | FlowControl::IndirectCall => Leaves::Calls,
        FlowControl::Next | FlowControl::ConditionalBranch => Leaves::RunsOn,
        // Who comes back from an interrupt, a transaction or a fault, and where, nobody says.
        _ => Leaves::Calls,
    }
}

/// Whether the instruction is certain to be followed by the next one.
pub(crate) fn cannot_fault(instruction: &Instruction) -> bool {
    match instruction.mnemonic() {
        // These name memory, and do not touch it.
        Mnemonic::Lea | Mnemonic::Nop | Mnemonic::Endbr64 => true,
        mnemonic => {
            is_harmless(mnemonic) && operands(instruction, is_plain) && !writes_segment(instruction)
        }
    }
}

/// Whether it is so but for a word of the stack, at a fixed distance from the stack pointer.
fn touches_stack(instruction: &Instruction) -> bool {
    let by_stack = instruction.memory_base() == Register::RSP
        && instruction.memory_index() == Register::None
        && instruction.segment_prefix() == Register::None;
    by_stack
        && moves_or_computes(instruction.mnemonic())
        && operands(instruction, |kind| is_plain(kind) || kind == OpKind::Memory)
        && !writes_segment(instruction)
}

fn operands(instruction: &Instruction, are: impl Fn(OpKind) -> bool) -> bool {
    (0..instruction.op_count()).all(|operand| are(instruction.op_kind(operand)))
}

/// Whether it is a register or a constant.
fn is_plain(operand: OpKind) -> bool {
    matches!(
        operand,
        OpKind::Register
            | OpKind::Immediate8
            | OpKind::Immediate16
            | OpKind::Immediate32
            | OpKind::Immediate64
            | OpKind::Immediate8to16
            | OpKind::Immediate8to32
            | OpKind::Immediate8to64
            | OpKind::Immediate32to64
    )
}

fn writes_segment(instruction: &Instruction) -> bool {
    instruction.op_count() > 0 && instruction.op0_register().is_segment_register()
}

/// Mnemonics that raise nothing, given operands that are registers and constants. No arithmetic on
/// floating point numbers: a program may have unmasked its exceptions.
fn is_harmless(mnemonic: Mnemonic) -> bool {
    use Mnemonic::*;
    moves_or_computes(mnemonic)
        || matches!(
            mnemonic,
            Cmova | Cmovae | Cmovb | Cmovbe | Cmove | Cmovg | Cmovge | Cmovl | Cmovle | Cmovne
        )
        || matches!(
            mnemonic,
            Cmovno | Cmovnp | Cmovns | Cmovo | Cmovp | Cmovs | Seta | Setae | Setb | Setbe | Sete
        )
        || matches!(
            mnemonic,
            Setg | Setge | Setl | Setle | Setne | Setno | Setnp | Setns | Seto | Setp | Sets
        )
        || moves_vectors(mnemonic)
}

fn moves_or_computes(mnemonic: Mnemonic) -> bool {
    use Mnemonic::*;
    matches!(
        mnemonic,
        Mov | Movzx | Movsx | Movsxd | Cdqe | Cwde | Cbw | Cdq | Cqo | Cwd | Xchg | Bswap
    ) || matches!(
        mnemonic,
        Add | Adc | Sub | Sbb | And | Or | Xor | Cmp | Test | Inc | Dec | Neg | Not | Imul | Mul
    ) || matches!(
        mnemonic,
        Shl | Shr | Sar | Sal | Rol | Ror | Shld | Shrd | Bt | Bts | Btr | Btc | Bsf | Bsr
    ) || matches!(mnemonic, Clc | Stc | Cmc | Cld)
}

fn moves_vectors(mnemonic: Mnemonic) -> bool {
    use Mnemonic::*;
    matches!(
        mnemonic,
        Pxor | Xorps | Xorpd | Movaps | Movapd | Movups | Movdqa | Movdqu | Movd | Movq | Pand
    ) || matches!(
        mnemonic,
        Por | Pandn | Andps | Andpd | Orps | Orpd | Movhlps | Movlhps | Pshufd | Paddd | Paddq
    ) || matches!(
        mnemonic,
        Punpcklqdq | Punpckldq | Unpcklps | Unpcklpd | Unpckhpd | Psubd | Psubq | Pcmpeqd
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decoded(bytes: &[u8]) -> Option<Decoded> {
        let mut block = Decoded::new();
        block.read(Address(0x1000), bytes).then_some(block)
    }

    #[test]
    fn only_what_cannot_fault_makes_the_next_instruction_certain() {
        // xor eax,eax; lea rcx,[rdi+8]; mov rdx,[rdi]; test eax,eax; ret
        let bytes = [
            0x31, 0xc0, 0x48, 0x8d, 0x4f, 0x08, 0x48, 0x8b, 0x17, 0x85, 0xc0, 0xc3,
        ];
        let block = decoded(&bytes).expect("a block");
        assert_eq!(
            block.certain,
            [Address(0x1000), Address(0x1002), Address(0x1006)]
        );
        assert_eq!((block.first, block.leaves), (2, Leaves::ForGood));
    }

    #[test]
    fn the_stack_is_there() {
        // Three bytes behind each: what follows is certain if the first is.
        let is_certain = |first: &[u8]| {
            let block = decoded(&[first, &[0x48, 0x89, 0xc8]].concat()).expect("a block");
            block.certain.len() == 2
        };
        let certain: [(&str, &[u8]); 4] = [
            ("mov rax, [rsp+8]", &[0x48, 0x8b, 0x44, 0x24, 0x08]),
            ("mov [rsp-8], edi", &[0x89, 0x7c, 0x24, 0xf8]),
            (
                "add dword ptr [rsp+120], 1",
                &[0x83, 0x44, 0x24, 0x78, 0x01],
            ),
            (
                "cmp byte ptr [rsp+400], 0",
                &[0x80, 0xbc, 0x24, 0x90, 0x01, 0, 0, 0],
            ),
        ];
        for (name, bytes) in certain {
            assert!(is_certain(bytes), "{name}");
        }
        let uncertain: [(&str, &[u8]); 7] = [
            ("mov rax, [rsp+rcx]", &[0x48, 0x8b, 0x04, 0x0c]),
            ("mov rax, fs:[rsp+8]", &[0x64, 0x48, 0x8b, 0x44, 0x24, 0x08]),
            ("mov rax, [rbp+8]", &[0x48, 0x8b, 0x45, 0x08]),
            ("mov rax, [r12+8]", &[0x49, 0x8b, 0x44, 0x24, 0x08]),
            ("div dword ptr [rsp+8]", &[0xf7, 0x74, 0x24, 0x08]),
            ("movaps xmm0, [rsp+8]", &[0x0f, 0x28, 0x44, 0x24, 0x08]),
            ("push qword ptr [rsp+8]", &[0xff, 0x74, 0x24, 0x08]),
        ];
        for (name, bytes) in uncertain {
            assert!(!is_certain(bytes), "{name}");
        }
    }

    #[test]
    fn what_may_fault() {
        let faulting: [(&str, &[u8]); 8] = [
            ("push rax", &[0x50]),
            ("div ecx", &[0xf7, 0xf1]),
            ("idiv rcx", &[0x48, 0xf7, 0xf9]),
            ("ud2", &[0x0f, 0x0b]),
            ("syscall", &[0x0f, 0x05]),
            ("mov ds, eax", &[0x8e, 0xd8]),
            ("divsd xmm0, xmm1", &[0xf2, 0x0f, 0x5e, 0xc1]),
            ("rep stosb", &[0xf3, 0xaa]),
        ];
        for (name, bytes) in faulting {
            let mut decoder = Decoder::with_ip(64, bytes, 0, DecoderOptions::NONE);
            assert!(!cannot_fault(&decoder.decode()), "{name}");
        }
    }

    #[test]
    fn a_cut_instruction_is_no_block() {
        assert!(decoded(&[0x48, 0x8d, 0x4f]).is_none());
        assert!(decoded(&[]).is_none());
    }

    #[test]
    fn calls_and_faults_are_no_ends_behind_which_nothing_runs() {
        assert_eq!(
            decoded(&[0xe8, 0, 0, 0, 0]).map(|b| b.leaves),
            Some(Leaves::Calls)
        );
        assert_eq!(decoded(&[0xcc]).map(|b| b.leaves), Some(Leaves::Calls));
        assert_eq!(
            decoded(&[0x0f, 0x0b]).map(|b| b.leaves),
            Some(Leaves::ForGood)
        );
        assert_eq!(
            decoded(&[0x74, 0x05]).map(|b| b.leaves),
            Some(Leaves::RunsOn)
        );
    }
}
