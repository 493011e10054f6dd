//! Strongly connected components and the order of their condensation.
//!
//! Source: Tarjan, *Depth-First Search and Linear Graph Algorithms*, SIAM J. Computing 1(2), 1972,
//! §4, here with an explicit stack. O(nodes + edges). Tarjan's algorithm finishes a component
//! after all that it leads to; we number them the other way round, so that edges between
//! components lead from lower to higher ids.
//!
//! **Unreachable nodes** are in components like any other: the walk starts at the entry, then at
//! every node that is left, by id.

use crate::id::NONE;
use crate::{Graph, NodeId};

/// A strongly connected component; edges between components ascend.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ComponentId(pub u32);

/// The strongly connected components of a graph.
#[derive(Clone, Debug)]
pub struct Components {
    of: Vec<u32>,
    /// Nodes by component; within one, the node that was reached first is first.
    members: Vec<NodeId>,
    starts: Vec<u32>,
    cyclic: Vec<bool>,
}

impl Components {
    /// The components of `graph`.
    pub fn of<G: Graph>(graph: &G) -> Self {
        let mut tarjan = Tarjan::new(graph.node_count());
        tarjan.walk(graph, graph.entry());
        for node in graph.nodes() {
            if tarjan.number[node.index()] == NONE {
                tarjan.walk(graph, node);
            }
        }
        tarjan.finish(graph)
    }

    /// How many there are.
    #[must_use]
    pub fn count(&self) -> usize {
        self.cyclic.len()
    }

    /// All components in topological order.
    pub fn ids(&self) -> impl DoubleEndedIterator<Item = ComponentId> + use<> {
        (0..self.count() as u32).map(ComponentId)
    }

    /// The component of `node`.
    #[must_use]
    pub fn of_node(&self, node: NodeId) -> ComponentId {
        ComponentId(self.of[node.index()])
    }

    /// The nodes of a component, first the one that the walk reached first.
    #[must_use]
    pub fn members(&self, id: ComponentId) -> &[NodeId] {
        let id = id.0 as usize;
        &self.members[self.starts[id] as usize..self.starts[id + 1] as usize]
    }

    /// The node of a component that the walk reached first.
    #[must_use]
    pub fn first(&self, id: ComponentId) -> NodeId {
        self.members[self.starts[id.0 as usize] as usize]
    }

    /// Whether a component holds a directed cycle (several nodes, or a self loop).
    #[must_use]
    pub fn is_cyclic(&self, id: ComponentId) -> bool {
        self.cyclic[id.0 as usize]
    }
}

/// The state of the walk. `number` is the order of entering; `low` Tarjan's LOWLINK.
struct Tarjan {
    number: Vec<u32>,
    low: Vec<u32>,
    open: Vec<NodeId>,
    done: Vec<bool>,
    entered: u32,
    /// Finished nodes, component by component, each component's first node last.
    finished: Vec<NodeId>,
    /// Where each component ends in `finished`.
    ends: Vec<u32>,
}

impl Tarjan {
    fn new(nodes: usize) -> Self {
        Self {
            number: vec![NONE; nodes],
            low: vec![NONE; nodes],
            open: Vec::new(),
            done: vec![false; nodes],
            entered: 0,
            finished: Vec::with_capacity(nodes),
            ends: Vec::new(),
        }
    }

    fn walk<G: Graph>(&mut self, graph: &G, root: NodeId) {
        self.enter(root);
        let mut stack = vec![(root, graph.successors(root))];
        while let Some((node, successors)) = stack.last_mut() {
            let node = *node;
            if let Some(next) = successors.next() {
                if self.number[next.index()] == NONE {
                    self.enter(next);
                    stack.push((next, graph.successors(next)));
                } else if !self.done[next.index()] {
                    self.lower(node, self.number[next.index()]);
                }
            } else {
                stack.pop();
                self.close(node);
                if let Some(&(above, _)) = stack.last() {
                    self.lower(above, self.low[node.index()]);
                }
            }
        }
    }

    fn enter(&mut self, node: NodeId) {
        self.number[node.index()] = self.entered;
        self.low[node.index()] = self.entered;
        self.entered += 1;
        self.open.push(node);
    }

    fn lower(&mut self, node: NodeId, to: u32) {
        let low = &mut self.low[node.index()];
        *low = (*low).min(to);
    }

    /// If nothing older is reached from `node`, all that is open above it is one component.
    fn close(&mut self, node: NodeId) {
        if self.low[node.index()] != self.number[node.index()] {
            return;
        }
        while let Some(member) = self.open.pop() {
            self.done[member.index()] = true;
            self.finished.push(member);
            if member == node {
                break;
            }
        }
        self.ends.push(self.finished.len() as u32);
    }

    fn finish<G: Graph>(mut self, graph: &G) -> Components {
        let total = self.finished.len() as u32;
        self.finished.reverse();
        let starts: Vec<u32> = self
            .ends
            .iter()
            .rev()
            .map(|end| total - end)
            .chain([total])
            .collect();
        // `number` is used up; its memory becomes the table from nodes to components.
        let mut of = self.number;
        let mut cyclic = vec![false; self.ends.len()];
        for (id, bounds) in starts.windows(2).enumerate() {
            for &node in &self.finished[bounds[0] as usize..bounds[1] as usize] {
                of[node.index()] = id as u32;
                cyclic[id] |=
                    bounds[1] - bounds[0] > 1 || graph.successors(node).any(|to| to == node);
            }
        }
        Components {
            of,
            members: self.finished,
            starts,
            cyclic,
        }
    }
}
