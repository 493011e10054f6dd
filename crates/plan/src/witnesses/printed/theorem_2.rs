//! DPT Theorem 2, as printed, for studies only: **it denies most of what can be reconstructed**.
//!
//! "A distribution is realizable iff for each predicate p and its targets, for all pairs qi, qj: if
//! both lead back to p, there must exist a profile m such that its witness sets of qi and qj are
//! disjoint, and allwitness(p, qi) = witness(m, p, qi), and the same for qj; else
//! allwitness(p, qi) and allwitness(p, qj) are disjoint", where allwitness is the union over all
//! profiles.
//!
//! The equations ask that no other profile sees anything else, so profiles may hardly overlap, and
//! the end of a record (EOF), which some profile nearly always may meet first, spoils the second
//! case. O(branches² × profiles × graph).

use std::collections::BTreeSet;

use tomo_graph::{FlowGraph, Graph, Hop, NodeId};

use crate::witnesses::Place;

/// A first witness, or the end (`None`, the paper's EOF).
type Set = BTreeSet<Option<Place>>;

/// Whether the theorem calls the profiles realizable.
#[must_use]
pub fn accepts(graph: &FlowGraph, profiles: &[Vec<Place>]) -> bool {
    let reached = reach(graph, graph.entry());
    let mut nodes = graph.nodes().filter(|node| reached[node.index()]);
    nodes.all(|node| {
        let targets: Vec<Hop> = graph.out_edges(node).collect();
        let pairs = targets
            .iter()
            .enumerate()
            .flat_map(|(at, one)| targets[at + 1..].iter().map(move |other| (one, other)));
        pairs
            .into_iter()
            .all(|(one, other)| pair(graph, profiles, node, *one, *other))
    })
}

fn pair(graph: &FlowGraph, profiles: &[Vec<Place>], node: NodeId, one: Hop, other: Hop) -> bool {
    let sets = |hop: Hop| -> Vec<Set> {
        let sets = profiles.iter().map(|profile| witness(graph, profile, hop));
        sets.collect()
    };
    let all = |sets: &[Set]| -> Set { sets.iter().flatten().copied().collect() };
    let (ones, others) = (sets(one), sets(other));
    let (all_one, all_other) = (all(&ones), all(&others));
    let back = |hop: Hop| reach(graph, hop.node)[node.index()];
    if back(one) && back(other) {
        ones.iter()
            .zip(&others)
            .any(|(one, other)| one.is_disjoint(other) && *one == all_one && *other == all_other)
    } else {
        all_one.is_disjoint(&all_other)
    }
}

/// `witness(ICFG, Wit, p, q)` of §3.2 and §4.1, for nodes and edges alike.
fn witness(graph: &FlowGraph, profile: &[Place], first: Hop) -> Set {
    let mut set = Set::new();
    let mut entered = vec![false; graph.node_count()];
    let mut work = vec![first];
    while let Some(hop) = work.pop() {
        let passed = [Place::Edge(hop.edge), Place::Node(hop.node)];
        if let Some(place) = passed.into_iter().find(|place| profile.contains(place)) {
            set.insert(Some(place));
        } else if !std::mem::replace(&mut entered[hop.node.index()], true) {
            if graph.is_exit(hop.node) {
                set.insert(None);
            }
            work.extend(graph.out_edges(hop.node));
        }
    }
    set
}

/// What can be reached from a node, itself included.
fn reach(graph: &FlowGraph, from: NodeId) -> Vec<bool> {
    let mut reached = vec![false; graph.node_count()];
    let mut work = vec![from];
    while let Some(node) = work.pop() {
        if !std::mem::replace(&mut reached[node.index()], true) {
            work.extend(graph.successors(node));
        }
    }
    reached
}
