//! Tracing: what is known of a program that is traced, and the tracks that its threads leave.
//!
//! A *chart* is a file beside the images of a module: the functions that are traced with their blocks and
//! ways, and where witnesses are. It is all that reconstruction needs, and its checksum names it, in images and
//! records as that of a plan does.
//!
//! A *track* is what the witnesses of one thread recorded, in order: words of 32 bits. The tracks of a run are
//! one file: a file of slabs ([`crate::counting::Slabs`]), each a page with the state of one thread
//! ([`State`]); a table that says of each *unit* behind it to which slab it belongs, and as the how manieth; and the
//! units.
//!
//! The units of a track are numbered in order: their *positions*. Where somebody takes what was recorded while the program
//! runs, a track goes round and round in a *ring* of units that lie one behind the other: the unit at a position is the
//! slot of that number, modulo the slots. Who takes a unit fills it with zeros and then says so ([`State::taken`]). Without a ring, or when nobody
//! takes anything, a track grows, and the table says where.
//!
//! | part | where | what |
//! |---|---|---|
//! | units | [`UNITS_AT`] | how many units were handed out |
//! | serial | [`SERIAL_AT`] | how many threads there were |
//! | handlers | [`HANDLERS_AT`] | the functions that the program has made signal handlers |
//! | full | [`FULL_AT`] | how many threads had no room left and were recorded up to there |
//! | slots | [`SLOTS_AT`] | how many units the ring of a track has; 0 where tracks grow |
//! | slabs | as in a file of slabs | [`State`] each |
//! | table | [`table`] | for each unit its slab and position, as in [`entry`] |
//! | units | [`units`] | words |
//!
//! A word is 0 where a witness had room and did not come to write, one more than the number of a witness, or
//! [`BEGIN`], which [`BEGIN_WORDS`] words in all follow from: a thread begins, behind which may stand of which other one it is the
//! copy ([`FORKED`]: see [`Origin`]); or [`SIGNAL`]: see [`signal`]. Behind the
//! number of an arrival may stand the low half of the stack pointer, and behind that of a witness with a value ([`Value`]) the two words
//! of that ([`words_of`]). None of these is 0.

mod marks;
mod value;

use core::mem::size_of;

use zerocopy::little_endian::{U32, U64};
use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes, KnownLayout};

use crate::counting::{Contents, MOST_SLABS, Slabs};
use crate::door::{Header, Preamble, Refusal, part};
use crate::{ModuleId, PAGE, checksum};

pub use marks::{
    BEGIN, BEGIN_WORDS, FORKED, FORKED_WORDS, Origin, SIGNAL, SIGNAL_WORDS, signal, signal_at,
};
pub use value::{Value, value_of, words_of};

/// In place of the number of a block or witness.
pub const NONE: u32 = u32::MAX;

/// A function that is traced.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct Function {
    /// Its first block by address; the others follow.
    pub first: U32,
    /// How many blocks it has.
    pub blocks: U32,
    /// The block in which it is entered.
    pub entry: U32,
    reserved: U32,
}

impl Function {
    /// A function of so many blocks.
    #[must_use]
    pub fn of(first: u32, blocks: u32, entry: u32) -> Self {
        Self {
            first: first.into(),
            blocks: blocks.into(),
            entry: entry.into(),
            reserved: U32::ZERO,
        }
    }
}

/// A block of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct Block {
    /// Where it starts, as the module states it.
    pub address: U64,
    /// Its bytes.
    pub size: U32,
    /// How it ends, and what it is: flags of [`block`].
    pub flags: U32,
    /// The witness on entering it.
    pub witness: U32,
    /// The witness of arriving at it from code that is not traced, or by its address.
    pub arrival: U32,
    /// The entry of the traced function that it calls.
    pub callee: U32,
    /// The first of its ways.
    pub ways: U32,
}

