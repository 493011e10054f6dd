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

use super::action::Action;
use super::chain::Apart;
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
    /// Done when it is entered from outside of its region, and only then.
    pub(crate) entered: Vec<Action>,
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
}

/// Where the pieces of a region lie in its code, by their starts, and how long that is.
#[derive(Debug, Default)]
struct Layout {
    offsets: HashMap<Address, usize>,
    /// Where those are for their own region at which something is done on entering.
    inner: HashMap<Address, usize>,
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
    /// And where those are for their own region at which something is done on entering.
    inner: HashMap<Address, usize>,
    /// Bytes of their code.
    pub(crate) length: usize,
}

impl Regions {
    /// Lays them out one behind the other, on all processors.
    pub(crate) fn new(regions: Vec<Region>, calls: Vec<Call>, text: &Text) -> Self {
        let layouts: Vec<Layout> = regions.par_iter().map(|each| each.layout(text)).collect();
        let mut pieces = HashMap::with_capacity(layouts.iter().map(|l| l.offsets.len()).sum());
        let mut inner = HashMap::new();
        let mut length = 0;
        for layout in layouts {
            let offsets = layout.offsets.into_iter();
            pieces.extend(offsets.map(|(start, offset)| (start, length + offset)));
            let offsets = layout.inner.into_iter();
            inner.extend(offsets.map(|(start, offset)| (start, length + offset)));
            length += layout.length;
        }
        Self {
            regions,
            calls,
            pieces,
            inner,
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
        slab: u32,
        spot: impl Fn(Address) -> Spot + Copy,
    ) {
        let code = writer.here();
        let to = |address: Address| self.piece(address, code).unwrap_or_else(|| spot(address));
        for region in &self.regions {
            let within = |address: Address| {
                let own = self.inner.get(&address).filter(|_| region.has(address));
                own.map_or_else(|| to(address), |offset| code.plus(*offset as i64))
            };
            let inner = |address: Address| {
                let inner = self.inner.get(&address);
                inner.map_or_else(|| to(address), |offset| code.plus(*offset as i64))
            };
            region.emit(writer, text, slab, (spot, inner), within);
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
        entrances.filter_map(move |&entrance| Some((entrance, self.piece(entrance, code)?)))
    }

    /// The calls of what is executed elsewhere: the address of each, and where it leads.
    pub(crate) fn calls(&self, code: Spot) -> impl Iterator<Item = (Address, Spot)> {
        let calls = self.calls.iter();
        calls.filter_map(move |call| Some((call.address, self.piece(call.callee, code)?)))
    }
}

/// Writes one region.
struct Writing<'w, S, I, T> {
    writer: &'w mut Writer,
    /// How many bytes into the slab of a thread the first counter is.
    slab: u32,
    /// Where an address of the module lies.
    spot: S,
    /// Where a piece is behind what is done on entering it.
    inner: I,
    /// Where control goes that goes to it.
    to: T,
    /// Branches on whose way something is done: where they end, that, and where they lead.
    taken: Vec<(usize, &'w [Action], Address)>,
    /// What lies apart from the ways on which nearly everybody goes.
    apart: Vec<Apart>,
}

impl Region {
    /// One piece for itself.
    pub(crate) fn of(piece: Piece) -> Self {
        Self {
            entrances: vec![piece.start],
            pieces: vec![piece],
        }
    }

    /// Whether one of its pieces starts there.
    fn has(&self, address: Address) -> bool {
        let found = self
            .pieces
            .binary_search_by_key(&address, |piece| piece.start);
        found.is_ok()
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
    }

    /// Where its pieces will be: no instruction's length depends on where it is.
    fn layout(&self, text: &Text) -> Layout {
        let mut writer = Writer::new(Spot(0), 256);
        let nowhere = |_| Spot(0);
        let layout = self.emit(&mut writer, text, 0, (nowhere, nowhere), nowhere);
        Layout {
            length: writer.bytes.len(),
            ..layout
        }
    }

    /// Appends its code; where in it its pieces are.
    fn emit(
        &self,
        writer: &mut Writer,
        text: &Text,
        slab: u32,
        (spot, inner): (impl Fn(Address) -> Spot, impl Fn(Address) -> Spot),
        to: impl Fn(Address) -> Spot,
    ) -> Layout {
        let start = writer.bytes.len();
        let mut layout = Layout::default();
        let mut writing = Writing {
            writer,
            slab,
            spot,
            inner,
            to,
            taken: Vec::new(),
            apart: Vec::new(),
        };
        for (index, piece) in self.pieces.iter().enumerate() {
            let here = writing.writer.bytes.len() - start;
            layout.offsets.insert(piece.start, here);
            if !piece.entered.is_empty() {
                writing.act(&piece.entered);
                let here = writing.writer.bytes.len() - start;
                layout.inner.insert(piece.start, here);
            }
            // Who runs on into the next one does not enter it.
            let next = self.pieces.get(index + 1);
            let next = next.filter(|next| next.entered.is_empty());
            writing.piece(piece, text, next.map(|next| next.start));
        }
        writing.ways_taken();
        writing.all_apart();
        layout
    }
}

impl<'w, S, I, T> Writing<'w, S, I, T>
where
    S: Fn(Address) -> Spot,
    I: Fn(Address) -> Spot,
    T: Fn(Address) -> Spot,
{
    fn act(&mut self, actions: &[Action]) {
        for action in actions {
            self.act_once(*action);
        }
    }

    fn act_once(&mut self, action: Action) {
        let apart = action.write(self.writer, self.slab, &self.spot, &self.inner);
        self.apart.extend(apart);
    }

    fn act_before(&mut self, piece: &Piece, address: Address) {
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
    fn all_apart(&mut self) {
        for apart in std::mem::take(&mut self.apart) {
            apart.write(self.writer);
        }
    }
}
