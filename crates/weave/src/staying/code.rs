//! A block as a place for actions: at its start, before it ends, and on the two ways of the branch at its end.

use iced_x86::{
    Code as Code64, Decoder, DecoderOptions, FlowControl, Instruction, InstructionInfoFactory,
    Mnemonic, OpAccess, OpKind, Register,
};
use tomo_program::{Address, BlockView};

use crate::block::{cannot_fault, is_call, leaves_for_good};
use crate::padding;
use crate::place::Surroundings;
use crate::staying::action::{Action, What};
use crate::staying::chain;
use crate::staying::frame::{Frame, Slot};
use crate::staying::increment;
use crate::staying::live::{Liveness, Set};
use crate::staying::region::{Call, Piece};
use crate::staying::witness::{self, Word};
use crate::tactics::retarget;
use crate::tactics::staying::{all_movable, displaced};
use crate::window::{JUMP_BYTES, in_one_fetch};

/// What is to be done in a block, each in this order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Wants {
    /// When control comes into it from the module's text, or by a call: not along direct branches of moved blocks.
    pub(crate) entering: Vec<What>,
    /// Before anything else, whenever it starts.
    pub(crate) first: Vec<What>,
    /// Right before its last instruction.
    pub(crate) last: Vec<What>,
    /// Anywhere in it, where most registers are free.
    pub(crate) anywhere: Vec<What>,
    /// When it starts, or as soon as may be if it is certain to be run.
    pub(crate) start: Vec<What>,
    /// Before its last instruction if that transfers control, else behind it, or sooner if all that follows is certain to
    /// be run.
    pub(crate) end: Vec<What>,
    /// When its branch is taken, and when it is not.
    pub(crate) taken: Vec<What>,
    pub(crate) not_taken: Vec<What>,
}

/// The code of a block.
#[derive(Debug)]
pub(crate) struct Code<'t> {
    bytes: &'t [u8],
    instructions: Vec<Instruction>,
    /// What is live before each of them, and at the end.
    live: Vec<Set>,
    /// How many of them are certain to be reached once the block starts.
    certain: usize,
    /// Which of them no window may start at, since something arrives in its bytes.
    entered: Vec<bool>,
    /// The end of what only this block can run into.
    limit: u64,
    /// Whether all of them can be executed elsewhere, but for a call at the end.
    is_movable: bool,
    /// What is live where the branch leads.
    at_target: Set,
    /// Where the return address is before each instruction, and at the end, as far as it was asked for.
    slots: Vec<Option<Slot>>,
}

/// What the two jumps of a window cost, in halves of what an increment does.
const JUMPS: u64 = 4;

/// A window: at which instruction it starts, and bytes that are executed elsewhere.
type Site = (usize, u64);

impl<'t> Code<'t> {
    /// The code of `block`; `None` where it is not what the model says.
    pub(crate) fn of(
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
        let own = match is_call(last) {
            true => &bytes[..bytes.len() - last.len()],
            false => bytes,
        };
        Some(Self {
            bytes,
            is_movable: all_movable(block.address(), own),
            live: live.within(block.id(), &instructions),
            certain: faults.map_or(instructions.len(), |at| at + 1),
            entered: instructions.iter().map(inside).collect(),
            limit: block.range().end().0 + filling,
            at_target: live.at(Address(last.near_branch_target())),
            slots: vec![None; instructions.len() + 1],
            instructions,
        })
    }

    pub(crate) fn start(&self) -> Address {
        Address(self.instructions.first().map_or(0, Instruction::ip))
    }

    /// The frame behind its last instruction, or where that makes a call, given that at its start.
    pub(crate) fn frame_at_end(
        &self,
        start: &Frame,
        factory: &mut InstructionInfoFactory,
    ) -> Frame {
        let own = self.instructions.iter().filter(|one| !is_call(one));
        own.fold(*start, |frame, one| frame.after(one, factory))
    }

    /// The frame in a landing pad of its call, given that behind the call.
    pub(crate) fn landing(&self, behind: &Frame) -> Frame {
        let pushes = |one: &Instruction| one.mnemonic() == Mnemonic::Push;
        match self.instructions.iter().any(pushes) {
            true => behind.without_stack(),
            false => *behind,
        }
    }

