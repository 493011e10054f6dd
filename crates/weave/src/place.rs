//! Chooses the window of each unit of one function.
//!
//! Blocks are taken by address. Each gets the best window that lies in bytes which only this block
//! can run into ("Quadword, else Held, else Trap", see `tactics/`), at the earliest instruction
//! among equals:
//!
//! 1. bytes of the block, from an instruction that is certain to be reached (`block.rs`);
//! 2. behind a block that control leaves for good, or by a call that does not come back, filling (`padding.rs`);
//! 3. *overrun*: bytes of the next block where nothing but this block's running on enters it. That
//!    block's own probe, if it is to have one, then stands behind this window, and only if what
//!    comes before it there cannot fault.
//!
//! An edge gets the displacement of its branch, if that is long and nobody else's.
//!
//! In a function that is not exact there may be unknown ways to any instruction, so a window must lie in the
//! first instruction of its block.

use iced_x86::Instruction;
use rayon::prelude::*;
use tomo_program::{
    Address, Binary, BlockView, EdgeKind, EdgeView, FunctionView, Graphs, Patchability, Range,
    Reason, Status,
};
use tomo_wire::plan::{Level, Tactic};

use crate::block::{Decoded, Leaves, is_call};
use crate::choose::{Choice, Costs, Fate};
use crate::counts::Refusal;
use crate::settle::may_trap;
use crate::spots::{Ways, stays_away};
use crate::tactics::trap::TRAP;
use crate::tactics::{hop, prefixed, retarget, staying};
use crate::text::Text;
use crate::window::{JUMP_BYTES, Window, in_one_fetch, in_one_word, writes_word};
use crate::{Options, padding};

/// A unit with its window, if it has one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Unit {
    /// The block, the function's entry, or the block that the edge leaves.
    pub(crate) from: u64,
    /// The block that the edge enters.
    pub(crate) to: u64,
    pub(crate) window: Window,
    pub(crate) refusal: Option<Refusal>,
    /// What filling within reach could do for it.
    pub(crate) wish: Wish,
    /// Where in filling its jump to the trampoline is, if it has one there.
    pub(crate) slot: Address,
    /// By way of which short jumps in filling it gets there.
    pub(crate) relays: hop::Relays,
    /// How many bytes from its window's start are executed elsewhere.
    pub(crate) displaced: u64,
    /// What it tells of, by a number of whoever asked for it.
    pub(crate) tells: u32,
}

/// What filling within reach could do for a unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wish {
    /// Nothing.
    None,
    /// Two bytes from its window's start may be changed.
    Block,
    /// The byte there is the displacement of its branch.
    Edge,
}

impl Unit {
    pub(crate) fn block(from: Address, window: Window, refusal: Option<Refusal>) -> Self {
        Self {
            from: from.0,
            to: 0,
            window,
            refusal,
            wish: Wish::None,
            slot: Address(0),
            relays: [Address(0); 2],
            displaced: 0,
            tells: 0,
        }
    }

    /// Where its short jump or branch leads, by way of how many others, to the jump in filling: all of them in order.
    pub(crate) fn stations(&self) -> impl Iterator<Item = Address> {
        let relays = self.relays.into_iter().filter(|at| *at != Address(0));
        relays.chain([self.slot])
    }

    /// The end of what is changed or executed elsewhere.
    pub(crate) fn end(&self) -> Address {
        let displaced = self.window.start.wrapping_add(self.displaced);
        self.window.end().max(displaced)
    }

    fn without(from: Address, tactic: Tactic, refusal: Option<Refusal>) -> Self {
        Self::block(from, Window::new(from, tactic), refusal)
    }
}

/// What lies around a function.
#[derive(Clone, Copy)]
pub(crate) struct Surroundings<'a> {
    pub(crate) text: &'a Text,
    pub(crate) binary: &'a Binary<'a>,
    pub(crate) ways: &'a Ways,
}

/// All units of a program, and the filling that was found.
#[derive(Default)]
pub(crate) struct Placed {
    pub(crate) units: Vec<Unit>,
    /// Filling behind blocks of exact functions that control leaves for good.
    pub(crate) gaps: Vec<Range>,
}

