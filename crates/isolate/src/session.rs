//! A search, step by step (ABI §4, Procedure 1): arm the plan's sites, run cases, label and score them, extend.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ffi::OsString;
use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};

use tomo_export::predicates::{Id, Sites};
use tomo_export::{Located, locate};
use tomo_launch::{Agent, Chosen, Images, Markings, Observed, Target, private_folder};
use tomo_plan::random::Random;
use tomo_plan::search::{
    Direction, Oracle, PredicateId, Search, SiteId, SiteKind, Step, at_random, breadth_first,
};
use tomo_profile::scores::{Heuristic, Outcome};
use tomo_program::{Address, Cache, demangle};
use tomo_weave::Asked;

use crate::answer::{self, Answer, Finding};
use crate::asked::{IsolateError, Options, Score, Towards, allowed, asked_for, command_asked};
use crate::cases::{Case, Success};
use crate::hunt::{Beginning, Judge, Surveyed, due, score, share};
use crate::many::each;
use crate::map::Map;
use crate::run::{End, Label, Ran, label, run};
use crate::state::{self, Known, Plain, State, StepMade};
use crate::survey::Survey;

/// Who is told how it goes.
pub trait Watch {
    /// Something that is good to know.
    fn note(&mut self, words: &str);
    /// A step is done: which one, how many sites have been seen, of how many.
    fn step(&mut self, number: usize, step: &StepMade, seen: usize, all: usize);
}

