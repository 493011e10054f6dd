//! What a probe may change: the registers and flags whose values nobody looks at any more.
//!
//! Liveness, backwards over the known flow of the whole program (Kildall, *A Unified Approach to Global Program
//! Optimization*, POPL 1973; as a backward problem Aho, Lam, Sethi, Ullman, *Compilers*, §9.2.5), as the least
//! fixpoint: something is live if there is a path to an instruction that reads it, with none on the way
//! that writes all of it.
//!
//! **No calling convention is believed.** gcc keeps values in registers across calls of functions that it knows
//! not to change them (`-fipa-ra`), whatever the convention says. So:
//!
//! - where control leaves what is known (a return, an indirect call or jump, an import, a function that is not
//!   exact) everything is live;
//! - at a direct call of an exact function what is live is what is live at its entry. There everything is
//!   that the function does not write on each of its ways out, since at its returns everything is.
//!
//! O(instructions + edges × 22): each of the sets grows at most 22 times.

use iced_x86::{
    Decoder, DecoderOptions, Instruction, InstructionInfoFactory, Mnemonic, OpAccess, OpKind,
    Register, RflagsBits,
};
use rayon::prelude::*;
use tomo_program::{Address, BlockId, BlockView, EdgeKind, Graphs, Status};

use crate::block::is_call;
use crate::text::Text;

/// General registers and status flags, one bit each: those that 64-bit code changes in passing. Everything else
/// a probe leaves alone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Set(u32);

/// Where the flags' bits start, behind sixteen registers.
const FLAGS: u32 = 16;
/// The status flags, in the order of their bits.
const STATUS: [u32; 6] = [
    RflagsBits::CF,
    RflagsBits::PF,
    RflagsBits::AF,
    RflagsBits::ZF,
    RflagsBits::SF,
    RflagsBits::OF,
];

impl Set {
    pub(crate) const NONE: Self = Self(0);
    pub(crate) const ALL: Self = Self((1 << (FLAGS + 6)) - 1);
    /// The carry flag.
    pub(crate) const CARRY: Self = Self(1 << FLAGS);
    /// The status flags.
    pub(crate) const STATUS: Self = Self(0b11_1111 << FLAGS);

    /// The register of 64 bits that `register` is part of, if it is a general one.
    pub(crate) fn register(register: Register) -> Self {
        match register.is_gpr() {
            true => Self(1 << register.full_register().number()),
            false => Self::NONE,
        }
    }

    /// The general register with this number.
    pub(crate) const fn numbered(number: u8) -> Self {
        Self(1 << (number & 15))
    }

    fn flags(bits: u32) -> Self {
        let set = (0u32..).zip(STATUS).filter(|(_, flag)| bits & flag != 0);
        Self(set.fold(0, |set, (at, _)| set | 1 << (FLAGS + at)))
    }

    #[must_use]
    pub(crate) fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    #[must_use]
    pub(crate) fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    pub(crate) fn has_any(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }
}

/// What an instruction, or several in a row, do to what is live.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Effect {
    /// What is looked at before it is written.
    pub(crate) reads: Set,
    /// What is written as a whole, in any case.
    pub(crate) writes: Set,
}

impl Effect {
    /// What is live before, given what is live after.
    pub(crate) fn before(self, after: Set) -> Set {
        after.without(self.writes).with(self.reads)
    }

    /// This, then `next`.
    #[must_use]
    pub(crate) fn then(self, next: Self) -> Self {
        Self {
            reads: self.reads.with(next.reads.without(self.writes)),
            writes: self.writes.with(next.writes),
        }
    }

