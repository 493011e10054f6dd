//! What a search on real runs and its rehearsal have in common: where it begins, which cases a step runs, and how
//! predicates are scored.

use tomo_graph::NodeId;
use tomo_plan::random::Random;
use tomo_plan::search::{Icdg, Search, SiteId};
use tomo_profile::scores::{Heuristic, Tallies};

use crate::answer;
use crate::asked::{Towards, direction};
use crate::session::Session;
use crate::state::Known;

/// A search at its beginning, at most `most` sites at a time: at sites of somebody's choice if there are any; forward
/// from what always runs, or backward from where runs crash, if some do.
pub(crate) fn begin<'i>(
    icdg: &'i Icdg,
    towards: Towards,
    start: &[SiteId],
    crashes: &[(u32, NodeId)],
    most: u32,
) -> Search<'i> {
    let mut search = if !start.is_empty() {
        Search::starting(icdg, direction(towards), start)
    } else if towards == Towards::Forward || crashes.is_empty() {
        Search::forward(icdg)
    } else {
        Search::backward(icdg, crashes)
    };
    if towards == Towards::Both {
        let forward: Vec<SiteId> = Search::forward(icdg).plan().collect();
        search.watch(&forward);
    }
    search.limited(most)
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
