//! Super blocks: sets of blocks of which a walk passes all or none.
//!
//! Source: Agrawal, POPL 1994, §3.2, there the strongly connected components of the union of both
//! dominator trees. Found here without that graph: a and b imply each other exactly if one of them,
//! a, dominates the other and is post-dominated by it; every dominator of b below a is then in
//! between, and only one child of a block can post-dominate it. So b is in the super block of its
//! immediate dominator if it post-dominates it, and begins its own otherwise. O(m log n).

use tomo_graph::{Dominators, Graph, NodeId, PostDominators, WithExit};

use super::Flow;

/// The super blocks of the reachable part of a flow, numbered so that each comes after the one that
/// holds its head's immediate dominator.
#[derive(Debug)]
pub struct SuperBlocks {
    pub(super) dominators: Dominators,
    pub(super) post: PostDominators,
    of: Vec<Option<u32>>,
    members: Vec<NodeId>,
    starts: Vec<u32>,
}

impl SuperBlocks {
    /// The super blocks of `flow`.
    #[must_use]
    pub fn of(flow: &Flow<'_>) -> Self {
        let dominators = Dominators::of(flow);
        let post = PostDominators::with_exit(&WithExit::of(flow));
        let mut of = vec![None; flow.node_count()];
        let mut count = 0u32;
        let order = dominators.dominated_by(flow.entry());
        for &node in order {
            let above = dominators
                .immediate(node)
                .filter(|&above| post.post_dominates(node, above))
                .and_then(|above| of[above.index()]);
            of[node.index()] = above.or_else(|| {
                count += 1;
                Some(count - 1)
            });
        }
        let (members, starts) = rows(order, &of, count);
        Self {
            dominators,
            post,
            of,
            members,
            starts,
        }
    }

    /// How many there are.
    #[must_use]
    pub fn count(&self) -> usize {
        self.starts.len() - 1
    }

    /// The number of the super block that holds `node`; none if the entry does not reach it.
    #[must_use]
    pub fn of_node(&self, node: NodeId) -> Option<usize> {
        self.of[node.index()].map(|class| class as usize)
    }

    /// The blocks of a super block, in the order in which each walk passes them first.
    #[must_use]
    pub fn members(&self, class: usize) -> &[NodeId] {
        &self.members[self.starts[class] as usize..self.starts[class + 1] as usize]
    }

    /// The dominators of the flow.
    #[must_use]
    pub fn dominators(&self) -> &Dominators {
        &self.dominators
    }

    /// The first block of a super block.
    pub(super) fn head(&self, class: usize) -> NodeId {
        self.members[self.starts[class] as usize]
    }

    /// Whether every walk that passes `probe` passes `block`.
    #[must_use]
    pub fn implies(&self, probe: NodeId, block: NodeId) -> bool {
        self.dominators.dominates(block, probe)
            || (self.dominators.is_reachable(probe) && self.post.post_dominates(block, probe))
    }

    /// For each closed gap behind a member, the super blocks to one of which every walk that
    /// crosses it goes.
    pub(super) fn below(&self, flow: &Flow<'_>, class: usize) -> Vec<Vec<usize>> {
        self.members(class)
            .iter()
            .filter_map(|&member| self.behind(flow, class, member))
            .collect()
    }

    fn behind(&self, flow: &Flow<'_>, class: usize, member: NodeId) -> Option<Vec<usize>> {
        if flow.is_exit(member) {
            return None;
        }
        self.neighbours(flow.successors(member), |next| {
            if self.post.post_dominates(member, next) {
                Side::Returns
            } else if self.dominators.dominates(member, next) && self.of_node(next) != Some(class) {
                Side::Within
            } else {
                Side::Open
            }
        })
    }

    /// The super blocks from one of which every walk comes to `class`, or nothing if the gap before
    /// its head is open.
    pub(super) fn above(&self, flow: &Flow<'_>, class: usize) -> Option<Vec<usize>> {
        let head = self.head(class);
        if head == flow.entry() {
            return None;
        }
        let reachable = |&node: &NodeId| self.dominators.is_reachable(node);
        self.neighbours(flow.predecessors(head).filter(reachable), |before| {
            if self.dominators.dominates(head, before) {
                Side::Returns
            } else if self.post.post_dominates(head, before) {
                Side::Within
            } else {
                Side::Open
            }
        })
    }

    fn neighbours(
        &self,
        nodes: impl Iterator<Item = NodeId>,
        side: impl Fn(NodeId) -> Side,
    ) -> Option<Vec<usize>> {
        let mut found = Vec::new();
        for node in nodes {
            match side(node) {
                Side::Open => return None,
                Side::Within => found.extend(self.of_node(node)),
                Side::Returns => {}
            }
        }
        found.sort_unstable();
        found.dedup();
        Some(found)
    }
}

/// Where an edge from a member leads, or an edge to the head comes from.
enum Side {
    /// To where every walk comes from, or goes to, this super block again.
    Returns,
    /// To a super block that implies this one.
    Within,
    /// To somewhere that implies nothing.
    Open,
}

/// The members of all classes, one class after the other, each in the given order.
fn rows(order: &[NodeId], of: &[Option<u32>], count: u32) -> (Vec<NodeId>, Vec<u32>) {
    let mut starts = vec![0u32; count as usize + 1];
    for class in order.iter().filter_map(|node| of[node.index()]) {
        starts[class as usize + 1] += 1;
    }
    for class in 0..count as usize {
        starts[class + 1] += starts[class];
    }
    let mut cursors = starts.clone();
    let mut members = vec![NodeId(0); order.len()];
    for &node in order {
        if let Some(class) = of[node.index()] {
            members[cursors[class as usize] as usize] = node;
            cursors[class as usize] += 1;
        }
    }
    (members, starts)
}