    /// That of one instruction.
    pub(crate) fn of(instruction: &Instruction, factory: &mut InstructionInfoFactory) -> Self {
        if asks_the_system(instruction) {
            return Self {
                reads: Set::ALL,
                writes: Set::NONE,
            };
        }
        let info = factory.info(instruction);
        let mut effect = Self {
            reads: Set::flags(instruction.rflags_read()),
            writes: Set::flags(written_flags(instruction)),
        };
        for used in info.used_registers() {
            let register = used.register();
            let set = Set::register(register);
            match used.access() {
                OpAccess::Write if register.size() >= 4 && !is_perhaps_nothing(instruction) => {
                    effect.writes = effect.writes.with(set)
                }
                // A part is written, or perhaps nothing: what was there before is still looked at later.
                OpAccess::Write | OpAccess::CondWrite | OpAccess::None | OpAccess::NoMemAccess => {}
                _ => effect.reads = effect.reads.with(set),
            }
        }
        effect
    }
}

/// Whether whoever handles the instruction looks at registers that it does not name: the kernel, a debugger, an enclave.
fn asks_the_system(instruction: &Instruction) -> bool {
    use Mnemonic::*;
    matches!(
        instruction.mnemonic(),
        Syscall | Sysenter | Int | Int1 | Int3 | Into | Vmcall | Vmmcall | Vmfunc | Enclu
    )
}

/// Whether the instruction may do nothing: what reads the shadow stack, where there is none.
fn is_perhaps_nothing(instruction: &Instruction) -> bool {
    matches!(instruction.mnemonic(), Mnemonic::Rdsspd | Mnemonic::Rdsspq)
}

/// The flags that the instruction writes in any case, be it with nobody knows what. A shift by a register
/// may be one by nothing, which changes none; so may a repeated comparison.
fn written_flags(instruction: &Instruction) -> u32 {
    use Mnemonic::*;
    let by_register = instruction.op_count() > 1 && instruction.op_register(1) == Register::CL;
    let shifts = matches!(
        instruction.mnemonic(),
        Rol | Ror | Rcl | Rcr | Shl | Shr | Sar | Sal
    );
    let double = matches!(instruction.mnemonic(), Shld | Shrd);
    let repeats = instruction.has_rep_prefix() || instruction.has_repne_prefix();
    let perhaps = (shifts && by_register)
        || (double && instruction.op_register(2) == Register::CL)
        || ((shifts || double) && by_nothing(instruction))
        || repeats;
    if perhaps {
        0
    } else {
        instruction.rflags_modified()
    }
}

/// Whether a shift's constant may mean no shift at all: its low bits are zero.
fn by_nothing(instruction: &Instruction) -> bool {
    let last = instruction.op_count().saturating_sub(1);
    let constant = instruction.op_kind(last) == OpKind::Immediate8;
    constant && instruction.immediate(last) & 0x1f == 0
}

/// A piece of code with one way in: a block.
#[derive(Clone, Debug, Default)]
pub(crate) struct Node {
    pub(crate) effect: Effect,
    /// Which pieces may follow, by number.
    pub(crate) ways: Vec<u32>,
    /// Whether something unknown may follow, which may look at everything.
    pub(crate) unknown: bool,
}

impl Node {
    fn after(&self, before: &[Set]) -> Set {
        match self.unknown {
            true => Set::ALL,
            false => self
                .ways
                .iter()
                .fold(Set::NONE, |live, &way| live.with(before[way as usize])),
        }
    }
}

/// What is live at the start of each of `nodes`.
pub(crate) fn solve(nodes: &[Node]) -> Vec<Set> {
    let mut before = vec![Set::NONE; nodes.len()];
    let mut came_from = vec![Vec::new(); nodes.len()];
    for (number, node) in (0u32..).zip(nodes) {
        for &way in &node.ways {
            came_from[way as usize].push(number);
        }
    }
    // Backwards: what follows is mostly behind.
    let mut waiting: Vec<u32> = (0..nodes.len() as u32).collect();
    let mut waits = vec![true; nodes.len()];
    while let Some(number) = waiting.pop() {
        let at = number as usize;
        waits[at] = false;
        let live = nodes[at].effect.before(nodes[at].after(&before));
        if live != before[at] {
            before[at] = live;
            for &other in &came_from[at] {
                if !std::mem::replace(&mut waits[other as usize], true) {
                    waiting.push(other);
                }
            }
        }
    }
    before
}

