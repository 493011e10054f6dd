//! A function's graph for its acyclic paths: some edges are not followed, and whatever is behind them is entered from
//! outside.

use tomo_graph::{FlowGraph, Graph as _, NodeId};

use super::{BlockId, EdgeView, FunctionView};

/// How an edge is not followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Severed {
    /// A path ends in front of it.
    Ends,
    /// A path that comes along it is cut.
    Cuts,
}

/// What an edge of a path graph is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathEdge {
    /// One of the function's own.
    Own(EdgeView),
    /// From outside to the block with this number.
    Enter(usize),
}

/// The graph of a function's acyclic paths.
#[derive(Clone, Debug)]
pub struct PathGraph {
    /// Node `n` is the block with that number, but for the last, the entry: that is outside, where the function is entered
    /// and what is behind severed edges.
    pub graph: FlowGraph,
    /// What each of its edges is.
    pub edges: Vec<PathEdge>,
}

impl PathGraph {
    /// The node outside.
    #[must_use]
    pub fn outside(&self) -> NodeId {
        self.graph.entry()
    }
}

impl FunctionView<'_> {
    /// Its path graph without the edges that are `severed`, and without blocks that are not `followed`: paths end in
    /// front of these, and others start behind. `None` where nothing is known of its blocks.
    #[must_use]
    pub fn path_graph(
        &self,
        severed: impl Fn(&EdgeView) -> Option<Severed>,
        followed: impl Fn(BlockId) -> bool,
    ) -> Option<PathGraph> {
        let whole = self.flow_graph()?;
        let count = whole.node_count();
        let outside = NodeId(u32::try_from(count).ok()?);
        let mut entered = vec![false; count];
        entered[whole.entry().index()] = followed(self.entry_block()?.id());
        let position = |block: Option<BlockId>| self.position_of(block?);
        let (mut edges, mut ends, mut exits) = (Vec::new(), Vec::new(), Vec::new());
        for edge in self.edges() {
            let (Some(from), Some(to)) = (position(Some(edge.from)), position(edge.block())) else {
                continue;
            };
            let node = NodeId(from as u32);
            let ends_are_followed =
                [Some(edge.from), edge.block()].map(|one| one.is_some_and(&followed));
            match (ends_are_followed, severed(&edge)) {
                ([false, to_followed], _) => entered[to] |= to_followed,
                ([true, false], _) => exits.push(node),
                ([true, true], Some(how)) => {
                    entered[to] = true;
                    exits.extend((how == Severed::Ends).then_some(node));
                }
                ([true, true], None) => {
                    edges.push(PathEdge::Own(edge));
                    ends.push((node, NodeId(to as u32)));
                }
            }
        }
        for block in (0..count).filter(|block| entered[*block]) {
            edges.push(PathEdge::Enter(block));
            ends.push((outside, NodeId(block as u32)));
        }
        exits.extend(whole.nodes().filter(|&node| whole.is_exit(node)));
        let graph = FlowGraph::new(count + 1, outside, ends).ok()?;
        let graph = graph.with_exits(exits).ok()?;
        Some(PathGraph { graph, edges })
    }
}
