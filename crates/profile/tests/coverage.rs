//! Reading coverage against all executions of small graphs, and against runs that were cut.

use std::collections::BTreeSet;

use proptest::prelude::*;
use tomo_graph::check::{Entropy, generate};
use tomo_graph::{FlowGraph, Graph, NodeId};
use tomo_plan::coverage::{Ending, Fate, Flow, Subdivision, Unit, edges, reduced};
use tomo_profile::coverage::{Basis, Mark, Reading, Trust, Verdict, read};

const ENDINGS: [Ending; 3] = [Ending::Anywhere, Ending::AtStops, Ending::AtExits];

/// The sets of nodes of all walks from the entry, each with whether the walk may stop there.
fn walks(flow: &Flow<'_>) -> BTreeSet<(bool, u32)> {
    let start = (flow.entry(), 1u32 << flow.entry().0);
    let mut seen = BTreeSet::from([start]);
    let mut open = vec![start];
    let mut walks = BTreeSet::new();
    while let Some((node, passed)) = open.pop() {
        walks.insert((flow.is_exit(node), passed));
        for next in flow.successors(node) {
            let state = (next, passed | 1 << next.0);
            if seen.insert(state) {
                open.push(state);
            }
        }
    }
    walks
}

/// All unions of the sets that are given.
fn unions(walks: impl Iterator<Item = u32>) -> Vec<u32> {
    let mut sets = BTreeSet::from([0u32]);
    for walk in walks {
        let more: Vec<u32> = sets.iter().map(|set| set | walk).collect();
        sets.extend(more);
    }
    sets.into_iter().collect()
}

fn read_bits(flow: &Flow<'_>, probes: u32, ran: u32) -> Reading {
    read(flow, |node| {
        match (probes >> node.0 & 1, ran >> node.0 & 1) {
            (0, _) => Mark::None,
            (_, 0) => Mark::Silent,
            _ => Mark::Hit,
        }
    })
}

/// What the verdict claims is true of the run that passed `ran`.
fn is_true(verdict: Verdict, node: NodeId, ran: u32) -> bool {
    match verdict {
        Verdict::Ran(_) => ran >> node.0 & 1 == 1,
        Verdict::NotRun(_) => ran >> node.0 & 1 == 0,
        Verdict::Unknown => true,
    }
}

/// What can be known of `node` from `seen`, by the definition: all executions that look like this.
fn by_definition(sets: &[u32], probes: u32, seen: u32, node: NodeId) -> (bool, bool) {
    let alike = || sets.iter().filter(|&&set| set & probes == seen);
    let ran = |set: &&u32| **set >> node.0 & 1 == 1;
    (alike().all(|set| ran(&set)), !alike().any(|set| ran(&set)))
}

