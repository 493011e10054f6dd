//! Plans for all paths, against paths written down and random executions.

use super::*;
use proptest::collection::vec;
use tomo_graph::check::generate;
use tomo_graph::{AcyclicPaths, PathCount};
use tomo_plan::paths::split::{SplitError, split};
use tomo_plan::paths::{Beyond, Numbering, PathError, PathPlan, Policy, Storage, verify};

const HASH: Policy = Policy {
    array: 64,
    beyond: Beyond::Hash,
};

proptest! {
    #![proptest_config(config(3000))]

    /// Numbers are those of the analysis that builds no graph, and each path has its own.
    #[test]
    fn numbers_are_those_of_the_paths(bytes in vec(any::<u8>(), 0..120)) {
        let graph = generate(&mut Entropy::new(&bytes), 14);
        let (dag, known) = (PathDag::of(&graph), AcyclicPaths::of(&graph));
        let numbering = Numbering::of(&dag).expect("small graphs");
        prop_assert_eq!(PathCount::Exact(numbering.total()), known.count());
        let Some(paths) = all_paths(&dag, 2000) else { return Ok(()) };
        let mut taken = vec![false; paths.len()];
        for arcs in paths {
            let number = numbering.number(&arcs);
            prop_assert!(!std::mem::replace(&mut taken[number as usize], true));
            let path = dag.path_along(&arcs).expect("a path");
            prop_assert_eq!(known.number(&path), Some(number));
            prop_assert_eq!(dag.arcs_of(&path), Some(arcs));
        }
    }

    /// What the probes count is what ran, whole or cut, and the register tells how far a path came.
    #[test]
    fn counted_is_what_ran(bytes in vec(any::<u8>(), 0..200)) {
        let mut entropy = Entropy::new(&bytes);
        let graph = generate(&mut entropy, 12);
        let weigh = weights(&mut entropy, true);
        let policy = Policy { array: 8, beyond: Beyond::Split(4 + entropy.below(12) as u64) };
        let plan = PathPlan::new(&graph, HASH, &weigh).into_iter();
        for plan in plan.chain(PathPlan::new(&graph, policy, &weigh)) {
            prop_assert_eq!(verify(&plan), Ok(()));
            check_runs(&graph, &plan, &mut entropy)?;
        }
    }

    /// No piece of a split function has more paths than asked for, what cannot be patched stays
    /// whole, and what cannot be split is said to be too wide.
    #[test]
    fn splits_keep_their_limit(bytes in vec(any::<u8>(), 0..160), limit in 1u64..20) {
        let mut entropy = Entropy::new(&bytes);
        let graph = generate(&mut entropy, 16);
        let weigh = weights(&mut entropy, true);
        match split(&graph, limit, &weigh) {
            Ok(breaks) => {
                let dag = PathDag::broken(&graph, |edge| breaks.contains(&edge));
                let numbering = Numbering::of(&dag).expect("few paths");
                let mut starts: Vec<u64> =
                    dag.out(DagNode::SOURCE).map(|id| numbering.value(id)).collect();
                starts.push(numbering.total());
                prop_assert!(starts.windows(2).all(|two| two[1] - two[0] <= limit));
                let unpatchable = |&edge| weigh(FlowArc::Edge(edge)) == Weight::Infinite;
                prop_assert!(!breaks.iter().any(unpatchable));
            }
            Err(SplitError::TooWide { node, paths, .. }) => {
                // Breaking every edge that can be broken, as many paths start there after all.
                prop_assert!(paths > u128::from(limit));
                let breakable = |edge| weigh(FlowArc::Edge(edge)) != Weight::Infinite;
                let dag = PathDag::broken(&graph, breakable);
                let numbering = Numbering::of(&dag).expect("few paths");
                let here = dag.node_of(node).expect("reachable");
                let ways = dag.out(here).map(|id| match dag.arc(id).to {
                    to if to == dag.sink() => 1,
                    to => paths_from(&dag, &numbering, to),
                });
                prop_assert!(ways.sum::<u64>() > limit);
            }
        }
    }
}

/// How many paths lead on from `node`, by the values of the ways: the last one's and what is behind.
fn paths_from(dag: &PathDag, numbering: &Numbering, node: DagNode) -> u64 {
    let (mut at, mut sum) = (node, 1);
    while let Some(last) = dag.out(at).last() {
        sum += numbering.value(last);
        at = dag.arc(last).to;
    }
    sum
}

/// Executions with the probes carried out, and each path counted by itself beside.
fn check_runs(
    graph: &FlowGraph,
    plan: &PathPlan,
    entropy: &mut Entropy<'_>,
) -> Result<(), TestCaseError> {
    let (mut machine, mut truth) = (Machine::new(), BTreeMap::<u64, u64>::new());
    for _ in 0..4 {
        let mut early = None;
        let steps = entropy.below(50);
        let mut wrong = None;
        execute(
            graph,
            plan.dag(),
            entropy,
            steps,
            |arc, done, running, node| {
                machine.run_at(plan.probes(), arc);
                if let Some(done) = done {
                    *truth.entry(plan.numbering().number(done)).or_default() += 1;
                }
                if running.is_empty() {
                    early = None;
                    return;
                }
                let sum = plan.numbering().number(running);
                let told = plan.prefix_sum(node, machine.register);
                if told.is_some_and(|told| told != sum) {
                    wrong = Some((node, told, sum));
                }
                early = told.is_none().then(|| running.to_vec());
            },
        );
        prop_assert_eq!(wrong, None);
        // Cut after its count, where only one way was left: the whole path is counted.
        if let Some(mut path) = early {
            while let Some(on) = plan
                .dag()
                .out(plan.dag().arc(path[path.len() - 1]).to)
                .next()
            {
                path.push(on);
            }
            *truth.entry(plan.numbering().number(&path)).or_default() += 1;
        }
    }
    prop_assert_eq!(&machine.counts, &truth);
    Ok(())
}