/// The units of all functions.
pub(crate) fn units(
    surroundings: &Surroundings<'_>,
    graphs: &Graphs<'_>,
    options: &Options,
) -> Placed {
    let functions: Vec<_> = graphs.functions().collect();
    let chunks: Vec<Placed> = functions
        .par_chunks(64)
        .map(|functions| {
            let mut placed = Placed::default();
            let mut scratch = Scratch::new();
            for function in functions {
                add(surroundings, function, options, &mut scratch, &mut placed);
            }
            placed
        })
        .collect();
    let mut all = Placed::default();
    all.units
        .reserve_exact(chunks.iter().map(|placed| placed.units.len()).sum());
    for placed in chunks {
        all.units.extend(placed.units);
        all.gaps.extend(placed.gaps);
    }
    all.gaps.par_sort_unstable_by_key(|gap| gap.start());
    all
}

/// Buffers that are used again and again.
struct Scratch {
    here: Decoded,
    next: Decoded,
}

impl Scratch {
    fn new() -> Self {
        Self {
            here: Decoded::new(),
            next: Decoded::new(),
        }
    }
}

fn add(
    surroundings: &Surroundings<'_>,
    function: &FunctionView<'_>,
    options: &Options,
    scratch: &mut Scratch,
    placed: &mut Placed,
) {
    let entry = function.entry();
    let opaque = matches!(
        function.status(),
        Status::Opaque(_) | Status::Partial(Reason::OverlappingInstructions)
    );
    let by_function = options.level == Level::Function;
    if opaque || (by_function && function.entry_block().is_none()) {
        let refusal = Some(Refusal::Opaque);
        let each = function.blocks().map(|block| block.address());
        let known = each.filter(|address| !by_function && *address != entry);
        placed.units.extend(
            known
                .chain([entry])
                .map(|at| Unit::without(at, Tactic::Unknown, refusal)),
        );
        return;
    }
    let mut placer = Placer {
        stays: options.stays,
        traps: options.traps,
        ..Placer::of(surroundings, function, &[])
    };
    let choice = Choice::of(function, surroundings.ways, options, || {
        placer.costs(function, scratch)
    });
    placer.all(choice, scratch, placed);
}

/// The units of a function that were chosen. By number of a block, from where on its bytes are changed for something else,
/// if they are, and not for these.
pub(crate) fn chosen(
    surroundings: &Surroundings<'_>,
    function: &FunctionView<'_>,
    choice: Choice,
    ceilings: &[Option<Address>],
) -> Placed {
    let mut placed = Placed::default();
    let placer = Placer::of(surroundings, function, ceilings);
    placer.all(choice, &mut Scratch::new(), &mut placed);
    placed
}

struct Placer<'a, 'g> {
    around: &'a Surroundings<'a>,
    exact: bool,
    stays: bool,
    /// Whether an `int3` may be met.
    traps: bool,
    status: Status,
    blocks: Vec<BlockView<'g>>,
    /// From where on the bytes of blocks are changed for something else, by number; nowhere if it is empty.
    ceilings: &'a [Option<Address>],
    wants: Vec<Fate>,
    /// No window may start before.
    floor: Address,
    /// The window that was placed last.
    last: Option<Window>,
    /// The displacement that an edge out of this block wants.
    reserved: Option<Window>,
}

/// A window and how good it is; less is better.
type Rated = (u32, Window);

/// What a trap costs, in detours.
const TRAP_COST: u32 = 1000;

impl<'a, 'g> Placer<'a, 'g> {
    fn of(
        around: &'a Surroundings<'a>,
        function: &FunctionView<'g>,
        ceilings: &'a [Option<Address>],
    ) -> Self {
        Self {
            around,
            exact: function.status() == Status::Exact,
            stays: false,
            traps: true,
            blocks: function.blocks().collect(),
            ceilings,
            status: function.status(),
            wants: Vec::new(),
            floor: Address(0),
            last: None,
            reserved: None,
        }
    }

    /// The units of all blocks and edges.
    fn all(mut self, choice: Choice, scratch: &mut Scratch, placed: &mut Placed) {
        self.wants = choice.blocks;
        let mut fates = choice.edges.into_iter();
        for index in 0..self.blocks.len() {
            self.add(index, &mut fates, scratch, placed);
        }
    }

