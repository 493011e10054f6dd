//! The checker of images with predicates: proves that the program does what it did, and that each predicate is recorded
//! when it is true, and only then.
//!
//! The walk is that of counted images (`check/counted.rs`). On it is noted from where control comes to each
//! instruction of the trampolines; afterwards
//!
//! - whatever records a branch's way stands directly on that way, and nobody else comes there;
//! - whatever tells a result stands directly behind the jump over what is behind the call, or behind the
//!   direct call that follows it with nothing in between that could fault or change the result; nobody comes there
//!   but by returning from the call;
//! - no branch that is observed is executed without that, in place or elsewhere, and no result arrives without it.
//!
//! A probe that vanishes (`check/vanishing.rs`), and one that stays at the start of a block that is executed elsewhere, tells
//! of a way if that is the only one into the block, as the model has it.

use std::collections::{BTreeSet, HashMap, HashSet};

use iced_x86::{Decoder, DecoderOptions, FlowControl, OpAccess, Register};
use tomo_program::{Address, Binary, BlockView, EdgeKind, EdgeView, Graphs, Model, Status};
use tomo_wire::image::{Image, Window};
use tomo_wire::plan::Entry;
use tomo_wire::predicates::{Kind, Predicates, Recorded, Row, Told};

use super::branched::Apart;
use super::class::{self, Sink};
use super::counted::{Decoded, Observes, Walk, arrivals, belongs};
use super::increment::{self, Keep};
use super::trampolines::of_alias;
use super::vanishing::Vanishing;
use super::{FETCH, Flaw, at};
use crate::WeaveError;
use crate::block::cannot_fault;
use crate::staying::live::Set;
use crate::text::Text;

/// What was proven of an image with predicates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PredicatesChecked {
    /// Jumps and calls in the text that lead into the trampolines.
    pub entrances: usize,
    /// Instructions that are executed elsewhere.
    pub moved: usize,
    /// Places where predicates are recorded by what stays.
    pub actions: usize,
    /// Windows of probes that vanish.
    pub windows: usize,
}

/// From where control comes to an instruction of the trampolines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Came {
    /// From the copy at this spot of the branch at this address, which was taken or not.
    Way(i64, Address, bool),
    /// From the jump, or the call, at this address of the text.
    Text(Address),
    /// From right before it, where this mark, or counter, is.
    Mark(u32),
    /// From anywhere else.
    Other,
}

/// What is done at a spot.
#[derive(Clone, Copy, Debug)]
pub(super) struct Act {
    pub(super) spot: i64,
    /// Where it ends.
    pub(super) end: i64,
    /// Where the module would be.
    pub(super) address: Address,
    pub(super) what: What,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum What {
    /// This mark, or counter.
    One(u32),
    /// The first of three, by so many bits.
    Class(u32, u8),
    /// This or the next one, by the flags: by the sign, or by zero.
    Apart(u32, bool),
}

/// What is noted on the walk.
pub(super) struct Notes {
    recorded: Recorded,
    probes: u32,
    slab: u32,
    pub(super) came: HashMap<i64, Came>,
    pub(super) acts: Vec<Act>,
    /// Copies of branches: where each is, and which it is.
    pub(super) branches: HashSet<(i64, Address)>,
    /// Copies of all instructions.
    pub(super) copies: HashMap<Address, Vec<i64>>,
    /// Windows that are restored when a mark is set, and which.
    once: Vec<(Address, u32)>,
    /// Marks of them that only restore if another one is set, with that.
    pairs: HashMap<u32, u32>,
    /// Where the module would be where something changes flags.
    pub(super) disturbed: BTreeSet<Address>,
}

impl Notes {
    /// Control comes to a spot.
    pub(super) fn arrive(&mut self, spot: i64, came: Came) {
        let known = self.came.entry(spot).or_insert(came);
        if *known != came {
            *known = Came::Other;
        }
    }

    /// From where control comes behind what is done at a spot, where it came from `came`.
    pub(super) fn behind(&self, spot: i64, came: Came) -> Came {
        match self.acts.last().filter(|act| act.spot == spot) {
            Some(Act {
                what: What::One(number),
                ..
            }) => Came::Mark(*number),
            // It leaves a way what it is.
            Some(Act {
                what: What::Apart(number, _),
                ..
            }) if !matches!(came, Came::Way(..)) => Came::Mark(*number),
            _ => came,
        }
    }

    /// A copy of an instruction is executed.
    pub(super) fn copy(&mut self, spot: i64, address: Address) {
        self.copies.entry(address).or_default().push(spot);
    }

