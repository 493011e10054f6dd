//! The figures of DPT that can be made out.

use std::collections::BTreeMap;

use tomo_graph::{EdgeId, FlowGraph, NodeId, Weight};
use tomo_plan::witnesses::place::verify;
use tomo_plan::witnesses::{
    Call, Criterion, Distribution, Effort, Ends, Entered, Flow, Function, FunctionId, Place,
    Program, Undecided, place,
};

use super::graphs::{alone, named, of_nodes};

const FIGURE_1: &str = "entry>b1 b1>b2 b1>exit b2>b3 b2>b4 b3>b5 b4>b5 b5>b1";
const FIGURE_4: &str = "entry>b1 b1>b2 b1>exit b2>b3 b2>b4 b3>b5 b4>b5 b5>b6 b5>b7 b6>b11 b7>b8 \
    b7>b9 b8>b10 b9>b10 b10>b11 b11>b1";
const FIGURE_6A: &str = "entry>b1 b1>b2 b1>exit b2>b3 b2>b4 b3>b5 b4>b5 b5>b6 b5>b7 b6>b8 b7>b8 \
    b8>b9 b8>b10 b9>b11 b10>b11 b11>b1";
const FIGURE_9: &str = "entry>b0 b0>b1 b0>b2 b0>b3 b0>exit b1>b4 b2>b4 b3>b4 b4>b0";

fn profiles(names: &BTreeMap<String, NodeId>, text: &[&str]) -> Distribution {
    let nodes = |profile: &&str| profile.split_whitespace().map(|name| names[name]).collect();
    of_nodes(&text.iter().map(nodes).collect::<Vec<_>>())
}

fn is_realizable(graph: &str, text: &[&str]) -> bool {
    let (graph, names) = named(graph);
    Criterion::of(&alone(&graph), &profiles(&names, text), Ends::All).is_ok()
}

/// Figures 1 and 2: the order of b3 and b4 is lost; with b2 in both profiles (§4.1) it is not.
#[test]
fn dpt_figures_1_and_2() {
    assert!(!is_realizable(
        FIGURE_1,
        &["entry b1 b2 b5", "b3 exit", "b4"]
    ));
    assert!(!is_realizable(FIGURE_1, &["b3", "b4"]));
    assert!(is_realizable(FIGURE_1, &["b3 b4"]));
    assert!(is_realizable(FIGURE_1, &["b3 b2", "b4 b2"]));
}

/// Figure 3: bar's one branch is told by b4 only within one activation.
#[test]
fn dpt_figure_3() {
    let (foo, foo_names) = named("entry>b1 b1>c1 b1>exit c1>r1 r1>b1");
    let (bar, bar_names) = named("entry>b2 b2>b3 b2>b4 b3>b5 b4>b5 b5>exit");
    let call = Call {
        node: foo_names["c1"],
        targets: vec![FunctionId(1)],
    };
    let foo = Function {
        calls: vec![call],
        ..Function::leaf(foo)
    };
    let program = Program::new(vec![foo, Function::leaf(bar)], FunctionId(0)).expect("a program");
    assert!(program.entered_again(FunctionId(1)) && !program.entered_again(FunctionId(0)));
    let c1 = (FunctionId(0), Place::Node(foo_names["c1"]));
    let in_bar = |name: &str| (FunctionId(1), Place::Node(bar_names[name]));
    let ask = |bar: Vec<(FunctionId, Place)>| {
        let distribution = Distribution::new(&[(0, vec![c1]), (1, bar)]);
        Criterion::of(&program, &distribution, Ends::All).map(|_| ())
    };
    let undecided = Undecided::Ways {
        function: FunctionId(1),
        node: bar_names["b2"],
        ways: (0, 1),
    };
    assert_eq!(ask(vec![in_bar("b4")]), Err(undecided));
    for other in ["entry", "b2", "b3", "b5", "exit"] {
        assert_eq!(ask(vec![in_bar("b4"), in_bar(other)]), Ok(()), "{other}");
    }
}

/// Figure 4 (a) all blocks, (b) targets of branches, (c) as many edges as an optimal edge profile
/// has; and the distribution of §4.1, each profile of which covers some diamonds.
#[test]
fn dpt_figure_4() {
    let all = "entry b1 b2 b3 b4 b5 b6 b7 b8 b9 b10 b11 exit";
    assert!(is_realizable(FIGURE_4, &[all]));
    assert!(is_realizable(FIGURE_4, &["b2 exit b3 b4 b6 b7 b8 b9"]));
    let (graph, _) = named(FIGURE_4);
    let flow = Flow::of_graph(&graph, Entered::Once);
    let edges = |place| match place {
        Place::Edge(_) => Weight::Finite(1),
        Place::Node(_) => Weight::Infinite,
    };
    let placed = place(&flow, edges, Effort::Exact(10_000)).expect("edges do");
    assert_eq!((placed.cost, placed.is_optimal), (4, true));
    assert!(is_realizable(FIGURE_4, &["b3 b4", "b6 b7", "b6 b8 b9"]));
}

/// Figure 6 (a): three diamonds in a cycle; two of them share a profile of three witnesses.
#[test]
fn dpt_figure_6() {
    assert!(is_realizable(FIGURE_6A, &["b3 b4", "b6 b7", "b9 b10"]));
    assert!(is_realizable(FIGURE_6A, &["b3 b4 b6", "b9 b10"]));
    assert!(!is_realizable(FIGURE_6A, &["b3 b4 b6", "b9"]));
    assert!(!is_realizable(FIGURE_6A, &["b3", "b4 b6", "b9 b10"]));
}

/// Figure 9: each two of three ways share a profile, no profile holds all.
#[test]
fn dpt_figure_9() {
    assert!(is_realizable(FIGURE_9, &["b1 b3", "b1 b2", "b2 b3"]));
    assert!(!is_realizable(FIGURE_9, &["b1 b3", "b2"]));
}

/// Figure 10: neither sources nor targets of an optimal edge profile do, but other nodes do.
#[test]
fn dpt_figure_10() {
    for text in [
        "entry>b1 b1>b2 b1>b3 b2>b4 b3>b4 b4>exit",
        "entry>b1 b1>b2 b1>b3 b2>b4 b3>b4 b4>b1 b4>exit",
        "entry>b1 b1>b2 b1>b3 b2>b3 b3>exit",
    ] {
        let (graph, _) = named(text);
        let flow = Flow::of_graph(&graph, Entered::Once);
        let nodes = |place| match place {
            Place::Node(_) => Weight::Finite(1),
            Place::Edge(_) => Weight::Infinite,
        };
        let placed = place(&flow, nodes, Effort::Exact(10_000)).expect("nodes do");
        assert_eq!(verify(&flow, &placed.witnesses), Ok(()), "{text}");
    }
    // (c): the edge around b2 is the cheapest edge profile; both its ends are on either way.
    let (graph, names) = named("entry>b1 b1>b2 b1>b3 b2>b3 b3>exit");
    let flow = Flow::of_graph(&graph, Entered::Once);
    let around = edge(&graph, names["b1"], names["b3"]);
    assert_eq!(verify(&flow, &[Place::Edge(around)]), Ok(()));
    let ends = [Place::Node(names["b1"]), Place::Node(names["b3"])];
    assert!(verify(&flow, &ends).is_err());
    assert_eq!(verify(&flow, &[Place::Node(names["b2"])]), Ok(()));
}

fn edge(graph: &FlowGraph, from: NodeId, to: NodeId) -> EdgeId {
    let at = graph.edges().iter().position(|&edge| edge == (from, to));
    EdgeId(at.expect("an edge") as u32)
}