    /// The units of one block and of the edges out of it.
    fn add(
        &mut self,
        index: usize,
        fates: &mut impl Iterator<Item = Fate>,
        scratch: &mut Scratch,
        placed: &mut Placed,
    ) {
        let block = self.blocks[index];
        let edges = block.successors();
        let edges: Vec<_> = edges
            .zip(fates)
            .filter(|(_, fate)| *fate != Fate::Ignore)
            .collect();
        if block.patchability(self.status) == Patchability::None {
            let own = (self.wants[index] != Fate::Ignore).then_some(0);
            let each = edges.iter().map(|(edge, _)| edge.address.0);
            let none = Unit::without(block.address(), Tactic::Unknown, Some(Refusal::Opaque));
            let units = own.into_iter().chain(each).map(|to| Unit { to, ..none });
            placed.units.extend(units);
            return;
        }
        let asked = edges.iter().find(|(_, fate)| *fate == Fate::Probe);
        let decoded = asked.is_some() && self.decode(block, &mut scratch.here);
        let branch = scratch.here.last;
        self.reserved = asked
            .filter(|_| decoded)
            .and_then(|_| retarget::displacement(&branch))
            .map(|start| Window::new(start, Tactic::Retarget));
        let decoded = match self.wants[index] {
            Fate::Probe => {
                let unit = self.place(index, scratch);
                placed.units.push(unit);
                unit.refusal != Some(Refusal::Undecodable)
            }
            Fate::Infer => {
                let unit = Unit::without(block.address(), Tactic::Inferred, None);
                placed.units.push(unit);
                self.decode(block, &mut scratch.here)
            }
            Fate::Ignore => self.decode(block, &mut scratch.here),
        };
        if decoded {
            placed.gaps.extend(self.gap(block, &scratch.here));
        }
        for (edge, fate) in edges {
            let unit = match fate {
                Fate::Probe => self.place_edge(block, &edge, &branch),
                _ => Unit::without(block.address(), Tactic::Inferred, None),
            };
            if unit.window.tactic.is_probe() {
                self.floor = self.floor.max(unit.end());
                self.last = Some(unit.window);
            }
            placed.units.push(Unit {
                to: edge.address.0,
                ..unit
            });
        }
    }

    /// The displacement of the branch that `edge` is, or a wish for filling if that is short.
    fn place_edge(&self, block: BlockView<'_>, edge: &EdgeView, branch: &Instruction) -> Unit {
        let unit = |window, refusal| Unit::block(block.address(), window, refusal);
        let none = |refusal| {
            let nowhere = Window::new(Address(branch.next_ip()), Tactic::NoPlace);
            unit(nowhere, Some(refusal))
        };
        let entered = &self.around.ways.entered;
        let short = hop::short_displacement(branch);
        let bytes = match short {
            Some(start) => Some(Window::new(start, Tactic::ShortRetarget)),
            None => self.reserved,
        };
        let taken =
            branch.near_branch_target() == edge.address.0 && edge.kind != EdgeKind::NotTaken;
        let Some(window) = bytes.filter(|_| taken) else {
            return none(Refusal::NoOwnCode);
        };
        if short.is_none() && !retarget::in_one_fetch(window.start) {
            none(Refusal::CrossesFetch)
        } else if window.start < self.floor {
            none(Refusal::Taken)
        } else if self.status == Status::Partial(Reason::EnteredInsideInstruction) {
            none(Refusal::Partial)
        } else if entered.has(window.start) || entered.has_inside(window.start, window.length()) {
            none(Refusal::Entered)
        } else if short.is_some() {
            let wished = Window::new(window.start, Tactic::NoPlace);
            Unit {
                wish: Wish::Edge,
                ..unit(wished, Some(Refusal::NoFilling))
            }
        } else {
            unit(window, None)
        }
    }

