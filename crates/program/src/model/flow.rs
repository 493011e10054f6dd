//! A function of a model as a graph for the analyses of `tomo-graph`.

use tomo_graph::{FlowGraph, Graph as _, NodeId};

use super::{BlockId, FunctionView};

impl<'g> FunctionView<'g> {
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
            .filter(|jump| jump.resolution().is_open());
        let exits = outward.chain(unknown.map(|jump| jump.block()));
        graph
            .with_exits(exits.filter_map(|block| self.node(block)))
            .ok()
    }

    /// Its graph for counting, in which a block is two nodes with an edge between them, so that it can be counted
    /// by itself: block `n` is entered by node `2n`, left by node `2n + 1`, and edge `n` leads from one to the
    /// other; the function's own edges follow. Every block [behind which control may not come
    /// on](Self::may_stop_behind) is an exit too. `None` as for [`Self::flow_graph`].
    #[must_use]
    pub fn counting_graph(&self) -> Option<FlowGraph> {
        let graph = self.flow_graph()?;
        let (enters, leaves) = (|n: NodeId| NodeId(2 * n.0), |n: NodeId| NodeId(2 * n.0 + 1));
        let blocks = graph.nodes().map(|node| (enters(node), leaves(node)));
        let edges = graph.edges().iter();
        let edges = edges.map(|&(from, to)| (leaves(from), enters(to)));
        let doubled = FlowGraph::new(
            2 * graph.node_count(),
            enters(graph.entry()),
            blocks.chain(edges),
        );
        let exits = graph.nodes().filter(|&node| graph.is_exit(node));
        let stops = self.may_stop_behind().filter_map(|block| self.node(block));
        doubled
            .ok()?
            .with_exits(exits.chain(stops).map(leaves))
            .ok()
    }

    /// Blocks whose last instruction may not come back: calls, and system calls that may end the process.
    pub fn may_stop_behind(&self) -> impl Iterator<Item = BlockId> + use<'g> {
        let calls = self.calls().map(|call| call.block());
        calls.chain(self.unsure_system_calls())
    }

    /// Blocks that end in a system call which may come back in two processes, or never.
    pub fn unsure_system_calls(&self) -> impl Iterator<Item = BlockId> + use<'g> {
        let blocks = self.blocks().filter(|block| block.forks_or_ends());
        blocks.map(|block| block.id())
    }

    /// The node of the graph that stands for `block`.
    #[must_use]
    pub fn node(&self, block: BlockId) -> Option<NodeId> {
        Some(NodeId(u32::try_from(self.position_of(block)?).ok()?))
    }
}
