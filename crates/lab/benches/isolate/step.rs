//! A step of a search with many runs: their reports summed up, all that is known scored, the plan extended.

use std::time::Instant;

use tomo_graph::{FlowGraph, NodeId};
use tomo_isolate::{Tally, Teller};
use tomo_plan::random::Random;
use tomo_plan::search::{Icdg, Routine, Search, SiteId};
use tomo_profile::scores::{self, Heuristic, Outcome, Tallies};
use tomo_wire::predicates::{Kind, Recorded, Row, Told, Width, width};

use crate::{Failure, print};

const REPORTS: usize = 1_000_000;
/// Distinct ones; each is added as if it were new.
const DISTINCT: usize = 4096;
const ROUTINES: usize = 2000;
/// Branches of a routine.
const BRANCHES: usize = 50;
/// Sites of the step's plan.
const PLANNED: usize = 100;
const THREADS: usize = 2;

pub(crate) fn step() -> Result<(), Failure> {
    let icdg = Icdg::of(&routines()?)?;
    print("sites of the step", icdg.site_count() as f64, "sites", "");
    let rows = rows(icdg.site_count());
    let reports = reports();
    let mut search = Search::forward(&icdg);
    let all: Vec<SiteId> = (0..icdg.site_count() as u32).map(SiteId).collect();
    // All sites but those of the plan are known already: there is most to be scored.
    search.watch(&all);
    let begin = Instant::now();
    let teller = Teller::of(Recorded::Marks, &rows);
    let tally = sum(&teller, &reports);
    let summed = begin.elapsed().as_secs_f64();
    let mut tallies = known(icdg.predicate_count());
    for (row, tallied) in rows.iter().zip(&mut tallies.predicates) {
        if row.told() == Some(Told::Itself) {
            *tallied = tally.known(row).tally();
        }
    }
    let step = search.step(|candidates| {
        let best = scores::best(
            Heuristic::TTest,
            &tallies,
            candidates.map(|candidate| candidate.0 as usize),
        );
        best.map(|(predicate, _)| tomo_plan::search::PredicateId(predicate as u32))
    });
    let whole = begin.elapsed().as_secs_f64();
    std::hint::black_box(step);
    print("of a step: a million reports summed up", summed, "s", "");
    print(
        "a step over a million reports and 100,000 sites, two cores",
        whole,
        "s",
        "< 2 s",
    );
    Ok(())
}

/// Routines of branches behind each other, each of which calls the next two.
fn routines() -> Result<Vec<Routine>, Failure> {
    let mut made = Vec::new();
    for number in 0..ROUTINES {
        let mut edges = Vec::new();
        for branch in 0..BRANCHES as u32 {
            let (top, side, next) = (2 * branch, 2 * branch + 1, 2 * branch + 2);
            edges.extend([(top, side), (top, next), (side, next)]);
        }
        let edges = edges.into_iter().map(|(a, b)| (NodeId(a), NodeId(b)));
        let graph = FlowGraph::new(2 * BRANCHES + 1, NodeId(0), edges)?;
        let mut routine = Routine::new(graph);
        let called = [2 * number + 1, 2 * number + 2];
        let called = called.into_iter().filter(|callee| *callee < ROUTINES);
        routine.calls = called.map(|callee| (NodeId(1), callee as u32)).collect();
        routine.root = number == 0;
        made.push(routine);
    }
    Ok(made)
}

/// The rows of a module with so many branches, of which some are in the plan.
fn rows(sites: usize) -> Vec<Row> {
    let mut rows = Vec::with_capacity(2 * sites);
    for site in 0..sites {
        for case in 0..2u8 {
            let is_planned = site < PLANNED;
            rows.push(Row {
                site: (site as u64).into(),
                block: (site as u64).into(),
                by: if is_planned {
                    2 * site as u32 + u32::from(case)
                } else {
                    0
                }
                .into(),
                kind: Kind::Branch as u8,
                case,
                width: width(64, Width::None),
                told: if is_planned {
                    Told::Itself
                } else {
                    Told::Unasked
                } as u8,
            });
        }
    }
    rows
}

/// Marks of runs, and how they ended.
fn reports() -> Vec<(Vec<u8>, Outcome)> {
    let mut random = Random::new(7);
    let mut report = || {
        let marks = (0..2 * PLANNED).map(|_| u8::from(random.below(3) == 0));
        let marks = marks.collect();
        let outcome = match random.below(10) {
            0 => Outcome::Failure,
            _ => Outcome::Success,
        };
        (marks, outcome)
    };
    (0..DISTINCT).map(|_| report()).collect()
}

/// All reports in sum, by several threads.
fn sum<'t>(teller: &'t Teller, reports: &[(Vec<u8>, Outcome)]) -> Tally<'t> {
    let share = |thread: usize| {
        let mut tally = Tally::new(teller);
        for number in (thread..REPORTS).step_by(THREADS) {
            let (marks, outcome) = &reports[number % reports.len()];
            tally.add(marks, *outcome);
        }
        tally
    };
    std::thread::scope(|scope| {
        let other = scope.spawn(move || share(1));
        let mut tally = share(0);
        if let Ok(other) = other.join() {
            tally.join(&other);
        }
        tally
    })
}

/// What earlier steps told of all predicates.
fn known(predicates: usize) -> Tallies {
    let mut random = Random::new(11);
    let mut below = |most: u64| random.below(most as usize + 1) as u64;
    let mut tally = || {
        let (failed_seen, passed_seen) = (below(100_000), below(900_000));
        scores::Tally {
            failed_true: below(failed_seen),
            passed_true: below(passed_seen),
            failed_seen,
            passed_seen,
        }
    };
    Tallies {
        predicates: (0..predicates).map(|_| tally()).collect(),
        failed: 100_000,
        passed: 900_000,
    }
}