fn case(bytes: &[u8], most: usize) -> (FlowGraph, Ending, Vec<bool>, u32) {
    let mut entropy = Entropy::new(bytes);
    let graph = generate(&mut entropy, most);
    let ending = ENDINGS[entropy.below(3)];
    let stops = graph.nodes().map(|_| entropy.below(4) == 1).collect();
    let probes = u32::from(entropy.byte()) & ((1 << graph.node_count()) - 1);
    (graph, ending, stops, probes)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(6000))]

    #[test]
    fn a_reading_says_all_that_can_be_known(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
        let (graph, ending, stops, probes) = case(&bytes, 6);
        let flow = Flow::new(&graph, ending, |node| stops[node.index()]);
        let whole = walks(&flow).into_iter().filter(|walk| walk.0).map(|walk| walk.1);
        let sets = unions(whole);
        for &ran in &sets {
            let reading = read_bits(&flow, probes, ran);
            prop_assert_eq!(reading.trust, Trust::AsPromised);
            for node in flow.nodes() {
                let expected = by_definition(&sets, probes, ran & probes, node);
                let verdict = reading.verdicts[node.index()];
                let told = (matches!(verdict, Verdict::Ran(_)), matches!(verdict, Verdict::NotRun(_)));
                prop_assert_eq!(told, expected, "{:?} of {:b}", node, ran);
                prop_assert!(is_true(verdict, node, ran));
            }
        }
    }

    #[test]
    fn what_holds_however_a_run_ends_holds_of_runs_cut_anywhere(
        bytes in prop::collection::vec(any::<u8>(), 0..64),
    ) {
        let (graph, ending, stops, probes) = case(&bytes, 6);
        let flow = Flow::new(&graph, ending, |node| stops[node.index()]);
        let cut = Flow::new(&graph, Ending::Anywhere, |_| true);
        for ran in unions(walks(&flow).into_iter().map(|walk| walk.1)) {
            let promised = read_bits(&flow, probes, ran);
            prop_assert_ne!(promised.trust, Trust::Foreign);
            let warned = read_bits(&cut, probes, ran);
            prop_assert_eq!(warned.trust, Trust::AsPromised);
            for node in flow.nodes() {
                let verdict = promised.verdicts[node.index()];
                let conditional = Basis::InferredIfWhole;
                let firm = ![Verdict::Ran(conditional), Verdict::NotRun(conditional)].contains(&verdict);
                prop_assert!(!firm || is_true(verdict, node, ran), "{:?} of {:b}", node, ran);
                prop_assert!(is_true(warned.verdicts[node.index()], node, ran));
            }
        }
    }

    #[test]
    fn complete_placements_leave_nothing_unknown(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
        let (graph, ending, stops, _) = case(&bytes, 7);
        let flow = Flow::new(&graph, ending, |node| stops[node.index()]);
        let refused = bytes.first().copied().unwrap_or(0);
        let placement = reduced(&flow, |node| (refused >> node.0 & 1 == 0).then_some(1));
        let probes = placement.probes.iter().fold(0, |bits, node| bits | 1 << node.0);
        for ran in walks(&flow).into_iter().filter(|walk| walk.0).map(|walk| walk.1) {
            let reading = read_bits(&flow, probes, ran);
            for node in flow.nodes() {
                let verdict = reading.verdicts[node.index()];
                prop_assert!(is_true(verdict, node, ran));
                let known = verdict != Verdict::Unknown;
                prop_assert!(known || placement.fates[node.index()] == Fate::Unobservable);
            }
        }
    }
}

/// Adds the nodes of the subdivision that one activation passes: it ends where it may, or goes round for ever.
fn activation(entropy: &mut Entropy<'_>, graph: &FlowGraph, stops: &[bool], ran: &mut [bool]) {
    let blocks = graph.node_count();
    let mut node = graph.entry();
    let mut turned = vec![false; blocks];
    for step in 0.. {
        ran[node.index()] = true;
        let may_end = graph.is_exit(node) || stops[node.index()];
        let hops: Vec<_> = graph.out_edges(node).collect();
        if hops.is_empty() || (may_end && entropy.below(2) == 0) {
            return;
        }
        let hop = hops[entropy.below(hops.len())];
        // After some steps it does at each node what it did there before, so that a node met again is one of a loop.
        if step >= 8 && std::mem::replace(&mut turned[node.index()], true) {
            return;
        }
        ran[blocks + hop.edge.index()] = true;
        node = hop.node;
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(20_000))]

    #[test]
    fn what_is_said_of_edges_is_true_of_runs_that_never_end(
        bytes in prop::collection::vec(any::<u8>(), 0..160),
        probes in any::<u64>(),
    ) {
        let mut entropy = Entropy::new(&bytes);
        let graph = generate(&mut entropy, 7);
        let stops: Vec<bool> = graph.nodes().map(|_| entropy.below(4) == 1).collect();
        let flow = Flow::new(&graph, Ending::AtStops, |node| stops[node.index()]);
        let divided = Subdivision::of(&flow).expect("small");
        let mut ran = vec![false; divided.flow().node_count()];
        for _ in 0..=entropy.below(3) {
            activation(&mut entropy, &graph, &stops, &mut ran);
        }
        let reading = read(divided.flow(), |node| {
            match (probes >> (node.0 % 64) & 1, ran[node.index()]) {
                (0, _) => Mark::None,
                (_, false) => Mark::Silent,
                (_, true) => Mark::Hit,
            }
        });
        prop_assert_eq!(reading.trust, Trust::AsPromised);
        for node in divided.flow().nodes() {
            let claimed = match reading.verdicts[node.index()] {
                Verdict::Ran(_) => Some(true),
                Verdict::NotRun(_) => Some(false),
                Verdict::Unknown => None,
            };
            prop_assert!(claimed.is_none_or(|claim| claim == ran[node.index()]), "{:?}", divided.unit(node));
        }
    }
}

