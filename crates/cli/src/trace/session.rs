//! The runs of `tomo trace`: prepared, started side by side, taken and compared.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{BufWriter, IsTerminal as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, SystemTime};

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::{Value, json};
use tomo_export::traced::{Packer, Taking};
use tomo_launch::{
    Agent, Arming, Attendance, Calm, Ended, Extra, Observed, Points, Run, RunFolder, Target,
    TraceImages, Weighed, attend, start_with,
};
use tomo_weave::Breakpoints;

use super::{Collected, Traced};
use crate::bar::Bar;
use crate::observe::Store;

/// What is started.
pub(super) struct Command<'s> {
    pub(super) target: Target,
    pub(super) name: &'s OsString,
    pub(super) rest: &'s [OsString],
}

/// What witnesses are made of.
enum Way {
    Detours(Agent, TraceImages),
    Breakpoints(Breakpoints),
}

/// What the runs share.
pub(super) struct Session<'a> {
    arguments: &'a Traced,
    module: Observed,
    way: Way,
    folder: PathBuf,
    /// The moment at which time begins, if the program is calmed.
    moment: Option<u64>,
    told: Mutex<Told>,
    /// Whether the program has been started, or its input read.
    begun: AtomicBool,
}

/// What is known of the runs so far.
#[derive(Default)]
struct Told {
    /// The folder of each, in the order of profiles.
    runs: Vec<Value>,
    input: Value,
    differences: Vec<String>,
    /// What could not be calmed.
    restless: Option<&'static str>,
}

impl<'a> Session<'a> {
    pub(super) fn prepare(
        arguments: &'a Traced,
        target: &Target,
        collect: Collected,
    ) -> Result<Self> {
        let store = Store::open()?;
        let by_breakpoints = collect == Collected::Breakpoint;
        ensure!(
            !by_breakpoints || arguments.module.is_executable(),
            "breakpoints are put into the executable alone"
        );
        let module = arguments.module.of(target)?;
        let how = arguments.how(weights(arguments, &module, &store)?);
        let way = match collect {
            Collected::Detour => Way::Detours(
                Agent::in_cache(&store.folder)?,
                store.images.traces(&module, &how, &Bar::new())?,
            ),
            Collected::Breakpoint => {
                let points = store.images.breakpoints(&module, &how, &Bar::new())?;
                check_limit(arguments.limit, &points)?;
                Way::Breakpoints(points)
            }
        };
        let session = Self {
            arguments,
            module,
            way,
            folder: folder(&arguments.output)?,
            moment: moment(arguments)?,
            told: Mutex::default(),
            begun: AtomicBool::new(false),
        };
        session.tell(|told| told.runs = vec![Value::Null; session.runs()]);
        Ok(session)
    }

    fn tell(&self, change: impl FnOnce(&mut Told)) {
        if let Ok(mut told) = self.told.lock() {
            change(&mut told);
        }
    }

    /// Whether the program has been started, or its input read: else it may be run as if nobody had tried.
    pub(super) fn has_begun(&self) -> bool {
        self.begun.load(Ordering::Relaxed)
    }

    fn runs(&self) -> usize {
        match &self.way {
            Way::Detours(_, images) => images.runs(),
            Way::Breakpoints(points) => points.runs.len(),
        }
    }

    /// Runs the program as often as it takes.
    pub(super) fn run(&self, command: &Command<'_>) -> Result<Ended> {
        if self.runs() > 1 || self.moment.is_some() {
            tomo_launch::keep_addresses().context("addresses cannot be kept the same")?;
        }
        match self.runs() {
            1 => self.run_once(command, 0, Extra::default()),
            runs => self.run_all(command, runs),
        }
    }

