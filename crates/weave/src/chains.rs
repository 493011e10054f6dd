//! What is done where, so that each thread makes the tree of its calls: which functions are observed, and the steps of
//! each (`staying/chain.rs`).
//!
//! A function is observed if every way into it and out of it can be: it is *exact*, entered nowhere but at its entry,
//! and all its blocks at which something is to be done can be executed elsewhere. One that calls nothing is a
//! *leaf*: no chain goes on from it, so it is counted when it is entered, and that is all. Any other
//!
//! - enters, and leaves before each of its returns;
//! - calls everybody at one depth of the stack, so that it can be seen by which call it went to what is not
//!   observed when that calls back, or announces each call;
//! - announces a tail call to what is observed, and before another leaves;
//! - lands where the unwinder or `longjmp` may arrive.
//!
//! Functions that are not observed run where they are, and what they call is entered from the call in them. But where
//! the unwinder may arrive in them, they note what was left.

use std::collections::HashMap;

use iced_x86::{FlowControl, Instruction, Register};
use rayon::prelude::*;
use tomo_program::{
    Address, BlockId, EdgeKind, EdgeView, FunctionView, Graphs, Resolution, ReturnsAgain, Status,
};
use tomo_wire::chains::{MARK, NONE, Row};

use crate::place::Surroundings;
use crate::staying::action::What;
use crate::staying::chain::{Entry, Operand, Step};
use crate::staying::code::{Code, Wants};
use crate::staying::depth;
use crate::staying::live::Liveness;
use crate::staying::region::{Call, Region};
use crate::staying::whole::MovedBlocks;
use crate::window::JUMP_BYTES;

/// The steps of all functions.
#[derive(Debug, Default)]
pub(crate) struct Chains {
    /// The functions that are observed, by number.
    pub(crate) rows: Vec<Row>,
    pub(crate) regions: Vec<Region>,
    pub(crate) calls: Vec<Call>,
}

/// A function that is observed.
struct Own<'f> {
    entry: Address,
    leaf: bool,
    /// Which of its blocks is the entry.
    first: usize,
    codes: Vec<Code<'f>>,
    moved: MovedBlocks,
    /// By block.
    exits: Vec<Exit>,
    /// Blocks in which control may arrive by no return.
    lands: Vec<bool>,
    /// How far below its return address those of its calls lie; 0 if it announces calls.
    depth: u32,
}

/// How control leaves a function at the end of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Exit {
    /// It does not, or it stops.
    None,
    /// By a return.
    Return,
    /// By a call.
    Call,
    /// By a jump there; whether that is the branch that is taken.
    Jump(Address, bool),
    /// By a jump through a slot of an import.
    Import,
    /// By a jump to where the operand says.
    Indirect(Operand),
}

/// The steps of all functions of the program, where those with the `wanted` entries are observed.
pub(crate) fn all(
    around: &Surroundings<'_>,
    graphs: &Graphs<'_>,
    wanted: &(dyn Fn(u64) -> bool + Sync),
) -> Chains {
    let live = Liveness::of(around.text, graphs);
    let functions: Vec<_> = graphs.functions().collect();
    let owns: Vec<Own<'_>> = functions
        .par_iter()
        .with_min_len(16)
        .filter(|function| wanted(function.entry().0))
        .filter_map(|function| Own::of(around, &live, function))
        .collect();
    let site = |address: u64| {
        let offset = address.wrapping_sub(around.text.origin());
        u32::try_from(offset).unwrap_or_default() & !MARK
    };
    let entries = owns.iter().zip(0u32..);
    let entries = entries.map(|(own, number)| (own.entry, own.entry(number)));
    let planner = Planner {
        entries: entries.collect(),
        site,
    };
    let regions = owns.par_iter().enumerate().with_min_len(16);
    let regions = regions.map(|(number, own)| planner.region(own, number as u32));
    let others = functions.par_iter().with_min_len(16);
    let others = others.filter(|function| !planner.entries.contains_key(&function.entry()));
    let others = others.flat_map_iter(|function| landings(around, &live, function));
    Chains {
        regions: regions.chain(others).collect(),
        rows: owns
            .iter()
            .map(|own| Row::of(own.entry.0, own.leaf, own.depth))
            .collect(),
        calls: owns
            .iter()
            .flat_map(|own| own.codes.iter().filter_map(Code::call))
            .collect(),
    }
}

