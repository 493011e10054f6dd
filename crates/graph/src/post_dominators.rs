//! Post-dominators: `a` post-dominates `b` if every path from `b` to the virtual exit passes `a`.
//!
//! Source: Ferrante, Ottenstein, Warren, *The Program Dependence Graph and Its Use in
//! Optimization*, TOPLAS 9(3), 1987, §3.1. They are the dominators of the reversed graph, entered
//! at its virtual exit: same engine, another view, same complexity.
//!
//! Deviation: the source has `a` never post-dominate itself; ours does, as dominators do (ask
//! [`strictly_post_dominates`](PostDominators::strictly_post_dominates) for theirs).
//!
//! **What never exits** has a defined answer: see [`WithExit`]. The virtual exit post-dominates
//! everything and is not shown: a node whose immediate post-dominator it is has `None`.
//!
//! **Unreachable nodes** are treated like all others: post-dominance asks for ways out, not for
//! ways in, and they change no answer about nodes that the entry reaches.

use crate::{Dominators, Graph, NodeId, Reversed, WithExit};

/// The post-dominator tree of a graph.
#[derive(Clone, Debug)]
pub struct PostDominators {
    tree: Dominators,
    endless: Vec<NodeId>,
}

impl PostDominators {
    /// The post-dominators of `graph`.
    pub fn of<G: Graph>(graph: &G) -> Self {
        Self::with_exit(&WithExit::of(graph))
    }

    /// The same, where the view with a virtual exit is at hand.
    pub fn with_exit<G: Graph>(view: &WithExit<'_, G>) -> Self {
        let tree = Dominators::of(&Reversed::from(view, view.exit()));
        Self {
            tree,
            endless: view.endless().to_vec(),
        }
    }

    /// The nodes taken to lead to the virtual exit although no exit can be reached from them: one
    /// per endless region. Empty if every node can exit.
    #[must_use]
    pub fn endless(&self) -> &[NodeId] {
        &self.endless
    }

    /// The virtual exit, root of [`tree`](Self::tree); a node of no graph but that view.
    #[must_use]
    pub fn virtual_exit(&self) -> NodeId {
        self.tree.root()
    }

    /// The dominator tree of the reversed graph, virtual exit included.
    #[must_use]
    pub fn tree(&self) -> &Dominators {
        &self.tree
    }

    /// The closest strict post-dominator of `node`; `None` if that is the virtual exit.
    #[must_use]
    pub fn immediate(&self, node: NodeId) -> Option<NodeId> {
        self.tree
            .immediate(node)
            .filter(|&above| above != self.virtual_exit())
    }

    /// Whether every path from `b` to the virtual exit passes `a`; true of a node and itself. O(1).
    #[must_use]
    pub fn post_dominates(&self, a: NodeId, b: NodeId) -> bool {
        self.tree.dominates(a, b)
    }

    /// Whether `a` post-dominates `b` and is another node. O(1).
    #[must_use]
    pub fn strictly_post_dominates(&self, a: NodeId, b: NodeId) -> bool {
        self.tree.strictly_dominates(a, b)
    }
}
