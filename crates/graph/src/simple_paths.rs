//! All simple paths from a node, one step at a time: the engine of the enumerations.
//!
//! Source: Tiernan, *An Efficient Search Algorithm to Find the Elementary Circuits of a Graph*,
//! Comm. ACM 13(12), 1970: plain backtracking. There can be exponentially many paths, and long dead
//! ends between two that count (Johnson, *Finding All the Elementary Circuits of a Directed Graph*,
//! SIAM J. Computing 4(1), 1975, avoids these for circuits, though not for diamonds). The
//! enumerations are for small graphs and for explaining, so we stay plain and bound the steps; what
//! must scale is decided without enumerating, in [`realizability`](crate::realizability).

use crate::{Graph, Hop};

/// How much an enumeration may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    /// At most so many results.
    pub items: usize,
    /// At most so many edges looked at.
    pub steps: u64,
}

/// What an enumeration found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Enumeration<T> {
    /// The results, without duplicates.
    pub found: Vec<T>,
    /// Whether these are all; if not, the budget was used up.
    pub complete: bool,
}

impl<T> Enumeration<T> {
    pub(crate) fn new() -> Self {
        Self {
            found: Vec::new(),
            complete: true,
        }
    }

    /// Keeps one more result if the budget has room for it.
    pub(crate) fn add(&mut self, item: T, budget: &Budget) -> Next {
        if self.found.len() >= budget.items {
            self.complete = false;
            return Next::Stop;
        }
        self.found.push(item);
        Next::Back
    }
}

/// What to do after a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// Go on from the node that was reached.
    Deeper,
    /// Leave that node again.
    Back,
    /// End the whole search.
    Stop,
}

/// Is shown a path, the marks, and the budget, and says how to go on.
pub(crate) type Visit<'v> = dyn FnMut(&[Hop], &mut [bool], &mut Budget) -> Next + 'v;

/// Walks every simple path that begins with `first` and meets no marked node, and calls `visit` on
/// each, prefixes included. Nodes of the path are marked while they are on it. Returns
/// [`Next::Stop`] if `visit` did, or if `budget` has no steps left.
pub(crate) fn simple_paths<G: Graph>(
    graph: &G,
    first: Hop,
    marks: &mut [bool],
    budget: &mut Budget,
    visit: &mut Visit<'_>,
) -> Next {
    let mut path: Vec<Hop> = Vec::new();
    let mut stack = Vec::new();
    let mut ahead = Some(first);
    loop {
        if let Some(hop) = ahead.filter(|hop| !marks[hop.node.index()]) {
            path.push(hop);
            marks[hop.node.index()] = true;
            match visit(&path, marks, budget) {
                Next::Deeper => stack.push(graph.out_edges(hop.node)),
                next => {
                    retreat(&mut path, marks);
                    if next == Next::Stop {
                        unmark(&path, marks);
                        return Next::Stop;
                    }
                }
            }
        }
        let Some(hops) = stack.last_mut() else {
            return Next::Back;
        };
        if budget.steps == 0 {
            unmark(&path, marks);
            return Next::Stop;
        }
        budget.steps -= 1;
        ahead = hops.next();
        if ahead.is_none() {
            stack.pop();
            retreat(&mut path, marks);
        }
    }
}

fn retreat(path: &mut Vec<Hop>, marks: &mut [bool]) {
    unmark(path.pop().as_slice(), marks);
}

fn unmark(path: &[Hop], marks: &mut [bool]) {
    for hop in path {
        marks[hop.node.index()] = false;
    }
}
