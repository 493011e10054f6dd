//! Searches rehearsed: the same steps on complete data instead of on runs, so that many ways to search can be
//! compared. The cases of a step are those that a search with the same seed would run.

use tomo_export::predicates::{Id, Site};
use tomo_graph::NodeId;
use tomo_plan::random::Random;
use tomo_plan::search::{Oracle, Search, Step, at_random, breadth_first};

use crate::answer;
use crate::asked::{IsolateError, Score, Towards};
use crate::complete::{Complete, Picked};
use crate::hunt::{Beginning, Judge, Surveyed, due, score, share};
use crate::session::Session;
use crate::state::Known;

/// A program with its complete data, and what that says of each predicate.
pub struct Stage<'s> {
    pub(crate) session: &'s Session,
    complete: &'s Complete,
    pub(crate) crashes: Vec<(u32, NodeId)>,
    /// By row: its Importance over all cases.
    pub(crate) scores: Vec<f64>,
    /// The best of all, first.
    pub(crate) best: Vec<usize>,
}

/// A way to search.
#[derive(Clone, Copy, Debug)]
pub struct Way {
    /// Which way the search goes.
    pub towards: Towards,
    /// By what the next predicate is chosen.
    pub score: Score,
    /// Whether a survey says where to begin, where it is chosen by data.
    pub survey: bool,
    /// Cases that are run in a step at most.
    pub runs: usize,
    /// Seed of all that is left to chance.
    pub seed: u64,
    /// Whether it goes on behind the best predictor, until nothing is left.
    pub to_the_end: bool,
}

/// A step of a rehearsal.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rehearsed {
    /// Sites that were watched in it.
    pub sites: usize,
    /// Sites that had been watched behind it.
    pub seen: usize,
    /// The best Importance, over all cases, of what had been watched.
    pub best: f64,
}

/// What came of a rehearsal.
#[derive(Clone, Debug, Default)]
pub struct Rehearsal {
    /// Step by step; those in which there was nothing to be watched are left out.
    pub steps: Vec<Rehearsed>,
    /// The step, counted from zero, behind which a predictor as good as the best of all had been watched.
    pub found: Option<usize>,
    /// By row: the step that watched it.
    pub watched: Vec<Option<u32>>,
    /// Whether nothing was left.
    pub ended: bool,
}

impl Session {
    /// Where searches are rehearsed on these data. Runs failing cases once more to see where they crash.
    ///
    /// # Errors
    /// Where a case cannot be run.
    pub fn stage<'s>(&'s self, complete: &'s Complete) -> Result<Stage<'s>, IsolateError> {
        let cases = 0..self.state.plain.len();
        let known = |case: &usize| complete.cases.iter().any(|one| one.0 == *case);
        let failing: Vec<usize> = cases
            .filter(|case| !self.state.plain[*case].passed)
            .filter(known)
            .collect();
        let all = complete.some(|_| true);
        let scores = (0..complete.rows()).map(|row| match complete.has(row) {
            true => answer::importance(&complete.known(row, &all)).value,
            false => 0.0,
        });
        let scores: Vec<f64> = scores.collect();
        let known = (0..complete.rows()).filter(|row| scores[*row] > 0.0);
        let known = known.map(|row| (row, complete.known(row, &all))).collect();
        let best = answer::best(&known).into_iter().map(|one| one.0);
        Ok(Stage {
            session: self,
            complete,
            crashes: self.crashes(&failing)?,
            best: best.collect(),
            scores,
        })
    }
}