    /// Runs the program again and again, with the same input, some at a time; its output appears once.
    fn run_all(&self, command: &Command<'_>, runs: usize) -> Result<Ended> {
        let mut copy = File::create(self.folder.join("input"))?;
        self.begun.store(true, Ordering::Relaxed);
        if !std::io::stdin().is_terminal() {
            std::io::copy(&mut std::io::stdin().lock(), &mut copy)?;
        }
        self.tell(|told| told.input = json!("input"));
        let next = AtomicUsize::new(0);
        let ends = Mutex::new(vec![None; runs]);
        let work = || -> Result<()> {
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= runs {
                    return Ok(());
                }
                let ended = self.run_recorded(command, number)?;
                if let Ok(mut ends) = ends.lock() {
                    ends[number] = Some(ended);
                }
            }
        };
        thread::scope(|scope| {
            let jobs = (self.arguments.jobs as usize).min(runs);
            let start = || thread::Builder::new().spawn_scoped(scope, work).ok();
            let workers: Vec<_> = (0..jobs).map_while(|_| start()).collect();
            if workers.is_empty() {
                return work();
            }
            let mut done = workers.into_iter().map(|worker| worker.join());
            done.try_for_each(|done| done.unwrap_or_else(|_| bail!("a run was not completed")))
        })?;
        let ends = ends.into_inner().unwrap_or_default();
        let ends: Option<Vec<Ended>> = ends.into_iter().collect();
        let ends = ends.context("a run was not completed")?;
        self.compare(&ends)?;
        self.describe(&command.target)?;
        Ok(ends[0])
    }

    fn stream(&self, name: &str, number: usize) -> PathBuf {
        self.folder.join(format!("{name}-{number}"))
    }

    /// Runs the program once, with the input that was recorded, and shows what the first run prints.
    fn run_recorded(&self, command: &Command<'_>, number: usize) -> Result<Ended> {
        let create = |name: &str| File::create(self.stream(name, number));
        let extra = Extra {
            input: Some(File::open(self.folder.join("input"))?.into()),
            output: Some(create("output")?.into()),
            errors: Some(create("errors")?.into()),
            ..Extra::default()
        };
        let ended = self.run_once(command, number, extra)?;
        if number == 0 {
            let open = |name: &str| File::open(self.stream(name, number));
            std::io::copy(&mut open("output")?, &mut std::io::stdout().lock())?;
            std::io::copy(&mut open("errors")?, &mut std::io::stderr().lock())?;
        }
        Ok(ended)
    }

    /// Says what the runs did differently; what they printed is kept only then.
    fn compare(&self, ends: &[Ended]) -> Result<()> {
        let mut differences = Vec::new();
        let mut keeps = false;
        for (number, ended) in ends.iter().enumerate().skip(1) {
            let mut is_same = true;
            for name in ["output", "errors"] {
                let (one, other) = (self.stream(name, 0), self.stream(name, number));
                if let Some(at) = first_difference(&one, &other)? {
                    is_same = false;
                    differences.push(format!(
                        "run {number} printed something else than the first from byte {at} on: {} and {}",
                        one.display(),
                        other.display()
                    ));
                }
            }
            if *ended != ends[0] {
                differences.push(format!(
                    "run {number} ended otherwise than the first: {ended:?}, not {:?}",
                    ends[0]
                ));
            }
            keeps |= !is_same;
        }
        for difference in &differences {
            say!("tomo: {difference}");
        }
        if !keeps {
            for number in 0..ends.len() {
                fs::remove_file(self.stream("output", number))?;
                fs::remove_file(self.stream("errors", number))?;
            }
        }
        self.tell(|told| told.differences = differences);
        Ok(())
    }

    /// Runs the program once, with the witnesses of this profile.
    fn run_once(&self, command: &Command<'_>, number: usize, extra: Extra) -> Result<Ended> {
        let target = &command.target;
        let mut folder = RunFolder::create(&self.folder)?;
        match &self.way {
            Way::Detours(_, images) => folder.trace(&self.module, images, number)?,
            Way::Breakpoints(points) => folder.chart(&self.module, &points.chart)?,
        }
        let run = Run {
            command: self.arguments.command.clone(),
            started: SystemTime::now(),
        };
        folder.describe(target, &run, None)?;
        let own = folder.path().file_name().unwrap_or_default();
        let own = own.to_string_lossy().into_owned();
        self.tell(|told| told.runs[number] = own.into());
        self.describe(target)?;
        let quiet = folder.path().join("calm");
        let calm = self.calm(&quiet)?;
        if let Some(window) = calm.as_ref().and_then(Calm::window) {
            folder.see_through(window);
        }
        let ended = match &self.way {
            Way::Detours(agent, _) => self.run_armed(command, agent, &mut folder, (extra, calm))?,
            Way::Breakpoints(points) => {
                self.run_attended(command, (points, number), &folder, (extra, calm))?
            }
        };
        if self.moment.is_some()
            && let Err(error) = fs::remove_dir_all(&quiet)
        {
            say!("tomo: {}: {error}", quiet.display());
        }
        if let Err(error) = folder.describe(target, &run, Some(ended)) {
            say!("tomo: how the program ended is not noted: {error}");
        }
        Ok(ended)
    }

    /// How the program is calmed, if it is; what is needed is made in the folder `quiet`.
    fn calm(&self, quiet: &Path) -> Result<Option<Calm>> {
        let Some(moment) = self.moment else {
            return Ok(None);
        };
        let has_agent = matches!(self.way, Way::Detours(..));
        let calm = Calm::beginning(moment, quiet, has_agent);
        let calm = calm.with_context(|| quiet.display().to_string())?;
        self.tell(|told| {
            let before = std::mem::replace(&mut told.restless, calm.restless());
            if let (None, Some(restless)) = (before, told.restless) {
                say!("tomo: not calm: {restless}");
            }
        });
        Ok(Some(calm))
    }

    /// Runs the program with an agent in it, and takes what its threads record meanwhile.
    fn run_armed(
        &self,
        command: &Command<'_>,
        agent: &Agent,
        folder: &mut RunFolder,
        (extra, calm): (Extra, Option<Calm>),
    ) -> Result<Ended> {
        let roster = folder.roster()?;
        let arming = Arming {
            agent,
            roster: &roster,
            outside: None,
        };
        let mut taking = Taking::of(folder.path())?;
        let is_over = AtomicBool::new(false);
        let (ended, taken) = thread::scope(|scope| {
            let taking = thread::Builder::new().spawn_scoped(scope, || {
                let taken = take(&mut taking, &is_over);
                taken.map(|()| taking)
            });
            let taking = taking.context("no thread can be made that takes what is recorded")?;
            self.begun.store(true, Ordering::Relaxed);
            let ended = match calm {
                None => {
                    let (target, rest) = (&command.target, command.rest);
                    let started = start_with(target, command.name, rest, Some(arming), extra);
                    let ended = started.and_then(tomo_launch::Started::wait);
                    ended.map_err(anyhow::Error::from)
                }
                Some(calm) => calmed(command, arming, (extra, calm)),
            };
            is_over.store(true, Ordering::Relaxed);
            anyhow::Ok((ended, taking.join()))
        })?;
        let ended = ended?;
        for (armed, live) in folder.lives() {
            if let Some(problem) = live.as_ref().and_then(crate::session::problem) {
                say!("tomo: {} {problem}", armed.module.path.display());
            }
            let without = live.map_or(0, |live| live.without.get());
            if let Some(words) = crate::session::started_without(without) {
                say!("tomo: {words}");
            }
        }
        let finished = match taken {
            Ok(Ok(taking)) => taking.finish(),
            Ok(Err(error)) => Err(error),
            Err(_) => bail!("what was recorded could not be taken"),
        };
        match finished {
            Err(error) => say!("tomo: the record was not compressed: {error}"),
            Ok((full, lost)) => {
                super::missing(full, lost).for_each(|line| say!("tomo: {line}"));
            }
        }
        Ok(ended)
    }

    /// Runs the program with breakpoints in it, and attends to them.
    fn run_attended(
        &self,
        command: &Command<'_>,
        (points, number): (&Breakpoints, usize),
        folder: &RunFolder,
        (extra, calm): (Extra, Option<Calm>),
    ) -> Result<Ended> {
        let path = folder.path().join("tracks.zst");
        let file = File::create(&path).with_context(|| path.display().to_string())?;
        let mut packer = Packer::new(BufWriter::new(file))?;
        let mut keep = |track: u32, behind: u64, bytes: &[u8]| {
            packer.add(track, behind, bytes)?;
            packer.flush()
        };
        self.begun.store(true, Ordering::Relaxed);
        let attended = attend(
            (&command.target, command.name),
            command.rest,
            extra,
            Attendance {
                points: Some(Points {
                    module: &self.module,
                    entry: points.entry,
                    points: &points.runs[number],
                }),
                calm,
            },
            &mut keep,
        )?;
        match attended.problem {
            Some(problem) => {
                say!("tomo: not all of run {number} was recorded: {problem}");
                packer.flush()?;
            }
            None => {
                let handlers = attended.handlers.iter();
                let handlers = handlers.map(|handler| handler.wrapping_sub(points.origin));
                packer.finish((0, 0), &handlers.collect::<Vec<_>>())?;
            }
        }
        Ok(attended.ended)
    }

    /// Writes what the trace consists of.
    fn describe(&self, target: &Target) -> Result<()> {
        let Ok(told) = self.told.lock() else {
            return Ok(());
        };
        let words = self.arguments.command.iter();
        let words = words.map(|word| word.to_string_lossy());
        let environment = std::env::vars_os().map(|(name, value)| {
            (
                name.to_string_lossy().into_owned(),
                value.to_string_lossy().into(),
            )
        });
        let folder = std::env::current_dir().unwrap_or_default();
        let document = json!({
            "schema": "tomo.trace/1",
            "program": target.executable.to_string_lossy(),
            "module": self.module.path.to_string_lossy(),
            "stem": self.module.stem,
            "command": words.collect::<Vec<_>>(),
            "environment": environment.collect::<serde_json::Map<_, Value>>(),
            "directory": folder.to_string_lossy(),
            "input": told.input,
            "runs": told.runs,
            "differences": told.differences,
            "calm": self.moment.map(|moment| json!({
                "moment": moment,
                "restless": told.restless,
            })),
        });
        let path = self.folder.join("trace.json");
        let part = path.with_extension("part");
        // An environment may hold secrets.
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(true).mode(0o600);
        let mut file = options.open(&part)?;
        file.write_all(format!("{document:#}\n").as_bytes())?;
        fs::rename(&part, &path).with_context(|| path.display().to_string())
    }
}

