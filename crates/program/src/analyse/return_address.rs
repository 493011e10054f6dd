//! Functions that take their own return address away or put another one in its place, as no compiler's code does, those that are
//! entered behind a call of theirs, and those that keep it, as `setjmp` does.
//!
//! Such a function comes back elsewhere, or not at all: neither its graph nor that of its callers can
//! be relied upon. Looked at is the block of the entry only (of those that keep it also what is behind that), where the
//! distance of the stack pointer from the return address is known without any analysis of flow: an instruction that raises the
//! stack pointer over the return address drops it, one that writes there puts another one in its place. Linear in the blocks'
//! instructions.

use iced_x86::{
    Decoder, DecoderOptions, Instruction, InstructionInfoFactory, Mnemonic, OpAccess, OpKind,
    Register,
};

use rustc_hash::FxHashSet;

use super::code::Code;
use super::explore::{Exit, RawBlock};
use super::fragment::Fragment;
use super::state::State;

/// The functions, by owner, of which control comes back elsewhere than their callers think, or more often.
pub(crate) struct Unusual {
    /// Those that do not come back to where they were called: they drop their return address, or jump to one that does.
    pub(crate) strays: FxHashSet<u32>,
    /// Those that keep it, and the stack pointer, in memory that somebody has named, and those that jump to one that does: they
    /// may come back more than once, whatever they are called.
    pub(crate) keepers: FxHashSet<u32>,
}

impl Unusual {
    pub(crate) fn of(state: &State<'_>) -> Self {
        let code = state.tables.code;
        let all = |is: &dyn Fn(&Fragment) -> bool| {
            let fragments = state.fragments.iter().enumerate();
            let found = fragments.filter(|(_, fragment)| is(fragment));
            with_those_that_lead_there(state, found.map(|(index, _)| state.owner[index]).collect())
        };
        let keeps = |fragment: &Fragment| keeps(beginning(code, fragment));
        Self {
            strays: all(&Fragment::drops_return_address),
            keepers: all(&keeps),
        }
    }
}

/// These functions, and all that jump to the start of one of them.
fn with_those_that_lead_there(state: &State<'_>, mut found: FxHashSet<u32>) -> FxHashSet<u32> {
    let mut before = 0;
    while found.len() > before {
        before = found.len();
        let fragments = state.fragments.iter().enumerate();
        let lead_there = fragments.filter(|(_, fragment)| {
            let mut targets = fragment.leaving.iter().copied();
            targets.any(|at| {
                let to = state.find(at).filter(|&to| state.fragments[to].start == at);
                to.is_some_and(|to| found.contains(&state.owner[to]))
            })
        });
        let new: Vec<u32> = lead_there.map(|(index, _)| state.owner[index]).collect();
        found.extend(new);
    }
    found
}

/// Whether a function that would start with the fragment would take its return address away. (Where
/// the kernel starts the program there is none.)
pub(crate) fn would_be_taken(code: &Code<'_>, fragment: &Fragment) -> bool {
    let is_start = code.binary.entry() == Some(code.address(fragment.start));
    !is_start && first_bytes(code, fragment).is_some_and(is_dropped)
}

/// The block that starts with the fragment, if there is one.
fn first_bytes<'a>(code: &Code<'a>, fragment: &Fragment) -> Option<&'a [u8]> {
    let starts_here = |block: &&RawBlock| block.start == fragment.start;
    let first = fragment.blocks.first().filter(starts_here)?;
    Some(code.bytes(first.start, first.end))
}

/// The blocks with which the fragment begins, as far as each may lead to the one behind it.
fn beginning<'a>(code: &Code<'a>, fragment: &Fragment) -> &'a [u8] {
    /// More are not looked at: who keeps a return address does so at once.
    const MOST: usize = 4;
    let mut end = fragment.start;
    for block in fragment.blocks.iter().take(MOST) {
        if block.start != end {
            break;
        }
        end = block.end;
        if !matches!(block.exit, Exit::Fallthrough | Exit::Branch(_)) {
            break;
        }
    }
    code.bytes(fragment.start, end)
}