/// What is live in a program, by block.
pub(crate) struct Liveness<'g> {
    graphs: Graphs<'g>,
    nodes: Vec<Node>,
    before: Vec<Set>,
}

impl<'g> Liveness<'g> {
    /// That of the program with this text. Blocks are decoded on all processors.
    pub(crate) fn of(text: &Text, graphs: &Graphs<'g>) -> Self {
        let functions: Vec<_> = graphs.functions().collect();
        let chunks = functions.par_chunks(64).map(|functions| {
            let mut factory = InstructionInfoFactory::new();
            let mut nodes = Vec::new();
            for function in functions {
                let exact = function.status() == Status::Exact;
                nodes.extend(function.blocks().map(|block| match exact {
                    true => node(text, graphs, &block, &mut factory),
                    false => unknown(),
                }));
            }
            nodes
        });
        let chunks: Vec<Vec<Node>> = chunks.collect();
        let nodes: Vec<Node> = chunks.into_iter().flatten().collect();
        let before = solve(&nodes);
        Self {
            graphs: *graphs,
            nodes,
            before,
        }
    }

    /// What is live where control arrives at `address`.
    pub(crate) fn at(&self, address: Address) -> Set {
        let block = elsewhere(&self.graphs, address);
        let live = block.and_then(|block| self.before.get(block.index()));
        live.copied().unwrap_or(Set::ALL).with(BY_SIGNALS)
    }

    /// What is live before each of the block's instructions, and behind the last.
    pub(crate) fn within(&self, block: BlockId, instructions: &[Instruction]) -> Vec<Set> {
        let mut factory = InstructionInfoFactory::new();
        let node = self.nodes.get(block.index());
        let mut live = node.map_or(Set::ALL, |node| node.after(&self.before));
        let mut all = vec![live.with(BY_SIGNALS); instructions.len() + 1];
        for (slot, instruction) in all.iter_mut().zip(instructions).rev() {
            live = Effect::of(instruction, &mut factory).before(live);
            *slot = live.with(BY_SIGNALS);
        }
        all
    }
}

/// The stack pointer and the frame pointer, at which signals' handlers look at any moment, be it that the program's own code reads them no more:
/// callers are found by either.
const BY_SIGNALS: Set = Set(1 << 4 | 1 << 5);

/// A block of which nothing is known.
fn unknown() -> Node {
    Node {
        unknown: true,
        ..Node::default()
    }
}

fn node(
    text: &Text,
    graphs: &Graphs<'_>,
    block: &BlockView<'_>,
    factory: &mut InstructionInfoFactory,
) -> Node {
    let bytes = text.from(block.address());
    let Some(bytes) = bytes.and_then(|bytes| bytes.get(..block.size() as usize)) else {
        return unknown();
    };
    let start = block.address().0;
    let mut effect = Effect::default();
    let mut last = Instruction::default();
    for instruction in &mut Decoder::with_ip(64, bytes, start, DecoderOptions::NONE) {
        effect = effect.then(Effect::of(&instruction, factory));
        last = instruction;
    }
    let mut node = Node {
        effect,
        ..Node::default()
    };
    if !last.is_invalid() && is_call(&last) {
        node.ways.extend(entry(graphs, last.near_branch_target()));
    } else if !last.is_invalid() && !may_leave(block) {
        let ways = block.successors().map(|edge| {
            edge.block()
                .or_else(|| elsewhere(graphs, edge.address))
                .map(|id| id.0)
        });
        let ways: Option<Vec<u32>> = ways.collect();
        node.ways = ways.unwrap_or_default();
    }
    node.unknown = node.ways.is_empty();
    node
}

