//! Graphs out of arbitrary bytes: random ones, and structured programs that are then mutated.
//!
//! The same bytes give the same graph, and shorter bytes smaller ones, so that whatever shrinks
//! bytes shrinks graphs.

use crate::{FlowGraph, NodeId};

/// A source of choices; all zero when it is used up.
#[derive(Clone, Debug)]
pub struct Entropy<'b> {
    bytes: std::slice::Iter<'b, u8>,
}

impl<'b> Entropy<'b> {
    /// Choices according to `bytes`.
    #[must_use]
    pub fn new(bytes: &'b [u8]) -> Self {
        Self {
            bytes: bytes.iter(),
        }
    }

    /// The next byte.
    pub fn byte(&mut self) -> u8 {
        self.bytes.next().copied().unwrap_or(0)
    }

    /// A number below `bound` (which is at most 256), or 0.
    pub fn below(&mut self, bound: usize) -> usize {
        usize::from(self.byte()) % bound.max(1)
    }
}

/// A graph of at most `most` nodes: random, structured, or structured and then damaged.
///
/// # Panics
///
/// Never: all nodes are made before they are used.
pub fn generate(entropy: &mut Entropy<'_>, most: usize) -> FlowGraph {
    let mut sketch = Sketch {
        nodes: 1,
        most,
        edges: Vec::new(),
        exits: Vec::new(),
    };
    match entropy.below(3) {
        0 => sketch.random(entropy),
        1 => sketch.structured(entropy),
        _ => {
            sketch.structured(entropy);
            for _ in 0..entropy.below(6) {
                sketch.mutate(entropy);
            }
        }
    }
    let id = |node: usize| NodeId(node as u32);
    let edges = sketch.edges.iter().map(|&(from, to)| (id(from), id(to)));
    FlowGraph::new(sketch.nodes, NodeId(0), edges)
        .and_then(|graph| graph.with_exits(sketch.exits.into_iter().map(id)))
        .expect("sketches use nodes that they made")
}

struct Sketch {
    nodes: usize,
    most: usize,
    edges: Vec<(usize, usize)>,
    exits: Vec<usize>,
}

impl Sketch {
    fn random(&mut self, entropy: &mut Entropy<'_>) {
        self.nodes = 1 + entropy.below(self.most);
        for _ in 0..entropy.below(2 * self.nodes + 2) {
            self.edges
                .push((entropy.below(self.nodes), entropy.below(self.nodes)));
        }
        if entropy.below(4) == 1 {
            self.exits.push(entropy.below(self.nodes));
        }
    }

    /// Refines one edge again and again, as a grammar of statements would.
    fn structured(&mut self, entropy: &mut Entropy<'_>) {
        self.nodes = 2.min(self.most);
        self.edges.push((0, self.nodes - 1));
        for _ in 0..entropy.below(self.most) {
            let room = self.most - self.nodes;
            let at = entropy.below(self.edges.len());
            let (from, to) = self.edges[at];
            let (a, b) = (self.nodes, self.nodes + 1);
            let (added, replacement, others): (usize, _, &[_]) = match entropy.below(9) {
                0 if room >= 1 => (1, (from, a), &[(a, to)]),
                1 if room >= 1 => (1, (from, a), &[(a, to), (from, to)]),
                2 if room >= 2 => (2, (from, a), &[(a, to), (from, b), (b, to)]),
                3 if room >= 2 => (2, (from, a), &[(a, b), (b, a), (b, to)]),
                4 if room >= 2 => (2, (from, a), &[(a, b), (b, a), (a, to)]),
                5 if room >= 1 => (1, (from, a), &[(a, a), (a, to)]),
                6 if room >= 1 => (1, (from, to), &[(from, a)]),
                7 if room >= 2 => (2, (from, to), &[(from, a), (a, b), (b, a)]),
                8 => (0, (from, to), &[(from, to)]),
                _ => continue,
            };
            self.nodes += added;
            self.edges[at] = replacement;
            self.edges.extend_from_slice(others);
        }
    }

    fn mutate(&mut self, entropy: &mut Entropy<'_>) {
        let (from, to) = (entropy.below(self.nodes), entropy.below(self.nodes));
        let at = entropy.below(self.edges.len());
        match entropy.below(6) {
            0 | 1 => self.edges.push((from, to)),
            2 if !self.edges.is_empty() => self.edges[at].1 = to,
            3 if !self.edges.is_empty() => self.edges[at].0 = from,
            4 if !self.edges.is_empty() => {
                self.edges.swap_remove(at);
            }
            _ => self.exits.push(from),
        }
    }
}
