//! Diamonds: two ways from a fork to a join.
//!
//! Source: DPT §3.1, after BL94: an undirected cycle with exactly one fork (u←v→w) and exactly one
//! join (u→v←w), that contains a pipe, that is, more than two distinct edges. Figure 4 of DPT is a
//! unit test.
//!
//! What the print leaves open, and how we read it:
//! - By the letter, the path a→b→c→d walked there and back is a diamond (one fork at a, one join at
//!   d, three edges). It must not be: nothing about it is ambiguous. The two edges at the fork must
//!   differ, and so must those at the join.
//! - "Not necessarily simple": the two ways may meet in between, or pass the fork or the join
//!   again. Such diamonds are no news: if the ways meet, the part up to the first meeting is a
//!   diamond by itself; if one passes a node twice it holds a directed cycle. We list the *simple*
//!   ones, whose ways share nothing but their ends. Figure 4 confirms it: it counts 4, while
//!   ⟨b2,b3,b5,b6,b11,b10,b8,b7,b5,b4,b2⟩ would be a fifth.
//! - DPT allows one edge between two nodes. We allow parallel edges, and two of them are a diamond
//!   (without a pipe): which one was taken is as ambiguous as with blocks on them.
//!
//! **Unreachable nodes**: diamonds among them are not listed, they never run.

use crate::simple_paths::{Budget, Enumeration, Next, simple_paths};
use crate::{DepthFirst, EdgeId, Graph, Hop, NodeId};

/// Two paths from one node to another that share nothing else.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Diamond {
    /// Where they part.
    pub fork: NodeId,
    /// Where they meet.
    pub join: NodeId,
    /// The path whose first edge the graph lists first.
    pub left: Vec<EdgeId>,
    /// The other path.
    pub right: Vec<EdgeId>,
}

/// All simple diamonds of the reachable part of `graph`.
pub fn diamonds<G: Graph>(graph: &G, mut budget: Budget) -> Enumeration<Diamond> {
    let walk = DepthFirst::of(graph);
    let mut result = Enumeration::new();
    let mut marks = vec![false; graph.node_count()];
    for &fork in walk.preorder() {
        marks[fork.index()] = true;
        let firsts: Vec<Hop> = graph.out_edges(fork).collect();
        for (position, &left) in firsts.iter().enumerate() {
            for &right in &firsts[position + 1..] {
                let mut search = Search {
                    graph,
                    fork,
                    right,
                    result: &mut result,
                };
                if search.left_paths(left, &mut marks, &mut budget) == Next::Stop {
                    result.complete = false;
                    return result;
                }
            }
        }
        marks[fork.index()] = false;
    }
    result
}

/// The search for diamonds with a given fork and given first edges.
struct Search<'s, G> {
    graph: &'s G,
    fork: NodeId,
    right: Hop,
    result: &'s mut Enumeration<Diamond>,
}

impl<G: Graph> Search<'_, G> {
    /// Takes the end of every path that begins with `first` for a join.
    fn left_paths(&mut self, first: Hop, marks: &mut [bool], budget: &mut Budget) -> Next {
        let graph = self.graph;
        simple_paths(graph, first, marks, budget, &mut |left, marks, budget| {
            let Some(&Hop { node: join, .. }) = left.last() else {
                return Next::Back;
            };
            // The other path may end here, of all nodes on this one.
            marks[join.index()] = false;
            let next = self.right_paths(left, join, marks, budget);
            marks[join.index()] = true;
            if next == Next::Stop {
                Next::Stop
            } else {
                Next::Deeper
            }
        })
    }

    fn right_paths(
        &mut self,
        left: &[Hop],
        join: NodeId,
        marks: &mut [bool],
        budget: &mut Budget,
    ) -> Next {
        simple_paths(
            self.graph,
            self.right,
            marks,
            budget,
            &mut |right, _, budget| {
                if right.last().is_none_or(|hop| hop.node != join) {
                    return Next::Deeper;
                }
                let edges = |path: &[Hop]| path.iter().map(|hop| hop.edge).collect();
                let diamond = Diamond {
                    fork: self.fork,
                    join,
                    left: edges(left),
                    right: edges(right),
                };
                self.result.add(diamond, budget)
            },
        )
    }
}
