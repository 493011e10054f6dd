//! Coverage placement against all executions of small graphs.

#[path = "coverage/executions.rs"]
mod executions;

use executions::Executions;
use proptest::prelude::*;
use tomo_graph::check::{Entropy, generate};
use tomo_graph::{FlowGraph, Graph, NodeId};
use tomo_plan::coverage::{
    Cost, Ending, Fate, Flaw, Flow, Placement, Subdivision, Unit, all_blocks, check, edges,
    entered_at, functions, place, reduced,
};

const ENDINGS: [Ending; 3] = [Ending::Anywhere, Ending::AtStops, Ending::AtExits];

fn graph(nodes: usize, edges: &[(u32, u32)]) -> FlowGraph {
    let edges = edges.iter().map(|&(from, to)| (NodeId(from), NodeId(to)));
    FlowGraph::new(nodes, NodeId(0), edges).expect("a graph")
}

fn by_exits(graph: &FlowGraph) -> Flow<'_> {
    Flow::new(graph, Ending::AtExits, |_| false)
}

fn ids(nodes: &[u32]) -> Vec<NodeId> {
    nodes.iter().copied().map(NodeId).collect()
}

fn cheap(_: NodeId) -> Cost {
    Some(1)
}

/// A graph, an ending, and what each block costs.
#[derive(Debug)]
struct Case {
    graph: FlowGraph,
    ending: Ending,
    stops: Vec<bool>,
    costs: Vec<Cost>,
    asked: Vec<bool>,
}

impl Case {
    fn of(bytes: &[u8], most: usize) -> Self {
        let mut entropy = Entropy::new(bytes);
        let graph = generate(&mut entropy, most);
        let ending = ENDINGS[entropy.below(3)];
        let units = graph.node_count() + graph.edge_count();
        let mut flags = |one_in| (0..units).map(|_| entropy.below(one_in) == 1).collect();
        let (stops, refused, asked): (_, Vec<bool>, Vec<bool>) = (flags(4), flags(5), flags(3));
        let patchable = entropy.below(2) == 0;
        let cost = |refused: bool| (patchable || !refused).then(|| 1 + entropy.below(4) as u32);
        Self {
            costs: refused.into_iter().map(cost).collect(),
            graph,
            ending,
            stops,
            asked,
        }
    }

    fn flow(&self) -> Flow<'_> {
        Flow::new(&self.graph, self.ending, |node| self.stops[node.index()])
    }

    fn cost(&self, node: NodeId) -> Cost {
        self.costs[node.index()]
    }

    fn total(&self, placement: &Placement) -> u64 {
        let cost = |&node: &NodeId| u64::from(self.cost(node).unwrap_or(0));
        placement.probes.iter().map(cost).sum()
    }
}

fn probe_bits(placement: &Placement) -> u32 {
    placement
        .probes
        .iter()
        .fold(0, |bits, node| bits | 1 << node.0)
}

