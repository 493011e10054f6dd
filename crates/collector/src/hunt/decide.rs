//! What is watched next: which searches begin, and which go on.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap};

use tomo_plan::search::{self, PredicateId, Step, breadth_first};
use tomo_profile::scores::{Heuristic, Tallies, Tally, importance, increase};
use tomo_protocol::{Choice, Known, Towards};

use super::share::{Counted, Label, runs};
use super::tally::{Carried, Enough, known};
use super::{Change, Edition, Group, Hunt, MOST_EDITIONS, NONE, Watched, advance};
use crate::state::{MOST_RUNS, State};

/// Runs that must have failed alike before a search begins.
const LEAST_FAILURES: usize = 2;

impl Hunt {
    /// What follows from all that is known, if anything. O(runs × sites of their variants + predicates).
    pub(crate) fn decide(&self, state: &State) -> Option<Edition> {
        let shared = runs(state, &self.spec);
        let mut carried = Carried::of(self);
        let mut changes = self.openings(state, &shared.runs);
        for group in self.groups.iter().filter(|group| !group.done) {
            changes.extend(self.go_on(group, &shared.runs, &mut carried));
        }
        let number = self.edition() + 1;
        (!changes.is_empty() && number < MOST_EDITIONS).then_some(Edition { number, changes })
    }