    /// Notes where the return address is, given the frame at its start.
    pub(crate) fn find_slots(&mut self, start: &Frame, factory: &mut InstructionInfoFactory) {
        let mut frame = *start;
        for (slot, one) in self.slots.iter_mut().zip(&self.instructions) {
            *slot = frame.slot();
            frame = frame.after(one, factory);
        }
        if let Some(last) = self.slots.last_mut() {
            *last = frame.slot();
        }
    }

    fn end(&self) -> u64 {
        self.start().0 + self.bytes.len() as u64
    }

    fn behind(&self, at: usize) -> &[u8] {
        let offset = self.instructions[at].ip() - self.start().0;
        &self.bytes[offset as usize..]
    }

    pub(crate) fn has_branch(&self) -> bool {
        let last = self.instructions.last();
        last.is_some_and(|last| last.flow_control() == FlowControl::ConditionalBranch)
    }

    /// Whether what leads to `address` is its branch when that is taken, or when it is not.
    pub(crate) fn branches_to(&self, address: Address) -> Option<bool> {
        let last = self.instructions.last().filter(|_| self.has_branch())?;
        Some(last.near_branch_target() == address.0)
    }

    /// Whether control may leave a function at its end for good: by a return or a jump.
    pub(crate) fn leaves_function(&self) -> bool {
        let last = self.instructions.last().map(Instruction::flow_control);
        matches!(
            last,
            Some(
                FlowControl::Return
                    | FlowControl::UnconditionalBranch
                    | FlowControl::IndirectBranch
                    | FlowControl::ConditionalBranch
            )
        )
    }

    pub(crate) fn is_movable(&self) -> bool {
        self.is_movable
    }

    pub(crate) fn instructions(&self) -> &[Instruction] {
        &self.instructions
    }

    pub(crate) fn last_instruction(&self) -> Option<&Instruction> {
        self.instructions.last()
    }

    pub(crate) fn bytes_of_last(&self) -> &[u8] {
        let length = self.last_instruction().map_or(0, Instruction::len);
        &self.bytes[self.bytes.len().saturating_sub(length)..]
    }

    /// Whether it ends in a call.
    pub(crate) fn keeps_call(&self) -> bool {
        self.instructions.last().is_some_and(is_call)
    }

    /// Whether it ends in a return.
    pub(crate) fn returns(&self) -> bool {
        let last = self.instructions.last();
        last.is_some_and(|last| last.flow_control() == FlowControl::Return)
    }

    /// Whether it ends in a jump through a register or memory.
    pub(crate) fn jumps_by_address(&self) -> bool {
        let last = self.instructions.last();
        last.is_some_and(|last| last.flow_control() == FlowControl::IndirectBranch)
    }

    /// Whether it is a direct jump and nothing else.
    pub(crate) fn jumps_at_once(&self) -> bool {
        let [only] = self.instructions.as_slice() else {
            return false;
        };
        only.flow_control() == FlowControl::UnconditionalBranch
    }

    /// Its bytes, counted.
    pub(crate) fn size(&self) -> usize {
        self.bytes.len()
    }

    /// The direct call in which it ends.
    pub(crate) fn call(&self) -> Option<Call> {
        let last = self.instructions.last()?;
        (last.code() == Code64::Call_rel32_64 && last.len() == 5).then(|| Call {
            address: Address(last.ip()),
            callee: Address(last.near_branch_target()),
        })
    }

    /// What is live where it starts, and before its last instruction.
    pub(crate) fn live_at_start(&self) -> Set {
        self.live.first().copied().unwrap_or(Set::ALL)
    }

    pub(crate) fn live_at_call(&self) -> Set {
        let last = self.instructions.len().checked_sub(1);
        last.and_then(|last| self.live.get(last).copied())
            .unwrap_or(Set::ALL)
    }

