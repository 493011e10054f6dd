//! The worked examples of the papers, and the places where their print needs an assumption.

use tomo_graph::check::printed_conditions;
use tomo_graph::{
    AcyclicPaths, Ambiguity, Budget, ControlDependence, Dominators, EdgeId, FirstWitness,
    FlowGraph, Graph, LoopKind, Loops, NodeId, PathCount, PostDominators, WithExit, ambiguity,
    conflict, diamonds, directed_cycles,
};

const PLENTY: Budget = Budget {
    items: 1000,
    steps: 100_000,
};

/// A graph from pairs of small numbers, entered at 0.
fn graph(nodes: usize, edges: &[(u32, u32)]) -> FlowGraph {
    let edges = edges.iter().map(|&(from, to)| (NodeId(from), NodeId(to)));
    FlowGraph::new(nodes, NodeId(0), edges).expect("the edges are between the nodes")
}

/// A graph from text such as `"A B, B C"`, its nodes numbered by first mention.
fn named(edges: &str) -> (FlowGraph, impl Fn(&str) -> NodeId + use<>) {
    let mut names: Vec<String> = Vec::new();
    let mut number = |name: &str| {
        let at = names
            .iter()
            .position(|known| known == name)
            .unwrap_or_else(|| {
                names.push(name.to_owned());
                names.len() - 1
            });
        at as u32
    };
    let pair = |pair: &str| {
        pair.trim()
            .split_once(' ')
            .map(|(a, b)| (number(a), number(b)))
    };
    let pairs: Vec<(u32, u32)> = edges.split(',').filter_map(pair).collect();
    let graph = graph(names.len(), &pairs);
    let find = move |name: &str| {
        let at = names
            .iter()
            .position(|known| known == name)
            .expect("a node of that name");
        NodeId(at as u32)
    };
    (graph, find)
}

/// Lengauer, Tarjan 1979, Figures 1 and 2.
#[test]
fn lengauer_tarjan_figure_1() {
    let (graph, node) = named(
        "R A, R B, R C, A D, B A, B D, B E, C F, C G, D L, E H, F I, G I, G J, H E, H K, I K, \
         J I, K I, K R, L H",
    );
    let dominators = Dominators::of(&graph);
    let tree = "A R, B R, C R, D R, E R, F C, G C, H R, I R, J G, K R, L D";
    for pair in tree.split(", ") {
        let (below, above) = pair.split_once(' ').expect("two names");
        assert_eq!(
            dominators.immediate(node(below)),
            Some(node(above)),
            "of {below}"
        );
    }
    assert_eq!(dominators.immediate(node("R")), None);
}

/// BL96, Figure 1 and 5: six paths, numbered 0 to 5.
#[test]
fn ball_larus_1996_figure_1() {
    let (graph, node) = named("A B, A C, B C, B D, C D, D E, D F, E F");
    let paths = AcyclicPaths::of(&graph);
    assert_eq!(paths.count(), PathCount::Exact(6));
    for (name, count) in [("A", 6), ("B", 4), ("C", 2), ("D", 2), ("E", 1), ("F", 1)] {
        assert_eq!(
            paths.count_from(node(name)),
            PathCount::Exact(count),
            "NumPaths({name})"
        );
    }
    let regenerated: Vec<_> = (0..6).filter_map(|number| paths.path(number)).collect();
    assert_eq!(regenerated.len(), 6);
    assert_eq!(paths.path(6), None);
}

/// A chain of diamonds doubles the paths each time: 2^63 fit, 2^64 do not, and nothing wraps.
#[test]
fn path_counts_do_not_wrap() {
    let chain = |length: u32| {
        let links = (0..length).flat_map(|at| [(at, at + 1), (at, at + 1)]);
        graph(length as usize + 1, &links.collect::<Vec<_>>())
    };
    let long = chain(63);
    let paths = AcyclicPaths::of(&long);
    assert_eq!(paths.count(), PathCount::Exact(1 << 63));
    let last = paths.path((1 << 63) - 1).expect("the last path");
    assert_eq!(paths.number(&last), Some((1 << 63) - 1));
    let longer = chain(64);
    let paths = AcyclicPaths::of(&longer);
    assert_eq!(paths.count(), PathCount::TooMany);
    assert_eq!(paths.count().to_string(), "more than 18446744073709551615");
    assert_eq!((paths.path(0), paths.start_value(NodeId(0))), (None, None));
    assert_eq!(paths.values(NodeId(0)).count(), 0);
}