/// Whether the fragment begins as functions with a split stack do (gcc's `-fsplit-stack`): they compare the stack pointer with the
/// end of their piece, and where that is reached call a function that goes on in the middle of them, behind the `ret` there. Linkers
/// make that comparison one that always comes out alike, where what is called knows of no pieces.
pub(crate) fn splits_stack(code: &Code<'_>, fragment: &Fragment) -> bool {
    /// Where the C library keeps the end of the piece.
    const END_OF_PIECE: u64 = 0x70;
    let Some(block) = fragment.blocks.first() else {
        return false;
    };
    /// What gold writes over the comparison: `stc`, and a `nop` of eight bytes.
    const ALIKE: [u8; 9] = [0xf9, 0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0];
    let bytes = code.bytes(block.start, block.end);
    if bytes.starts_with(&ALIKE) {
        return true;
    }
    // Without the prefix of the segment nothing need be decoded.
    bytes.contains(&0x64)
        && Decoder::new(64, bytes, DecoderOptions::NONE)
            .iter()
            .any(|instruction| {
                instruction.mnemonic() == Mnemonic::Cmp
                    && instruction.segment_prefix() == Register::FS
                    && instruction.memory_displacement64() == END_OF_PIECE
            })
}

/// Whether control leaves these instructions, at the start of a function, without the return address
/// on the stack. One that is kept in a register meanwhile, and put back from there, does not count.
fn is_dropped(bytes: &[u8]) -> bool {
    let mut instruction = Instruction::default();
    let mut decoder = Decoder::new(64, bytes, DecoderOptions::NONE);
    let mut factory = InstructionInfoFactory::new();
    // How far the stack pointer is below the return address.
    let mut depth = 0_i64;
    let mut kept = None;
    while decoder.can_decode() {
        decoder.decode_out(&mut instruction);
        if writes_at(&instruction, depth, &mut factory) {
            return true;
        }
        let Some(lower) = lowered_by(&instruction) else {
            break;
        };
        if kept.is_some_and(|register| is_push_of(&instruction, register)) {
            kept = None;
        } else if kept.is_some_and(|register| lower != 0 || writes(&instruction, register)) {
            return true;
        } else if depth == 0 && instruction.mnemonic() == Mnemonic::Pop {
            kept = Some(instruction.op0_register()).filter(|register| register.is_gpr64());
            if kept.is_none() {
                return true;
            }
        } else {
            depth += lower;
        }
        if depth < 0 {
            return true;
        }
    }
    kept.is_some()
}

/// What a register has been given.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Given {
    ReturnAddress,
    StackPointer,
}

/// Whether these instructions, at the start of a function, store the return address and the stack pointer behind the same register. What
/// branches jump over counts as if it were executed.
fn keeps(bytes: &[u8]) -> bool {
    let mut instruction = Instruction::default();
    let mut decoder = Decoder::new(64, bytes, DecoderOptions::NONE);
    let (mut given, mut stored) = (Vec::new(), Vec::new());
    // How far the stack pointer is below the return address.
    let mut depth = 0_i64;
    while decoder.can_decode() {
        decoder.decode_out(&mut instruction);
        let (to, base) = (instruction.op0_register(), instruction.memory_base());
        let has = |register| given.iter().find(|(known, _)| *known == register);
        let is_store = instruction.op0_kind() == OpKind::Memory && base != Register::RSP;
        match (instruction.mnemonic(), given_by(&instruction, depth)) {
            (Mnemonic::Mov, _) if is_store => {
                let from = instruction.op1_register();
                let what = has(from).map(|(_, what)| *what);
                let what = what.or((from == Register::RSP).then_some(Given::StackPointer));
                stored.extend(what.map(|what| (base, what)));
            }
            // A secret that is mixed in, or nothing that is written.
            (Mnemonic::Xor | Mnemonic::Rol | Mnemonic::Ror | Mnemonic::Push, _) => {}
            (_, what) => {
                given.retain(|(known, _)| *known != to.full_register());
                given.extend(what.map(|what| (to, what)));
            }
        }
        let Some(lower) = lowered_by(&instruction) else {
            break;
        };
        depth += lower;
    }
    let has_both = |base| {
        let both = [Given::ReturnAddress, Given::StackPointer];
        both.iter().all(|what| stored.contains(&(base, *what)))
    };
    stored.iter().any(|(base, _)| has_both(*base))
}

/// What the instruction puts into its first operand, a register, if the stack pointer is this far below the return address.
fn given_by(instruction: &Instruction, depth: i64) -> Option<Given> {
    let on_stack = instruction.memory_base() == Register::RSP
        && instruction.memory_index() == Register::None
        && instruction.segment_prefix() == Register::None;
    let is_there = instruction.memory_displacement64().cast_signed() == depth;
    match instruction.mnemonic() {
        _ if !instruction.op0_register().is_gpr64() => None,
        Mnemonic::Mov if on_stack && is_there => Some(Given::ReturnAddress),
        Mnemonic::Pop if depth == 0 => Some(Given::ReturnAddress),
        Mnemonic::Mov if instruction.op1_register() == Register::RSP => Some(Given::StackPointer),
        Mnemonic::Lea if on_stack => Some(Given::StackPointer),
        _ => None,
    }
}

