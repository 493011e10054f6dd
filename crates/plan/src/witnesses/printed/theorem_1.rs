//! DPT Theorem 1, as printed, for studies only: **it accepts what cannot be reconstructed**.
//!
//! "A distribution is realizable iff: for each diamond, there exists at least one profile that
//! breaks the diamond and breaks all the directed cycles (if any) that pass through the fork and
//! branch targets of the diamond; all diamonds are broken collectively by all the profiles; all
//! directed cycles are broken collectively by all the profiles." A node breaks a diamond if it is
//! neither its fork nor its join (Theorem 4); an edge if it is on it.
//!
//! Counterexample: 0→{1,2}, 1→{2,3}, 2→{1,3}, profiles {0,2} and {0,1}. Each diamond is broken by
//! the profile that sees its inner nodes, and so is the cycle 1→2→1, by both. Yet 0-1-2-3 and
//! 0-2-1-3 leave 0,2 and 0,1 either way. What goes wrong: breaking says that a profile sees
//! *something* on the diamond, not that what it sees differs from what it sees later anyway.
//!
//! "Pass through the fork and branch targets" is read as: contains an edge from the fork to one of
//! the two targets. Exponential: the diamonds and cycles are listed.

use tomo_graph::{Budget, Diamond, EdgeId, FlowGraph, NodeId, diamonds, directed_cycles};

use crate::witnesses::Place;

/// Whether the theorem calls the profiles realizable; `None` if there are too many diamonds or
/// cycles to list.
#[must_use]
pub fn accepts(graph: &FlowGraph, profiles: &[Vec<Place>], budget: Budget) -> Option<bool> {
    let diamonds = diamonds(graph, budget);
    let cycles = directed_cycles(graph, budget);
    if !diamonds.complete || !cycles.complete {
        return None;
    }
    let covered = |diamond: &Diamond| {
        profiles.iter().any(|profile| {
            breaks_diamond(graph, profile, diamond)
                && cycles
                    .found
                    .iter()
                    .filter(|cycle| passes(cycle, diamond))
                    .all(|cycle| breaks_cycle(graph, profile, cycle))
        })
    };
    let broken = |cycle: &Vec<EdgeId>| {
        let mut profiles = profiles.iter();
        profiles.any(|profile| breaks_cycle(graph, profile, cycle))
    };
    Some(diamonds.found.iter().all(covered) && cycles.found.iter().all(broken))
}

fn passes(cycle: &[EdgeId], diamond: &Diamond) -> bool {
    [&diamond.left, &diamond.right]
        .iter()
        .filter_map(|side| side.first())
        .any(|first| cycle.contains(first))
}

fn breaks_diamond(graph: &FlowGraph, profile: &[Place], diamond: &Diamond) -> bool {
    let edges = || diamond.left.iter().chain(&diamond.right);
    let inner = |node: NodeId| {
        node != diamond.fork
            && node != diamond.join
            && edges().any(|&edge| graph.target(edge) == node)
    };
    profile.iter().any(|&place| match place {
        Place::Node(node) => inner(node),
        Place::Edge(edge) => edges().any(|&other| other == edge),
    })
}

fn breaks_cycle(graph: &FlowGraph, profile: &[Place], cycle: &[EdgeId]) -> bool {
    profile.iter().any(|&place| match place {
        Place::Node(node) => cycle.iter().any(|&edge| graph.target(edge) == node),
        Place::Edge(edge) => cycle.contains(&edge),
    })
}
