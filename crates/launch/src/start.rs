//! The program runs, and its end is waited for.

use std::ffi::{OsStr, OsString};
use std::io::{self, ErrorKind};
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{self, Child, ChildStderr, Command, Stdio};

use nix::unistd::Pid;
use tomo_wire::environment;

use crate::job::{self, Job};
use crate::passing::Passing;
use crate::{Agent, Outside, Target, executed, inherited, orphans, scarce, stand_in};

/// How a program ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// By itself, with this code.
    Exited(i32),
    /// By this signal.
    Killed(i32),
}

impl Ended {
    /// The exit code that shells give it.
    #[must_use]
    pub fn code(self) -> u8 {
        match self {
            Self::Exited(code) => code as u8,
            Self::Killed(signal) => 128_i32.wrapping_add(signal) as u8,
        }
    }
}

/// Why a program did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The system would not run it.
    #[error("{path}: {1}", path = .0.display())]
    NotStarted(std::path::PathBuf, io::Error),
    /// It runs, but cannot be waited for.
    #[error("waiting for the program: {0}")]
    Lost(io::Error),
}

/// What arms a program.
#[derive(Clone, Copy, Debug)]
pub struct Arming<'a> {
    /// The agent.
    pub agent: &'a Agent,
    /// The roster's path.
    pub roster: &'a Path,
    /// What arms the program itself, if nothing can be loaded into it.
    pub outside: Option<&'a Outside>,
}

impl Arming<'_> {
    /// The environment variables that arm programs, given those that are there.
    pub fn variables(
        &self,
        before: impl Fn(&str) -> Option<OsString>,
    ) -> Vec<(&'static str, OsString)> {
        let list = |ours: &OsStr, name: &str| {
            let mut list = ours.to_os_string();
            if let Some(before) = before(name).filter(|before| !before.is_empty()) {
                list.push(":");
                list.push(before);
            }
            list
        };
        let lenient = OsStr::new("verify_asan_link_order=0");
        vec![
            (PRELOAD, list(self.agent.path.as_os_str(), PRELOAD)),
            (environment::ROSTER, self.roster.as_os_str().to_os_string()),
            (SANITIZER, list(lenient, SANITIZER)),
        ]
    }
}

/// The libraries that the loader loads first.
const PRELOAD: &str = "LD_PRELOAD";
/// The address sanitizer's options. Its programs do not start behind a library that comes before its own unless they are told to; any
/// program that is started below may be one.
const SANITIZER: &str = "ASAN_OPTIONS";

/// Runs `target`, called as `name`, until it ends: armed, or as it is.
///
/// # Errors
/// Where it does not start, or cannot be waited for.
pub fn run(
    target: &Target,
    name: &OsStr,
    arguments: &[OsString],
    armed: Option<Arming<'_>>,
) -> Result<Ended, StartError> {
    start(target, name, arguments, armed)?.wait()
}

/// A program that runs, and the signals that are passed on to it.
#[derive(Debug)]
pub struct Started {
    child: Child,
    passing: Passing,
    job: Option<Job>,
}

impl Started {
    /// Its process.
    #[must_use]
    pub fn process(&self) -> u32 {
        self.child.id()
    }

    /// Its errors, if they were asked for.
    pub fn take_errors(&mut self) -> Option<ChildStderr> {
        self.child.stderr.take()
    }

    /// Passes signals on until it has ended.
    ///
    /// # Errors
    /// Where it cannot be waited for.
    pub fn wait(mut self) -> Result<Ended, StartError> {
        let program = Pid::from_raw(self.child.id() as i32);
        if process::id() == orphans::FIRST {
            orphans::reap_until_ends(program);
        }
        job::wait_until_ends(program, self.job.as_ref());
        drop(self.job);
        drop(self.passing);
        let status = self.child.wait().map_err(StartError::Lost)?;
        let signal = status.signal().map(Ended::Killed);
        let ended = signal.unwrap_or(Ended::Exited(status.code().unwrap_or(0)));
        stand_in::has_ended(ended);
        Ok(ended)
    }
}

/// Starts `target`, called as `name`: armed, or as it is. Whoever does this must wait for it.
///
/// # Errors
/// Where it does not start.
pub fn start(
    target: &Target,
    name: &OsStr,
    arguments: &[OsString],
    armed: Option<Arming<'_>>,
) -> Result<Started, StartError> {
    start_with(target, name, arguments, armed, Extra::default())
}

/// What else a program gets.
#[derive(Debug, Default)]
pub struct Extra {
    /// Variables of its environment.
    pub variables: Vec<(&'static str, OsString)>,
    /// Where its input comes from, if not from where this process's does.
    pub input: Option<Stdio>,
    /// Where its output goes, if not where this process's goes.
    pub output: Option<Stdio>,
    /// Where its errors go, if not where this process's go.
    pub errors: Option<Stdio>,
}

impl Extra {
    /// Lets the program that `command` starts have it, and what else this process has found.
    pub(crate) fn hand_on(self, command: &mut Command) {
        command.envs(self.variables);
        let given = [&self.input, &self.output, &self.errors].map(Option::is_some);
        inherited::hand_on(command, given);
        self.input.map(|input| command.stdin(input));
        self.output.map(|output| command.stdout(output));
        self.errors.map(|errors| command.stderr(errors));
    }
}

/// The same, with something more.
///
/// # Errors
/// As for [`start`].
pub fn start_with(
    target: &Target,
    name: &OsStr,
    arguments: &[OsString],
    armed: Option<Arming<'_>>,
    extra: Extra,
) -> Result<Started, StartError> {
    let (mut command, name) = target.start(name);
    command.args(arguments);
    let is_alone = |outside: &Outside| outside.is_alone;
    let loaded = armed.filter(|arming| !arming.outside.is_some_and(is_alone));
    if let Some(arming) = loaded.filter(|_| scarce::has_room_for_agent()) {
        command.envs(arming.variables(|name| std::env::var_os(name)));
    }
    extra.hand_on(&mut command);
    scarce::hand_on(&mut command);
    // Handled from before the program starts, so that none is missed; the program itself starts
    // with the default for each.
    let passing = Passing::prepare().map_err(StartError::Lost)?;
    let job = Job::ours();
    passing.hand_on(&mut command);
    stand_in::is_started();
    let failed = |error| StartError::NotStarted(target.command.clone(), error);
    let child = match armed.and_then(|arming| arming.outside) {
        Some(outside) => outside.spawn(command, name),
        None => spawn(command, name),
    };
    let child = child.inspect_err(without_room).map_err(failed)?;
    passing.to(child.id() as i32);
    stand_in::runs_as(child.id() as i32);
    Ok(Started {
        child,
        passing,
        job,
    })
}

/// Starts the program of `command`, called as `name`.
pub(crate) fn spawn(mut command: Command, name: &OsStr) -> io::Result<Child> {
    executed::hand_on(&mut command, name);
    command.spawn()
}

/// Where the system has no room for one process more it has room for the program in the place of this one; and where it has none for
/// what our environment adds, for the program with its own.
fn without_room(error: &io::Error) {
    if error.kind() == ErrorKind::ArgumentListTooLong {
        stand_in::is_not_started();
        stand_in::end_for_the_program("its arguments leave no room for ours");
    }
    if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::OutOfMemory) {
        stand_in::is_not_started();
        stand_in::end_for_the_program("there is no room for another process (ulimit -u, pids.max)");
    }
}
