//! Dominators: `a` dominates `b` if every path from the entry to `b` passes `a`.
//!
//! Source: Lengauer, Tarjan, *A Fast Algorithm for Finding Dominators in a Flowgraph*, TOPLAS 1(1),
//! 1979, the simple version (§3 and §4, `EVAL` with path compression alone): O(m log n) for m
//! edges and n nodes.
//!
//! Why this one: Cooper, Harvey, Kennedy, *A Simple, Fast Dominance Algorithm*, 2001, and the
//! semi-NCA of Georgiadis, Tarjan, Werneck, *Finding Dominators in Practice*, JGAA 10(1), 2006, are
//! a little faster on usual graphs, but quadratic at worst, and the programs we read are not ours:
//! a crafted function must not stall the analysis.
//!
//! Deviations: everything is indexed by depth-first number, so the tables are dense and unreachable
//! nodes cost nothing; compression is iterative; buckets are lists threaded through two arrays.
//! Queries take O(1) by nested intervals of the dominator tree (Dietz, *Maintaining Order in a
//! Linked List*, STOC 1982, §2), laid out by subtree sizes without another walk.
//!
//! **Unreachable nodes** have no immediate dominator, dominate nothing and are dominated by
//! nothing, not even by themselves. (By the letter of the definition everything dominates them;
//! nobody who asks wants to hear that.)

use crate::id::{NONE, node_or_none};
use crate::{DepthFirst, Graph, NodeId};

/// The dominator tree of a graph.
#[derive(Clone, Debug)]
pub struct Dominators {
    /// Per node: its immediate dominator, or `NONE`.
    immediate: Vec<u32>,
    /// Per node: its position in `order`, or `NONE`.
    first: Vec<u32>,
    /// Per node: how many nodes it dominates, itself included.
    size: Vec<u32>,
    /// Per node: edges of the tree between the root and it.
    depth: Vec<u32>,
    /// Reachable nodes, every subtree contiguous and headed by its root.
    order: Vec<NodeId>,
}

impl Dominators {
    /// The dominators of `graph`, seen from its entry.
    pub fn of<G: Graph>(graph: &G) -> Self {
        Self::with_walk(graph, &DepthFirst::of(graph))
    }

    /// The same, where a depth-first walk of `graph` is at hand.
    pub fn with_walk<G: Graph>(graph: &G, walk: &DepthFirst) -> Self {
        let immediate = Forest::new(walk).immediate_dominators(graph, walk);
        Self::lay_out(graph.node_count(), walk.preorder(), &immediate)
    }

    /// Gives every node the interval of its subtree. `immediate` holds, per depth-first number,
    /// the smaller number of the immediate dominator.
    fn lay_out(nodes: usize, preorder: &[NodeId], immediate: &[u32]) -> Self {
        let mut size = vec![1u32; preorder.len()];
        for number in (1..preorder.len()).rev() {
            size[immediate[number] as usize] += size[number];
        }
        let mut tree = Self {
            immediate: vec![NONE; nodes],
            first: vec![NONE; nodes],
            size: vec![0; nodes],
            depth: vec![0; nodes],
            order: preorder.to_vec(),
        };
        // The first position that is still free in each node's interval.
        let mut free = vec![1u32; preorder.len()];
        for (number, &node) in preorder.iter().enumerate() {
            let mut position = 0;
            if number > 0 {
                let above = immediate[number] as usize;
                position = free[above];
                free[above] += size[number];
                free[number] = position + 1;
                tree.immediate[node.index()] = preorder[above].0;
                tree.depth[node.index()] = tree.depth[preorder[above].index()] + 1;
            }
            tree.order[position as usize] = node;
            tree.first[node.index()] = position;
            tree.size[node.index()] = size[number];
        }
        tree
    }

    /// The root of the tree: the entry of the graph.
    #[must_use]
    pub fn root(&self) -> NodeId {
        self.order[0]
    }

    /// Whether the entry reaches `node`.
    #[must_use]
    pub fn is_reachable(&self, node: NodeId) -> bool {
        self.first[node.index()] != NONE
    }

    /// The closest strict dominator of `node`; `None` for the entry and for what it does not reach.
    #[must_use]
    pub fn immediate(&self, node: NodeId) -> Option<NodeId> {
        node_or_none(self.immediate[node.index()])
    }

    /// Whether every path from the entry to `b` passes `a`. True of a reachable node and itself;
    /// false if either is unreachable. O(1).
    #[must_use]
    pub fn dominates(&self, a: NodeId, b: NodeId) -> bool {
        // An unreachable `a` has size 0; an unreachable `b` is at the largest number.
        let offset = self.first[b.index()].wrapping_sub(self.first[a.index()]);
        offset < self.size[a.index()]
    }

    /// Whether `a` dominates `b` and is another node. O(1).
    #[must_use]
    pub fn strictly_dominates(&self, a: NodeId, b: NodeId) -> bool {
        a != b && self.dominates(a, b)
    }

