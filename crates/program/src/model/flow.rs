//! A function of a model as a graph for the analyses of `tomo-graph`.

use tomo_graph::{FlowGraph, NodeId};

use super::{BlockId, FunctionView};
use crate::Resolution;

impl FunctionView<'_> {
    /// Its control-flow graph. Node `n` is its block number `n` by address (see
    /// [`Self::position_of`]); edges out of the function are no edges of the graph, but the blocks
    /// they leave are exits, as are those with unknown successors. `None` where nothing is known of
    /// its blocks.
    #[must_use]
    pub fn flow_graph(&self) -> Option<FlowGraph> {
        let entry = self.node(self.entry_block()?.id())?;
        let inside = |block: Option<BlockId>| self.node(block?);
        let edges = self
            .edges()
            .filter_map(|edge| Some((self.node(edge.from)?, inside(edge.block())?)));
        let graph = FlowGraph::new(self.block_count(), entry, edges).ok()?;
        let outward = self
            .edges()
            .filter(|edge| edge.block().is_none())
            .map(|edge| edge.from);
        let unknown = self
            .indirect_jumps()
            .filter(|jump| jump.resolution() == Resolution::Unresolved);
        let exits = outward.chain(unknown.map(|jump| jump.block()));
        graph
            .with_exits(exits.filter_map(|block| self.node(block)))
            .ok()
    }

    /// Its graph for counting: that of [`Self::flow_graph`], in which every block that ends in a call is an
    /// exit too, since what it calls may not come back. `None` as there.
    #[must_use]
    pub fn counting_graph(&self) -> Option<FlowGraph> {
        let calls = self.calls().filter_map(|call| self.node(call.block()));
        self.flow_graph()?.with_exits(calls).ok()
    }

    /// The node of the graph that stands for `block`.
    #[must_use]
    pub fn node(&self, block: BlockId) -> Option<NodeId> {
        Some(NodeId(u32::try_from(self.position_of(block)?).ok()?))
    }
}
