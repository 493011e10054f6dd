//! The path graph laid out for decoding: a row per way, with all that is needed to go on behind it.
//!
//! Source: BL96, §3.4, for what is looked for; the layout is ours. Much of a path is no choice: a
//! *stretch* is a way and those that must follow it, as far as their ids are consecutive (ids are given
//! in topological order, so only joins interrupt). A walk looks at one row a stretch, and at one more
//! for each further way that it compares. O(ways) to build, 16 bytes a way.

use std::ops::Range;

use tomo_plan::paths::{Numbering, PathDag};

/// What is to be known of a way.
#[derive(Clone, Copy, Debug, Default)]
struct Row {
    /// What it adds to the number of a path.
    value: u64,
    /// The first way on from where its stretch ends; the others there follow.
    next: u32,
    /// How many ways its stretch has, itself among them.
    length: u16,
    /// How many ways lead on from where that ends; [`MANY`] for so many or more.
    ways: u16,
}

const MANY: u16 = u16::MAX;

/// All stretches of a path graph.
#[derive(Clone, Debug)]
pub(super) struct Stretches {
    rows: Vec<Row>,
    /// How many ways lead out of the source; they are the first.
    starts: usize,
    /// By the first way on from them: the places with [`MANY`] ways on, ascending.
    wide: Vec<(u32, usize)>,
}

impl Stretches {
    pub(super) fn of(dag: &PathDag, numbering: &Numbering) -> Self {
        let mut rows = vec![Row::default(); dag.arcs().len()];
        for at in (0..rows.len()).rev() {
            let on = dag.out_range(dag.arcs()[at].to);
            let row = match rows.get(at + 1) {
                Some(behind) if on == (at + 1..at + 2) && behind.length < u16::MAX => Row {
                    length: behind.length + 1,
                    ..*behind
                },
                _ => Row {
                    next: on.start as u32,
                    length: 1,
                    ways: u16::try_from(on.len()).unwrap_or(MANY),
                    value: 0,
                },
            };
            let value = numbering.values()[at];
            rows[at] = Row { value, ..row };
        }
        let ranges = dag.nodes().map(|node| dag.out_range(node));
        let wide = ranges.filter(|ways| ways.len() >= usize::from(MANY));
        Self {
            rows,
            starts: dag.out_range(tomo_plan::paths::DagNode::SOURCE).len(),
            wide: wide.map(|ways| (ways.start as u32, ways.len())).collect(),
        }
    }

    /// The stretches of the path with this number, which there must be.
    pub(super) fn of_path(&self, number: u64) -> OfPath<'_> {
        OfPath {
            stretches: self,
            first: 0,
            ways: self.starts,
            rest: number,
        }
    }

    /// The last of so many ways from `first` on whose value is not above `rest`. The first has value
    /// zero.
    fn largest_below(&self, first: usize, ways: usize, rest: u64) -> usize {
        match ways {
            1 => first,
            2 => first + usize::from(self.rows[first + 1].value <= rest),
            _ => {
                let others = &self.rows[first + 1..first + ways];
                first + others.partition_point(|row| row.value <= rest)
            }
        }
    }

    fn ways(&self, row: Row) -> usize {
        if row.ways < MANY {
            return usize::from(row.ways);
        }
        let at = self.wide.partition_point(|wide| wide.0 < row.next);
        self.wide.get(at).map_or(0, |wide| wide.1)
    }
}

/// The stretches of one path, in order, each as the positions of its ways.
#[derive(Clone, Debug)]
pub(super) struct OfPath<'s> {
    stretches: &'s Stretches,
    first: usize,
    ways: usize,
    rest: u64,
}

impl Iterator for OfPath<'_> {
    type Item = Range<u32>;

    fn next(&mut self) -> Option<Range<u32>> {
        if self.ways == 0 {
            return None;
        }
        let at = self
            .stretches
            .largest_below(self.first, self.ways, self.rest);
        let row = self.stretches.rows[at];
        self.rest -= row.value;
        self.first = row.next as usize;
        self.ways = self.stretches.ways(row);
        Some(at as u32..at as u32 + u32::from(row.length))
    }
}
