//! A case run once, armed or as it is, and labelled.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, PipeReader, Read as _, Seek as _, Write as _};
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use rustix::io::ioctl_fionread;

use crate::cases::{Case, Success, named};
use crate::keeper::Kept;
use crate::printed::Printed;

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
    pub(crate) printed: Printed,
    pub(crate) took: Duration,
}

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
    let (mut output, theirs) = io::pipe()?;
    // As long as an end of it is ours, the pipe is never at its end: who prints no more is waited for all the same.
    let ours = File::from(OwnedFd::from(theirs.try_clone()?));
    let kept = Kept::new(ours.metadata()?.ino());
    command.process_group(0).stdin(input).stderr(Stdio::null());
    command.stdout(theirs);
    let started = Instant::now();
    let program = Path::new(command.get_program()).to_path_buf();
    let child = command.spawn();
    let mut child = child.map_err(|error| named(&program, &error))?;
    let group = Pid::from_raw(child.id() as i32);
    kept.is(group);
    let mut printed = Printed::new();
    let most = Duration::from_secs(seconds);
    let end = wait(&mut child, (&mut output, &mut printed), most);
    let took = started.elapsed();
    // Whoever is left of its group would go on writing.
    let _ = killpg(group, Signal::SIGKILL);
    if end.is_err() {
        let _ = child.kill();
        let _ = child.wait();
    }
    // Who has left the group may hold the pipe for ever: what is in it is all that counts.
    let mut left = (&output).take(ioctl_fionread(&output)?);
    while printed.read(&mut left)? {}
    Ok(Ran {
        end: end?,
        printed,
        took,
    })
}

/// Takes what it prints until it ends, but no longer than that.
fn wait(
    child: &mut Child,
    (output, printed): (&mut PipeReader, &mut Printed),
    most: Duration,
) -> io::Result<End> {
    let id = rustix::process::Pid::from_child(child);
    let process = rustix::process::pidfd_open(id, rustix::process::PidfdFlags::empty())?;
    let until = Instant::now().checked_add(most);
    loop {
        let now = Instant::now();
        let left = until.map_or(Duration::MAX, |until| until.saturating_duration_since(now));
        let [has_ended, has_printed] = ready([process.as_fd(), output.as_fd()], left)?;
        if has_ended {
            return child.wait().map(End::of);
        }
        if left.is_zero() {
            break;
        }
        if has_printed {
            printed.read(output)?;
        }
    }
    let _ = killpg(Pid::from_raw(child.id() as i32), Signal::SIGKILL);
    child.kill()?;
    child.wait()?;
    Ok(End::Hung)
}

/// Waits until one of these is ready, but no longer than that; whether each is.
fn ready(files: [BorrowedFd<'_>; 2], most: Duration) -> io::Result<[bool; 2]> {
    let millis = PollTimeout::try_from(most).unwrap_or(PollTimeout::MAX);
    let mut watched = files.map(|file| PollFd::new(file, PollFlags::POLLIN));
    match poll(&mut watched, millis) {
        Ok(_) | Err(nix::Error::EINTR) => {}
        Err(error) => return Err(error.into()),
    }
    Ok(watched.map(|file| file.revents().is_some_and(|seen| !seen.is_empty())))
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
        Success::Output(path) => match File::open(path).and_then(Printed::all_of) {
            Ok(wanted) => told(ran.printed.is(&wanted)),
            Err(error) => Label::Unknown(format!("{}: {error}", path.display())),
        },
        Success::Like(_) => match like {
            Some(like) => told(ran.printed.is(&like.printed) && ran.end == like.end),
            None => Label::Unknown("there is nothing to compare it with".into()),
        },
        Success::Check(command) => check(case, ran, command),
    }
}

/// What a command says that finds the output on its standard input.
fn check(case: &Case, ran: &Ran, command: &[OsString]) -> Label {
    let Some(printed) = ran.printed.whole() else {
        return Label::Unknown("it printed more than is kept to be checked".into());
    };
    let checked = || -> io::Result<End> {
        let mut output = tempfile::tempfile()?;
        output.write_all(printed)?;
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

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::{End, complete};

    #[test]
    fn what_is_printed_is_compared_however_much_it_is() {
        let run = |bytes: &str| {
            let mut command = Command::new("head");
            command.args(["-c", bytes, "/dev/zero"]);
            complete(command, Stdio::null(), 100).unwrap()
        };
        let one = run("70000000");
        assert!(one.printed.is(&run("70000000").printed));
        assert!(!one.printed.is(&run("70000001").printed));
        assert!(one.printed.whole().is_none());
    }

    #[test]
    fn who_prints_no_more_has_not_ended() {
        let mut command = Command::new("sh");
        command.args(["-c", "echo some; exec >&-; read line; exit 3"]);
        let (input, go) = std::io::pipe().unwrap();
        drop(go);
        let ran = complete(command, input.into(), 100).unwrap();
        assert_eq!(ran.end, End::Exited(3));
        assert_eq!(ran.printed.whole(), Some(b"some\n".as_slice()));
    }
}
