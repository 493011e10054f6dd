//! What `tomo cover` records of a run, read from its files, and held against what the run did.

use std::collections::BTreeSet;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Output, Stdio};

use anyhow::{Context as _, Result, ensure};
use nix::sys::personality::{self, Persona};
use tomo_wire::plan::{PlanView, Tactic};
use tomo_wire::record::{RecordView, stem_of};

use crate::corpus::Workload;
use crate::tomo;

/// Units of one module, by what became of their probes.
#[derive(Clone, Debug, Default)]
pub struct Units {
    /// Addresses of blocks (or functions) whose probes were hit.
    pub hit: BTreeSet<u64>,
    /// Those whose probes were not.
    pub missed: BTreeSet<u64>,
    /// Edges (from, to) whose probes were hit.
    pub taken: BTreeSet<(u64, u64)>,
    /// Those whose probes were not.
    pub untaken: BTreeSet<(u64, u64)>,
    /// Units without a probe.
    pub without: usize,
    /// Blocks that have a trap for a probe.
    pub traps: usize,
    /// Processes that were armed.
    pub processes: u64,
    /// Those of them that were forked, and have records of their own.
    pub forked: u64,
}

impl Units {
    /// Adds what another run of the same program recorded.
    pub fn merge(&mut self, other: &Self) {
        self.hit.extend(&other.hit);
        self.missed.extend(&other.missed);
        self.missed.retain(|unit| !self.hit.contains(unit));
        self.taken.extend(&other.taken);
        self.untaken.extend(&other.untaken);
        self.untaken.retain(|edge| !self.taken.contains(edge));
        self.without = other.without;
        self.traps = other.traps;
        self.processes += other.processes;
        self.forked += other.forked;
    }

    /// What the record in the file `record` says of the units of `plan`.
    ///
    /// # Errors
    /// If one of them cannot be read, or they do not belong together.
    pub fn read(plan: &Path, record: &Path) -> Result<Self> {
        let (plan, record) = (fs::read(plan)?, fs::read(record)?);
        let plan = PlanView::read(&plan)?;
        let record = RecordView::read(&record)?;
        ensure!(
            plan.name == record.header.plan.get(),
            "record and plan differ"
        );
        let mut units = Self {
            without: plan.units.len() - record.marks.len(),
            processes: record.live.armed.get(),
            forked: record.live.forked.get(),
            ..Self::default()
        };
        for (unit, mark) in plan.units.iter().zip(record.marks) {
            let (from, to) = (unit.from.get(), unit.to.get());
            units.traps += usize::from(unit.tactic.get() == Tactic::Trap as u32);
            let _ = match (unit.is_edge.get() != 0, *mark != 0) {
                (false, true) => units.hit.insert(from),
                (false, false) => units.missed.insert(from),
                (true, true) => units.taken.insert((from, to)),
                (true, false) => units.untaken.insert((from, to)),
            };
        }
        Ok(units)
    }
}

/// What was recorded of units held against those that ran; none where they agree.
#[must_use]
pub fn differences<T: Ord + std::fmt::Debug>(
    hit: &BTreeSet<T>,
    missed: &BTreeSet<T>,
    ran: &BTreeSet<T>,
) -> Option<String> {
    let false_hits: Vec<&T> = hit.difference(ran).collect();
    let false_misses: Vec<&T> = missed.intersection(ran).collect();
    let same = false_hits.is_empty() && false_misses.is_empty();
    (!same).then(|| {
        format!("recorded, not executed {false_hits:x?}; executed, not recorded {false_misses:x?}")
    })
}

/// A command under `tomo cover` with `options`, in a folder of its own.
#[derive(Debug)]
pub struct Covering {
    folder: tempfile::TempDir,
    cache: PathBuf,
}

