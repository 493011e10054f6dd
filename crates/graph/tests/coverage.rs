//! The generated graphs are worth testing on: each oddity occurs often among them.

use tomo_graph::check::{Entropy, generate};
use tomo_graph::{DepthFirst, Dominators, FlowGraph, Graph, LoopKind, Loops, WithExit, ambiguity};

/// A fixed stream of bytes (xorshift, Marsaglia 2003).
fn bytes(seed: u64) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 32) as u8
    };
    (0..100).map(|_| next()).collect()
}

fn oddities(graph: &FlowGraph) -> [bool; 9] {
    let walk = DepthFirst::of(graph);
    let loops = Loops::of(graph, &Dominators::of(graph));
    let view = WithExit::of(graph);
    let mut ends = graph.edges().to_vec();
    ends.sort_unstable();
    let irreducible = |&id: &_| loops.kind(id) == LoopKind::Irreducible;
    [
        graph.nodes().any(|node| !walk.is_reachable(node)),
        graph.edges().iter().any(|(from, to)| from == to),
        ends.windows(2).any(|pair| pair[0] == pair[1]),
        graph.nodes().filter(|&node| graph.is_exit(node)).count() > 1,
        view.endless().iter().any(|&node| walk.is_reachable(node)),
        loops.ids().any(|id| loops.depth(id) > 1),
        loops.ids().filter(irreducible).count() > 0,
        loops
            .ids()
            .filter(irreducible)
            .any(|id| loops.depth(id) > 1),
        ambiguity(&view, |edge| edge.0 % 2 == 0).is_none() && graph.edges().len() > 3,
    ]
}

#[test]
fn every_oddity_is_common() {
    let names = [
        "unreachable nodes",
        "self loops",
        "parallel edges",
        "several exits",
        "endless loops",
        "nested loops",
        "irreducible loops",
        "irreducible loops inside others",
        "realizable with some witnesses",
    ];
    let mut counts = [0; 9];
    for seed in 1..=3000 {
        let bytes = bytes(seed);
        let graph = generate(&mut Entropy::new(&bytes), 14);
        for (count, odd) in counts.iter_mut().zip(oddities(&graph)) {
            *count += u32::from(odd);
        }
    }
    for (name, count) in names.iter().zip(counts) {
        assert!(
            count >= 60,
            "only {count} of 3000 graphs have {name}; all: {counts:?}"
        );
    }
}
