//! What DPT prints, held against executions: it fails, and how often.

use tomo_graph::{Budget, EdgeId, NodeId, Weight};
use tomo_plan::witnesses::check::Dice;
use tomo_plan::witnesses::printed::{figure_7, figure_11, theorem_1, theorem_2};
use tomo_plan::witnesses::{
    Criterion, Distribution, Effort, Ends, Entered, Flow, Machines, Place, Strategy, place,
};

use super::brute::alike;
use super::graphs::{alone, graph, named, of_nodes, random, some_nodes};

const PLENTY: Budget = Budget {
    items: 1000,
    steps: 1_000_000,
};

fn places(profiles: &[Vec<NodeId>]) -> Vec<Vec<Place>> {
    let places = |nodes: &Vec<NodeId>| nodes.iter().map(|&node| Place::Node(node)).collect();
    profiles.iter().map(places).collect()
}

/// 0-2-1-3 and 0-1-2-3 leave 0,2 and 0,1: Theorem 1 accepts, ours does not.
#[test]
fn theorem_1_accepts_what_cannot_be_reconstructed() {
    let graph = graph(4, &[(0, 1), (0, 2), (1, 2), (1, 3), (2, 1), (2, 3)]);
    let profiles = [vec![NodeId(0), NodeId(2)], vec![NodeId(0), NodeId(1)]];
    assert_eq!(
        theorem_1::accepts(&graph, &places(&profiles), PLENTY),
        Some(true)
    );
    let found = alike(&graph, &profiles, 6, 10_000).expect("few executions");
    assert!(found.is_some());
    assert!(Criterion::of(&alone(&graph), &of_nodes(&profiles), Ends::All).is_err());
}

/// What the theorems and our criterion say of random profiles, against all executions up to a
/// length. Ours never accepts what two executions leave alike.
#[test]
fn theorems_and_criterion_against_executions() {
    let mut dice = Dice(7);
    let (mut realizable, mut ours, mut second) = (0, 0, 0);
    let (mut not, mut wrong_first, mut wrong_second) = (0, 0, 0);
    for _ in 0..3000 {
        let graph = random(&mut dice, 5);
        let profiles = [some_nodes(&mut dice, &graph), some_nodes(&mut dice, &graph)];
        let longest = 3 * tomo_graph::Graph::node_count(&graph) - 2;
        let Ok(found) = alike(&graph, &profiles, longest, 20_000) else {
            continue;
        };
        let places = places(&profiles);
        let accepted = Criterion::of(&alone(&graph), &of_nodes(&profiles), Ends::All).is_ok();
        let first = theorem_1::accepts(&graph, &places, PLENTY) == Some(true);
        let by_second = theorem_2::accepts(&graph, &places);
        if let Some(found) = found {
            assert!(!accepted, "{found:?} in {:?} {profiles:?}", graph.edges());
            not += 1;
            wrong_first += usize::from(first);
            wrong_second += usize::from(by_second);
        } else {
            realizable += 1;
            ours += usize::from(accepted);
            second += usize::from(by_second);
        }
    }
    println!("{realizable} realizable: ours accepts {ours}, Theorem 2 {second}");
    println!("{not} not: Theorem 1 accepts {wrong_first}, Theorem 2 {wrong_second}");
    assert!(realizable > 300 && not > 300);
    assert!(ours * 100 > realizable * 94, "{ours} of {realizable}");
    assert!(second * 2 < realizable, "{second} of {realizable}");
    assert!(wrong_first > 0);
}

fn nodes_only(place: Place) -> Weight {
    match place {
        Place::Node(_) => Weight::Finite(1),
        Place::Edge(_) => Weight::Infinite,
    }
}

/// The counterexample to Figure 11.
#[test]
fn figure_11_yields_what_cannot_be_reconstructed() {
    let graph = graph(4, &[(0, 2), (0, 3), (1, 2), (2, 1), (2, 3)]);
    let chosen = figure_11::witnesses(&graph, |_| 1, |_| 1, PLENTY).expect("few diamonds");
    let found = alike(&graph, std::slice::from_ref(&chosen), 8, 10_000).expect("few executions");
    assert!(found.is_some(), "{chosen:?}");
    let ours = place(
        &Flow::of_graph(&graph, Entered::Once),
        nodes_only,
        Effort::Exact(1000),
    );
    let ours: Vec<NodeId> = graph_nodes(&ours.expect("nodes do").witnesses);
    assert_eq!(alike(&graph, &[ours], 12, 100_000), Ok(None));
}

fn graph_nodes(places: &[Place]) -> Vec<NodeId> {
    let node = |place: &Place| match place {
        Place::Node(node) => Some(*node),
        Place::Edge(_) => None,
    };
    places.iter().filter_map(node).collect()
}

