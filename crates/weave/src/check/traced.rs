//! The checker of images with witnesses: proves that the program does what it did, and that nothing else is recorded than
//! its chart says. It is that of images with counters (`counted.rs`), which walks the text and the image side by side;
//! what is done in between are witnesses here.
//!
//! Arrivals are recorded by who comes from the module's text alone: no jump, branch or call of the trampolines leads
//! there, and each entrance at which the chart has an arrival passes it.

use std::collections::HashSet;

use tomo_program::{Address, Binary, Model};
use tomo_wire::image::Image;
use tomo_wire::tracing::{ChartView, NONE, block, way};

use super::Flaw;
use super::counted::{CountersChecked, Observes, Walk, belongs};
use super::witness::{Found, With};
use crate::staying::live::Set;
use crate::text::Text;

/// What a witness says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Meaning {
    /// The block here begins.
    Node(Address),
    /// Control passes from the block here to there.
    Way(Address, Address),
    /// The same, with what is in a register then.
    Value(Address, Address, u8),
    /// Control arrives here from the module's text; with the stack pointer or not.
    Arrival(Address, bool),
}

/// What an image is to record.
#[derive(Debug, Default)]
pub(super) struct Records {
    /// By number; nothing where the run does not hold it.
    meanings: Vec<Option<Meaning>>,
    pub(super) seen: Vec<bool>,
    /// Spots at which arrivals are recorded.
    arrivals: HashSet<i64>,
    /// Spots to which the module's text leads.
    pub(super) from_text: HashSet<i64>,
    /// Spots to which trampolines lead, and calls.
    pub(super) from_within: HashSet<i64>,
}

impl Records {
    /// What the chart says of this run.
    fn of(chart: &ChartView<'_>, run: u32) -> Self {
        let mut meanings = vec![None; chart.witnesses.len()];
        let mut note = |witness: u32, meaning| {
            let mask = chart.witnesses.get(witness as usize);
            if witness != NONE && mask.is_some_and(|mask| mask.get() >> run & 1 != 0) {
                meanings[witness as usize] = Some(meaning);
            }
        };
        for (number, row) in (0u32..).zip(chart.blocks) {
            let from = Address(row.address.get());
            note(row.witness.get(), Meaning::Node(from));
            let with_stack = row.flags.get() & block::WITH_STACK != 0;
            note(row.arrival.get(), Meaning::Arrival(from, with_stack));
            for way in chart.ways_of(number) {
                if way.flags.get() & (way::TAIL | way::PAD) == 0 {
                    let to = chart.blocks[way.to.get() as usize].address.get();
                    note(way.witness.get(), Meaning::Way(from, Address(to)));
                    let value = way.value.get();
                    let register = chart.value(value).map_or(u8::MAX, |one| one.register());
                    note(value, Meaning::Value(from, Address(to), register));
                }
            }
        }
        Self {
            seen: vec![false; meanings.len()],
            meanings,
            ..Self::default()
        }
    }

    /// Whether it records anything at all.
    pub(super) fn is_empty(&self) -> bool {
        self.meanings.is_empty()
    }

    /// What is missing, or recorded by somebody else.
    fn finish(&self) -> Result<(), Flaw> {
        let missing = self.meanings.iter().zip(&self.seen);
        let missing = missing.filter(|(meaning, seen)| meaning.is_some() && !**seen);
        if let Some((Some(meaning), _)) = missing.into_iter().next() {
            let (Meaning::Node(here)
            | Meaning::Way(here, _)
            | Meaning::Value(here, ..)
            | Meaning::Arrival(here, _)) = meaning;
            return Err(super::at(*here, "a witness is never recorded"));
        }
        match self
            .arrivals
            .iter()
            .any(|spot| self.from_within.contains(spot) || !self.from_text.contains(spot))
        {
            true => Err(Flaw::Mismatch(
                "an arrival is recorded by who does not arrive",
            )),
            false => Ok(()),
        }
    }
}

impl Walk<'_> {
    /// A word is appended, at `spot`, before what is at `address`.
    pub(super) fn witness(
        &mut self,
        found: &Found,
        spot: i64,
        address: Address,
    ) -> Result<(), Flaw> {
        let wrong = |what| super::at(address, what);
        let number = found.number as usize;
        let meaning = self.records.meanings.get(number).copied().flatten();
        let right = match meaning {
            Some(Meaning::Node(start)) => {
                found.with == With::Nothing
                    && self
                        .jumps(address)
                        .any(|here| self.is_in_block(start, here))
            }
            Some(Meaning::Way(_, to)) => {
                found.with == With::Nothing && self.jumps(address).any(|here| here == to)
            }
            Some(Meaning::Value(_, to, register)) => {
                found.with == With::Value(register) && self.jumps(address).any(|here| here == to)
            }
            Some(Meaning::Arrival(start, with_stack)) => {
                self.records.arrivals.insert(spot);
                let with = if with_stack {
                    With::Stack
                } else {
                    With::Nothing
                };
                found.with == with && start == address
            }
            None => false,
        };
        if !right {
            return Err(wrong("it records something else"));
        }
        if let Some((seldom, back)) = found.seldom {
            let code = self.trampolines.from(spot + seldom).unwrap_or_default();
            if super::witness::hands_over(code) != Some(back - seldom) {
                return Err(wrong("it does not come back from handing over"));
            }
        }
        if found.changes != Set::NONE && self.is_looked_at(address, found.changes) {
            return Err(wrong("somebody looks at what a witness changes"));
        }
        self.records.seen[number] = true;
        self.increments += 1;
        Ok(())
    }
}

/// Proves that the file `image`, of the run with this number, is right for `chart` and the module in the file `bytes`.
///
/// # Errors
/// The first thing that is not.
pub fn check_traces(
    (image, chart, run): (&[u8], &[u8], u32),
    bytes: &[u8],
    binary: &Binary<'_>,
    model: &Model,
) -> Result<CountersChecked, Flaw> {
    let header = Image::read(image, image.len() as u64).map_err(Flaw::Image)?;
    let chart = ChartView::read(chart).map_err(Flaw::Plan)?;
    let text = Text::read(bytes)?;
    belongs(&header, (chart.name(), chart.header.module), &text)?;
    let graphs = model.graphs().map_err(crate::WeaveError::from)?;
    let mut walk = Walk::of((image, header), &text, &graphs, binary, Observes::Noted);
    walk.records = Records::of(&chart, run);
    walk.complete()?;
    walk.records.finish()?;
    walk.finish()
}
