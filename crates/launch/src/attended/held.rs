//! A program that is held back before it starts, until somebody attends to it.

use std::ffi::OsStr;
use std::io::{self, PipeReader, PipeWriter, Read as _, Write as _};
use std::os::fd::{AsRawFd as _, RawFd};
use std::process::{Child, Command};
use std::sync::Mutex;

use nix::libc;
use nix::sys::ptrace::{self, Options};
use nix::sys::wait::{Id, WaitPidFlag, WaitStatus, waitid};
use nix::unistd::Pid;

use super::apart::Apart;
use super::system::{self, Ends};
use crate::executed;

/// How a program is held back.
#[derive(Debug)]
pub(crate) struct Hold {
    /// What is asked of the system about it.
    pub(super) options: Options,
    /// Whether it is stopped at the system calls that are answered.
    pub(super) calmed: bool,
    /// Whether it has process numbers of its own.
    pub(super) apart: Option<Apart>,
    /// Files that it finds open under the numbers that they have here.
    pub(super) open: Vec<RawFd>,
}

impl Hold {
    /// Of it this is asked of the system, and it finds these files open.
    pub(crate) fn of(options: Options, open: &[RawFd]) -> Self {
        Self {
            options,
            calmed: false,
            apart: None,
            open: open.into(),
        }
    }
}

/// Starts the program of `command`, called as `name`, and has another thread `attend` to it, by the number of its process, from
/// before its first instruction. That is told why nobody may attend to it, if that is so: then it runs as it is.
///
/// It is made by the thread that calls this: a program that wants to end with its parent (`PR_SET_PDEATHSIG`) ends with the thread
/// that has made it.
///
/// # Errors
/// Where it does not start.
pub(crate) fn begin<T: Send>(
    (mut command, name): (Command, &OsStr),
    hold: Hold,
    attend: impl FnOnce(i32, Option<io::Error>) -> T + Send,
) -> io::Result<(Child, T)> {
    // It is called once, by whoever knows first what there is to attend to.
    let attend = Mutex::new(Some(attend));
    let told = |process: i32, refused: Option<io::Error>| {
        let attend = attend.lock().ok()?.take()?;
        Some(attend(process, refused))
    };
    let (told, options) = (&told, hold.options);
    std::thread::scope(|scope| {
        let attending = pipes().and_then(|(ends, (hear, permit))| {
            let attending = std::thread::Builder::new().spawn_scoped(scope, move || {
                let process = heard(hear)?;
                match permitted(process, options, permit) {
                    Ok(()) => has_stopped(process).then(|| told(process, None))?,
                    refused => told(process, refused.err()),
                }
            })?;
            system::hold_back(&mut command, hold, ends);
            Ok(attending)
        });
        executed::hand_on(&mut command, name);
        let child = command.spawn();
        // With it go its ends of the pipes, so it is heard of whoever has ended before telling anything.
        drop(command);
        let (attended, refused) = match attending {
            Ok(attending) => (attending.join().ok().flatten(), libc::ESRCH),
            Err(error) => (None, error.raw_os_error().unwrap_or(0)),
        };
        let child = child?;
        let alone = || {
            told(
                child.id() as i32,
                Some(io::Error::from_raw_os_error(refused)),
            )
        };
        let attended = attended.or_else(alone);
        let attended = attended.ok_or_else(|| io::Error::other("nobody could attend to it"))?;
        Ok((child, attended))
    })
}

/// Two pipes: the ends of the process that is held back, and those of who attends to it.
fn pipes() -> io::Result<(Ends, (PipeReader, PipeWriter))> {
    let (hear, tell) = io::pipe()?;
    let (told, permit) = io::pipe()?;
    // The standard library takes one more, without which nothing would start.
    drop(io::pipe()?);
    let other = permit.as_raw_fd();
    Ok((Ends { tell, told, other }, (hear, permit)))
}

/// The number of the process that is held back, unless it ends before it can say it.
fn heard(mut hear: PipeReader) -> Option<i32> {
    let mut number = [0; 4];
    hear.read_exact(&mut number).ok()?;
    Some(i32::from_le_bytes(number))
}

/// Attends to the process that is held back, if that is allowed, and lets it start.
fn permitted(process: i32, options: Options, mut permit: PipeWriter) -> io::Result<()> {
    let seized = ptrace::seize(Pid::from_raw(process), options);
    let answer = match seized {
        Ok(()) => system::ATTENDED,
        Err(_) => system::ALONE,
    };
    permit.write_all(&[answer])?;
    Ok(seized?)
}

/// Waits until a process that is attended to stops, which is still to be heard of then; whether it did, and has not ended.
pub(crate) fn has_stopped(process: i32) -> bool {
    let id = Id::Pid(Pid::from_raw(process));
    let flags = WaitPidFlag::WEXITED
        | WaitPidFlag::WSTOPPED
        | WaitPidFlag::WNOWAIT
        | WaitPidFlag::__WALL
        | WaitPidFlag::__WNOTHREAD;
    // Who has ended is left to whoever has started it.
    !matches!(
        waitid(id, flags),
        Ok(WaitStatus::Exited(..) | WaitStatus::Signaled(..))
    )
}
