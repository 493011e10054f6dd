//! Worked examples: the loop with a break of BL94, and its heuristic weights.

use super::*;
use tomo_plan::counting::SCALE;

/// `while P { if Q { A } else { B } if R { break } C }`, nodes P Q A B R C and the exit X.
fn ball_larus() -> FlowGraph {
    let [p, q, a, b, r, c, x] = [0, 1, 2, 3, 4, 5, 6];
    let edges = [
        (p, q),
        (p, x),
        (q, a),
        (q, b),
        (a, r),
        (b, r),
        (r, x),
        (r, c),
        (c, p),
    ];
    graph(7, &edges)
}

/// Seven nodes and ten arcs, the return among them: four counters.
#[test]
fn ball_larus_1994_loop_with_a_break() {
    let graph = ball_larus();
    let weight = |arc| match arc {
        FlowArc::Edge(_) => Weight::Finite(1),
        _ => Weight::Infinite,
    };
    let plan = CountingPlan::new(&graph, weight);
    assert_eq!(plan.counters().len(), 4);
    assert!(plan.is_complete());
    assert_eq!(verify(&graph, &plan), Ok(()));
}

/// One entry, ten rounds, two exits of half a time each; the rest is shared evenly.
#[test]
fn ball_larus_1994_heuristic_weights() {
    let estimate = Frequencies::estimate(&ball_larus());
    let tenths = [95, 5, 47, 47, 47, 47, 5, 90, 90];
    for (at, (&found, tenth)) in estimate.edges.iter().zip(tenths).enumerate() {
        assert_eq!(found * 10 / SCALE, tenth, "edge {at}: {found}");
    }
    assert_eq!(
        estimate.edges[2],
        SCALE / 100 * 475 + (SCALE % 100) * 475 / 100
    );
    assert_eq!(estimate.entries, SCALE);
}

/// The cheapest counters avoid the inside of the loop where the shape allows it: of the four, the
/// two exits and one side of the inner branch are forced, and something must see the rounds.
#[test]
fn counters_go_where_little_runs() {
    let graph = ball_larus();
    let estimate = Frequencies::estimate(&graph);
    let weight = |arc| match arc {
        FlowArc::Edge(_) => Weight::Finite(estimate.of(arc)),
        _ => Weight::Infinite,
    };
    let plan = CountingPlan::new(&graph, weight);
    let counted = |id| matches!(plan.role(edge(id)), Some(Role::Counted(_)));
    assert!(counted(1) && counted(6), "{:?}", plan.counters());
    assert!([2, 3, 4, 5].into_iter().any(counted));
    assert_eq!(plan.role(edge(0)), Some(Role::Inferred));
}

/// A nest of two loops: a hundred rounds inside, and one exit leaves both.
#[test]
fn nested_loops_multiply() {
    // 0 → 1 → 2 → {2, 1, 3}: the edge to 3 leaves both loops, as seldom as the outer is entered.
    let graph = graph(4, &[(0, 1), (1, 2), (2, 2), (2, 1), (2, 3)]);
    let estimate = Frequencies::estimate(&graph);
    assert_eq!(estimate.edges[1], 10 * SCALE);
    assert_eq!(estimate.edges[4], SCALE);
    assert_eq!(estimate.edges[3], 10 * SCALE);
    assert_eq!(estimate.edges[2], 89 * SCALE);
}

/// Twenty loops in each other do not wrap.
#[test]
fn estimates_saturate() {
    let depth = 30;
    let down = (0..depth).map(|at| (at, at + 1));
    let back = (0..=depth)
        .map(|at| (depth, at))
        .chain([(depth, depth + 1)]);
    let edges: Vec<_> = down.chain(back).collect();
    let graph = graph(depth as usize + 2, &edges);
    let estimate = Frequencies::estimate(&graph);
    assert_eq!(estimate.edges[depth as usize - 1], u64::MAX);
    assert_eq!(estimate.edges[edges.len() - 1], SCALE);
}
