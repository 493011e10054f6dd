//! Execution counts put beside the source, and written as people know them.
//!
//! A line ran as often as the most often run of its blocks: what compilers make of one line is spread over
//! blocks that run one after the other, and sums would count one pass several times.

mod callgrind;
mod pprof;
mod source;
mod tracefile;

pub use callgrind::write as write_callgrind;
pub use pprof::write as write_pprof;
pub use source::write as write_source;
pub use tracefile::write as write_tracefile;

use std::collections::BTreeMap;
use std::sync::OnceLock;

use tomo_program::dwarf::{BlockLines, Position, block_lines};
use tomo_program::{BlockView, FunctionView, Graphs, ModelError};

use crate::picture::Sorted;
use crate::{Counts, FunctionCounts, Located};

/// How often a line ran; `None` where that is not known of one of its blocks.
pub type LineCount = Option<u64>;

/// A module with its counts.
#[derive(Debug)]
pub struct Counted {
    /// Its file and model.
    pub located: Located,
    /// Its counts.
    pub counts: Counts,
    /// Found when they are first asked for, which takes longer than all the rest.
    lines: OnceLock<Lines>,
}

/// Which lines the blocks are made of.
#[derive(Debug, Default)]
struct Lines {
    found: BlockLines,
    /// For each block, which of the sorted ones it is.
    rank: Vec<u32>,
}

/// A function as it is written.
pub(crate) struct Written<'c, 'g> {
    pub(crate) view: FunctionView<'g>,
    pub(crate) counts: &'c FunctionCounts,
    /// Where it starts in the source.
    pub(crate) place: Option<Position>,
}

impl Counted {
    /// The counts of this module beside its lines.
    #[must_use]
    pub fn of(located: Located, counts: Counts) -> Self {
        Self {
            located,
            counts,
            lines: OnceLock::new(),
        }
    }

    fn lines(&self) -> &Lines {
        self.lines.get_or_init(|| {
            // The counts come from this very model, so it is readable.
            let Ok(graphs) = self.graphs() else {
                return Lines::default();
            };
            let sorted = Sorted::of(&graphs);
            Lines {
                found: block_lines(&self.located.sections(), &sorted.ranges),
                rank: sorted.rank,
            }
        })
    }

    /// Its graphs.
    ///
    /// # Errors
    /// Where the model is damaged.
    pub fn graphs(&self) -> Result<Graphs<'_>, ModelError> {
        self.located.model.graphs()
    }

    fn rank_of(&self, block: BlockView<'_>) -> usize {
        let rank = self.lines().rank.get(block.id().index());
        rank.map_or(usize::MAX, |rank| *rank as usize)
    }

    /// The name of a file.
    pub(crate) fn file(&self, position: Position) -> &str {
        let file = self.lines().found.files.get(position.file as usize);
        file.map_or("", String::as_str)
    }

    /// Where a block starts in the source.
    pub(crate) fn start(&self, block: BlockView<'_>) -> Option<Position> {
        self.lines()
            .found
            .first
            .get(self.rank_of(block))
            .copied()
            .flatten()
    }

    /// Functions that are counted, with where they start.
    pub(crate) fn functions<'c, 'g: 'c>(
        &'c self,
        graphs: &'g Graphs<'g>,
    ) -> impl Iterator<Item = Written<'c, 'g>> {
        self.counts.functions.iter().filter_map(move |counts| {
            let view = graphs.function(counts.function)?;
            let place = view.entry_block().and_then(|block| self.start(block));
            Some(Written {
                view,
                counts,
                place,
            })
        })
    }

    /// How often each line ran, by file and line: in all functions together that have code of it, be they copies of
    /// one in several units, or callers that its body was put into.
    ///
    /// # Errors
    /// Where the model is damaged.
    pub fn line_counts(&self) -> Result<BTreeMap<&str, BTreeMap<u32, LineCount>>, ModelError> {
        let graphs = self.graphs()?;
        let mut files: BTreeMap<&str, BTreeMap<u32, LineCount>> = BTreeMap::new();
        for function in self.functions(&graphs) {
            for (position, count) in self.line_counts_of(&function) {
                let file = files.entry(self.file(position)).or_default();
                let line = file.entry(position.line).or_insert(Some(0));
                *line = line
                    .zip(count)
                    .map(|(one, other)| one.saturating_add(other));
            }
        }
        Ok(files)
    }

    /// How often each line of a function ran: as often as that of its blocks which ran most.
    fn line_counts_of(&self, function: &Written<'_, '_>) -> BTreeMap<Position, LineCount> {
        let mut lines = BTreeMap::new();
        for (block, count) in function.view.blocks().zip(&function.counts.blocks) {
            for position in self.lines().found.statements(self.rank_of(block)) {
                let line: &mut LineCount = lines.entry(*position).or_insert(*count);
                *line = line.zip(*count).map(|(one, other)| one.max(other));
            }
        }
        lines
    }
}
