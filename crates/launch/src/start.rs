//! The program runs: signals are passed on to it, its end is waited for.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::Path;
use std::process::{Child, ChildStderr, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread::Scope;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use signal_hook::consts;
use signal_hook::iterator::exfiltrator::origin::WithOrigin;
use signal_hook::iterator::{Handle, SignalsInfo};
use signal_hook::low_level::siginfo::{Cause, Origin};
use tomo_wire::environment;

use crate::modules::is_sanitizer;
use crate::{Agent, Target, inherited};

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

/// The signals that are passed on when somebody sends them to this process alone.
const PASSED_ON: [i32; 7] = [
    consts::SIGTERM,
    consts::SIGINT,
    consts::SIGQUIT,
    consts::SIGHUP,
    consts::SIGUSR1,
    consts::SIGUSR2,
    consts::SIGALRM,
];

/// What arms a program.
#[derive(Clone, Copy, Debug)]
pub struct Arming<'a> {
    /// The agent.
    pub agent: &'a Agent,
    /// The roster's path.
    pub roster: &'a Path,
    /// Whether the program has an address sanitizer; see [`Found::sanitized`](crate::Found).
    pub sanitized: bool,
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
        let mut variables = vec![
            (PRELOAD, list(self.agent.path.as_os_str(), PRELOAD)),
            (environment::ROSTER, self.roster.as_os_str().to_os_string()),
        ];
        // One that the user preloads finds ours before it, too.
        let preloads = |list: OsString| {
            let mut names = list.as_bytes().split(|byte| b" :".contains(byte));
            names.any(|name| is_sanitizer(Path::new(OsStr::from_bytes(name))))
        };
        if self.sanitized || before(PRELOAD).is_some_and(preloads) {
            let lenient = OsStr::new("verify_asan_link_order=0");
            variables.push((SANITIZER, list(lenient, SANITIZER)));
        }
        variables
    }
}

/// The libraries that the loader loads first.
const PRELOAD: &str = "LD_PRELOAD";
/// The address sanitizer's options.
const SANITIZER: &str = "ASAN_OPTIONS";

/// From now on a file that becomes larger than this process may write is an error, as a full disk
/// is, and does not end it. The programs that it starts are not affected.
pub fn keep_going() {
    if ignored_signals() & (1 << (consts::SIGXFSZ - 1)) == 0 {
        let unused = Arc::new(AtomicBool::new(false));
        let _ = signal_hook::flag::register(consts::SIGXFSZ, unused);
    }
}

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
    signals: Signals,
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
        wait(&mut self.child, &mut self.signals).map_err(StartError::Lost)
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
    /// Lets the program that `command` starts have it.
    pub(crate) fn hand_on(self, command: &mut Command) {
        command.envs(self.variables);
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
    let mut command = Command::new(&target.command);
    command.arg0(name).args(arguments);
    if let Some(arming) = armed {
        command.envs(arming.variables(|name| std::env::var_os(name)));
    }
    extra.hand_on(&mut command);
    inherited::hand_on(&mut command);
    // Handled from before the program starts, so that none is missed; the program itself starts
    // with the default for each.
    let signals = handled().map_err(StartError::Lost)?;
    let failed = |error| StartError::NotStarted(target.command.clone(), error);
    let child = command.spawn().map_err(failed)?;
    Ok(Started { child, signals })
}

type Signals = SignalsInfo<WithOrigin>;

/// From now on this process handles the signals that it passes on. Those that whoever started it
/// wanted ignored stay ignored, here and in the program.
fn handled() -> io::Result<Signals> {
    let ignored = ignored_signals();
    let passed_on = PASSED_ON.into_iter();
    let wanted = passed_on.filter(|signal| ignored & (1 << (signal - 1)) == 0);
    Signals::new(wanted.chain([consts::SIGCHLD]))
}

/// The signals that this process ignores, bit by bit.
fn ignored_signals() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    line.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
        .unwrap_or(0)
}

fn wait(child: &mut Child, signals: &mut Signals) -> io::Result<Ended> {
    loop {
        if let Some(status) = child.try_wait()? {
            let signal = status.signal().map(Ended::Killed);
            return Ok(signal.unwrap_or(Ended::Exited(status.code().unwrap_or(0))));
        }
        for origin in signals.wait() {
            pass_on(&origin, child.id() as i32)?;
        }
    }
}

/// Passes a signal on to a process, if it was meant for that.
fn pass_on(origin: &Origin, process: i32) -> io::Result<()> {
    // What the terminal sends it sends to the whole group, the program included.
    let by_terminal = origin.cause == Cause::Kernel;
    if origin.signal != consts::SIGCHLD && !by_terminal {
        let signal = Signal::try_from(origin.signal)?;
        let _ = kill(Pid::from_raw(process), signal);
    }
    Ok(())
}

/// Signals that are passed on to a program that somebody else waits for.
pub(crate) struct Forwarding(Signals);

impl Forwarding {
    /// From now on none is missed.
    pub(crate) fn prepare() -> io::Result<Self> {
        handled().map(Self)
    }

    /// Passes them on to `process` until what this gives is dropped.
    pub(crate) fn to<'s>(self, process: i32, scope: &'s Scope<'s, '_>) -> Closing {
        let Self(mut signals) = self;
        let closing = Closing(signals.handle());
        scope.spawn(move || {
            for origin in &mut signals {
                // A signal that is none is not passed on.
                let _ = pass_on(&origin, process);
            }
        });
        closing
    }
}

/// Ends the passing on of signals when it is dropped.
pub(crate) struct Closing(Handle);

impl Drop for Closing {
    fn drop(&mut self) {
        self.0.close();
    }
}
