//! A block as a place for counters: at its start, and on the two ways of the branch at its end.

use iced_x86::{Decoder, DecoderOptions, FlowControl, Instruction};
use tomo_program::{Address, BlockView};
use tomo_wire::plan::Tactic;

use crate::block::{cannot_fault, leaves_for_good};
use crate::padding;
use crate::place::{Surroundings, Unit};
use crate::staying::increment;
use crate::staying::live::{Liveness, Set};
use crate::tactics::staying::{Increment, Increments, all_movable, displaced};
use crate::window::{JUMP_BYTES, Window};

/// Which counters a block is to have, by number.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Wants {
    /// When it starts.
    pub(super) start: Option<u32>,
    /// When its branch is taken, and when it is not.
    pub(super) taken: Option<u32>,
    pub(super) not_taken: Option<u32>,
}

/// The code of a block.
#[derive(Debug)]
pub(super) struct Code<'t> {
    bytes: &'t [u8],
    instructions: Vec<Instruction>,
    /// What is live before each of them, and at the end.
    live: Vec<Set>,
    /// How many of them are certain to be reached once the block starts.
    certain: usize,
    /// Which of them no window may start at, since something arrives in its bytes.
    entered: Vec<bool>,
    /// From each to the end of what only this block can run into.
    limit: u64,
    /// What is live where the branch leads.
    at_target: Set,
}

/// A window: at which instruction it starts, and bytes that are executed elsewhere.
type Site = (usize, u64);

impl<'t> Code<'t> {
    /// The code of `block`; `None` where it is not what the model says.
    pub(super) fn of(
        around: &Surroundings<'t>,
        live: &Liveness<'_>,
        block: &BlockView<'_>,
    ) -> Option<Self> {
        let bytes = around.text.from(block.address())?;
        let bytes = bytes.get(..block.size() as usize)?;
        let start = block.address().0;
        let decoder = &mut Decoder::with_ip(64, bytes, start, DecoderOptions::NONE);
        let instructions: Vec<Instruction> = decoder.into_iter().collect();
        let last = instructions.last()?;
        let faults = instructions.iter().position(|one| !cannot_fault(one));
        let entered = &around.ways.entered;
        let inside = |one: &Instruction| entered.has_inside(Address(one.ip()), JUMP_BYTES);
        let filling = match leaves_for_good(last) {
            true => padding::behind(block.range().end(), around.binary, around.ways),
            false => 0,
        };
        Some(Self {
            bytes,
            live: live.within(block.id(), &instructions),
            certain: faults.map_or(instructions.len(), |at| at + 1),
            entered: instructions.iter().map(inside).collect(),
            limit: block.range().end().0 + filling,
            at_target: live.at(Address(last.near_branch_target())),
            instructions,
        })
    }

    pub(super) fn start(&self) -> Address {
        Address(self.instructions.first().map_or(0, Instruction::ip))
    }

    fn end(&self) -> u64 {
        self.start().0 + self.bytes.len() as u64
    }

    fn behind(&self, at: usize) -> &[u8] {
        let offset = self.instructions[at].ip() - self.start().0;
        &self.bytes[offset as usize..]
    }

    fn has_branch(&self) -> bool {
        let last = self.instructions.last();
        last.is_some_and(|last| last.flow_control() == FlowControl::ConditionalBranch)
    }

    /// What counting its start costs.
    pub(super) fn cost_of_start(&self) -> Option<u64> {
        let (at, _) = self.at_start(self.instructions.len())?;
        Some(increment::cost(self.live[at]))
    }

    /// What counting a way of its branch costs.
    pub(super) fn cost_of_branch(&self, taken: bool, to: Address) -> Option<u64> {
        self.at_end()?;
        let target = self.instructions.last()?.near_branch_target();
        match taken {
            true if target == to.0 => Some(1 + increment::cost(self.at_target)),
            false if self.end() == to.0 => Some(1 + increment::cost(*self.live.last()?)),
            _ => None,
        }
    }

    /// The cheapest window for its start, before the instruction number `before`.
    fn at_start(&self, before: usize) -> Option<Site> {
        let stop = self.instructions.get(before);
        let (stop, limit) = match stop {
            Some(next) => (next.ip(), next.ip()),
            None => (self.end(), self.limit),
        };
        let fits = |at: usize| {
            let start = self.instructions[at].ip();
            let bytes = self.behind(at).get(..(stop - start) as usize)?;
            let length = displaced(Address(start), bytes, limit - start)?;
            (!self.entered[at]).then_some((at, length))
        };
        let sites = (0..self.certain.min(before)).filter_map(fits);
        sites.min_by_key(|(at, _)| increment::cost(self.live[*at]))
    }

    /// The last window that reaches to its end over the branch there.
    fn at_end(&self) -> Option<Site> {
        if !self.has_branch() {
            return None;
        }
        (0..self.instructions.len()).rev().find_map(|at| {
            let start = self.instructions[at].ip();
            let length = self.end() - start;
            let movable = all_movable(Address(start), self.behind(at));
            (length >= JUMP_BYTES && !self.entered[at] && movable).then_some((at, length))
        })
    }

    /// The windows for all that is wanted; `None` where they do not get along.
    pub(super) fn place(&self, wants: &Wants) -> Option<Vec<Unit>> {
        let branches = wants.taken.is_some() || wants.not_taken.is_some();
        if !branches {
            let site = self.at_start(self.instructions.len())?;
            return Some(vec![self.unit(site, wants)]);
        }
        let end = self.at_end()?;
        let alone = Wants {
            start: None,
            ..*wants
        };
        match wants.start {
            None => Some(vec![self.unit(end, wants)]),
            Some(_) if end.0 < self.certain => Some(vec![self.unit(end, wants)]),
            Some(start) => {
                let site = self.at_start(end.0)?;
                let only = Wants {
                    start: Some(start),
                    ..Wants::default()
                };
                Some(vec![self.unit(site, &only), self.unit(end, &alone)])
            }
        }
    }

    fn unit(&self, (at, displaced): Site, wants: &Wants) -> Unit {
        let increment =
            |counter: Option<u32>, live| counter.map(|counter| Increment { counter, live });
        let end = self.live.last().copied().unwrap_or(Set::ALL);
        let start = Address(self.instructions[at].ip());
        Unit {
            displaced,
            increments: Some(Increments {
                before: increment(wants.start, self.live[at]),
                taken: increment(wants.taken, self.at_target),
                not_taken: increment(wants.not_taken, end),
            }),
            ..Unit::block(self.start(), Window::new(start, Tactic::Staying), None)
        }
    }
}
