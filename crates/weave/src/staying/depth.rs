//! How deep the stack of a function is where it calls others.
//!
//! Forwards over the flow of the function: how far below its return address the stack pointer is, where that is the
//! same on all ways and follows from pushes, pops and constants. Where a function calls everybody at one depth,
//! its return address says where on the stack that is to which its call under way returns. O(instructions ×
//! 2): what is known of a block becomes unknown once at most.

use iced_x86::{Instruction, Mnemonic, OpKind, Register};
use tomo_program::FunctionView;

use super::code::Code;
use crate::block::is_call;

/// How many bytes below the return address; unknown where it has no constant.
type Depth = Option<i64>;

/// How many bytes below its own return address those of all its calls lie, if that is the same for all.
pub(crate) fn of_calls(function: &FunctionView<'_>, codes: &[Code<'_>]) -> Option<u32> {
    let mut starts: Vec<Option<Depth>> = vec![None; codes.len()];
    let first = function.position_of(function.entry_block()?.id())?;
    let mut ways = vec![Vec::new(); codes.len()];
    for edge in function.edges() {
        let to = edge.block().and_then(|block| function.position_of(block));
        if let (Some(from), Some(to)) = (function.position_of(edge.from), to) {
            ways[from].push(to);
        }
    }
    let mut waiting = vec![(first, Some(0))];
    while let Some((block, depth)) = waiting.pop() {
        let start = &mut starts[block];
        let joined = match *start {
            Some(known) if known != depth => None,
            _ => depth,
        };
        if *start != Some(joined) {
            *start = Some(joined);
            let end = codes[block].instructions().iter().fold(joined, behind);
            waiting.extend(ways[block].iter().map(|way| (*way, end)));
        }
    }
    let mut depths = codes.iter().zip(&starts).filter_map(|(code, start)| {
        let (last, before) = code.instructions().split_last()?;
        let start = (*start)?;
        is_call(last).then(|| before.iter().fold(start, behind))
    });
    let depth = depths.next()??;
    let same = depths.all(|other| other == Some(depth));
    // The word that a call pushes lies below.
    u32::try_from(depth + 8)
        .ok()
        .filter(|depth| same && *depth < 1 << 30)
}

/// The depth behind an instruction.
fn behind(before: Depth, instruction: &Instruction) -> Depth {
    let before = before?;
    if is_call(instruction) {
        return Some(before);
    }
    let pushes = matches!(
        instruction.mnemonic(),
        Mnemonic::Push | Mnemonic::Pop | Mnemonic::Pushfq | Mnemonic::Popfq
    );
    let to_stack = instruction.op_count() > 0
        && instruction.op0_kind() == OpKind::Register
        && instruction.op0_register().full_register() == Register::RSP;
    if pushes {
        let pops_pointer = instruction.mnemonic() == Mnemonic::Pop && to_stack;
        let change = i64::from(instruction.stack_pointer_increment());
        return (!pops_pointer).then_some(before - change);
    }
    if instruction.stack_pointer_increment() != 0 || instruction.mnemonic() == Mnemonic::Leave {
        return None;
    }
    if !to_stack || matches!(instruction.mnemonic(), Mnemonic::Cmp | Mnemonic::Test) {
        return Some(before);
    }
    let is_constant = instruction.op_count() == 2 && instruction.op1_kind() != OpKind::Register;
    let constant = || instruction.immediate(1).cast_signed();
    match instruction.mnemonic() {
        Mnemonic::Sub if is_constant && is_immediate(instruction) => Some(before + constant()),
        Mnemonic::Add if is_constant && is_immediate(instruction) => Some(before - constant()),
        Mnemonic::Lea
            if instruction.memory_base() == Register::RSP
                && instruction.memory_index() == Register::None =>
        {
            Some(before - instruction.memory_displacement64().cast_signed())
        }
        _ => None,
    }
}

fn is_immediate(instruction: &Instruction) -> bool {
    matches!(
        instruction.op1_kind(),
        OpKind::Immediate8to64 | OpKind::Immediate32to64
    )
}

#[cfg(test)]
mod tests {
    use super::behind;
    use iced_x86::{Decoder, DecoderOptions};

    fn depth(bytes: &[u8]) -> Option<i64> {
        let mut decoder = Decoder::new(64, bytes, DecoderOptions::NONE);
        decoder
            .iter()
            .try_fold(0, |depth, one| behind(Some(depth), &one))
    }

    #[test]
    fn pushes_pops_and_constants_are_followed() {
        assert_eq!(depth(&[0x55, 0x53]), Some(16), "push rbp; push rbx");
        assert_eq!(depth(&[0x55, 0x5b]), Some(0), "push rbp; pop rbx");
        assert_eq!(depth(&[0x48, 0x83, 0xec, 0x28]), Some(40), "sub rsp, 40");
        assert_eq!(depth(&[0x48, 0x83, 0xc4, 0x80]), Some(128), "add rsp, -128");
        assert_eq!(
            depth(&[0x48, 0x81, 0xec, 0, 1, 0, 0]),
            Some(256),
            "sub rsp, 256"
        );
        assert_eq!(
            depth(&[0x48, 0x8d, 0x64, 0x24, 0xf8]),
            Some(8),
            "lea rsp, [rsp - 8]"
        );
        assert_eq!(depth(&[0x68, 1, 0, 0, 0]), Some(8), "push 1");
    }

    #[test]
    fn what_is_no_constant_is_unknown() {
        assert_eq!(depth(&[0x48, 0x29, 0xc4]), None, "sub rsp, rax");
        assert_eq!(depth(&[0x48, 0x83, 0xe4, 0xf0]), None, "and rsp, -16");
        assert_eq!(depth(&[0x48, 0x89, 0xec]), None, "mov rsp, rbp");
        assert_eq!(depth(&[0x5c]), None, "pop rsp");
        assert_eq!(depth(&[0xc9]), None, "leave");
        assert_eq!(
            depth(&[0x55, 0x89, 0xe5]),
            Some(8),
            "push rbp; mov ebp, esp"
        );
    }
}
