//! Disjoint sets of small indices.
//!
//! Source: Tarjan, *Efficiency of a Good But Not Linear Set Union Algorithm*, J. ACM 22(2), 1975;
//! path halving after Tarjan, van Leeuwen, *Worst-Case Analysis of Set Union Algorithms*, J. ACM
//! 31(2), 1984, §3. Linking is directed (the caller says who represents the union, because loop
//! headers and tree parents must), hence O(log n) amortised rather than the inverse of Ackermann.

/// A partition of `0..n`; every set is named by one of its members.
#[derive(Clone, Debug)]
pub(crate) struct UnionFind {
    above: Vec<u32>,
}

impl UnionFind {
    /// Every index by itself.
    pub(crate) fn new(count: usize) -> Self {
        Self {
            above: (0..count as u32).collect(),
        }
    }

    /// The representative of the set that holds `member`.
    pub(crate) fn find(&mut self, mut member: u32) -> u32 {
        while self.above[member as usize] != member {
            let above = self.above[member as usize];
            let higher = self.above[above as usize];
            self.above[member as usize] = higher;
            member = higher;
        }
        member
    }

    /// Joins two sets; that of `representative` keeps its own. False if they were one already.
    pub(crate) fn absorb(&mut self, representative: u32, other: u32) -> bool {
        let (top, bottom) = (self.find(representative), self.find(other));
        self.above[bottom as usize] = top;
        top != bottom
    }
}
