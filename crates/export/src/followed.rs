//! Counted paths put beside the source, as a table and as JSON.
//!
//! A path's *share* is that of the instructions along it in all that were executed along paths: what ran often
//! and is long comes first.

mod document;
mod table;

pub use document::document as paths_document;
pub use table::write as write_paths_table;

use std::collections::HashMap;

use tomo_program::dwarf::{BlockLines, Told, block_lines_with};
use tomo_program::{BlockId, FunctionView, Graphs, ModelError};

use crate::{FunctionPaths, Located, PathCounts, RanPath};

/// A module with the paths that ran in it.
#[derive(Debug)]
pub struct Followed {
    /// Its file and model.
    pub located: Located,
    /// Names its build.
    pub module: String,
    /// Its paths.
    pub counts: PathCounts,
    /// How many threads were not followed, having no memory for it.
    pub lost: u64,
    /// How many processes were forked, and went on along paths of their parents.
    pub forks: u64,
}

/// A path of a function.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Hot<'f> {
    pub(crate) function: &'f FunctionPaths,
    pub(crate) path: &'f RanPath,
    /// Instructions that were executed along it.
    pub(crate) executed: u128,
}

/// Lines of blocks.
#[derive(Debug, Default)]
pub(crate) struct LinesOf {
    /// Which of the blocks each is, by address.
    places: HashMap<BlockId, usize>,
    found: BlockLines,
}

impl LinesOf {
    /// A file and a line for each statement that belongs to the block.
    pub(crate) fn of(&self, block: BlockId) -> impl Iterator<Item = (&str, u32)> {
        let at = self.places.get(&block);
        let found = at.map(|at| self.found.statements(*at)).unwrap_or_default();
        found.iter().map(|position| {
            let file = self.found.files.get(position.file as usize);
            (file.map_or("", String::as_str), position.line)
        })
    }
}

impl Followed {
    pub(crate) fn graphs(&self) -> Result<Graphs<'_>, ModelError> {
        self.located.model.graphs()
    }

    /// The paths that ran, of functions that please `is_asked`, the hottest first; and how many instructions were
    /// executed along all.
    pub(crate) fn hottest(
        &self,
        graphs: &Graphs<'_>,
        is_asked: &dyn Fn(&FunctionView<'_>) -> bool,
    ) -> (Vec<Hot<'_>>, u128) {
        let asked = self.counts.functions.iter().filter(|function| {
            let view = graphs.function(function.function);
            view.is_some_and(|view| is_asked(&view))
        });
        let mut hot: Vec<Hot<'_>> = asked
            .flat_map(|function| function.ran.iter().map(move |path| (function, path)))
            .map(|(function, path)| Hot {
                function,
                path,
                executed: path.executed(graphs),
            })
            .collect();
        hot.sort_by_key(|hot| std::cmp::Reverse(hot.executed));
        let all = self.counts.functions.iter().flat_map(|one| &one.ran);
        let all = all.map(|path| path.executed(graphs)).sum();
        (hot, all)
    }

    /// The lines of these blocks.
    pub(crate) fn lines_of(
        &self,
        graphs: &Graphs<'_>,
        blocks: impl Iterator<Item = BlockId>,
    ) -> LinesOf {
        let mut all: Vec<_> = blocks
            .filter_map(|id| Some((graphs.block(id)?.range(), id)))
            .collect();
        all.sort_unstable_by_key(|(range, _)| range.start());
        all.dedup();
        let ranges: Vec<_> = all.iter().map(|(range, _)| *range).collect();
        LinesOf {
            found: block_lines_with(
                &self.located.sections(),
                self.located.apart(),
                &ranges,
                Told::Blocks,
            ),
            places: all
                .iter()
                .enumerate()
                .map(|(at, (_, id))| (*id, at))
                .collect(),
        }
    }

    /// How many paths of a function were cut, if that is known.
    pub(crate) fn cut(&self, function: &FunctionPaths) -> Option<u64> {
        function.cut().filter(|_| self.forks == 0)
    }
}

impl RanPath {
    /// How many instructions were executed along it.
    #[must_use]
    pub fn executed(&self, graphs: &Graphs<'_>) -> u128 {
        let blocks = self.blocks.iter().filter_map(|block| graphs.block(*block));
        let length: u128 = blocks.map(|block| u128::from(block.instructions())).sum();
        length * u128::from(self.count)
    }
}
