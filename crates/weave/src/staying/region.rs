//! A region: blocks that are executed elsewhere, with actions between their instructions.
//!
//! Jumps are paid for on entering a region and on leaving it, not at every action. A region of one piece, a part of
//! a block, is a plain detour that stays; one of a whole function costs little more than its actions do.
//!
//! - The module's text leads into a region at its *entrances*: a jump each, over bytes that nobody executes any
//!   more, since all that is moved is only ever executed in the region.
//! - Inside, branches go from piece to piece; those to somewhere else go where they went.
//! - A call stays at its own place, as return addresses are the program's own: the region jumps there, and
//!   what is behind the call is an entrance again. Only where it leads to is changed: to the code of its callee.

use std::collections::{HashMap, HashSet};

use rayon::prelude::*;
use tomo_program::Address;

use super::action::{Action, Once, Sinks, What};
use super::chain::{Apart, Step};
use super::moved::{Condition, Movable, Reader, Way};
use super::whole::Entrance;
use crate::origins::Said;
use crate::text::Text;
use crate::trampoline::{Spot, Writer};

/// Whole instructions in a row, at most the last of which branches.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Piece {
    pub(crate) start: Address,
    /// Bytes of them.
    pub(crate) length: u64,
    /// Whether a call follows, which stays where it is.
    pub(crate) calls: bool,
    /// Done when control comes into it from outside of the region.
    pub(crate) entering: Vec<Action>,
    /// Done before what is at these addresses.
    pub(crate) before: Vec<(Address, Action)>,
    /// Done on the two ways of the branch at its end.
    pub(crate) taken: Vec<Action>,
    pub(crate) not_taken: Vec<Action>,
}

impl Piece {
    fn end(&self) -> Address {
        self.start.wrapping_add(self.length)
    }
}

/// Pieces that are executed elsewhere.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Region {
    /// By address.
    pub(crate) pieces: Vec<Piece>,
    /// Where the module's text leads to starts of pieces.
    pub(crate) entrances: Vec<Entrance>,
    /// What is done on the way of those alone who come from one place, by that place.
    pub(crate) passages: Vec<Passage>,
    /// The same for branches that are taken, each from its displacement.
    pub(crate) leads: Vec<Passage>,
}

/// The way from one place of the module's text, on which something is done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Passage {
    /// The entrance, or the direct call, from which it leads.
    pub(crate) from: Address,
    /// Where control goes on.
    pub(crate) to: Address,
    pub(crate) actions: Vec<Action>,
}

/// Where things lie in the code of a region, and how long that is.
#[derive(Debug)]
struct Layout {
    offsets: Offsets,
    length: usize,
    short: Short,
}

/// Which of a region's branches to its own pieces are short, in the order in which they are written.
#[derive(Debug, Default)]
struct Short(Vec<bool>);

impl Short {
    fn has(&self, number: usize) -> bool {
        self.0.get(number).copied().unwrap_or_default()
    }
}

/// What was written of a region.
struct Written {
    offsets: Offsets,
    /// Its branches to its own pieces: where each ends, and which piece that is.
    branches: Vec<(usize, Address)>,
}

impl Written {
    /// Which branches may be short. Nothing between them and where they lead becomes longer if others are.
    fn short(&self) -> Short {
        let is_short = |(end, target): &(usize, Address)| {
            let to = self.offsets.pieces.get(target);
            to.is_some_and(|to| i8::try_from(*to as i64 - *end as i64).is_ok())
        };
        Short(self.branches.iter().map(is_short).collect())
    }
}

/// Where things are in the code.
#[derive(Debug, Default)]
struct Offsets {
    /// Pieces, by their starts.
    pieces: HashMap<Address, usize>,
    /// Where those are entered from outside in which something is done then.
    doors: HashMap<Address, usize>,
    /// Where passages are, by where they lead from.
    passages: HashMap<Address, usize>,
}

impl Offsets {
    /// Adds others, which are counted from `first`.
    fn extend(&mut self, others: Self, first: usize) {
        let behind = |all: HashMap<Address, usize>| {
            let all = all.into_iter();
            all.map(move |(start, offset)| (start, first + offset))
        };
        self.pieces.extend(behind(others.pieces));
        self.doors.extend(behind(others.doors));
        self.passages.extend(behind(others.passages));
    }
}

/// A direct call, which stays where it is but may lead elsewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Call {
    pub(crate) address: Address,
    pub(crate) callee: Address,
}

/// All regions of a program, and its direct calls.
#[derive(Debug, Default)]
pub(crate) struct Regions {
    regions: Vec<Region>,
    /// By region.
    short: Vec<Short>,
    calls: Vec<Call>,
    /// Where each piece is, in bytes from where the first region's code starts.
    offsets: Offsets,
    /// Starts of pieces that are executed elsewhere only until something was marked: who goes there goes by the text.
    passing: HashSet<Address>,
    /// Bytes of their code.
    pub(crate) length: usize,
}

