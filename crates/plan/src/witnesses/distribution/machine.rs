//! Giving jobs to machines (DPT Figure 5), and growing their witnesses (Figure 7, for our duties).

use std::collections::BTreeMap;

use tomo_graph::NodeId;

use super::jobs::{Duty, Job, pairs};
use super::{Distribution, DistributionError, FunctionWork, Machines};
use crate::witnesses::blame::Blame;
use crate::witnesses::first::{Clash, Firsts};
use crate::witnesses::place::dearest_first;
use crate::witnesses::prune::prune;
use crate::witnesses::{FunctionId, Place};

/// What one profile has of one function.
#[derive(Clone, Debug)]
struct Share {
    witness: Vec<bool>,
    duties: Vec<Duty>,
    /// Witnesses that other functions' calls need.
    entries: Vec<u32>,
}

/// A profile while it grows.
#[derive(Clone, Debug, Default)]
struct Draft {
    shares: BTreeMap<FunctionId, Share>,
    size: usize,
    cost: u64,
}

/// Gives every job to a machine.
pub(super) fn assign(
    works: &[FunctionWork],
    jobs: Vec<Job>,
    machines: Machines,
) -> Result<Distribution, DistributionError> {
    let mut jobs: Vec<(u64, Job)> = jobs
        .into_iter()
        .map(|job| (alone(works, &job), job))
        .collect();
    jobs.sort_by_key(|job| std::cmp::Reverse(job.0));
    let mut drafts: Vec<Vec<Draft>> = vec![vec![Draft::default()]; machines.count as usize];
    for (_, job) in jobs {
        let load = |(number, drafts): &(usize, &mut Vec<Draft>)| {
            let costs = drafts.iter().map(|each| each.cost);
            let besides = if *number == 0 { machines.besides } else { 0 };
            costs.fold(besides, u64::saturating_add)
        };
        let idlest = drafts.iter_mut().enumerate().min_by_key(load);
        if let Some((_, machine)) = idlest {
            give(works, machine, job, machines.bound)?;
        }
    }
    let mut profiles = Vec::new();
    for (machine, drafts) in (0u32..).zip(drafts) {
        for mut draft in drafts {
            draft.prune(works);
            profiles.push((machine, draft.places(works)));
        }
    }
    Ok(Distribution::new(&profiles))
}

/// What a job costs by itself.
fn alone(works: &[FunctionWork], job: &Job) -> u64 {
    let mut draft = Draft::default();
    match job {
        Job::Branches(id, duties) => draft.cover(&works[id.index()], *id, duties),
        Job::Targets(.., targets) => draft.enter(works, targets),
    }
    draft.cost
}

fn give(
    works: &[FunctionWork],
    machine: &mut Vec<Draft>,
    job: Job,
    bound: Option<u32>,
) -> Result<(), DistributionError> {
    match job {
        Job::Branches(id, duties) => {
            let work = &works[id.index()];
            if bound.is_none()
                && let Some(draft) = machine.last_mut()
            {
                draft.cover(work, id, &duties);
                return Ok(());
            }
            for duty in duties {
                bounded(works, machine, id, duty, bound)?;
            }
            Ok(())
        }
        Job::Targets(function, node, targets) => {
            let grown = |draft: &mut Draft| draft.enter(works, &targets);
            try_in_turn(machine, bound, grown)
                .map_err(|needs| too_small(function, node, needs, bound))
        }
    }
}

fn bounded(
    works: &[FunctionWork],
    machine: &mut Vec<Draft>,
    id: FunctionId,
    duty: Duty,
    bound: Option<u32>,
) -> Result<(), DistributionError> {
    let work = &works[id.index()];
    let grown = |draft: &mut Draft| {
        draft.cover(work, id, &[duty]);
        if draft.size > bound.unwrap_or(u32::MAX) as usize {
            draft.prune_share(work, id);
        }
    };
    match (try_in_turn(machine, bound, grown), duty.ways) {
        (Ok(()), _) => Ok(()),
        (Err(_), None) => {
            let mut parts = pairs(duty.node, work.flow.ways(duty.node) as u32);
            parts.try_for_each(|part| bounded(works, machine, id, part, bound))
        }
        (Err(needs), Some(_)) => Err(too_small(id, duty.node, needs, bound)),
    }
}

/// Grows the machine's last profile, or a new one if it then were too large; the size needed if
/// that is too large as well.
fn try_in_turn(
    machine: &mut Vec<Draft>,
    bound: Option<u32>,
    grow: impl Fn(&mut Draft),
) -> Result<(), usize> {
    let bound = bound.unwrap_or(u32::MAX) as usize;
    let mut grown = machine.pop().unwrap_or_default();
    let before = grown.clone();
    grow(&mut grown);
    if grown.size <= bound {
        machine.push(grown);
        return Ok(());
    }
    if before.size > 0 {
        machine.push(before);
    }
    let mut fresh = Draft::default();
    grow(&mut fresh);
    let size = fresh.size;
    if size <= bound {
        machine.push(fresh);
        return Ok(());
    }
    Err(size)
}

