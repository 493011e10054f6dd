//! The acyclic graph whose paths from source to sink are the acyclic paths of a function.
//!
//! Source: BL96, §3 and §3.3 (a retreating edge becomes an edge from the entry to its target and one
//! from its source to the exit); SPP §2, Figure 1. O(nodes + edges).
//!
//! Deviations:
//! - Source and sink are nodes of their own, so that the entry may be come back to, and several
//!   nodes may leave. One way starts per target of broken edges; ends are kept per edge.
//! - Further edges may be broken beside the retreating ones, to have fewer and shorter paths.
//!
//! Without further breaks the paths and the order of ways are those of
//! [`AcyclicPaths`](tomo_graph::AcyclicPaths), which answers without building a graph.
//!
//! **Unreachable nodes** are left out. **What never exits** needs no help: its paths end at broken
//! edges.

use std::ops::Range;

use tomo_graph::{AcyclicPath, DepthFirst, EdgeId, Graph, NodeId, PathEnd};

/// A node of the path graph: the source is 0, the sink the last, and all arcs lead upwards.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DagNode(pub u32);

/// An arc of the path graph, counted from zero, by the node it leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ArcId(pub u32);

impl DagNode {
    /// Before any path starts.
    pub const SOURCE: Self = Self(0);

    /// The position in a table with one row per node.
    #[must_use]
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

impl ArcId {
    /// The position in a table with one row per arc.
    #[must_use]
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// What an arc of the path graph stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Way {
    /// A path starts at this node.
    Start(NodeId),
    /// It takes this edge.
    Edge(EdgeId),
    /// It ends by leaving the function at this node.
    Exit(NodeId),
    /// It ends with this edge, a retreating or broken one; the next starts at this node.
    Break(EdgeId, NodeId),
}

/// An arc of the path graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DagArc {
    /// The node it leaves.
    pub from: DagNode,
    /// The node it enters.
    pub to: DagNode,
    /// What it stands for.
    pub way: Way,
}

/// The path graph of a function.
#[derive(Clone, Debug)]
pub struct PathDag {
    entry: NodeId,
    /// The nodes of the function in topological order: node `k` here is `DagNode(k + 1)`.
    nodes: Vec<NodeId>,
    /// Per node of the function: its number here, or 0.
    position: Vec<u32>,
    arcs: Vec<DagArc>,
    /// Per node here: its first arc; one more at the end.
    first: Vec<u32>,
    /// The arcs by the node they enter, and per node the first of them.
    into: Vec<ArcId>,
    first_into: Vec<u32>,
}

impl PathDag {
    /// The path graph of `graph`.
    pub fn of<G: Graph>(graph: &G) -> Self {
        Self::broken(graph, |_| false)
    }

    /// The path graph of `graph` in which paths also end at the edges of which `broken` is true.
    pub fn broken<G: Graph>(graph: &G, broken: impl Fn(EdgeId) -> bool) -> Self {
        let walk = DepthFirst::of(graph);
        let nodes: Vec<NodeId> = walk.reverse_postorder().collect();
        let mut position = vec![0; graph.node_count()];
        for (number, node) in (1..).zip(&nodes) {
            position[node.index()] = number;
        }
        let mut dag = Self {
            entry: graph.entry(),
            nodes,
            position,
            arcs: Vec::new(),
            first: vec![0],
            into: Vec::new(),
            first_into: Vec::new(),
        };
        let breaks = |from, hop: tomo_graph::Hop| walk.is_retreating(from, hop) || broken(hop.edge);
        let mut restarts = vec![false; graph.node_count()];
        restarts[graph.entry().index()] = true;
        for &from in &dag.nodes {
            for hop in graph.out_edges(from).filter(|&hop| breaks(from, hop)) {
                restarts[hop.node.index()] = true;
            }
        }
        dag.add_starts(&walk, &restarts);
        for number in 0..dag.nodes.len() {
            let from = dag.nodes[number];
            for hop in graph.out_edges(from) {
                let (to, way) = if breaks(from, hop) {
                    (dag.sink(), Way::Break(hop.edge, hop.node))
                } else {
                    (dag.at(hop.node), Way::Edge(hop.edge))
                };
                dag.add(to, way);
            }
            if graph.is_exit(from) {
                dag.add(dag.sink(), Way::Exit(from));
            }
            dag.first.push(dag.arcs.len() as u32);
        }
        dag.first.push(dag.arcs.len() as u32);
        dag.index_by_target();
        dag
    }

    fn add_starts(&mut self, walk: &DepthFirst, restarts: &[bool]) {
        for &node in walk.preorder() {
            if restarts[node.index()] {
                self.add(self.at(node), Way::Start(node));
            }
        }
        self.first.push(self.arcs.len() as u32);
    }

    /// Adds an arc out of the node whose arcs are being listed.
    fn add(&mut self, to: DagNode, way: Way) {
        let from = DagNode(self.first.len() as u32 - 1);
        self.arcs.push(DagArc { from, to, way });
    }

    fn at(&self, node: NodeId) -> DagNode {
        DagNode(self.position[node.index()])
    }

