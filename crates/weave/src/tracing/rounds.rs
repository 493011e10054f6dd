//! Loops whose rounds are counted by a register instead of by witnesses.
//!
//! A *round* here is a cycle of blocks in which a register of 64 bits changes by the same number each time. It is told by what
//! is in that register when control comes into it and when it leaves, wherever that is: two words with a value, however often it went
//! round. Within it nothing is recorded. This is what an *induction variable* is (Aho, Lam, Sethi, Ullman, *Compilers*, §9.1.8),
//! found in the code as it is and only where it is certain: every instruction of the cycle that writes the register, or a part of it,
//! adds a constant. A loop of several ways round has a cycle for the one that is taken most; leaving it for another one is leaving it.
//!
//! DPT and BL94 have a witness on the way round, since they know nothing of values. One that many runs share is indivisible: it may
//! be most of what a program does.
//!
//! What the witnesses then have to tell is a graph without what leads round ([`Round::closing`]): how control left the cycle, as
//! if the last, unfinished, round had been the only one. Who comes into the middle of a round may be where it begins before that, and so may
//! leave by any way: in this graph all come to where it begins ([`Loops::target`]). The lower 62 bits of the values tell how often control
//! came there, if that was less than 2⁵⁰ times ([`MOST_STEP`]): those take days.

use std::collections::HashSet;

use iced_x86::{Instruction, InstructionInfoFactory, Mnemonic, OpAccess, OpKind, Register};
use tomo_plan::witnesses::Place;
use tomo_program::EdgeKind;

use super::subject::{Edge, End};
use crate::staying::code::Code;
use crate::staying::whole::MovedBlocks;

/// Blocks of a loop, at most.
const MOST_BLOCKS: usize = 16;
/// By how much the register changes in a round, at most.
const MOST_STEP: u64 = 1 << 12;
/// How many words a value takes, in all.
const WORDS: u64 = 3;

/// A way into a cycle or out of it, and how far the register is then ahead of where the round began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Door {
    /// A position among the function's edges.
    pub(super) way: usize,
    pub(super) leaves: bool,
    pub(super) ahead: i64,
}

/// A cycle of blocks. Ways are positions among the function's edges.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Round {
    /// Its blocks, in the order in which they run, from where it is entered most.
    pub(super) blocks: Vec<usize>,
    /// The ways from each to the next, the last back to the first; in [`Loops`] those that stay.
    pub(super) around: Vec<usize>,
    /// How many of these are left when those behind the last way out are taken away: those that only whole rounds pass.
    kept: usize,
    /// The ways into it and out of it.
    pub(super) doors: Vec<Door>,
    /// The register that tells.
    pub(super) register: u8,
    /// By how much it changes in each round.
    pub(super) step: i64,
}

impl Round {
    /// The ways that only whole rounds pass.
    fn closing(&self) -> &[usize] {
        &self.around[self.kept..]
    }

    /// How many words are recorded where control comes into it or leaves it.
    fn words(&self, edges: &[Edge]) -> u64 {
        let times = self.doors.iter().map(|door| edges[door.way].frequency);
        times.fold(0, u64::saturating_add).saturating_mul(WORDS)
    }

    /// How often control goes round, at least.
    fn times(&self, edges: &[Edge]) -> u64 {
        let times = self.around.iter().map(|&at| edges[at].frequency);
        times.min().unwrap_or(0)
    }

    /// Whether a word for each time round would be more.
    fn pays(&self, edges: &[Edge]) -> bool {
        self.times(edges) > self.words(edges)
    }
}

/// The counted loops of a function, of which it is known which ways stay among its edges.
#[derive(Debug, Default)]
pub(super) struct Loops {
    /// Their doors are positions among the edges that stay.
    pub(super) rounds: Vec<Round>,
    /// The ways that only whole rounds pass.
    pub(super) closing: Vec<Edge>,
    /// Blocks, and ways among those that stay, at which nothing is recorded.
    blocks: HashSet<usize>,
    ways: HashSet<usize>,
}