/// Flags of blocks.
pub mod block {
    /// It ends in a call of a traced function, which comes back straight from there if at all.
    pub const CALLS: u32 = 1;
    /// It ends in a call of a traced function that may come back by way of code that is not traced.
    pub const CALLS_ON: u32 = 2;
    /// It ends in a call of code that is not traced.
    pub const CALLS_AWAY: u32 = 4;
    /// Control may return to the caller from it.
    pub const RETURNS: u32 = 8;
    /// Control may leave from it for code that is not traced, in place of its function.
    pub const LEAVES: u32 = 16;
    /// Its function is entered here.
    pub const ENTRY: u32 = 32;
    /// An arrival's witness is followed by the low half of the stack pointer.
    pub const WITH_STACK: u32 = 64;
    /// Unwinders land here.
    pub const LANDING: u32 = 128;
    /// Its call passes the callee's arrival.
    pub const CALLS_SEEN: u32 = 256;
    /// A loop whose rounds are counted by a register begins here.
    pub const HEAD: u32 = 512;
}

/// A way out of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct Way {
    /// The block to which it leads.
    pub to: U32,
    /// Flags of [`way`].
    pub flags: U32,
    /// The witness on it.
    pub witness: U32,
    /// The witness with a value on it.
    pub value: U32,
}

impl Way {
    /// A way with this witness and this one with a value, or with [`NONE`].
    #[must_use]
    pub fn of(to: u32, flags: u32, witness: u32, value: u32) -> Self {
        Self {
            to: to.into(),
            flags: flags.into(),
            witness: witness.into(),
            value: value.into(),
        }
    }
}

/// Flags of ways.
pub mod way {
    /// Out of the function: what it leads to takes its place.
    pub const TAIL: u32 = 1;
    /// From a call to the block behind it.
    pub const BEHIND: u32 = 2;
    /// From a call to where an unwinder lands.
    pub const PAD: u32 = 4;
    /// By the address of the block, so that its arrival is witnessed.
    pub const BY_ADDRESS: u32 = 8;
    /// Round a loop that a register counts.
    pub const ROUND: u32 = 16;
    /// The same, where only whole rounds pass: witnesses on ways say nothing of it.
    pub const WHOLE_ROUND: u32 = 32;
}

/// The header of a chart.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct Chart {
    preamble: Preamble,
    /// The module that is traced.
    pub module: ModuleId,
    /// Version of the analysis that the blocks come from.
    pub analysis: U32,
    /// In how many profiles, one a run.
    pub profiles: U32,
    functions: U32,
    blocks: U32,
    ways: U32,
    witnesses: U32,
    untraced: U32,
    values: U32,
    /// Where the module's first executable page is, as it states it.
    pub origin: U64,
    /// Checksum of all that follows.
    body: U64,
}

impl Header for Chart {
    const MAGIC: [u8; 8] = *b"TOMOCHT\n";
    const VERSION: u32 = 3;

    fn preamble(&mut self) -> &mut Preamble {
        &mut self.preamble
    }
}

/// What a chart shows.
#[derive(Clone, Copy, Debug)]
pub struct ChartView<'c> {
    /// The header.
    pub header: Chart,
    /// By address of their first blocks.
    pub functions: &'c [Function],
    /// By function and address.
    pub blocks: &'c [Block],
    /// By block.
    pub ways: &'c [Way],
    /// Which profiles hold each witness, a bit for each. Arrivals are in the first.
    pub witnesses: &'c [U64],
    /// Entries of the functions that are not traced.
    pub untraced: &'c [U64],
    /// By their witnesses' numbers.
    pub values: &'c [Value],
}

/// Functions, blocks, ways, witnesses, untraced functions and values of a chart.
pub type Parts<'p> = (
    &'p [Function],
    &'p [Block],
    &'p [Way],
    &'p [U64],
    &'p [U64],
    &'p [Value],
);

impl<'c> ChartView<'c> {
    /// The header before these parts.
    #[must_use]
    pub fn seal(
        (module, origin): (ModuleId, u64),
        analysis: u32,
        profiles: u32,
        parts: Parts<'_>,
        body: u64,
    ) -> Chart {
        let (functions, blocks, ways, witnesses, untraced, values) = parts;
        let count = |length: usize| U32::new(length as u32);
        let mut header = Chart {
            module,
            analysis: analysis.into(),
            profiles: profiles.into(),
            functions: count(functions.len()),
            blocks: count(blocks.len()),
            ways: count(ways.len()),
            witnesses: count(witnesses.len()),
            untraced: count(untraced.len()),
            values: count(values.len()),
            origin: origin.into(),
            body: body.into(),
            ..Chart::new_zeroed()
        };
        header.seal();
        header
    }