    fn index_by_target(&mut self) {
        let mut starts = vec![0u32; self.node_count() + 1];
        for arc in &self.arcs {
            starts[arc.to.index() + 1] += 1;
        }
        for node in 0..self.node_count() {
            starts[node + 1] += starts[node];
        }
        self.first_into.clone_from(&starts);
        self.into = vec![ArcId(0); self.arcs.len()];
        for (id, arc) in (0..).zip(&self.arcs) {
            let cursor = &mut starts[arc.to.index()];
            self.into[*cursor as usize] = ArcId(id);
            *cursor += 1;
        }
    }

    /// Where all paths have ended.
    #[must_use]
    pub fn sink(&self) -> DagNode {
        DagNode(self.nodes.len() as u32 + 1)
    }

    /// How many nodes there are, source and sink among them.
    #[must_use]
    pub fn node_count(&self) -> usize {
        self.nodes.len() + 2
    }

    /// All arcs, by the node they leave; of one node in the order of its edges, leaving last.
    #[must_use]
    pub fn arcs(&self) -> &[DagArc] {
        &self.arcs
    }

    /// The nodes but for the sink, in topological order.
    pub fn nodes(&self) -> impl DoubleEndedIterator<Item = DagNode> + use<> {
        (0..=self.nodes.len() as u32).map(DagNode)
    }

    /// The block that a node stands for; `None` for source and sink.
    #[must_use]
    pub fn block(&self, node: DagNode) -> Option<NodeId> {
        self.nodes.get(node.index().checked_sub(1)?).copied()
    }

    /// The node that stands for a block; `None` if it is unreachable.
    #[must_use]
    pub fn node_of(&self, block: NodeId) -> Option<DagNode> {
        let number = *self.position.get(block.index())?;
        (number > 0).then_some(DagNode(number))
    }

    /// The arcs out of `node`; the sink has none.
    pub fn out(&self, node: DagNode) -> impl ExactSizeIterator<Item = ArcId> + use<> {
        (self.first[node.index()]..self.first[node.index() + 1]).map(ArcId)
    }

    /// Where the arcs out of `node` stand in [`arcs`](Self::arcs).
    #[must_use]
    pub fn out_range(&self, node: DagNode) -> Range<usize> {
        self.first[node.index()] as usize..self.first[node.index() + 1] as usize
    }

    /// The arcs into `node`.
    #[must_use]
    pub fn into(&self, node: DagNode) -> &[ArcId] {
        let (start, end) = (
            self.first_into[node.index()],
            self.first_into[node.index() + 1],
        );
        &self.into[start as usize..end as usize]
    }

    /// An arc.
    #[must_use]
    pub fn arc(&self, id: ArcId) -> DagArc {
        self.arcs[id.index()]
    }

    /// The ids of all arcs.
    pub fn ids(&self) -> impl Iterator<Item = ArcId> + use<> {
        (0..self.arcs.len() as u32).map(ArcId)
    }

    /// The arc that starts paths at `block`, if any do.
    #[must_use]
    pub fn start_at(&self, block: NodeId) -> Option<ArcId> {
        let into = self.into(self.node_of(block)?).iter().copied();
        into.into_iter()
            .find(|&id| self.arc(id).from == DagNode::SOURCE)
    }

    /// Where the function is entered.
    #[must_use]
    pub fn entry(&self) -> NodeId {
        self.entry
    }

    /// The ways of a path, in their order. `None` if it is no path of this graph.
    #[must_use]
    pub fn arcs_of(&self, path: &AcyclicPath) -> Option<Vec<ArcId>> {
        let mut arcs = vec![self.start_at(path.start)?];
        let mut node = self.node_of(path.start)?;
        let mut go = |matches: &dyn Fn(Way) -> bool| {
            let id = self.out(node).find(|&id| matches(self.arc(id).way))?;
            node = self.arc(id).to;
            arcs.push(id);
            Some(())
        };
        for &edge in &path.edges {
            go(&|way| way == Way::Edge(edge))?;
        }
        go(&|way| match way {
            Way::Exit(node) => path.end == PathEnd::Exit(node),
            Way::Break(edge, _) => path.end == PathEnd::Retreat(edge),
            _ => false,
        })?;
        Some(arcs)
    }

    /// The path along `arcs`; one that ends at a broken edge is said to end with
    /// [`PathEnd::Retreat`]. `None` if they are no path from source to sink.
    #[must_use]
    pub fn path_along(&self, arcs: &[ArcId]) -> Option<AcyclicPath> {
        let (&first, rest) = arcs.split_first()?;
        let (&last, middle) = rest.split_last()?;
        let joined = arcs.iter().all(|id| id.index() < self.arcs.len())
            && arcs
                .windows(2)
                .all(|two| self.arc(two[0]).to == self.arc(two[1]).from);
        let Way::Start(start) = self.arcs.get(first.index())?.way else {
            return None;
        };
        let end = match self.arcs.get(last.index())?.way {
            Way::Exit(node) => PathEnd::Exit(node),
            Way::Break(edge, _) => PathEnd::Retreat(edge),
            _ => return None,
        };
        let edges = middle
            .iter()
            .map(|&id| match self.arcs.get(id.index())?.way {
                Way::Edge(edge) => Some(edge),
                _ => None,
            });
        let edges = edges.collect::<Option<_>>()?;
        joined.then_some(AcyclicPath { start, edges, end })
    }
}