#[test]
fn a_loop_whose_last_test_never_fails_went_on_by_it() {
    // 1 is the loop's head; 2 goes round at once, or by 3, which did not run.
    let graph = graph(5, &[(0, 1), (1, 2), (1, 4), (2, 3), (2, 1), (3, 1)]);
    let divided = Subdivision::of(&Flow::new(&graph, Ending::AtStops, |_| false)).expect("small");
    let reading = read(divided.flow(), |node| match divided.unit(node) {
        Unit::Edge(_) => Mark::None,
        Unit::Block(NodeId(3)) => Mark::Silent,
        Unit::Block(_) => Mark::Hit,
    });
    let round = divided.node(Unit::Edge(tomo_graph::EdgeId(4)));
    let said = reading.verdicts[round.index()];
    assert_eq!(said, Verdict::Ran(Basis::InferredIfWhole));
}

fn graph(nodes: usize, edges: &[(u32, u32)]) -> FlowGraph {
    let edges = edges.iter().map(|&(from, to)| (NodeId(from), NodeId(to)));
    FlowGraph::new(nodes, NodeId(0), edges).expect("a graph")
}

#[test]
fn a_cut_run_shows_itself() {
    // Probes at 1 and 3; 1 leads to 3 always, yet 3 was not hit.
    let graph = graph(4, &[(0, 1), (1, 3), (0, 2)]);
    let flow = Flow::new(&graph, Ending::AtExits, |_| false);
    let reading = read_bits(&flow, 0b1010, 0b0011);
    assert_eq!(reading.trust, Trust::Cut);
    assert_eq!(reading.verdicts[0], Verdict::Ran(Basis::Inferred));
    assert_eq!(reading.verdicts[1], Verdict::Ran(Basis::Observed));
    assert_eq!(reading.verdicts[2], Verdict::Unknown);
    assert_eq!(reading.verdicts[3], Verdict::NotRun(Basis::Observed));
}

#[test]
fn a_record_that_fits_no_run_is_not_believed_beyond_its_probes() {
    let graph = graph(3, &[(0, 1), (1, 2)]);
    let flow = Flow::new(&graph, Ending::AtExits, |_| false);
    let reading = read_bits(&flow, 0b101, 0b100);
    assert_eq!(reading.trust, Trust::Foreign);
    assert_eq!(reading.verdicts[1], Verdict::Unknown);
}

#[test]
fn silence_tells_too() {
    // 3 ran and 1 did not, so 2 did; nobody could say so if 1 had run as well.
    let graph = graph(4, &[(0, 1), (0, 2), (1, 3), (2, 3)]);
    let flow = Flow::new(&graph, Ending::AtExits, |_| false);
    let reading = read_bits(&flow, 0b1010, 0b1101);
    assert_eq!(reading.verdicts[2], Verdict::Ran(Basis::Inferred));
    let reading = read_bits(&flow, 0b1010, 0b1011);
    assert_eq!(reading.verdicts[2], Verdict::Unknown);
}

#[test]
fn edges_are_read_on_the_subdivided_graph() {
    let graph = graph(3, &[(0, 1), (0, 2), (1, 2)]);
    let divided = Subdivision::of(&Flow::new(&graph, Ending::Anywhere, |_| true)).expect("small");
    let placement = edges(&divided, |_| Some(1));
    let ran = [
        Unit::Block(NodeId(0)),
        Unit::Block(NodeId(1)),
        Unit::Block(NodeId(2)),
    ];
    let reading = read(divided.flow(), |node| {
        match placement.divided.probes.contains(&node) {
            false => Mark::None,
            true if ran.contains(&divided.unit(node))
                || divided.unit(node) == Unit::Edge(tomo_graph::EdgeId(0)) =>
            {
                Mark::Hit
            }
            true => Mark::Silent,
        }
    });
    let edge = |k| reading.verdicts[divided.node(Unit::Edge(tomo_graph::EdgeId(k))).index()];
    assert!(matches!(edge(0), Verdict::Ran(_)));
    assert!(matches!(edge(1), Verdict::NotRun(Basis::Observed)));
    assert!(matches!(edge(2), Verdict::Ran(Basis::Inferred)));
}