    /// A copy of a branch is executed.
    pub(super) fn branch(&mut self, spot: i64, address: Address) {
        self.branches.insert((spot, address));
    }

    /// A mark is set, and a window restored, perhaps only if another one is set: its number, and what that changes.
    fn once(&mut self, found: &class::Once, window: Address) -> Result<(u32, Set), &'static str> {
        let none = "it records what is no predicate";
        let number = self.number(Sink::Mark(found.mark)).ok_or(none)?;
        self.once.push((window, number));
        let Some(other) = found.other else {
            return Ok((number, Set::NONE));
        };
        let other = self.number(Sink::Mark(other)).ok_or(none)?;
        match *self.pairs.entry(number).or_insert(other) == other {
            true => Ok((number, Set::STATUS)),
            false => Err("it waits for two predicates"),
        }
    }

    fn number(&self, sink: Sink) -> Option<u32> {
        let number = match (sink, self.recorded) {
            (Sink::Mark(mark), Recorded::Marks) => u32::try_from(mark).ok(),
            (Sink::Counter(offset), Recorded::Counts) => {
                let bytes = offset.checked_sub(self.slab)?;
                bytes.is_multiple_of(8).then_some(bytes / 8)
            }
            _ => None,
        };
        number.filter(|number| *number < self.probes)
    }
}

impl Walk<'_> {
    /// What is recorded at a spot where the module would be at `address`: bytes of it.
    pub(super) fn record(&mut self, spot: i64, address: Address) -> Result<Option<usize>, Flaw> {
        let Some(notes) = &mut self.notes else {
            return Ok(None);
        };
        let wrong = |what| at(address, what);
        let code = self.trampolines.from(spot).unwrap_or_default();
        let from = spot - self.header.marks_distance();
        let (what, length, changes) = if let Some(class) = class::read(code, from) {
            let numbers = class.sinks.map(|sink| notes.number(sink));
            let [Some(first), Some(zero), Some(positive)] = numbers else {
                return Err(wrong("it records what is no predicate"));
            };
            if (zero, positive) != (first + 1, first + 2) {
                return Err(wrong("it records a result as another one"));
            }
            let changes = match class.keeps {
                true => Set::NONE,
                false => Set::STATUS,
            };
            (What::Class(first, class.bits), class.length, changes)
        } else if let Some(split) = class::read_split(code, from)
            && notes.recorded == Recorded::Marks
        {
            let numbers = split.marks.map(|mark| notes.number(Sink::Mark(mark)));
            let [Some(first), Some(other)] = numbers else {
                return Err(wrong("it records what is no predicate"));
            };
            if other != first + 1 {
                return Err(wrong("it records a result as another one"));
            }
            (What::Apart(first, split.by_sign), split.length, Set::NONE)
        } else if let Some(once) = class::read_once(code, from)
            && let Some(window) = of_alias(&self.header, once.window + self.header.marks_distance())
        {
            if self.text.chunk(window) != Some(once.bytes) || window.0 % FETCH > FETCH - 5 {
                return Err(wrong(
                    "it does not restore the module's bytes, fetched at once",
                ));
            }
            let (number, changes) = notes.once(&once, window).map_err(wrong)?;
            (What::One(number), once.length, changes)
        } else if let Some((mark, length)) = class::read_mark(code, from) {
            match notes.number(Sink::Mark(mark)) {
                Some(number) => (What::One(number), length, Set::NONE),
                // The program's own.
                None => return Ok(None),
            }
        } else if let Some(found) = increment::read(code) {
            let number = notes.number(Sink::Counter(found.offset));
            let number = number.ok_or(wrong("it counts what is no counter"))?;
            (What::One(number), found.length, changes_of(found.keep))
        } else {
            return Ok(None);
        };
        if changes != Set::NONE {
            notes.disturbed.insert(address);
        }
        notes.acts.push(Act {
            spot,
            end: spot + length as i64,
            address,
            what,
        });
        if changes != Set::NONE && self.is_looked_at(address, changes) {
            return Err(wrong("somebody looks at what a probe changes"));
        }
        Ok(Some(length))
    }
}

fn changes_of(keep: Keep) -> Set {
    match keep {
        Keep::Nothing => Set::STATUS.without(Set::CARRY),
        Keep::Rax => Set::numbered(0),
        Keep::Register(number) => Set::numbered(number),
        Keep::Stack => Set::NONE,
    }
}

