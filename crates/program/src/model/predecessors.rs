//! Edges, by the block they enter: made on demand, since the model keeps them by the block they leave.

use super::BlockId;
use super::views::{EdgeView, FunctionView, part};

/// For each block of one function, the edges that enter it.
#[derive(Clone, Debug)]
pub struct Predecessors {
    first_block: usize,
    /// Where the list of each block starts; one more at the end.
    starts: Vec<u32>,
    edges: Vec<EdgeView>,
}

impl Predecessors {
    pub(super) fn of(function: &FunctionView<'_>) -> Self {
        let numbers = function.block_numbers();
        let inside = |edge: &EdgeView| edge.block().and_then(|block| function.position_of(block));
        let mut edges: Vec<_> = function
            .edges()
            .filter_map(|edge| Some((inside(&edge)?, edge)))
            .collect();
        edges.sort_by_key(|(to, _)| *to);
        let start = |block: usize| edges.partition_point(|(to, _)| *to < block) as u32;
        let starts = (0..=numbers.len()).map(start).collect();
        Self {
            first_block: numbers.start,
            starts,
            edges: edges.into_iter().map(|(_, edge)| edge).collect(),
        }
    }

    /// The edges that enter `block`, by the block they leave.
    #[must_use]
    pub fn of_block(&self, block: BlockId) -> &[EdgeView] {
        let position = block.index().wrapping_sub(self.first_block);
        let ends = self
            .starts
            .get(position)
            .zip(self.starts.get(position.wrapping_add(1)));
        ends.map_or(&[], |(start, end)| {
            part(&self.edges, *start as usize, *end as usize)
        })
    }
}
