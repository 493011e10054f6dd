//! Evening out what machines have to do, after all jobs were given.
//!
//! The busiest machine gives away one of its dearest witnesses: without it, the ways of some duties clash. Whoever can
//! fulfil these with witnesses of its own, and still has less to do than the busiest had, gets them; both then drop
//! what they no longer need. A loop that every branch in it needs a witness for moves as a whole if there
//! is room, or one of its branches with a witness of the loop besides, or with witnesses that the placement for all at once does
//! without: on both its ways. Where the busiest has nothing that another one does with less, the next busiest gives.
//!
//! Each duty stays with a machine that fulfils it. After each step the loads, largest first, are less than before in
//! lexicographic order, so this ends; it ends earlier where nobody has much more than the mean of those that have less, and after [`STEPS`].

use tomo_graph::Weight;

use super::draft::{Draft, Share, clash};
use super::jobs::Duty;
use super::{FunctionWork, Machines};
use crate::witnesses::FunctionId;
use crate::witnesses::first::Firsts;

/// How often something is given away, at most.
const STEPS: usize = 500;
/// How many witnesses of the busiest are tried in a step.
const TRIED: usize = 200;
/// A machine is left alone if what it does above the mean, of it and those that do less, is less than one in so many of the mean;
/// and a witness is not tried that weighs less than one in so many of that.
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
    /// Something that makes the busiest profile less so, or else the busiest of which that can be said.
    fn of(works: &[FunctionWork], profiles: &[(u32, Draft)], loads: &[u64]) -> Option<Self> {
        let mut idlest: Vec<usize> = (0..loads.len()).collect();
        idlest.sort_by_key(|&at| loads[at]);
        let mut rest = &idlest[..];
        let busiest = std::iter::from_fn(|| {
            let (&from, others) = rest.split_last()?;
            let sum: u128 = rest.iter().map(|&at| u128::from(loads[at])).sum();
            let mean = (sum / rest.len() as u128) as u64;
            rest = others;
            Some((from, mean))
        });
        let is_busy = |&(from, mean): &(usize, u64)| loads[from] - mean > mean / PART;
        let mut busy = busiest.filter(is_busy);
        busy.find_map(|(from, mean)| {
            let least = (loads[from] - mean) / PART;
            dearest(works, &profiles[from].1, least).find_map(|(function, place)| {
                let work = &works[function.index()];
                let mut kept = profiles[from].1.shares[&function].clone();
                let lost = kept.without(work, place);
                idlest.iter().find_map(|&to| {
                    let room = loads[from].saturating_sub(loads[to]).checked_sub(1)?;
                    let share = profiles[to].1.shares.get(&function).cloned();
                    let share = share.unwrap_or_else(|| Share::new(work));
                    let (share, grown) = share.with(work, &lost, room)?;
                    Some(Self {
                        function,
                        from: (from, kept.clone(), work.weight(place)),
                        to: (to, share, grown),
                    })
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
    /// The share with these duties besides, and what it then costs more, if that is at most `room`: with witnesses of the
    /// pool or with any, whichever is less. The pool is what costs least where all is told at once.
    fn with(self, work: &FunctionWork, duties: &[Duty], room: u64) -> Option<(Self, (usize, u64))> {
        let pooled = |place: u32| work.pool[place as usize];
        let may_be = |place: u32| matches!(work.weights[place as usize], Weight::Finite(_));
        let mut other = self.clone();
        let mut pool = self;
        let grown = pool.cover_from(work, duties, pooled, room);
        let room = grown.map_or(room, |(_, cost)| cost);
        let less = other.cover_from(work, duties, may_be, room);
        match less.filter(|(_, cost)| grown.is_none_or(|(_, known)| *cost < known)) {
            Some(less) => Some((other, less)),
            None => Some((pool, grown?)),
        }
    }

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
