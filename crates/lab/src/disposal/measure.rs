//! What a run takes. The kernel adds up what all children of a process took, so each measured program
//! becomes the only child of a fresh process: `tomo study measure`, which is this program again.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeVal;
use serde::{Deserialize, Serialize};

use super::StudyError;

/// What one run took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    /// Seconds of the processor, of the program and of all that was started for it.
    pub cpu: f64,
    /// Seconds of the clock.
    pub elapsed: f64,
    /// Its exit code; none if a signal ended it.
    pub code: Option<i32>,
}

/// The measuring process itself: runs `program`, and writes what that took into the file `into`.
///
/// # Errors
/// Where the program cannot be started, or the file not be written.
pub fn measured(into: &Path, program: &OsStr, arguments: &[OsString]) -> Result<(), StudyError> {
    let start = Instant::now();
    let status = Command::new(program)
        .args(arguments)
        .status()
        .map_err(|error| StudyError::NotStarted(program.into(), error))?;
    let elapsed = start.elapsed().as_secs_f64();
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN)
        .map_err(|error| StudyError::NotMeasured(program.into(), error.to_string()))?;
    let seconds = |time: TimeVal| time.tv_sec() as f64 + time.tv_usec() as f64 * 1e-6;
    let measured = Measured {
        cpu: seconds(usage.user_time()) + seconds(usage.system_time()),
        elapsed,
        code: status.code(),
    };
    fs::write(into, serde_json::to_vec(&measured)?).map_err(StudyError::io(into))
}

/// One program to run.
#[derive(Clone, Debug, Default)]
pub(crate) struct Job {
    pub(crate) program: PathBuf,
    pub(crate) arguments: Vec<OsString>,
    pub(crate) environment: Vec<(OsString, OsString)>,
    pub(crate) stdin: Option<PathBuf>,
}

/// Starts programs, measured.
#[derive(Clone, Debug)]
pub struct Meter {
    /// The `tomo` command.
    tomo: PathBuf,
    /// Where outputs go.
    folder: PathBuf,
}

/// A program at work.
#[derive(Debug)]
pub(crate) struct Running {
    child: Child,
    program: PathBuf,
    into: PathBuf,
    output: PathBuf,
}

/// What a run took and printed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Ran {
    pub(crate) measured: Measured,
    /// A hash of what it printed.
    pub(crate) printed: u64,
}

/// What a run shows: a hash of what it prints, and its exit code.
pub(crate) type Told = (u64, Option<i32>);

impl Ran {
    /// What it showed.
    pub(crate) fn told(&self) -> Told {
        (self.printed, self.measured.code)
    }
}

impl Meter {
    /// One that starts the command `tomo` to measure, and keeps files in `folder`.
    #[must_use]
    pub fn new(tomo: &Path, folder: &Path) -> Self {
        let (tomo, folder) = (tomo.into(), folder.into());
        Self { tomo, folder }
    }

    /// The `tomo` command.
    pub(crate) fn tomo(&self) -> &Path {
        &self.tomo
    }

    /// Starts a job; `slot` keeps the files of jobs that run at the same time apart.
    pub(crate) fn start(&self, job: &Job, slot: usize) -> Result<Running, StudyError> {
        let into = self.folder.join(format!("measured-{slot}"));
        let output = self.folder.join(format!("printed-{slot}"));
        // What an earlier run left must not be taken for this one's.
        let _ = fs::remove_file(&into);
        let stdin = match &job.stdin {
            Some(path) => File::open(path).map_err(StudyError::io(path))?.into(),
            None => Stdio::null(),
        };
        let stdout = File::create(&output).map_err(StudyError::io(&output))?;
        let child = Command::new(&self.tomo)
            .args(["study", "measure", "--into"])
            .arg(&into)
            .arg("--")
            .arg(&job.program)
            .args(&job.arguments)
            .envs(job.environment.iter().map(|(name, value)| (name, value)))
            .stdin(stdin)
            .stdout(stdout)
            .stderr(Stdio::null())
            .spawn()
            .map_err(|error| StudyError::NotStarted(self.tomo.clone(), error))?;
        Ok(Running {
            child,
            program: job.program.clone(),
            into,
            output,
        })
    }

    /// Runs a job to its end.
    pub(crate) fn run(&self, job: &Job) -> Result<Ran, StudyError> {
        self.start(job, 0)?.finish()
    }
}

impl Running {
    /// Waits for its end.
    pub(crate) fn finish(mut self) -> Result<Ran, StudyError> {
        let failed = |why: String| StudyError::NotMeasured(self.program.clone(), why);
        let status = self
            .child
            .wait()
            .map_err(|error| failed(error.to_string()))?;
        let bytes = fs::read(&self.into).map_err(|_| failed(status.to_string()))?;
        let measured = serde_json::from_slice(&bytes)?;
        let printed = fs::read(&self.output).map_err(StudyError::io(&self.output))?;
        Ok(Ran {
            measured,
            printed: xxhash_rust::xxh3::xxh3_64(&printed),
        })
    }
}