impl Loops {
    /// The edges that stay, and the loops.
    pub(super) fn of(edges: Vec<Edge>, mut rounds: Vec<Round>) -> (Vec<Edge>, Self) {
        let closing: HashSet<usize> = rounds.iter().flat_map(Round::closing).copied().collect();
        let mut stays = Vec::new();
        let mut loops = Self::default();
        let mut place = vec![0; edges.len()];
        for (at, edge) in edges.into_iter().enumerate() {
            place[at] = stays.len();
            match closing.contains(&at) {
                true => loops.closing.push(edge),
                false => stays.push(edge),
            }
        }
        for round in &mut rounds {
            round.around.truncate(round.kept);
            let doors = round.doors.iter_mut().map(|door| &mut door.way);
            let ways = round.around.iter_mut().chain(doors);
            ways.for_each(|at| *at = place[*at]);
            loops.blocks.extend(&round.blocks);
            loops.ways.extend(&round.around);
        }
        loops.rounds = rounds;
        (stays, loops)
    }

    /// Whether a witness would be met in each round there.
    pub(super) fn has(&self, place: Place) -> bool {
        match place {
            Place::Node(node) => self.blocks.contains(&node.index()),
            Place::Edge(edge) => self.ways.contains(&edge.index()),
        }
    }

    /// Whether control goes round along this way.
    pub(super) fn has_way(&self, edge: usize) -> bool {
        self.ways.contains(&edge)
    }

    /// Where this way leads, as witnesses see it.
    pub(super) fn target(&self, at: usize, edge: &Edge) -> usize {
        let comes = |door: &Door| door.way == at && !door.leaves;
        let mut rounds = self.rounds.iter();
        let round = rounds.find(|round| round.doors.iter().any(comes));
        round.map_or(edge.to, |round| round.blocks[0])
    }

    /// Whether a loop begins at this block.
    pub(super) fn begins(&self, block: usize) -> bool {
        let mut rounds = self.rounds.iter();
        rounds.any(|round| round.blocks.first() == Some(&block))
    }
}

/// What there is to find loops in.
pub(super) struct Ground<'g, 'f> {
    pub(super) codes: &'g [Code<'f>],
    pub(super) edges: &'g [Edge],
    pub(super) ends: &'g [End],
    pub(super) moved: &'g MovedBlocks,
    /// Blocks at which control may arrive otherwise than along edges.
    pub(super) arrivals: &'g [usize],
}

impl Ground<'_, '_> {
    /// The cycles that are told by a register, where that is less than a word for each time round. No way or block belongs
    /// to two.
    pub(super) fn rounds(&self) -> Vec<Round> {
        let (into, out) = self.neighbours();
        let mut cycles: Vec<Vec<usize>> = (0..self.codes.len())
            .filter_map(|block| self.cycle(block, &into, &out))
            .collect();
        cycles.sort_unstable();
        cycles.dedup();
        let round = |ways: Vec<usize>| {
            let round = self.round(ways, &into, &out)?;
            round.pays(self.edges).then_some(round)
        };
        let mut rounds: Vec<Round> = cycles.into_iter().filter_map(round).collect();
        rounds.sort_by_key(|one| (std::cmp::Reverse(one.times(self.edges)), one.blocks.clone()));
        let mut ways = vec![false; self.edges.len()];
        let mut blocks = vec![false; self.codes.len()];
        rounds.retain(|round| {
            let is_free = round.doors.iter().all(|door| !ways[door.way])
                && round.blocks.iter().all(|&block| !blocks[block]);
            if is_free {
                round.doors.iter().for_each(|door| ways[door.way] = true);
                round.blocks.iter().for_each(|&block| blocks[block] = true);
            }
            is_free
        });
        rounds
    }

    /// The edges into and out of each block.
    fn neighbours(&self) -> (Vec<Vec<usize>>, Vec<Vec<usize>>) {
        let mut into = vec![Vec::new(); self.codes.len()];
        let mut out = vec![Vec::new(); self.codes.len()];
        for (at, edge) in self.edges.iter().enumerate() {
            into[edge.to].push(at);
            out[edge.from].push(at);
        }
        (into, out)
    }

    /// The ways of a short cycle through this block, each the one that control takes most; from the block that is entered
    /// most.
    fn cycle(&self, start: usize, into: &[Vec<usize>], out: &[Vec<usize>]) -> Option<Vec<usize>> {
        let (mut block, mut ways) = (start, Vec::new());
        while block != start || ways.is_empty() {
            let often = |&&at: &&usize| (self.edges[at].frequency, std::cmp::Reverse(at));
            let most = *out[block].iter().max_by_key(often)?;
            ways.push(most);
            block = self.edges[most].to;
            if ways.len() > MOST_BLOCKS {
                return None;
            }
        }
        let entered = |&at: &usize| {
            let others = into[self.edges[at].from].iter();
            let others = others.filter(|other| !ways.contains(other));
            let times = others.map(|&other| self.edges[other].frequency);
            times.fold(0, u64::saturating_add)
        };
        let most =
            (0..ways.len()).max_by_key(|&at| (entered(&ways[at]), std::cmp::Reverse(ways[at])))?;
        ways.rotate_left(most);
        Some(ways)
    }