    /// Searches that begin: of causes that are worth one, as many as there is room for.
    fn openings(&self, state: &State, runs: &[Counted<'_>]) -> Vec<Change> {
        let change = |cause: u64| Change::Open {
            cause,
            place: self.place(state, cause),
        };
        let begin = self.worth_a_search(runs).into_iter().take(self.room());
        begin.map(change).collect()
    }

    /// Causes without a search that are to have one: several runs failed so, on more than one instance unless there is only one.
    /// Those by which most runs failed come first, and of equals the earliest.
    pub(super) fn worth_a_search(&self, runs: &[Counted<'_>]) -> Vec<u64> {
        let mut failed: BTreeMap<u64, (usize, BTreeSet<[u8; 16]>)> = BTreeMap::new();
        let mut order = Vec::new();
        let mut reporting = BTreeSet::new();
        for run in runs {
            reporting.insert(run.instance);
            let Label::Failed(cause) = run.label else {
                continue;
            };
            let (count, instances) = failed.entry(cause).or_insert_with(|| {
                order.push(cause);
                Default::default()
            });
            *count += 1;
            instances.insert(run.instance);
        }
        let least = reporting.len().min(2);
        order.retain(|cause| {
            let (count, instances) = &failed[cause];
            let known = self.groups.iter().any(|group| group.cause == *cause);
            !known && *count >= LEAST_FAILURES && instances.len() >= least
        });
        order.sort_by_key(|cause| Reverse(failed[cause].0));
        order
    }

    /// The routine and the block in which runs crashed, where the search is to begin there.
    fn place(&self, state: &State, cause: u64) -> Option<(u32, u32)> {
        if self.spec.towards == Towards::Forward {
            return None;
        }
        let mut instances = state.instances();
        let (_, frames) = instances.find_map(|(_, known)| known.evidence.crash(cause))?;
        let mut mine = frames.iter().filter(|(id, _)| *id == self.build_id);
        mine.find_map(|(_, address)| self.block_at(*address))
    }

    /// The routine and the block that have this address.
    fn block_at(&self, address: u64) -> Option<(u32, u32)> {
        let behind = self.blocks.partition_point(|(start, ..)| *start <= address);
        let (_, end, routine, node) = *self.blocks.get(behind.checked_sub(1)?)?;
        (address < end).then_some((routine, node))
    }

    /// The next step of a search, if the data of its plan suffice.
    fn go_on(
        &self,
        group: &Group,
        runs: &[Counted<'_>],
        carried: &mut Carried<'_>,
    ) -> Option<Change> {
        let plan: Vec<Watched> = group
            .search
            .plan
            .iter()
            .filter_map(|site| self.watched(*site))
            .collect();
        let most = self.most_runs(&plan);
        let enough = Enough::of(runs, carried, (group.cause, &plan, most));
        // A plan of which nothing can be observed teaches nothing.
        if !enough.is_reached && !plan.is_empty() {
            return None;
        }
        let known = known(runs, carried, group.cause);
        let best = best(&known);
        let found = |(row, _): &(u32, f64)| {
            let certain = enough.finds(*row) || enough.runs >= most;
            certain && known.get(row).is_some_and(is_perfect)
        };
        let over = best.first().is_some_and(found);
        let mut chosen = Vec::new();
        let mut search = search::Search::resume(&self.icdg, group.search.clone()).ok()?;
        let step = advance(&mut search, &self.terrain, |candidates| {
            let choice = self.choose(&known, candidates);
            chosen.push(choice.map_or(NONE, |one| one.0));
            choice
        });
        let (predictor, value) = match best.first() {
            Some((row, value)) => (Some(*row), *value),
            None => (None, 0.0),
        };
        Some(Change::Step {
            cause: group.cause,
            chosen,
            runs: enough.runs,
            best: value.to_bits(),
            predictor,
            over: over || step == Step::Done,
        })
    }

    /// Runs after which a search goes on in any case: so many for each part of the last edition in which there is any of its plan. No
    /// more than are kept of a single instance, which may be the only one that runs.
    fn most_runs(&self, plan: &[Watched]) -> u64 {
        let parts = self.editions.last().into_iter().flatten();
        let its = parts.filter(|units| plan.iter().any(|site| units.has(site.first)));
        let of_a_part = self.spec.most_runs.min(MOST_RUNS as u64);
        of_a_part.saturating_mul(its.count().max(1) as u64)
    }

    /// The best of the candidates, the first of several.
    fn choose(
        &self,
        known: &HashMap<u32, Known>,
        candidates: &mut dyn Iterator<Item = PredicateId>,
    ) -> Option<PredicateId> {
        let heuristic = match self.spec.choice {
            Choice::Ttest => Heuristic::TTest,
            Choice::Importance => Heuristic::Importance,
            Choice::Maximp => Heuristic::MaxImportance,
            Choice::Failcount => Heuristic::FailCount,
            Choice::Bfs => return breadth_first(candidates),
        };
        let mut best: Option<(f64, PredicateId)> = None;
        for candidate in candidates {
            let row = self.terrain.rows.get(candidate.0 as usize).copied();
            let known = row.flatten().and_then(|row| known.get(&row));
            let score = known.map_or(f64::NEG_INFINITY, |known| score(heuristic, known));
            if best.is_none_or(|(highest, _)| score > highest) {
                best = Some((score, candidate));
            }
        }
        best.map(|(_, candidate)| candidate)
    }
}

fn tally(known: &Known) -> Tally {
    Tally {
        failed_true: known.failed_true,
        passed_true: known.passed_true,
        failed_seen: known.failed_seen,
        passed_seen: known.passed_seen,
    }
}

fn score(heuristic: Heuristic, known: &Known) -> f64 {
    let tallies = Tallies {
        predicates: vec![tally(known)],
        failed: known.failed,
        passed: known.passed,
    };
    heuristic.score(&tallies, 0)
}

/// Whether it was true in all failed runs that carried it, and in no other; nothing tells them better apart.
fn is_perfect(known: &Known) -> bool {
    let all = known.failed_true == known.failed && known.passed_true == 0;
    all && known.failed as usize >= LEAST_FAILURES
}

/// Importance; where one run has failed, that of all failures being like it.
fn value(known: &Known) -> f64 {
    let tally = tally(known);
    if known.failed != 1 {
        return importance(&tally, known.failed);
    }
    let rise = increase(&tally);
    match known.failed_true == 1 && rise > 0.0 {
        true => 2.0 * rise / (1.0 + rise),
        false => 0.0,
    }
}

/// Rows that predict failure at all, the best first; of equals that which more successful runs could have met.
pub(super) fn best(known: &HashMap<u32, Known>) -> Vec<(u32, f64)> {
    let each = known
        .values()
        .map(|one| (value(one), one.passed_seen, one.row));
    let mut found: Vec<_> = each.filter(|(value, ..)| *value > 0.0).collect();
    found.sort_unstable_by(|one, other| {
        let by_value = other.0.total_cmp(&one.0);
        by_value.then(other.1.cmp(&one.1)).then(one.2.cmp(&other.2))
    });
    found
        .into_iter()
        .map(|(value, _, row)| (row, value))
        .collect()
}