/// By how many bytes the instruction lowers the stack pointer, where that is plain to see and control
/// goes on behind it.
fn lowered_by(instruction: &Instruction) -> Option<i64> {
    let amount = |index| instruction.immediate(index).cast_signed();
    let on_stack =
        instruction.op0_kind() == OpKind::Register && instruction.op0_register() == Register::RSP;
    match instruction.mnemonic() {
        Mnemonic::Push | Mnemonic::Pop => {
            let up = i64::from(instruction.stack_pointer_increment());
            (instruction.mnemonic() == Mnemonic::Push || !on_stack).then_some(-up)
        }
        Mnemonic::Sub if on_stack && is_immediate(instruction) => Some(amount(1)),
        Mnemonic::Add if on_stack && is_immediate(instruction) => Some(-amount(1)),
        Mnemonic::Lea if on_stack && is_moved_stack(instruction) => {
            Some(-instruction.memory_displacement64().cast_signed())
        }
        _ if on_stack && !matches!(instruction.mnemonic(), Mnemonic::Cmp | Mnemonic::Test) => None,
        _ if instruction.is_stack_instruction() => None,
        _ => Some(0),
    }
}

/// Whether the instruction writes to the eight bytes that are this far above the stack pointer.
fn writes_at(instruction: &Instruction, depth: i64, factory: &mut InstructionInfoFactory) -> bool {
    if instruction.memory_base() != Register::RSP || instruction.is_stack_instruction() {
        return false;
    }
    let memory = factory.info(instruction).used_memory().iter();
    let mut written = memory.filter(|used| {
        let reads = matches!(
            used.access(),
            OpAccess::Read | OpAccess::CondRead | OpAccess::NoMemAccess
        );
        !reads && used.base() == Register::RSP && used.index() == Register::None
    });
    written.any(|used| {
        let from = used.displacement().cast_signed();
        from < depth + 8 && from + used.memory_size().size().max(1) as i64 > depth
    })
}

fn is_immediate(instruction: &Instruction) -> bool {
    matches!(
        instruction.op1_kind(),
        OpKind::Immediate8to64 | OpKind::Immediate32to64
    )
}

fn is_moved_stack(instruction: &Instruction) -> bool {
    instruction.memory_base() == Register::RSP && instruction.memory_index() == Register::None
}

fn is_push_of(instruction: &Instruction, register: Register) -> bool {
    instruction.mnemonic() == Mnemonic::Push && instruction.op0_register() == register
}

fn writes(instruction: &Instruction, register: Register) -> bool {
    let mut factory = InstructionInfoFactory::new();
    let used = factory.info(instruction).used_registers().iter();
    used.filter(|used| used.register().full_register() == register)
        .any(|used| !matches!(used.access(), OpAccess::Read | OpAccess::CondRead))
}

#[cfg(test)]
mod tests {
    use super::{is_dropped, keeps};

    #[test]
    fn what_takes_the_return_address_away() {
        for (code, what) in [
            (&[0x58, 0xff, 0xe0][..], "pop rax; jmp rax"),
            (&[0x53, 0x5b, 0x58, 0xc3], "push rbx; pop rbx; pop rax; ret"),
            (&[0x48, 0x83, 0xc4, 8, 0xc3], "add rsp, 8; ret"),
            (
                &[0x48, 0x8d, 0x64, 0x24, 8, 0xc3],
                "lea rsp, [rsp + 8]; ret",
            ),
            (
                &[0x58, 0x48, 0xff, 0xc0, 0x50, 0xc3],
                "pop rax; inc rax; push rax; ret",
            ),
            (&[0x58, 0x51, 0xc3], "pop rax; push rcx; ret"),
            (&[0x8f, 0x00, 0xc3], "pop [rax]; ret"),
            (&[0x48, 0x89, 0x04, 0x24, 0xc3], "mov [rsp], rax; ret"),
            (&[0x48, 0x83, 0x04, 0x24, 4, 0xc3], "add [rsp], 4; ret"),
            (
                &[0x50, 0x48, 0x89, 0x44, 0x24, 8, 0x58, 0xc3],
                "push rax; mov [rsp + 8], rax; pop rax; ret",
            ),
        ] {
            assert!(is_dropped(code), "{what}");
        }
    }

