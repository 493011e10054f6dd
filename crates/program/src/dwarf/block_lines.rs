//! All source lines of every block, for coverage: not only where a block starts.
//!
//! DWARF 5 §6.2.2. A line *belongs to* a block if a row with `is_stmt` and this line has its address
//! in the block, so inlined code counts where its rows are; and the line of a call that was inlined belongs to the
//! block in which the body is entered. Rows without `is_stmt` and rows of line 0
//! belong to no block. Where compilers say several lines at one address, all of them count; where two
//! programs claim one address (folded functions), both do. Discriminators are ignored.
//!
//! Where several rows have the address of a block's first byte, the last of them says where that byte comes from, and the
//! first statement what the block *begins* with. A function begins where it is declared: what is stated of its first byte may come from
//! a body that was inlined there. Where only lines were asked for, nothing is declared: if such a body has the only row (LLVM)
//! and is written in another file, the block begins with the line of the call.
//!
//! A block *goes on* with the line of its first byte where the row before has it too, or no row begins there: LLVM states a
//! line once for all code of it that follows, also behind code of no line. Where GCC optimises, blocks go on with nothing: it has rows,
//! without `is_stmt`, for single instructions that it has moved to before or behind where their statement is; that these are executed
//! says nothing of it. Where it does not, all of them do: nothing was moved, and of a line's rows it marks only the first as a statement,
//! whatever is jumped to behind it.
//!
//! The line programs are run once each, several at a time, like those of [`lines()`](super::lines()).
//! Linear in the sections, plus sorting what is found.

use super::apart::Apart;
use super::bodies::{AllBodies, Bodies, Body, Inlined, OfOne};
use super::copies::Entered;
use super::inlined::{Entry, Own, entered};
use super::line_program::{Covered, Merger, Row, Sink, drive};
use super::lines::{Answer, BATCH, Position, Program, programs};
use super::origin::{Bearer, Others};
use super::paths::Files;
use super::sections::Sections;
use super::statements::{Blocks, Stated, Statements, Told};
use super::troubles::Troubles;
use super::unit::{Broken, Context, offset_of};
use crate::{Address, Range, Warning};
use rayon::prelude::*;

/// The source lines of blocks.
#[derive(Clone, Debug, Default)]
pub struct BlockLines {
    /// Source files, as DWARF states them, as [`text_of`](crate::text_of) writes them; relative ones behind the
    /// directory of compilation.
    pub files: Vec<String>,
    /// For each block, where its lines start in `statements`; one more at the end.
    starts: Vec<u32>,
    statements: Vec<Position>,
    /// The statements of each copy of a body, by block; empty unless asked for.
    copies: Vec<(u32, Position, Entered)>,
    /// For each block, where its first byte comes from.
    pub first: Vec<Option<Position>>,
    /// For each block, where its last byte comes from: of a branch, since that is what ends it.
    pub last: Vec<Option<Position>>,
    /// What blocks begin with, by block, where that is not what their first byte comes from.
    begun: Vec<(u32, Position)>,
    /// Blocks that go on with nothing, since they begin with a row of another line than the row before, or GCC wrote their rows when it
    /// optimised; ascending, and apart.
    turned: Vec<Blocks>,
    /// Functions whose bodies were put in place of calls, each once.
    pub inlined: Vec<Inlined>,
    /// Those bodies.
    pub bodies: Vec<Body>,
    /// What could not be read.
    pub warnings: Vec<Warning>,
}

impl BlockLines {
    /// The lines that belong to the block with this index, sorted, each once.
    #[must_use]
    pub fn statements(&self, block: usize) -> &[Position] {
        let ends = self.starts.get(block).zip(self.starts.get(block + 1));
        ends.and_then(|(&start, &end)| self.statements.get(start as usize..end as usize))
            .unwrap_or_default()
    }

    /// The lines that belong to the block with this index, sorted, each once in each copy of a body that was put in place of a call: by
    /// where that is entered, or in none. Only where [`Told::Copies`] was asked for.
    pub fn copies(&self, block: usize) -> impl Iterator<Item = (Position, Option<Address>)> {
        let from = self.copies.partition_point(|it| (it.0 as usize) < block);
        let behind = self.copies.get(from..).unwrap_or_default().iter();
        let here = behind.take_while(move |it| it.0 as usize == block);
        here.map(|&(_, position, entered)| (position, entered))
    }

