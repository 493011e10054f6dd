//! Where a thread in an image's trampolines is: each instruction that is said to have been moved must be that of the module,
//! and what may fault must be among them. Held against a decoder of its own.

use std::collections::BTreeSet;

use iced_x86::{Code, Decoder, DecoderOptions, FlowControl, Instruction, OpKind, Register};
use tomo_program::{Address, Binary};
use tomo_weave::WovenPredicates;
use tomo_wire::image::Image;
use tomo_wire::moved::Moved;

use crate::woven::Program;

/// An image's trampolines, and the program's own code.
struct Held<'h> {
    binary: Binary<'h>,
    code: &'h [u8],
    /// Where the trampolines are, as stated.
    start: u64,
}

impl Held<'_> {
    fn decoded(bytes: &[u8], address: u64) -> Instruction {
        Decoder::with_ip(64, bytes, address, DecoderOptions::NONE).decode()
    }

    fn executed(&self, offset: u32) -> Instruction {
        let bytes = &self.code[offset as usize..];
        Self::decoded(bytes, self.start.wrapping_add(offset.into()))
    }

    fn original(&self, address: u64) -> Instruction {
        let bytes = self.binary.code_at(Address(address));
        Self::decoded(bytes.expect("the module's code"), address)
    }
}

/// Whether what is executed does what the original did, wherever it is. Where control goes is proven elsewhere.
fn same(executed: &Instruction, original: &Instruction) -> bool {
    if original.flow_control() != FlowControl::Next {
        // Branches that are inverted or widened, and calls that are jumps to where they were.
        return executed.flow_control() != FlowControl::Next
            || memory(original).is_some() && memory(executed) == memory(original);
    }
    let operands = |one: &Instruction| -> Vec<(OpKind, Register)> {
        (0..one.op_count())
            .map(|at| (one.op_kind(at), one.op_register(at)))
            .collect()
    };
    executed.code() == original.code()
        && operands(executed) == operands(original)
        && memory(executed) == memory(original)
        && immediates(executed) == immediates(original)
}

fn immediates(one: &Instruction) -> Vec<u64> {
    let all = (0..one.op_count()).map(|at| one.try_immediate(at).unwrap_or(0));
    all.collect()
}

/// The memory that it uses: the registers, and the displacement, which is an address where it is counted from the instruction.
fn memory(one: &Instruction) -> Option<(Register, Register, Register, u32, u64)> {
    let uses = (0..one.op_count()).any(|at| one.op_kind(at) == OpKind::Memory);
    uses.then(|| {
        (
            one.segment_prefix(),
            one.memory_base(),
            one.memory_index(),
            one.memory_index_scale(),
            one.memory_displacement64(),
        )
    })
}

/// What the weaver adds uses memory of its own alone: by its distance, by that to `gs`, or of the stack.
fn is_own(one: &Instruction) -> bool {
    memory(one).is_none_or(|(segment, base, ..)| {
        segment == Register::GS
            || matches!(base, Register::RIP | Register::EIP | Register::RSP)
            // These use none.
            || matches!(one.code(), Code::Lea_r64_m | Code::Lea_r32_m)
            || matches!(one.code(), Code::Nop_rm16 | Code::Nop_rm32 | Code::Nop_rm64)
    })
}

/// Holds what is said of moved instructions against the image; gives how many there are.
pub(crate) fn prove(name: &str, program: &Program, woven: &WovenPredicates) -> usize {
    let (file, rows) = Moved::read(&woven.moved).expect("moved instructions");
    let header = Image::read(&woven.image, woven.image.len() as u64).expect("an image");
    assert_eq!(file.plan, header.plan, "{name}");
    let first = header.regions()[0].address.get();
    let at = header.trampolines.get() as usize;
    let held = Held {
        binary: program.binary(),
        code: &woven.image[at..at + header.trampolines_length.get() as usize],
        start: first.wrapping_add_signed(header.distance.get()),
    };
    let known: BTreeSet<u32> = rows.iter().map(|row| row.offset.get()).collect();
    for row in rows {
        let (offset, from) = (row.offset.get(), first + u64::from(row.from.get()));
        let (executed, original) = (held.executed(offset), held.original(from));
        assert!(
            same(&executed, &original),
            "{name}: {:?} at {offset:#x} is not {:?} at {from:#x}",
            executed.code(),
            original.code()
        );
        // What follows without being named is the weaver's.
        let (mut next, mut last) = (offset + executed.len() as u32, executed);
        while !known.contains(&next) && falls_through(&last) {
            last = held.executed(next);
            let own = !last.is_invalid() && is_own(&last);
            assert!(own, "{name}: {:?} at {next:#x} is not named", last.code());
            next += last.len() as u32;
        }
    }
    rows.len()
}

fn falls_through(one: &Instruction) -> bool {
    matches!(
        one.flow_control(),
        FlowControl::Next | FlowControl::ConditionalBranch
    )
}
