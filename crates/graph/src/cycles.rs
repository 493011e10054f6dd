//! Directed cycles: one, or all that are simple.
//!
//! Sources: DPT §3.1 (a cycle is directed if all its edges lead the same way, simple if its nodes
//! are distinct); finding one by depth-first walk, Tarjan 1972; listing all after Tiernan 1970
//! within the strongly connected components, each from the member that was reached first (see
//! [`simple_paths`](crate::simple_paths) for the cost). A self loop is a cycle.
//!
//! **Unreachable nodes**: cycles among them are not listed, they never run.

use crate::simple_paths::{Budget, Enumeration, Next, simple_paths};
use crate::{Components, DepthFirst, EdgeId, Graph, Hop, NodeId};

/// All simple directed cycles of the reachable part of `graph`, each as the edges it takes, from
/// its node of smallest depth-first number.
pub fn directed_cycles<G: Graph>(graph: &G, mut budget: Budget) -> Enumeration<Vec<EdgeId>> {
    let walk = DepthFirst::of(graph);
    let components = Components::of(graph);
    let mut result = Enumeration::new();
    let mut marks = vec![false; graph.node_count()];
    for &root in walk.preorder() {
        let component = components.of_node(root);
        for first in graph.out_edges(root) {
            let mut visit = |path: &[Hop], _: &mut [bool], budget: &mut Budget| {
                let at = path.last().map(|hop| hop.node);
                if at == Some(root) {
                    result.add(path.iter().map(|hop| hop.edge).collect(), budget)
                } else if at.is_none_or(|node| components.of_node(node) != component) {
                    Next::Back
                } else {
                    Next::Deeper
                }
            };
            if simple_paths(graph, first, &mut marks, &mut budget, &mut visit) == Next::Stop {
                result.complete = false;
                return result;
            }
        }
        // Whatever passes this node has been found.
        marks[root.index()] = true;
    }
    result
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Colour {
    White,
    Grey,
    Black,
}

/// A directed cycle that can be reached from one of `roots`, as the edges it takes. O(nodes +
/// edges).
pub fn find_cycle<G: Graph>(graph: &G, roots: &[NodeId]) -> Option<Vec<EdgeId>> {
    let mut colour = vec![Colour::White; graph.node_count()];
    let mut path: Vec<Hop> = Vec::new();
    for &root in roots {
        if colour[root.index()] != Colour::White {
            continue;
        }
        colour[root.index()] = Colour::Grey;
        let mut stack = vec![(root, graph.out_edges(root))];
        while let Some((node, edges)) = stack.last_mut() {
            let node = *node;
            match edges.next() {
                Some(hop) if colour[hop.node.index()] == Colour::White => {
                    colour[hop.node.index()] = Colour::Grey;
                    path.push(hop);
                    stack.push((hop.node, graph.out_edges(hop.node)));
                }
                Some(hop) if colour[hop.node.index()] == Colour::Grey => {
                    // The edges of the path behind the node that is met again, then this one.
                    let behind = stack.iter().position(|frame| frame.0 == hop.node)?;
                    return Some(
                        path[behind..]
                            .iter()
                            .chain([&hop])
                            .map(|hop| hop.edge)
                            .collect(),
                    );
                }
                Some(_) => {}
                None => {
                    colour[node.index()] = Colour::Black;
                    path.pop();
                    stack.pop();
                }
            }
        }
    }
    None
}
