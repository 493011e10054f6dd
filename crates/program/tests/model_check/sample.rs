//! A small program with one of everything, as the analysis could find it.

use tomo_program::dwarf::{Lines, Position};
use tomo_program::{
    Address, Block, Call, Callee, Edge, EdgeKind, Facts, Function, IndirectJump, Range, Reason,
    Resolution, Status,
};

fn range(start: u64, size: u64) -> Range {
    Range::sized(Address(start), size).expect("small addresses")
}

fn block(start: u64, size: u64, instructions: u32) -> Block {
    Block {
        range: range(start, size),
        instructions,
        forks_or_ends: false,
    }
}

fn edge(from: u32, to: u64, kind: EdgeKind) -> Edge {
    Edge {
        from,
        to: Address(to),
        kind,
    }
}

fn call(block: u32, address: u64, callee: Callee) -> Call {
    Call {
        block,
        address: Address(address),
        callee,
        returns: true,
        void: false,
    }
}

/// A loop around a call, with a cold part that calls what does not return.
fn first() -> Function {
    use EdgeKind::{CallFallthrough, Jump, LandingPad, NotTaken, Taken};
    Function {
        entry: Address(0x1000),
        ranges: vec![range(0x1000, 0x28), range(0x2000, 0x10)],
        name: Some("_ZN2ns4spinEi".into()),
        status: Status::Exact,
        returns: true,
        returns_again: false,
        blocks: vec![
            block(0x1000, 8, 3),
            block(0x1008, 6, 2),
            block(0x100e, 0x10, 4),
            block(0x101e, 10, 3),
            block(0x2000, 0x10, 2),
        ],
        edges: vec![
            edge(0, 0x1008, NotTaken),
            edge(0, 0x101e, Taken),
            edge(1, 0x100e, CallFallthrough),
            edge(1, 0x2000, LandingPad),
            edge(2, 0x1008, Jump),
        ],
        calls: vec![
            call(1, 0x1009, Callee::Import(0)),
            Call {
                returns: false,
                void: true,
                ..call(4, 0x200b, Callee::Function(Address(0x1030)))
            },
        ],
        indirect_jumps: vec![],
        branches: 1,
    }
}

/// A switch that is not understood, behind one that is.
fn second() -> Function {
    use EdgeKind::{Fallthrough, JumpTable, TailCall};
    Function {
        entry: Address(0x1030),
        ranges: vec![range(0x1030, 0x30)],
        name: Some("_ZN4demo6second17h0123456789abcdefE".into()),
        status: Status::Partial(Reason::UnresolvedIndirectJump),
        returns: false,
        returns_again: false,
        blocks: vec![
            block(0x1030, 0x10, 3),
            block(0x1040, 4, 2),
            block(0x1044, 0x1c, 4),
        ],
        edges: vec![
            edge(0, 0x1040, JumpTable),
            edge(0, 0x1044, JumpTable),
            edge(1, 0x1044, Fallthrough),
            edge(2, 0x1000, TailCall),
        ],
        calls: vec![],
        indirect_jumps: vec![
            jump(0, 0x103d, Resolution::GuardedTable, None),
            jump(2, 0x105e, Resolution::Unresolved, Some(1)),
        ],
        branches: 0,
    }
}

fn jump(block: u32, address: u64, resolution: Resolution, import: Option<u32>) -> IndirectJump {
    IndirectJump {
        block,
        address: Address(address),
        resolution,
        import,
    }
}

/// Nothing but an entry.
fn third() -> Function {
    Function {
        entry: Address(0x1070),
        ranges: vec![range(0x1070, 5)],
        name: None,
        status: Status::Opaque(Reason::InvalidInstruction),
        returns: true,
        returns_again: false,
        blocks: vec![],
        edges: vec![],
        calls: vec![],
        indirect_jumps: vec![],
        branches: 0,
    }
}

/// The functions of the sample.
pub(crate) fn functions() -> Vec<Function> {
    vec![first(), second(), third()]
}

/// The facts of the sample.
pub(crate) fn facts() -> Facts {
    let at = |line| Some(Position { file: 0, line });
    Facts {
        build_id: Some((1..=20).collect()),
        file_size: 16_384,
        fingerprint: 0x0123_4567_89ab_cdef,
        content: 0x0011_2233_4455_6677_8899_aabb_ccdd_eeff,
        text_bytes: 0x75,
        text_bytes_exact: 0x38,
        padding_bytes: 9,
        imports: vec!["puts".into(), "longjmp".into()],
        warnings: vec![".debug_info at 0x40: an abbreviation that does not exist".into()],
        lines: Lines {
            files: vec!["/src/demo.c".into()],
            at: vec![at(3), at(4), None, at(9), at(20), at(21), at(22), at(5)],
            ..Lines::default()
        },
        first_instructions: vec![4, 1, 3, 2, 7, 1, 5, 4],
        seconds: 0.25,
        peak_memory_bytes: 12_000_000,
        ..Facts::default()
    }
}
