//! Which searches are rehearsed on each variant.

use tomo_isolate::{Rehearsal, Score, Stage, Towards, Way};
use tomo_profile::scores::Heuristic;

use super::results::{Drawn, Searched};

/// Trials of what is left to chance (ABI §5: five).
const TRIALS: u64 = 5;
/// Cases in a step at most (ABI §5).
pub(super) const RUNS: usize = 500;

/// A way, and what it is called.
pub(super) struct Named {
    pub(super) name: &'static str,
    pub(super) towards: Towards,
    pub(super) score: Score,
    survey: bool,
}

const fn named(name: &'static str, towards: Towards, score: Score) -> Named {
    Named {
        name,
        towards,
        score,
        survey: false,
    }
}

/// The same, where a survey says where to begin.
const fn surveyed(name: &'static str, towards: Towards, score: Score) -> Named {
    Named {
        name,
        towards,
        score,
        survey: true,
    }
}

/// The way of which the study tells most.
pub(super) const USUAL: Named = named("ttest", Towards::Forward, Score::By(Heuristic::TTest));

/// All of them; those that go backward where runs crash.
pub(super) const WAYS: [Named; 14] = [
    named(
        "failcount",
        Towards::Forward,
        Score::By(Heuristic::FailCount),
    ),
    named(
        "importance",
        Towards::Forward,
        Score::By(Heuristic::Importance),
    ),
    named(
        "maximp",
        Towards::Forward,
        Score::By(Heuristic::MaxImportance),
    ),
    USUAL,
    named("ochiai", Towards::Forward, Score::By(Heuristic::Ochiai)),
    named("random", Towards::Forward, Score::Random),
    named("bfs", Towards::Forward, Score::Bfs),
    named("oracle", Towards::Forward, Score::Oracle),
    named(
        "backward importance",
        Towards::Backward,
        Score::By(Heuristic::Importance),
    ),
    named("backward bfs", Towards::Backward, Score::Bfs),
    named(
        "both importance",
        Towards::Both,
        Score::By(Heuristic::Importance),
    ),
    surveyed(
        "ttest surveyed",
        Towards::Forward,
        Score::By(Heuristic::TTest),
    ),
    surveyed(
        "ochiai surveyed",
        Towards::Forward,
        Score::By(Heuristic::Ochiai),
    ),
    surveyed(
        "both ochiai surveyed",
        Towards::Both,
        Score::By(Heuristic::Ochiai),
    ),
];

/// The oracle writes all vicinities down, which is too much for programs with more sites than this.
const MOST_OF_ORACLE: usize = 30_000;

impl Named {
    fn way(&self, seed: u64, to_the_end: bool) -> Way {
        Way {
            towards: self.towards,
            score: self.score,
            survey: self.survey,
            runs: RUNS,
            seed,
            to_the_end,
        }
    }

    fn goes(&self, stage: &Stage<'_>) -> bool {
        let large = stage.sites().0 > MOST_OF_ORACLE;
        match self.score {
            Score::Oracle => !large,
            _ => self.towards == Towards::Forward || stage.crashes(),
        }
    }

    /// One trial.
    pub(super) fn rehearse(&self, stage: &Stage<'_>, to_the_end: bool) -> Rehearsal {
        stage.rehearse(&self.way(1, to_the_end))
    }

    /// All trials, in means.
    fn search(&self, stage: &Stage<'_>) -> Searched {
        let trials = match self.score {
            Score::Random => TRIALS,
            _ => 1,
        };
        let all = (1..=trials).map(|seed| stage.rehearse(&self.way(seed, false)));
        let all: Vec<Rehearsal> = all.collect();
        let ends = all.iter().filter_map(|one| {
            let at = one.found?;
            Some((one.steps.get(at)?.seen, at + 1))
        });
        let ends: Vec<(usize, usize)> = ends.collect();
        let count = ends.len().max(1) as f64;
        let seen = ends.iter().map(|end| end.0).sum::<usize>() as f64;
        let steps = ends.iter().map(|end| end.1).sum::<usize>() as f64;
        Searched {
            way: self.name.into(),
            found: ends.len(),
            trials: all.len(),
            seen: seen / count,
            steps: steps / count,
            sites: if steps > 0.0 { seen / steps } else { 0.0 },
        }
    }
}

/// All ways that go.
pub(super) fn all(stage: &Stage<'_>) -> Vec<Searched> {
    let ways = WAYS.iter().filter(|way| way.goes(stage));
    ways.map(|way| way.search(stage)).collect()
}

/// Curves of searches that go on to the end.
pub(super) fn curves(stage: &Stage<'_>) -> Vec<Drawn> {
    let ways = WAYS.iter().filter(|way| way.goes(stage));
    let drawn = ways.filter(|way| way.score != Score::Oracle).map(|way| {
        let rehearsal = way.rehearse(stage, true);
        let points = rehearsal.steps.iter().map(|step| (step.seen, step.best));
        Drawn {
            way: way.name.into(),
            points: thinned(points.collect()),
        }
    });
    drawn.collect()
}

/// The points at which something changes.
fn thinned(points: Vec<(usize, f64)>) -> Vec<(usize, f64)> {
    let last = points.len().saturating_sub(1);
    let changes = |at: usize| at == 0 || at == last || points[at].1 > points[at - 1].1;
    (0..points.len())
        .filter(|at| changes(*at))
        .map(|at| points[at])
        .collect()
}
