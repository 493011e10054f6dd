//! A program that is run and observed, by any of the commands that do: found, prepared, run, and told of.
//!
//! Whatever goes wrong on our side, the program runs all the same.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::SystemTime;

use anyhow::{Context as _, Result, ensure};
use tomo_export::words::{counted, some_of};
use tomo_export::{Located, locate};
use tomo_launch::{
    Agent, Arming, Ended, Observed, Outside, Pool, Run, RunFolder, Standing, Target, TargetError,
    read_live,
};
use tomo_program::{Cache, Progress, read_regular};
use tomo_wire::counting::{Summed, sums};
use tomo_wire::environment;
use tomo_wire::record::{Live, Reason, Refusals};

use crate::observe::{OneModule, Store, companions};

/// A command line whose program was found.
pub(crate) struct Started<'a> {
    pub(crate) target: Target,
    words: &'a [OsString],
}

impl<'a> Started<'a> {
    /// Does `then` with the program that `words` name; where there is none, that is said, and the exit code is the one
    /// that shells give.
    pub(crate) fn find_dynamic(
        words: &'a [OsString],
        then: impl FnOnce(Started<'a>) -> Result<ExitCode>,
    ) -> Result<ExitCode> {
        Self::find_by(Target::find_dynamic, words, then)
    }

    /// The same where the program may be linked statically.
    pub(crate) fn find(
        words: &'a [OsString],
        then: impl FnOnce(Started<'a>) -> Result<ExitCode>,
    ) -> Result<ExitCode> {
        Self::find_by(Target::find, words, then)
    }

    fn find_by(
        find: fn(&OsStr, Option<&OsStr>) -> Result<Target, TargetError>,
        words: &'a [OsString],
        then: impl FnOnce(Started<'a>) -> Result<ExitCode>,
    ) -> Result<ExitCode> {
        tomo_launch::keep_going();
        tomo_launch::is_to_start(words.len());
        let [name, arguments @ ..] = words else {
            return Ok(ExitCode::from(2));
        };
        let found = match find(name, std::env::var_os("PATH").as_deref()) {
            Err(TargetError::Loader(loader)) => Target::loaded_by(loader.as_os_str(), arguments),
            found => found,
        };
        match found {
            Err(error) if error.is_missing() => {
                say!("tomo: {error}");
                Ok(ExitCode::from(127))
            }
            found => then(Self {
                target: found?,
                words,
            }),
        }
    }

    fn described(&self) -> Run {
        Run {
            command: self.words.to_vec(),
            started: SystemTime::now(),
        }
    }

    /// The command as it is shown.
    pub(crate) fn shown(&self) -> String {
        let words = self.words.iter().map(|word| word.to_string_lossy());
        words.collect::<Vec<_>>().join(" ")
    }

    /// Runs the program to its end.
    fn run(&self, arming: Option<Arming<'_>>) -> Result<Ended> {
        let (name, rest) = self.words.split_first().context("no program")?;
        Ok(tomo_launch::run(&self.target, name, rest, arming)?)
    }

    /// Runs the program as it is, and says that and why it `was not` what it should have been.
    pub(crate) fn run_plainly(&self, what: &str, why: &anyhow::Error) -> Result<Ended> {
        let ended = self.run(None)?;
        let path = self.target.executable.display();
        say!("tomo: {path} was not {what}: {why:#}");
        Ok(ended)
    }

    /// Runs the program as `prepare` has it, and tells by `conclude` what was learnt; `observed` is what the program
    /// was not, if nothing was.
    pub(crate) fn observed(
        self,
        observed: &str,
        prepare: impl FnOnce(&Self) -> Result<Session>,
        conclude: impl FnOnce(&Self, &Session) -> Result<()>,
    ) -> Result<ExitCode> {
        let session = match prepare(&self) {
            Ok(session) => session,
            Err(error) => {
                let ended = self.run_plainly(observed, &error)?;
                return Ok(ExitCode::from(ended.code()));
            }
        };
        let ended = session.ready.run(&self)?;
        for library in session.left_out(&self.target) {
            let library = library.display();
            say!("tomo: {library} comes with it and was not {observed}: --module does that");
        }
        if let Err(error) = conclude(&self, &session) {
            say!("tomo: {error:#}");
        }
        Ok(ExitCode::from(ended.code()))
    }
}

/// A run that only needs to begin.
pub(crate) struct Ready {
    /// Its folder, but where runs share a pool.
    pub(crate) folder: Option<RunFolder>,
    /// Of a pool, what is recorded by this run, too: modules and their records.
    pooled: Vec<(PathBuf, PathBuf)>,
    run: Run,
    agent: Agent,
    roster: PathBuf,
    standing: Standing,
    /// What arms the program itself, if it is linked statically.
    outside: Option<Outside>,
}

impl Ready {
    /// The run that `folder` arms, which is described.
    pub(crate) fn with_folder(
        started: &Started<'_>,
        mut folder: RunFolder,
        agent: Agent,
        standing: Standing,
    ) -> Result<Self> {
        let run = started.described();
        folder.describe(&started.target, &run, None)?;
        Ok(Self {
            pooled: Vec::new(),
            standing,
            roster: folder.roster()?,
            outside: folder.outside(&started.target)?,
            folder: Some(folder),
            run,
            agent,
        })
    }

    /// One of the runs that `pool` arms.
    pub(crate) fn with_pool(
        started: &Started<'_>,
        pool: &Pool,
        agent: Agent,
        modules: &[Observed],
        standing: Standing,
    ) -> Result<Self> {
        let pooled = modules.iter();
        let pooled = pooled.map(|module| (module.path.clone(), pool.record(module)));
        Ok(Self {
            pooled: pooled.collect(),
            standing,
            folder: None,
            run: started.described(),
            agent,
            roster: pool.roster(),
            outside: pool.outside(&started.target, modules)?,
        })
    }

    /// The modules that are observed, and their records.
    pub(crate) fn records(&self) -> Vec<(PathBuf, PathBuf)> {
        let Some(folder) = &self.folder else {
            return self.pooled.clone();
        };
        let lives = folder.lives();
        let own = lives.map(|(armed, _)| (armed.module.path.clone(), armed.record.clone()));
        own.collect()
    }

    /// Runs the program, and says of which modules nothing was learnt.
    pub(crate) fn run(&self, started: &Started<'_>) -> Result<Ended> {
        let arming = Arming {
            agent: &self.agent,
            roster: &self.roster,
            outside: self.outside.as_ref(),
        };
        let ended = started.run(Some(arming))?;
        tell_replaced(&self.roster);
        let built = self.standing.built_since();
        if let Some(line) = built_meanwhile(&built) {
            say!("tomo: {line}");
        }
        let Some(folder) = &self.folder else {
            return Ok(ended);
        };
        if let Err(error) = folder.describe(&started.target, &self.run, Some(ended)) {
            say!("tomo: {error}");
        }
        let mut later = Later::default();
        let mut problems = Problems::default();
        let mut without = 0;
        for (armed, live) in folder.lives() {
            let path = armed.module.path.display();
            let Some(live) = live else {
                say!("tomo: {path}: its record cannot be read");
                continue;
            };
            without += live.without.get();
            let is_other = built.contains(&armed.module.path);
            if armed.module.late && !is_other {
                later.add(&armed.module.path, is_loaded(&live));
            }
            let is_told = is_loaded(&live) || !(armed.module.late || is_other);
            if let Some(problem) = problem(&live).filter(|_| is_told) {
                problems.add(problem, &armed.module.path);
            }
        }
        for line in problems.lines() {
            say!("tomo: {line}");
        }
        if let Some(line) = later.line() {
            say!("tomo: {line}");
        }
        if let Some(words) = started_without(without) {
            say!("tomo: {words}");
        }
        Ok(ended)
    }
}

/// What a run needs of which one module is observed.
pub(crate) struct Session {
    pub(crate) store: Store,
    pub(crate) module: Observed,
    folder: PathBuf,
    /// Whether the executable is observed because nothing else was asked for.
    is_default: bool,
    ready: Ready,
}

impl Session {
    /// A run of which `module` is observed, whose folder is made in `output`, and that `arm` arms.
    pub(crate) fn prepare(
        started: &Started<'_>,
        (module, output): (&OneModule, &Path),
        arm: impl FnOnce(&mut RunFolder, &Observed, &Store) -> Result<()>,
    ) -> Result<Self> {
        let store = Store::open()?;
        let is_default = module.is_executable();
        let module = module.of(&started.target)?;
        let mut folder = RunFolder::create(output)?;
        arm(&mut folder, &module, &store)?;
        let agent = Agent::in_cache(&store.folder)?;
        let standing = Standing::at([], std::slice::from_ref(&module));
        Ok(Self {
            folder: folder.path().into(),
            is_default,
            ready: Ready::with_folder(started, folder, agent, standing)?,
            store,
            module,
        })
    }

    /// What comes with the executable and was not observed, though nobody said so. Asks the loader, so not before the run.
    fn left_out(&self, target: &Target) -> Vec<PathBuf> {
        match self.is_default {
            true => companions(target),
            false => Vec::new(),
        }
    }

    /// The folder of the run.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// What was not observed of its module; a list, as several runs have it together.
    pub(crate) fn not_observed(&self) -> Vec<String> {
        let record = format!("{}.record", self.module.stem);
        not_observed(&self.folder().join(record))
            .into_iter()
            .collect()
    }

    /// The bytes of the file of this kind that the run has of its module.
    pub(crate) fn file(&self, kind: &str) -> Result<Vec<u8>> {
        file_of(self.folder(), &self.module, kind)
    }

    /// The program, as it is shown.
    pub(crate) fn located(&self) -> Result<Located> {
        located(&self.module, &self.store, &())
    }
}

/// The bytes of the file of this kind that the folder of a run has of `module`.
pub(crate) fn file_of(run: &Path, module: &Observed, kind: &str) -> Result<Vec<u8>> {
    bytes(&run.join(format!("{}.{kind}", module.stem)))
}

pub(crate) fn bytes(path: &Path) -> Result<Vec<u8>> {
    read_regular(path).with_context(|| path.display().to_string())
}

/// What `read` makes of the bytes of a file.
pub(crate) fn parsed<T, E>(path: &Path, read: impl FnOnce(&[u8]) -> Result<T, E>) -> Result<T>
where
    Result<T, E>: anyhow::Context<T, E>,
{
    read(&bytes(path)?).with_context(|| path.display().to_string())
}

/// What the counters in the slabs of a run add up to: so many of them, which start at this byte of each slab.
pub(crate) fn summed(run: &Path, at: u32, counters: usize) -> Result<(Vec<u64>, Summed)> {
    let slabs = run.join("slabs");
    let mut values = vec![0; counters];
    let summed = parsed(&slabs, |bytes| sums(bytes, at, &mut values))?;
    ensure!(
        !summed.overflows,
        "{}: counters add up to more than 64 bits hold",
        slabs.display()
    );
    Ok((values, summed))
}

/// `module` as it is shown, with its model from the store.
pub(crate) fn located(
    module: &Observed,
    store: &Store,
    progress: &dyn Progress,
) -> Result<Located> {
    let place = [module.path.as_path()];
    let cache = Cache::at(&store.folder);
    Ok(locate(module.id, place, Some(&cache), progress)?)
}

/// Writes what a command shows of earlier runs: into the file at `to`, or to standard output.
pub(crate) fn answer(to: Option<&Path>, text: &[u8]) -> Result<()> {
    match to {
        Some(path) => tell(Some(path), text),
        None => Ok(std::io::stdout().write_all(text)?),
    }
}

/// Whether a path that was given means standard output, as `-` does elsewhere.
pub(crate) fn is_stdout(path: &Path) -> bool {
    path == Path::new("-")
}

/// Writes what a command has to say: into the file at `to`, or to standard error.
pub(crate) fn tell(to: Option<&Path>, text: &[u8]) -> Result<()> {
    match to {
        Some(path) if is_stdout(path) => answer(None, text),
        Some(path) => fs::write(path, text).with_context(|| path.display().to_string()),
        None => Ok(std::io::stderr().write_all(text)?),
    }
}

/// Where what is written piece by piece goes.
pub(crate) type Output = BufWriter<Box<dyn Write>>;

/// Has `write` write what may be too much to be held at once: into the file at `path`, or to standard output.
pub(crate) fn tell_by(path: &Path, write: impl FnOnce(&mut Output) -> Result<()>) -> Result<()> {
    let named = || path.display().to_string();
    let output: Box<dyn Write> = match is_stdout(path) {
        true => Box::new(std::io::stdout()),
        false => Box::new(File::create(path).with_context(named)?),
    };
    let mut output = BufWriter::new(output);
    write(&mut output).with_context(named)?;
    output.flush().with_context(named)
}

/// What is to be said of modules, that of several once.
#[derive(Default)]
struct Problems(Vec<(String, Vec<PathBuf>)>);

impl Problems {
    fn add(&mut self, problem: String, path: &Path) {
        match self.0.iter_mut().find(|known| known.0 == problem) {
            Some((_, paths)) => paths.push(path.into()),
            None => self.0.push((problem, vec![path.into()])),
        }
    }

    fn lines(&self) -> impl Iterator<Item = String> {
        self.0.iter().filter_map(|(problem, paths)| {
            let (first, others) = paths.split_first()?;
            let line = format!("{} {problem}", first.display());
            Some(match others {
                [] => line,
                others => format!("{line}; the same is true of {}", named(others)),
            })
        })
    }
}

/// The names of files without their folders, as far as a line has room for them.
fn named(paths: &[PathBuf]) -> String {
    let name = |path: &PathBuf| {
        let name = path.file_name().unwrap_or(path.as_os_str());
        name.to_string_lossy().into_owned()
    };
    some_of(paths, name)
}

/// Says that what observes this process itself, if anything does, observes nothing below that is armed by this roster.
pub(crate) fn tell_replaced(roster: &Path) {
    let real = |path: &Path| fs::canonicalize(path).unwrap_or(path.into());
    let outer = std::env::var_os(environment::ROSTER).map(PathBuf::from);
    if let Some(outer) = outer.filter(|outer| real(outer) != real(roster)) {
        say!(
            "tomo: this replaced the observation around it ({}={}), which saw nothing of what was started here",
            environment::ROSTER,
            outer.display()
        );
    }
}

/// What is to be said of modules that were built while the program ran.
fn built_meanwhile(built: &[PathBuf]) -> Option<String> {
    let (all, it, was) = match built {
        [] => return None,
        [one] => (one.display().to_string(), "it is", "was"),
        _ => (named(built), "they are", "were"),
    };
    Some(format!(
        "{all} {was} built while the command ran, and not observed as {it} now: run it once more"
    ))
}

/// The modules of a run that its program loads after its start, if at all.
#[derive(Default)]
struct Later {
    first: Option<PathBuf>,
    others: usize,
    is_one_loaded: bool,
}

impl Later {
    fn add(&mut self, path: &Path, is_loaded: bool) {
        self.is_one_loaded |= is_loaded;
        match &self.first {
            None => self.first = Some(path.into()),
            Some(_) => self.others += 1,
        }
    }

    /// What is to be said if none of them was loaded. Where some were, that the others were not is no surprise.
    fn line(&self) -> Option<String> {
        let first = self.first.as_ref().filter(|_| !self.is_one_loaded)?;
        let path = first.display();
        Some(match self.others {
            0 => format!("{path} {NOT_LOADED}"),
            1 => format!("{path} and 1 other {NOT_LOADED_THEM}"),
            others => format!("{path} and {others} others {NOT_LOADED_THEM}"),
        })
    }
}

pub(crate) const NOT_LOADED: &str =
    "was not observed: no process loaded both it and the agent, with the right to its record";
const NOT_LOADED_THEM: &str = "were not observed: no process loaded both one of them and the agent, with the right to its record";

/// Whether a process with the agent has loaded the module.
fn is_loaded(live: &Live) -> bool {
    live.armed.get() > 0 || live.refused.get() > 0
}

/// What was not done.
pub(crate) fn failing(refusals: Refusals) -> &'static str {
    let reasons: Vec<Reason> = refusals.reasons().collect();
    match reasons[..] == [Reason::NotSeparate] {
        true => "not observed by itself",
        false => "not observed",
    }
}

/// Of how many processes that is so.
pub(crate) fn share(refusals: Refusals, armed: u64) -> String {
    let count = refusals.count;
    match refusals.processes(armed) {
        Some(all) => format!("{count} of {}", counted(all, "process", "processes")),
        None if count == 1 => "a process".into(),
        None => counted(count, "process", "processes"),
    }
}

/// Why it is so: all reasons, and what the system said where there is one.
pub(crate) fn why(refusals: Refusals) -> String {
    let reasons: Vec<&str> = refusals.reasons().map(Reason::words).collect();
    let system = match i32::try_from(refusals.errno) {
        Ok(number) if number > 0 => format!(" ({})", std::io::Error::from_raw_os_error(number)),
        _ => String::new(),
    };
    match reasons[..] {
        [] => format!("unknown reason{system}"),
        [reason] => format!("{reason}{system}"),
        _ => format!("for several reasons: {}", reasons.join("; ")),
    }
}

/// What is to be said of a module that was not observed, or not always as it should have been.
pub(crate) fn problem(live: &Live) -> Option<String> {
    if !is_loaded(live) {
        return Some(NOT_LOADED.into());
    }
    let (armed, refusals) = (live.armed.get(), Refusals::of(live));
    let share = match (refusals.count, armed) {
        (0, _) => return None,
        (_, 0) => String::new(),
        _ => format!(" in {}", share(refusals, armed)),
    };
    Some(format!(
        "was {}{share}: {}",
        failing(refusals),
        why(refusals)
    ))
}

/// What is to be said of so many programs that were started without the agent.
pub(crate) fn started_without(programs: u64) -> Option<String> {
    let (them, were) = match programs {
        0 => return None,
        1 => ("a program".to_owned(), "was"),
        _ => (format!("{programs} programs"), "were"),
    };
    Some(format!(
        "{them} {were} started without the environment (LD_PRELOAD, {}) or the right to it, or with raised rights, and so not observed",
        environment::ROSTER
    ))
}

/// What was not observed in the run with this record of a module, if anything was not.
pub(crate) fn not_observed(record: &Path) -> Option<String> {
    match read_live(record) {
        Ok(live) => problem(&live),
        Err(error) => Some(format!("may not have been observed: {error}")),
    }
}

/// Says of the run in `folder`, as after its end, what was not observed of the module at `path`, which has this record.
pub(crate) fn tell_not_observed(folder: &Path, record: &Path, path: &Path) {
    if let Some(problem) = not_observed(record) {
        let folder = folder.display();
        say!("tomo: {folder}: {} {problem}", path.display());
    }
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    use super::{Problems, named};

    #[test]
    fn what_is_said_of_several_modules_is_said_once() {
        let mut problems = Problems::default();
        for (problem, path) in [("a", "/l/x"), ("b", "/l/y"), ("a", "/l/z"), ("a", "/m/w")] {
            problems.add(format!("was not observed: {problem}"), Path::new(path));
        }
        let lines: Vec<String> = problems.lines().collect();
        let wanted = [
            "/l/x was not observed: a; the same is true of z and w",
            "/l/y was not observed: b",
        ];
        assert_eq!(lines, wanted);
    }

    #[test]
    fn some_modules_are_named_and_the_rest_counted() {
        let names = |count: usize| {
            let paths: Vec<PathBuf> = ["a", "b", "c", "d", "e", "f"].map(PathBuf::from).into();
            named(&paths[..count])
        };
        assert_eq!(names(1), "a");
        assert_eq!(names(2), "a and b");
        assert_eq!(names(5), "a, b, c, d and e");
        assert_eq!(names(6), "a, b, c, d and 2 others");
    }
}
