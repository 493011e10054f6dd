//! The acyclic paths of a flow graph: how many there are, and a number for each.
//!
//! Source: Ball, Larus, *Efficient Path Profiling*, MICRO 1996 (BL96): the numbering (Figure 5),
//! the path of a number, and arbitrary control flow (each retreating edge is replaced by an edge
//! from the entry to its target and one from its source to the exit). O(nodes + edges).
//!
//! An acyclic path is: a *start* (the entry, or the target of a retreating edge), then
//! non-retreating edges, then an *end* (leaving at an exit, or one retreating edge). Every
//! execution is a sequence of such paths, each edge of it in just one of them.
//!
//! Deviations:
//! - BL96 puts in a pair of dummy edges per retreating edge. If two of these share a target the
//!   same path would start twice and count twice; we have one start per distinct target, and none
//!   besides the entry's own if the entry is a target. Ends are kept per edge, so a path tells
//!   which retreating edge it took.
//! - The exit is virtual and several nodes may leave, with or without successors. What never exits
//!   needs no help: its paths end in retreating edges.
//! - A graph may have more acyclic paths than a machine word counts: see [`PathCount`].
//!
//! **Unreachable nodes** are on no path.

use std::fmt;

use crate::{DepthFirst, EdgeId, Graph, Hop, NodeId};

/// How many paths there are. A path sum is kept in one machine word, so more than that is just too
/// many, whatever the number, and never wraps to something that looks small.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum PathCount {
    /// This many.
    Exact(u64),
    /// More than `u64::MAX`.
    TooMany,
}

impl PathCount {
    /// The number, if it is known.
    #[must_use]
    pub fn exact(self) -> Option<u64> {
        match self {
            Self::Exact(count) => Some(count),
            Self::TooMany => None,
        }
    }

    /// Both together.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        match (self, other) {
            (Self::Exact(a), Self::Exact(b)) => a.checked_add(b).map_or(Self::TooMany, Self::Exact),
            _ => Self::TooMany,
        }
    }
}

impl fmt::Display for PathCount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exact(count) => count.fmt(f),
            Self::TooMany => write!(f, "more than {}", u64::MAX),
        }
    }
}

/// How an acyclic path ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum PathEnd {
    /// Control leaves the graph at this node.
    Exit(NodeId),
    /// This retreating edge is taken; the next path starts at its target.
    Retreat(EdgeId),
}

/// One acyclic path.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct AcyclicPath {
    /// Where it starts.
    pub start: NodeId,
    /// The edges it takes, without a retreating one.
    pub edges: Vec<EdgeId>,
    /// How it ends.
    pub end: PathEnd,
}

/// The acyclic paths of a graph, counted and numbered.
#[derive(Clone, Debug)]
pub struct AcyclicPaths<'g, G> {
    graph: &'g G,
    walk: DepthFirst,
    /// The entry, then the other targets of retreating edges in preorder, each with the number of
    /// its first path.
    starts: Vec<(NodeId, PathCount)>,
    total: PathCount,
    /// Per node: paths from it to any end.
    from: Vec<PathCount>,
}

/// One way to go on from a node.
#[derive(Clone, Copy, Debug)]
enum Way {
    Forward(Hop),
    End(PathEnd),
}

impl<'g, G: Graph> AcyclicPaths<'g, G> {
    /// Counts the acyclic paths of `graph`.
    pub fn of(graph: &'g G) -> Self {
        let mut paths = Self {
            graph,
            walk: DepthFirst::of(graph),
            starts: Vec::new(),
            total: PathCount::Exact(0),
            from: vec![PathCount::Exact(0); graph.node_count()],
        };
        for number in 0..paths.walk.postorder().len() {
            let node = paths.walk.postorder()[number];
            let zero = PathCount::Exact(0);
            let count = paths
                .ways(node)
                .fold(zero, |sum, way| sum.plus(paths.weight(way)));
            paths.from[node.index()] = count;
        }
        paths.find_starts();
        paths
    }

    fn find_starts(&mut self) {
        let entry = self.graph.entry();
        for &node in self.walk.preorder() {
            let mut into = self.graph.predecessors(node);
            if node == entry || into.any(|from| self.walk.is_ancestor(node, from)) {
                self.starts.push((node, self.total));
                self.total = self.total.plus(self.from[node.index()]);
            }
        }
    }

