//! A program that is held back before it starts, until somebody attends to it.

use std::ffi::OsStr;
use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsRawFd as _, RawFd};
use std::process::{Child, Command};

use nix::sys::ptrace::{self, Options};
use nix::sys::wait::{Id, WaitPidFlag, WaitStatus, waitid};
use nix::unistd::Pid;

use super::apart::Apart;
use super::system::{self, Held};
use crate::numbered;

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

/// Starts the program of `command`, called as `name`, and has this thread `attend` to it, by the number of its process, from
/// before its first instruction. That is told why nobody may attend to it, if that is so: then it runs as it is.
///
/// # Errors
/// Where it does not start.
pub(crate) fn begin<T>(
    (mut command, name): (Command, &OsStr),
    hold: Hold,
    attend: impl FnOnce(i32, Option<io::Error>) -> T,
) -> io::Result<(Child, T)> {
    let (mut hear, tell) = io::pipe()?;
    let (told, mut permit) = io::pipe()?;
    let held = Held {
        tell,
        told,
        other: permit.as_raw_fd(),
        calmed: hold.calmed,
        apart: hold.apart,
        open: hold.open,
    };
    system::hold_back(&mut command, held);
    numbered::hand_on(&mut command, name);
    std::thread::scope(|scope| {
        // It comes back when the program has started, which waits for this thread. With the command goes its end of the pipe.
        let spawning = scope.spawn(move || command.spawn());
        let spawned = || {
            let spawned = spawning.join();
            spawned.unwrap_or_else(|_| Err(io::Error::other("nobody could start it")))
        };
        let mut number = [0; 4];
        if let Err(error) = hear.read_exact(&mut number) {
            return Err(spawned().err().unwrap_or(error));
        }
        let process = i32::from_le_bytes(number);
        let seized = ptrace::seize(Pid::from_raw(process), hold.options);
        let answer = match seized {
            Ok(()) => system::ATTENDED,
            Err(_) => system::ALONE,
        };
        permit.write_all(&[answer])?;
        let refused = seized.err().map(io::Error::from);
        if refused.is_some() || !has_stopped(process) {
            let child = spawned()?;
            return Ok((child, attend(process, refused)));
        }
        let attended = attend(process, None);
        Ok((spawned()?, attended))
    })
}

/// Waits until a process that is attended to stops, which is still to be heard of then; whether it did, and has not ended.
pub(crate) fn has_stopped(process: i32) -> bool {
    let id = Id::Pid(Pid::from_raw(process));
    let flags = WaitPidFlag::WEXITED
        | WaitPidFlag::WSTOPPED
        | WaitPidFlag::WNOWAIT
        | WaitPidFlag::__WALL
        | WaitPidFlag::__WNOTHREAD;
    // Who ends before that is left to the standard library, which waits for it itself.
    !matches!(
        waitid(id, flags),
        Ok(WaitStatus::Exited(..) | WaitStatus::Signaled(..))
    )
}
