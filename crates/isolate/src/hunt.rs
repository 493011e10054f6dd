//! What a search on real runs and its rehearsal have in common: where it begins, which cases a step runs, and how
//! predicates are scored.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use tomo_graph::NodeId;
use tomo_plan::random::Random;
use tomo_plan::search::{Direction, Icdg, PredicateId, Search, SiteId};
use tomo_profile::scores::{Heuristic, Tallies};

use crate::answer;
use crate::asked::{Towards, direction};
use crate::session::Session;
use crate::state::Known;

/// Where a search begins.
#[derive(Clone, Debug)]
pub(crate) struct Beginning<'b> {
    pub(crate) towards: Towards,
    /// Sites of somebody's choice.
    pub(crate) start: &'b [SiteId],
    /// Where runs crash.
    pub(crate) crashes: &'b [(u32, NodeId)],
    /// Routines of which a survey says in which runs they are entered, if it is to say where to begin.
    pub(crate) surveyed: Surveyed,
    /// Sites at a time, at most.
    pub(crate) most: u32,
}

/// Routines of which a survey says in which runs they are entered.
#[derive(Clone, Debug, Default)]
pub(crate) struct Surveyed {
    pub(crate) all: Vec<u32>,
    /// Those that only failing runs enter.
    pub(crate) doomed: Vec<u32>,
    /// Those that no failing run enters.
    pub(crate) idle: Vec<u32>,
}

impl Surveyed {
    /// The same search, which knows that.
    fn told(self, search: Search<'_>) -> Search<'_> {
        search.surveyed(self.all).doomed(self.doomed, self.idle)
    }
}

impl Beginning<'_> {
    /// The search at its beginning: at sites of somebody's choice if there are any; forward from what a survey says,
    /// or else from what always runs; or backward from where runs crash, if some do.
    pub(crate) fn search<'i>(self, icdg: &'i Icdg) -> Search<'i> {
        let towards = self.towards;
        if !self.start.is_empty() {
            let search = Search::starting(icdg, direction(towards), self.start);
            return search.limited(self.most);
        }
        let goes_back = towards != Towards::Forward && !self.crashes.is_empty();
        let always = match self.surveyed.all[..] {
            [] => Search::forward(icdg),
            _ => Search::starting(icdg, Direction::Forward, &[]),
        };
        let search = match (goes_back, towards) {
            (false, _) => self.surveyed.told(always),
            (true, Towards::Both) => {
                let mut search = Search::backward(icdg, self.crashes);
                let forward: Vec<SiteId> = always.plan().collect();
                search.watch(&forward);
                self.surveyed.told(search)
            }
            (true, _) => Search::backward(icdg, self.crashes),
        };
        search.limited(self.most)
    }
}

/// What says how good predicates are.
pub(crate) struct Judge<'j> {
    pub(crate) session: &'j Session,
    pub(crate) heuristic: Heuristic,
    /// Whether entries of functions are predicates, too.
    pub(crate) surveys: bool,
}

impl Judge<'_> {
    /// The candidate with the highest score; of equals what is in a function that is searched already, then the entry
    /// that leads to the fewest sites, then the first.
    ///
    /// What cannot be observed itself, as which way a jump by a table goes, is no worse than what decides whether it
    /// is come to: it has the best score of these. Else all that is behind such a jump would come last.
    pub(crate) fn highest(
        &self,
        candidates: &mut dyn Iterator<Item = PredicateId>,
        observed: impl Fn(PredicateId) -> Option<f64>,
    ) -> Option<PredicateId> {
        let mut best: Option<((f64, Reverse<u32>), PredicateId)> = None;
        for candidate in candidates {
            let score = self.score(candidate, &observed);
            if best.is_some_and(|((highest, _), _)| score < highest) {
                continue;
            }
            let rank = (score, Reverse(self.costs(candidate)));
            if best.is_none_or(|(highest, _)| rank > highest) {
                best = Some((rank, candidate));
            }
        }
        best.map(|(_, candidate)| candidate)
    }

    fn costs(&self, candidate: PredicateId) -> u32 {
        let map = &self.session.map;
        match map.icdg.entered(candidate) {
            Some(routine) if !self.is_doomed(routine) => map.icdg.always_sites(routine),
            // What leads there is in functions that are searched anyway.
            _ => 0,
        }
    }

    fn score(&self, candidate: PredicateId, observed: &impl Fn(PredicateId) -> Option<f64>) -> f64 {
        let (mut open, mut passed) = (vec![candidate], BTreeSet::new());
        let mut best = f64::NEG_INFINITY;
        while let Some(predicate) = open.pop() {
            if let Some(routine) = self.session.map.icdg.entered(predicate) {
                best = best.max(self.entered(routine));
            } else if let Some(score) = observed(predicate) {
                best = best.max(score);
            } else {
                let site = self.session.map.icdg.site_of(predicate);
                if passed.insert(site) {
                    open.extend(self.session.deciders.get(&site).into_iter().flatten());
                }
            }
        }
        best
    }

    fn is_doomed(&self, routine: u32) -> bool {
        let entry = self.session.map.begin(routine);
        entry.is_some_and(|entry| self.session.state.survey.is_doomed(entry))
    }

    /// How good it is that a routine was entered.
    fn entered(&self, routine: u32) -> f64 {
        let entry = self.session.map.begin(routine).filter(|_| self.surveys);
        let known = entry.and_then(|entry| self.session.state.survey.known(entry));
        known.map_or(f64::NEG_INFINITY, |known| score(self.heuristic, &known))
    }
}

/// The sites that a step of `search` watches: of those that it plans all but the late ones, which wait; of these at most
/// `most` where it plans nothing any more.
pub(crate) fn due(search: &Search<'_>, session: &Session, waiting: &mut Vec<usize>) -> Vec<usize> {
    let mut planned = search.plan().peekable();
    if planned.peek().is_none() {
        let count = waiting.len().min(session.options.most as usize);
        return waiting.drain(..count).collect();
    }
    let planned = planned.filter_map(|site| session.map.site(site));
    let allowed = planned.filter(|&site| session.allowed[site]);
    let (late, now) = allowed.partition(|&site| session.is_late(site));
    waiting.extend::<Vec<usize>>(late);
    now
}

/// The cases of step `number`: a random share of `runs`; failures and successes alike as far as there are enough.
pub(crate) fn share(
    count: usize,
    passed: impl Fn(usize) -> bool,
    runs: usize,
    seed: u64,
    number: u64,
) -> Vec<usize> {
    let mut random = Random::new(seed ^ number.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let (mut passing, mut failing): (Vec<usize>, Vec<usize>) =
        (0..count).partition(|case| passed(*case));
    random.shuffle(&mut passing);
    random.shuffle(&mut failing);
    let half = runs.div_ceil(2);
    let failures = failing
        .len()
        .min(half.max(runs.saturating_sub(passing.len())));
    let successes = passing.len().min(runs - failures.min(runs));
    failing.truncate(failures);
    passing.truncate(successes);
    failing.extend(passing);
    failing
}

/// The score of a predicate of which this is known.
pub(crate) fn score(heuristic: Heuristic, known: &Known) -> f64 {
    if heuristic == Heuristic::Importance {
        return answer::importance(known).value;
    }
    let tallies = Tallies {
        predicates: vec![known.tally()],
        failed: known.failed,
        passed: known.passed,
    };
    heuristic.score(&tallies, 0)
}