    /// What the block with this index begins with: of a function's first block, the line of the function.
    #[must_use]
    pub fn begin(&self, block: usize) -> Option<Position> {
        let found = u32::try_from(block).ok();
        let found = found.and_then(|block| self.begun.binary_search_by_key(&block, |it| it.0).ok());
        match found {
            Some(at) => self.begun.get(at).map(|&(_, position)| position),
            None => self.first.get(block).copied().flatten(),
        }
    }

    /// The line that the block with this index goes on with, if it does.
    #[must_use]
    pub fn goes_on(&self, block: usize) -> Option<Position> {
        let number = u32::try_from(block).ok()?;
        let after = self.turned.partition_point(|it| it.start <= number);
        let last = after.checked_sub(1).and_then(|last| self.turned.get(last));
        let turns = last.is_some_and(|blocks| blocks.contains(&number));
        self.first.get(block).copied()?.filter(|_| !turns)
    }

    /// Whether no line belongs to any block.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.statements.is_empty()
    }
}

/// Finds the lines of `blocks`, which must ascend and not overlap.
///
/// Never fails: what cannot be read is missing, with a warning.
#[must_use]
pub fn block_lines(sections: &Sections<'_>, blocks: &[Range]) -> BlockLines {
    block_lines_with(sections, &Apart::default(), blocks, Told::Blocks)
}

/// The same where some of the debug information is in other files, or more is to be told.
#[must_use]
pub fn block_lines_with(
    sections: &Sections<'_>,
    apart: &Apart,
    blocks: &[Range],
    told: Told,
) -> BlockLines {
    let mut troubles = Troubles::default();
    let context = Context::new(sections, &mut Troubles::default());
    let programs = programs(&context, &mut troubles);
    let others = Others::new(&context, &programs);
    let ends = ends(blocks);
    let mut answer = Answer::new(Files::new(sections), ends.len());
    let (mut all, mut bodies) = (OfAll::default(), Bodies::new(sections));
    for batch in programs.chunks(BATCH) {
        let read: Vec<_> = batch
            .par_iter()
            .map(|program| read(&others, apart, program, (blocks, told), &ends))
            .collect();
        for (result, program) in read.into_iter().zip(batch) {
            match result {
                Ok(read) => {
                    answer.add(&read.covered);
                    all.add(read.stated, &mut answer.files);
                    bodies.add(read.bodies, &mut answer.files);
                    if let Err(error) = read.inlined {
                        let at = offset_of(&program.open.unit.header) as u64;
                        let what = "functions and calls that were inlined cannot be read";
                        troubles.add(".debug_info", at, what, &error);
                    }
                }
                Err(error) => {
                    let what = "line program cannot be read";
                    troubles.add(".debug_line", program.offset.0 as u64, what, &error);
                }
            }
        }
    }
    if let Some((Both(covered, stated), path)) = sections.drive_go(Both::new(blocks, told, &ends)) {
        answer.add(&covered.finish(&path));
        all.add(stated.finish(&path), &mut answer.files);
    }
    all.sort();
    let AllBodies {
        inlined,
        bodies,
        own,
    } = bodies.finish(&mut troubles);
    let Answer { at, files, .. } = answer;
    let at = |address: u64| at[ends.partition_point(|it| it.0 < address)];
    let place = |byte: fn(Range) -> Option<u64>| {
        let places = blocks.par_iter().map(|&block| byte(block).and_then(at));
        places.collect::<Vec<Option<Position>>>()
    };
    let first = place(first_byte);
    let begun = begin(own, all.begun, all.entered, &first);
    BlockLines {
        first,
        last: place(last_byte),
        starts: starts(&all.found, blocks.len()),
        copies: all.copies,
        begun,
        turned: joined(all.turned),
        inlined,
        bodies,
        statements: all.found.into_iter().map(|it| it.1).collect(),
        files: files.finish(&mut troubles),
        warnings: troubles.into_warnings(),
    }
}