/// Runs a program that is armed and calmed.
fn calmed(
    command: &Command<'_>,
    arming: Arming<'_>,
    (mut extra, calm): (Extra, Calm),
) -> Result<Ended> {
    let variables = arming.variables(|name| std::env::var_os(name));
    extra.variables.extend(variables);
    let attendance = Attendance {
        points: None,
        calm: Some(calm),
    };
    let target = (&command.target, command.name.as_os_str());
    let attended = attend(target, command.rest, extra, attendance, &mut |_, _, _| {
        Ok(())
    })?;
    if let Some(problem) = attended.problem {
        say!("tomo: the program was not calm to its end: {problem}");
    }
    Ok(attended.ended)
}

/// The moment at which the time of a program begins that is calmed.
fn moment(arguments: &Traced) -> Result<Option<u64>> {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let now = now.map_or(0, |since| since.as_secs());
    match arguments.moment {
        Some(moment) if moment > now => {
            bail!("--moment {moment} is not yet; who waits until then would wait long")
        }
        asked => Ok(arguments.calm.then(|| asked.unwrap_or(now))),
    }
}

/// Takes what is recorded until the program is over.
fn take(taking: &mut Taking, is_over: &AtomicBool) -> Result<(), tomo_export::traced::TraceError> {
    const SHORTEST: Duration = Duration::from_micros(100);
    const LONGEST: Duration = Duration::from_millis(4);
    let mut pause = SHORTEST;
    while !is_over.load(Ordering::Relaxed) {
        pause = match taking.take()? {
            true => SHORTEST,
            false => (2 * pause).min(LONGEST),
        };
        if pause > SHORTEST {
            thread::sleep(pause);
        }
    }
    Ok(())
}