/// A search in its folder.
pub struct Session {
    pub(crate) options: Options,
    pub(crate) folder: PathBuf,
    /// Locked as long as the search lives.
    _lock: File,
    pub(crate) module: Observed,
    pub(crate) located: Located,
    pub(crate) images: Images,
    pub(crate) markings: Markings,
    pub(crate) agent: Agent,
    pub(crate) sites: Sites,
    pub(crate) map: Map,
    /// By site: whether it may be watched.
    pub(crate) allowed: Vec<bool>,
    /// Of branches that cannot be watched: what decides whether they are come to.
    pub(crate) deciders: HashMap<SiteId, Vec<PredicateId>>,
    /// What cases are compared to, by case.
    like: Vec<Option<Ran>>,
    pub(crate) state: State,
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
        let target = Target::find_dynamic(&first, std::env::var_os("PATH").as_deref())?;
        let io_at = |path: &PathBuf| {
            let path = path.clone();
            move |error| IsolateError::Io(path, error)
        };
        let module = Observed::of(&Chosen::executable(&target));
        let module = module.map_err(io_at(&target.executable))?;
        let folder = private_folder(&options.folder)?;
        let lock = lock(&folder)?;
        let images = Images::in_cache(&options.cache)?;
        let (_, predicates) = images.marking(&module, Asked::All, &())?;
        let images = images.apart(&folder)?;
        let markings = images.markings(&module);
        let cache = Cache::at(&options.cache);
        let located = locate(module.id, [module.path.as_path()], Some(&cache), &())?;
        let bytes = std::fs::read(&predicates).map_err(io_at(&predicates))?;
        let sites = Sites::read(&located, &bytes)?;
        let map = Map::of(&located.model.graphs()?, &sites)?;
        let mut session = Self {
            deciders: HashMap::new(),
            allowed: allowed(&sites, &options, watch)?,
            like: Vec::new(),
            state: State {
                version: state::VERSION,
                module: format!("{:?}", module.id),
                cases: options.cases.name,
                asked: asked_for(&options),
                plain: Vec::new(),
                flaky: Vec::new(),
                survey: Survey::default(),
                waiting: Vec::new(),
                known: BTreeMap::new(),
                steps: Vec::new(),
                search: Search::starting(&map.icdg, Direction::Forward, &[])
                    .state()
                    .clone(),
                done: false,
            },
            options,
            folder,
            _lock: lock,
            module,
            located,
            images,
            markings,
            agent,
            sites,
            map,
        };
        session.deciders = session.map.icdg.deciders(|site| {
            let number = session.map.site(site);
            let watched = number.is_some_and(|number| session.allowed[number]);
            session.map.icdg.kind(site) == SiteKind::Branch && !watched
        });
        session.take_up(watch)?;
        Ok(session)
    }

    /// Goes on with what is in its folder, or begins. What is another search's is refused before anything runs.
    fn take_up(&mut self, watch: &mut dyn Watch) -> Result<(), IsolateError> {
        let state = State::read(&self.folder);
        let state =
            state.map_err(|error| IsolateError::Unread(state::file(&self.folder), error))?;
        let is_new = state.is_none();
        if let Some(state) = state {
            self.resume(state, watch)?;
        }
        self.compare()?;
        match is_new {
            true => self.begin(watch),
            false => Ok(()),
        }
    }

    fn resume(&mut self, state: State, watch: &mut dyn Watch) -> Result<(), IsolateError> {
        let other = |what| Err(IsolateError::Other(self.folder.clone(), what));
        if state.version != state::VERSION {
            return other("of another version of tomo");
        }
        if !state.asked.starts_with(&command_asked(&self.options)) {
            return other("of another program, or with other arguments");
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
        match self.survey(&self.share(0)) {
            Ok(survey) => self.state.survey = self.but_chosen(survey)?,
            Err(error) => watch.note(&format!(
                "which functions cases enter was not seen: {error}"
            )),
        }
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
        let start = self.start()?;
        let beginning = Beginning {
            towards,
            start: &start,
            crashes: &crashes,
            surveyed: self.surveyed(),
            most,
        };
        Ok(beginning.search(icdg).state().clone())
    }

    /// Routines whose entries say where to begin: those that were surveyed, if they are to, and there is a score.
    fn surveyed(&self) -> Surveyed {
        match (self.options.survey, self.options.score) {
            (true, Score::By(_)) => self.routines_surveyed(),
            _ => Surveyed::default(),
        }
    }

    /// Routines that were surveyed.
    pub(crate) fn routines_surveyed(&self) -> Surveyed {
        let survey = &self.state.survey;
        let those = |are: &dyn Fn(u64) -> bool| {
            let routines = 0..self.map.icdg.routine_count();
            let are = |routine: &u32| self.map.begin(*routine).is_some_and(are);
            routines.filter(are).collect()
        };
        Surveyed {
            all: those(&|entry| survey.known(entry).is_some()),
            doomed: those(&|entry| survey.is_doomed(entry)),
            idle: those(&|entry| survey.is_idle(entry)),
        }
    }

    pub(crate) fn start(&self) -> Result<Vec<SiteId>, IsolateError> {
        let each = self.options.start.iter().map(|id| {
            let mut sites = self.sites.sites.iter();
            let found = sites.position(|site| site.kind == id.kind && site.address.0 == id.site);
            let site = found.and_then(|site| self.map.id(site));
            site.ok_or(IsolateError::NoSite(*id))
        });
        each.collect()
    }

    /// The same functions but those in which a person begins.
    fn but_chosen(&self, mut survey: Survey) -> Result<Survey, IsolateError> {
        let start = self.start()?.into_iter();
        let chosen = start.filter_map(|site| self.map.entry(self.map.site(site)?));
        let chosen: BTreeSet<u64> = chosen.collect();
        survey
            .functions
            .retain(|function| !chosen.contains(&function.entry));
        Ok(survey)
    }

    /// Whether the turn of a site comes last.
    pub(crate) fn is_late(&self, site: usize) -> bool {
        let entry = self.map.entry(site);
        let survey = &self.state.survey;
        entry.is_some_and(|entry| survey.is_idle(entry) || survey.is_doomed(entry))
    }

    /// How each case ended as it is, and whether that was a success.
    #[must_use]
    pub fn ends(&self) -> Vec<(End, bool)> {
        let each = self.state.plain.iter();
        each.map(|plain| (plain.end, plain.passed)).collect()
    }

    /// Functions by their entries, and in how many runs of the survey each was entered.
    pub fn surveyed_functions(&self) -> impl Iterator<Item = (u64, Known)> {
        let functions = self.state.survey.functions.iter();
        functions.filter_map(|one| Some((one.entry, self.state.survey.known(one.entry)?)))
    }

    /// Where failing cases crash, of the first that do.
    pub(crate) fn crashes(
        &self,
        failing: &[usize],
    ) -> Result<Vec<(u32, tomo_graph::NodeId)>, IsolateError> {
        const MOST: usize = 16;
        let graphs = self.located.model.graphs()?;
        let killed = |case: &&usize| matches!(self.state.plain[**case].end, End::Killed(_));
        let mut places = BTreeSet::new();
        for &case in failing.iter().filter(killed).take(MOST) {
            places.extend(self.places(case, &graphs)?);
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
        let made =
            made.map(|(ran, case)| ran.map_err(|error| IsolateError::Case(case.line, error)));
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

    pub(crate) fn labelled(
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
        let mut answer = self.answer(&best, &confirmed)?;
        if self.options.paths {
            let better = self.along_paths(&answer.findings)?;
            answer.findings.extend(better);
            // Of equals the branch comes first: it was there before, and says it in fewer words.
            let value = |finding: &Finding| finding.importance.value;
            let by_value = |one: &Finding, other: &Finding| value(other).total_cmp(&value(one));
            answer.findings.sort_by(by_value);
        }
        Ok(answer)
    }

    /// Watches what is planned, then plans on.
    fn step(&mut self, oracle: Option<&Oracle>, watch: &mut dyn Watch) -> Result<(), IsolateError> {
        let mut waiting = std::mem::take(&mut self.state.waiting);
        let sites = {
            let search = Search::resume(&self.map.icdg, self.state.search.clone())?;
            due(&search, self, &mut waiting)
        };
        self.state.waiting = waiting;
        let number = self.state.steps.len() + 1;
        let mut made = None;
        if !sites.is_empty() {
            let cases = self.share(number as u64);
            let shown = self.watch(&sites, &cases, watch)?;
            made = Some((shown.runs, shown.slower));
            self.state
                .known
                .extend(shown.known.into_iter().map(|(row, known)| {
                    let step = number as u32;
                    (row, Known { step, ..known })
                }));
        }
        let best = answer::best(&self.state.known);
        let all = self.state.plain.len() as u64;
        let perfect = best.first().is_some_and(|(row, _)| {
            let known = self.state.known.get(row);
            known.is_some_and(|known| {
                answer::is_perfect(known) && known.failed + known.passed == all
            })
        });
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
            Step::Explored(predicate) => {
                let entered = self.map.icdg.entered(predicate);
                let entry = entered.and_then(|routine| self.map.begin(routine));
                match (entry, self.map.row(predicate)) {
                    (Some(entry), _) => format!("where {} begins", self.function(entry)?),
                    (None, Some(row)) => format!("near {}", self.name(row)),
                    (None, None) => "near a branch that cannot be observed".into(),
                }
            }
            Step::Continued => "more of the same".into(),
            Step::Strayed => "where nothing led to".into(),
            Step::Done if self.state.waiting.is_empty() => {
                self.state.done = true;
                "nothing is left".into()
            }
            Step::Done => "in functions that no failing case enters, or no other".into(),
        })
    }

    /// The name of the function with this entry, or where it is.
    fn function(&self, entry: u64) -> Result<String, IsolateError> {
        let graphs = self.located.model.graphs()?;
        let function = graphs.function_starting_at(Address(entry));
        let name = function.and_then(|function| function.name());
        let shown = name.map(|name| demangle(name).unwrap_or_else(|| name.to_owned()));
        Ok(shown.unwrap_or_else(|| format!("the function at {entry:#x}")))
    }

    /// The candidate with the highest score.
    fn highest(
        &self,
        heuristic: Heuristic,
        candidates: &mut dyn Iterator<Item = PredicateId>,
    ) -> Option<PredicateId> {
        let judge = Judge {
            session: self,
            heuristic,
            surveys: self.options.survey,
        };
        judge.highest(candidates, |predicate| {
            let known = self.state.known.get(&self.map.row(predicate)?)?;
            Some(score(heuristic, known))
        })
    }

    /// Knows the answer by watching everything.
    fn oracle(&self) -> Result<Option<Oracle>, IsolateError> {
        let all = self.observable();
        let cases: Vec<usize> = (0..self.options.cases.cases.len()).collect();
        let shown = self.watch_quietly(&all, &cases)?;
        let best = answer::best(&shown.known);
        let target = best.first().and_then(|(row, _)| self.map.predicate(*row));
        Ok(target.map(|target| Oracle::of(&self.map.icdg, target)))
    }

    /// The cases of a step.
    fn share(&self, number: u64) -> Vec<usize> {
        let (runs, seed) = (self.options.runs, self.options.seed);
        let count = self.options.cases.cases.len();
        share(
            count,
            |case| self.state.plain[case].passed,
            runs,
            seed,
            number,
        )
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
        let mut known = self.state.known.values();
        let vanished = !self.state.known.is_empty() && known.all(|known| known.failed == 0);
        Ok(Answer {
            findings: answer::findings(&self.sites, best, confirmed, &self.state.known),
            failures,
            successes: plain.len() - failures,
            flaky: self.state.flaky.len(),
            steps: self.state.steps.clone(),
            seen: self.seen(),
            sites: self.sites.sites.len(),
            complete: self.state.done,
            vanished,
            lone: answer::has_lone(&self.state.known),
            module: self.module.path.clone(),
        })
    }
}

pub(crate) fn flaky_words(line: usize) -> String {
    format!(
        "the case in line {line} does not always end alike: each of its runs counts as it ended"
    )
}

/// Locks a folder, in which nobody else may search meanwhile.
fn lock(folder: &Path) -> Result<File, IsolateError> {
    let path = folder.join("lock");
    let file = File::create(&path).map_err(|error| IsolateError::Io(path.clone(), error))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(IsolateError::Busy(folder.into())),
        Err(TryLockError::Error(error)) => Err(IsolateError::Io(path, error)),
    }
}