/// What the placement promises, decided by all executions; and the checker must agree.
fn promises_hold(flow: &Flow<'_>, placement: &Placement) -> Result<(), TestCaseError> {
    prop_assert_eq!(check(flow, placement), Ok(()));
    let executions = Executions::of(flow);
    for node in flow.nodes() {
        if placement.fates[node.index()] == Fate::Inferred {
            prop_assert!(
                executions.determine(probe_bits(placement), node),
                "{node:?}"
            );
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(8000))]

    #[test]
    fn what_is_inferred_follows_in_all_executions(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
        let case = Case::of(&bytes, 7);
        let flow = case.flow();
        let asked = |node: NodeId| case.asked[node.index()];
        for placement in [
            reduced(&flow, |node| case.cost(node)),
            functions(&flow, |node| case.cost(node)),
            place(&flow, |node| case.cost(node), asked),
        ] {
            promises_hold(&flow, &placement)?;
        }
    }

    #[test]
    fn no_cheaper_placement_determines_as_much(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
        let mut case = Case::of(&bytes, 6);
        case.costs.iter_mut().for_each(|cost| *cost = cost.or(Some(2)));
        let flow = case.flow();
        let placement = reduced(&flow, |node| case.cost(node));
        prop_assert_eq!(placement.unobservable().count(), 0);
        let executions = Executions::of(&flow);
        let bound = case.total(&placement);
        for probes in 0..1u32 << flow.node_count() {
            let cost: u64 = flow
                .nodes()
                .filter(|node| probes >> node.0 & 1 == 1)
                .map(|node| u64::from(case.cost(node).unwrap_or(0)))
                .sum();
            let live = |node: &NodeId| placement.fates[node.index()] != Fate::Probed || executions.ever(*node);
            let all = flow.nodes().filter(live).all(|node| executions.determine(probes, node));
            prop_assert!(!all || cost + unreachable_cost(&case, &executions) >= bound, "{probes:b}");
        }
    }

    #[test]
    fn the_checker_is_right_of_any_set(bytes in prop::collection::vec(any::<u8>(), 0..64), probes: u32) {
        let case = Case::of(&bytes, 7);
        let flow = case.flow();
        let executions = Executions::of(&flow);
        for node in flow.nodes().filter(|node| probes >> node.0 & 1 == 0) {
            let fate = |other: NodeId| match other {
                _ if other == node => Fate::Inferred,
                _ if probes >> other.0 & 1 == 1 => Fate::Probed,
                _ => Fate::Unasked,
            };
            let placement = Placement {
                probes: flow.nodes().filter(|n| probes >> n.0 & 1 == 1).collect(),
                fates: flow.nodes().map(fate).collect(),
            };
            let known = executions.determine(probes, node);
            let verdict = check(&flow, &placement);
            prop_assert_eq!(verdict, if known { Ok(()) } else { Err(Flaw::Unknown(node)) });
        }
    }

    #[test]
    fn edges_follow_in_all_executions(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
        let case = Case::of(&bytes, 5);
        prop_assume!(case.costs.len() <= 14);
        let divided = Subdivision::of(&case.flow()).expect("small");
        let placement = edges(&divided, |unit| case.cost(divided.node(unit)));
        promises_hold(divided.flow(), &placement.divided)?;
    }

    #[test]
    fn the_list_of_probes_is_what_the_fates_say(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let case = Case::of(&bytes, 40);
        let flow = case.flow();
        for placement in [
            reduced(&flow, |node| case.cost(node)),
            all_blocks(&case.graph, |node| case.cost(node)),
        ] {
            prop_assert_eq!(check(&flow, &placement), Ok(()));
            prop_assert!(placement.probes.iter().all(|&node| case.cost(node).is_some()));
        }
    }
}

fn unreachable_cost(case: &Case, executions: &Executions) -> u64 {
    let never = |node: &NodeId| !executions.ever(*node);
    let cost = |node| u64::from(case.cost(node).unwrap_or(0));
    case.graph.nodes().filter(never).map(cost).sum()
}

#[test]
fn a_diamond_needs_its_two_sides() {
    let graph = graph(4, &[(0, 1), (0, 2), (1, 3), (2, 3)]);
    let placement = reduced(&by_exits(&graph), cheap);
    assert_eq!(placement.probes, ids(&[1, 2]));
}

#[test]
fn a_join_is_known_from_above_where_a_bypass_hides_it_from_below() {
    // 3 is run exactly by 1 or 2; it leads into 5, as does 4. The classic rule, downwards only,
    // probes 3 too, since 3 leads to a block that it does not dominate.
    let graph = graph(6, &[(0, 1), (0, 2), (0, 4), (1, 3), (2, 3), (3, 5), (4, 5)]);
    let placement = reduced(&by_exits(&graph), cheap);
    assert_eq!(placement.probes, ids(&[1, 2, 4]));
}

#[test]
fn cut_anywhere_every_block_needs_its_probe() {
    let graph = graph(5, &[(0, 1), (0, 2), (1, 3), (2, 3), (3, 4), (3, 0)]);
    let flow = Flow::new(&graph, Ending::Anywhere, |_| false);
    assert_eq!(reduced(&flow, cheap).probes.len(), 5);
}

