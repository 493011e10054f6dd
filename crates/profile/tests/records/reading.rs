//! What is read of one function, held against all sets of walks of small graphs.

use proptest::prelude::*;
use std::collections::BTreeSet;
use tomo_graph::{FlowGraph, NodeId};
use tomo_profile::coverage::Mark;
use tomo_profile::merge::Finding;
use tomo_profile::units::{Findings, Marked, believe, infer};

/// A walk, as the blocks and edges it passes; the last block may be one that was only begun.
fn walk(graph: &FlowGraph, choices: &[u8]) -> (BTreeSet<usize>, BTreeSet<usize>) {
    let (mut blocks, mut edges) = (BTreeSet::from([0]), BTreeSet::new());
    let mut here = 0;
    for &choice in choices {
        let out: Vec<_> = (0..graph.edges().len())
            .filter(|&edge| graph.edges()[edge].0.index() == here)
            .collect();
        if out.is_empty() {
            break;
        }
        let edge = out[usize::from(choice) % out.len()];
        here = graph.edges()[edge].1.index();
        edges.insert(edge);
        blocks.insert(here);
    }
    (blocks, edges)
}

/// A graph of six blocks, some walks through it, and which units have probes.
fn runs() -> impl Strategy<Value = (FlowGraph, Vec<Vec<u8>>, Vec<bool>, Vec<bool>)> {
    let edges = prop::collection::vec((0..6_u32, 0..6_u32), 1..12);
    let walks = prop::collection::vec(prop::collection::vec(any::<u8>(), 0..9), 0..3);
    let probes = prop::collection::vec(any::<bool>(), 18);
    (edges, walks, probes).prop_map(|(edges, walks, mut blocks)| {
        let ends = edges
            .into_iter()
            .map(|(from, to)| (NodeId(from), NodeId(to)));
        let graph = FlowGraph::new(6, NodeId(0), ends).expect("nodes below six");
        let edges = blocks.split_off(6);
        (graph, walks, blocks, edges)
    })
}

fn marks(probes: &[bool], ran: &BTreeSet<usize>, count: usize) -> Vec<Mark> {
    let mark = |index: usize| match (probes[index], ran.contains(&index)) {
        (false, _) => Mark::None,
        (true, false) => Mark::Silent,
        (true, true) => Mark::Hit,
    };
    (0..count).map(mark).collect()
}

fn assert_true(found: &[Finding], ran: &BTreeSet<usize>) -> Result<(), TestCaseError> {
    for (index, finding) in found.iter().enumerate() {
        if let Some(said) = finding.ran() {
            prop_assert_eq!(said, ran.contains(&index), "{} is {:?}", index, finding);
        }
    }
    Ok(())
}

proptest! {
    /// Whatever was probed, and wherever the walks were cut: nothing that is said is false.
    #[test]
    fn what_is_said_of_cut_runs_is_true((graph, walks, blocks, edges) in runs()) {
        let (mut ran, mut passed) = (BTreeSet::new(), BTreeSet::new());
        for (blocks, edges) in walks.iter().map(|choices| walk(&graph, choices)) {
            ran.extend(blocks);
            passed.extend(edges);
        }
        let count = graph.edges().len();
        let (blocks, edges) = (marks(&blocks, &ran, 6), marks(&edges, &passed, count));
        let marked = Marked { blocks: &blocks, edges: &edges };
        let inferred = infer(&graph, |_| true, true, marked);
        let believed = believe(graph.edges().iter().copied(), marked);
        prop_assert!(inferred.fits);
        for Findings { blocks, edges, .. } in [&inferred, &believed] {
            prop_assert_eq!((blocks.len(), edges.len()), (6, count));
            assert_true(blocks, &ran)?;
            assert_true(edges, &passed)?;
        }
        // Inferring never says less.
        let known = |all: &Findings| all.blocks.iter().chain(&all.edges).filter(|it| it.ran().is_some()).count();
        prop_assert!(known(&inferred) >= known(&believed));
    }
}

/// One block with a probe on each side of a fork: the edges follow, in whole runs and in cut ones.
#[test]
fn edges_follow_from_blocks_that_only_they_enter() {
    let node = NodeId;
    let ends = [(node(0), node(1)), (node(0), node(2)), (node(1), node(2))];
    let graph = FlowGraph::new(3, node(0), ends).expect("small");
    let blocks = [Mark::Hit, Mark::Hit, Mark::Hit];
    let edges = [Mark::None; 3];
    let read = infer(
        &graph,
        |_| false,
        true,
        Marked {
            blocks: &blocks,
            edges: &edges,
        },
    );
    assert_eq!(read.edges[0], Finding::RanInferred, "the only way in");
    assert_eq!(read.edges[1], Finding::Unknown, "a critical edge");
    let blocks = [Mark::Hit, Mark::Silent, Mark::Hit];
    let read = infer(
        &graph,
        |_| false,
        false,
        Marked {
            blocks: &blocks,
            edges: &edges,
        },
    );
    let ran: Vec<_> = read.edges.iter().map(|edge| edge.ran()).collect();
    assert_eq!(ran, [Some(false), Some(true), Some(false)]);
}
