//! Selections: the promise by brute force over all paths of random graphs; how often the published
//! algorithm breaks it; what runs leave in the table; the residual.

use super::*;
use proptest::collection::vec;
use std::collections::BTreeSet;
use tomo_graph::check::generate;
use tomo_plan::paths::selective::{Selection, compact, printed, published};
use tomo_plan::paths::{Interest, Numbering, PathError};

/// The paths whose sums are shared although all their ways are of interest.
fn broken<'p>(paths: &'p [Vec<ArcId>], interest: &Interest, values: &[u64]) -> Vec<&'p [ArcId]> {
    let sum = |path: &[ArcId]| {
        let values = path.iter().map(|id| values[id.index()]);
        values.fold(0, u64::wrapping_add)
    };
    let mut shared: BTreeMap<u64, usize> = BTreeMap::new();
    for path in paths {
        *shared.entry(sum(path)).or_default() += 1;
    }
    let is_broken = |path: &&Vec<ArcId>| interest.has_path(path) && shared[&sum(path)] > 1;
    paths.iter().filter(is_broken).map(Vec::as_slice).collect()
}

/// A graph, all its paths, and some of them as those of interest.
struct Instance {
    graph: FlowGraph,
    dag: PathDag,
    paths: Vec<Vec<ArcId>>,
    interest: Interest,
}

fn instance(entropy: &mut Entropy<'_>, nodes: usize) -> Option<Instance> {
    let graph = generate(entropy, nodes);
    let dag = PathDag::of(&graph);
    let paths = all_paths(&dag, 600)?;
    let count = 1 + entropy.below(5);
    let chosen: Vec<_> = (0..count)
        .map(|_| (entropy.below(256) << 8 | entropy.below(256)) % paths.len())
        .map(|at| &paths[at])
        .collect();
    let interest = Interest::of(&dag, &chosen).expect("paths of the graph");
    Some(Instance {
        graph,
        dag,
        paths,
        interest,
    })
}

/// A random graph without loops: one edge upwards from every node but the last, and of the others
/// one in three.
fn random_dag(entropy: &mut Entropy<'_>, nodes: u32) -> FlowGraph {
    let mut edges = Vec::new();
    for from in 0..nodes - 1 {
        let kept = from + 1 + entropy.below((nodes - 1 - from) as usize) as u32;
        let upwards = (from + 1..nodes).map(|to| (from, to));
        edges.extend(upwards.filter(|edge| edge.1 == kept || entropy.below(3) == 0));
    }
    graph(nodes as usize, &edges)
}

/// Bytes out of a linear congruential generator.
fn bytes(state: &mut u64, count: usize) -> Vec<u8> {
    let step = |_| {
        let next = state.wrapping_mul(6_364_136_223_846_793_005);
        *state = next.wrapping_add(1_442_695_040_888_963_407);
        (*state >> 56) as u8
    };
    (0..count).map(step).collect()
}

proptest! {
    #![proptest_config(config(3000))]

    /// The promise holds of the values, and of the increments that probes carry out.
    #[test]
    fn selected_sums_are_shared_with_no_path(bytes in vec(any::<u8>(), 0..160)) {
        let mut entropy = Entropy::new(&bytes);
        let Some(case) = instance(&mut entropy, 12) else { return Ok(()) };
        let Instance { dag, paths, interest, .. } = &case;
        let weigh = weights(&mut entropy, true);
        let nothing: Vec<&[ArcId]> = Vec::new();
        let by_print = printed(dag, interest).expect("few paths");
        let moved = Selection::with_values(dag, interest.clone(), by_print.clone(), &weigh);
        let ours = Selection::new(dag, interest.clone(), &weigh).expect("small sums");
        prop_assert_eq!(ours.values(), compact(dag, interest).expect("small sums"));
        for selection in [&moved, &ours] {
            prop_assert_eq!(&broken(paths, interest, selection.values()), &nothing);
            for id in dag.ids().filter(|&id| !interest.has(id)) {
                prop_assert_eq!(selection.increments().of_arc(id), 0, "outside EI");
            }
            let ranges = selection.ranges(dag);
            for path in paths {
                let add = |sum: u64, &id: &ArcId| sum.wrapping_add(selection.increments().of_arc(id));
                let sum = path.iter().fold(0, add);
                prop_assert_eq!(sum, selection.sum(path));
                let selected = interest.has_path(path).then(|| path.clone());
                prop_assert_eq!(selection.path(dag, &ranges, sum), selected);
            }
        }
        // Moving never costs more than leaving things where they are. (A start behind several
        // broken edges weighs as much as these.)
        let unmoved = by_print.iter().filter(|&&value| value != 0).count();
        let counted = Selection::with_values(dag, interest.clone(), by_print, |_| Weight::Finite(1));
        let has_loop = dag.arcs().iter().any(|arc| matches!(arc.way, Way::Break(..)));
        prop_assert!(has_loop || counted.probes() <= unmoved);
    }

    /// What the probes leave in the table of random executions, among rubbish of other paths.
    #[test]
    fn selected_paths_are_counted_when_they_run(bytes in vec(any::<u8>(), 0..240)) {
        let mut entropy = Entropy::new(&bytes);
        let Some(Instance { graph, dag, interest, .. }) = instance(&mut entropy, 10) else {
            return Ok(());
        };
        let selection = Selection::new(&dag, interest, weights(&mut entropy, false));
        let selection = selection.expect("small sums");
        let ops = selection.ops(&dag);
        let (mut machine, mut truth) = (Machine::new(), BTreeMap::new());
        for _ in 0..4 {
            let mut known = 0;
            execute(&graph, &dag, &mut entropy, 60, |_, done, running, _| {
                let ended: &[ArcId] = done.unwrap_or_default();
                let ways = ended.iter().skip(known).chain(running.iter().skip(
                    if ended.is_empty() { known } else { 0 },
                ));
                ways.filter_map(|id| ops[id.index()]).for_each(|op| machine.run(op));
                known = running.len();
                if done.is_some_and(|done| selection.interest().has_path(done)) {
                    *truth.entry(ended.to_vec()).or_insert(0u64) += 1;
                }
            });
        }
        let ranges = selection.ranges(&dag);
        let counts = machine.counts.iter();
        let decoded: BTreeMap<_, _> = counts
            .filter_map(|(&sum, &count)| Some((selection.path(&dag, &ranges, sum)?, count)))
            .collect();
        prop_assert_eq!(decoded, truth);
    }

    /// The residual is the ways of all paths that were not seen.
    #[test]
    fn the_residual_is_what_is_left(bytes in vec(any::<u8>(), 0..160)) {
        let mut entropy = Entropy::new(&bytes);
        let Some(Instance { dag, paths, .. }) = instance(&mut entropy, 10) else { return Ok(()) };
        let seen: BTreeSet<_> = paths.iter().filter(|_| entropy.below(3) > 0).collect();
        let twice = seen.iter().chain(&seen);
        let residual = Interest::unseen(&dag, twice).expect("paths of the graph");
        let left = paths.iter().filter(|path| !seen.contains(path));
        prop_assert_eq!(&residual, &Interest::of(&dag, left).expect("paths of the graph"));
        prop_assert_eq!(residual.is_empty(), seen.len() == paths.len());
    }
}

