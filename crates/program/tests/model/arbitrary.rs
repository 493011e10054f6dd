//! Random programs: functions of several parts that lie between each other's, as compilers that
//! split off cold code leave them.

use proptest::collection::vec;
use proptest::prelude::*;
use tomo_program::{
    Address, Block, Call, Callee, Edge, EdgeKind, Function, IndirectJump, Range, Reason,
    Resolution, Status,
};

/// Bytes and instructions of a block, and what edge, call and jump start from it.
#[derive(Clone, Debug)]
pub(crate) struct Seed {
    size: u64,
    instructions: u32,
    edges: Vec<(u8, prop::sample::Index)>,
    call: Option<(u8, bool, bool)>,
    jump: Option<(u8, Option<u32>)>,
}

/// A run of blocks that belongs to one of the functions.
#[derive(Clone, Debug)]
pub(crate) struct Part {
    function: usize,
    gap: u64,
    blocks: Vec<Seed>,
}

fn seed() -> impl Strategy<Value = Seed> {
    let edges = vec((0..10_u8, any::<prop::sample::Index>()), 0..4);
    let call = proptest::option::of((0..3_u8, any::<bool>(), any::<bool>()));
    let jump = proptest::option::of((1..6_u8, proptest::option::of(0..9_u32)));
    (1..200_u64, 1..20_u32, edges, call, jump).prop_map(
        |(size, instructions, edges, call, jump)| Seed {
            size,
            instructions,
            edges,
            call,
            jump,
        },
    )
}

fn part() -> impl Strategy<Value = Part> {
    (0..12_usize, 0..40_u64, vec(seed(), 0..9)).prop_map(|(function, gap, blocks)| Part {
        function,
        gap,
        blocks,
    })
}

fn status(number: usize) -> Status {
    match number % 4 {
        0 => Status::Partial(Reason::UnresolvedIndirectJump),
        1 => Status::Opaque(Reason::RunsOffTheEnd),
        _ => Status::Exact,
    }
}

/// A program as the analysis could find it: sorted, disjoint, entries distinct.
pub(crate) fn program() -> impl Strategy<Value = Vec<Function>> {
    (any::<u32>(), vec(part(), 0..30))
        .prop_map(|(base, parts)| assemble(u64::from(base) << 8, &parts))
}

/// Lays the parts behind each other.
fn assemble(base: u64, parts: &[Part]) -> Vec<Function> {
    let mut placed: Vec<Vec<(Range, &Seed)>> = vec![Vec::new(); 12];
    let mut ranges: Vec<Vec<Range>> = vec![Vec::new(); 12];
    let mut at = base;
    for part in parts {
        at += part.gap;
        let start = at;
        for seed in &part.blocks {
            placed[part.function]
                .extend(Range::sized(Address(at), seed.size).map(|range| (range, seed)));
            at += seed.size;
        }
        // A part without blocks has a byte all the same, so that no two entries are equal.
        at += u64::from(part.blocks.is_empty());
        ranges[part.function].extend(Range::new(Address(start), Address(at)));
    }
    let numbered = ranges.into_iter().zip(&placed).enumerate();
    let mut functions: Vec<_> = numbered
        .filter(|(_, (ranges, _))| !ranges.is_empty())
        .map(|(number, (ranges, blocks))| function(number, ranges, blocks))
        .collect();
    functions.sort_by_key(|function| function.entry);
    functions
}

/// Function `number` with these ranges; every third is entered in its last part.
fn function(number: usize, mut ranges: Vec<Range>, blocks: &[(Range, &Seed)]) -> Function {
    let first = if number.is_multiple_of(3) {
        ranges.len() - 1
    } else {
        0
    };
    let home = ranges.remove(first);
    ranges.insert(0, home);
    let mut edges: Vec<Edge> = Vec::new();
    for (from, (_, seed)) in (0..).zip(blocks) {
        edges.extend(
            seed.edges
                .iter()
                .map(|(kind, index)| edge(from, *kind, index, blocks)),
        );
    }
    edges.sort_unstable();
    edges.dedup();
    let each = || (0..).zip(blocks);
    Function {
        entry: home.start(),
        ranges,
        name: name(number),
        status: status(number),
        returns: !number.is_multiple_of(5),
        returns_again: number.is_multiple_of(7),
        blocks: each()
            .map(|(_, (range, seed))| Block {
                range: *range,
                instructions: seed.instructions,
                forks_or_ends: seed.instructions.is_multiple_of(3),
            })
            .collect(),
        edges,
        calls: each()
            .filter_map(|(block, (range, seed))| call(block, *range, seed))
            .collect(),
        indirect_jumps: each()
            .filter_map(|(block, (range, seed))| jump(block, *range, seed))
            .collect(),
        branches: number as u32,
    }
}

fn name(number: usize) -> Option<String> {
    match number % 5 {
        0 => None,
        1 => Some(String::new()),
        2 => Some(format!("_ZN2ns1{}Ei", char::from(b'a' + number as u8))),
        3 => Some(format!("weird \"näme\"\n{number}")),
        _ => Some(format!("plain_{number}")),
    }
}

/// An edge within the function, or out of it where its kind says so.
fn edge(from: u32, kind: u8, index: &prop::sample::Index, blocks: &[(Range, &Seed)]) -> Edge {
    let kind = EdgeKind::from_code(kind).expect("ten kinds");
    let inside = blocks[index.index(blocks.len())].0.start();
    let to = if kind.is_intraprocedural() {
        inside
    } else {
        Address(u64::MAX - inside.0)
    };
    Edge { from, to, kind }
}

fn call(block: u32, range: Range, seed: &Seed) -> Option<Call> {
    let (kind, returns, void) = seed.call?;
    let callee = match kind {
        0 => Callee::Function(Address(u64::from(block) << 40)),
        1 => Callee::Import(block),
        _ => Callee::Indirect,
    };
    let address = Address(range.start().0 + range.size() / 2);
    Some(Call {
        block,
        address,
        callee,
        returns,
        void,
    })
}

fn jump(block: u32, range: Range, seed: &Seed) -> Option<IndirectJump> {
    let (resolution, import) = seed.jump?;
    let resolution = Resolution::from_code(resolution).expect("five resolutions");
    Some(IndirectJump {
        block,
        address: Address(range.end().0 - 1),
        resolution,
        import,
    })
}
