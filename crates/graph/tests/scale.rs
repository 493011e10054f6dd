//! A hundred thousand nodes, in the shapes that hurt: nothing recurses and nothing is quadratic.
//! Each expectation follows from the shape.

use tomo_graph::{
    AcyclicPaths, Components, ControlDependence, DepthFirst, Dominators, EdgeId, FlowGraph, Loops,
    NodeId, PathCount, PostDominators, SpanningTree, Weight, WithExit, ambiguity, conflict,
};

const NODES: u32 = 100_000;

fn graph(edges: impl IntoIterator<Item = (u32, u32)>) -> FlowGraph {
    let edges = edges
        .into_iter()
        .map(|(from, to)| (NodeId(from), NodeId(to)));
    FlowGraph::new(NODES as usize, NodeId(0), edges).expect("nodes below the count")
}

fn chain() -> impl Iterator<Item = (u32, u32)> {
    (0..NODES - 1).map(|node| (node, node + 1))
}

#[test]
fn a_long_chain() {
    let graph = graph(chain());
    let last = NodeId(NODES - 1);
    assert_eq!(DepthFirst::of(&graph).preorder().len(), NODES as usize);
    assert_eq!(Components::of(&graph).count(), NODES as usize);
    assert_eq!(Dominators::of(&graph).depth(last), Some(NODES - 1));
    assert!(PostDominators::of(&graph).post_dominates(last, NodeId(0)));
    assert_eq!(AcyclicPaths::of(&graph).count(), PathCount::Exact(1));
    let view = WithExit::of(&graph);
    assert_eq!(
        SpanningTree::maximum(&view, |_| Weight::Finite(1))
            .chords()
            .len(),
        1
    );
    assert_eq!(ambiguity(&view, |_| false), None);
    assert_eq!(conflict(&view, |_| false), None);
}

/// `do { do { … } while } while`, fifty thousand deep: its control dependence is quadratic.
#[test]
fn loops_nested_fifty_thousand_deep() {
    let half = NODES / 2;
    let graph = graph(chain().chain((0..half).map(|depth| (NODES - 1 - depth, depth))));
    let walk = DepthFirst::of(&graph);
    let dominators = Dominators::with_walk(&graph, &walk);
    let loops = Loops::with_walk(&graph, &walk, &dominators);
    assert_eq!(loops.count(), half as usize);
    assert!(loops.is_reducible());
    assert_eq!(loops.depth_of(NodeId(half - 1)), half);
    let outermost = loops.headed_by(NodeId(0)).expect("a loop");
    assert_eq!(loops.members(outermost).len(), NODES as usize);
    let post = PostDominators::of(&graph);
    let control = ControlDependence::with_walk(&graph, &walk, &post);
    assert!(control.size() > u64::from(half) * u64::from(half) / 2);
    assert!(control.controllers(1 << 20).is_none());
    // Nothing exits, and the outermost latch has no other way on.
    assert_eq!(post.endless(), [NodeId(0)]);
    assert!(
        !control
            .deciding_edges()
            .any(|edge| edge == EdgeId(NODES - 1))
    );
    assert_eq!(Components::of(&graph).count(), 1);
}

/// Thirty-three thousand two-way entered loops, one after the other.
#[test]
fn a_ladder_of_irreducible_loops() {
    let rungs = (0..NODES / 3 - 1).flat_map(|rung| {
        let at = 3 * rung;
        [
            (at, at + 1),
            (at, at + 2),
            (at + 1, at + 2),
            (at + 2, at + 1),
            (at + 2, at + 3),
        ]
    });
    let graph = graph(rungs);
    let dominators = Dominators::of(&graph);
    let loops = Loops::of(&graph, &dominators);
    assert_eq!(loops.count() as u32, NODES / 3 - 1);
    assert!(!loops.is_reducible());
    assert!(
        loops
            .ids()
            .all(|id| loops.entries(&graph, &dominators, id).len() == 2)
    );
    assert_eq!(AcyclicPaths::of(&graph).count(), PathCount::TooMany);
}

/// A switch with all other nodes as its cases.
#[test]
fn a_wide_switch() {
    let cases = (1..NODES - 1).flat_map(|case| [(0, case), (case, NODES - 1)]);
    let graph = graph(cases);
    let post = PostDominators::of(&graph);
    assert_eq!(post.immediate(NodeId(0)), Some(NodeId(NODES - 1)));
    let control = ControlDependence::of(&graph, &post);
    assert_eq!(control.size(), u64::from(NODES) - 2);
    assert_eq!(
        Dominators::of(&graph).children(NodeId(0)).count(),
        NODES as usize - 1
    );
    let paths = AcyclicPaths::of(&graph);
    assert_eq!(paths.count(), PathCount::Exact(u64::from(NODES) - 2));
    let last = paths.path(u64::from(NODES) - 3).expect("the last case");
    assert_eq!(graph.target(last.edges[0]), NodeId(NODES - 2));
}
