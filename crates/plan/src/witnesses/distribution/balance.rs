//! Evening out what machines have to do, after all jobs were given.
//!
//! The busiest machine gives away one of its dearest witnesses: without it, the ways of some duties clash. Whoever can
//! fulfil these with witnesses of its own, and still has less to do than the busiest had, gets them; both then drop
//! what they no longer need. A loop that every branch in it needs a witness for moves as a whole if there
//! is room, or one of its branches with a witness of the loop besides.
//!
//! Each duty stays with a machine that fulfils it. After each step the loads, largest first, are less than before in
//! lexicographic order, so this ends; it ends earlier where the largest is near the mean, and after [`STEPS`].

use super::draft::{Draft, Share, clash};
use super::jobs::Duty;
use super::{FunctionWork, Machines};
use crate::witnesses::FunctionId;
use crate::witnesses::first::Firsts;

/// How often something is given away, at most.
const STEPS: usize = 500;
/// How many witnesses of the busiest are tried in a step.
const TRIED: usize = 200;
/// The busiest is left alone if what it does above the mean is less than one in so many of the mean; and a witness is not
/// tried that weighs less than one in so many of that.
const PART: u64 = 50;

/// Takes from the busiest machine, again and again, what another one does with less.
pub(super) fn even(works: &[FunctionWork], profiles: &mut [(u32, Draft)], machines: Machines<'_>) {
    for _ in 0..STEPS {
        let besides = |machine: u32| machines.besides(machine);
        let loads = profiles.iter();
        let loads = loads.map(|(machine, draft)| draft.cost.saturating_add(besides(*machine)));
        let Some(step) = Step::of(works, profiles, &loads.collect::<Vec<_>>()) else {
            return;
        };
        step.take(works, profiles);
    }
}

/// A witness that one profile gives away.
struct Step {
    function: FunctionId,
    /// What its profile keeps of the function, and what it costs no more.
    from: (usize, Share, u64),
    /// What another one then has of it, and what that costs more.
    to: (usize, Share, (usize, u64)),
}

impl Step {
    /// Something that makes the busiest profile less so.
    fn of(works: &[FunctionWork], profiles: &[(u32, Draft)], loads: &[u64]) -> Option<Self> {
        let mut idlest: Vec<usize> = (0..loads.len()).collect();
        idlest.sort_by_key(|&at| loads[at]);
        let busiest = idlest.pop()?;
        let sum: u128 = loads.iter().map(|&load| u128::from(load)).sum();
        let mean = (sum / loads.len() as u128) as u64;
        let excess = loads[busiest] - mean;
        if excess <= mean / PART {
            return None;
        }
        let draft = &profiles[busiest].1;
        dearest(works, draft, excess / PART).find_map(|(function, place)| {
            let work = &works[function.index()];
            let mut kept = draft.shares[&function].clone();
            let lost = kept.without(work, place);
            idlest.iter().find_map(|&other| {
                let share = profiles[other].1.shares.get(&function).cloned();
                let mut share = share.unwrap_or_else(|| Share::new(work));
                let grown = share.cover(work, &lost);
                let is_less = loads[other].saturating_add(grown.1) < loads[busiest];
                is_less.then(|| Self {
                    function,
                    from: (busiest, kept.clone(), work.weight(place)),
                    to: (other, share, grown),
                })
            })
        })
    }

    fn take(self, works: &[FunctionWork], profiles: &mut [(u32, Draft)]) {
        let work = &works[self.function.index()];
        let (at, share, cost) = self.from;
        let draft = &mut profiles[at].1;
        draft.size -= 1;
        draft.cost = draft.cost.saturating_sub(cost);
        draft.shares.insert(self.function, share);
        draft.prune_share(work, self.function);
        let (at, share, (size, cost)) = self.to;
        let draft = &mut profiles[at].1;
        draft.size += size;
        draft.cost = draft.cost.saturating_add(cost);
        draft.shares.insert(self.function, share);
        draft.prune_share(work, self.function);
    }
}

impl Share {
    /// Takes a witness away, and the duties that are then not fulfilled.
    fn without(&mut self, work: &FunctionWork, place: u32) -> Vec<Duty> {
        self.witness[place as usize] = false;
        let mut firsts = Firsts::new(&work.flow);
        let is_lost = |duty: &Duty| clash(&mut firsts, *duty, &self.witness).is_some();
        let (lost, kept) = self.duties.iter().copied().partition(is_lost);
        self.duties = kept;
        lost
    }
}

/// Witnesses that weigh more than `least`, dearest first; those that calls need stay where they are.
fn dearest(
    works: &[FunctionWork],
    draft: &Draft,
    least: u64,
) -> impl Iterator<Item = (FunctionId, u32)> + use<> {
    let mut found = Vec::new();
    for (&id, share) in &draft.shares {
        let places = (0..share.witness.len() as u32).filter(|&place| share.witness[place as usize]);
        let places = places.filter(|place| !share.entries.contains(place));
        found.extend(places.map(|place| (works[id.index()].weight(place), id, place)));
    }
    found.retain(|(weight, ..)| *weight > least);
    found.sort_by_key(|(weight, id, place)| (std::cmp::Reverse(*weight), *id, *place));
    found.truncate(TRIED);
    found.into_iter().map(|(_, id, place)| (id, place))
}