/// Proves that the files `image` and `predicates` are right for the module in the file `bytes`.
///
/// # Errors
/// The first thing that is not.
pub fn check_predicates(
    (image, predicates): (&[u8], &[u8]),
    bytes: &[u8],
    binary: &Binary<'_>,
    model: &Model,
) -> Result<PredicatesChecked, Flaw> {
    let header = Image::read(image, image.len() as u64).map_err(Flaw::Image)?;
    let (predicates, rows) = Predicates::read(predicates).map_err(Flaw::Plan)?;
    let text = Text::read(bytes)?;
    let named = (predicates.name(), predicates.module);
    belongs(&header, named, &text)?;
    if header.probes != predicates.probes {
        return Err(Flaw::Mismatch("the image has other marks or counters"));
    }
    let graphs = model.graphs().map_err(WeaveError::from)?;
    let notes = Notes {
        recorded: predicates.recorded(),
        probes: predicates.probes.get(),
        slab: predicates.at.get(),
        came: HashMap::new(),
        acts: Vec::new(),
        branches: HashSet::new(),
        copies: HashMap::new(),
        once: Vec::new(),
        disturbed: BTreeSet::new(),
        pairs: HashMap::new(),
    };
    let (own, shared) = by_number(rows, notes.probes)?;
    let mut claims = Claims {
        by_number: own,
        shared,
        graphs: &graphs,
        binary,
        arrivals: arrivals(&graphs, binary),
        text: &text,
        vanishing: HashMap::new(),
    };
    let count = predicates.vanish.get();
    let table = header.window_table(image).map_err(Flaw::Image)?;
    if !table.is_sorted_by(|one, next| one.offset.get() < next.offset.get()) {
        return Err(Flaw::Mismatch("the trap table is unsorted"));
    }
    let (own, others): (Vec<Window>, Vec<Window>) = table
        .iter()
        .copied()
        .partition(|row: &Window| row.probe.get() < count);
    let vanishing = Vanishing::check(
        (image, &header, &own),
        &text,
        (&graphs, binary),
        count,
        |mark, displaces| claims.unit(mark, displaces),
    )?;
    claims.vanishing = vanishing.by_mark();
    let rest = vanishing.taken_away(image, &header, &text);
    let mut walk = Walk::of((&rest, header), &text, &graphs, binary, Observes::Noted);
    walk.notes = Some(notes);
    walk.complete()?;
    vanishing.check_beside(&walk)?;
    let actions = claims.check(&mut walk, &others)?;
    let checked = walk.finish()?;
    Ok(PredicatesChecked {
        entrances: checked.entrances,
        moved: checked.moved,
        actions,
        windows: claims.vanishing.len(),
    })
}

/// Rows, each with another one with the same mark.
type Shared<'a> = Vec<(&'a Row, &'a Row)>;

/// Each mark or counter with its row, that of a branch if there are several; and the others of the same, each with that.
fn by_number(rows: &[Row], probes: u32) -> Result<(Vec<&Row>, Shared<'_>), Flaw> {
    let own = |row: &&Row| row.told() == Some(Told::Itself);
    let mut rows: Vec<&Row> = rows.iter().filter(own).collect();
    rows.sort_by_key(|row| (row.by.get(), row.kind));
    let groups = rows.chunk_by(|one, next| one.by == next.by);
    let shared = groups.clone().filter_map(<[_]>::split_first);
    let shared = shared.flat_map(|(own, others)| others.iter().map(|other| (*own, *other)));
    let shared = shared.collect();
    let rows: Vec<&Row> = groups.filter_map(|group| group.first().copied()).collect();
    let each = (0..probes).eq(rows.iter().map(|row| row.by.get()));
    match each {
        true => Ok((rows, shared)),
        false => Err(Flaw::Mismatch("a mark or counter has no row of its own")),
    }
}

/// What the rows claim.
pub(super) struct Claims<'a> {
    /// Those with a mark or counter, by its number.
    pub(super) by_number: Vec<&'a Row>,
    /// Others with the same marks, each with the row that has it.
    pub(super) shared: Shared<'a>,
    pub(super) graphs: &'a Graphs<'a>,
    binary: &'a Binary<'a>,
    /// Where control may come from somewhere that is no direct branch of the same function.
    arrivals: BTreeSet<Address>,
    text: &'a Text,
    /// By mark: whether its probe, which vanishes, is a displacement, and where it is.
    vanishing: HashMap<u32, (bool, Address)>,
}