    #[test]
    fn what_keeps_it() {
        // mov [rdi], rbx; …
        let saves = [0x48, 0x89, 0x1f];
        let musl: &[u8] = &[
            0x48, 0x8d, 0x54, 0x24, 8, // lea rdx, [rsp + 8]
            0x48, 0x89, 0x57, 48, // mov [rdi + 48], rdx
            0x48, 0x8b, 0x14, 0x24, // mov rdx, [rsp]
            0x48, 0x89, 0x57, 56, // mov [rdi + 56], rdx
            0x31, 0xc0, 0xc3, // xor eax, eax; ret
        ];
        assert!(keeps(&[&saves, musl].concat()));
        let old: &[u8] = &[
            0x5e, // pop rsi
            0x48, 0x89, 0x67, 16,   // mov [rdi + 16], rsp
            0x56, // push rsi
            0x48, 0x89, 0x77, 56, // mov [rdi + 56], rsi
            0xc3,
        ];
        assert!(keeps(old));
        let mixed: &[u8] = &[
            0x48, 0x8d, 0x54, 0x24, 8, // lea rdx, [rsp + 8]
            0x64, 0x48, 0x33, 0x14, 0x25, 0x30, 0, 0, 0, // xor rdx, fs:[0x30]
            0x48, 0xc1, 0xc2, 0x11, // rol rdx, 17
            0x48, 0x89, 0x57, 48, // mov [rdi + 48], rdx
            0x48, 0x8b, 0x04, 0x24, // mov rax, [rsp]
            0x64, 0x48, 0x33, 0x04, 0x25, 0x30, 0, 0, 0, // xor rax, fs:[0x30]
            0x48, 0x89, 0x47, 56, // mov [rdi + 56], rax
            0xc3,
        ];
        assert!(keeps(mixed));
        let branch: &[u8] = &[0x85, 0xf6, 0x74, 0x07, 0xc7, 0x47, 64, 1, 0, 0, 0]; // test esi, esi; je; mov [rdi + 64], 1
        assert!(keeps(&[branch, musl].concat()));
        // The return address alone, as who notes by whom memory was asked for; both, but in places of two owners.
        assert!(!keeps(&[0x48, 0x8b, 0x04, 0x24, 0x48, 0x89, 0x07, 0xc3]));
        let apart: &[u8] = &[
            0x48, 0x89, 0x27, // mov [rdi], rsp
            0x48, 0x8b, 0x04, 0x24, // mov rax, [rsp]
            0x48, 0x89, 0x06, // mov [rsi], rax
            0xc3,
        ];
        assert!(!keeps(apart));
        // Overwritten before it is stored.
        let lost: &[u8] = &[
            0x48, 0x89, 0x27, // mov [rdi], rsp
            0x48, 0x8b, 0x04, 0x24, // mov rax, [rsp]
            0x48, 0x89, 0xc8, // mov rax, rcx
            0x48, 0x89, 0x47, 8, // mov [rdi + 8], rax
            0xc3,
        ];
        assert!(!keeps(lost));
    }

    #[test]
    fn what_leaves_it() {
        for (code, what) in [
            (&[0x53, 0x5b, 0xc3][..], "push rbx; pop rbx; ret"),
            (
                &[0x5f, 0x0f, 0x05, 0x57, 0xc3],
                "pop rdi; syscall; push rdi; ret",
            ),
            (
                &[0x48, 0x83, 0xec, 8, 0x58, 0xc3],
                "sub rsp, 8; pop rax; ret",
            ),
            (
                &[0x48, 0x89, 0xdc, 0x58, 0xc3],
                "mov rsp, rbx; pop rax; ret",
            ),
            (&[0xc2, 8, 0], "ret 8"),
            (&[0x48, 0x8b, 0x04, 0x24, 0xc3], "mov rax, [rsp]; ret"),
            (
                &[0x50, 0x48, 0x89, 0x04, 0x24, 0x58, 0xc3],
                "push rax; mov [rsp], rax; pop rax; ret",
            ),
            (
                &[0x48, 0x89, 0x44, 0x24, 8, 0xc3],
                "mov [rsp + 8], rax; ret",
            ),
        ] {
            assert!(!is_dropped(code), "{what}");
        }
    }
}