    /// Whether control may stop in it for good: a fault, a call, an entry into the system.
    pub(crate) fn may_stop(&self) -> bool {
        let transfers = |one: &Instruction| {
            matches!(
                one.flow_control(),
                FlowControl::ConditionalBranch | FlowControl::UnconditionalBranch
            )
        };
        !self
            .instructions
            .iter()
            .all(|one| cannot_fault(one) || transfers(one))
    }

    /// Whether what is in `rax` at its start is certain to be there still at the call in which it ends.
    pub(crate) fn brings_result_to_call(&self) -> bool {
        let mut factory = InstructionInfoFactory::new();
        let Some((call, before)) = self.instructions.split_last() else {
            return false;
        };
        let mut keeps = |one: &Instruction| {
            let used = factory.info(one).used_registers();
            used.iter().all(|used| {
                used.register().full_register() != Register::RAX
                    || matches!(used.access(), OpAccess::Read | OpAccess::CondRead)
            })
        };
        is_call(call) && before.iter().all(|one| cannot_fault(one) && keeps(one))
    }

    /// The end of what nobody executes at its place once the block is moved.
    pub(crate) fn end_of_free(&self) -> Address {
        Address(match self.instructions.last() {
            Some(call) if is_call(call) => call.ip(),
            _ => self.limit,
        })
    }

    /// What counting its start costs, if it `is_moved` or by a window of its own.
    pub(crate) fn cost_of_start(&self, is_moved: bool) -> Option<u64> {
        match is_moved {
            true => Some(increment::cost(self.live[self.cheapest()])),
            false => {
                let (at, _) = self.at_start(self.instructions.len())?;
                Some(JUMPS + increment::cost(self.live[at]))
            }
        }
    }

    /// What counting a way of its branch costs.
    pub(crate) fn cost_of_branch(&self, is_moved: bool, taken: bool, to: Address) -> Option<u64> {
        let jumps = match is_moved {
            true => self.has_branch().then_some(0)?,
            false => self.at_end().map(|_| JUMPS)?,
        };
        let target = self.instructions.last()?.near_branch_target();
        match taken {
            true if target == to.0 => Some(jumps + 1 + increment::cost(self.at_target)),
            false if self.end() == to.0 => Some(jumps + increment::cost(self.live_at_end())),
            _ => None,
        }
    }

    /// What appending a word at its start costs once it is moved.
    pub(crate) fn cost_of_word(&self) -> u64 {
        let certain = self.live.iter().take(self.certain);
        let cost = |live: &Set| witness::cost(Word::Number(0), *live);
        certain.map(cost).min().unwrap_or(10)
    }

    /// What appending a word on a way of its branch costs once it is moved; `None` where it has no such way to `to`.
    pub(crate) fn cost_of_word_on(&self, taken: bool, to: Address) -> Option<u64> {
        let target = self.instructions.last()?.near_branch_target();
        match taken {
            _ if !self.has_branch() => None,
            true if target == to.0 => Some(1 + witness::cost(Word::Number(0), self.at_target)),
            false if self.end() == to.0 => Some(witness::cost(Word::Number(0), self.live_at_end())),
            _ => None,
        }
    }

    /// What is live on the way of its branch that is taken or not, or at its end if it has none.
    fn live_on(&self, taken: Option<bool>) -> Set {
        match taken {
            Some(true) => self.at_target,
            Some(false) => self.live_at_end(),
            None => self.live[self.last()],
        }
    }

    /// Whether what is in a register can be recorded there.
    pub(crate) fn can_tell(&self, taken: Option<bool>, register: u8) -> bool {
        taken.is_some() == self.has_branch() && witness::can_tell(register, self.live_on(taken))
    }

    /// What recording it costs.
    pub(crate) fn cost_of_value(&self, taken: Option<bool>, register: u8) -> u64 {
        witness::cost(Word::WithValue(0, register), self.live_on(taken))
    }

    /// What is done when control arrives at its start.
    pub(crate) fn arrival(&self, what: What) -> Action {
        let live = self.live.first().copied().unwrap_or(Set::ALL);
        Action::of(what, live)
    }

    fn live_at_end(&self) -> Set {
        self.live.last().copied().unwrap_or(Set::ALL)
    }