/// The smallest irreducible graph: two nodes that reach each other, both entered from outside.
#[test]
fn smallest_irreducible_loop() {
    let graph = graph(3, &[(0, 1), (0, 2), (1, 2), (2, 1)]);
    let dominators = Dominators::of(&graph);
    let loops = Loops::of(&graph, &dominators);
    assert!(!loops.is_reducible());
    let id = loops.innermost(NodeId(2)).expect("a loop");
    assert_eq!(loops.kind(id), LoopKind::Irreducible);
    assert_eq!(
        loops.entries(&graph, &dominators, id),
        [NodeId(1), NodeId(2)]
    );
}

/// Two blocks that run for ever: the header of the loop stands for its way out.
#[test]
fn endless_loop_has_defined_post_dominators() {
    let graph = graph(4, &[(0, 1), (0, 3), (1, 2), (2, 1)]);
    let post = PostDominators::of(&graph);
    assert_eq!(post.endless(), [NodeId(1)]);
    assert_eq!(post.immediate(NodeId(2)), Some(NodeId(1)));
    assert_eq!(post.immediate(NodeId(1)), None);
    let control = ControlDependence::of(&graph, &post);
    // The loop as a whole depends on the branch into it; its one way on decides nothing.
    assert_eq!(
        control.dependents(EdgeId(0)).collect::<Vec<_>>(),
        [NodeId(1)]
    );
    assert_eq!(control.dependents(EdgeId(2)).count(), 0);
}

/// What the listed diamonds of DPT Figure 4 force: each consecutive pair of blocks in them is an
/// edge, from the fork to the join.
const FIGURE_4: &str = "b2 b3, b2 b4, b3 b5, b4 b5, b5 b6, b5 b7, b6 b11, b7 b8, b7 b9, b8 b10, b9 b10, \
     b10 b11";

/// How the rest may be: the text names no edge of it. Six directed cycles are as many as there are
/// paths from b2 to b11, so there is one way back, around all of them. The first is our choice: b1
/// would have no reason to be a block of its own were it not the loop's condition.
const FIGURE_4_LOOPS: [&str; 3] = [
    "entry b1, b1 b2, b1 exit, b11 b1, ",
    "entry b1, b1 b2, b11 b1, b11 exit, ",
    "entry b1, b1 b2, b11 b2, b11 exit, ",
];

/// DPT §3.1, Figure 4: four diamonds and six directed cycles.
#[test]
fn dpt_figure_4() {
    for rest in FIGURE_4_LOOPS {
        let (graph, node) = named(&format!("{rest}{FIGURE_4}"));
        let view = WithExit::of(&graph);
        let found = diamonds(&view, PLENTY);
        let mut ends: Vec<_> = found
            .found
            .iter()
            .map(|each| (each.fork, each.join))
            .collect();
        let mut listed = [("b2", "b5"), ("b5", "b11"), ("b5", "b11"), ("b7", "b10")]
            .map(|(fork, join)| (node(fork), node(join)));
        ends.sort_unstable();
        listed.sort_unstable();
        assert!(found.complete);
        assert_eq!(ends, listed, "with {rest}");
        let cycles = directed_cycles(&view, PLENTY);
        assert_eq!(
            (cycles.found.len(), cycles.complete),
            (6, true),
            "with {rest}"
        );
        assert!(Loops::of(&graph, &Dominators::of(&graph)).is_reducible());
    }
}

/// An enumeration says when it stopped early.
#[test]
fn enumerations_are_bounded() {
    let (graph, _) = named(&format!("{}{FIGURE_4}", FIGURE_4_LOOPS[0]));
    let few = diamonds(&graph, Budget { items: 2, ..PLENTY });
    assert_eq!((few.found.len(), few.complete), (2, false));
    let short = directed_cycles(&graph, Budget { steps: 3, ..PLENTY });
    assert!(!short.complete);
}

/// One witness per diamond and cycle suffices in Figure 4, and any less does not.
#[test]
fn dpt_figure_4_broken_by_four_witnesses() {
    let (graph, node) = named(&format!("{}{FIGURE_4}", FIGURE_4_LOOPS[0]));
    let view = WithExit::of(&graph);
    let edge = |from: &str, to: &str| {
        let to = node(to);
        view.out_edges(node(from))
            .find(|hop| hop.node == to)
            .map(|hop| hop.edge)
    };
    let witnesses = [
        edge("b2", "b3"),
        edge("b5", "b6"),
        edge("b7", "b8"),
        edge("b11", "b1"),
    ];
    let within = |kept: usize| {
        move |edge: EdgeId| {
            witnesses
                .iter()
                .take(kept)
                .any(|&witness| witness == Some(edge))
        }
    };
    assert_eq!(ambiguity(&view, within(4)), None);
    assert_eq!(conflict(&view, within(4)), None);
    for kept in 0..4 {
        assert!(ambiguity(&view, within(kept)).is_some(), "{kept} witnesses");
        assert!(conflict(&view, within(kept)).is_some(), "{kept} witnesses");
    }
}

