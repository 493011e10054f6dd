//! System calls that a module makes itself and that may come back in two processes, or never: what is behind one
//! runs otherwise than what is in front of it, so the block ends there.
//!
//! Which one it is stands in `eax`. Where it is not certain that it is another one, it may be one of these.

use iced_x86::{Instruction, Mnemonic, OpKind, Register};

/// Those that come back twice: `clone`, `fork`, `vfork`, `clone3`.
const FORKS: [u32; 4] = [56, 57, 58, 435];
/// Those that do not come back here: `rt_sigreturn`, `execve`, `exit`, `exit_group`, `execveat`.
const ENDS: [u32; 5] = [15, 59, 60, 231, 322];

/// What is known of `eax` while instructions are decoded one behind another: what it was given, and by the instruction that ends
/// where.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Number(Option<(u32, u32)>);

/// A system call.
#[derive(Clone, Copy, Debug)]
pub(super) struct Call {
    /// Where its instruction ends.
    pub(super) end: u32,
    /// Where the instruction ends that said that it is a harmless one, if one did.
    harmless: Option<u32>,
}

impl Call {
    /// Whether it may come back twice or never, where `is_entered` says whether control may come from elsewhere to what lies between.
    pub(super) fn is_unsure(&self, is_entered: impl Fn(u32, u32) -> bool) -> bool {
        self.harmless
            .is_none_or(|since| is_entered(since, self.end))
    }
}

impl Number {
    /// The instruction that ends at `end` was decoded. The system call that it makes, if it makes one.
    pub(super) fn step(&mut self, instruction: &Instruction, end: u32) -> Option<Call> {
        match instruction.mnemonic() {
            Mnemonic::Syscall => {
                let is_harmless = |number| !FORKS.contains(&number) && !ENDS.contains(&number);
                let known = self.0.take().filter(|(number, _)| is_harmless(*number));
                let harmless = known.map(|(_, since)| since);
                return Some(Call { end, harmless });
            }
            // Of 32 bits: other numbers.
            Mnemonic::Sysenter => {
                return Some(Call {
                    end,
                    harmless: None,
                });
            }
            Mnemonic::Int if instruction.immediate8() == 0x80 => {
                return Some(Call {
                    end,
                    harmless: None,
                });
            }
            _ => {}
        }
        let gives = instruction.mnemonic() == Mnemonic::Mov
            && instruction.op0_register() == Register::EAX
            && instruction.op1_kind() == OpKind::Immediate32;
        if gives {
            self.0 = Some((instruction.immediate32(), end));
        } else if !keeps(instruction) {
            self.0 = None;
        }
        None
    }
}

/// Whether the instruction is one of those that write nothing but what they name first, and that is not `rax`.
fn keeps(instruction: &Instruction) -> bool {
    use Mnemonic::{
        Add, And, Cmp, Endbr64, Lea, Mov, Movsx, Movsxd, Movzx, Nop, Or, Sub, Test, Xor,
    };
    let is_known = matches!(
        instruction.mnemonic(),
        Add | And
            | Cmp
            | Endbr64
            | Lea
            | Mov
            | Movsx
            | Movsxd
            | Movzx
            | Nop
            | Or
            | Sub
            | Test
            | Xor
    );
    let writes_rax = instruction.op_count() > 0
        && instruction.op0_kind() == OpKind::Register
        && instruction.op0_register().full_register() == Register::RAX;
    is_known && !writes_rax
}

#[cfg(test)]
mod tests {
    use iced_x86::{Decoder, DecoderOptions};

    use super::*;

    /// Whether the last of these instructions is a call that may come back twice or never.
    fn is_unsure(bytes: &[u8]) -> Option<bool> {
        let mut number = Number::default();
        let mut last = None;
        for instruction in Decoder::new(64, bytes, DecoderOptions::NONE) {
            last = number.step(&instruction, instruction.next_ip32());
        }
        last.map(|call| call.is_unsure(|_, _| false))
    }

    #[test]
    fn which_call_it_is_has_to_be_certain() {
        let cases: [(&[u8], _); 12] = [
            (&[0xb8, 1, 0, 0, 0, 0x0f, 0x05], Some(false)),
            (&[0xb8, 57, 0, 0, 0, 0x0f, 0x05], Some(true)),
            (&[0xb8, 231, 0, 0, 0, 0x0f, 0x05], Some(true)),
            (&[0x0f, 0x05], Some(true)),
            (&[0xb8, 1, 0, 0, 0, 0x89, 0xf7, 0x0f, 0x05], Some(false)),
            // `mov eax, edi`, `pop rax`, `cwde`, `xchg edi, eax`, `mov al, 57`: it may be another one by then.
            (&[0xb8, 1, 0, 0, 0, 0x89, 0xf8, 0x0f, 0x05], Some(true)),
            (&[0xb8, 1, 0, 0, 0, 0x58, 0x0f, 0x05], Some(true)),
            (&[0xb8, 1, 0, 0, 0, 0x98, 0x0f, 0x05], Some(true)),
            (&[0xb8, 1, 0, 0, 0, 0x97, 0x0f, 0x05], Some(true)),
            (&[0xb8, 1, 0, 0, 0, 0xb0, 57, 0x0f, 0x05], Some(true)),
            (&[0xb8, 1, 0, 0, 0, 0xcd, 0x80], Some(true)),
            (&[0xcc], None),
        ];
        for (bytes, expected) in cases {
            assert_eq!(is_unsure(bytes), expected, "{bytes:x?}");
        }
    }

    #[test]
    fn who_comes_from_elsewhere_may_bring_another_number() {
        let mut number = Number::default();
        let mut decoder = Decoder::new(64, &[0xb8, 1, 0, 0, 0, 0x0f, 0x05], DecoderOptions::NONE);
        let mut step = || {
            let instruction = decoder.decode();
            number.step(&instruction, instruction.next_ip32())
        };
        assert!(step().is_none());
        let call = step().expect("a system call");
        assert!(call.is_unsure(|start, end| (start, end) == (5, 7)));
    }
}
