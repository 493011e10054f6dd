//! The engine behind [`Loops`](crate::Loops): which node heads the innermost loop around each node.
//!
//! Source: Havlak, *Nesting of Reducible and Irreducible Loops*, TOPLAS 19(4), 1997, with the
//! correction of Ramalingam, *Identifying Loops in Almost Linear Time*, TOPLAS 21(2), 1999:
//! Havlak re-attaches an edge that enters an irreducible loop once per enclosing loop, quadratic at
//! worst; attaching each cross edge just once, at the lowest common ancestor of its ends in the
//! depth-first tree, makes it O((n + m) log n) with our union-find. The ancestors are found
//! off-line (Aho, Hopcroft, Ullman, *On Finding Lowest Common Ancestors in Trees*, SIAM J.
//! Computing 5(1), 1976; Tarjan 1979).
//!
//! What is computed, without reference to the algorithm: the outermost loops are the cyclic
//! strongly connected components; the header of each is the member that the depth-first walk
//! reached first; the loops inside are those of the component without its header. For reducible
//! loops this does not depend on the walk.
//!
//! Deviation: forward edges are ignored, because the tree path beside them adds all they could.

use crate::id::NONE;
use crate::union_find::UnionFind;
use crate::{DepthFirst, EdgeClass, Graph};

/// Innermost headers, everything by depth-first number.
pub(crate) struct LoopForest {
    /// Per node: the header of the innermost loop that holds it and that it does not head itself.
    pub(crate) outer: Vec<u32>,
    /// Per node: whether it heads a loop.
    pub(crate) is_header: Vec<bool>,
}

impl LoopForest {
    pub(crate) fn of<G: Graph>(graph: &G, walk: &DepthFirst) -> Self {
        let edges = Edges::of(graph, walk);
        let mut builder = Builder::new(walk);
        // Deepest headers first, so that inner loops have collapsed when outer ones are built.
        for header in (0..walk.preorder().len() as u32).rev() {
            builder.attach(&edges.cross, header);
            builder.collapse(edges.retreating.of(header), header);
        }
        builder.forest
    }
}

/// The edges that matter besides the tree.
struct Edges {
    /// Per common ancestor: cross edges as (source, target).
    cross: Lists<(u32, u32)>,
    /// Per target: sources of retreating edges.
    retreating: Lists<u32>,
}

impl Edges {
    fn of<G: Graph>(graph: &G, walk: &DepthFirst) -> Self {
        let nodes = walk.preorder();
        let mut edges = Self {
            cross: Lists::new(nodes.len()),
            retreating: Lists::new(nodes.len()),
        };
        let mut finished = UnionFind::new(nodes.len());
        let mut unfinished = walk.postorder().iter().peekable();
        for (from, &node) in (0..).zip(nodes) {
            // Whatever the walk finished before it reached `node` goes to its parent. Ancestors of
            // `node` stay, since `node` comes before them among what is unfinished.
            while let Some(&&done) = unfinished.peek()
                && walk.pre_number(done) < Some(from)
            {
                finished.absorb(tree_parent(walk, done), number(walk, done));
                unfinished.next();
            }
            for hop in graph.out_edges(node) {
                let to = number(walk, hop.node);
                match walk.class(node, hop) {
                    Some(EdgeClass::Cross) => edges.cross.push(finished.find(to), (from, to)),
                    Some(EdgeClass::Retreating) => edges.retreating.push(to, from),
                    _ => {}
                }
            }
        }
        edges
    }
}

fn number(walk: &DepthFirst, node: crate::NodeId) -> u32 {
    walk.pre_number(node).unwrap_or(NONE)
}

/// The number of the tree parent; of the entry, its own.
fn tree_parent(walk: &DepthFirst, node: crate::NodeId) -> u32 {
    walk.parent(node).map_or(0, |hop| number(walk, hop.node))
}

struct Builder<'w> {
    walk: &'w DepthFirst,
    forest: LoopForest,
    /// Collapsed loops: every node is represented by the outermost header found so far.
    collapsed: UnionFind,
    /// Per representative: sources of the cross edges attached to it.
    sources: Lists<u32>,
    work: Vec<u32>,
}

impl<'w> Builder<'w> {
    fn new(walk: &'w DepthFirst) -> Self {
        let nodes = walk.preorder().len();
        Self {
            walk,
            forest: LoopForest {
                outer: vec![NONE; nodes],
                is_header: vec![false; nodes],
            },
            collapsed: UnionFind::new(nodes),
            sources: Lists::new(nodes),
            work: Vec::new(),
        }
    }

    /// Lets the loops from `ancestor` upwards see the cross edges below it.
    fn attach(&mut self, cross: &Lists<(u32, u32)>, ancestor: u32) {
        for (from, to) in cross.of(ancestor) {
            let target = self.collapsed.find(to);
            self.sources.push(target, from);
        }
    }

    /// Finds all that reaches `header` from below by way of what is below, and collapses it.
    fn collapse(&mut self, latches: impl Iterator<Item = u32>, header: u32) {
        for latch in latches {
            self.forest.is_header[header as usize] = true;
            self.take_in(latch, header);
        }
        while let Some(member) = self.work.pop() {
            let above = tree_parent(self.walk, self.walk.preorder()[member as usize]);
            self.take_in(above, header);
            let mut source = self.sources.heads[member as usize];
            while source != NONE {
                let (from, next) = self.sources.items[source as usize];
                self.take_in(from, header);
                source = next;
            }
        }
    }

    /// Adds the collapsed loop around `node` to that of `header`, once.
    fn take_in(&mut self, node: u32, header: u32) {
        let member = self.collapsed.find(node);
        if member != header {
            self.forest.outer[member as usize] = header;
            self.collapsed.absorb(header, member);
            self.work.push(member);
        }
    }
}

/// Many lists in one allocation, newest item first.
struct Lists<T> {
    heads: Vec<u32>,
    items: Vec<(T, u32)>,
}

impl<T: Copy> Lists<T> {
    fn new(count: usize) -> Self {
        Self {
            heads: vec![NONE; count],
            items: Vec::new(),
        }
    }

    fn push(&mut self, list: u32, item: T) {
        let head = &mut self.heads[list as usize];
        self.items.push((item, *head));
        *head = self.items.len() as u32 - 1;
    }

    fn of(&self, list: u32) -> impl Iterator<Item = T> {
        let mut at = self.heads[list as usize];
        std::iter::from_fn(move || {
            let &(item, next) = self.items.get(at as usize)?;
            at = next;
            Some(item)
        })
    }
}
