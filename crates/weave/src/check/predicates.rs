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

use std::collections::{BTreeSet, HashMap, HashSet};

use iced_x86::{OpAccess, Register};
use tomo_program::{Address, Binary, EdgeKind, Graphs, Model, Status};
use tomo_wire::image::Image;
use tomo_wire::predicates::{Kind, Predicates, Recorded, Row, Told};

use super::class::{self, Sink};
use super::counted::{Decoded, Observes, Walk, belongs};
use super::increment::{self, Keep};
use super::{Flaw, at};
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
    /// Places where predicates are recorded.
    pub actions: usize,
}

/// From where control comes to an instruction of the trampolines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Came {
    /// From the copy at this spot of the branch at this address, which was taken or not.
    Way(i64, Address, bool),
    /// From the jump, or the call, at this address of the text.
    Text(Address),
    /// From anywhere else.
    Other,
}

/// What is done at a spot.
#[derive(Clone, Copy, Debug)]
struct Act {
    spot: i64,
    /// Where the module would be.
    address: Address,
    what: What,
}

#[derive(Clone, Copy, Debug)]
enum What {
    /// This mark, or counter.
    One(u32),
    /// The first of three, by so many bits.
    Class(u32, u8),
}

/// What is noted on the walk.
pub(super) struct Notes {
    recorded: Recorded,
    probes: u32,
    slab: u32,
    came: HashMap<i64, Came>,
    acts: Vec<Act>,
    /// Copies of branches: where each is, and which it is.
    branches: HashSet<(i64, Address)>,
}

impl Notes {
    /// Control comes to a spot.
    pub(super) fn arrive(&mut self, spot: i64, came: Came) {
        let known = self.came.entry(spot).or_insert(came);
        if *known != came {
            *known = Came::Other;
        }
    }

    /// A copy of a branch is executed.
    pub(super) fn branch(&mut self, spot: i64, address: Address) {
        self.branches.insert((spot, address));
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
        notes.acts.push(Act {
            spot,
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
    };
    let mut walk = Walk::of((image, header), &text, &graphs, binary, Observes::Noted);
    walk.notes = Some(notes);
    walk.complete()?;
    let claims = Claims {
        rows,
        graphs: &graphs,
        binary,
    };
    let actions = claims.check(&mut walk)?;
    let checked = walk.finish()?;
    Ok(PredicatesChecked {
        entrances: checked.entrances,
        moved: checked.moved,
        actions,
    })
}

/// What the rows claim.
struct Claims<'a> {
    rows: &'a [Row],
    graphs: &'a Graphs<'a>,
    binary: &'a Binary<'a>,
}

impl Claims<'_> {
    /// How many actions there are, all of them right, and none missing.
    fn check(&self, walk: &mut Walk<'_>) -> Result<usize, Flaw> {
        let Some(mut notes) = walk.notes.take() else {
            return Ok(0);
        };
        let by_number = self.by_number(notes.probes)?;
        let acts = std::mem::take(&mut notes.acts);
        let mut ways: BTreeSet<(i64, bool, u32)> = BTreeSet::new();
        let mut results: BTreeSet<u64> = BTreeSet::new();
        // What one action leads to is the next one on the same way.
        for act in &acts {
            let came = notes.came.get(&act.spot).copied().unwrap_or(Came::Other);
            let (What::One(number) | What::Class(number, _)) = act.what;
            let row = by_number[number as usize];
            match (act.what, came) {
                (What::One(_), Came::Way(copy, branch, taken)) => {
                    let claimed = (row.kind(), row.site.get(), row.case);
                    if claimed != (Some(Kind::Branch), branch.0, u8::from(!taken)) {
                        return Err(at(branch, "its way is recorded as another one"));
                    }
                    ways.insert((copy, taken, number));
                }
                (What::Class(first, bits), Came::Text(from)) => {
                    let three = first as usize..first as usize + 3;
                    let rows = by_number.get(three).unwrap_or_default();
                    self.check_class(walk, rows, bits, from)?;
                    results.insert(row.site.get());
                }
                _ => {
                    return Err(at(
                        act.address,
                        "others come to where a predicate is recorded",
                    ));
                }
            }
        }
        self.check_complete(walk, &notes, &ways, &results)?;
        Ok(acts.len())
    }

    /// Each mark or counter with its row; one each.
    fn by_number(&self, probes: u32) -> Result<Vec<&Row>, Flaw> {
        let own = |row: &&Row| row.told() == Some(Told::Itself);
        let mut rows: Vec<&Row> = self.rows.iter().filter(own).collect();
        rows.sort_by_key(|row| row.by.get());
        let each = (0..probes).eq(rows.iter().map(|row| row.by.get()));
        match each {
            true => Ok(rows),
            false => Err(Flaw::Mismatch("a mark or counter has no row of its own")),
        }
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
    fn arrives_otherwise(&self, walk: &Walk<'_>, site: Address, at_all: bool) -> bool {
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

    /// Nothing that is to be recorded happens without.
    fn check_complete(
        &self,
        walk: &Walk<'_>,
        notes: &Notes,
        ways: &BTreeSet<(i64, bool, u32)>,
        results: &BTreeSet<u64>,
    ) -> Result<(), Flaw> {
        let mut copies: HashMap<Address, Vec<i64>> = HashMap::new();
        for (spot, address) in &notes.branches {
            copies.entry(*address).or_default().push(*spot);
        }
        for row in self
            .rows
            .iter()
            .filter(|row| row.told() == Some(Told::Itself))
        {
            let site = Address(row.site.get());
            let complete = match row.kind() {
                Some(Kind::Branch) => {
                    let taken = row.case == 0;
                    let copies = copies.get(&site).map(Vec::as_slice).unwrap_or_default();
                    let each = |copy: &i64| ways.contains(&(*copy, taken, row.by.get()));
                    let stays = walk.in_place.contains(&site) && !walk.entrances.contains(&site);
                    !stays && copies.iter().all(each) && !copies.is_empty()
                }
                _ => row.case != 0 || results.contains(&site.0),
            };
            if !complete {
                return Err(at(site, "a predicate is true and not recorded"));
            }
        }
        Ok(())
    }
}