/// How often Figure 11 is wrong, how often it is optimal where it is right, and how much dearer.
#[test]
fn figure_11_against_the_optimum() {
    let mut dice = Dice(11);
    let (mut wrong, mut right, mut optimal, mut theirs, mut best) = (0, 0, 0, 0, 0);
    for _ in 0..2000 {
        let graph = random(&mut dice, 7);
        let weights: Vec<u64> = (0..8).map(|_| 1 + dice.roll() % 8).collect();
        let node = |node: NodeId| weights[node.index()];
        let weight = |place| match place {
            Place::Node(at) => Weight::Finite(node(at)),
            Place::Edge(_) => Weight::Infinite,
        };
        let flow = Flow::of_graph(&graph, Entered::Once);
        let edge = |edge| node(graph.target(edge));
        let chosen = figure_11::witnesses(&graph, edge, node, PLENTY).expect("few diamonds");
        let ours = place(&flow, weight, Effort::Exact(10_000)).expect("nodes do");
        assert!(ours.is_optimal);
        let chosen_places: Vec<Place> = chosen.iter().map(|&node| Place::Node(node)).collect();
        if tomo_plan::witnesses::place::verify(&flow, &chosen_places).is_err() {
            wrong += 1;
            continue;
        }
        right += 1;
        let cost: u64 = chosen.iter().map(|&at| node(at)).sum();
        assert!(cost >= ours.cost, "{chosen:?} in {:?}", graph.edges());
        optimal += usize::from(cost == ours.cost);
        theirs += cost;
        best += ours.cost;
    }
    println!("{wrong} wrong, {right} right, {optimal} optimal, cost {theirs} to {best}");
    assert!(wrong > 200 && optimal < right && theirs > best);
}

/// The text on Figure 6 (a): the first diamond takes two witnesses in the first machine, the third, once that is broken, one.
#[test]
fn figure_7_does_what_the_text_says() {
    let (graph, names) = named(
        "entry>b1 b1>b2 b1>exit b2>b3 b2>b4 b3>b5 b4>b5 b5>b6 b5>b7 b6>b8 b7>b8 b8>b9 b8>b10 b9>b11 b10>b11 b11>b1",
    );
    let listed = figure_7::Listed::of(&graph, PLENTY).expect("few diamonds");
    assert_eq!((listed.diamonds.len(), listed.cycles.len()), (3, 1));
    let machines = Machines {
        count: 2,
        bound: None,
        besides: &[],
    };
    let light = |at: u32| {
        [("b3", "b5"), ("b4", "b5"), ("b10", "b11")]
            .into_iter()
            .any(|(from, to)| graph.edges()[at as usize] == (names[from], names[to]))
    };
    let weight = |_, edge: EdgeId| if light(edge.0) { 1 } else { 2 };
    let made = figure_7::distribute(&[&listed], weight, Strategy::FineGrained, machines);
    let edge = |from: &str, to: &str| {
        let ends = (names[from], names[to]);
        let at = graph.edges().iter().position(|edge| *edge == ends);
        Place::Edge(EdgeId(at.expect("an edge") as u32))
    };
    let first: Vec<Place> = made[0].1.iter().map(|(_, place)| *place).collect();
    // Of the way out, and in again when it is called once more, the text says nothing.
    let text = [("b1", "exit"), ("b3", "b5"), ("b4", "b5"), ("b10", "b11")];
    assert_eq!(first, text.map(|(from, to)| edge(from, to)));
    let second: Vec<Place> = made[1].1.iter().map(|(_, place)| *place).collect();
    assert!(second.contains(&edge("b6", "b8")) && second.contains(&edge("b7", "b8")));
}

/// How often Figure 7 yields what our criterion accepts, on one machine and on three.
#[test]
fn figure_7_against_the_criterion() {
    let mut dice = Dice(12);
    let mut told = [[0; 2]; 3];
    for _ in 0..1000 {
        let graph = random(&mut dice, 8);
        let listed = figure_7::Listed::of(&graph, PLENTY).expect("few diamonds");
        let strategies = [
            Strategy::FineGrained,
            Strategy::FunctionWise,
            Strategy::Grouped,
        ];
        for (strategy, told) in strategies.into_iter().zip(&mut told) {
            for (count, told) in [1, 3].into_iter().zip(told) {
                let machines = Machines {
                    count,
                    bound: None,
                    besides: &[],
                };
                let weight = |_, edge: EdgeId| u64::from(edge.0 % 5);
                let made = figure_7::distribute(&[&listed], weight, strategy, machines);
                let made = Distribution::new(&made);
                *told += u32::from(Criterion::of(&alone(&graph), &made, Ends::All).is_ok());
            }
        }
    }
    println!("{told:?}");
    // All in one profile is a spanning tree's complement.
    assert_eq!(told.map(|told| told[0]), [1000; 3]);
    assert!(told[0][1] < 1000, "{told:?}");
}
