//! Execution counts put beside the source, and written as people know them.
//!
//! In one function a line ran as often as the most often run of its blocks: what compilers make of one line is
//! spread over blocks that run one after the other, and sums would count one pass several times. Functions that
//! have code of one line are copies of it, or callers into which it was put: what ran in each is added up, and so is what ran in several
//! such copies in one function, as debug information tells them apart. What is copied otherwise, as loops are that compilers
//! unroll, is not told apart, and counts as its most often run copy; nor does a condition count where a compiler has spared it, since it is known
//! there how it comes out. A line may go on in blocks in
//! which it does not begin, where ways join; it counts as often as those where none ran in which it does.

mod callgrind;
mod pprof;
mod source;
mod tracefile;

pub use callgrind::write as write_callgrind;
pub use pprof::write as write_pprof;
pub use source::write as write_source;
pub use tracefile::write as write_tracefile;

use std::collections::BTreeMap;

use tomo_program::dwarf::Position;
use tomo_program::{BlockView, FunctionView, Graphs, ModelError};

use crate::words::no_lines;
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
            located: located.with_copies(),
            counts,
        }
    }

    /// Its graphs.
    ///
    /// # Errors
    /// Where the model is damaged.
    pub fn graphs(&self) -> Result<Graphs<'_>, ModelError> {
        self.located.model.graphs()
    }

    /// Why nothing can be told of its lines, if that is so.
    #[must_use]
    pub fn without_lines(&self) -> Option<String> {
        let words = || {
            let path = self.located.path.display();
            format!(
                "{path} has {}: nothing can be told by line",
                no_lines(self.located.missed())
            )
        };
        self.located.lines().is_empty().then(words)
    }

    /// What is not known of its lines, since other files have it: sentences behind its path.
    #[must_use]
    pub fn lacking(&self) -> Vec<String> {
        let path = self.located.path.display();
        let all = self.located.lacking().into_iter();
        all.map(|lacking| format!("{path}: {lacking}")).collect()
    }

    /// The name of a file.
    pub(crate) fn file(&self, position: Position) -> &str {
        self.located.lines().file(position)
    }

    /// Where a block starts in the source.
    pub(crate) fn start(&self, block: BlockView<'_>) -> Option<Position> {
        self.located.lines().first(block)
    }

    /// Functions that are counted, with where they start.
    pub(crate) fn functions<'c, 'g: 'c>(
        &'c self,
        graphs: &'g Graphs<'g>,
    ) -> impl Iterator<Item = Written<'c, 'g>> {
        self.counts.functions.iter().filter_map(move |counts| {
            let view = graphs.function(counts.function)?;
            let entry = view.entry_block();
            let place = entry.and_then(|block| self.located.lines().begin(block));
            Some(Written {
                view,
                counts,
                place,
            })
        })
    }

    /// How often each line ran, by file and line.
    ///
    /// # Errors
    /// Where the model is damaged.
    pub fn line_counts(&self) -> Result<BTreeMap<&str, BTreeMap<u32, LineCount>>, ModelError> {
        let graphs = self.graphs()?;
        let mut files: BTreeMap<&str, BTreeMap<u32, LineCount>> = BTreeMap::new();
        for function in self.functions(&graphs) {
            for (position, count) in self.line_counts_of(&function) {
                let file = files.entry(self.file(position)).or_default();
                add(file.entry(position.line).or_insert(Some(0)), count);
            }
        }
        Ok(files)
    }

    /// How often each line of a function ran: in each copy of a body as often as that of its blocks which ran most, and at least as often
    /// as any block with it; or, if none of all these ran, as that of those that go on with it.
    fn line_counts_of(&self, function: &Written<'_, '_>) -> BTreeMap<Position, LineCount> {
        let mut copies = BTreeMap::new();
        for (block, count) in function.view.blocks().zip(&function.counts.blocks) {
            for copy in self.located.lines().copies(block) {
                let line: &mut LineCount = copies.entry(copy).or_insert(*count);
                *line = line.zip(*count).map(|(one, other)| one.max(other));
            }
        }
        let mut parts: BTreeMap<Position, [LineCount; 2]> = BTreeMap::new();
        for ((position, entered), count) in copies {
            let [in_none, in_copies] = parts.entry(position).or_insert([Some(0); 2]);
            add(
                if entered.is_some() {
                    in_copies
                } else {
                    in_none
                },
                count,
            );
        }
        let most = |[one, other]: [LineCount; 2]| one.zip(other).map(|(one, other)| one.max(other));
        let lines = parts
            .into_iter()
            .map(|(position, parts)| (position, most(parts)));
        let mut lines: BTreeMap<Position, LineCount> = lines.collect();
        let mut further: BTreeMap<Position, u64> = BTreeMap::new();
        for (block, count) in function.view.blocks().zip(&function.counts.blocks) {
            let line = self.located.lines().goes_on(block);
            if let Some((position, count)) = line.zip(*count) {
                let most = further.entry(position).or_default();
                *most = count.max(*most);
            }
        }
        for (position, count) in further {
            if let Some(line) = lines.get_mut(&position).filter(|line| **line == Some(0)) {
                *line = Some(count);
            }
        }
        lines
    }
}

fn add(sum: &mut LineCount, count: LineCount) {
    let both = sum.zip(count);
    *sum = both.map(|(one, other)| one.saturating_add(other));
}