    /// What a probe would cost at each block and edge, each looked at by itself.
    fn costs(&mut self, function: &FunctionView<'_>, scratch: &mut Scratch) -> Costs {
        let mut costs = Costs {
            blocks: Vec::with_capacity(self.blocks.len()),
            edges: Vec::new(),
            stops: Vec::with_capacity(self.blocks.len()),
        };
        // So that no window reaches into the next block.
        self.wants = vec![Fate::Probe; self.blocks.len()];
        for index in 0..self.blocks.len() {
            let window = self.choose(index, scratch);
            costs.blocks.push(match window {
                Ok(window) if writes_word(window.tactic) => Some(2),
                Ok(_) => Some(3),
                Err(Refusal::Undecodable) => None,
                Err(_) => self.traps.then_some(TRAP_COST),
            });
            let here = &scratch.here;
            costs
                .stops
                .push(here.leaves == Leaves::Calls || here.enters_system);
            let displacement =
                retarget::displacement(&here.last).filter(|at| retarget::in_one_fetch(*at));
            let target = here.last.near_branch_target();
            let edges = self.blocks[index].successors();
            costs.edges.extend(edges.map(|edge| {
                let taken = edge.kind != EdgeKind::NotTaken && edge.address.0 == target;
                displacement.filter(|_| taken).map(|_| 3)
            }));
        }
        debug_assert_eq!(costs.edges.len(), function.edges().count());
        costs
    }

    fn place(&mut self, index: usize, scratch: &mut Scratch) -> Unit {
        let block = self.blocks[index];
        let staying = self.stays.then(|| self.staying(block, &mut scratch.here));
        let unit = match staying.flatten() {
            Some(unit) => unit,
            None => match self.choose(index, scratch) {
                Ok(window) => Unit::block(block.address(), window, None),
                Err(refusal) => self.trap(block, refusal, &scratch.here),
            },
        };
        if unit.window.tactic.is_probe() {
            self.floor = self.floor.max(unit.end());
            // Of a trap that may not be, nothing is left unless it becomes a hop that is in nobody's way.
            let real = self.traps || !may_trap(unit.window.tactic);
            self.last = real.then_some(unit.window).or(self.last);
        }
        unit
    }

    /// A detour that stays: at the first instruction from which what it displaces can be moved, and is not
    /// the branch of an edge that is asked for.
    fn staying(&self, block: BlockView<'_>, here: &mut Decoded) -> Option<Unit> {
        if !self.exact || !self.decode(block, here) {
            return None;
        }
        let end = match self.reserved {
            Some(_) => Address(here.last.ip()),
            None => block.range().end(),
        };
        let limit = self.own_end(block, here);
        let entered = &self.around.ways.entered;
        let starts = here.certain.iter().copied();
        starts
            .filter(|start| *start >= self.floor && *start < end)
            .filter(|start| !entered.has_inside(*start, JUMP_BYTES))
            .find_map(|start| {
                let bytes = self
                    .around
                    .text
                    .from(start)?
                    .get(..(end.0 - start.0) as usize)?;
                let room = limit.0.saturating_sub(start.0);
                Some(Unit {
                    displaced: staying::displaced(start, bytes, room)?,
                    ..Unit::block(block.address(), Window::new(start, Tactic::Staying), None)
                })
            })
    }

    /// An `int3`, where a short jump would fit too if possible.
    fn trap(&self, block: BlockView<'_>, refusal: Refusal, here: &Decoded) -> Unit {
        let start = block.address();
        if refusal == Refusal::Undecodable {
            return Unit::without(start, Tactic::NoPlace, Some(refusal));
        }
        let ceiling = self.ceiling(&block).unwrap_or(Address(u64::MAX));
        let places = || {
            let certain = here.certain.iter().copied();
            certain.filter(|at| *at >= self.floor && *at < ceiling)
        };
        let limit = match self.status {
            Status::Exact => self.own_end(block, here),
            Status::Partial(Reason::EnteredInsideInstruction) => start,
            _ => start.wrapping_add(here.first.into()),
        };
        let entered = &self.around.ways.entered;
        let fits = |at: &Address| {
            let end = at.wrapping_add(hop::BYTES);
            end <= limit && hop::in_one_fetch(*at) && !entered.has_inside(*at, hop::BYTES)
        };
        let first = places().next().filter(|at| self.exact || *at == start);
        let hop = places()
            .filter(|at| fits(at) && (self.exact || *at == start))
            .min_by_key(|at| hop::tactic(*at) == Tactic::HeldHop);
        let (Some(at), wish) = (
            hop.or(first),
            if hop.is_some() {
                Wish::Block
            } else {
                Wish::None
            },
        ) else {
            return Unit::without(start, Tactic::NoPlace, Some(Refusal::Taken));
        };
        // A trap there would not be told from the program's own.
        if self.around.text.from(at).and_then(<[u8]>::first) == Some(&TRAP) {
            return Unit::without(start, Tactic::NoPlace, Some(refusal));
        }
        Unit {
            wish,
            ..Unit::block(start, Window::new(at, Tactic::Trap), Some(refusal))
        }
    }