    /// The cycle of these ways, if a register tells how often control goes round.
    fn round(&self, around: Vec<usize>, into: &[Vec<usize>], out: &[Vec<usize>]) -> Option<Round> {
        let blocks: Vec<usize> = around.iter().map(|&at| self.edges[at].from).collect();
        let is_plain = |&block: &usize| {
            let end = &self.ends[block];
            let stays = !end.calls && !end.returns && !end.leaves && end.tail.is_empty();
            stays && self.moved.has(block) && !self.arrivals.contains(&block)
        };
        if !blocks.iter().all(is_plain) || !around.iter().all(|&at| direct(&self.edges[at])) {
            return None;
        }
        let is_other = |at: &&usize| !around.contains(at);
        let (mut comes, mut leaves) = (Vec::new(), Vec::new());
        for (position, &block) in blocks.iter().enumerate() {
            comes.extend(
                into[block]
                    .iter()
                    .filter(is_other)
                    .map(|&at| (at, position)),
            );
            leaves.extend(out[block].iter().filter(is_other).map(|&at| (at, position)));
        }
        // From one of its blocks to another one: it would both leave and come.
        if comes
            .iter()
            .any(|way| leaves.iter().any(|other| other.0 == way.0))
        {
            return None;
        }
        let kept = leaves.iter().map(|&(_, position)| position).max()?;
        let tells = |register: &u8| {
            let mut doors = comes.iter().chain(&leaves);
            doors.all(|&(way, _)| self.can_be_told(*register, way, out))
        };
        let (register, steps) = self.inductions(&blocks).find(|(one, _)| tells(one))?;
        let before = |position: usize| position.checked_sub(1).map_or(0, |at| steps[at]);
        let comes = comes.iter().map(|&(way, position)| Door {
            way,
            leaves: false,
            ahead: before(position),
        });
        let leaves = leaves.iter().map(|&(way, position)| Door {
            way,
            leaves: true,
            ahead: steps[position],
        });
        Some(Round {
            doors: comes.chain(leaves).collect(),
            step: *steps.last()?,
            blocks,
            around,
            kept,
            register,
        })
    }

    /// Whether the register can be recorded on this way.
    fn can_be_told(&self, register: u8, way: usize, out: &[Vec<usize>]) -> bool {
        let edge = &self.edges[way];
        let is_only = out[edge.from].len() == 1 && !self.ends[edge.from].calls;
        direct(edge)
            && self.moved.has(edge.from)
            && match branch(edge) {
                None => is_only && self.codes[edge.from].can_tell(None, register),
                way => self.codes[edge.from].can_tell(way, register),
            }
    }

    /// Registers that change by the same number in each round, and by how much they have changed behind each block.
    fn inductions(&self, blocks: &[usize]) -> impl Iterator<Item = (u8, Vec<i64>)> {
        let mut sums: [Option<Vec<i64>>; 16] = std::array::from_fn(|_| Some(Vec::new()));
        let mut now = [0i64; 16];
        let mut factory = InstructionInfoFactory::new();
        for &block in blocks {
            for one in self.codes[block].instructions() {
                for number in written(one, &mut factory) {
                    match added(one).filter(|(register, _)| *register == number) {
                        Some((_, by)) => now[number as usize] += by,
                        None => sums[number as usize] = None,
                    }
                }
            }
            for (sums, now) in sums.iter_mut().zip(now) {
                if let Some(sums) = sums {
                    sums.push(now);
                }
            }
        }
        let is_step = |sums: &Vec<i64>| {
            let step = sums.last().map_or(0, |step| step.unsigned_abs());
            (1..=MOST_STEP).contains(&step)
        };
        let all = (0u8..).zip(sums);
        all.filter_map(move |(number, sums)| Some((number, sums.filter(is_step)?)))
    }
}

/// Whether a way leads from region to region.
fn direct(edge: &Edge) -> bool {
    !edge.is_by_address() && edge.kind.is_some()
}

/// Which way of a branch it is, if it is one.
pub(super) fn branch(edge: &Edge) -> Option<bool> {
    match edge.kind {
        Some(EdgeKind::Taken) => Some(true),
        Some(EdgeKind::NotTaken) => Some(false),
        _ => None,
    }
}