impl<'f> Own<'f> {
    /// `None` where it cannot be observed.
    fn of(
        around: &Surroundings<'f>,
        live: &Liveness<'_>,
        function: &FunctionView<'f>,
    ) -> Option<Self> {
        if function.status() != Status::Exact || is_entered_within(around, function) {
            return None;
        }
        let codes = function
            .blocks()
            .map(|block| Code::of(around, live, &block));
        let codes: Vec<Code<'f>> = codes.collect::<Option<_>>()?;
        let moved = MovedBlocks::of(around, function, &codes);
        let exits = codes.iter().zip(function.blocks());
        let exits: Vec<Exit> = exits
            .map(|(code, block)| exit(function, code, block.id()))
            .collect::<Option<_>>()?;
        let own = Self {
            entry: function.entry(),
            leaf: exits
                .iter()
                .all(|exit| matches!(exit, Exit::None | Exit::Return)),
            first: function.position_of(function.entry_block()?.id())?,
            lands: lands(function, codes.len()),
            depth: depth::of_calls(function, &codes).unwrap_or(0),
            codes,
            moved,
            exits,
        };
        own.has_places(function).then_some(own)
    }

    /// Whether all that is to be done has a place.
    fn has_places(&self, function: &FunctionView<'_>) -> bool {
        let returns_within = function.edges().any(|edge| {
            let to = edge.block().and_then(|block| function.position_of(block));
            let from = function.position_of(edge.from);
            let branches = matches!(
                edge.kind,
                EdgeKind::Fallthrough | EdgeKind::Taken | EdgeKind::NotTaken | EdgeKind::Jump
            );
            // Whoever goes back there must not seem to enter.
            to == Some(self.first) && !(branches && from.is_some_and(|from| self.moved.has(from)))
        });
        let acts = |block: &usize| !self.leaf && (self.leaves_at(*block) || self.lands[*block]);
        self.moved.has(self.first)
            && self.moved.entrance(self.first).is_some()
            && !returns_within
            && (0..self.codes.len())
                .filter(acts)
                .all(|block| self.moved.has(block))
    }
}

impl Own<'_> {
    fn entry(&self, number: u32) -> Entry {
        Entry {
            number,
            leaf: self.leaf,
            depth: self.depth,
        }
    }

    /// Whether something is to be done at the end of a block.
    fn leaves_at(&self, block: usize) -> bool {
        match self.exits[block] {
            Exit::None => false,
            Exit::Call => self.depth == 0,
            _ => true,
        }
    }
}

/// Whether others jump into its middle, or it into others'.
fn is_entered_within(around: &Surroundings<'_>, function: &FunctionView<'_>) -> bool {
    let entered = |block: Address| block != function.entry() && around.ways.foreign.has(block);
    function.blocks().any(|block| entered(block.address()))
        || function.edges().any(|edge| edge.kind == EdgeKind::JumpInto)
}

/// In which blocks control may arrive by no return: landing pads, and behind what `longjmp` returns to. What comes back
/// in two processes leaves nothing to land from: the child of `fork` has a tree of its own, and that of `vfork` is in
/// the same function when the parent goes on.
fn lands(function: &FunctionView<'_>, count: usize) -> Vec<bool> {
    let mut lands = vec![false; count];
    let again: Vec<BlockId> = function
        .calls()
        .filter(|call| call.returns_again() == Some(ReturnsAgain::Kept))
        .map(|call| call.block())
        .collect();
    for edge in function.edges() {
        let arrives = edge.kind == EdgeKind::LandingPad
            || (edge.kind == EdgeKind::CallFallthrough && again.contains(&edge.from));
        let to = edge.block().and_then(|block| function.position_of(block));
        if let Some(land) = to.filter(|_| arrives).and_then(|to| lands.get_mut(to)) {
            *land = true;
        }
    }
    lands
}

/// Where control may arrive by no return in a function that is not observed, as far as that has room in the block
/// itself.
fn landings(
    around: &Surroundings<'_>,
    live: &Liveness<'_>,
    function: &FunctionView<'_>,
) -> Vec<Region> {
    if function.status() != Status::Exact {
        return Vec::new();
    }
    let blocks: Vec<_> = function.blocks().collect();
    let lands = lands(function, blocks.len());
    let lands = blocks.iter().zip(lands).filter(|(_, lands)| *lands);
    let codes = lands.filter_map(|(block, _)| Code::of(around, live, block));
    let fits = |code: &Code<'_>| {
        let start = code.start();
        let room = code.end_of_free().0.saturating_sub(start.0);
        let entered = around.ways.entered.has_inside(start, JUMP_BYTES);
        code.is_movable() && room >= JUMP_BYTES && !entered
    };
    let wants = Wants {
        first: vec![What::Chain(Step::Land(NONE))],
        ..Wants::default()
    };
    codes
        .filter(fits)
        .map(|code| Region::of(code.whole(&wants)))
        .collect()
}