impl Regions {
    /// Lays them out one behind the other, on all processors.
    pub(crate) fn new(regions: Vec<Region>, calls: Vec<Call>, text: &Text) -> Self {
        let layouts: Vec<Layout> = regions.par_iter().map(|each| each.layout(text)).collect();
        let mut offsets = Offsets::default();
        let mut short = Vec::with_capacity(layouts.len());
        let mut length = 0;
        for layout in layouts {
            offsets.extend(layout.offsets, length);
            short.push(layout.short);
            length += layout.length;
        }
        let passing = regions
            .iter()
            .filter(|region| region.once().next().is_some());
        let passing = passing.flat_map(|region| &region.pieces);
        Self {
            passing: passing.map(|piece| piece.start).collect(),
            regions,
            short,
            calls,
            offsets,
            length,
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.regions.is_empty()
    }

    /// What is set once, by window.
    pub(crate) fn once(&self) -> impl Iterator<Item = Once> {
        self.regions.iter().flat_map(Region::once)
    }

    /// Appends the code of all. `spot` tells where addresses of the module lie.
    pub(crate) fn write(
        &self,
        writer: &mut Writer,
        text: &Text,
        sinks: Sinks,
        spot: impl Fn(Address) -> Spot + Copy,
    ) {
        let code = writer.here();
        let inside = |address: Address| {
            let offset = self.offsets.pieces.get(&address);
            offset.map_or_else(|| spot(address), |offset| code.plus(*offset as i64))
        };
        let outside = |address: Address| {
            let lasting = Some(address).filter(|address| !self.passing.contains(address));
            let piece = lasting.and_then(|address| self.piece(address, code));
            piece.unwrap_or_else(|| spot(address))
        };
        for (region, short) in self.regions.iter().zip(&self.short) {
            region.emit(writer, text, (sinks, short), spot, (inside, outside));
        }
    }

    /// Where the piece that starts at `address` is entered from outside of its region, for code that begins at `code`.
    fn piece(&self, address: Address, code: Spot) -> Option<Spot> {
        let Offsets { pieces, doors, .. } = &self.offsets;
        let offset = *doors.get(&address).or_else(|| pieces.get(&address))?;
        Some(code.plus(offset as i64))
    }

    /// The jumps into code that begins at `code`: where each is, and where it leads.
    pub(crate) fn ways_in(&self, code: Spot) -> impl Iterator<Item = (Entrance, Spot)> {
        let entrances = self.regions.iter().flat_map(|region| &region.entrances);
        entrances.filter_map(move |&entrance| {
            let passage = self.passage(entrance.at, code);
            Some((entrance, passage.or_else(|| self.piece(entrance.at, code))?))
        })
    }

    fn passage(&self, from: Address, code: Spot) -> Option<Spot> {
        let offset = *self.offsets.passages.get(&from)?;
        Some(code.plus(offset as i64))
    }

    /// The displacements of branches that lead into code that begins at `code`: where each is, and where it leads.
    pub(crate) fn leads(&self, code: Spot) -> impl Iterator<Item = (Address, Spot)> {
        let leads = self.regions.iter().flat_map(|region| &region.leads);
        leads.filter_map(move |lead| Some((lead.from, self.passage(lead.from, code)?)))
    }

    /// The calls of what is executed elsewhere: the address of each, and where it leads.
    pub(crate) fn calls(&self, code: Spot) -> impl Iterator<Item = (Address, Spot)> {
        let calls = self.calls.iter();
        calls.filter_map(move |call| {
            let passage = self.passage(call.address, code);
            Some((
                call.address,
                passage.or_else(|| self.piece(call.callee, code))?,
            ))
        })
    }
}

/// Writes one region.
struct Writing<'w, S, I, O> {
    writer: &'w mut Writer,
    region: &'w Region,
    /// How many bytes were written before.
    start: usize,
    sinks: Sinks,
    short: &'w Short,
    branches: Vec<(usize, Address)>,
    /// Where an address of the module lies.
    spot: S,
    /// Where control goes that goes to one of the region's pieces.
    inside: I,
    /// Where control goes that goes to any other address.
    outside: O,
    /// Branches on whose way something is done: where they end, that, and where they lead.
    taken: Vec<(usize, &'w [Action], Address)>,
    /// What lies apart from the ways on which nearly everybody goes.
    apart: Vec<Apart>,
}

impl Region {
    /// One piece for itself.
    pub(crate) fn of(piece: Piece) -> Self {
        Self {
            entrances: vec![Entrance::at(piece.start)],
            pieces: vec![piece],
            ..Self::default()
        }
    }

