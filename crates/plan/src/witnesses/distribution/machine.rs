//! Giving jobs to machines (DPT Figure 5).

use tomo_graph::NodeId;

use super::draft::Draft;
use super::jobs::{Duty, Job, pairs};
use super::{DistributionError, FunctionWork, Machines};
use crate::witnesses::FunctionId;

/// Gives every job to a machine; the profiles, in order of their machines.
pub(super) fn assign(
    works: &[FunctionWork],
    jobs: Vec<Job>,
    machines: Machines<'_>,
) -> Result<Vec<(u32, Draft)>, DistributionError> {
    let mut jobs: Vec<(u64, Job)> = jobs
        .into_iter()
        .map(|job| (alone(works, &job), job))
        .collect();
    jobs.sort_by_key(|job| std::cmp::Reverse(job.0));
    let mut drafts: Vec<Vec<Draft>> = vec![vec![Draft::default()]; machines.count as usize];
    for job in jobs {
        let load = |(number, drafts): &(usize, &mut Vec<Draft>)| {
            let costs = drafts.iter().map(|each| each.cost);
            let besides = machines.besides(*number as u32);
            let grown = growth(works, drafts, &job, machines.bound);
            costs.fold(besides.saturating_add(grown), u64::saturating_add)
        };
        let idlest = drafts.iter_mut().enumerate().min_by_key(load);
        if let Some((_, machine)) = idlest {
            give(works, machine, job.1, machines.bound)?;
        }
    }
    let numbered = (0u32..).zip(drafts);
    let mut profiles: Vec<_> = numbered
        .flat_map(|(machine, drafts)| drafts.into_iter().map(move |draft| (machine, draft)))
        .collect();
    for (_, draft) in &mut profiles {
        draft.prune(works);
    }
    Ok(profiles)
}

/// By how much what a machine has to do grows if it is given a job that costs so much by itself. Where profiles are bounded,
/// a machine has several, and the job would go to the last: nothing is said.
fn growth(
    works: &[FunctionWork],
    drafts: &[Draft],
    (alone, job): &(u64, Job),
    bound: Option<u32>,
) -> u64 {
    match (bound, drafts.last(), job) {
        (None, Some(draft), Job::Branches(id, duties)) => match draft.shares.get(id) {
            Some(share) => share.clone().cover(&works[id.index()], duties).1,
            None => *alone,
        },
        _ => 0,
    }
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
