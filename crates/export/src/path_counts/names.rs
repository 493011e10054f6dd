//! The numbers of a function's paths, and what they name.

use tomo_program::{BlockId, Graphs};
use tomo_wire::paths::{Function, Rows};

use super::{PathEnd, looked_up};

/// A path, by addresses.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PathName {
    /// Where the blocks along it start.
    pub blocks: Vec<u64>,
    /// The block to which it ends, unless it leaves the function, or ends in front of an edge.
    pub end: Option<u64>,
}

/// The names of the paths of a function with these numbers, of which some may share one: where edges lead side by side
/// from block to block. `None` where there is no such number, or the file is of another program.
#[must_use]
pub fn path_names(
    graphs: &Graphs<'_>,
    rows: &Rows<'_>,
    row: &Function,
    numbers: impl IntoIterator<Item = u32>,
) -> Option<Vec<PathName>> {
    let start = |block: BlockId| Some(graphs.block(block)?.address().0);
    looked_up(graphs, rows, row, |followed, table| {
        let names = numbers.into_iter().map(|number| {
            let (blocks, end) = followed.blocks_along(&table.along(number.into())?)?;
            let blocks = blocks.into_iter().map(start);
            Some(PathName {
                blocks: blocks.collect::<Option<_>>()?,
                end: match end {
                    PathEnd::Exit => None,
                    PathEnd::Edge(block) => Some(start(block)?),
                },
            })
        });
        names.collect()
    })
}

/// For each counter of a function behind its first the number of the path that it counts; none where that is no path
/// asked for.
#[must_use]
pub fn numbers_counted(
    graphs: &Graphs<'_>,
    rows: &Rows<'_>,
    row: &Function,
) -> Option<Vec<Option<u32>>> {
    looked_up(graphs, rows, row, |followed, table| {
        let counters = 0..row.numbers.get();
        let number = |counter: u32| {
            let arcs = table.counted(counter.into());
            let arcs = arcs.flatten().filter(|arcs| table.is_asked(arcs))?;
            u32::try_from(followed.numbering.number(&arcs)).ok()
        };
        Some(counters.map(number).collect())
    })
}
