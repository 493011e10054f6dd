//! Loops: natural and irreducible, and how they nest.
//!
//! Sources: Aho, Sethi, Ullman, *Compilers*, 1986, §10.4 (natural loops: a *back* edge is one whose
//! target dominates its source; the loop is what reaches the source without passing the target);
//! Hecht, Ullman, *Characterizations of Reducible Flow Graphs*, J. ACM 21(3), 1974 (reducible: all
//! retreating edges are back edges, whatever the walk); Havlak 1997 and Ramalingam 1999 for the
//! nesting forest, which [`loop_forest`](crate::loop_forest) computes.
//!
//! A loop whose retreating edges are all back edges is [`LoopKind::Natural`], and equal to the
//! union of the natural loops of its header (we do not split loops that share a header). Any other
//! is [`LoopKind::Irreducible`]: it can be entered elsewhere than at its header, and which of its
//! entries is the header depends on the depth-first walk.
//!
//! **Unreachable nodes** are in no loop.

use crate::id::NONE;
use crate::loop_forest::LoopForest;
use crate::{DepthFirst, Dominators, Graph, NodeId};

/// A loop; outer loops have smaller ids than those inside.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LoopId(pub u32);

/// Whether a loop has one way in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LoopKind {
    /// Its header dominates all of it.
    Natural,
    /// It can be entered at several nodes.
    Irreducible,
}

#[derive(Clone, Debug)]
struct Loop {
    header: NodeId,
    kind: LoopKind,
    parent: Option<LoopId>,
    depth: u32,
    /// Its part of `Loops::members`, nested loops included.
    first: u32,
    size: u32,
}

/// The loops of a graph.
#[derive(Clone, Debug)]
pub struct Loops {
    loops: Vec<Loop>,
    /// Per node: the innermost loop that holds it, or `NONE`.
    innermost: Vec<u32>,
    /// The nodes of all outermost loops, those of every loop contiguous.
    members: Vec<NodeId>,
}

impl Loops {
    /// The loops of `graph`, of which `dominators` are the dominators.
    pub fn of<G: Graph>(graph: &G, dominators: &Dominators) -> Self {
        Self::with_walk(graph, &DepthFirst::of(graph), dominators)
    }

    /// The same, where a depth-first walk of `graph` is at hand.
    pub fn with_walk<G: Graph>(graph: &G, walk: &DepthFirst, dominators: &Dominators) -> Self {
        let mut result = Self {
            loops: Vec::new(),
            innermost: vec![NONE; graph.node_count()],
            members: Vec::new(),
        };
        if !has_retreating_edge(graph, walk) {
            return result;
        }
        let forest = LoopForest::of(graph, walk);
        let nodes = walk.preorder();
        for (number, &node) in nodes.iter().enumerate() {
            let outer = match forest.outer[number] {
                NONE => NONE,
                header => result.innermost[nodes[header as usize].index()],
            };
            result.innermost[node.index()] = outer;
            if forest.is_header[number] {
                result.innermost[node.index()] = result.loops.len() as u32;
                result.add(graph, walk, dominators, node, outer);
            }
        }
        result.list_members(nodes);
        result
    }

    fn add<G: Graph>(
        &mut self,
        graph: &G,
        walk: &DepthFirst,
        dominators: &Dominators,
        header: NodeId,
        outer: u32,
    ) {
        let mut latches = graph
            .predecessors(header)
            .filter(|&from| walk.is_ancestor(header, from));
        let natural = latches.all(|latch| dominators.dominates(header, latch));
        let parent = (outer != NONE).then_some(LoopId(outer));
        self.loops.push(Loop {
            header,
            kind: if natural {
                LoopKind::Natural
            } else {
                LoopKind::Irreducible
            },
            parent,
            depth: parent.map_or(0, |outer| self.depth(outer)) + 1,
            first: 0,
            size: 0,
        });
    }

    /// Lays out the members so that those of a nested loop lie inside those of the outer one.
    fn list_members(&mut self, nodes: &[NodeId]) {
        for &node in nodes {
            if let Some(inner) = self.loops.get_mut(self.innermost[node.index()] as usize) {
                inner.size += 1;
            }
        }
        for id in (0..self.loops.len()).rev() {
            if let Some(outer) = self.loops[id].parent {
                self.loops[outer.0 as usize].size += self.loops[id].size;
            }
        }
        // The first position that is still free, in each loop and outside all.
        let mut free: Vec<u32> = vec![0; self.loops.len()];
        let mut end = 0;
        for id in 0..self.loops.len() {
            let cursor = self.loops[id]
                .parent
                .map_or(&mut end, |outer| &mut free[outer.0 as usize]);
            let first = *cursor;
            *cursor += self.loops[id].size;
            self.loops[id].first = first;
            free[id] = first;
        }
        self.members = vec![NodeId(0); end as usize];
        for &node in nodes {
            if let Some(cursor) = free.get_mut(self.innermost[node.index()] as usize) {
                self.members[*cursor as usize] = node;
                *cursor += 1;
            }
        }
    }

