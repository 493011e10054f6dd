//! A search, step by step (ABI §4, Procedure 1): arm the plan's sites, run cases, label and score them, extend.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ffi::OsString;
use std::io;
use std::path::PathBuf;

use globset::{Glob, GlobSet, GlobSetBuilder};
use tomo_export::predicates::{Id, PredicateError, Sites};
use tomo_export::{Located, ModuleError, locate};
use tomo_launch::{
    Agent, Arming, Carried, Chosen, ImageError, Images, Observed, Target, TargetError,
    VariantError, equip, new_folder, private_folder, read_record,
};
use tomo_plan::random::Random;
use tomo_plan::search::{
    Direction, IcdgError, Oracle, PredicateId, Search, SiteId, StateError, Step, at_random,
    breadth_first,
};
use tomo_profile::scores::{Heuristic, Outcome, Tallies, Tally};
use tomo_program::{Binary, Cache, ModelError};
use tomo_weave::Asked;
use tomo_wire::record::Reason;

use crate::answer::{self, Answer};
use crate::cases::{Case, Cases, Success};
use crate::crash;
use crate::many::each;
use crate::map::Map;
use crate::run::{End, Label, Ran, label, run};
use crate::state::{self, Known, Plain, State, StepMade};

/// Which way the search goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Towards {
    /// From what always runs.
    Forward,
    /// From where runs crash.
    Backward,
    /// From both.
    Both,
}

/// By what the next predicate is chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Score {
    /// By data.
    By(Heuristic),
    /// The first.
    Bfs,
    /// Any.
    Random,
    /// By knowing the answer: all sites are watched first. For studies.
    Oracle,
}