    /// The filling behind a block.
    fn gap(&self, block: BlockView<'_>, here: &Decoded) -> Option<Range> {
        let end = block.range().end();
        let limit = if self.exact {
            self.own_end(block, here)
        } else {
            end
        };
        Range::new(end, limit).filter(|gap| !gap.is_empty())
    }

    fn choose(&self, index: usize, scratch: &mut Scratch) -> Result<Window, Refusal> {
        let block = self.blocks[index];
        if !self.decode(block, &mut scratch.here) {
            return Err(Refusal::Undecodable);
        }
        let here = &scratch.here;
        if !self.exact {
            return self.in_first_instruction(block, here);
        }
        let limit = self.own_end(block, here);
        if let Some((_, window)) = self.best(&here.certain, limit) {
            return Ok(window);
        }
        let found = match here.leaves {
            Leaves::RunsOn => self.overrun(index, &scratch.here, &mut scratch.next),
            Leaves::ForGood | Leaves::Calls => None,
        };
        found.ok_or_else(|| self.why_not(&scratch.here, limit))
    }

    fn decode(&self, block: BlockView<'_>, decoded: &mut Decoded) -> bool {
        let bytes = self.around.text.from(block.address());
        let bytes = bytes.and_then(|bytes| bytes.get(..block.size() as usize));
        bytes.is_some_and(|bytes| decoded.read(block.address(), bytes))
    }

    fn in_first_instruction(
        &self,
        block: BlockView<'_>,
        here: &Decoded,
    ) -> Result<Window, Refusal> {
        let start = block.address();
        let trap_only = block.patchability(self.status) != Patchability::Detour;
        if trap_only || u64::from(here.first) < JUMP_BYTES || !in_one_fetch(start) {
            return Err(Refusal::Partial);
        }
        let limit = start.wrapping_add(here.first.into());
        let (_, window) = self.best(&[start], limit).ok_or(Refusal::Partial)?;
        Ok(window)
    }

    /// The end of what only this block can run into: its own bytes, and filling behind them.
    fn own_end(&self, block: BlockView<'_>, here: &Decoded) -> Address {
        if let Some(ceiling) = self.ceiling(&block) {
            return ceiling;
        }
        let end = block.range().end();
        let gone = match here.leaves {
            Leaves::ForGood => true,
            Leaves::Calls => is_call(&here.last) && stays_away(&block),
            Leaves::RunsOn => false,
        };
        if !gone {
            return end;
        }
        let Surroundings { binary, ways, .. } = *self.around;
        end.wrapping_add(padding::behind(end, binary, ways))
    }

    /// From where on bytes of the block are changed for something else.
    fn ceiling(&self, block: &BlockView<'_>) -> Option<Address> {
        if self.ceilings.is_empty() {
            return None;
        }
        let number = self
            .blocks
            .binary_search_by_key(&block.address(), |each| each.address());
        self.ceilings.get(number.ok()?).copied().flatten()
    }

    /// The best window at one of these instructions, up to `limit`.
    fn best(&self, certain: &[Address], limit: Address) -> Option<Rated> {
        self.rated(certain, limit).min_by_key(|(rank, _)| *rank)
    }

