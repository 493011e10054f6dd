//! A case run once, armed or as it is, and labelled.

use std::ffi::OsString;
use std::io::{self, Read as _, Seek as _, Write as _};
use std::os::fd::{AsFd as _, BorrowedFd};
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;

use crate::cases::{Case, Success, named};

/// How a run ended.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize,
)]
pub enum End {
    /// By itself, with this code.
    Exited(i32),
    /// By this signal.
    Killed(i32),
    /// It did not end in time and was killed.
    Hung,
}

impl End {
    fn of(status: ExitStatus) -> Self {
        match (status.code(), status.signal()) {
            (Some(code), _) => Self::Exited(code),
            (None, signal) => Self::Killed(signal.unwrap_or(0)),
        }
    }

    /// In words.
    pub(crate) fn words(self) -> String {
        match self {
            Self::Exited(code) => format!("exit code {code}"),
            Self::Killed(signal) => match Signal::try_from(signal) {
                Ok(signal) => signal.to_string(),
                Err(_) => format!("signal {signal}"),
            },
            Self::Hung => "no end in time".into(),
        }
    }
}

/// What a run was.
#[derive(Clone, Debug)]
pub(crate) struct Ran {
    pub(crate) end: End,
    pub(crate) output: Vec<u8>,
    pub(crate) took: Duration,
}

/// More output than this is not compared.
const MOST_OUTPUT: u64 = 64 << 20;

/// Runs `program` on a case's arguments and input, with these variables more.
pub(crate) fn run(
    program: &[OsString],
    case: &Case,
    variables: &[(&str, OsString)],
) -> io::Result<Ran> {
    let (name, first) = program.split_first().ok_or(io::ErrorKind::NotFound)?;
    let mut command = Command::new(name);
    command.args(first).args(&case.arguments);
    command.envs(variables.iter().map(|(name, value)| (name, value)));
    complete(command, case.opened()?, case.timeout)
}

/// Runs a command in a group of its own; who does not end in time is killed with all its group.
fn complete(mut command: Command, input: Stdio, seconds: u64) -> io::Result<Ran> {
    let mut output = tempfile::tempfile()?;
    command.process_group(0).stdin(input).stderr(Stdio::null());
    command.stdout(output.try_clone()?);
    let started = Instant::now();
    let program = Path::new(command.get_program()).to_path_buf();
    let child = command.spawn();
    let mut child = child.map_err(|error| named(&program, &error))?;
    let end = wait(&mut child, Duration::from_secs(seconds));
    let took = started.elapsed();
    // Whoever is left of its group would go on writing.
    let _ = killpg(Pid::from_raw(child.id() as i32), Signal::SIGKILL);
    if end.is_err() {
        let _ = child.kill();
        let _ = child.wait();
    }
    output.rewind()?;
    let mut bytes = Vec::new();
    output.take(MOST_OUTPUT).read_to_end(&mut bytes)?;
    Ok(Ran {
        end: end?,
        output: bytes,
        took,
    })
}

fn wait(child: &mut Child, most: Duration) -> io::Result<End> {
    let id = rustix::process::Pid::from_child(child);
    let process = rustix::process::pidfd_open(id, rustix::process::PidfdFlags::empty())?;
    if ends_within(process.as_fd(), most)? {
        return child.wait().map(End::of);
    }
    let _ = killpg(Pid::from_raw(child.id() as i32), Signal::SIGKILL);
    child.kill()?;
    child.wait()?;
    Ok(End::Hung)
}

/// Waits until the process ends, but no longer than that; whether it did.
fn ends_within(process: BorrowedFd<'_>, most: Duration) -> io::Result<bool> {
    let millis = PollTimeout::try_from(most).unwrap_or(PollTimeout::MAX);
    let mut watched = [PollFd::new(process, PollFlags::POLLIN)];
    loop {
        match poll(&mut watched, millis) {
            Ok(ended) => return Ok(ended != 0),
            Err(nix::Error::EINTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// Whether a run was a success, or a failure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Label {
    Passed,
    Failed,
    /// Nobody could tell, for this reason.
    Unknown(String),
}

/// Tells whether a run was a success; `like` is what the command did to which it is compared.
pub(crate) fn label(case: &Case, ran: &Ran, like: Option<&Ran>) -> Label {
    let End::Exited(code) = ran.end else {
        return Label::Failed;
    };
    let told = |passed: bool| match passed {
        true => Label::Passed,
        false => Label::Failed,
    };
    match &case.success {
        Success::Exit(wanted) => told(code == *wanted),
        Success::Output(path) => match std::fs::read(path) {
            Ok(wanted) => told(ran.output == wanted),
            Err(error) => Label::Unknown(format!("{}: {error}", path.display())),
        },
        Success::Like(_) => match like {
            Some(like) => told(ran.output == like.output && ran.end == like.end),
            None => Label::Unknown("there is nothing to compare it with".into()),
        },
        Success::Check(command) => check(case, ran, command),
    }
}

/// What a command says that finds the output on its standard input.
fn check(case: &Case, ran: &Ran, command: &[OsString]) -> Label {
    let checked = || -> io::Result<End> {
        let mut output = tempfile::tempfile()?;
        output.write_all(&ran.output)?;
        output.rewind()?;
        let (name, rest) = command.split_first().ok_or(io::ErrorKind::NotFound)?;
        let mut command = Command::new(name);
        command.args(rest).args(&case.arguments);
        Ok(complete(command, output.into(), case.timeout)?.end)
    };
    let name = || command.first().map(Path::new).unwrap_or(Path::new(""));
    match checked() {
        Ok(End::Exited(0)) => Label::Passed,
        Ok(End::Exited(_)) => Label::Failed,
        Ok(end) => Label::Unknown(format!("{}: {}", name().display(), end.words())),
        Err(error) => Label::Unknown(error.to_string()),
    }
}