/// What is searched, and how.
#[derive(Clone, Debug)]
pub struct Options {
    /// The program, and arguments before those of the cases.
    pub command: Vec<OsString>,
    /// The cases.
    pub cases: Cases,
    /// Where what is found is kept.
    pub folder: PathBuf,
    /// Where models and images are kept.
    pub cache: PathBuf,
    /// Cases that are run in a step at most.
    pub runs: usize,
    /// Cases at a time.
    pub jobs: usize,
    /// Which way the search goes.
    pub towards: Towards,
    /// By what the next predicate is chosen.
    pub score: Score,
    /// Seed of all that is left to chance.
    pub seed: u64,
    /// Steps at most.
    pub steps: usize,
    /// Sites at a time at most.
    pub most: u32,
    /// Sites to begin with.
    pub start: Vec<Id>,
    /// Functions or source files that alone are watched, as patterns; all where there are none.
    pub focus: Vec<String>,
    /// Functions or source files that are not.
    pub exclude: Vec<String>,
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "each says itself what it is")]
pub enum IsolateError {
    #[error(transparent)]
    Target(#[from] TargetError),
    #[error("{path}: {1}", path = .0.display())]
    Io(PathBuf, io::Error),
    #[error(transparent)]
    Image(#[from] ImageError),
    #[error(transparent)]
    Module(#[from] ModuleError),
    #[error(transparent)]
    Variant(#[from] VariantError),
    #[error(transparent)]
    Predicates(#[from] PredicateError),
    #[error("the model {0}")]
    Model(#[from] ModelError),
    #[error("the program is too large to be searched: {0}")]
    Graph(#[from] IcdgError),
    #[error("the state of the search: {0}; begin anew in another folder (-o)")]
    State(#[from] StateError),
    #[error("none of the {0} cases fails, so there is nothing to be found; check how success is told (=> …)")]
    NoFailure(usize),
    #[error("all {0} cases fail, so there is nothing to compare with; check how success is told (=> …)")]
    NoSuccess(usize),
    #[error("the case in line {0} could not be run: {1}")]
    Case(usize, io::Error),
    #[error("nobody can tell whether the case in line {0} is a success: {1}")]
    Unlabelled(usize, String),
    #[error("{path} has changed since the search began: begin anew in another folder (-o), or bring the old program back", path = .0.display())]
    Changed(PathBuf),
    #[error("{path} holds another search ({1}): go on with its own, or choose another folder (-o)", path = .0.display())]
    Other(PathBuf, &'static str),
    #[error("nothing was recorded in any run{0}")]
    NotArmed(String),
    #[error("{0}: {1}")]
    Pattern(String, globset::Error),
    #[error("the program has no site {0} that can be observed")]
    NoSite(Id),
}

/// Who is told how it goes.
pub trait Watch {
    /// Something that is good to know.
    fn note(&mut self, words: &str);
    /// A step is done: which one, how many sites have been seen, of how many.
    fn step(&mut self, number: usize, step: &StepMade, seen: usize, all: usize);
}

/// A search in its folder.
pub struct Session {
    options: Options,
    folder: PathBuf,
    module: Observed,
    located: Located,
    images: Images,
    agent: Agent,
    sites: Sites,
    map: Map,
    /// By site: whether it may be watched.
    allowed: Vec<bool>,
    /// What cases are compared to, by case.
    like: Vec<Option<Ran>>,
    state: State,
}

/// A run with what it showed.
struct Shown {
    case: usize,
    outcome: Outcome,
    seconds: f64,
    /// By mark; nothing where it was not armed.
    marks: Option<Vec<u8>>,
    why_not: Option<String>,
}

impl Session {
    /// Opens the search in its folder, or begins it: looks at the program, and runs each case once as it is.
    ///
    /// # Errors
    /// Where there is nothing to be searched, or the folder holds something else.
    pub fn open(
        options: Options,
        agent: Agent,
        watch: &mut dyn Watch,
    ) -> Result<Self, IsolateError> {
        let first = options.command.first().cloned().unwrap_or_default();
        let target = Target::find(&first, std::env::var_os("PATH").as_deref())?;
        let io_at = |path: &PathBuf| {
            let path = path.clone();
            move |error| IsolateError::Io(path, error)
        };
        let module = Observed::of(&Chosen::executable(&target));
        let module = module.map_err(io_at(&target.executable))?;
        let folder = private_folder(&options.folder)?;
        let images = Images::in_cache(&options.cache)?;
        let (_, predicates) = images.marking(&module, Asked::All, &())?;
        let images = images.apart(&folder)?;
        let cache = Cache::at(&options.cache);
        let located = locate(module.id, [module.path.as_path()], Some(&cache), &())?;
        let bytes = std::fs::read(&predicates).map_err(io_at(&predicates))?;
        let sites = Sites::read(&located, &bytes)?;
        let map = Map::of(&located.model.graphs()?, &sites)?;
        let mut session = Self {
            allowed: allowed(&sites, &options)?,
            like: Vec::new(),
            state: State {
                version: state::VERSION,
                module: format!("{:?}", module.id),
                cases: options.cases.name,
                asked: asked_for(&options),
                plain: Vec::new(),
                flaky: Vec::new(),
                known: BTreeMap::new(),
                steps: Vec::new(),
                search: Search::starting(&map.icdg, Direction::Forward, &[]).state().clone(),
                done: false,
            },
            options,
            folder,
            module,
            located,
            images,
            agent,
            sites,
            map,
        };
        session.compare()?;
        match State::read(&session.folder).map_err(io_at(&session.folder))? {
            Some(state) => session.resume(state, watch)?,
            None => session.begin(watch)?,
        }
        Ok(session)
    }

    fn resume(&mut self, state: State, watch: &mut dyn Watch) -> Result<(), IsolateError> {
        let other = |what| Err(IsolateError::Other(self.folder.clone(), what));
        if state.version != state::VERSION {
            return other("of another version of tomo");
        }
        if state.module != self.state.module {
            return Err(IsolateError::Changed(self.module.path.clone()));
        }
        if state.cases != self.state.cases {
            return other("of other cases");
        }
        if state.asked != self.state.asked {
            return other("with other options");
        }
        watch.note(&format!("going on after step {}", state.steps.len()));
        self.state = state;
        Ok(())
    }

    fn begin(&mut self, watch: &mut dyn Watch) -> Result<(), IsolateError> {
        let cases = self.options.cases.cases.len();
        let all: Vec<usize> = (0..cases).collect();
        self.state.plain = self.as_they_are(&all)?;
        let plain = &self.state.plain;
        let failing: Vec<usize> = (0..cases).filter(|&case| !plain[case].passed).collect();
        let line = |case: usize| self.options.cases.cases[case].line;
        for &case in failing.iter().filter(|&&case| plain[case].end == End::Hung) {
            let seconds = self.options.cases.cases[case].timeout;
            let line = line(case);
            watch.note(&format!(
                "the case in line {line} did not end within {seconds} s, which counts as a failure (%timeout gives it longer)"
            ));
        }
        match failing.len() {
            0 => return Err(IsolateError::NoFailure(cases)),
            count if count == cases => return Err(IsolateError::NoSuccess(cases)),
            _ => {}
        }
        let again = self.as_they_are(&failing)?;
        let differ = failing.iter().zip(&again).filter(|(_, again)| again.passed);
        let flaky: Vec<usize> = differ.map(|(case, _)| *case).collect();
        for &case in &flaky {
            watch.note(&flaky_words(line(case)));
        }
        let ends: BTreeSet<End> = failing.iter().map(|&case| plain[case].end).collect();
        if ends.len() > 1 {
            let ends: Vec<String> = ends.into_iter().map(End::words).collect();
            watch.note(&format!(
                "the cases fail in different ways ({}): if these are several bugs, search them one by one",
                ends.join(", ")
            ));
        }
        self.state.flaky = flaky;
        self.state.search = self.first_plan(&failing, watch)?;
        self.save()
    }

    /// Where the search begins.
    fn first_plan(
        &self,
        failing: &[usize],
        watch: &mut dyn Watch,
    ) -> Result<tomo_plan::search::State, IsolateError> {
        let icdg = &self.map.icdg;
        let (towards, most) = (self.options.towards, self.options.most);
        let crashes = match towards {
            Towards::Forward => Vec::new(),
            Towards::Backward | Towards::Both => self.crashes(failing)?,
        };
        if towards != Towards::Forward && crashes.is_empty() {
            watch.note("no failing case crashes in the program: the search goes forward");
        }
        let mut search = if !self.options.start.is_empty() {
            Search::starting(icdg, direction(towards), &self.start()?)
        } else if crashes.is_empty() {
            Search::forward(icdg)
        } else {
            Search::backward(icdg, &crashes)
        };
        if towards == Towards::Both {
            let forward: Vec<SiteId> = Search::forward(icdg).plan().collect();
            search.watch(&forward);
        }
        Ok(search.limited(most).state().clone())
    }

    fn start(&self) -> Result<Vec<SiteId>, IsolateError> {
        let each = self.options.start.iter().map(|id| {
            let mut sites = self.sites.sites.iter();
            let found = sites.position(|site| site.kind == id.kind && site.address.0 == id.site);
            let site = found.and_then(|site| self.map.id(site));
            site.ok_or(IsolateError::NoSite(*id))
        });
        each.collect()
    }

    /// Where failing cases crash, of the first that do.
    fn crashes(&self, failing: &[usize]) -> Result<Vec<(u32, tomo_graph::NodeId)>, IsolateError> {
        const MOST: usize = 16;
        let graphs = self.located.model.graphs()?;
        let binary = Binary::parse(&self.located.bytes).ok();
        let Some(entry) = binary.and_then(|binary| binary.entry()) else {
            return Ok(Vec::new());
        };
        let killed = |case: &&usize| matches!(self.state.plain[**case].end, End::Killed(_));
        let mut places = BTreeSet::new();
        for &case in failing.iter().filter(killed).take(MOST) {
            let case = &self.options.cases.cases[case];
            let place = crash::place(&self.options.command, case, entry.0, &graphs);
            let place = place.map_err(|error| IsolateError::Case(case.line, error))?;
            places.extend(place);
        }
        Ok(places.into_iter().collect())
    }

    /// Runs the commands to which cases are compared.
    fn compare(&mut self) -> Result<(), IsolateError> {
        let cases = &self.options.cases.cases;
        let made = each(cases.len(), self.options.jobs, |number| {
            let Success::Like(command) = &cases[number].success else {
                return Ok(None);
            };
            run(command, &cases[number], &[]).map(Some)
        });
        let made = made.into_iter().zip(cases);
        let made = made.map(|(ran, case)| ran.map_err(|error| IsolateError::Case(case.line, error)));
        self.like = made.collect::<Result<_, _>>()?;
        Ok(())
    }

    /// Runs these cases as they are.
    fn as_they_are(&self, cases: &[usize]) -> Result<Vec<Plain>, IsolateError> {
        let made = each(cases.len(), self.options.jobs, |number| {
            let (ran, outcome) = self.labelled(cases[number], &[])?;
            Ok(Plain {
                passed: outcome == Outcome::Success,
                end: ran.end,
                seconds: ran.took.as_secs_f64(),
            })
        });
        made.into_iter().collect()
    }

    fn labelled(
        &self,
        number: usize,
        variables: &[(&str, OsString)],
    ) -> Result<(Ran, Outcome), IsolateError> {
        let case: &Case = &self.options.cases.cases[number];
        let ran = run(&self.options.command, case, variables);
        let ran = ran.map_err(|error| IsolateError::Case(case.line, error))?;
        let like = self.like.get(number).and_then(Option::as_ref);
        match label(case, &ran, like) {
            Label::Passed => Ok((ran, Outcome::Success)),
            Label::Failed => Ok((ran, Outcome::Failure)),
            Label::Unknown(why) => Err(IsolateError::Unlabelled(case.line, why)),
        }
    }

    fn save(&self) -> Result<(), IsolateError> {
        let failed = |error| IsolateError::Io(self.folder.clone(), error);
        self.state.write(&self.folder).map_err(failed)
    }

    /// Searches until something predicts failure perfectly, nothing is left, or the steps are used up; confirms what was
    /// found by all cases.
    ///
    /// # Errors
    /// Where a case cannot be run any more, or the program has changed.
    pub fn search(&mut self, watch: &mut dyn Watch) -> Result<Answer, IsolateError> {
        let oracle = match self.options.score {
            Score::Oracle if !self.state.done => self.oracle()?,
            _ => None,
        };
        while !self.state.done && self.state.steps.len() < self.options.steps {
            self.step(oracle.as_ref(), watch)?;
        }
        let best = answer::best(&self.state.known);
        let confirmed = self.confirm(&best)?;
        self.answer(&best, &confirmed)
    }

    /// Watches what is planned, then plans on.
    fn step(
        &mut self,
        oracle: Option<&Oracle>,
        watch: &mut dyn Watch,
    ) -> Result<(), IsolateError> {
        let planned: Vec<SiteId> = {
            let search = Search::resume(&self.map.icdg, self.state.search.clone())?;
            search.plan().collect()
        };
        let sites: Vec<usize> = planned
            .iter()
            .filter_map(|&site| self.map.site(site))
            .filter(|&site| self.allowed[site])
            .collect();
        let number = self.state.steps.len() + 1;
        let mut made = None;
        if !sites.is_empty() {
            let cases = self.share(number as u64);
            let shown = self.watch(&sites, &cases, watch)?;
            made = Some((shown.runs, shown.slower));
            self.state.known.extend(shown.known.into_iter().map(|(row, known)| {
                let step = number as u32;
                (row, Known { step, ..known })
            }));
        }
        let best = answer::best(&self.state.known);
        let perfect = best.first().is_some_and(|best| best.1.value > 1.0 - 1e-9);
        let why = self.plan_on(oracle, number as u64)?;
        self.state.done |= perfect;
        if let Some((runs, slower)) = made {
            let predictor = best.first().map(|(row, _)| self.name(*row));
            let step = StepMade {
                sites: sites.len(),
                runs,
                why,
                best: best.first().map_or(0.0, |best| best.1.value),
                predictor,
                slower,
            };
            let seen = self.seen();
            watch.step(number, &step, seen, self.sites.sites.len());
            self.state.steps.push(step);
            self.save()?;
        }
        Ok(())
    }

    /// Takes the best predicate and plans its vicinity; why, in words.
    fn plan_on(&mut self, oracle: Option<&Oracle>, number: u64) -> Result<String, IsolateError> {
        let mut search = Search::resume(&self.map.icdg, self.state.search.clone())?;
        let mut random = Random::new(self.options.seed.wrapping_add(number));
        let step = search.step(|candidates| match self.options.score {
            Score::Bfs => breadth_first(candidates),
            Score::Random => at_random(&mut random, candidates),
            Score::Oracle => match oracle {
                Some(oracle) => oracle.choose(candidates),
                None => breadth_first(candidates),
            },
            Score::By(heuristic) => self.highest(heuristic, candidates),
        });
        self.state.search = search.state().clone();
        Ok(match step {
            Step::Explored(predicate) => match self.map.row(predicate) {
                Some(row) => format!("near {}", self.name(row)),
                None => "near a branch that cannot be observed".into(),
            },
            Step::Continued => "more of the same".into(),
            Step::Strayed => "where nothing led to".into(),
            Step::Done => {
                self.state.done = true;
                "nothing is left".into()
            }
        })
    }

    /// The candidate with the highest score, the first of several.
    fn highest(
        &self,
        heuristic: Heuristic,
        candidates: &mut dyn Iterator<Item = PredicateId>,
    ) -> Option<PredicateId> {
        let mut best: Option<(f64, PredicateId)> = None;
        for candidate in candidates {
            let known = self.map.row(candidate).and_then(|row| self.state.known.get(&row));
            let score = known.map_or(f64::NEG_INFINITY, |known| score(heuristic, known));
            if best.is_none_or(|(highest, _)| score > highest) {
                best = Some((score, candidate));
            }
        }
        best.map(|(_, candidate)| candidate)
    }

    /// Knows the answer by watching everything.
    fn oracle(&self) -> Result<Option<Oracle>, IsolateError> {
        let all: Vec<usize> = (0..self.sites.sites.len())
            .filter(|&site| self.allowed[site] && self.map.id(site).is_some())
            .collect();
        let cases: Vec<usize> = (0..self.options.cases.cases.len()).collect();
        let shown = self.watch_quietly(&all, &cases)?;
        let best = answer::best(&shown.known);
        let target = best.first().and_then(|(row, _)| self.map.predicate(*row));
        Ok(target.map(|target| Oracle::of(&self.map.icdg, target)))
    }

    /// The cases of a step: a random share; failures and successes alike as far as there are enough.
    fn share(&self, number: u64) -> Vec<usize> {
        let runs = self.options.runs;
        let count = self.options.cases.cases.len();
        let mut random = Random::new(self.options.seed ^ number.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let passed = |case: &usize| self.state.plain[*case].passed;
        let (mut passing, mut failing): (Vec<usize>, Vec<usize>) = (0..count).partition(passed);
        random.shuffle(&mut passing);
        random.shuffle(&mut failing);
        let half = runs.div_ceil(2);
        let failures = failing.len().min(half.max(runs.saturating_sub(passing.len())));
        let successes = passing.len().min(runs - failures.min(runs));
        failing.truncate(failures);
        passing.truncate(successes);
        failing.extend(passing);
        failing
    }

    fn name(&self, row: usize) -> String {
        let id = self.sites.rows.get(row).and_then(Id::of);
        id.map_or_else(String::new, |id| id.to_string())
    }

    /// How many sites have been watched.
    fn seen(&self) -> usize {
        let first = |row: &&usize| self.sites.rows.get(**row).is_some_and(|row| row.case == 0);
        self.state.known.keys().filter(first).count()
    }

    /// What all cases say of the best predicates.
    fn confirm(
        &self,
        best: &[(usize, tomo_profile::scores::Interval)],
    ) -> Result<BTreeMap<usize, Known>, IsolateError> {
        let rows: BTreeSet<usize> = best.iter().take(answer::MOST).map(|one| one.0).collect();
        let sites: Vec<usize> = (0..self.sites.sites.len())
            .filter(|&site| {
                let site = &self.sites.sites[site];
                (site.first..site.first + site.told.len()).any(|row| rows.contains(&row))
            })
            .collect();
        if sites.is_empty() {
            return Ok(BTreeMap::new());
        }
        let cases: Vec<usize> = (0..self.options.cases.cases.len()).collect();
        Ok(self.watch_quietly(&sites, &cases)?.known)
    }

    fn answer(
        &self,
        best: &[(usize, tomo_profile::scores::Interval)],
        confirmed: &BTreeMap<usize, Known>,
    ) -> Result<Answer, IsolateError> {
        let plain = &self.state.plain;
        let failures = plain.iter().filter(|plain| !plain.passed).count();
        Ok(Answer {
            findings: answer::findings(&self.sites, best, confirmed, &self.state.known),
            failures,
            successes: plain.len() - failures,
            flaky: self.state.flaky.len(),
            steps: self.state.steps.clone(),
            seen: self.seen(),
            sites: self.sites.sites.len(),
            complete: self.state.done,
            module: self.module.path.clone(),
        })
    }
}

/// What a step's runs showed.
struct Watched {
    known: BTreeMap<usize, Known>,
    runs: usize,
    slower: Option<f64>,
    /// Cases that ended otherwise than before.
    flaky: Vec<usize>,
}

impl Session {
    /// Runs `cases` with these sites armed.
    fn watch(
        &mut self,
        sites: &[usize],
        cases: &[usize],
        watch: &mut dyn Watch,
    ) -> Result<Watched, IsolateError> {
        let watched = self.watch_quietly(sites, cases)?;
        for &case in &watched.flaky {
            if !self.state.flaky.contains(&case) {
                self.state.flaky.push(case);
                watch.note(&flaky_words(self.options.cases.cases[case].line));
            }
        }
        Ok(watched)
    }

    fn watch_quietly(&self, sites: &[usize], cases: &[usize]) -> Result<Watched, IsolateError> {
        let path = &self.module.path;
        let now = Observed::of(&Chosen {
            path: path.clone(),
            late: false,
            placed: None,
        });
        let now = now.map_err(|error| IsolateError::Io(path.clone(), error))?;
        if now.id != self.module.id || now.stamp != self.module.stamp {
            return Err(IsolateError::Changed(path.clone()));
        }
        let asked = sites.iter().flat_map(|&site| {
            let site = &self.sites.sites[site];
            let (kind, site, case) = (site.kind, site.address.0, None);
            Id { kind, site, case }.predicates()
        });
        let asked = Asked::Some(asked.collect());
        let (carried, file) = self.images.marking(&self.module, asked, &())?;
        let bytes = std::fs::read(&file).map_err(|error| IsolateError::Io(file.clone(), error))?;
        let (header, rows) = tomo_wire::predicates::Predicates::read(&bytes)
            .map_err(|refusal| IsolateError::Predicates(refusal.into()))?;
        let shown = each(cases.len(), self.options.jobs, |number| {
            self.armed(cases[number], &carried)
        });
        let shown: Vec<Shown> = shown.into_iter().collect::<Result<_, _>>()?;
        // A step's image serves that step alone.
        let _ = std::fs::remove_file(&carried.image);
        let _ = std::fs::remove_file(&file);
        if shown.iter().all(|shown| shown.marks.is_none()) {
            let why = shown.iter().find_map(|shown| shown.why_not.clone());
            return Err(IsolateError::NotArmed(
                why.map_or_else(String::new, |why| format!(": {why}")),
            ));
        }
        Ok(self.tally(sites, &shown, (header.recorded(), rows)))
    }

    /// Runs a case armed.
    fn armed(&self, case: usize, carried: &Carried) -> Result<Shown, IsolateError> {
        let folder = self.folder.join(format!("run-{}-{case}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        new_folder(&folder)?;
        let roster = equip(&folder, [0; 16], std::slice::from_ref(carried))?;
        let arming = Arming {
            agent: &self.agent,
            roster: &roster,
            sanitized: false,
        };
        let variables = arming.variables(|name| std::env::var_os(name));
        let labelled = self.labelled(case, &variables);
        let read = read_record(&carried.record(&folder), |view| {
            let why = Reason::from_number(view.live.reason.get()).map(Reason::words);
            let armed = view.live.armed.get() > 0 && view.live.refused.get() == 0;
            (armed.then(|| view.marks.to_vec()), why.map(str::to_owned))
        });
        let _ = std::fs::remove_dir_all(&folder);
        let (ran, outcome) = labelled?;
        let (marks, why_not) = read?;
        Ok(Shown {
            case,
            outcome,
            seconds: ran.took.as_secs_f64(),
            marks,
            why_not,
        })
    }

    /// What runs say of the predicates of these sites, told by marks as `rows` have it.
    fn tally(
        &self,
        sites: &[usize],
        shown: &[Shown],
        (recorded, rows): (tomo_wire::predicates::Recorded, &[tomo_wire::predicates::Row]),
    ) -> Watched {
        let here: HashMap<(u8, u64, u8), usize> = rows
            .iter()
            .enumerate()
            .map(|(at, row)| ((row.kind, row.site.get(), row.case), at))
            .collect();
        let mut known: BTreeMap<usize, Known> = BTreeMap::new();
        let armed = || shown.iter().filter(|shown| shown.marks.is_some());
        let failed = armed().filter(|shown| shown.outcome == Outcome::Failure).count() as u64;
        let passed = armed().count() as u64 - failed;
        for run in armed() {
            let marks = run.marks.as_deref().unwrap_or_default();
            let mut values = vec![None; rows.len()];
            let mark = |probe: u32| marks.get(probe as usize).map_or(0, |mark| u64::from(*mark != 0));
            tomo_wire::predicates::values(rows, recorded, mark, &mut values);
            for site in sites.iter().map(|&site| &self.sites.sites[site]) {
                let truths = (site.first..site.first + site.told.len()).map(|row| {
                    let row = &self.sites.rows[row];
                    let at = here.get(&(row.kind, row.site.get(), row.case));
                    at.and_then(|&at| values[at]).is_some_and(|value| value > 0)
                });
                let truths: Vec<bool> = truths.collect();
                for (row, truth) in (site.first..).zip(&truths) {
                    let known = known.entry(row).or_insert(Known {
                        failed,
                        passed,
                        ..Known::default()
                    });
                    add(known, run.outcome, truths.contains(&true), *truth);
                }
            }
        }
        let plain = |case: usize| &self.state.plain[case];
        let before: f64 = armed().map(|shown| plain(shown.case).seconds).sum();
        let with: f64 = armed().map(|shown| shown.seconds).sum();
        let differ = armed().filter(|shown| {
            plain(shown.case).passed != (shown.outcome == Outcome::Success)
        });
        Watched {
            known,
            runs: shown.len(),
            slower: (before > 0.0).then_some(with / before),
            flaky: differ.map(|shown| shown.case).collect(),
        }
    }
}

fn add(known: &mut Known, outcome: Outcome, seen: bool, truth: bool) {
    let (seen_sum, true_sum) = match outcome {
        Outcome::Failure => (&mut known.failed_seen, &mut known.failed_true),
        Outcome::Success => (&mut known.passed_seen, &mut known.passed_true),
    };
    *seen_sum += u64::from(seen);
    *true_sum += u64::from(truth);
}

/// The score of a predicate of which this is known.
fn score(heuristic: Heuristic, known: &Known) -> f64 {
    if heuristic == Heuristic::Importance {
        return answer::importance(known).value;
    }
    let tally: Tally = known.tally();
    let tallies = Tallies {
        predicates: vec![tally],
        failed: known.failed,
        passed: known.passed,
    };
    heuristic.score(&tallies, 0)
}

fn flaky_words(line: usize) -> String {
    format!(
        "the case in line {line} does not always end alike: each of its runs counts as it ended"
    )
}

fn direction(towards: Towards) -> Direction {
    match towards {
        Towards::Forward => Direction::Forward,
        Towards::Backward | Towards::Both => Direction::Backward,
    }
}

/// What must be the same when a search goes on.
fn asked_for(options: &Options) -> String {
    let Options {
        command,
        towards,
        score,
        seed,
        most,
        start,
        focus,
        exclude,
        runs,
        ..
    } = options;
    format!("{command:?} {towards:?} {score:?} {seed} {most} {start:?} {focus:?} {exclude:?} {runs}")
}

fn patterns(texts: &[String]) -> Result<GlobSet, IsolateError> {
    let mut set = GlobSetBuilder::new();
    let bad = |text: &str| {
        let text = text.to_owned();
        move |error| IsolateError::Pattern(text, error)
    };
    for text in texts {
        set.add(Glob::new(text).map_err(bad(text))?);
    }
    set.build().map_err(bad(""))
}

/// By site: whether it may be watched.
fn allowed(sites: &Sites, options: &Options) -> Result<Vec<bool>, IsolateError> {
    let (focus, exclude) = (patterns(&options.focus)?, patterns(&options.exclude)?);
    let matches = |set: &GlobSet, site: &tomo_export::predicates::Site| {
        let file = site.line.as_ref().map_or("", |line| line.file.as_str());
        let name = file.rsplit('/').next().unwrap_or_default();
        set.is_match(&site.function) || set.is_match(file) || set.is_match(name)
    };
    let each = sites.sites.iter();
    Ok(each
        .map(|site| {
            (focus.is_empty() || matches(&focus, site)) && !matches(&exclude, site)
        })
        .collect())
}
