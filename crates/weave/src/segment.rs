//! Who keeps something of their own where `gs` leads. Probes that stay find what belongs to their thread there (the ABI leaves
//! it to nobody); a program that sets it, as Windows' programs have it, would have its data counted in.

use iced_x86::{Decoder, DecoderOptions, Instruction, Mnemonic, Register};
use rayon::prelude::*;
use tomo_program::{Address, FunctionView, Graphs, Reason, Status};

use crate::text::Text;

/// The first of the module's instructions, by function, that works with `gs`. Not where nothing but an address leads, which
/// is data as a rule: libraries of cryptography have constants, and the names of their authors, among their code.
pub(crate) fn first_use(text: &Text, graphs: &Graphs<'_>) -> Option<Address> {
    let functions: Vec<_> = graphs.functions().collect();
    let uses = functions
        .par_iter()
        .filter(|function| !matches!(function.status(), Status::Opaque(Reason::MaybeData)))
        .filter_map(|function| in_function(text, function));
    uses.find_first(|_| true)
}

fn in_function(text: &Text, function: &FunctionView<'_>) -> Option<Address> {
    function.blocks().find_map(|block| {
        let bytes = text.from(block.address())?.get(..block.size() as usize)?;
        may_have(bytes).then_some(())?;
        let mut decoder = Decoder::with_ip(64, bytes, block.address().0, DecoderOptions::NONE);
        let first = decoder.iter().find(is_use);
        first.map(|instruction| Address(instruction.ip()))
    })
}

/// Whether there is the prefix, or the second byte of what sets the register or its base.
fn may_have(bytes: &[u8]) -> bool {
    const PREFIX: u8 = 0x65;
    const BASE: u8 = 0xae;
    const MOVE: u8 = 0x8e;
    const POP: u8 = 0xa9;
    const LOAD: u8 = 0xb5;
    bytes
        .iter()
        .any(|byte| matches!(*byte, PREFIX | BASE | MOVE | POP | LOAD))
}

fn is_use(instruction: &Instruction) -> bool {
    let sets = match instruction.mnemonic() {
        // Filling has prefixes of all kinds.
        Mnemonic::Nop => return false,
        Mnemonic::Rdgsbase | Mnemonic::Wrgsbase | Mnemonic::Lgs => true,
        _ => instruction.op0_register() == Register::GS,
    };
    sets || instruction.segment_prefix() == Register::GS
}

#[cfg(test)]
mod tests {
    use super::*;

    fn uses(bytes: &[u8]) -> bool {
        let mut decoder = Decoder::new(64, bytes, DecoderOptions::NONE);
        let is = is_use(&decoder.decode());
        assert!(!is || may_have(bytes));
        is
    }

    #[test]
    fn what_works_with_the_register_is_told() {
        // mov rax, gs:[0]; wrgsbase rdi; rdgsbase rax; mov gs, eax.
        assert!(uses(b"\x65\x48\x8b\x04\x25\0\0\0\0"));
        assert!(uses(b"\xf3\x48\x0f\xae\xdf"));
        assert!(uses(b"\xf3\x48\x0f\xae\xc8"));
        assert!(uses(b"\x8e\xe8"));
        // pop gs; lgs eax, [rax].
        assert!(uses(b"\x0f\xa9"));
        assert!(uses(b"\x0f\xb5\x00"));
        // mov rax, fs:[0]; a nop with the prefix; mov eax, 0x65; wrfsbase rdi.
        assert!(!uses(b"\x64\x48\x8b\x04\x25\0\0\0\0"));
        assert!(!uses(b"\x65\x0f\x1f\x00"));
        assert!(!uses(b"\xb8\x65\0\0\0"));
        assert!(!uses(b"\xf3\x48\x0f\xae\xd7"));
    }
}