impl Covering {
    /// A new folder, and an empty cache in it.
    ///
    /// # Errors
    /// If none can be made.
    pub fn new() -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let cache = folder.path().join("cache");
        Ok(Self { folder, cache })
    }

    /// A new folder, and the cache in the folder `cache`, which earlier runs may have filled.
    ///
    /// # Errors
    /// If none can be made.
    pub fn cached_in(cache: &Path) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let cache = cache.to_owned();
        Ok(Self { folder, cache })
    }

    /// Where records go.
    #[must_use]
    pub fn output(&self) -> PathBuf {
        self.folder.path().join("out")
    }

    /// `tomo cover OPTIONS --`, ready for the program and its arguments.
    ///
    /// # Errors
    /// If the command cannot be built.
    pub fn command(&self, options: &[&str]) -> Result<Command> {
        let mut command = Command::new(tomo::path()?);
        command
            .env("TOMO_CACHE_DIR", &self.cache)
            .arg("cover")
            .args(options);
        if !options.contains(&"--pool") {
            command.arg("--output").arg(self.output());
        }
        command.arg("--");
        Ok(command)
    }

    /// Runs a workload of `program` to its end, covered.
    ///
    /// # Errors
    /// If it cannot be run.
    pub fn run(&self, options: &[&str], program: &Path, workload: &Workload) -> Result<Output> {
        let mut command = self.command(options)?;
        command.arg(program).args(&workload.args);
        if let Some(folder) = &workload.cwd {
            command.current_dir(folder);
        }
        complete(command, workload.stdin.as_deref().unwrap_or_default())
    }

    /// What the one run of which there is a record saw of the module whose files are called after
    /// `program`'s build, the only module that was observed.
    ///
    /// # Errors
    /// If there is not exactly one record.
    pub fn only(&self) -> Result<Units> {
        let records = files(&self.output(), "record")?;
        let [record] = records.as_slice() else {
            anyhow::bail!("{} records, not one", records.len());
        };
        Units::read(&plan_of(record), record)
    }

    /// What each process saw that has a record of its own, in the order of their paths.
    ///
    /// # Errors
    /// If one cannot be read.
    pub fn processes(&self) -> Result<Vec<Units>> {
        processes(files(&self.output(), "record")?)
    }

    /// What each record says, in the order of their paths.
    ///
    /// # Errors
    /// If one cannot be read.
    pub fn each(&self) -> Result<Vec<Units>> {
        let records = files(&self.output(), "record")?.into_iter();
        records
            .map(|record| Units::read(&plan_of(&record), &record))
            .collect()
    }

    /// What all runs saw together.
    ///
    /// # Errors
    /// If there is no record, or one cannot be read.
    pub fn all(&self) -> Result<Units> {
        let mut merged = Units::default();
        let records = files(&self.output(), "record")?;
        ensure!(!records.is_empty(), "no record");
        for record in records {
            merged.merge(&Units::read(&plan_of(&record), &record)?);
        }
        Ok(merged)
    }
}

/// A pool that arms programs wherever they are started (`tomo env --pool`).
#[derive(Debug)]
pub struct Pool {
    folder: tempfile::TempDir,
    variables: Vec<(String, String)>,
}

impl Pool {
    /// A new pool for `program`.
    ///
    /// # Errors
    /// If it cannot be made.
    pub fn new(program: &Path) -> Result<Self> {
        Self::with(&[], program)
    }

    /// A new pool for `program` by `tomo env` with `options`.
    ///
    /// # Errors
    /// If it cannot be made.
    pub fn with(options: &[&str], program: &Path) -> Result<Self> {
        let mut pool = Self {
            folder: tempfile::tempdir()?,
            variables: Vec::new(),
        };
        let line = "eval \"$(\"$0\" env --pool \"$1\" \"${@:2}\")\" && echo \"$LD_PRELOAD\" && echo \"$TOMO_ROSTER\"";
        let mut shell = Command::new("bash");
        shell
            .args(["-c", line])
            .arg(tomo::path()?)
            .arg(pool.path())
            .args(options)
            .arg(program)
            .env("TOMO_CACHE_DIR", pool.folder.path().join("cache"))
            .env_remove("LD_PRELOAD");
        let output = complete(shell, b"")?;
        let errors = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "tomo env: {errors}");
        let printed = String::from_utf8(output.stdout)?;
        let names = ["LD_PRELOAD", "TOMO_ROSTER"].map(String::from);
        pool.variables = names
            .into_iter()
            .zip(printed.lines().map(String::from))
            .collect();
        Ok(pool)
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> PathBuf {
        self.folder.path().join("pool")
    }

