//! The source positions of many addresses at once.
//!
//! DWARF 5 §6.2. No table of all rows is made, which would be several times the size of the program.
//! Each line program is run once, several at a time, and its rows are merged against the sorted
//! addresses as they appear: a row covers the addresses from its own to the next row's. What is kept
//! of a program is one run for each row that covers an address asked for.
//!
//! Where two rows claim one address (a function that several units have, of which the linker kept
//! one), the first in the section wins; rows without a line claim nothing.
//!
//! Linear in the section, plus a binary search for each sequence, plus the answers.

use super::line_program::{self, Covered, Merger};
use super::paths::Files;
use super::sections::Sections;
use super::troubles::Troubles;
use super::unit::{Context, OpenUnit, UnitHeader};
use crate::{Address, Warning};
use gimli::{DebugLineOffset, Reader, Section};
use rayon::prelude::*;

/// Where each of the addresses asked for comes from.
#[derive(Clone, Debug, Default)]
pub struct Lines {
    /// Source files, as DWARF states them; relative ones behind the directory of compilation.
    pub files: Vec<String>,
    /// One for each address, in the same order; `None` where no line is known.
    pub at: Vec<Option<Position>>,
    /// What could not be read.
    pub warnings: Vec<Warning>,
}

/// A line of a source file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Position {
    /// Index into [`Lines::files`].
    pub file: u32,
    /// Line number, from 1.
    pub line: u32,
}

/// How many line programs are run before their answers are merged and their memory is freed.
pub(super) const BATCH: usize = 512;
/// A line program's header is longer than this only if it is broken.
const LONGEST_HEADER: usize = 16 << 20;

/// Finds the source positions of `addresses`, which must ascend.
///
/// Never fails: what cannot be read is missing, with a warning.
#[must_use]
pub fn lines(sections: &Sections<'_>, addresses: &[Address]) -> Lines {
    let mut troubles = Troubles::default();
    // Trouble with units is told by `functions`.
    let context = Context::new(sections, &mut Troubles::default());
    let programs = programs(&context, &mut troubles);
    let mut answer = Answer::new(Files::new(sections), addresses.len());
    for batch in programs.chunks(BATCH) {
        let read: Vec<_> = batch
            .par_iter()
            .map(|program| line_program::run(&context, &program.open, program.offset, addresses))
            .collect();
        for (result, program) in read.into_iter().zip(batch) {
            match result {
                Ok(covered) => answer.add(&covered),
                Err(error) => {
                    let what = "line program cannot be read";
                    troubles.add(".debug_line", program.offset.0 as u64, what, &error);
                }
            }
        }
    }
    if let Some((merger, path)) = sections.drive_go(Merger::new(addresses)) {
        answer.add(&merger.finish(&path));
    }
    let Answer { at, files, .. } = answer;
    let files = files.finish(&mut troubles);
    Lines {
        files,
        at,
        warnings: troubles.into_warnings(),
    }
}

/// A line program, by the unit that refers to it.
pub(super) struct Program<'a> {
    pub(super) offset: DebugLineOffset,
    pub(super) open: OpenUnit<'a>,
}

/// The line programs of all units, by offset, each once and none that starts inside another.
pub(super) fn programs<'a>(context: &Context<'a>, troubles: &mut Troubles) -> Vec<Program<'a>> {
    let program = |&header: &UnitHeader<'a>| {
        let open = context.open(header).ok()?;
        Some(Program {
            offset: open.line_program?,
            open,
        })
    };
    let mut all: Vec<_> = context.headers.par_iter().filter_map(program).collect();
    // Units of types, and parts, name the program of the unit that knows its folder and what was inlined.
    all.sort_by_key(|program| (program.offset.0, !program.open.is_whole));
    all.dedup_by_key(|program| program.offset.0);
    let mut end = 0;
    all.retain(|program| {
        let offset = program.offset.0;
        let size = extent(context, offset);
        let what = match size {
            _ if offset < end => "line program starts inside another",
            None => "line program has an impossible header",
            Some(_) => "",
        };
        if !what.is_empty() {
            troubles.add(".debug_line", offset as u64, what, &"");
            return false;
        }
        end = offset.saturating_add(size.unwrap_or(0));
        true
    });
    all
}

/// How many bytes the line program at `offset` has, unless its header cannot be one. (`gimli` makes
/// room for as many files as a header has bytes.)
fn extent(context: &Context<'_>, offset: usize) -> Option<usize> {
    let mut input = *context.dwarf.debug_line.reader();
    input.skip(offset).ok()?;
    let before = input.len();
    let (length, format) = input.read_initial_length().ok()?;
    let start = before - input.len();
    let version = input.read_u16().ok()?;
    input.skip(if version >= 5 { 2 } else { 0 }).ok()?;
    let header = input.read_length(format).ok()?;
    (header <= LONGEST_HEADER).then(|| start.saturating_add(length))
}

/// The answers of all programs so far.
pub(super) struct Answer {
    pub(super) at: Vec<Option<Position>>,
    /// For each address, itself if it has no position yet; else one further on (to which the ones
    /// in between have been led), so that no address is visited often. One more than addresses.
    open: Vec<u32>,
    pub(super) files: Files,
}

impl Answer {
    pub(super) fn new(files: Files, addresses: usize) -> Self {
        // Addresses beyond the index type get no position; there are no such programs.
        let last = u32::try_from(addresses).unwrap_or(u32::MAX);
        Self {
            at: vec![None; addresses],
            open: (0..=last).collect(),
            files,
        }
    }

    /// Takes over what a program covers and no earlier one did.
    pub(super) fn add(&mut self, covered: &Covered) {
        let files: Vec<Option<u32>> = covered
            .files
            .iter()
            .map(|path| self.files.number(path))
            .collect();
        for run in &covered.runs {
            let Some(Some(file)) = files.get(run.file as usize).copied() else {
                continue;
            };
            let mut index = self.next_open(run.first);
            while index < run.end {
                self.at[index as usize] = Some(Position {
                    file,
                    line: run.line,
                });
                self.open[index as usize] = index + 1;
                index = self.next_open(index);
            }
        }
    }

    /// The first address from `index` on that has no position (disjoint sets, with path halving).
    fn next_open(&mut self, mut index: u32) -> u32 {
        loop {
            let next = self.open[index as usize];
            if next == index {
                return index;
            }
            let after = self.open[next as usize];
            self.open[index as usize] = after;
            index = after;
        }
    }
}