impl Stage<'_> {
    /// The Importance of each row over all cases.
    #[must_use]
    pub fn scores(&self) -> &[f64] {
        &self.scores
    }

    /// What a row is called, and what all cases say of it; nothing of rows that were not watched.
    #[must_use]
    pub fn known(&self, row: usize) -> Option<(Id, Known)> {
        let id = Id::of(self.session.sites.rows.get(row)?)?;
        let watched = self.complete.has(row);
        watched.then(|| (id, self.complete.known(row, &self.complete.some(|_| true))))
    }

    /// The site of a row, and which of its predicates it is.
    #[must_use]
    pub fn site(&self, row: usize) -> Option<(&Site, u8)> {
        let mut sites = self.session.sites.sites.iter();
        let site = sites.find(|site| (site.first..site.first + site.told.len()).contains(&row))?;
        Some((site, (row - site.first) as u8))
    }

    /// Rows that predict failure at all, the best first.
    #[must_use]
    pub fn best(&self) -> &[usize] {
        &self.best
    }

    /// Whether runs crash in the program, so that there is somewhere to go backward from.
    #[must_use]
    pub fn crashes(&self) -> bool {
        !self.crashes.is_empty()
    }

    /// Sites that can be observed, and all that there are.
    #[must_use]
    pub fn sites(&self) -> (usize, usize) {
        (
            self.session.observable().len(),
            self.session.sites.sites.len(),
        )
    }

    /// Searches.
    #[must_use]
    pub fn rehearse(&self, way: &Way) -> Rehearsal {
        let icdg = &self.session.map.icdg;
        let most = self.session.options.most;
        let surveyed = match (way.survey, way.score) {
            (true, Score::By(_)) => self.session.routines_surveyed(),
            _ => Surveyed::default(),
        };
        let beginning = Beginning {
            towards: way.towards,
            start: &[],
            crashes: &self.crashes,
            surveyed,
            most,
        };
        let search = beginning.search(icdg);
        let target = self.best.first();
        let target = target.and_then(|row| self.session.map.predicate(*row));
        let oracle = match way.score {
            Score::Oracle => target.map(|target| Oracle::of(icdg, target)),
            _ => None,
        };
        let mut rehearsing = Rehearsing {
            stage: self,
            way,
            search,
            oracle,
            scores: vec![None; icdg.predicate_count()],
            rehearsal: Rehearsal {
                watched: vec![None; self.complete.rows()],
                ..Rehearsal::default()
            },
            best: 0.0,
            seen: 0,
            waiting: Vec::new(),
        };
        let goal = target_score(self);
        loop {
            let number = rehearsing.rehearsal.steps.len() as u64 + 1;
            rehearsing.watch(number);
            let found = goal > 0.0 && rehearsing.best > goal - 1e-9;
            if found && rehearsing.rehearsal.found.is_none() {
                rehearsing.rehearsal.found = Some(number as usize - 1);
            }
            if found && !way.to_the_end {
                break;
            }
            if rehearsing.plan_on(number) == Step::Done && rehearsing.waiting.is_empty() {
                rehearsing.rehearsal.ended = true;
                break;
            }
        }
        rehearsing.rehearsal
    }

    /// The cases that the step of this number runs.
    fn cases(&self, way: &Way, number: u64) -> Picked {
        let plain = &self.session.state.plain;
        let passed = |case: usize| plain[case].passed;
        let mut is_in = vec![false; plain.len()];
        for case in share(plain.len(), passed, way.runs, way.seed, number) {
            is_in[case] = true;
        }
        self.complete.some(|case| is_in[case])
    }
}

fn target_score(stage: &Stage<'_>) -> f64 {
    stage.best.first().map_or(0.0, |row| stage.scores[*row])
}

/// A search under way.
struct Rehearsing<'s> {
    stage: &'s Stage<'s>,
    way: &'s Way,
    search: Search<'s>,
    oracle: Option<Oracle>,
    /// By predicate of the graph: its score by the cases of the step that watched it.
    scores: Vec<Option<f64>>,
    rehearsal: Rehearsal,
    best: f64,
    seen: usize,
    /// Sites whose turn comes last.
    waiting: Vec<usize>,
}

impl Rehearsing<'_> {
    /// Does as if the plan's sites were watched.
    fn watch(&mut self, number: u64) {
        let session = self.stage.session;
        let sites = due(&self.search, session, &mut self.waiting).into_iter();
        let sites: Vec<_> = sites.filter_map(|site| session.map.id(site)).collect();
        if sites.is_empty() {
            return;
        }
        let cases = self.stage.cases(self.way, number);
        for &site in &sites {
            for predicate in session.map.icdg.predicates(site) {
                let Some(row) = session.map.row(predicate) else {
                    continue;
                };
                self.best = self.best.max(self.stage.scores[row]);
                self.rehearsal.watched[row] = Some(number as u32 - 1);
                if let Score::By(heuristic) = self.way.score {
                    let known: Known = self.stage.complete.known(row, &cases);
                    self.scores[predicate.0 as usize] = Some(score(heuristic, &known));
                }
            }
        }
        self.seen += sites.len();
        self.rehearsal.steps.push(Rehearsed {
            sites: sites.len(),
            seen: self.seen,
            best: self.best,
        });
    }

    /// Takes the best predicate and plans its vicinity.
    fn plan_on(&mut self, number: u64) -> Step {
        let mut random = Random::new(self.way.seed.wrapping_add(number));
        let (scores, oracle) = (&self.scores, &self.oracle);
        let (way, session) = (self.way, self.stage.session);
        self.search.step(|candidates| match way.score {
            Score::Bfs => breadth_first(candidates),
            Score::Random => at_random(&mut random, candidates),
            Score::Oracle => match oracle {
                Some(oracle) => oracle.choose(candidates),
                None => breadth_first(candidates),
            },
            Score::By(heuristic) => {
                let judge = Judge {
                    session,
                    heuristic,
                    surveys: way.survey,
                };
                judge.highest(candidates, |predicate| scores[predicate.0 as usize])
            }
        })
    }
}