/// 2^100 paths, which is more than 10^30: refused with their number, or split.
#[test]
fn too_many_paths() {
    let graph = chain_of_diamonds(100);
    let weigh = |_| Weight::Finite(1);
    let refused = PathPlan::new(&graph, HASH, weigh).expect_err("too many");
    assert_eq!(refused, PathError::TooMany(Some(1 << 100)).into());
    let text = "there are 1267650600228229401496703205376 acyclic paths, and 64 bits number no \
                more than 18446744073709551615";
    assert_eq!(refused.to_string(), text);
    for beyond in [Beyond::Split(1 << 10), Beyond::HashOrSplit(1 << 10)] {
        let plan = PathPlan::new(
            &graph,
            Policy {
                array: 20_000,
                beyond,
            },
            weigh,
        )
        .expect("split");
        assert_eq!(plan.storage(), Storage::Array(10 << 10));
        // One side of each tenth diamond cannot be enough: both are broken, but for the last.
        assert_eq!(plan.breaks().len(), 18);
        assert_eq!(verify(&plan), Ok(()));
    }
    let beyond = chain_of_diamonds(200);
    assert_eq!(
        PathPlan::new(&beyond, HASH, weigh).expect_err("too many"),
        PathError::TooMany(None).into()
    );
}

/// An array, a hash table, or a split, as the policy says and as many paths there are.
#[test]
fn storage_follows_the_policy() {
    let graph = chain_of_diamonds(10);
    let plan = |array, beyond| {
        let plan = PathPlan::new(&graph, Policy { array, beyond }, |_| Weight::Finite(1));
        let plan = plan.expect("few paths");
        (plan.storage(), plan.numbering().total())
    };
    assert_eq!(plan(1024, Beyond::Split(8)), (Storage::Array(1024), 1024));
    assert_eq!(plan(1023, Beyond::Hash), (Storage::Hash, 1024));
    assert_eq!(plan(1023, Beyond::HashOrSplit(8)), (Storage::Hash, 1024));
    let (storage, total) = plan(1023, Beyond::Split(8));
    assert_eq!(storage, Storage::Array(total));
    assert!(total <= 4 * 8);
}

/// A switch of five cannot be in a piece of four, whatever is broken.
#[test]
fn too_wide_to_split() {
    let graph = graph(2, &[(0, 1); 5]);
    let refused = split(&graph, 4, |_| Weight::Finite(1)).expect_err("too wide");
    let expected = SplitError::TooWide {
        node: NodeId(0),
        paths: 5,
        limit: 4,
    };
    assert_eq!(refused, expected);
    assert_eq!(split(&graph, 5, |_| Weight::Finite(1)), Ok(Vec::new()));
}

/// Broken are edges that seldom run.
#[test]
fn seldom_edges_are_broken() {
    // 0 → 1 often or 0 → 2 seldom; four paths behind each.
    let diamonds = |from: u32, by: u32, to: u32| [(from, by), (from, by), (by, to), (by, to)];
    let edges = [
        &[(0, 1), (0, 2)][..],
        &diamonds(1, 3, 5),
        &diamonds(2, 4, 5),
    ]
    .concat();
    let graph = graph(6, &edges);
    let weigh = |arc| match arc {
        FlowArc::Edge(EdgeId(0)) => Weight::Finite(1000),
        _ => Weight::Finite(1),
    };
    assert_eq!(split(&graph, 5, weigh), Ok(vec![EdgeId(1)]));
}

/// Where the function's entry cannot be patched the register is set further down; where that is
/// not to be had either, the plan says so.
#[test]
fn places_that_cannot_be_patched_are_avoided_or_named() {
    let graph = chain_of_diamonds(1);
    let plan = |unpatchable: &[FlowArc]| {
        let weigh = |arc| match unpatchable.contains(&arc) {
            true => Weight::Infinite,
            false => Weight::Finite(1),
        };
        PathPlan::new(&graph, HASH, weigh).expect("few paths")
    };
    let [one, two] = [FlowArc::Edge(EdgeId(0)), FlowArc::Edge(EdgeId(1))];
    let ends = [FlowArc::Return, FlowArc::Exit(NodeId(1))];
    assert_eq!(plan(&ends).unplaceable(), []);
    assert_eq!(plan(&[one]).unplaceable(), []);
    assert_eq!(plan(&[one, two]).unplaceable().len(), 1);
}

/// The one path of a straight function is counted, by one probe.
#[test]
fn a_function_with_one_path_is_counted() {
    let graph = graph(3, &[(0, 1), (1, 2)]);
    let plan = PathPlan::new(&graph, HASH, |_| Weight::Finite(1)).expect("one path");
    assert_eq!(plan.probes().len(), 1);
    assert_eq!(plan.probes()[0].ops, [Op::CountAt(0)]);
    assert_eq!(verify(&plan), Ok(()));
}