/// What was found of the places where something is recorded.
#[derive(Default)]
pub(super) struct Done {
    /// On ways of copies of branches: the copy, whether it is taken, and the number.
    pub(super) ways: BTreeSet<(i64, bool, u32)>,
    /// In blocks that have one way in: where, by number.
    starts: HashMap<u32, Address>,
    /// Results.
    results: BTreeSet<u64>,
    /// What is told, by the place on which it depends that control comes there elsewhere.
    pub(super) told: BTreeSet<(Address, u32)>,
    /// Results that are told apart: the mark of the first case, and where, by number.
    pub(super) apart: HashMap<u32, (u32, Apart)>,
}

impl Claims<'_> {
    /// How many actions there are, all of them right, and none missing. `held` are the windows at which an `int3` may be
    /// met on their account.
    fn check(&self, walk: &mut Walk<'_>, held: &[Window]) -> Result<usize, Flaw> {
        let Some(notes) = walk.notes.take() else {
            return Ok(0);
        };
        let mut done = Done::default();
        for act in &notes.acts {
            let came = notes.came.get(&act.spot).copied().unwrap_or(Came::Other);
            let (What::One(number) | What::Class(number, _) | What::Apart(number, _)) = act.what;
            let row = self.by_number[number as usize];
            let vanishes = self.vanishing.contains_key(&number);
            match (act.what, came) {
                (What::One(_), Came::Way(copy, branch, taken))
                    if row.kind() == Some(Kind::Branch)
                        && (row.site.get(), row.case) == (branch.0, u8::from(!taken)) =>
                {
                    done.ways.insert((copy, taken, number));
                    // Some displacement tells of it when this leads there no longer.
                    let also = vanishes || (taken && walk.leads.contains(&branch));
                    if !also {
                        done.told.insert((branch, number));
                    }
                }
                (What::One(_), _) if !vanishes => {
                    let place = *done.starts.entry(number).or_insert(act.address);
                    if place != act.address || !self.is_certain(walk, row, place) {
                        return Err(at(
                            act.address,
                            "others come to where a predicate is recorded",
                        ));
                    }
                }
                (What::Class(first, bits), Came::Text(from)) => {
                    let three = first as usize..first as usize + 3;
                    let rows = self.by_number.get(three).unwrap_or_default();
                    self.check_class(walk, rows, bits, from)?;
                    done.results.insert(row.site.get());
                    done.told.insert((from, number));
                }
                (What::Apart(..), _) => self.check_apart(walk, &notes, (act, came), &mut done)?,
                _ => {
                    return Err(at(
                        act.address,
                        "others come to where a predicate is recorded",
                    ));
                }
            }
        }
        let starts = done.starts.iter();
        done.told
            .extend(starts.map(|(number, place)| (*place, *number)));
        self.check_shared(walk)?;
        self.check_complete(walk, &notes, &done)?;
        self.check_once(walk, (&notes, held), &done)?;
        Ok(notes.acts.len())
    }

    /// The unit that the probe of this mark observes: the edge of a branch, or the block into which only that leads.
    fn unit(&self, mark: u32, displaces: bool) -> Result<Entry, Flaw> {
        let row = self.by_number[mark as usize];
        let wrong = |what| at(Address(row.site.get()), what);
        let block = self.graphs.block_at(Address(row.block.get()));
        let block = block.filter(|block| block.address().0 == row.block.get());
        let block = block.ok_or(wrong("it is in no block"))?;
        if row.kind() != Some(Kind::Branch) || self.last_of(&block) != Some(row.site.get()) {
            return Err(wrong("a probe that vanishes tells of no branch"));
        }
        let (from, to) = match displaces {
            false => {
                let only = self.only_entered(row);
                (only.ok_or(wrong("others come to where it leads"))?.0, 0)
            }
            true => {
                let others = |edge: &EdgeView| edge.kind != EdgeKind::NotTaken;
                let taken = block.successors().find(others).filter(|_| row.case == 0);
                (row.block.get(), taken.map_or(0, |edge| edge.address.0))
            }
        };
        Ok(Entry {
            from: from.into(),
            to: to.into(),
            tactic: 0.into(),
            is_edge: u32::from(displaces).into(),
        })
    }

    /// Where the last instruction of a block is.
    fn last_of(&self, block: &BlockView<'_>) -> Option<u64> {
        let bytes = self
            .text
            .from(block.address())?
            .get(..block.size() as usize)?;
        let start = block.address().0;
        let decoder = &mut Decoder::with_ip(64, bytes, start, DecoderOptions::NONE);
        Some(decoder.into_iter().last()?.ip())
    }

    /// The block into which the way of a row's branch leads, if nobody else comes there.
    fn only_entered(&self, row: &Row) -> Option<Address> {
        self.only_entered_by(Address(row.block.get()), row.case)
    }

    /// The same of a way of the branch at the end of the block that has `address`.
    pub(super) fn only_entered_by(&self, address: Address, case: u8) -> Option<Address> {
        let block = self.graphs.block_at(address)?;
        let kind = match case {
            0 => EdgeKind::Taken,
            _ => EdgeKind::NotTaken,
        };
        let edge = block.successors().find(|edge| edge.kind == kind)?;
        let function = block.function()?;
        let into = function.edges().filter(|one| one.address == edge.address);
        let only = function.status() == Status::Exact
            && edge.block().is_some()
            && into.count() == 1
            && function.entry() != edge.address
            && !self.arrivals.contains(&edge.address);
        only.then_some(edge.address)
    }

    /// Whether control comes to `place` whenever it goes the way of a row, and only then.
    fn is_certain(&self, walk: &Walk<'_>, row: &Row, place: Address) -> bool {
        let branch = row.kind() == Some(Kind::Branch);
        let Some(start) = self.only_entered(row).filter(|_| branch) else {
            return false;
        };
        let block = self.graphs.block_at(start);
        let mut here = start;
        while here != place {
            let Some(Decoded { instruction, .. }) = walk.original(here) else {
                return false;
            };
            if instruction.flow_control() != FlowControl::Next || !cannot_fault(&instruction) {
                return false;
            }
            here = here.wrapping_add(instruction.len() as u64);
        }
        block.is_some_and(|block| block.address() == start && block.range().contains(place))
    }

    /// A result is told on the way from `from`, by the marks or counters of these rows.
    fn check_class(
        &self,
        walk: &mut Walk<'_>,
        rows: &[&Row],
        bits: u8,
        from: Address,
    ) -> Result<(), Flaw> {
        let site = rows
            .first()
            .map_or(Address(0), |row| Address(row.site.get()));
        let wrong = |what| Err(at(site, what));
        let right = |(case, row): (u8, &&Row)| {
            let what = (row.kind(), row.case, row.site.get(), row.bits());
            what == (Some(Kind::Result), case, site.0, bits)
        };
        if rows.len() != 3 || !(0..).zip(rows).all(right) {
            return wrong("another result is told there");
        }
        if self.arrives_otherwise(walk, site, from != site) {
            return wrong("others come to where a result arrives than who returns");
        }
        if from != site && !self.is_brought(walk, site, from) {
            return wrong("the result may be another one by then");
        }
        Ok(())
    }

    /// Whether somebody may come to `site` in the text but by returning; `at_all`: in any way.
    pub(super) fn arrives_otherwise(&self, walk: &Walk<'_>, site: Address, at_all: bool) -> bool {
        let named = self.binary.symbols().iter().any(|one| one.address == site)
            || self
                .binary
                .pointer_slots()
                .iter()
                .any(|slot| slot.1 == site);
        let Some(function) = self
            .graphs
            .block_at(site)
            .and_then(|block| block.function())
        else {
            return true;
        };
        let direct = |kind| {
            matches!(
                kind,
                EdgeKind::Fallthrough | EdgeKind::Taken | EdgeKind::NotTaken | EdgeKind::Jump
            )
        };
        let mut into = function.edges().filter(|edge| edge.address == site);
        named
            || function.status() != Status::Exact
            || function.entry() == site
            || walk.flowed.contains(&site)
            || into.any(|edge| {
                edge.kind != EdgeKind::CallFallthrough && (at_all || !direct(edge.kind))
            })
    }

    /// Whether what is in `rax` at `site` is certain to be there at the call at `call`.
    fn is_brought(&self, walk: &mut Walk<'_>, site: Address, call: Address) -> bool {
        let block = self.graphs.block_at(site);
        let mut here = site;
        while here != call {
            let inside = block.is_some_and(|block| block.range().contains(here));
            let Some(Decoded { instruction, .. }) = walk.original(here).filter(|_| inside) else {
                return false;
            };
            let info = walk.factory.info(&instruction);
            let keeps = info.used_registers().iter().all(|used| {
                used.register().full_register() != Register::RAX
                    || matches!(used.access(), OpAccess::Read | OpAccess::CondRead)
            });
            if !keeps || !cannot_fault(&instruction) {
                return false;
            }
            here = here.wrapping_add(instruction.len() as u64);
        }
        block.is_some_and(|block| block.address() == site && block.range().contains(call))
    }

    /// A window that is restored when a mark is set is an entrance from which control comes to nothing else that is told,
    /// up to the branch that is.
    fn check_once(
        &self,
        walk: &Walk<'_>,
        (notes, held): (&Notes, &[Window]),
        done: &Done,
    ) -> Result<(), Flaw> {
        let mut once = notes.once.clone();
        once.sort_unstable();
        let pair = |number: u32| notes.pairs.get(&number).copied();
        let first = |number: u32| pair(number).is_none_or(|other| other > number);
        let rows = once
            .iter()
            .filter(|one| first(one.1))
            .map(|(window, number)| {
                let mut row = Window {
                    offset: (walk.spot(*window) as u32).into(),
                    probe: (*number).into(),
                    length: 5,
                    original: [0; 7],
                };
                let bytes = self.text.chunk::<5>(*window).unwrap_or_default();
                row.original[..5].copy_from_slice(&bytes);
                row
            });
        if !rows.eq(held.iter().copied()) {
            return Err(Flaw::Mismatch(
                "the trap table has other windows than are held",
            ));
        }
        for &(window, number) in &once {
            let other = pair(number);
            let mutual = other
                .is_none_or(|other| pair(other) == Some(number) && once.contains(&(window, other)));
            let site = Address(self.by_number[number as usize].site.get());
            let block = self.graphs.block_at(window);
            let block = block.filter(|block| self.last_of(block) == Some(site.0));
            let end = block.map_or(window, |block| block.range().end());
            let mut told = done.told.range((window, 0)..(end, 0));
            let alone = told.all(|(_, one)| *one == number || Some(*one) == other);
            let leads = walk.changes.get(&window) == Some(&5);
            if !alone || !mutual || !leads || site < window || end <= site {
                return Err(at(window, "it leads to more than is told once"));
            }
        }
        Ok(())
    }

    /// Nothing that is to be recorded happens without.
    fn check_complete(&self, walk: &Walk<'_>, notes: &Notes, done: &Done) -> Result<(), Flaw> {
        let mut branches: HashMap<Address, Vec<i64>> = HashMap::new();
        for (spot, address) in &notes.branches {
            branches.entry(*address).or_default().push(*spot);
        }
        let executed = |at| walk.in_place.contains(&at) && !walk.needless.contains(&at);
        let stays = |at: Address| executed(at) && !walk.entrances.contains(&at);
        let once: HashSet<u32> = notes.once.iter().map(|once| once.1).collect();
        for (number, row) in (0..).zip(&self.by_number) {
            let site = Address(row.site.get());
            let copies = branches.get(&site).map(Vec::as_slice).unwrap_or_default();
            let apart = done.apart.get(&number);
            let complete = match (self.vanishing.get(&number), done.starts.get(&number)) {
                _ if let Some(apart) = apart => self.is_told_apart(walk, notes, done, *apart),
                (Some((true, _)), _) => {
                    let each = |copy: &i64| done.ways.contains(&(*copy, true, number));
                    copies.iter().all(each) && !walk.entrances.contains(&site)
                }
                (Some(&(false, window)), _) => {
                    let start = self.only_entered(row).unwrap_or(site);
                    !notes.copies.contains_key(&start)
                        && walk.entrances.range(start..=window).next().is_none()
                }
                (None, Some(place)) => {
                    let copies = notes.copies.get(place).map_or(&[][..], Vec::as_slice);
                    let each = |spot| notes.came.get(spot) == Some(&Came::Mark(number));
                    !stays(*place) && copies.iter().all(each) && !copies.is_empty()
                }
                (None, None) if row.kind() == Some(Kind::Branch) => {
                    // What is told once is told before the branch is executed in place.
                    let passes = once.contains(&number);
                    let leads = row.case == 0 && walk.leads.contains(&site);
                    let in_text = |copy: i64| walk.spot(site) == copy;
                    let each = |copy: &i64| {
                        let told = done.ways.contains(&(*copy, row.case == 0, number));
                        told || (passes && in_text(*copy))
                    };
                    (leads || !stays(site)) && copies.iter().all(each) && !copies.is_empty()
                }
                _ => row.case != 0 || done.results.contains(&site.0),
            };
            if !complete {
                return Err(at(site, "a predicate is true and not recorded"));
            }
        }
        Ok(())
    }
}