fn too_small(
    function: FunctionId,
    node: NodeId,
    needs: usize,
    bound: Option<u32>,
) -> DistributionError {
    DistributionError::BoundTooSmall {
        function,
        node,
        needs,
        bound: bound.unwrap_or(u32::MAX),
    }
}

impl Share {
    fn new(work: &FunctionWork) -> Self {
        Self {
            witness: vec![false; work.flow.places()],
            duties: Vec::new(),
            entries: Vec::new(),
        }
    }
}

fn clash(firsts: &mut Firsts<'_>, duty: Duty, witness: &[bool]) -> Option<Clash> {
    let is_witness = |place: u32| witness[place as usize];
    match duty.ways {
        Some(ways) => firsts.clash_between(duty.node, ways, is_witness),
        None => firsts.clash_at(duty.node, is_witness),
    }
}

impl Draft {
    /// Adds witnesses until the duties are fulfilled.
    fn cover(&mut self, work: &FunctionWork, id: FunctionId, duties: &[Duty]) {
        let share = self.shares.entry(id).or_insert_with(|| Share::new(work));
        let mut firsts = Firsts::new(&work.flow);
        let mut blame = Blame::new(&work.flow);
        for &duty in duties {
            while let Some(clash) = clash(&mut firsts, duty, &share.witness) {
                let places = blame.places(&clash, &|place| share.witness[place as usize]);
                let pooled = places
                    .into_iter()
                    .filter(|&place| work.pool[place as usize]);
                // The pool tells all ways apart, so one of the places is in it.
                let Some(cheapest) = pooled.min_by_key(|&place| (work.weight(place), place)) else {
                    break;
                };
                share.witness[cheapest as usize] = true;
                self.size += 1;
                self.cost = self.cost.saturating_add(work.weight(cheapest));
            }
        }
        share.duties.extend(duties);
    }

    /// Adds witnesses at the entries of functions.
    fn enter(&mut self, works: &[FunctionWork], targets: &[(FunctionId, u32)]) {
        for &(id, entry) in targets {
            let work = &works[id.index()];
            let share = self.shares.entry(id).or_insert_with(|| Share::new(work));
            share.entries.push(entry);
            if !std::mem::replace(&mut share.witness[entry as usize], true) {
                self.size += 1;
                self.cost = self.cost.saturating_add(work.weight(entry));
            }
        }
    }

    fn prune(&mut self, works: &[FunctionWork]) {
        let ids: Vec<FunctionId> = self.shares.keys().copied().collect();
        for id in ids {
            self.prune_share(&works[id.index()], id);
        }
    }

    /// Drops witnesses of a function that its duties do not need.
    fn prune_share(&mut self, work: &FunctionWork, id: FunctionId) {
        let Some(share) = self.shares.get_mut(&id) else {
            return;
        };
        let before = total(work, &share.witness);
        let mut order = dearest_first(&work.weights, &share.witness);
        order.retain(|place| !share.entries.contains(place));
        let mut duties: BTreeMap<NodeId, Vec<Duty>> = BTreeMap::new();
        for &duty in &share.duties {
            duties.entry(duty.node).or_default().push(duty);
        }
        prune(
            &work.flow,
            &mut share.witness,
            &order,
            PRUNING,
            &mut |firsts, fork, witness| {
                let duties = duties.get(&work.flow.node_of(fork));
                duties.is_some_and(|duties| {
                    let mut duties = duties.iter();
                    duties.any(|&duty| clash(firsts, duty, witness).is_some())
                })
            },
        );
        let after = total(work, &share.witness);
        self.size = self.size - before.0 + after.0;
        self.cost = self.cost.saturating_sub(before.1).saturating_add(after.1);
    }

    fn places(&self, works: &[FunctionWork]) -> Vec<(FunctionId, Place)> {
        let places = self.shares.iter().flat_map(|(&id, share)| {
            let flow = &works[id.index()].flow;
            let numbers = (0..share.witness.len()).filter(|&at| share.witness[at]);
            numbers.map(move |at| (id, flow.place(at as u32)))
        });
        places.collect()
    }
}

/// How many moves pruning a function in one profile may look at.
const PRUNING: u64 = 2_000_000;

/// How many witnesses, and what they cost.
fn total(work: &FunctionWork, witness: &[bool]) -> (usize, u64) {
    let places = (0..witness.len() as u32).filter(|&place| witness[place as usize]);
    places.fold((0, 0), |(size, cost): (usize, u64), place| {
        (size + 1, cost.saturating_add(work.weight(place)))
    })
}