    /// The chart in `file`.
    ///
    /// # Errors
    /// Where it is none, of another version, cut short or damaged, or points outside of itself.
    pub fn read(file: &'c [u8]) -> Result<Self, Refusal> {
        let header = <Chart as Header>::open(file)?;
        let mut at = size_of::<Chart>() as u64;
        let body = file.get(at as usize..).unwrap_or_default();
        let mut next = |count: U32, size: usize| {
            let bytes = part(file, at, u64::from(count.get()) * size as u64);
            at += u64::from(count.get()) * size as u64;
            bytes
        };
        let functions = next(header.functions, size_of::<Function>())?;
        let blocks = next(header.blocks, size_of::<Block>())?;
        let ways = next(header.ways, size_of::<Way>())?;
        let witnesses = next(header.witnesses, 8)?;
        let untraced = next(header.untraced, 8)?;
        let values = next(header.values, size_of::<Value>())?;
        if checksum(body) != header.body.get() {
            return Err(Refusal::Damaged);
        }
        let inconsistent = Refusal::Inconsistent;
        let chart = Self {
            header,
            functions: <[Function]>::ref_from_bytes(functions).map_err(|_| inconsistent)?,
            blocks: <[Block]>::ref_from_bytes(blocks).map_err(|_| inconsistent)?,
            ways: <[Way]>::ref_from_bytes(ways).map_err(|_| inconsistent)?,
            witnesses: <[U64]>::ref_from_bytes(witnesses).map_err(|_| inconsistent)?,
            untraced: <[U64]>::ref_from_bytes(untraced).map_err(|_| inconsistent)?,
            values: <[Value]>::ref_from_bytes(values).map_err(|_| inconsistent)?,
        };
        chart.is_sound().then_some(chart).ok_or(inconsistent)
    }

    /// What names the chart in images and records.
    #[must_use]
    pub fn name(&self) -> u64 {
        checksum(self.header.as_bytes())
    }

    /// The ways out of a block.
    #[must_use]
    pub fn ways_of(&self, block: u32) -> &'c [Way] {
        let first = |block: usize| {
            self.blocks
                .get(block)
                .map(|block| block.ways.get() as usize)
        };
        let start = first(block as usize).unwrap_or(self.ways.len());
        let end = first(block as usize + 1).unwrap_or(self.ways.len());
        self.ways.get(start..end).unwrap_or_default()
    }

    /// The value that a witness has, if it has one.
    #[must_use]
    pub fn value(&self, witness: u32) -> Option<&'c Value> {
        let at = self
            .values
            .binary_search_by_key(&witness, |value| value.witness.get());
        self.values.get(at.ok()?)
    }

    fn is_sound(&self) -> bool {
        let (blocks, witnesses) = (self.blocks.len() as u32, self.witnesses.len() as u32);
        let witness = |at: U32| at.get() == NONE || at.get() < witnesses;
        let mut values = self.values.iter();
        let rise = self
            .values
            .is_sorted_by(|one, next| one.witness.get() < next.witness.get());
        let values = rise
            && values.all(|value| value.head.get() < blocks && value.witness.get() < witnesses);
        let mut next = 0;
        let functions = self.functions.iter().all(|function| {
            let (first, count) = (function.first.get(), function.blocks.get());
            let follows = first == next;
            next = first.saturating_add(count);
            let entry = function.entry.get();
            follows && count > 0 && next <= blocks && (first..next).contains(&entry)
        });
        let mut from = 0;
        let sound = self.blocks.iter().all(|block| {
            let rises = block.ways.get() >= from;
            from = block.ways.get();
            let callee = block.callee.get();
            rises
                && from as usize <= self.ways.len()
                && (callee == NONE || callee < blocks)
                && witness(block.witness)
                && witness(block.arrival)
        });
        let ways = self.ways.iter();
        let profiles = 1..=u64::BITS;
        functions
            && values
            && next == blocks
            && sound
            && ways
                .clone()
                .all(|way| way.to.get() < blocks && witness(way.witness) && witness(way.value))
            && profiles.contains(&self.header.profiles.get())
    }
}

impl Chart {
    /// Its bytes as they are written to a file, before those of the parts.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        IntoBytes::as_bytes(self)
    }
}

/// Bytes of a unit, to which tracks grow.
pub const UNIT: u64 = 1 << 16;
/// Units of a file at most.
pub const MOST_UNITS: u64 = 1 << 20;
/// Bytes of a slab of tracks.
pub const SLAB: u64 = PAGE;