/// The general registers of which an instruction writes something, or may.
fn written(one: &Instruction, factory: &mut InstructionInfoFactory) -> Vec<u8> {
    let used = factory.info(one).used_registers().iter();
    let written = used.filter(|used| {
        used.register().is_gpr() && !matches!(used.access(), OpAccess::Read | OpAccess::CondRead)
    });
    let mut numbers: Vec<u8> = written
        .map(|used| used.register().full_register().number() as u8)
        .collect();
    numbers.sort_unstable();
    numbers.dedup();
    numbers
}

/// The register of 64 bits to which an instruction adds a constant, if it does nothing else to registers. The stack pointer is left
/// alone.
fn added(one: &Instruction) -> Option<(u8, i64)> {
    let register = one.op0_register();
    if !register.is_gpr64() || one.op0_kind() != OpKind::Register || register == Register::RSP {
        return None;
    }
    let constant = || match one.op1_kind() {
        OpKind::Immediate8to64 | OpKind::Immediate32to64 => Some(one.immediate(1) as i64),
        _ => None,
    };
    let itself = one.memory_base() == register
        && one.memory_index() == Register::None
        && one.segment_prefix() == Register::None;
    let by = match one.mnemonic() {
        Mnemonic::Inc => 1,
        Mnemonic::Dec => -1,
        Mnemonic::Add => constant()?,
        Mnemonic::Sub => constant()?.checked_neg()?,
        Mnemonic::Lea if itself => one.memory_displacement64() as i64,
        _ => return None,
    };
    Some((register.number() as u8, by))
}

#[cfg(test)]
mod tests {
    use iced_x86::{Decoder, DecoderOptions, InstructionInfoFactory};

    use super::{added, written};

    fn of(bytes: &[u8]) -> (Vec<u8>, Option<(u8, i64)>) {
        let one = Decoder::with_ip(64, bytes, 0x1000, DecoderOptions::NONE).decode();
        (
            written(&one, &mut InstructionInfoFactory::new()),
            added(&one),
        )
    }

    #[test]
    fn constants_that_are_added_are_known() {
        for (bytes, expected) in [
            (&[0x48, 0x83, 0xc1, 0x01][..], (1, 1)), // add rcx, 1
            (&[0x49, 0x83, 0xef, 0x80], (15, 128)),  // sub r15, -128
            (&[0x48, 0x81, 0xc0, 0xff, 0xff, 0xff, 0xff], (0, -1)), // add rax, -1
            (&[0x48, 0xff, 0xc3], (3, 1)),           // inc rbx
            (&[0x49, 0xff, 0xcc], (12, -1)),         // dec r12
            (&[0x48, 0x8d, 0x76, 0xfc], (6, -4)),    // lea rsi, [rsi - 4]
        ] {
            assert_eq!(of(bytes), (vec![expected.0], Some(expected)), "{bytes:x?}");
        }
    }

    /// What writes a register, or a part of it, and adds no constant to all of it.
    #[test]
    fn whatever_else_writes_a_register_is_no_constant() {
        for (bytes, number) in [
            (&[0x83, 0xc1, 0x01][..], 1),         // add ecx, 1: cuts off
            (&[0x66, 0x83, 0xc1, 0x01], 1),       // add cx, 1
            (&[0xfe, 0xc5], 1),                   // inc ch
            (&[0x48, 0x01, 0xd1], 1),             // add rcx, rdx
            (&[0x48, 0x83, 0xd1, 0x01], 1),       // adc rcx, 1
            (&[0x48, 0x8d, 0x4e, 0x01], 1),       // lea rcx, [rsi + 1]
            (&[0x48, 0x8d, 0x4c, 0x09, 0x01], 1), // lea rcx, [rcx + rcx + 1]
            (&[0x48, 0x0f, 0x44, 0xc8], 1),       // cmove rcx, rax
            (&[0x48, 0x83, 0xc4, 0x08], 4),       // add rsp, 8
        ] {
            let (registers, constant) = of(bytes);
            assert_eq!((registers, constant), (vec![number], None), "{bytes:x?}");
        }
        // Some write what they do not name.
        for (bytes, number) in [
            (&[0xe2, 0xfe][..], 1),
            (&[0xf3, 0xa4], 1),
            (&[0x48, 0xf7, 0xe1], 2),
        ] {
            let (registers, constant) = of(bytes);
            assert!(registers.contains(&number), "{bytes:x?} {registers:?}");
            assert_eq!(constant, None);
        }
    }
}
