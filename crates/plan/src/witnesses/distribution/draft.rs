//! A profile while it grows: witnesses are added where two ways of a duty clash (DPT Figure 7, for our duties), and taken
//! away where no duty needs them.

use std::collections::BTreeMap;

use tomo_graph::NodeId;

use super::FunctionWork;
use super::jobs::Duty;
use crate::witnesses::blame::Blame;
use crate::witnesses::first::{Clash, Firsts};
use crate::witnesses::place::dearest_first;
use crate::witnesses::prune::prune;
use crate::witnesses::{FunctionId, Place};

/// What one profile has of one function.
#[derive(Clone, Debug)]
pub(super) struct Share {
    pub(super) witness: Vec<bool>,
    pub(super) duties: Vec<Duty>,
    /// Witnesses that other functions' calls need.
    pub(super) entries: Vec<u32>,
}

/// A profile while it grows.
#[derive(Clone, Debug, Default)]
pub(super) struct Draft {
    pub(super) shares: BTreeMap<FunctionId, Share>,
    pub(super) size: usize,
    pub(super) cost: u64,
}

impl Share {
    pub(super) fn new(work: &FunctionWork) -> Self {
        Self {
            witness: vec![false; work.flow.places()],
            duties: Vec::new(),
            entries: Vec::new(),
        }
    }

    /// Adds witnesses of the pool until the duties are fulfilled; how many, and what they cost.
    pub(super) fn cover(&mut self, work: &FunctionWork, duties: &[Duty]) -> (usize, u64) {
        // The pool tells all ways apart, so one of the places that make two ways clash is in it.
        let grown = self.cover_from(work, duties, |place| work.pool[place as usize], u64::MAX);
        grown.unwrap_or_default()
    }

    /// Adds witnesses at places that are `allowed` until the duties are fulfilled; how many, and what they cost, unless
    /// that is more than `most`.
    pub(super) fn cover_from(
        &mut self,
        work: &FunctionWork,
        duties: &[Duty],
        allowed: impl Fn(u32) -> bool,
        most: u64,
    ) -> Option<(usize, u64)> {
        let mut firsts = Firsts::new(&work.flow);
        let mut blame = Blame::new(&work.flow);
        let (mut size, mut cost) = (0, 0u64);
        for &duty in duties {
            while let Some(clash) = clash(&mut firsts, duty, &self.witness) {
                let places = blame.places(&clash, &|place| self.witness[place as usize]);
                let places = places.into_iter().filter(|&place| allowed(place));
                let cheapest = places.min_by_key(|&place| (work.weight(place), place))?;
                self.witness[cheapest as usize] = true;
                size += 1;
                cost = cost.saturating_add(work.weight(cheapest));
                if cost > most {
                    return None;
                }
            }
        }
        self.duties.extend(duties);
        Some((size, cost))
    }
}

pub(super) fn clash(firsts: &mut Firsts<'_>, duty: Duty, witness: &[bool]) -> Option<Clash> {
    let is_witness = |place: u32| witness[place as usize];
    match duty.ways {
        Some(ways) => firsts.clash_between(duty.node, ways, is_witness),
        None => firsts.clash_at(duty.node, is_witness),
    }
}

impl Draft {
    /// Adds witnesses until the duties are fulfilled.
    pub(super) fn cover(&mut self, work: &FunctionWork, id: FunctionId, duties: &[Duty]) {
        let share = self.shares.entry(id).or_insert_with(|| Share::new(work));
        let (size, cost) = share.cover(work, duties);
        self.size += size;
        self.cost = self.cost.saturating_add(cost);
    }

    /// Adds witnesses at the entries of functions.
    pub(super) fn enter(&mut self, works: &[FunctionWork], targets: &[(FunctionId, u32)]) {
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

    pub(super) fn prune(&mut self, works: &[FunctionWork]) {
        let ids: Vec<FunctionId> = self.shares.keys().copied().collect();
        for id in ids {
            self.prune_share(&works[id.index()], id);
        }
    }

    /// Drops witnesses of a function that its duties do not need.
    pub(super) fn prune_share(&mut self, work: &FunctionWork, id: FunctionId) {
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

    pub(super) fn places(&self, works: &[FunctionWork]) -> Vec<(FunctionId, Place)> {
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