/// Where it says how many units were handed out.
pub const UNITS_AT: u64 = 1048;
/// Where it says how many threads there were.
pub const SERIAL_AT: u64 = 1056;
/// Where it says how many threads found no more room.
pub const FULL_AT: u64 = 1064;
/// Where it says how many units the ring of a track has.
pub const SLOTS_AT: u64 = 1072;
/// Units of a ring.
pub const SLOTS: u64 = 32;

/// Where the table of units starts.
#[must_use]
pub fn table() -> u64 {
    Slabs::head() + u64::from(MOST_SLABS) * SLAB
}

/// Where units start.
#[must_use]
pub fn units() -> u64 {
    table() + MOST_UNITS * 8
}

/// What the table says of a unit: the slab, plus one, and its position among the slab's own.
#[must_use]
pub fn entry(slab: u32, position: u32) -> u64 {
    (u64::from(slab) + 1) << 32 | u64::from(position)
}

/// Where the signal handlers are that the program has named: how far behind the module's first executable page each
/// is, plus one.
pub const HANDLERS_AT: u64 = 2048;
/// How many of them, at most.
pub const MOST_HANDLERS: u64 = 256;

/// The state of a thread, at the start of its slab. Places are addresses in its process.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct State {
    /// Where the next word will be.
    pub cursor: U64,
    /// What is called when a unit begins.
    pub hand_over: U64,
    /// Where the first word is, or would be, of a track that grows.
    pub base: U64,
    /// How far there is room, where it grows.
    pub ready: U64,
    /// How many units there are, or may be used before more are taken.
    pub units: U64,
    /// Where this slab is.
    pub place: U64,
    /// How many bytes are recorded, where there was no more room; else 0.
    pub full: U64,
    /// The slab's number.
    pub slab: U64,
    /// Where the ring is, which is mapped twice, one behind the other; 0 without one.
    pub ring: U64,
    /// Units of the ring.
    pub slots: U64,
    /// Its first unit in the file.
    pub first: U64,
    /// How many units were taken. Written by who takes them.
    pub taken: U64,
    /// The first position that is not in the ring, where the track grows.
    pub grown: U64,
    /// Where the addresses are that it may grow to.
    pub area: U64,
}

/// Where in a slab it says how many units were taken.
pub const TAKEN: u64 = core::mem::offset_of!(State, taken) as u64;

impl State {
    /// Where the ring's addresses begin and end, and how many bytes it has; `None` where the track grows.
    fn within(&self) -> Option<(u64, u64)> {
        let bytes = self.slots.get().checked_mul(UNIT)?;
        let offset = self.cursor.get().checked_sub(self.ring.get())?;
        let is_inside = self.ring.get() != 0 && bytes != 0 && offset / 2 < bytes;
        is_inside.then(|| (offset % bytes, bytes))
    }

    /// The position of the unit in which the next word will be.
    #[must_use]
    pub fn position(&self) -> u64 {
        self.length() / UNIT
    }

    /// How many bytes were recorded.
    #[must_use]
    pub fn length(&self) -> u64 {
        if self.full.get() != 0 || self.cursor.get() == 0 {
            return self.full.get();
        }
        match self.within() {
            Some((offset, bytes)) => in_ring(self.units.get(), offset / UNIT, bytes / UNIT)
                .wrapping_mul(UNIT)
                .wrapping_add(offset % UNIT),
            None => self.cursor.get().wrapping_sub(self.base.get()),
        }
    }

    /// The unit of the file at a position, if that is in the ring.
    #[must_use]
    pub fn unit_at(&self, position: u64) -> Option<u64> {
        let slots = self.slots.get();
        let is_inside = self.grown.get() == 0 || position < self.grown.get();
        let unit = self.first.get().checked_add(position.checked_rem(slots)?)?;
        (is_inside && self.ring.get() != 0).then_some(unit)
    }
}

/// The position of a slot of a ring, of which positions below `units` may be used: those that were not taken are fewer than
/// there are slots, so it is the last one that this can be.
#[must_use]
pub const fn in_ring(units: u64, slot: u64, slots: u64) -> u64 {
    let last = units.wrapping_sub(1);
    match last
        .wrapping_add(slots)
        .wrapping_sub(slot)
        .checked_rem(slots)
    {
        Some(behind) => last.wrapping_sub(behind),
        None => 0,
    }
}

