//! Worked examples: BL96 Figures 1 and 5, SPP Figures 1 to 5, and the smallest failure of SPP.

use super::*;
use tomo_plan::paths::selective::{Selection, phase_1, phase_3, published};
use tomo_plan::paths::{Increments, Interest, Numbering, PathPlan, Policy, Storage, verify};

/// BL96, Figure 1: A to F as 0 to 5, edges in the order in which the figure numbers them.
fn figure_1() -> FlowGraph {
    let [a, b, c, d, e, f] = [0, 1, 2, 3, 4, 5];
    graph(
        6,
        &[
            (a, c),
            (a, b),
            (b, c),
            (b, d),
            (c, d),
            (d, f),
            (d, e),
            (e, f),
        ],
    )
}

/// The ways of the path over these blocks, which a way starts at, from the exit of the last.
fn over(dag: &PathDag, graph: &FlowGraph, blocks: &[u32]) -> Vec<ArcId> {
    let mut arcs = vec![dag.start_at(NodeId(blocks[0])).expect("a start")];
    for two in blocks.windows(2) {
        let here = dag.node_of(NodeId(two[0])).expect("reachable");
        let leads = |id: &ArcId| match dag.arc(*id).way {
            Way::Edge(edge) => graph.target(edge) == NodeId(two[1]),
            _ => false,
        };
        arcs.push(dag.out(here).find(leads).expect("an edge"));
    }
    let last = dag
        .node_of(NodeId(blocks[blocks.len() - 1]))
        .expect("reachable");
    arcs.extend(dag.out(last).find(|&id| dag.arc(id).to == dag.sink()));
    arcs
}

/// The table of Figure 1: six paths and their encodings.
#[test]
fn ball_larus_1996_figure_1_encodings() {
    let graph = figure_1();
    let dag = PathDag::of(&graph);
    let numbering = Numbering::of(&dag).expect("few paths");
    let table: [(&[u32], u64); 6] = [
        (&[0, 2, 3, 5], 0),
        (&[0, 2, 3, 4, 5], 1),
        (&[0, 1, 2, 3, 5], 2),
        (&[0, 1, 2, 3, 4, 5], 3),
        (&[0, 1, 3, 5], 4),
        (&[0, 1, 3, 4, 5], 5),
    ];
    assert_eq!(numbering.total(), 6);
    for (blocks, number) in table {
        assert_eq!(
            numbering.number(&over(&dag, &graph, blocks)),
            number,
            "{blocks:?}"
        );
    }
}

/// Figure 1's instrumentation: on A→C r = 0, on B→C r = 2, on B→D r = 4, on D→E r += 1. The count
/// is merged further up than the figure shows it, by the optimisation of §3.3.
#[test]
fn ball_larus_1996_figure_1_probes() {
    let graph = figure_1();
    let chords = [EdgeId(0), EdgeId(2), EdgeId(3), EdgeId(6)];
    let weight = |arc| match arc {
        FlowArc::Edge(edge) if chords.contains(&edge) => Weight::Finite(1),
        _ => Weight::Finite(2),
    };
    let policy = Policy {
        array: 100,
        beyond: tomo_plan::paths::Beyond::Hash,
    };
    let plan = PathPlan::new(&graph, policy, weight).expect("few paths");
    let probe = |edge, op| Probe {
        at: FlowArc::Edge(EdgeId(edge)),
        ops: vec![op],
    };
    let expected = [
        probe(0, Op::Set(0)),
        probe(2, Op::Set(2)),
        probe(3, Op::Set(4)),
        probe(5, Op::Count(0)),
        probe(6, Op::Count(1)),
    ];
    assert_eq!(plan.probes(), expected);
    assert_eq!(plan.storage(), Storage::Array(6));
    assert_eq!(verify(&plan), Ok(()));
    // The sums that the increments on the chords alone give are those of the table.
    let increments: Vec<u64> = chords
        .iter()
        .filter_map(|&edge| {
            let mut ids = plan.dag().ids();
            ids.find(|&id| plan.dag().arc(id).way == Way::Edge(edge))
        })
        .map(|id| plan.increments().of_arc(id))
        .collect();
    assert_eq!(increments, [0, 2, 4, 1]);
}

/// SPP, Figure 1 (a), nodes 1 to 8 as 0 to 7: a branch, and a loop from 7 back to 4.
fn spp_graph() -> FlowGraph {
    graph(
        8,
        &[
            (0, 1),
            (0, 2),
            (1, 3),
            (2, 3),
            (3, 4),
            (3, 7),
            (4, 5),
            (4, 6),
            (5, 6),
            (6, 3),
        ],
    )
}

/// SPP, Figure 1 (b), drawn as it stands: with the dummy edges 1→4 and 7→8.
fn spp_dag() -> FlowGraph {
    let edges = [
        (0, 1),
        (0, 2),
        (0, 3),
        (1, 3),
        (2, 3),
        (3, 4),
        (3, 7),
        (4, 5),
        (4, 6),
        (5, 6),
        (6, 7),
    ];
    graph(8, &edges)
}