    /// The only file in it with this extension.
    ///
    /// # Errors
    /// If there is not exactly one.
    pub fn file(&self, extension: &str) -> Result<PathBuf> {
        let entries = fs::read_dir(self.path())?;
        let mut paths = entries.flatten().map(|entry| entry.path());
        let mut ours = paths
            .by_ref()
            .filter(|path| path.extension().is_some_and(|e| e == extension));
        let first = ours.next().with_context(|| format!("no {extension}"))?;
        ensure!(ours.next().is_none(), "more than one {extension}");
        Ok(first)
    }

    /// `program`, armed.
    #[must_use]
    pub fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
        command
    }

    /// What each process saw that has a record of its own, in the order of their paths.
    ///
    /// # Errors
    /// If one cannot be read.
    pub fn processes(&self) -> Result<Vec<Units>> {
        let entries = fs::read_dir(self.path())?.flatten();
        let paths = entries.map(|entry| entry.path());
        let is_record = |path: &PathBuf| path.extension().is_some_and(|e| e == "record");
        let mut records: Vec<_> = paths.filter(is_record).collect();
        records.sort();
        processes(records)
    }

    /// What all runs saw so far of the only module.
    ///
    /// # Errors
    /// If the record cannot be read.
    pub fn units(&self) -> Result<Units> {
        Units::read(&self.file("plan")?, &self.file("record")?)
    }
}

/// Starts `command`, hands `input` over, and waits for its end.
///
/// # Errors
/// If it does not start.
pub fn complete(mut command: Command, input: &[u8]) -> Result<Output> {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .context("starting")?;
    let mut pipe = child.stdin.take().context("no pipe")?;
    std::thread::scope(|scope| {
        // Whoever does not read all of its input closes the pipe, which is no error here.
        scope.spawn(move || pipe.write_all(input));
        Ok(child.wait_with_output()?)
    })
}

/// Runs `command` with one scenario of `program` behind it, to its end.
///
/// # Errors
/// If it does not start.
pub fn play(mut command: Command, program: &Path, scenario: &str) -> Result<Output> {
    command.arg(program).arg(scenario);
    complete(command, b"")
}

/// A command with the variables that the oracle gives to what it steps through, and no others.
#[must_use]
pub fn as_stepped(program: &Path) -> Command {
    let mut command = Command::new(program);
    command.env_clear();
    command.envs([("PATH", "/usr/bin:/bin"), ("LC_ALL", "C"), ("TZ", "UTC")]);
    command
}

/// As [`complete`], at the addresses that the oracle's runs have: some programs hash addresses.
///
/// # Errors
/// If it does not start, or addresses cannot be had so.
pub fn complete_as_stepped(command: Command, input: &[u8]) -> Result<Output> {
    at_stepped_addresses(|| complete(command, input))
}

/// The same of a command whose files are open already.
///
/// # Errors
/// As for [`complete_as_stepped`].
pub fn run_as_stepped(mut command: Command) -> Result<ExitStatus> {
    at_stepped_addresses(|| Ok(command.status()?))
}

fn at_stepped_addresses<T>(run: impl FnOnce() -> Result<T>) -> Result<T> {
    let before = personality::get()?;
    personality::set(before | Persona::ADDR_NO_RANDOMIZE)?;
    let done = run();
    personality::set(before)?;
    done
}

/// The plan beside a record, which that of a single process shares with others.
fn plan_of(record: &Path) -> PathBuf {
    let name = record.file_stem().unwrap_or_default().to_string_lossy();
    record.with_file_name(format!("{}.plan", stem_of(&name)))
}

/// What those of `records` say that are of one process each.
fn processes(records: Vec<PathBuf>) -> Result<Vec<Units>> {
    let is_single = |record: &PathBuf| plan_of(record) != record.with_extension("plan");
    let records = records.into_iter().filter(is_single);
    records
        .map(|record| Units::read(&plan_of(&record), &record))
        .collect()
}

/// The files below `folder` with this extension.
fn files(folder: &Path, extension: &str) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for run in fs::read_dir(folder)? {
        for file in fs::read_dir(run?.path())? {
            let path = file?.path();
            if path.extension().is_some_and(|e| e == extension) {
                found.push(path);
            }
        }
    }
    found.sort();
    Ok(found)
}
