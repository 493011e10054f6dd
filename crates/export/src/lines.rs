//! Which lines of the source the blocks of a module come from, asked for by block.
//!
//! Reading them takes longer than all the rest of a report, so a module reads them once, when they are first
//! asked for ([`Located::lines`](crate::Located::lines)). Blocks that overlap have none. O(m log m).

use std::path::{Path, PathBuf};

use crate::paths::normal;
use rayon::prelude::*;
use tomo_profile::merge::Finding;
use tomo_program::dwarf::{Apart, BlockLines, Inlined, Position, Sections, Told, block_lines_with};
use tomo_program::{Address, BlockView, Graphs, Range, Warning};

/// The lines of all blocks.
#[derive(Debug, Default)]
pub(crate) struct Lines {
    found: BlockLines,
    /// For each block, its place among those that do not overlap, by address.
    rank: Vec<u32>,
    /// The file with entries of debug information that are not read, if there is one.
    unread: Option<PathBuf>,
}

impl Lines {
    pub(crate) fn of(
        graphs: &Graphs<'_>,
        sections: &Sections<'_>,
        apart: &Apart,
        told: Told,
    ) -> Self {
        let functions: Vec<_> = graphs.functions().collect();
        let mut all: Vec<_> = functions
            .par_iter()
            .flat_map_iter(|function| function.blocks().map(|it| (it.range(), it.id())))
            .collect();
        all.par_sort_unstable_by_key(|(range, id)| (range.start(), *id));
        let mut rank = vec![u32::MAX; all.len()];
        let mut ranges: Vec<Range> = Vec::with_capacity(all.len());
        for (range, id) in all {
            let apart = ranges.last().is_none_or(|last| last.end() <= range.start());
            if let Some(rank) = rank.get_mut(id.index()).filter(|_| apart) {
                *rank = ranges.len() as u32;
                ranges.push(range);
            }
        }
        let mut found = block_lines_with(sections, apart, &ranges, told);
        // Units in different folders name the same file by different ways.
        for file in &mut found.files {
            *file = normal(file);
        }
        let unread = sections.unread().map(Path::to_owned);
        Self {
            found,
            rank,
            unread,
        }
    }

    /// What of the debug information could not be read.
    pub(crate) fn warnings(&self) -> &[Warning] {
        &self.found.warnings
    }

    /// The file with entries of debug information that are not read, if there is one.
    pub(crate) fn unread(&self) -> Option<&Path> {
        self.unread.as_deref()
    }

    fn rank_of(&self, block: BlockView<'_>) -> usize {
        let rank = self.rank.get(block.id().index());
        rank.map_or(usize::MAX, |rank| *rank as usize)
    }

    /// Whether no line belongs to any block.
    pub(crate) fn is_empty(&self) -> bool {
        self.found.is_empty()
    }

    /// The lines that belong to a block.
    pub(crate) fn statements(&self, block: BlockView<'_>) -> &[Position] {
        self.found.statements(self.rank_of(block))
    }

    /// The lines that belong to a block, once in each copy of a body that was put in place of a call, if that is told.
    pub(crate) fn copies(
        &self,
        block: BlockView<'_>,
    ) -> impl Iterator<Item = (Position, Option<Address>)> {
        self.found.copies(self.rank_of(block))
    }

    /// Functions whose bodies were put in place of calls, each with whether any block of those ran. Where only such blocks did
    /// as may be common to other code, that is not known.
    pub(crate) fn inlined(&self, blocks: &[Finding]) -> impl Iterator<Item = (&Inlined, Finding)> {
        let mut by_rank = vec![Finding::Unknown; self.rank.len()];
        for (rank, finding) in self.rank.iter().zip(blocks) {
            if let Some(place) = by_rank.get_mut(*rank as usize) {
                *place = *finding;
            }
        }
        let greatest = Greatest::of(&by_rank);
        let mut ran = vec![None; self.found.inlined.len()];
        for body in &self.found.bodies {
            let blocks = body.blocks.start as usize..body.blocks.end as usize;
            let found = greatest.in_range(blocks);
            let found = match body.is_sure {
                true => found,
                false => found.map(|found| found.min(Finding::Unknown)),
            };
            if let Some(ran) = ran.get_mut(body.function as usize) {
                *ran = (*ran).max(found);
            }
        }
        let functions = self.found.inlined.iter().zip(ran);
        functions.filter_map(|(function, ran)| Some((function, ran?)))
    }

    /// Where a block's first byte comes from.
    pub(crate) fn first(&self, block: BlockView<'_>) -> Option<Position> {
        let first = self.found.first.get(self.rank_of(block));
        first.copied().flatten()
    }

    /// The line that a block goes on with, if it does.
    pub(crate) fn goes_on(&self, block: BlockView<'_>) -> Option<Position> {
        self.found.goes_on(self.rank_of(block))
    }

    /// What a block begins with: of a function's first, its own line, whatever was inlined there.
    pub(crate) fn begin(&self, block: BlockView<'_>) -> Option<Position> {
        self.found.begin(self.rank_of(block))
    }

    /// Where its last byte comes from: of a branch, since that is what ends it.
    pub(crate) fn last(&self, block: BlockView<'_>) -> Option<Position> {
        let last = self.found.last.get(self.rank_of(block));
        last.copied().flatten()
    }

    /// The files, by the numbers that positions have.
    pub(crate) fn files(&self) -> &[String] {
        &self.found.files
    }

    /// The name of a position's file.
    pub(crate) fn file(&self, position: Position) -> &str {
        let file = self.files().get(position.file as usize);
        file.map_or("", String::as_str)
    }
}

/// The greatest of any range of findings, in constant time: ranges that lie in each other are as many as there are calls.
struct Greatest<'f> {
    all: &'f [Finding],
    /// How many of the findings before each place are at least so great.
    at_least: [(Finding, Vec<u32>); 4],
}

impl<'f> Greatest<'f> {
    fn of(all: &'f [Finding]) -> Self {
        let counted = [
            Finding::Ran,
            Finding::RanInferred,
            Finding::RanIfWhole,
            Finding::Unknown,
        ];
        let at_least = counted.map(|least| {
            let mut before = 0;
            let sums = all.iter().map(|finding| {
                before += u32::from(*finding >= least);
                before
            });
            (least, std::iter::once(0).chain(sums).collect())
        });
        Self { all, at_least }
    }

    /// Where none is unknown or ran, the first of them; `None` where there are none.
    fn in_range(&self, range: std::ops::Range<usize>) -> Option<Finding> {
        let first = *self.all.get(range.clone())?.first()?;
        let is_there = |sums: &Vec<u32>| sums[range.end] > sums[range.start];
        let mut counted = self.at_least.iter();
        let found = counted.find(|(_, sums)| is_there(sums));
        Some(found.map_or(first, |(least, _)| *least))
    }
}

#[cfg(test)]
mod tests {
    use super::{Finding, Greatest};

    #[test]
    fn the_greatest_of_all_ranges_are_found() {
        let all: Vec<Finding> = (0..23).map(|at| Finding::ALL[at * at % 7]).collect();
        let greatest = Greatest::of(&all);
        for start in 0..=all.len() {
            for end in start..=all.len() {
                let naive = all[start..end].iter().max().copied();
                let found = greatest.in_range(start..end);
                // What did not run did not run, however that is known.
                let known = |it: Option<Finding>| it.map(|it| it.max(Finding::NotRunIfWhole));
                assert_eq!(known(found), known(naive), "{start}..{end}");
            }
        }
        assert_eq!(greatest.in_range(3..99), None);
    }
}