    /// How many strict dominators `node` has; `None` if it is unreachable.
    #[must_use]
    pub fn depth(&self, node: NodeId) -> Option<u32> {
        self.is_reachable(node).then(|| self.depth[node.index()])
    }

    /// All nodes that `node` dominates, itself first, in preorder of the tree. Empty for an
    /// unreachable node.
    #[must_use]
    pub fn dominated_by(&self, node: NodeId) -> &[NodeId] {
        match self.first[node.index()] {
            NONE => &[],
            first => &self.order[first as usize..][..self.size[node.index()] as usize],
        }
    }

    /// The nodes whose immediate dominator is `node`.
    pub fn children(&self, node: NodeId) -> impl Iterator<Item = NodeId> {
        let mut rest = self.dominated_by(node).get(1..).unwrap_or_default();
        std::iter::from_fn(move || {
            let &child = rest.first()?;
            rest = &rest[self.size[child.index()] as usize..];
            Some(child)
        })
    }

    /// `node`, its immediate dominator, and so on up to the entry. Empty for an unreachable node.
    pub fn dominators_of(&self, node: NodeId) -> impl Iterator<Item = NodeId> {
        let start = self.is_reachable(node).then_some(node);
        std::iter::successors(start, |&node| self.immediate(node))
    }

    /// The lowest node of the tree that dominates both; `None` if either is unreachable. Takes as
    /// many steps as `a` lies below it.
    #[must_use]
    pub fn common(&self, a: NodeId, b: NodeId) -> Option<NodeId> {
        self.dominators_of(a)
            .find(|&above| self.dominates(above, b))
    }
}

/// The forest that Lengauer and Tarjan grow from the bottom up, by depth-first number.
struct Forest {
    /// `ancestor(v)`: towards the root of the linked part; `NONE` at roots.
    ancestor: Vec<u32>,
    /// `label(v)`: the node of least semidominator between `v` and `ancestor(v)`.
    label: Vec<u32>,
    semi: Vec<u32>,
    /// Reused by `compress`.
    path: Vec<u32>,
}

impl Forest {
    fn new(walk: &DepthFirst) -> Self {
        let numbers: Vec<u32> = (0..walk.preorder().len() as u32).collect();
        Self {
            ancestor: vec![NONE; numbers.len()],
            label: numbers.clone(),
            semi: numbers,
            path: Vec::new(),
        }
    }

    /// Steps 2 to 4 of the paper. The result is by depth-first number; that of the entry is 0.
    fn immediate_dominators<G: Graph>(mut self, graph: &G, walk: &DepthFirst) -> Vec<u32> {
        let parent = parents(walk);
        let mut immediate = vec![0u32; parent.len()];
        // bucket(w), the nodes whose semidominator is w, as lists: first of each, then next.
        let mut bucket = vec![NONE; parent.len()];
        let mut next = vec![NONE; parent.len()];
        for w in (1..parent.len()).rev() {
            self.find_semidominator(graph, walk, w);
            let semi = self.semi[w] as usize;
            next[w] = std::mem::replace(&mut bucket[semi], w as u32);
            self.ancestor[w] = parent[w];
            let mut v = std::mem::replace(&mut bucket[parent[w] as usize], NONE);
            while v != NONE {
                let u = self.eval(v);
                let deferred = self.semi[u as usize] < self.semi[v as usize];
                immediate[v as usize] = if deferred { u } else { parent[w] };
                v = next[v as usize];
            }
        }
        for w in 1..parent.len() {
            if immediate[w] != self.semi[w] {
                immediate[w] = immediate[immediate[w] as usize];
            }
        }
        immediate
    }

    fn find_semidominator<G: Graph>(&mut self, graph: &G, walk: &DepthFirst, w: usize) {
        for hop in graph.in_edges(walk.preorder()[w]) {
            if let Some(v) = walk.pre_number(hop.node) {
                let u = self.eval(v);
                self.semi[w] = self.semi[w].min(self.semi[u as usize]);
            }
        }
    }

    /// The node of least semidominator on the way from `v` to, but without, its root.
    fn eval(&mut self, v: u32) -> u32 {
        if self.ancestor[v as usize] != NONE {
            self.compress(v);
        }
        self.label[v as usize]
    }

    fn compress(&mut self, mut v: u32) {
        loop {
            let above = self.ancestor[v as usize];
            if self.ancestor[above as usize] == NONE {
                break;
            }
            self.path.push(v);
            v = above;
        }
        while let Some(v) = self.path.pop() {
            let above = self.ancestor[v as usize] as usize;
            let (mine, theirs) = (self.label[v as usize], self.label[above]);
            if self.semi[theirs as usize] < self.semi[mine as usize] {
                self.label[v as usize] = theirs;
            }
            self.ancestor[v as usize] = self.ancestor[above];
        }
    }
}

/// Per depth-first number, that of the tree parent; 0 for the entry.
fn parents(walk: &DepthFirst) -> Vec<u32> {
    let number = |node: NodeId| {
        walk.parent(node)
            .and_then(|hop| walk.pre_number(hop.node))
            .unwrap_or(0)
    };
    walk.preorder().iter().map(|&node| number(node)).collect()
}
