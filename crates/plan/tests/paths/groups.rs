//! Groups of paths: each path in one of them, near the best of small cases, better than chance.

use super::*;
use proptest::collection::vec;
use tomo_graph::check::generate;
use tomo_plan::paths::groups::{Groups, share_out};
use tomo_plan::paths::{Interest, selective::Selection};

/// What the module says a group costs: each way out of a branching node once, with weight one.
fn cost(dag: &PathDag, group: &[&Vec<ArcId>]) -> u128 {
    let mut ways: Vec<ArcId> = group.iter().flat_map(|path| path.iter().copied()).collect();
    ways.sort_unstable();
    ways.dedup();
    let branching = ways
        .iter()
        .filter(|&&id| dag.out(dag.arc(id).from).len() > 1);
    branching.count() as u128
}

/// The dearest group and the sum, for every way to share out few paths; the best of all.
fn best(dag: &PathDag, paths: &[Vec<ArcId>], sites: usize) -> (u128, u128) {
    let ways = sites.pow(paths.len() as u32);
    let judge = |mut code: usize| {
        let mut groups = vec![Vec::new(); sites];
        for path in paths {
            groups[code % sites].push(path);
            code /= sites;
        }
        let costs: Vec<u128> = groups.iter().map(|group| cost(dag, group)).collect();
        (costs.iter().copied().max().unwrap_or(0), costs.iter().sum())
    };
    (0..ways).map(judge).min().unwrap_or_default()
}

/// Graphs without loops, where all ways weigh one.
fn loopless(bytes: &[u8]) -> Option<(PathDag, Vec<Vec<ArcId>>)> {
    let graph = generate(&mut Entropy::new(bytes), 12);
    let dag = PathDag::of(&graph);
    let has_loop = dag
        .arcs()
        .iter()
        .any(|arc| matches!(arc.way, Way::Break(..)));
    let paths = all_paths(&dag, 300).filter(|_| !has_loop)?;
    Some((dag, paths))
}

fn share(dag: &PathDag, paths: &[Vec<ArcId>], sites: usize) -> Groups {
    share_out(dag, paths, sites, |_| Weight::Finite(1))
}

proptest! {
    #![proptest_config(config(1500))]

    /// Every path is in one group, costs are what they are said to be, and a group's probes are no
    /// more than that.
    #[test]
    fn every_path_is_in_one_group(bytes in vec(any::<u8>(), 0..120), sites in 1usize..5) {
        let Some((dag, paths)) = loopless(&bytes) else { return Ok(()) };
        let groups = share(&dag, &paths, sites);
        prop_assert_eq!(groups.paths.len(), sites);
        let mut listed: Vec<usize> = groups.paths.concat();
        listed.sort_unstable();
        prop_assert_eq!(listed, Vec::from_iter(0..paths.len()));
        for (group, &said) in groups.paths.iter().zip(&groups.costs) {
            let group: Vec<_> = group.iter().map(|&at| &paths[at]).collect();
            prop_assert_eq!(cost(&dag, &group), said);
            let interest = Interest::of(&dag, &group).expect("paths of the graph");
            let selection = Selection::new(&dag, interest, |_| Weight::Finite(1));
            let probes = selection.expect("small sums").probes() as u128;
            prop_assert!(probes <= said, "{probes} probes, {said} said");
        }
    }

    /// The dearest site bears at most half as much again as it must, and often no more.
    #[test]
    fn the_dearest_is_near_the_best(bytes in vec(any::<u8>(), 0..80)) {
        let Some((dag, mut paths)) = loopless(&bytes) else { return Ok(()) };
        paths.truncate(8);
        let groups = share(&dag, &paths, 2);
        let (dearest, _) = best(&dag, &paths, 2);
        prop_assert!(2 * groups.dearest() <= 3 * dearest, "{} not {dearest}", groups.dearest());
    }
}

/// Two bundles of paths that have nothing in common go to two sites, each bundle whole.
#[test]
fn what_shares_parts_stays_together() {
    // 0 → 1 or 2; behind each of them two branches of its own, and the exit 7.
    let edges = [
        (0, 1),
        (0, 2),
        (1, 3),
        (1, 3),
        (3, 7),
        (3, 7),
        (2, 4),
        (2, 4),
        (4, 7),
        (4, 7),
    ];
    let graph = graph(8, &edges);
    let dag = PathDag::of(&graph);
    let paths = all_paths(&dag, 20).expect("eight paths");
    let groups = share(&dag, &paths, 2);
    assert_eq!(groups.costs, [5, 5]);
    for group in &groups.paths {
        let second = |&at: &usize| dag.arc(paths[at][1]).to;
        assert!(group.iter().all(|at| second(at) == second(&group[0])));
    }
}

#[test]
fn no_sites_and_no_paths() {
    let dag = PathDag::of(&chain_of_diamonds(2));
    let paths = all_paths(&dag, 10).expect("four paths");
    assert_eq!(share(&dag, &paths, 0).paths.len(), 0);
    let none = share(&dag, &[], 3);
    assert_eq!((none.dearest(), none.total(), none.paths.len()), (0, 0, 3));
    let many = share(&dag, &paths, 9);
    assert_eq!(
        many.paths.iter().filter(|group| group.is_empty()).count(),
        5
    );
}

/// Chance, on many graphs: the dearest site and the total are cheaper than of shares by lot.
#[test]
fn better_than_by_lot() {
    let (mut ours, mut by_lot) = ([0; 2], [0; 2]);
    for length in 4..8 {
        let dag = PathDag::of(&chain_of_diamonds(length));
        let paths = all_paths(&dag, 300).expect("few paths");
        let groups = share(&dag, &paths, 4);
        ours = [ours[0] + groups.dearest(), ours[1] + groups.total()];
        let lot = |site: usize| -> Vec<&Vec<ArcId>> {
            let drawn = |at: usize| (at * 2_654_435_761) >> 7 & 3;
            (0..paths.len())
                .filter(|&at| drawn(at) == site)
                .map(|at| &paths[at])
                .collect()
        };
        let costs = [0, 1, 2, 3].map(|site| cost(&dag, &lot(site)));
        by_lot = [
            by_lot[0] + costs.iter().max().unwrap_or(&0),
            by_lot[1] + costs.iter().sum::<u128>(),
        ];
    }
    assert!(
        ours[0] < by_lot[0] && ours[1] < by_lot[1],
        "{ours:?} {by_lot:?}"
    );
}
