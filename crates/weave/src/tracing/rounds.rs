//! Loops whose rounds are counted by a register instead of by witnesses.
//!
//! A loop that has one way round, and in which a register of 64 bits changes by the same number each time, is told by what
//! is in that register when control comes into it and when it leaves: two words with a value, however often it went round. Within it
//! nothing is recorded. This is what an *induction variable* is (Aho, Lam, Sethi, Ullman, *Compilers*, §9.1.8), found in the code as it
//! is and only where it is certain: every instruction of the loop that writes the register, or a part of it, adds a constant.
//!
//! DPT and BL94 have a witness on the way round, since they know nothing of values. One that many runs share is indivisible: it may
//! be most of what a program does.
//!
//! What the witnesses then have to tell is a graph without what leads round ([`Round::closing`]): how control left the loop, as
//! if the last, unfinished, round had been the only one. The lower 62 bits of the values tell how many rounds came before that, if
//! they were less than 2⁵⁰ ([`MOST_STEP`]): those take days.

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

/// A loop with one way round. Ways are positions among the function's edges.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Round {
    /// Its blocks, in the order in which they run, from where it is entered.
    pub(super) blocks: Vec<usize>,
    /// The ways from each to the next, the last back to the first; in [`Loops`] those that stay.
    pub(super) around: Vec<usize>,
    /// How many of these are left when those behind the last way out are taken away: those that only whole rounds pass.
    kept: usize,
    /// The ways into it, all to its first block.
    pub(super) entries: Vec<usize>,
    /// The ways out of it, and how far the register is then ahead of where the round began.
    pub(super) exits: Vec<(usize, i64)>,
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

    /// The ways into it and out of it, and how far the register is ahead there, where control leaves.
    pub(super) fn ends(&self) -> impl Iterator<Item = (usize, Option<i64>)> {
        let entries = self.entries.iter().map(|&at| (at, None));
        let exits = self.exits.iter().map(|&(at, ahead)| (at, Some(ahead)));
        entries.chain(exits)
    }

    /// How many words are recorded where control comes into it or leaves it.
    fn words(&self, edges: &[Edge]) -> u64 {
        let times = self.ends().map(|(at, _)| edges[at].frequency);
        times.fold(0, u64::saturating_add).saturating_mul(WORDS)
    }

    /// Whether a word for each time round would be more.
    fn pays(&self, edges: &[Edge]) -> bool {
        let back = self.around.last();
        back.is_some_and(|&back| edges[back].frequency > self.words(edges))
    }
}

/// The counted loops of a function, of which it is known which ways stay among its edges.
#[derive(Debug, Default)]
pub(super) struct Loops {
    /// Their ways in and out are positions among the edges that stay.
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
            let exits = round.exits.iter_mut().map(|(exit, _)| exit);
            let ways = round.around.iter_mut().chain(&mut round.entries);
            ways.chain(exits).for_each(|at| *at = place[*at]);
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
    /// The loops that are told by a register, where that is less than a word for each time round. No way or block belongs
    /// to two.
    pub(super) fn rounds(&self) -> Vec<Round> {
        let (into, out) = self.neighbours();
        let round = |edge: &Edge| {
            let body = self.body(edge, &into)?;
            let round = self.round(edge.to, &body, &into, &out)?;
            round.pays(self.edges).then_some(round)
        };
        let mut rounds: Vec<Round> = self.edges.iter().filter_map(round).collect();
        let worth = |round: &Round| {
            round
                .around
                .last()
                .map_or(0, |&at| self.edges[at].frequency)
        };
        rounds.sort_by_key(|round| (std::cmp::Reverse(worth(round)), round.blocks.clone()));
        let mut ways = vec![false; self.edges.len()];
        let mut blocks = vec![false; self.codes.len()];
        rounds.retain(|round| {
            let is_free = round.ends().all(|(at, _)| !ways[at])
                && round.blocks.iter().all(|&block| !blocks[block]);
            if is_free {
                round.ends().for_each(|(at, _)| ways[at] = true);
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

    /// The blocks from which `back` is reached without passing the block to which it leads, and that one; if they are few.
    fn body(&self, back: &Edge, into: &[Vec<usize>]) -> Option<Vec<usize>> {
        let mut body = vec![back.to];
        let mut waiting = vec![back.from];
        while let Some(block) = waiting.pop() {
            if body.contains(&block) {
                continue;
            }
            if body.len() == MOST_BLOCKS {
                return None;
            }
            body.push(block);
            waiting.extend(into[block].iter().map(|&at| self.edges[at].from));
        }
        Some(body)
    }

    /// The loop of these blocks, if it has one way round and a register tells how often.
    fn round(
        &self,
        head: usize,
        body: &[usize],
        into: &[Vec<usize>],
        out: &[Vec<usize>],
    ) -> Option<Round> {
        let is_inside = |block: &usize| body.contains(block);
        let is_plain = |&block: &usize| {
            let end = &self.ends[block];
            let stays = !end.calls && !end.returns && !end.leaves && end.tail.is_empty();
            stays && self.moved.has(block) && !self.arrivals.contains(&block)
        };
        let comes_from_inside = |&block: &usize| {
            let froms = into[block].iter().map(|&at| self.edges[at].from);
            block == head || froms.into_iter().all(|from| is_inside(&from))
        };
        if !body.iter().all(is_plain) || !body.iter().all(comes_from_inside) {
            return None;
        }
        let (mut blocks, mut around, mut exits) = (Vec::new(), Vec::new(), Vec::new());
        let mut block = head;
        loop {
            blocks.push(block);
            let (inner, outer): (Vec<usize>, Vec<usize>) = out[block]
                .iter()
                .partition(|&&at| is_inside(&self.edges[at].to));
            let [next] = inner[..] else {
                return None;
            };
            let (position, passes) = (blocks.len(), direct(&self.edges[next]));
            around.push(next);
            exits.extend(outer.into_iter().map(|at| (at, position)));
            block = self.edges[next].to;
            if !passes || (block != head && blocks.contains(&block)) {
                return None;
            }
            if block == head {
                break;
            }
        }
        let kept = exits.iter().map(|(_, position)| position - 1).max()?;
        let entries: Vec<usize> = into[head]
            .iter()
            .copied()
            .filter(|&at| !is_inside(&self.edges[at].from))
            .collect();
        if blocks.len() != body.len() {
            return None;
        }
        let tells = |register: &u8| self.can_be_told(*register, &entries, &exits, out);
        let (register, steps) = self.inductions(&blocks).find(|(one, _)| tells(one))?;
        Some(Round {
            exits: exits
                .into_iter()
                .map(|(at, position)| (at, steps[position - 1]))
                .collect(),
            step: *steps.last()?,
            blocks,
            around,
            kept,
            entries,
            register,
        })
    }

    /// Whether the register can be recorded on all these ways.
    fn can_be_told(
        &self,
        register: u8,
        entries: &[usize],
        exits: &[(usize, usize)],
        out: &[Vec<usize>],
    ) -> bool {
        let exits = exits.iter().map(|(at, _)| at);
        entries.iter().chain(exits).all(|&at| {
            let edge = &self.edges[at];
            let is_only = out[edge.from].len() == 1 && !self.ends[edge.from].calls;
            direct(edge)
                && self.moved.has(edge.from)
                && match branch(edge) {
                    None => is_only && self.codes[edge.from].can_tell(None, register),
                    way => self.codes[edge.from].can_tell(way, register),
                }
        })
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