    /// All windows at these instructions, up to `limit`.
    fn rated(&self, certain: &[Address], limit: Address) -> impl Iterator<Item = Rated> {
        let plain = self.fitting(certain, self.floor, limit);
        let entered = &self.around.ways.entered;
        let prefixed = certain.iter().copied().filter(move |&start| {
            let first = self.around.text.chunk(start);
            start >= self.floor
                && start.wrapping_add(1 + JUMP_BYTES) <= limit
                && first.is_some_and(|[first]| prefixed::fits(start, first))
                && !entered.has_inside(start, 1 + JUMP_BYTES)
        });
        plain
            .map(|start| self.rate(start))
            .chain(prefixed.map(|start| self.rate_prefixed(start)))
            .filter(|(_, window)| self.traps || !may_trap(window.tactic))
    }

    /// Where a jump fits.
    fn fitting(
        &self,
        certain: &[Address],
        floor: Address,
        limit: Address,
    ) -> impl Iterator<Item = Address> {
        let entered = &self.around.ways.entered;
        certain.iter().copied().filter(move |&start| {
            start >= floor
                && start.wrapping_add(JUMP_BYTES) <= limit
                && in_one_fetch(start)
                && !entered.has_inside(start, JUMP_BYTES)
        })
    }

    /// How a jump at `start` is restored, and how good that is. Taking the word of the window before
    /// makes that one worse.
    fn rate(&self, start: Address) -> Rated {
        let quadword = Window::new(start, Tactic::Quadword);
        let disturbed = self.last.is_some_and(|last| last.disturbs(quadword));
        let disturbs = self.last.is_some_and(|last| quadword.disturbs(last));
        let displaces = self.reserved.is_some_and(|edge| edge.overlaps(quadword));
        let harm = u32::from(disturbs) + 4 * u32::from(displaces);
        if in_one_word(start) && !disturbed {
            (harm, quadword)
        } else {
            (harm + 1, Window::new(start, Tactic::Held))
        }
    }

    /// How good a jump behind the prefix at `start` is. Nothing before it is in its word.
    fn rate_prefixed(&self, start: Address) -> Rated {
        let window = Window::new(start.wrapping_add(1), Tactic::Prefixed);
        let displaces = self.reserved.is_some_and(|edge| edge.overlaps(window));
        (4 * u32::from(displaces), window)
    }

    /// A window that reaches into the next block.
    fn overrun(&self, index: usize, here: &Decoded, next: &mut Decoded) -> Option<Window> {
        if self.ceiling(&self.blocks[index]).is_some() {
            return None;
        }
        let mut limit = self.blocks[index].range().end();
        for following in index + 1..self.blocks.len() {
            let block = self.blocks[following];
            if block.address() != limit
                || self.ceiling(&block).is_some()
                || self.around.ways.entered.has(limit)
                || !self.decode(block, next)
            {
                return None;
            }
            let limit_before = limit;
            limit = block.range().end();
            if self.wants[following] == Fate::Probe {
                return self.overrun_probed(here, block, limit_before, next);
            }
            if let Some((_, window)) = self.best(&here.certain, limit) {
                return Some(window);
            }
            if next.leaves != Leaves::RunsOn {
                return None;
            }
        }
        None
    }

    /// A window that reaches into `block`, which is to have a probe too and can have it later.
    fn overrun_probed(
        &self,
        here: &Decoded,
        block: BlockView<'_>,
        start: Address,
        next: &Decoded,
    ) -> Option<Window> {
        let limit = self.own_end(block, next);
        let fits_at_all = self.fitting(&next.certain, start, limit).next().is_some();
        self.rated(&here.certain, block.range().end())
            .filter(|(_, window)| {
                let floor = window.end();
                let later = next.certain.iter().any(|at| *at >= floor);
                later
                    && (!fits_at_all || self.fitting(&next.certain, floor, limit).next().is_some())
            })
            .min_by_key(|(rank, _)| *rank)
            .map(|(_, window)| window)
    }

    fn why_not(&self, here: &Decoded, limit: Address) -> Refusal {
        let long = |start: &&Address| start.wrapping_add(JUMP_BYTES) <= limit;
        let mut places = here.certain.iter().filter(long).peekable();
        if places.peek().is_none() {
            return Refusal::TooShort;
        }
        let entered = &self.around.ways.entered;
        match places.all(|start| entered.has_inside(*start, JUMP_BYTES)) {
            true => Refusal::Entered,
            false => Refusal::CrossesFetch,
        }
    }
}