/// Where in a slab the cursor is.
pub const CURSOR: u32 = 0;
/// Where in a slab the address of what is called when a unit begins.
pub const HAND_OVER: u32 = 8;

/// The tracks of a run.
#[derive(Clone, Copy, Debug)]
pub struct Tracks<'t> {
    head: &'t [u8],
    slabs: Slabs,
    length: u64,
}

impl<'t> Tracks<'t> {
    /// The tracks in a file of `length` bytes, of which `head` are those in front of the [units].
    ///
    /// # Errors
    /// Where they are none.
    pub fn read(head: &'t [u8], length: u64) -> Result<Self, Refusal> {
        let slabs = Slabs::read(head, length)?;
        match slabs.contents() == Some(Contents::Tracks) && slabs.size.get() == SLAB {
            true => Ok(Self {
                head,
                slabs,
                length,
            }),
            false => Err(Refusal::Foreign),
        }
    }

    fn number(&self, at: u64) -> Option<u64> {
        Some(
            U64::read_from_bytes(part(self.head, at, 8).ok()?)
                .ok()?
                .get(),
        )
    }

    /// How many threads found no more room, and how many had none at all.
    #[must_use]
    pub fn lost(&self) -> (u64, u64) {
        let number = |at| self.number(at).unwrap_or(0);
        (number(FULL_AT), number(crate::counting::LOST))
    }

    /// Where the program's signal handlers are, counted from the module's first executable page.
    pub fn handlers(&self) -> impl Iterator<Item = u64> + use<'t> {
        let tracks = *self;
        let slots =
            (0..MOST_HANDLERS).filter_map(move |slot| tracks.number(HANDLERS_AT + 8 * slot));
        slots.filter_map(|stated| stated.checked_sub(1))
    }

    /// How many slabs there are.
    #[must_use]
    pub fn count(&self) -> u32 {
        let used = self.number(crate::counting::USED).unwrap_or(0);
        used.min(MOST_SLABS.into()) as u32
    }

    /// How many units there are.
    #[must_use]
    pub fn unit_count(&self) -> u64 {
        self.number(UNITS_AT).unwrap_or(0).min(MOST_UNITS)
    }

    /// The state of a slab's thread.
    #[must_use]
    pub fn state(&self, slab: u32) -> Option<State> {
        let bytes = part(self.head, self.slabs.start(slab), size_of::<State>() as u64);
        State::read_from_bytes(bytes.ok()?).ok()
    }

    /// The slab and position of a unit, as the table says, where its track grew.
    #[must_use]
    pub fn row(&self, unit: u64) -> Option<(u32, u64)> {
        let entry = self.number(table() + 8 * unit)?;
        let slab = u32::try_from((entry >> 32).checked_sub(1)?).ok()?;
        Some((slab, u64::from(entry as u32)))
    }

    /// Where in the file a unit starts, if all of it is there.
    #[must_use]
    pub fn unit(&self, unit: u64) -> Option<u64> {
        let start = unit.checked_mul(UNIT)?.checked_add(units())?;
        (start.checked_add(UNIT)? <= self.length).then_some(start)
    }
}

#[cfg(test)]
mod tests {
    use super::{State, UNIT, in_ring};
    use zerocopy::FromZeros as _;

    /// A thread that could not have its ring may be there all the same.
    #[test]
    fn a_ring_without_slots_is_none() {
        let state = State {
            ring: 4096.into(),
            cursor: 4096.into(),
            ..State::new_zeroed()
        };
        assert_eq!(state.within(), None);
        assert_eq!(state.position(), 0);
    }

    /// The program may have written what stands there.
    #[test]
    fn a_ring_may_have_as_many_slots_as_a_number_holds() {
        let slots = u64::MAX / UNIT;
        let state = State {
            ring: 4096.into(),
            cursor: (4096 + 3 * UNIT).into(),
            slots: slots.into(),
            ..State::new_zeroed()
        };
        assert_eq!(state.within(), Some((3 * UNIT, slots * UNIT)));
    }

    #[test]
    fn a_slot_of_a_ring_has_one_position() {
        for slots in [1, 2, 32] {
            for taken in 0..100 {
                for position in taken..taken + slots {
                    assert_eq!(in_ring(taken + slots, position % slots, slots), position);
                }
            }
        }
    }
}