/// Whether a jump to one of the function's labels may as well lead elsewhere.
fn may_leave(block: &BlockView<'_>) -> bool {
    let mut ways = block.successors();
    ways.any(|edge| edge.kind == EdgeKind::ComputedGoto)
}

/// The first block of the exact function that starts at `address`.
fn entry(graphs: &Graphs<'_>, address: u64) -> Option<u32> {
    let function = graphs.function_starting_at(Address(address))?;
    let block = function.entry_block()?;
    (function.status() == Status::Exact).then_some(block.id().0)
}

/// The block of another exact function that starts at `address`.
fn elsewhere(graphs: &Graphs<'_>, address: Address) -> Option<BlockId> {
    let block = graphs.block_at(address)?;
    let exact = block.function()?.status() == Status::Exact;
    (exact && block.address() == address).then_some(block.id())
}

#[cfg(test)]
mod processor;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// By the definition: a path to a read, with no write on the way.
    fn is_live(nodes: &[Node], from: usize, what: Set) -> bool {
        let mut seen = vec![false; nodes.len()];
        let mut waiting = vec![from];
        while let Some(at) = waiting.pop() {
            if std::mem::replace(&mut seen[at], true) {
                continue;
            }
            let node = &nodes[at];
            if node.effect.reads.has_any(what) {
                return true;
            }
            if node.effect.writes.has_any(what) {
                continue;
            }
            if node.unknown {
                return true;
            }
            waiting.extend(node.ways.iter().map(|way| *way as usize));
        }
        false
    }

    fn nodes() -> impl Strategy<Value = Vec<Node>> {
        let set = || (0u32..16).prop_map(Set);
        let node = move |count: u32| {
            let ways = prop::collection::vec(0..count, 0..3);
            (set(), set(), ways, prop::bool::weighted(0.1)).prop_map(
                |(reads, writes, ways, unknown)| Node {
                    effect: Effect { reads, writes },
                    ways,
                    unknown,
                },
            )
        };
        (1u32..12).prop_flat_map(move |count| prop::collection::vec(node(count), count as usize))
    }

    proptest! {
        #[test]
        fn live_is_what_some_path_reads(nodes in nodes()) {
            let before = solve(&nodes);
            for (at, live) in before.iter().enumerate() {
                for bit in 0..4 {
                    let what = Set(1 << bit);
                    prop_assert_eq!(live.has_any(what), is_live(&nodes, at, what));
                }
            }
        }
    }

    fn effect(bytes: &[u8]) -> Effect {
        let mut decoder = Decoder::new(64, bytes, DecoderOptions::NONE);
        Effect::of(&decoder.decode(), &mut InstructionInfoFactory::new())
    }

    #[test]
    fn parts_and_perhaps_do_not_count_as_written() {
        let rax = Set::register(Register::RAX);
        let all_flags = |bytes: &[u8]| effect(bytes).writes.0 & Set::STATUS.0 == Set::STATUS.0;
        assert!(effect(&[0x31, 0xc0]).writes.has_any(rax), "xor eax, eax");
        assert!(!effect(&[0x31, 0xc0]).reads.has_any(rax), "xor eax, eax");
        assert!(!effect(&[0xb0, 1]).writes.has_any(rax), "mov al, 1");
        assert!(
            effect(&[0x0f, 0x44, 0xc1]).reads.has_any(rax),
            "cmove eax, ecx"
        );
        assert!(
            effect(&[0x0f, 0x44, 0xc1]).reads.has_any(Set::STATUS),
            "cmove"
        );
        assert!(all_flags(&[0x85, 0xc0]), "test eax, eax");
        assert!(!all_flags(&[0xd3, 0xe0]), "shl eax, cl");
        assert!(all_flags(&[0xc1, 0xe0, 3]), "shl eax, 3");
        assert!(!all_flags(&[0xff, 0xc0]), "inc eax keeps the carry");
        assert!(
            !effect(&[0xf3, 0xa6]).writes.has_any(Set::STATUS),
            "repe cmpsb"
        );
    }
}