    /// The ways on from a node, in the order of its edges, leaving last.
    fn ways(&self, node: NodeId) -> impl Iterator<Item = Way> {
        let edges = self.graph.out_edges(node).map(move |hop| {
            if self.walk.is_retreating(node, hop) {
                Way::End(PathEnd::Retreat(hop.edge))
            } else {
                Way::Forward(hop)
            }
        });
        edges.chain(
            self.graph
                .is_exit(node)
                .then_some(Way::End(PathEnd::Exit(node))),
        )
    }

    fn weight(&self, way: Way) -> PathCount {
        match way {
            Way::Forward(hop) => self.from[hop.node.index()],
            Way::End(_) => PathCount::Exact(1),
        }
    }

    /// How many acyclic paths there are (the paper's NumPaths(ENTRY)).
    #[must_use]
    pub fn count(&self) -> PathCount {
        self.total
    }

    /// How many ways there are to end a path that is at `node` (NumPaths(v)); none if it is
    /// unreachable.
    #[must_use]
    pub fn count_from(&self, node: NodeId) -> PathCount {
        self.from[node.index()]
    }

    /// The nodes at which paths start: the entry first.
    pub fn starts(&self) -> impl Iterator<Item = NodeId> {
        self.starts.iter().map(|&(node, _)| node)
    }

    /// The number of the first path that starts at `node`: what a path sum is set to there. `None`
    /// if no path does, or if there are too many paths.
    #[must_use]
    pub fn start_value(&self, node: NodeId) -> Option<u64> {
        self.total.exact()?;
        self.starts.iter().find(|start| start.0 == node)?.1.exact()
    }

    /// The ways on from `node`, each with what it adds to the path sum (the paper's Val): edges by
    /// hop, the leaving of the graph by `None`. Empty if there are too many paths to number.
    pub fn values(&self, node: NodeId) -> impl Iterator<Item = (Option<Hop>, u64)> {
        let numbered = self.total.exact().is_some() && self.walk.is_reachable(node);
        let mut hops = self.graph.out_edges(node);
        self.ways_with_values(node)
            .filter(move |_| numbered)
            .map(move |(_, value)| (hops.next(), value))
    }

    fn ways_with_values(&self, node: NodeId) -> impl Iterator<Item = (Way, u64)> {
        let mut sum = PathCount::Exact(0);
        self.ways(node).map_while(move |way| {
            let value = sum.exact()?;
            sum = sum.plus(self.weight(way));
            Some((way, value))
        })
    }

    /// The path of a number below [`count`](Self::count) (BL96 calls it regenerating the path).
    /// `None` for other numbers, and if there are too many paths.
    #[must_use]
    pub fn path(&self, number: u64) -> Option<AcyclicPath> {
        if number >= self.total.exact()? {
            return None;
        }
        // Starts ascend by value, so the last one that is not above the number is meant.
        let after = self
            .starts
            .partition_point(|start| start.1 <= PathCount::Exact(number));
        let (start, first) = *self.starts.get(after.checked_sub(1)?)?;
        let mut rest = number - first.exact()?;
        let (mut node, mut edges) = (start, Vec::new());
        loop {
            let below = self
                .ways_with_values(node)
                .take_while(|&(_, value)| value <= rest);
            let (way, value) = below.last()?;
            rest -= value;
            match way {
                Way::End(end) => return Some(AcyclicPath { start, edges, end }),
                Way::Forward(hop) => {
                    edges.push(hop.edge);
                    node = hop.node;
                }
            }
        }
    }

    /// The number of a path: the sum of the values along it. `None` if it is no acyclic path of
    /// this graph, and if there are too many.
    #[must_use]
    pub fn number(&self, path: &AcyclicPath) -> Option<u64> {
        let mut sum = self.start_value(path.start)?;
        let mut node = path.start;
        for &edge in &path.edges {
            let taken = |way: &Way| matches!(way, Way::Forward(hop) if hop.edge == edge);
            let (way, value) = self.ways_with_values(node).find(|(way, _)| taken(way))?;
            sum = sum.checked_add(value)?;
            if let Way::Forward(hop) = way {
                node = hop.node;
            }
        }
        let ends = |way: &Way| matches!(way, Way::End(end) if *end == path.end);
        let (_, value) = self.ways_with_values(node).find(|(way, _)| ends(way))?;
        sum.checked_add(value)
    }

    /// Whether `edge`, out of `from`, is one of those that end a path.
    #[must_use]
    pub fn is_retreating(&self, from: NodeId, edge: EdgeId) -> bool {
        let mut hops = self.graph.out_edges(from);
        hops.any(|hop| hop.edge == edge && self.walk.is_retreating(from, hop))
    }
}
