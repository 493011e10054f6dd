//! Flow graphs as both sides are brought to, and the one normal form in which they are compared.
//!
//! The normal form joins two blocks where the second follows the first without a gap, the first has
//! no other way out and the second no other way in. The entry has a way in from outside, and a way
//! out of the function (a conditional tail call) is a way out. Both sides go through this same code.
//! Linear in blocks and edges, up to the cost of ordered sets.

use std::collections::{BTreeMap, BTreeSet};

/// An edge between blocks of one function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Edge {
    /// Start of the block that it leaves.
    pub from: u64,
    /// Start of the block that it enters.
    pub to: u64,
    /// For an edge to a landing pad, the address behind the call that may throw.
    pub thrown_at: Option<u64>,
}

impl Edge {
    /// An edge that control takes without an exception.
    #[must_use]
    pub fn plain(from: u64, to: u64) -> Self {
        Self {
            from,
            to,
            thrown_at: None,
        }
    }
}

/// One function's flow graph.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Graph {
    /// Start of the block that callers enter.
    pub entry: u64,
    /// End of each block by its start; disjoint.
    pub blocks: BTreeMap<u64, u64>,
    /// Edges between those blocks.
    pub edges: BTreeSet<Edge>,
    /// Starts of the blocks that (also) leave the function by a jump.
    pub leaving: BTreeSet<u64>,
}

/// A flow graph in normal form: what is compared.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Normal {
    /// Starts of the joined blocks.
    pub starts: BTreeSet<u64>,
    /// Edges between joined blocks, by their starts.
    pub edges: BTreeSet<(u64, u64)>,
}

impl Graph {
    /// The start of the block that holds `address`.
    #[must_use]
    pub fn block_of(&self, address: u64) -> Option<u64> {
        let (&start, &end) = self.blocks.range(..=address).next_back()?;
        (address < end).then_some(start)
    }

    /// Drops every block that the entry does not reach, and the edges from them.
    pub fn keep_reachable(&mut self) {
        let mut reached = BTreeSet::new();
        let mut open = vec![self.entry];
        while let Some(block) = open.pop() {
            if self.blocks.contains_key(&block) && reached.insert(block) {
                open.extend(self.edges_from(block).map(|edge| edge.to));
            }
        }
        self.blocks.retain(|start, _| reached.contains(start));
        self.edges
            .retain(|edge| reached.contains(&edge.from) && reached.contains(&edge.to));
        self.leaving.retain(|start| reached.contains(start));
    }

    /// Leaves out the instructions that do nothing at the start of blocks (`padding` says how many
    /// bytes of a range they take); a block of nothing else is contracted into what it runs into.
    /// Control runs over alignment, but compilers do not count that to the block behind it.
    pub fn skip_padding(&mut self, padding: impl Fn(u64, u64) -> u64) {
        let skip = |(&start, &end): (&u64, &u64)| {
            let behind = start + padding(start, end);
            let moves = start != self.entry
                && start < behind
                && (behind < end || self.only_runs_on(start, end));
            moves.then_some((start, behind))
        };
        let moved: BTreeMap<u64, u64> = self.blocks.iter().filter_map(skip).collect();
        let empty = |start: u64| {
            moved
                .get(&start)
                .is_some_and(|behind| self.blocks.get(&start) == Some(behind))
        };
        let to = |mut at: u64| {
            while let Some(&next) = moved.get(&at) {
                at = next;
            }
            at
        };
        let blocks = self.blocks.iter().filter(|(start, _)| !empty(**start));
        let blocks = blocks.map(|(&start, &end)| (to(start), to(end))).collect();
        let edges = self.edges.iter().filter(|edge| !empty(edge.from));
        self.edges = edges
            .map(|edge| Edge {
                from: to(edge.from),
                to: to(edge.to),
                ..*edge
            })
            .collect();
        self.leaving = self.leaving.iter().map(|&start| to(start)).collect();
        self.blocks = blocks;
    }

    fn only_runs_on(&self, start: u64, end: u64) -> bool {
        !self.leaving.contains(&start) && self.edges_from(start).eq([&Edge::plain(start, end)])
    }

    /// The edges that leave one block.
    pub fn edges_from(&self, block: u64) -> impl Iterator<Item = &Edge> {
        let first = Edge {
            from: block,
            to: 0,
            thrown_at: None,
        };
        self.edges
            .range(first..)
            .take_while(move |edge| edge.from == block)
    }

    /// The normal form.
    #[must_use]
    pub fn normal(&self) -> Normal {
        let joined = self.joined();
        let edges = self.edges.iter().filter_map(|edge| {
            let (from, to) = (
                *joined.get(&edge.from)?,
                *joined.get(&edge.to).unwrap_or(&edge.to),
            );
            let inner = from == to && to != edge.to;
            (!inner).then_some((from, to))
        });
        Normal {
            edges: edges.collect(),
            starts: joined.values().copied().collect(),
        }
    }