fn first_byte(block: Range) -> Option<u64> {
    (!block.is_empty()).then_some(block.start().0)
}

fn last_byte(block: Range) -> Option<u64> {
    block.end().0.checked_sub(1).filter(|_| !block.is_empty())
}

/// The first and last bytes of all blocks, ascending.
fn ends(blocks: &[Range]) -> Vec<Address> {
    let both = |&block: &Range| [Some(block.start().0), last_byte(block)];
    let mut ends: Vec<_> = blocks
        .iter()
        .filter(|block| !block.is_empty())
        .flat_map(both)
        .flatten()
        .map(Address)
        .collect();
    ends.dedup();
    ends
}

/// All that is in any of these, ascending and apart. Programs that overlap may each name all blocks.
fn joined(mut ranges: Vec<Blocks>) -> Vec<Blocks> {
    ranges.sort_unstable_by_key(|it| it.start);
    ranges.dedup_by(|next, kept| {
        let meets = next.start <= kept.end;
        if meets {
            kept.end = kept.end.max(next.end);
        }
        meets
    });
    ranges
}

/// Where the lines of each block start among those of all.
fn starts(found: &[(u32, Position)], blocks: usize) -> Vec<u32> {
    let mut starts = vec![0_u32; blocks + 1];
    for &(block, _) in found {
        starts[block as usize + 1] += 1;
    }
    for block in 0..blocks {
        starts[block + 1] += starts[block];
    }
    starts
}

/// What blocks begin with, given where functions that begin there are declared, their first statements, and the calls whose bodies are
/// entered at their first bytes.
fn begin(
    mut own: Vec<(u32, Position)>,
    mut stated: Vec<(u32, Position)>,
    mut entered: Vec<(u32, Position)>,
    first: &[Option<Position>],
) -> Vec<(u32, Position)> {
    // Of several the first counts: of calls, the outermost.
    for all in [&mut stated, &mut entered] {
        all.sort_by_key(|it| it.0);
        all.dedup_by_key(|it| it.0);
    }
    entered.retain(|(block, call)| {
        let own = stated.binary_search_by_key(block, |it| it.0).ok();
        let own = own.and_then(|at| stated.get(at)).map(|it| it.1);
        let own = own.or_else(|| first.get(*block as usize).copied().flatten());
        own.is_none_or(|own| own.file != call.file)
    });
    // Stable: a function comes before a call, and that before what is stated of its block.
    own.append(&mut entered);
    own.append(&mut stated);
    own.sort_by_key(|it| it.0);
    own.dedup_by_key(|it| it.0);
    own
}

/// What one unit says.
struct OfUnit {
    covered: Covered,
    stated: Stated,
    bodies: Vec<OfOne>,
    inlined: Result<(), Broken>,
}

/// Runs one program, for the blocks' ends and for all rows at once, and reads which calls were inlined.
fn read<'a>(
    others: &Others<'_, 'a>,
    apart: &Apart,
    program: &Program<'a>,
    (blocks, told): (&[Range], Told),
    ends: &[Address],
) -> Result<OfUnit, Broken> {
    let context = others.context;
    let sink = Both::new(blocks, told, ends);
    let (sink, path) = drive(context, &program.open, program.offset, sink)?;
    let Both(covered, mut statements) = sink;
    statements.by_gnu = program.open.is_gnu;
    statements.is_plain = program.open.is_plain;
    statements.sort();
    let mut bodies = Vec::new();
    let bearer = Bearer {
        context,
        open: &program.open,
        path: &path,
        others: Some(others),
    };
    let mut inlined = enter(&bearer, &mut statements, &mut bodies);
    let other = apart.read_unit(context, &program.open, |context, open| {
        let bearer = Bearer {
            context,
            open,
            path: &path,
            others: None,
        };
        statements.by_gnu |= open.is_gnu;
        statements.is_plain |= open.is_plain;
        enter(&bearer, &mut statements, &mut bodies)
    });
    if let Some(other) = other {
        inlined = inlined.and(other);
    }
    Ok(OfUnit {
        covered: covered.finish(&path),
        stated: statements.finish(&path),
        bodies,
        inlined,
    })
}