    /// What is set once.
    fn once(&self) -> impl Iterator<Item = Once> {
        let pieces = self.pieces.iter();
        let ways = pieces.flat_map(|piece| piece.taken.iter().chain(&piece.not_taken));
        ways.filter_map(|action| match action.what {
            // One of two has the window.
            What::Once(once) => {
                Some(once).filter(|once| once.other.is_none_or(|other| other > once.mark))
            }
            _ => None,
        })
    }

    /// Gives marks to what units would set: by a unit's number; nothing is set where it has none.
    pub(crate) fn mark_units(&mut self, mark: impl Fn(u32) -> Option<What>) {
        for piece in &mut self.pieces {
            piece.taken.retain_mut(|action| {
                let What::Also(unit) = action.what else {
                    return true;
                };
                let what = mark(unit);
                action.what = what.unwrap_or(action.what);
                what.is_some()
            });
        }
    }

    /// Makes all numbers of counters so much higher.
    pub(crate) fn renumber(&mut self, by: u32) {
        for piece in &mut self.pieces {
            let before = piece.before.iter_mut().map(|(_, action)| action);
            let each = before.chain(&mut piece.entering).chain(&mut piece.taken);
            for action in each.chain(&mut piece.not_taken) {
                action.what = action.what.renumbered(by);
            }
        }
        let passages = self.passages.iter_mut().chain(&mut self.leads);
        for action in passages.flat_map(|passage| &mut passage.actions) {
            action.what = action.what.renumbered(by);
        }
    }

    /// Where its pieces will be: no instruction's length depends on where it is but those of branches to its own pieces.
    fn layout(&self, text: &Text) -> Layout {
        let short = self.drawn(text, &Short::default()).0.short();
        let (written, length) = self.drawn(text, &short);
        Layout {
            offsets: written.offsets,
            length,
            short,
        }
    }

    /// Its code written nowhere, and how long it is.
    fn drawn(&self, text: &Text, short: &Short) -> (Written, usize) {
        let mut writer = Writer::new(Spot(0), 256);
        let written = self.emit_nowhere(&mut writer, text, short);
        (written, writer.bytes.len())
    }

    fn emit_nowhere(&self, writer: &mut Writer, text: &Text, short: &Short) -> Written {
        let nowhere = |_| Spot(0);
        self.emit(
            writer,
            text,
            (Sinks::NOWHERE, short),
            nowhere,
            (nowhere, nowhere),
        )
    }

    /// Appends its code.
    fn emit(
        &self,
        writer: &mut Writer,
        text: &Text,
        (sinks, short): (Sinks, &Short),
        spot: impl Fn(Address) -> Spot,
        (inside, outside): (impl Fn(Address) -> Spot, impl Fn(Address) -> Spot),
    ) -> Written {
        let start = writer.bytes.len();
        let mut offsets = Offsets::default();
        let mut writing = Writing {
            writer,
            region: self,
            start,
            sinks,
            short,
            branches: Vec::new(),
            spot,
            inside,
            outside,
            taken: Vec::new(),
            apart: Vec::new(),
        };
        for (index, piece) in self.pieces.iter().enumerate() {
            if !piece.entering.is_empty() {
                writing.name_door(piece);
                offsets.doors.insert(piece.start, writing.here());
                writing.act(&piece.entering, piece.start);
            }
            if let Some(passage) = self.passage_before(index) {
                offsets.passages.insert(passage.from, writing.here());
                writing.act(&passage.actions, passage.to);
            }
            offsets.pieces.insert(piece.start, writing.here());
            // Who runs on into the next one does not come from outside.
            let next = self.pieces.get(index + 1);
            let next = next.filter(|next| next.entering.is_empty());
            let next = next.filter(|_| self.passage_before(index + 1).is_none());
            writing.piece(piece, text, next.map(|next| next.start));
        }
        writing.ways_taken();
        for passage in self.passages.iter().chain(&self.leads) {
            if offsets.passages.contains_key(&passage.from) {
                continue;
            }
            offsets.passages.insert(passage.from, writing.here());
            writing.passage(passage);
        }
        writing.all_apart();
        writing.writer.write_seldom();
        Written {
            offsets,
            branches: writing.branches,
        }
    }

    /// The passage from the entrance at the start of a piece, if it may stand in front of the piece, since nothing runs
    /// on into that.
    fn passage_before(&self, index: usize) -> Option<&Passage> {
        let piece = self.pieces.get(index)?;
        let before = index
            .checked_sub(1)
            .and_then(|index| self.pieces.get(index));
        let runs_on = before.is_some_and(|one| !one.calls && one.end() == piece.start);
        let found = self
            .passages
            .binary_search_by_key(&piece.start, |one| one.from);
        let passage = found.ok().and_then(|at| self.passages.get(at))?;
        let alone = passage.to == piece.start && piece.entering.is_empty();
        (alone && !runs_on).then_some(passage)
    }