/// How control leaves the function at the end of a block; `None` where that cannot be observed.
fn exit(function: &FunctionView<'_>, code: &Code<'_>, block: BlockId) -> Option<Exit> {
    let last = code.last_instruction()?;
    let leaves: Vec<EdgeView> = function
        .edges()
        .filter(|edge| edge.from == block && !edge.kind.is_intraprocedural())
        .collect();
    let target = Address(last.near_branch_target());
    Some(match last.flow_control() {
        FlowControl::Return => Exit::Return,
        FlowControl::Call | FlowControl::IndirectCall => Exit::Call,
        FlowControl::UnconditionalBranch if !leaves.is_empty() => Exit::Jump(target, false),
        FlowControl::ConditionalBranch if !leaves.is_empty() => {
            let only = leaves.iter().all(|edge| edge.address == target);
            only.then_some(Exit::Jump(target, true))?
        }
        FlowControl::IndirectBranch => indirect(function, last, code)?,
        _ if leaves.is_empty() => Exit::None,
        _ => return None,
    })
}

fn indirect(function: &FunctionView<'_>, last: &Instruction, code: &Code<'_>) -> Option<Exit> {
    let here = Address(last.ip());
    let jump = function
        .indirect_jumps()
        .find(|jump| jump.address() == here)?;
    match jump.resolution() {
        Resolution::TailCall if jump.import().is_some() => Some(Exit::Import),
        Resolution::TailCall => Some(Exit::Indirect(operand(last, code.bytes_of_last())?)),
        open if open.is_open() => None,
        _ => Some(Exit::None),
    }
}

/// A `push` of what the jump reads (Intel SDM vol. 2: `FF /4` and `FF /6`). Where that lies on the stack it would be
/// another place.
fn operand(jump: &Instruction, bytes: &[u8]) -> Option<Operand> {
    let on_stack = jump.memory_base() == Register::RSP || jump.op0_register() == Register::RSP;
    let opcode = match bytes {
        [0xff, ..] => 0,
        [0x40..=0x4f, 0xff, ..] => 1,
        _ => return None,
    };
    if on_stack || bytes.len() > 8 {
        return None;
    }
    let mut push = [0; 8];
    push[..bytes.len()].copy_from_slice(bytes);
    push[opcode + 1] |= 0x10;
    // The displacement is behind the opcode and the byte that names the operand.
    let relative = jump.is_ip_rel_memory_operand();
    Some(Operand {
        push,
        length: bytes.len() as u8,
        relative: relative.then_some((opcode as u8 + 2, Address(jump.ip()))),
    })
}

struct Planner<S> {
    /// The functions that are observed.
    entries: HashMap<Address, Entry>,
    /// An address as a site.
    site: S,
}

impl<S: Fn(u64) -> u32> Planner<S> {
    fn region(&self, own: &Own<'_>, number: u32) -> Region {
        let mut region = Region::default();
        for (block, code) in own.codes.iter().enumerate() {
            if own.moved.has(block) {
                region
                    .pieces
                    .push(code.whole(&self.wants(own, block, number)));
                region.entrances.extend(own.moved.entrance(block));
            }
        }
        region
    }

    fn wants(&self, own: &Own<'_>, block: usize, number: u32) -> Wants {
        let mut wants = Wants::default();
        let chain = |step: Step| vec![What::Chain(step)];
        if block == own.first {
            wants.entering = chain(Step::Enter(own.entry(number)));
        }
        if own.leaf {
            return wants;
        }
        if own.lands[block] {
            wants.first = chain(Step::Land(number));
        }
        let code = &own.codes[block];
        let site = |address: Option<u64>| address.map_or(0, &self.site);
        let start = code.last_instruction().map(Instruction::ip);
        match own.exits[block] {
            Exit::None => {}
            Exit::Return | Exit::Import => wants.last = chain(Step::Leave),
            Exit::Call if own.depth != 0 => {}
            Exit::Call => {
                let behind = code.last_instruction().map(Instruction::next_ip);
                wants.anywhere = chain(Step::Announce(site(behind)));
            }
            Exit::Jump(to, taken) => {
                let step = match self.entries.get(&to) {
                    Some(entry) => Step::Tail(site(start), *entry, to),
                    None => Step::Leave,
                };
                match taken {
                    true => wants.taken = chain(step),
                    false => wants.last = chain(step),
                }
            }
            Exit::Indirect(operand) => wants.last = chain(Step::Jump(site(start), operand)),
        }
        wants
    }
}
