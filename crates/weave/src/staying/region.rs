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

use std::collections::HashMap;

use rayon::prelude::*;
use tomo_program::Address;

use super::action::{Action, Sinks};
use super::moved::{Movable, Reader, Way};
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
    /// Starts of pieces to which the module's text leads.
    pub(crate) entrances: Vec<Address>,
    /// What is done on the way of those alone who come from one place.
    pub(crate) passages: Vec<Passage>,
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

/// Where the pieces of a region lie in its code, by their starts, and how long that is.
#[derive(Debug)]
struct Layout {
    offsets: HashMap<Address, usize>,
    passages: HashMap<Address, usize>,
    length: usize,
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
    calls: Vec<Call>,
    /// Where each piece is, in bytes from where the first region's code starts.
    pieces: HashMap<Address, usize>,
    /// The same of passages, by where they lead from.
    passages: HashMap<Address, usize>,
    /// Bytes of their code.
    pub(crate) length: usize,
}

impl Regions {
    /// Lays them out one behind the other, on all processors.
    pub(crate) fn new(regions: Vec<Region>, calls: Vec<Call>, text: &Text) -> Self {
        let layouts: Vec<Layout> = regions.par_iter().map(|each| each.layout(text)).collect();
        let mut pieces = HashMap::with_capacity(layouts.iter().map(|l| l.offsets.len()).sum());
        let mut passages = HashMap::new();
        let mut length = 0;
        for layout in layouts {
            let ways = layout.passages.into_iter();
            passages.extend(ways.map(|(from, offset)| (from, length + offset)));
            let offsets = layout.offsets.into_iter();
            pieces.extend(offsets.map(|(start, offset)| (start, length + offset)));
            length += layout.length;
        }
        Self {
            regions,
            calls,
            pieces,
            passages,
            length,
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.regions.is_empty()
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
        let to = |address: Address| self.piece(address, code).unwrap_or_else(|| spot(address));
        for region in &self.regions {
            region.emit(writer, text, sinks, spot, to);
        }
    }

    /// Where the piece is that starts at `address`, for code that begins at `code`.
    fn piece(&self, address: Address, code: Spot) -> Option<Spot> {
        let offset = *self.pieces.get(&address)?;
        Some(code.plus(offset as i64))
    }

    /// The jumps into code that begins at `code`: the address that each is at, and where it leads.
    pub(crate) fn ways_in(&self, code: Spot) -> impl Iterator<Item = (Address, Spot)> {
        let entrances = self.regions.iter().flat_map(|region| &region.entrances);
        entrances.filter_map(move |&entrance| {
            let passage = self.passage(entrance, code);
            Some((entrance, passage.or_else(|| self.piece(entrance, code))?))
        })
    }

    fn passage(&self, from: Address, code: Spot) -> Option<Spot> {
        let offset = *self.passages.get(&from)?;
        Some(code.plus(offset as i64))
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
struct Writing<'w, S, T> {
    writer: &'w mut Writer,
    sinks: Sinks,
    /// Where an address of the module lies.
    spot: S,
    /// Where control goes that goes to it.
    to: T,
    /// Branches on whose way something is done: where they end, that, and where they lead.
    taken: Vec<(usize, &'w [Action], Address)>,
}

impl Region {
    /// One piece for itself.
    pub(crate) fn of(piece: Piece) -> Self {
        Self {
            entrances: vec![piece.start],
            pieces: vec![piece],
            passages: Vec::new(),
        }
    }

    /// Makes all numbers of counters so much higher.
    pub(crate) fn renumber(&mut self, by: u32) {
        for piece in &mut self.pieces {
            let before = piece.before.iter_mut().map(|(_, action)| action);
            let each = before.chain(&mut piece.taken);
            for action in each.chain(&mut piece.not_taken) {
                action.what = action.what.renumbered(by);
            }
        }
        let passages = self.passages.iter_mut();
        for action in passages.flat_map(|passage| &mut passage.actions) {
            action.what = action.what.renumbered(by);
        }
    }

    /// Where its pieces will be: no instruction's length depends on where it is.
    fn layout(&self, text: &Text) -> Layout {
        let mut writer = Writer::new(Spot(0), 256);
        let sinks = Sinks::NOWHERE;
        let (offsets, passages) = self.emit(&mut writer, text, sinks, |_| Spot(0), |_| Spot(0));
        Layout {
            offsets,
            passages,
            length: writer.bytes.len(),
        }
    }

    /// Appends its code; where in it its pieces and passages are.
    fn emit(
        &self,
        writer: &mut Writer,
        text: &Text,
        sinks: Sinks,
        spot: impl Fn(Address) -> Spot,
        to: impl Fn(Address) -> Spot,
    ) -> (HashMap<Address, usize>, HashMap<Address, usize>) {
        let start = writer.bytes.len();
        let mut offsets = HashMap::with_capacity(self.pieces.len());
        let mut writing = Writing {
            writer,
            sinks,
            spot,
            to,
            taken: Vec::new(),
        };
        for (index, piece) in self.pieces.iter().enumerate() {
            offsets.insert(piece.start, writing.writer.bytes.len() - start);
            let next = self.pieces.get(index + 1).map(|next| next.start);
            writing.piece(piece, text, next);
        }
        writing.ways_taken();
        let passages = self.passages.iter().map(|passage| {
            let offset = writing.writer.bytes.len() - start;
            writing.passage(passage);
            (passage.from, offset)
        });
        (offsets, passages.collect())
    }
}

impl<'w, S: Fn(Address) -> Spot, T: Fn(Address) -> Spot> Writing<'w, S, T> {
    fn act(&mut self, actions: &[Action]) {
        for action in actions {
            action.write(self.writer, self.sinks);
        }
    }

    fn act_before(&mut self, piece: &Piece, address: Address) {
        for (_, action) in piece.before.iter().filter(|(at, _)| *at == address) {
            action.write(self.writer, self.sinks);
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
            self.act(&piece.not_taken);
        }
        if piece.calls {
            let call = (self.spot)(piece.end());
            self.writer.jump(call);
        } else if matches!(way, Way::On | Way::Branch(..)) && next != Some(piece.end()) {
            let on = (self.to)(piece.end());
            self.writer.jump(on);
        }
    }

    fn instruction(&mut self, movable: &Movable<'_>, piece: &'w Piece, next: Option<Address>) {
        match movable.way {
            Way::On | Way::Away => movable.write(self.writer, (self.spot)(movable.from)),
            Way::Branch(condition, target) if piece.taken.is_empty() => {
                let target = (self.to)(target);
                self.writer.branch(condition.0, target);
            }
            Way::Branch(condition, target) => {
                let branch = self.writer.branch_ahead(condition.0);
                self.taken.push((branch, &piece.taken, target));
            }
            Way::Jump(target) if next == Some(target) => {}
            Way::Jump(target) => {
                let target = (self.to)(target);
                self.writer.jump(target);
            }
        }
    }

    /// What is done on the way of a branch that is taken lies behind all pieces.
    fn ways_taken(&mut self) {
        for (branch, actions, target) in std::mem::take(&mut self.taken) {
            self.writer.land(branch);
            self.act(actions);
            let target = (self.to)(target);
            self.writer.jump(target);
        }
    }

    fn passage(&mut self, passage: &Passage) {
        self.act(&passage.actions);
        let on = (self.to)(passage.to);
        self.writer.jump(on);
    }
}