    fn has_piece_at(&self, address: Address) -> bool {
        self.pieces
            .binary_search_by_key(&address, |piece| piece.start)
            .is_ok()
    }
}

impl<'w, S, I, O> Writing<'w, S, I, O>
where
    S: Fn(Address) -> Spot,
    I: Fn(Address) -> Spot,
    O: Fn(Address) -> Spot,
{
    /// How many bytes of the region were written.
    fn here(&self) -> usize {
        self.writer.bytes.len() - self.start
    }

    /// Goes to `address`, if the condition holds or there is none: a branch of the module's, or on the way there.
    fn go(&mut self, condition: Option<Condition>, address: Address) {
        if !self.region.has_piece_at(address) {
            let target = (self.outside)(address);
            return self.writer.go(condition, target);
        }
        let target = (self.inside)(address);
        match self.short.has(self.branches.len()) {
            true => self.writer.go_near(condition, target),
            false => self.writer.go(condition, target),
        }
        self.branches.push((self.here(), address));
    }

    /// What is done in front of the instruction at `next`.
    fn act(&mut self, actions: &[Action], next: Address) {
        self.writer.note(Said::Before(next));
        for action in actions {
            self.act_once(*action);
        }
    }

    fn act_once(&mut self, action: Action) {
        let apart = action.write(self.writer, self.sinks, &self.spot, &self.inside);
        self.apart.extend(apart);
    }

    /// In front of a door by which a function is entered in chains of calls stands who it is.
    fn name_door(&mut self, piece: &Piece) {
        let enters = |action: &Action| matches!(action.what, What::Chain(Step::Enter(_)));
        if piece.entering.iter().any(enters) {
            let Spot(name) = (self.spot)(piece.start);
            self.writer.note(Said::Nothing);
            self.writer.copy(&(name as u32).to_le_bytes());
        }
    }

    fn act_before(&mut self, piece: &Piece, address: Address) {
        self.writer.note(Said::Before(address));
        for (_, action) in piece.before.iter().filter(|(at, _)| *at == address) {
            self.act_once(*action);
        }
    }

    /// A piece, before that which starts at `next`.
    fn piece(&mut self, piece: &'w Piece, text: &Text, next: Option<Address>) {
        let bytes = text.from(piece.start).unwrap_or_default();
        let bytes = bytes.get(..piece.length as usize).unwrap_or_default();
        let mut way = Way::On;
        for movable in Reader::new(piece.start, bytes).filter_map(Result::ok) {
            self.act_before(piece, movable.from);
            way = movable.way;
            self.instruction(&movable, piece, next);
        }
        self.act_before(piece, piece.end());
        if let Way::Branch(..) = way {
            self.act(&piece.not_taken, piece.end());
        }
        if piece.calls {
            let call = (self.spot)(piece.end());
            self.writer.jump(call);
        } else if matches!(way, Way::On | Way::Branch(..)) && next != Some(piece.end()) {
            self.go(None, piece.end());
        }
    }

    fn instruction(&mut self, movable: &Movable<'_>, piece: &'w Piece, next: Option<Address>) {
        // A jump to what comes next anyway is left out.
        if let Way::Jump(target) = movable.way
            && next == Some(target)
        {
            return;
        }
        self.writer
            .note(Said::Own(movable.from, movable.bytes.len() as u32));
        match movable.way {
            Way::On | Way::Away => movable.write(self.writer, (self.spot)(movable.from)),
            Way::Branch(condition, target) if piece.taken.is_empty() => {
                self.go(Some(condition), target);
            }
            Way::Branch(condition, target) => {
                let branch = self.writer.branch_ahead(condition.0);
                self.taken.push((branch, &piece.taken, target));
            }
            Way::Jump(target) => self.go(None, target),
        }
    }

    /// What is done on the way of a branch that is taken lies behind all pieces.
    fn ways_taken(&mut self) {
        for (branch, actions, target) in std::mem::take(&mut self.taken) {
            self.writer.land(branch);
            self.act(actions, target);
            self.go(None, target);
        }
    }

    fn passage(&mut self, passage: &Passage) {
        self.act(&passage.actions, passage.to);
        self.go(None, passage.to);
    }

    fn all_apart(&mut self) {
        self.writer.note(Said::Nothing);
        for apart in std::mem::take(&mut self.apart) {
            apart.write(self.writer);
        }
    }
}