/// Every node reaches the exit: without that a cycle may have no fork, so no conflict.
#[test]
fn print_assumes_that_everything_exits() {
    let graph = graph(1, &[(0, 0)]);
    let none = |_| false;
    assert_eq!(printed_conditions(&graph, &[false]), (false, true));
    assert_eq!(conflict(&graph, none), None);
    assert_eq!(
        ambiguity(&graph, none),
        Some(Ambiguity::Cycle(vec![EdgeId(0)]))
    );
    assert!(conflict(&WithExit::of(&graph), none).is_some());
}

/// There is one exit: with two, the record ends either way although there is no diamond.
#[test]
fn print_assumes_one_exit() {
    let graph = graph(3, &[(0, 1), (0, 2)]);
    let none = |_| false;
    assert_eq!(printed_conditions(&graph, &[false; 2]), (true, false));
    assert_eq!(ambiguity(&graph, none), None);
    assert_eq!(
        conflict(&graph, none).map(|clash| clash.shared),
        Some(FirstWitness::End)
    );
    assert!(matches!(
        ambiguity(&WithExit::of(&graph), none),
        Some(Ambiguity::Diamond(_))
    ));
}

/// One edge that leads to two ends is in no conflict with itself.
#[test]
fn ends_behind_one_edge_do_not_conflict() {
    let graph = graph(4, &[(0, 1), (1, 2), (0, 3)])
        .with_exits([NodeId(1)])
        .expect("a node");
    assert_eq!(conflict(&graph, |edge| edge == EdgeId(2)), None);
    assert!(conflict(&graph, |_| false).is_some());
}

/// By the letter of the definition a path walked there and back is a diamond; yet nothing is
/// ambiguous where there is no choice.
#[test]
fn a_path_there_and_back_is_no_diamond() {
    let graph = graph(4, &[(0, 1), (1, 2), (2, 3)]);
    let view = WithExit::of(&graph);
    assert!(diamonds(&view, PLENTY).found.is_empty());
    assert_eq!(conflict(&view, |_| false), None);
    assert_eq!(ambiguity(&view, |_| false), None);
}

/// Parallel edges, which the print excludes, are as ambiguous as the longer ways.
#[test]
fn parallel_edges_are_a_diamond() {
    let graph = graph(2, &[(0, 1), (0, 1)]);
    let view = WithExit::of(&graph);
    assert_eq!(diamonds(&view, PLENTY).found.len(), 1);
    assert!(ambiguity(&view, |_| false).is_some());
    assert!(conflict(&view, |_| false).is_some());
    assert_eq!(ambiguity(&view, |edge| edge == EdgeId(1)), None);
}

/// All graphs of up to three nodes without parallel edges, with all sets of witnesses: as printed,
/// the conditions agree wherever every node that can run reaches *the* exit, and not beyond.
#[test]
fn printed_conditions_on_all_graphs_of_three_nodes() {
    let mut agreed = 0;
    let mut smallest = None;
    for nodes in 1..=3u32 {
        let pairs: Vec<(u32, u32)> = (0..nodes)
            .flat_map(|from| (0..nodes).map(move |to| (from, to)))
            .collect();
        // Per pair of nodes: no edge, a plain one, a witness.
        for mut code in 0..3u32.pow(pairs.len() as u32) {
            let (mut edges, mut witness) = (Vec::new(), Vec::new());
            for &pair in &pairs {
                if code % 3 > 0 {
                    edges.push(pair);
                    witness.push(code % 3 == 2);
                }
                code /= 3;
            }
            let graph = graph(nodes as usize, &edges);
            let (cfg, path) = printed_conditions(&graph, &witness);
            if one_exit_for_all(&graph) {
                assert_eq!(cfg, path, "{edges:?} with {witness:?}");
                agreed += 1;
            } else if cfg != path && smallest.is_none() {
                smallest = Some(edges);
            }
        }
    }
    assert!(
        agreed > 1000,
        "only {agreed} graphs are as the print assumes"
    );
    assert_eq!(smallest, Some(vec![(0, 0)]));
}

/// Whether all nodes lead to the only node without successors.
fn one_exit_for_all(graph: &FlowGraph) -> bool {
    let exits = graph.nodes().filter(|&node| graph.is_exit(node)).count();
    exits == 1 && WithExit::of(graph).endless().is_empty()
}