/// Notes where the functions of a unit are entered, up to the first entry that cannot be read.
fn enter(
    bearer: &Bearer<'_, '_>,
    statements: &mut Statements<'_>,
    all: &mut Vec<OfOne>,
) -> Result<(), Broken> {
    let (mut bodies, mut own) = (Vec::new(), Vec::new());
    let pass = |entry: Entry| {
        let call = match entry {
            Entry::Call(call) => call,
            Entry::Own(Own { address, function }) => {
                let block = statements.beginning_at(address);
                own.extend(block.map(|block| (block, function)));
                return;
            }
        };
        let entry = statements.enter(&call);
        let Some(function) = call.function else {
            return;
        };
        let mut add = |blocks: Blocks, is_sure| {
            if !blocks.is_empty() {
                bodies.push(Body {
                    blocks,
                    function,
                    is_sure,
                });
            }
        };
        if let Some(block) = entry {
            add(block..block + 1, true);
        }
        let is_whole = !(statements.by_gnu && call.is_stated);
        for range in &call.ranges {
            statements.pieces(*range, is_whole, &mut add);
        }
    };
    let (called, read) = entered(bearer, pass);
    statements.settle(&called, bearer.path);
    all.push(OfOne {
        called,
        bodies,
        own,
    });
    read
}

struct Both<'q>(Merger<'q>, Statements<'q>);

impl<'q> Both<'q> {
    fn new(blocks: &'q [Range], told: Told, ends: &'q [Address]) -> Self {
        Self(Merger::new(ends), Statements::new(blocks, told))
    }
}

impl Sink for Both<'_> {
    fn row(&mut self, address: u64, row: Option<Row>) {
        self.0.row(address, row);
        match row {
            Some(row) => self.1.row(address, row),
            None => self.1.end(address),
        }
    }

    fn forget(&mut self) {
        self.0.forget();
    }
}

/// What all programs state.
#[derive(Default)]
struct OfAll {
    found: Vec<(u32, Position)>,
    copies: Vec<(u32, Position, Entered)>,
    begun: Vec<(u32, Position)>,
    entered: Vec<(u32, Position)>,
    turned: Vec<Blocks>,
}

impl OfAll {
    /// Brings what is stated of blocks in their order, each once.
    fn sort(&mut self) {
        self.found.par_sort_unstable();
        self.found.dedup();
        self.copies.par_sort_unstable();
        self.copies.dedup();
    }

    /// Numbers the files as they are numbered in the whole, and appends what is stated of them, in its order.
    fn add(&mut self, stated: Stated, numbers: &mut Files) {
        self.turned.extend(stated.turned);
        let files = stated.files.iter();
        let files: Vec<_> = files
            .map(|(file, path)| (*file, numbers.number(path)))
            .collect();
        let number = |file| {
            let at = files.binary_search_by_key(&file, |it| it.0).ok()?;
            files.get(at)?.1
        };
        let position = |(block, file, line)| {
            let file = number(file)?;
            Some((block, Position { file, line }))
        };
        let copies = stated.copies.into_iter().filter_map(|(row, entered)| {
            let (block, position) = position(row)?;
            Some((block, position, entered))
        });
        self.copies.extend(copies);
        for (rows, to) in [
            (stated.found, &mut self.found),
            (stated.begun, &mut self.begun),
            (stated.entered, &mut self.entered),
        ] {
            to.extend(rows.into_iter().filter_map(position));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::joined;
    use std::ops::Range;

    #[test]
    fn joined_ranges_have_the_same_members_and_are_apart() {
        let mut chance = 7_u32;
        for _ in 0..500 {
            let mut next = |below: u32| {
                chance = chance.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                (chance >> 16) % below
            };
            let ranges: Vec<Range<u32>> = (0..next(9))
                .map(|_| {
                    let start = next(30);
                    start..start + next(8)
                })
                .collect();
            let found = joined(ranges.clone());
            for member in 0..40 {
                let is_in = |all: &[Range<u32>]| all.iter().any(|it| it.contains(&member));
                assert_eq!(is_in(&found), is_in(&ranges), "{ranges:?}");
            }
            assert!(
                found.windows(2).all(|it| it[0].end < it[1].start),
                "{found:?}"
            );
        }
    }
}
