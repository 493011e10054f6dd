//! Paths shared out to sites: groups that are cheap to profile together, none much dearer than
//! the others.
//!
//! Source: SPP §6, which leaves the method open: paths are divided into groups, each profiled at
//! another site; two paths that share parts cost less together than two that do not; the load is to be
//! balanced. Ours, in two steps:
//!
//! 1. Paths are put in the order of their ways, so that neighbours share their beginnings, and cut
//!    into as many runs as there are sites, such that the dearest run is as cheap as it can be (the
//!    cost only grows with a run, so a bound can be tried from left to right, and bisected).
//! 2. Single paths move to other groups as long as that makes the dearest of the two groups
//!    cheaper, or keeps it and saves in all.
//!
//! What a group costs is estimated by the weights of the branches that it tells apart: the ways of
//! its paths out of nodes with several ways on, each once. That bounds the probes of phases 1 and 3
//! of [`selective`](super::selective) from above, and can be kept up to date path by path.
//! O(ways of all paths · (log weight + rounds · sites)).

use tomo_graph::{FlowArc, Weight};

use super::plan::arc_weights;
use super::{ArcId, PathDag};

/// More rounds of moves than this are not made.
const ROUNDS: usize = 4;

/// The paths of every site, as positions in the list that was given, and what each site bears.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Groups {
    /// By site.
    pub paths: Vec<Vec<usize>>,
    /// By site: the estimated cost.
    pub costs: Vec<u128>,
}

impl Groups {
    /// What the site bears that bears most.
    #[must_use]
    pub fn dearest(&self) -> u128 {
        self.costs.iter().copied().max().unwrap_or(0)
    }

    /// What all bear together.
    #[must_use]
    pub fn total(&self) -> u128 {
        self.costs.iter().sum()
    }
}

/// Shares `paths`, each given by its ways, out to so many sites. Every path is in just one group;
/// some groups are empty if there are fewer paths than sites, and there are none for no sites.
pub fn share_out<P: AsRef<[ArcId]>>(
    dag: &PathDag,
    paths: &[P],
    sites: usize,
    weight: impl Fn(FlowArc) -> Weight,
) -> Groups {
    if sites == 0 {
        return Groups {
            paths: Vec::new(),
            costs: Vec::new(),
        };
    }
    let weights = branch_weights(dag, &weight);
    let paths: Vec<&[ArcId]> = paths.iter().map(AsRef::as_ref).collect();
    let mut order: Vec<usize> = (0..paths.len()).collect();
    order.sort_by_key(|&at| (paths[at], at));
    let mut loads = cut_in_runs(&order, &paths, sites, &weights);
    improve(&mut loads, &paths, &weights);
    Groups {
        costs: loads.iter().map(|load| load.cost).collect(),
        paths: loads.into_iter().map(|load| load.paths).collect(),
    }
}

/// What telling a way apart costs: nothing where there is no other.
fn branch_weights(dag: &PathDag, weight: &dyn Fn(FlowArc) -> Weight) -> Vec<u64> {
    let weights = arc_weights(dag, weight);
    let price = |(arc, weight): (&super::DagArc, Weight)| match weight {
        _ if dag.out(arc.from).len() < 2 => 0,
        // What runs never may run after all, and takes a probe.
        Weight::Finite(weight) => weight.max(1),
        Weight::Infinite => u64::MAX,
    };
    dag.arcs().iter().zip(weights).map(price).collect()
}

/// What a site bears.
#[derive(Clone)]
struct Load {
    paths: Vec<usize>,
    /// Per way: how many of the paths take it.
    users: Vec<u32>,
    cost: u128,
}

impl Load {
    fn new(arcs: usize) -> Self {
        Self {
            paths: Vec::new(),
            users: vec![0; arcs],
            cost: 0,
        }
    }

    /// What the cost would grow by.
    fn cost_of_adding(&self, path: &[ArcId], weights: &[u64]) -> u128 {
        let fresh = path.iter().filter(|id| self.users[id.index()] == 0);
        fresh.map(|id| u128::from(weights[id.index()])).sum()
    }

    /// What the cost would shrink by.
    fn gain_of_removing(&self, path: &[ArcId], weights: &[u64]) -> u128 {
        let own = path.iter().filter(|id| self.users[id.index()] == 1);
        own.map(|id| u128::from(weights[id.index()])).sum()
    }

    fn add(&mut self, at: usize, path: &[ArcId], weights: &[u64]) {
        self.cost += self.cost_of_adding(path, weights);
        self.paths.push(at);
        path.iter().for_each(|id| self.users[id.index()] += 1);
    }

    fn remove(&mut self, at: usize, path: &[ArcId], weights: &[u64]) {
        self.cost -= self.gain_of_removing(path, weights);
        self.paths.retain(|&other| other != at);
        path.iter().for_each(|id| self.users[id.index()] -= 1);
    }
}

/// The runs whose dearest is cheapest.
fn cut_in_runs(order: &[usize], paths: &[&[ArcId]], sites: usize, weights: &[u64]) -> Vec<Load> {
    let mut one = Load::new(weights.len());
    for &at in order {
        one.add(at, paths[at], weights);
    }
    // No run may cost less than `low`; with `high`, runs do not run out.
    let (mut low, mut high) = (0, one.cost);
    while low < high {
        let bound = low + (high - low) / 2;
        if runs_within(bound, order, paths, sites, weights).is_some() {
            high = bound;
        } else {
            low = bound + 1;
        }
    }
    let runs = runs_within(high, order, paths, sites, weights).unwrap_or_else(|| vec![one]);
    let none = std::iter::repeat_with(|| Load::new(weights.len()));
    runs.into_iter().chain(none).take(sites).collect()
}

/// Runs none of which costs more than `bound`, if so many sites do for that.
fn runs_within(
    bound: u128,
    order: &[usize],
    paths: &[&[ArcId]],
    sites: usize,
    weights: &[u64],
) -> Option<Vec<Load>> {
    let mut runs = vec![Load::new(weights.len())];
    for &at in order {
        let fits = |load: &Load| load.cost + load.cost_of_adding(paths[at], weights) <= bound;
        if !runs.last().is_some_and(fits) {
            runs.push(Load::new(weights.len()));
        }
        let last = runs.last_mut().filter(|load| fits(load))?;
        last.add(at, paths[at], weights);
        if runs.len() > sites {
            return None;
        }
    }
    Some(runs)
}

/// Moves paths while that helps.
fn improve(loads: &mut [Load], paths: &[&[ArcId]], weights: &[u64]) {
    for _ in 0..ROUNDS {
        let mut moved = false;
        for from in 0..loads.len() {
            for at in loads[from].paths.clone() {
                if let Some(to) = better_site(loads, from, paths[at], weights) {
                    loads[from].remove(at, paths[at], weights);
                    loads[to].add(at, paths[at], weights);
                    moved = true;
                }
            }
        }
        if !moved {
            return;
        }
    }
}

/// Where a path of site `from` does better: the dearer of both sites gets cheaper, or stays and
/// they get cheaper together.
fn better_site(loads: &[Load], from: usize, path: &[ArcId], weights: &[u64]) -> Option<usize> {
    let gain = loads[from].gain_of_removing(path, weights);
    let others = (0..loads.len()).filter(|&to| to != from);
    let judged = others.filter_map(|to| {
        let cost = loads[to].cost_of_adding(path, weights);
        let (here, there) = (loads[from].cost, loads[to].cost);
        let before = (here.max(there), here + there);
        let after = ((here - gain).max(there + cost), here + there + cost - gain);
        (after < before).then_some((after, to))
    });
    judged.min().map(|best| best.1)
}
