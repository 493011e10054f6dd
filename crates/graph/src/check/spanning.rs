//! Spanning trees: spanning, a tree, and heaviest among all (or by the cycle property).

use super::naive::edge_list;
use super::{Entropy, Outcome, ensure};
use crate::{
    DepthFirst, ExitEdge, FlowArc, FlowGraph, Graph, NodeId, SpanningTree, Weight, WithExit,
};

type Arc = (FlowArc, NodeId, NodeId);

/// More arcs than this are not tried in all combinations.
const MOST: usize = 11;

/// A maximum spanning tree of `graph` under weights of choice against its definition.
pub fn spanning_tree(graph: &FlowGraph, entropy: &mut Entropy<'_>) -> Outcome {
    let view = WithExit::of(graph);
    let arcs = arcs(&view);
    let weights: Vec<Weight> = arcs.iter().map(|_| weight(entropy.byte())).collect();
    let at = |arc: FlowArc| arcs.iter().position(|each| each.0 == arc);
    let weigh = |arc: FlowArc| at(arc).map_or(Weight::Finite(0), |at| weights[at]);
    let found = SpanningTree::maximum(&view, weigh);
    let chosen: Vec<bool> = arcs.iter().map(|arc| found.contains(arc.0)).collect();
    let nodes = DepthFirst::of(&view).preorder().len();
    ensure!(
        is_spanning_tree(&arcs, &chosen, nodes),
        "{:?} is no spanning tree",
        found.tree()
    );
    ensure!(
        found.tree().len() == nodes - 1,
        "the tree has arcs that the graph has not"
    );
    let rest: Vec<_> = arcs.iter().filter(|arc| !found.contains(arc.0)).collect();
    ensure!(found.chords().len() == rest.len(), "chords");
    for &&(chord, from, to) in &rest {
        ensure!(
            found.chords().contains(&(chord, weigh(chord))),
            "{chord:?} is not a chord"
        );
        let infinite = weigh(chord) == Weight::Infinite;
        ensure!(
            found.uncountable().any(|arc| arc == chord) == infinite,
            "{chord:?} uncountable"
        );
        // Without the lighter arcs of the tree, its ends still hang together.
        let heavy: Vec<bool> = (0..arcs.len())
            .map(|at| chosen[at] && weights[at] >= weigh(chord))
            .collect();
        ensure!(
            connected(&arcs, &heavy, from).contains(&to),
            "{chord:?} should be in the tree"
        );
    }
    if arcs.len() > MOST {
        return Ok(());
    }
    let total = total_weight(&weights, &chosen);
    for bits in 0u32..1 << arcs.len() {
        let other: Vec<bool> = (0..arcs.len()).map(|at| bits >> at & 1 == 1).collect();
        let better = total_weight(&weights, &other) > total;
        ensure!(
            !better || !is_spanning_tree(&arcs, &other, nodes),
            "{other:?} is heavier"
        );
    }
    Ok(())
}

fn weight(byte: u8) -> Weight {
    if byte >= 230 {
        Weight::Infinite
    } else {
        Weight::Finite(u64::from(byte % 16))
    }
}

/// The closed flow graph, as its definition lists it.
fn arcs(view: &WithExit<'_, FlowGraph>) -> Vec<Arc> {
    let reached = super::naive::reach_without(view, view.entry(), |_| false);
    let edges = edge_list(view)
        .into_iter()
        .filter(|edge| reached[edge.1.index()]);
    let name = |(edge, from, to)| match view.origin(edge) {
        ExitEdge::Real(edge) => (FlowArc::Edge(edge), from, to),
        ExitEdge::Leave(node) => (FlowArc::Exit(node), from, to),
        ExitEdge::Endless(node) => (FlowArc::Endless(node), from, to),
    };
    edges
        .map(name)
        .chain([(FlowArc::Return, view.exit(), view.entry())])
        .collect()
}

fn total_weight(weights: &[Weight], chosen: &[bool]) -> (usize, u64) {
    let chosen = weights.iter().zip(chosen).filter(|each| *each.1);
    chosen.fold((0, 0), |(infinite, sum), (weight, _)| match weight {
        Weight::Finite(weight) => (infinite, sum + weight),
        Weight::Infinite => (infinite + 1, sum),
    })
}

fn is_spanning_tree(arcs: &[Arc], chosen: &[bool], nodes: usize) -> bool {
    let count = chosen.iter().filter(|&&taken| taken).count();
    count == nodes - 1 && connected(arcs, chosen, arcs[0].1).len() == nodes
}

/// What hangs together with `start` by the chosen arcs.
fn connected(arcs: &[Arc], chosen: &[bool], start: NodeId) -> Vec<NodeId> {
    let mut joined = vec![start];
    let mut at = 0;
    while at < joined.len() {
        for (&(_, from, to), _) in arcs.iter().zip(chosen).filter(|each| *each.1) {
            for (near, far) in [(from, to), (to, from)] {
                if near == joined[at] && !joined.contains(&far) {
                    joined.push(far);
                }
            }
        }
        at += 1;
    }
    joined
}