    fn get(&self, id: LoopId) -> &Loop {
        &self.loops[id.0 as usize]
    }

    /// How many loops there are.
    #[must_use]
    pub fn count(&self) -> usize {
        self.loops.len()
    }

    /// All loops, outer before inner.
    pub fn ids(&self) -> impl DoubleEndedIterator<Item = LoopId> + use<> {
        (0..self.loops.len() as u32).map(LoopId)
    }

    /// The node at which a loop is entered; of an irreducible one, the entry that was met first.
    #[must_use]
    pub fn header(&self, id: LoopId) -> NodeId {
        self.get(id).header
    }

    /// Whether a loop has one way in.
    #[must_use]
    pub fn kind(&self, id: LoopId) -> LoopKind {
        self.get(id).kind
    }

    /// The loop around a loop.
    #[must_use]
    pub fn parent(&self, id: LoopId) -> Option<LoopId> {
        self.get(id).parent
    }

    /// How many loops a loop is in, itself included.
    #[must_use]
    pub fn depth(&self, id: LoopId) -> u32 {
        self.get(id).depth
    }

    /// The nodes of a loop, those of nested loops included.
    #[must_use]
    pub fn members(&self, id: LoopId) -> &[NodeId] {
        let Loop { first, size, .. } = *self.get(id);
        &self.members[first as usize..][..size as usize]
    }

    /// The innermost loop that holds `node`.
    #[must_use]
    pub fn innermost(&self, node: NodeId) -> Option<LoopId> {
        let id = self.innermost[node.index()];
        (id != NONE).then_some(LoopId(id))
    }

    /// How many loops hold `node`.
    #[must_use]
    pub fn depth_of(&self, node: NodeId) -> u32 {
        self.innermost(node).map_or(0, |id| self.depth(id))
    }

    /// The loops that hold `node`, innermost first.
    pub fn around(&self, node: NodeId) -> impl Iterator<Item = LoopId> {
        std::iter::successors(self.innermost(node), |&id| self.parent(id))
    }

    /// The innermost loop that holds both nodes. Takes as many steps as loops nest around them.
    #[must_use]
    pub fn around_both(&self, one: NodeId, other: NodeId) -> Option<LoopId> {
        let (mut one, mut other) = (self.innermost(one)?, self.innermost(other)?);
        while one != other {
            match self.depth(one) >= self.depth(other) {
                true => one = self.parent(one)?,
                false => other = self.parent(other)?,
            }
        }
        Some(one)
    }

    /// Whether loop `id` holds `node`. Takes as many steps as loops nest around the node.
    #[must_use]
    pub fn contains(&self, id: LoopId, node: NodeId) -> bool {
        self.around(node).any(|other| other == id)
    }

    /// The loop that `node` heads.
    #[must_use]
    pub fn headed_by(&self, node: NodeId) -> Option<LoopId> {
        self.innermost(node).filter(|&id| self.header(id) == node)
    }

    /// Whether all loops are natural, which is what makes a flow graph reducible.
    #[must_use]
    pub fn is_reducible(&self) -> bool {
        self.loops.iter().all(|each| each.kind == LoopKind::Natural)
    }

    /// The members at which control can come into loop `id` from outside (from reachable nodes, or
    /// as the entry of the graph), in the order of [`members`](Self::members). A natural loop has
    /// one, its header.
    pub fn entries<G: Graph>(&self, graph: &G, dominators: &Dominators, id: LoopId) -> Vec<NodeId> {
        let outside = |from| dominators.is_reachable(from) && !self.contains(id, from);
        let is_entry = |node| node == graph.entry() || graph.predecessors(node).any(outside);
        self.members(id)
            .iter()
            .copied()
            .filter(|&node| is_entry(node))
            .collect()
    }
}

fn has_retreating_edge<G: Graph>(graph: &G, walk: &DepthFirst) -> bool {
    let retreats = |&node: &NodeId| graph.successors(node).any(|to| walk.is_ancestor(to, node));
    walk.preorder().iter().any(retreats)
}