/// How often things ran: as a run says that is named, or the newest in the folder where counts are by default.
fn weights(arguments: &Traced, module: &Observed, store: &Store) -> Result<Weighed> {
    if let Some(run) = &arguments.weights {
        return crate::count::weights(run, module, store);
    }
    let runs = fs::read_dir("tomo-counts").into_iter().flatten().flatten();
    let is_own = |run: &PathBuf| run.join(format!("{}.counters", module.stem)).exists();
    let mut runs: Vec<PathBuf> = runs.map(|run| run.path()).filter(is_own).collect();
    let changed = |run: &PathBuf| fs::metadata(run).and_then(|found| found.modified()).ok();
    runs.sort_by_key(|run| std::cmp::Reverse(changed(run)));
    for run in runs {
        if let Ok(weighed) = crate::count::weights(&run, module, store) {
            say!("tomo: witnesses are where {} counted least", run.display());
            return Ok(weighed);
        }
    }
    Ok(Weighed::default())
}

/// A run can have no fewer breakpoints than the arrivals take.
fn check_limit(limit: Option<u32>, points: &Breakpoints) -> Result<()> {
    let most = points.runs.iter().map(Vec::len).max().unwrap_or(0);
    match limit {
        Some(limit) if most > limit as usize => bail!(
            "one run must have {most} breakpoints, for arrivals cannot be distributed: allow as many (--limit), or trace fewer functions (--function)"
        ),
        _ => Ok(()),
    }
}

/// From which byte on two files differ.
fn first_difference(one: &Path, other: &Path) -> Result<Option<usize>> {
    let (one, other) = (fs::read(one)?, fs::read(other)?);
    let parts = one.iter().zip(&other).position(|(one, other)| one != other);
    let shorter = one.len().min(other.len());
    Ok(parts.or((one.len() != other.len()).then_some(shorter)))
}

/// A new folder in `out`.
fn folder(out: &Path) -> Result<PathBuf> {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let since = since.map_or(0, |since| since.as_nanos());
    let path = out.join(format!("trace-{since}"));
    fs::create_dir_all(&path).with_context(|| path.display().to_string())?;
    fs::canonicalize(&path).with_context(|| path.display().to_string())
}