/// SPP §2: NumPaths(5) = 2, Val(5,7) = 1 where (5,6) is visited first; nine paths in all, from the
/// graph with its loop and from the drawn one alike.
#[test]
fn spp_figure_1() {
    for graph in [spp_graph(), spp_dag()] {
        let dag = PathDag::of(&graph);
        let numbering = Numbering::of(&dag).expect("few paths");
        assert_eq!(numbering.total(), 9);
        let five = dag.node_of(NodeId(4)).expect("reachable");
        let values: Vec<u64> = dag.out(five).map(|id| numbering.value(id)).collect();
        assert_eq!(values, [0, 1]);
    }
}

/// SPP §3 and Figure 5: paths of interest 1,2,4,5,7,8 and 1,4,5,7,8, in the drawn graph.
#[test]
fn spp_figure_5() {
    let graph = spp_dag();
    let dag = PathDag::of(&graph);
    let of_interest = [
        over(&dag, &graph, &[0, 1, 3, 4, 6, 7]),
        over(&dag, &graph, &[0, 3, 4, 6, 7]),
    ];
    let interest = Interest::of(&dag, &of_interest).expect("paths of the graph");
    let by_edge = |values: &[u64]| -> Vec<u64> {
        let mut row = vec![0; graph.edge_count()];
        for id in dag.ids() {
            if let Way::Edge(edge) = dag.arc(id).way {
                row[edge.index()] = values[id.index()];
            }
        }
        row
    };
    // (a): 1→2 is 3, 1→4 is 6, 4→5 is 1, 5→7 is 1.
    let mut values = phase_1(&dag, &interest).expect("few paths");
    assert_eq!(by_edge(&values), [3, 0, 6, 0, 0, 1, 0, 0, 1, 0, 0]);
    // (b): 1→2 has gone down to 2→4; 4→5 to 5→7 and over 5→6 to 6→7.
    published::phase_2(&dag, &mut values);
    assert_eq!(by_edge(&values), [0, 0, 6, 3, 0, 0, 0, 0, 2, 1, 0]);
    // (c): 6→7 is cleared.
    phase_3(&dag, &interest, &mut values);
    assert_eq!(by_edge(&values), [0, 0, 6, 3, 0, 0, 0, 0, 2, 0, 0]);
    assert_eq!(published::values(&dag, &interest), Ok(values.clone()));
    let sum = |path: &[ArcId]| path.iter().map(|id| values[id.index()]).sum::<u64>();
    assert_eq!(of_interest.each_ref().map(|path| sum(path)), [5, 8]);
    // Ours needs no more probes: three.
    let selection = Selection::new(&dag, interest, |_| Weight::Finite(1)).expect("small sums");
    assert!(selection.probes() <= 3, "{:?}", selection.increments());
}

/// The smallest case in which the published algorithm fails, and the corrected one does not.
#[test]
fn published_phase_2_breaks_the_promise() {
    let graph = graph(5, &[(0, 1), (0, 2), (1, 3), (2, 3), (2, 4), (3, 4)]);
    let dag = PathDag::of(&graph);
    let [short, long] = [&[0, 2, 4][..], &[0, 1, 3, 4]].map(|blocks| over(&dag, &graph, blocks));
    let other = over(&dag, &graph, &[0, 2, 3, 4]);
    let interest = Interest::of(&dag, [&short, &long]).expect("paths of the graph");
    let values = published::values(&dag, &interest).expect("few paths");
    let sum = |path: &[ArcId]| path.iter().map(|id| values[id.index()]).sum::<u64>();
    assert_eq!(sum(&other), sum(&long));
    let selection = Selection::new(&dag, interest, |_| Weight::Finite(1)).expect("small sums");
    let sums = [&short, &long, &other].map(|path| selection.sum(path));
    assert!(
        sums[0] != sums[1] && sums[0] != sums[2] && sums[1] != sums[2],
        "{sums:?}"
    );
    let ranges = selection.ranges(&dag);
    assert_eq!(selection.path(&dag, &ranges, sums[1]), Some(long));
    assert_eq!(selection.path(&dag, &ranges, sums[2]), None);
}

/// BL96's remark on potentials, by hand: moving values leaves the sum of every path.
#[test]
fn moved_values_keep_every_sum() {
    let graph = figure_1();
    let dag = PathDag::of(&graph);
    let numbering = Numbering::of(&dag).expect("few paths");
    let weights = vec![Weight::Finite(1); dag.arcs().len()];
    let increments = Increments::of(&dag, numbering.values(), &weights);
    for path in all_paths(&dag, 10).expect("six paths") {
        let sum = path
            .iter()
            .fold(0u64, |sum, &id| sum.wrapping_add(increments.of_arc(id)));
        assert_eq!(sum, numbering.number(&path));
    }
    assert_eq!(dag.ids().filter(|&id| increments.is_chord(id)).count(), 4);
}