#[test]
fn a_call_that_may_not_return_parts_what_is_before_from_what_is_behind() {
    let graph = graph(4, &[(0, 1), (1, 2), (2, 3)]);
    let flow = Flow::new(&graph, Ending::AtStops, |node| node == NodeId(1));
    assert_eq!(reduced(&flow, cheap).probes, ids(&[1, 3]));
}

#[test]
fn a_short_block_is_seen_by_its_neighbour() {
    let graph = graph(4, &[(0, 1), (0, 2), (1, 3), (3, 2)]);
    let cost = |node: NodeId| Some(if node == NodeId(3) { 1 } else { 9 });
    let placement = reduced(&by_exits(&graph), cost);
    // 0 and 2 share a super block too; of equal prices the later one tells more if a run is cut.
    assert_eq!(placement.probes, ids(&[2, 3]));
    let refused = |node: NodeId| (node != NodeId(3)).then_some(9);
    assert_eq!(reduced(&by_exits(&graph), refused).probes, ids(&[1, 2]));
}

#[test]
fn what_cannot_be_known_is_said_to_be_unobservable() {
    let graph = graph(4, &[(0, 1), (0, 2), (1, 3), (2, 3)]);
    let placement = reduced(&by_exits(&graph), |node| (node != NodeId(1)).then_some(1));
    assert_eq!(placement.unobservable().collect::<Vec<_>>(), ids(&[1]));
    assert_eq!(placement.probes, ids(&[2, 3]));
}

#[test]
fn a_function_that_cannot_be_patched_at_its_entry_is_seen_behind_it() {
    let graph = graph(4, &[(0, 1), (0, 2), (1, 3), (2, 2)]);
    let placement = functions(&by_exits(&graph), |node| (node != NodeId(0)).then_some(1));
    assert_eq!(placement.probes, ids(&[2, 3]));
    assert_eq!(placement.fates[0], Fate::Inferred);
}

#[test]
fn only_critical_edges_need_probes_of_their_own() {
    // if (0) { 1 } 2; 0→2 is critical: 0 has two ways out, 2 two ways in.
    let graph = graph(3, &[(0, 1), (0, 2), (1, 2)]);
    let divided = Subdivision::of(&by_exits(&graph)).expect("small");
    let placement = edges(&divided, |unit| match unit {
        Unit::Block(_) => Some(1),
        Unit::Edge(_) => Some(5),
    });
    let critical = Unit::Edge(tomo_graph::EdgeId(1));
    assert_eq!(placement.probes, [Unit::Block(NodeId(1)), critical]);
    assert_eq!(
        placement.edges,
        [Fate::Inferred, Fate::Probed, Fate::Inferred]
    );
}

#[test]
fn ways_into_the_middle_are_walks_too() {
    // Entered at 1 as well, and 3 is said to be out of reach but leads to 2.
    let graph = graph(4, &[(0, 1), (1, 2), (3, 2)]);
    let entered = entered_at(&graph, [NodeId(1)]).expect("small");
    assert_eq!(entered.entry(), NodeId(4));
    assert_eq!(entered.edges()[..3], graph.edges()[..]);
    let patchable = |node: NodeId| (node != NodeId(4)).then_some(1);
    let placement = reduced(&by_exits(&entered), patchable);
    assert_eq!(placement.probes, ids(&[0, 1, 3]));
    assert!(entered_at(&graph, [NodeId(4)]).is_err());
}

#[test]
fn a_placement_that_promises_too_much_is_refused() {
    let graph = graph(4, &[(0, 1), (0, 2), (1, 3), (2, 3)]);
    let flow = by_exits(&graph);
    let mut placement = reduced(&flow, cheap);
    placement.probes.push(NodeId(0));
    assert_eq!(check(&flow, &placement), Err(Flaw::Listing(NodeId(0))));
    placement.probes = ids(&[1]);
    placement.fates[2] = Fate::Inferred;
    assert_eq!(check(&flow, &placement), Err(Flaw::Unknown(NodeId(0))));
    placement.fates.pop();
    assert_eq!(check(&flow, &placement), Err(Flaw::Shape));
}
