//! Addresses that instructions hold, and what becomes of them.

use iced_x86::{Decoder, DecoderOptions, Instruction, Mnemonic, OpKind, Register};

use crate::Address;

/// An address that an instruction holds.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Constant {
    pub(crate) address: Address,
    /// Whether it is the displacement of an operand with an index, which compilers may have moved by
    /// the index's lowest value.
    pub(crate) indexed: bool,
}

/// Whether the instructions push a register, or use one as the base of memory or its index, to which one of them has given an
/// address that `is_label`.
pub(crate) fn gives_away(bytes: &[u8], start: Address, is_label: impl Fn(Address) -> bool) -> bool {
    let mut held: Vec<Register> = Vec::new();
    let mut instruction = Instruction::default();
    let mut decoder = Decoder::with_ip(64, bytes, start.0, DecoderOptions::NONE);
    while decoder.can_decode() {
        decoder.decode_out(&mut instruction);
        let (is_address, to) = (
            instruction.mnemonic() == Mnemonic::Lea,
            instruction.op0_register().full_register(),
        );
        let parts = [instruction.memory_base(), instruction.memory_index()];
        let is_read = !is_address && parts.iter().any(|part| held.contains(part));
        if is_read || instruction.mnemonic() == Mnemonic::Push && held.contains(&to) {
            return true;
        }
        held.retain(|register| *register != to);
        let address = Address(instruction.ip_rel_memory_address());
        if is_address && instruction.is_ip_rel_memory_operand() && is_label(address) {
            held.push(to);
        }
    }
    false
}

/// Addresses that an instruction holds: of its memory operand, where that is fixed but for an
/// index, and its immediates. In position-independent code, only the first is one.
pub(crate) fn constants_of(
    instruction: &Instruction,
    position_independent: bool,
) -> impl Iterator<Item = Constant> {
    let plain = |address| Constant {
        address: Address(address),
        indexed: false,
    };
    let relative = instruction
        .is_ip_rel_memory_operand()
        .then(|| plain(instruction.ip_rel_memory_address()));
    let indexed = !position_independent && instruction.memory_index() != Register::None;
    let indexed = indexed.then(|| Constant {
        address: Address(instruction.memory_displacement64()),
        indexed: true,
    });
    let immediate = (0..instruction.op_count()).filter(|_| !position_independent);
    let immediate = immediate.filter(|&operand| {
        matches!(
            instruction.op_kind(operand),
            OpKind::Immediate32 | OpKind::Immediate64 | OpKind::Immediate32to64
        )
    });
    let immediate = immediate
        .map(|operand| plain(instruction.immediate(operand)))
        .next();
    [relative, indexed, immediate].into_iter().flatten()
}