    /// For each block the start of the joined block that it becomes part of.
    fn joined(&self) -> BTreeMap<u64, u64> {
        let (ways_in, ways_out) = self.degrees();
        let mut joined = BTreeMap::new();
        let mut previous: Option<(u64, u64)> = None;
        for (&start, &end) in &self.blocks {
            let head = match previous {
                Some((before, its_end))
                    if its_end == start
                        && ways_out.get(&before) == Some(&1)
                        && ways_in.get(&start) == Some(&1)
                        && self.edges.contains(&Edge::plain(before, start)) =>
                {
                    joined.get(&before).copied().unwrap_or(start)
                }
                _ => start,
            };
            joined.insert(start, head);
            previous = Some((start, end));
        }
        joined
    }

    fn degrees(&self) -> (BTreeMap<u64, u32>, BTreeMap<u64, u32>) {
        let pairs: BTreeSet<_> = self.edges.iter().map(|edge| (edge.from, edge.to)).collect();
        let mut ways_in = BTreeMap::from([(self.entry, 1)]);
        let mut ways_out: BTreeMap<u64, u32> =
            self.leaving.iter().map(|&block| (block, 1)).collect();
        for (from, to) in pairs {
            *ways_out.entry(from).or_default() += 1;
            *ways_in.entry(to).or_default() += 1;
        }
        (ways_in, ways_out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn graph(blocks: &[(u64, u64)], edges: &[(u64, u64)]) -> Graph {
        Graph {
            entry: blocks[0].0,
            blocks: blocks.iter().copied().collect(),
            edges: edges
                .iter()
                .map(|&(from, to)| Edge::plain(from, to))
                .collect(),
            leaving: BTreeSet::new(),
        }
    }

    #[test]
    fn a_chain_is_one_block() {
        let normal = graph(&[(0, 4), (4, 8), (8, 9)], &[(0, 4), (4, 8)]).normal();
        assert_eq!(normal.starts, BTreeSet::from([0]));
        assert!(normal.edges.is_empty());
    }

    #[test]
    fn a_second_way_in_keeps_a_block() {
        let normal = graph(&[(0, 4), (4, 8), (8, 9)], &[(0, 4), (4, 8), (0, 8)]).normal();
        assert_eq!(normal.starts, BTreeSet::from([0, 4, 8]));
        assert_eq!(normal.edges, BTreeSet::from([(0, 4), (0, 8), (4, 8)]));
    }

    #[test]
    fn a_gap_keeps_a_block() {
        let normal = graph(&[(0, 3), (4, 8)], &[(0, 4)]).normal();
        assert_eq!(normal.starts, BTreeSet::from([0, 4]));
    }

    #[test]
    fn a_loop_over_joined_blocks_stays_an_edge() {
        let normal = graph(
            &[(0, 2), (2, 4), (4, 6), (6, 7)],
            &[(0, 2), (2, 4), (4, 2), (4, 6)],
        )
        .normal();
        assert_eq!(normal.starts, BTreeSet::from([0, 2, 6]));
        assert_eq!(normal.edges, BTreeSet::from([(0, 2), (2, 2), (2, 6)]));
    }

    #[test]
    fn a_loop_back_to_the_entry_keeps_the_entry_alone() {
        let normal = graph(&[(0, 2), (2, 4)], &[(0, 2), (2, 0)]).normal();
        assert_eq!(normal.starts, BTreeSet::from([0]));
        assert_eq!(normal.edges, BTreeSet::from([(0, 0)]));
    }

    #[test]
    fn a_conditional_tail_call_is_a_way_out() {
        let mut graph = graph(&[(0, 2), (2, 4)], &[(0, 2)]);
        graph.leaving.insert(0);
        assert_eq!(graph.normal().starts, BTreeSet::from([0, 2]));
    }

    #[test]
    fn alignment_that_is_run_through_is_no_block() {
        let mut graph = graph(&[(0, 4), (4, 8), (8, 9)], &[(0, 0), (0, 4), (4, 8), (8, 8)]);
        graph.skip_padding(|start, _| if start == 4 { 4 } else { 0 });
        assert_eq!(graph.blocks, BTreeMap::from([(0, 8), (8, 9)]));
        assert_eq!(
            graph.edges,
            [(0, 0), (0, 8), (8, 8)]
                .map(|(a, b)| Edge::plain(a, b))
                .into()
        );
    }

    #[test]
    fn alignment_in_front_of_a_block_is_not_its_start() {
        let mut graph = graph(&[(0, 4), (4, 9)], &[(0, 0), (0, 4)]);
        graph.skip_padding(|start, _| if start == 4 { 3 } else { 0 });
        assert_eq!(graph.blocks, BTreeMap::from([(0, 7), (7, 9)]));
        assert_eq!(
            graph.edges,
            [(0, 0), (0, 7)].map(|(a, b)| Edge::plain(a, b)).into()
        );
    }

    #[test]
    fn what_the_entry_does_not_reach_is_dropped() {
        let mut graph = graph(&[(0, 2), (2, 4), (4, 6)], &[(0, 4), (2, 4)]);
        graph.keep_reachable();
        assert_eq!(graph.blocks.keys().copied().collect::<Vec<_>>(), [0, 4]);
        assert_eq!(graph.edges, BTreeSet::from([Edge::plain(0, 4)]));
    }
}