    /// Before which instruction its start is counted most cheaply.
    fn cheapest(&self) -> usize {
        let certain = 0..self.certain;
        certain
            .min_by_key(|at| increment::cost(self.live[*at]))
            .unwrap_or(0)
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

    /// The last window that reaches to its end over the branch there; one that is fetched at once if there is any, and
    /// best one that leaves the branch its displacement.
    fn at_end(&self) -> Option<Site> {
        if !self.has_branch() {
            return None;
        }
        let fits = |at: usize| {
            let start = self.instructions[at].ip();
            let length = self.end() - start;
            let movable = all_movable(Address(start), self.behind(at));
            (length >= JUMP_BYTES && !self.entered[at] && movable).then_some((at, length))
        };
        let all = || (0..self.instructions.len()).rev().filter_map(fits);
        let at_once = |(at, _): &Site| in_one_fetch(Address(self.instructions[*at].ip()));
        let displacement = self.instructions.last().and_then(retarget::displacement);
        let clear = |(at, _): &Site| {
            let end = self.instructions[*at].ip() + JUMP_BYTES;
            displacement.is_none_or(|displacement| end <= displacement.0)
        };
        let best = all().find(|site| at_once(site) && clear(site));
        best.or_else(|| all().find(at_once))
            .or_else(|| all().next())
    }

    /// Whether nobody looks at the flags behind its branch.
    pub(crate) fn frees_flags(&self) -> bool {
        let live = self.at_target.with(self.live_at_end());
        !live.has_any(Set::STATUS)
    }

    /// Where the window over its end starts, and what it has there.
    pub(crate) fn window_at_end(&self) -> Option<(Address, [u8; JUMP_BYTES as usize])> {
        let (at, _) = self.at_end()?;
        let bytes = self.behind(at).first_chunk()?;
        Some((Address(self.instructions[at].ip()), *bytes))
    }

    /// All of it as a piece in which is done what is wanted.
    pub(crate) fn whole(&self, wants: &Wants) -> Piece {
        let calls = self.keeps_call();
        let call = self.instructions.last().filter(|_| calls);
        let length = self.bytes.len() - call.map_or(0, Instruction::len);
        let first = self.best(0..self.certain, &wants.start).unwrap_or(0);
        Piece {
            calls,
            ..self.piece((0, length as u64), first, wants)
        }
    }

    /// Whether all that is wanted can be done if it is moved as a whole.
    pub(crate) fn can(&self, wants: &Wants) -> bool {
        let here = |wanted: &[What], at: usize| self.best(at..at + 1, wanted).is_some();
        let count = self.instructions.len();
        let on_ways = !wants.taken.is_empty() || !wants.not_taken.is_empty();
        let first = self.best(0..self.certain, &wants.start);
        here(&wants.entering, 0)
            && first.is_some_and(|first| self.best_end(first, wants).is_some())
            && here(&wants.taken, count)
            && here(&wants.not_taken, count)
            && (!on_ways || self.has_branch())
    }

    /// Before which of these instructions something is done most cheaply, if it can be.
    fn best(&self, among: std::ops::Range<usize>, wanted: &[What]) -> Option<usize> {
        let needs_slot = wanted.iter().any(What::needs_slot);
        let cost =
            |at: &usize| -> u64 { wanted.iter().map(|what| what.cost(self.live[*at])).sum() };
        let possible = among.filter(|at| !needs_slot || self.slots[*at].is_some());
        possible.min_by_key(cost)
    }

    /// The same of what is wanted at the end, where what is wanted at the start is done before the instruction number `first`: that
    /// comes first.
    fn best_end(&self, first: usize, wants: &Wants) -> Option<usize> {
        let from = match wants.start.is_empty() {
            true => self.calm(),
            false => self.calm().max(first),
        };
        self.best(from..self.last() + 1, &wants.end)
    }

    /// From which instruction on all are certain to be run once that one is, up to the last one that does not transfer
    /// control.
    fn calm(&self) -> usize {
        let (last, slots) = (self.last(), &self.slots);
        let frame_known = |at: usize| slots[at].is_some();
        let is_calm = |at: &usize| {
            let one = &self.instructions[*at];
            cannot_fault(one) || (frame_known(*at) && touches_own_frame(one))
        };
        let calm = (0..last).rev().take_while(is_calm).count();
        last - calm
    }

    /// The parts of it that are executed elsewhere, each for itself, so that all that is wanted at its start and on the ways of
    /// its branch is done; `None` where they do not get along.
    pub(crate) fn parts(&self, wants: &Wants) -> Option<Vec<Piece>> {
        let of_whole = [
            &wants.entering,
            &wants.first,
            &wants.last,
            &wants.anywhere,
            &wants.end,
        ];
        if of_whole.iter().any(|wanted| !wanted.is_empty()) {
            return None;
        }
        if wants.taken.is_empty() && wants.not_taken.is_empty() {
            let site = self.at_start(self.instructions.len())?;
            return Some(vec![self.piece(site, site.0, wants)]);
        }
        let end = self.at_end()?;
        if wants.start.is_empty() || end.0 < self.certain {
            return Some(vec![self.piece(end, end.0, wants)]);
        }
        let site = self.at_start(end.0)?;
        let start = Wants {
            start: wants.start.clone(),
            ..Wants::default()
        };
        let rest = Wants {
            start: Vec::new(),
            ..wants.clone()
        };
        Some(vec![
            self.piece(site, site.0, &start),
            self.piece(end, end.0, &rest),
        ])
    }

    /// Before which instruction that is done which is to be done at its end.
    fn last(&self) -> usize {
        let count = self.instructions.len();
        let last = self.instructions.last();
        let transfers = last.is_some_and(|last| last.flow_control() != FlowControl::Next);
        count - usize::from(transfers)
    }

    /// Before which instruction most registers are free.
    fn spacious(&self) -> usize {
        let spare = |at: &usize| chain::spare(self.live[*at]);
        (0..=self.last()).rev().max_by_key(spare).unwrap_or(0)
    }

    /// A piece in which what is wanted at the start is done before the instruction number `first`.
    fn piece(&self, (at, length): Site, first: usize, wants: &Wants) -> Piece {
        let address = |at: usize| match self.instructions.get(at) {
            Some(instruction) => Address(instruction.ip()),
            None => Address(self.end()),
        };
        let actions = |wanted: &[What], live, slot| {
            let action = |what: &What| Action {
                what: *what,
                live,
                slot,
            };
            wanted.iter().map(action).collect::<Vec<_>>()
        };
        let before = |wanted: &[What], at: usize| {
            let actions = actions(wanted, self.live[at], self.slots[at]).into_iter();
            actions.map(move |action| (address(at), action))
        };
        let start = before(&wants.first, 0).chain(before(&wants.start, first));
        let anywhere = before(&wants.anywhere, self.spacious());
        let end = self.best_end(first, wants);
        let end = end.unwrap_or_else(|| self.last());
        let behind = self.slots[self.instructions.len()];
        Piece {
            start: address(at),
            length,
            calls: false,
            before: start
                .chain(anywhere)
                .chain(before(&wants.end, end))
                .chain(before(&wants.last, self.last()))
                .collect(),
            entering: actions(&wants.entering, self.live[0], self.slots[0]),
            taken: actions(&wants.taken, self.at_target, behind),
            not_taken: actions(&wants.not_taken, self.live_at_end(), behind),
        }
    }
}

/// Whether an instruction touches no memory but the frame of the activation, by the registers that name it, and does
/// nothing that could fail.
fn touches_own_frame(one: &Instruction) -> bool {
    let moves = matches!(
        one.mnemonic(),
        Mnemonic::Mov | Mnemonic::Movzx | Mnemonic::Movsx | Mnemonic::Movsxd | Mnemonic::Movups
    );
    let memory = (0..one.op_count()).any(|operand| one.op_kind(operand) == OpKind::Memory);
    let by_frame = matches!(one.memory_base(), Register::RSP | Register::RBP)
        && one.memory_index() == Register::None
        && one.segment_prefix() == Register::None;
    match one.mnemonic() {
        Mnemonic::Leave => true,
        Mnemonic::Push | Mnemonic::Pop => !memory,
        _ => moves && memory && by_frame,
    }
}