/// Six paths of interest in random graphs of six to eight nodes without loops: the published
/// algorithm fails on two or three in a hundred (fewer paths fail less often, a single one never did);
/// phases 1 and 3 alone, and ours, on none.
#[test]
fn the_published_algorithm_fails_on_a_few_in_a_hundred() {
    let (mut failed, mut state) = (0, 7);
    for tried in 0..3000 {
        let bytes = bytes(&mut state, 200);
        let mut entropy = Entropy::new(&bytes);
        let graph = random_dag(&mut entropy, 6 + tried % 3);
        let dag = PathDag::of(&graph);
        let paths = all_paths(&dag, 600).expect("few paths");
        let chosen = (0..6).map(|_| &paths[entropy.below(paths.len())]);
        let interest = Interest::of(&dag, chosen).expect("paths of the graph");
        let values = published::values(&dag, &interest).expect("few paths");
        failed += u32::from(!broken(&paths, &interest, &values).is_empty());
        let kept = printed(&dag, &interest).expect("few paths");
        assert!(broken(&paths, &interest, &kept).is_empty());
        let ours = Selection::new(&dag, interest.clone(), |_| Weight::Finite(1));
        let ours = ours.expect("small sums");
        assert!(broken(&paths, &interest, ours.values()).is_empty());
    }
    assert!((30..180).contains(&failed), "{failed} of 3000");
}

/// One path of interest among 2^100: the printed values do not fit, compact ones do.
#[test]
fn one_path_among_too_many() {
    let graph = chain_of_diamonds(100);
    let dag = PathDag::of(&graph);
    assert!(Numbering::of(&dag).is_err());
    let mut path = Vec::new();
    let mut node = DagNode::SOURCE;
    while node != dag.sink() {
        let id = dag.out(node).last().expect("a way");
        path.push(id);
        node = dag.arc(id).to;
    }
    let interest = Interest::of(&dag, [&path]).expect("a path");
    assert_eq!(
        printed(&dag, &interest),
        Err(PathError::TooMany(Some(1 << 100)))
    );
    let selection = Selection::new(&dag, interest, |_| Weight::Finite(1)).expect("small sums");
    assert_eq!(selection.sum(&path), 100);
    let ranges = selection.ranges(&dag);
    assert_eq!(selection.path(&dag, &ranges, 100), Some(path.clone()));
    assert_eq!(selection.path(&dag, &ranges, 99), None);
    // All of them are of interest: that needs a number for each.
    let all = Selection::new(&dag, Interest::all(&dag), |_| Weight::Finite(1));
    assert_eq!(all.expect_err("too many"), PathError::SumsTooLarge);
    // The residual of so many is all of them, by counting and not by listing.
    let unseen = Interest::unseen(&dag, [&path]).expect("a path");
    assert_eq!(unseen, Interest::all(&dag));
    assert_eq!(
        Interest::of(&dag, [&path[1..]]),
        Err(PathError::NoSuchPath(0))
    );
}
