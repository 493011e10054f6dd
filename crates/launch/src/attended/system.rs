//! What the system is asked for that no safe library offers: signals of all numbers, being held before the start, and
//! being told what happens to a process that is stopped.

use std::io::{self, PipeReader, PipeWriter, Read as _, Write as _};
use std::os::fd::RawFd;
use std::os::unix::process::CommandExt as _;
use std::process::Command;

use nix::libc;

/// What happened to a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Status {
    /// It ended by itself, with this code.
    Exited(i32),
    /// It was ended by this signal.
    Killed(i32),
    /// It is stopped, and this signal waits to be delivered.
    Signal(i32),
    /// It is stopped for this event; with the signal by which it was stopped, if that is what it is.
    Event(i32, i32),
}

/// Waits for what happens to this thread, or to any that the caller attends to.
pub(super) fn wait(thread: Option<i32>) -> io::Result<(i32, Status)> {
    let mut status = 0;
    let flags = match thread {
        Some(_) => libc::__WALL,
        None => libc::__WALL | libc::__WNOTHREAD,
    };
    loop {
        // SAFETY: the call writes one number, which is ours.
        let found = unsafe { libc::waitpid(thread.unwrap_or(-1), &raw mut status, flags) };
        if found > 0 {
            return Ok((found, read(status)));
        }
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
}

fn read(status: i32) -> Status {
    let event = status >> 16;
    match status {
        _ if libc::WIFEXITED(status) => Status::Exited(libc::WEXITSTATUS(status)),
        _ if libc::WIFSIGNALED(status) => Status::Killed(libc::WTERMSIG(status)),
        _ if event != 0 => Status::Event(event, libc::WSTOPSIG(status)),
        _ => Status::Signal(libc::WSTOPSIG(status)),
    }
}

/// How a stopped thread goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Go {
    /// As if nothing had been.
    On,
    /// For one instruction.
    Step,
    /// Not at all, as its whole process; it is told of what ends that.
    Stay,
    /// Unattended.
    Free,
}

/// Lets a stopped thread go on, with this signal if it is not 0.
pub(super) fn go(thread: i32, how: Go, signal: i32) -> io::Result<()> {
    let request = match how {
        Go::On => libc::PTRACE_CONT,
        Go::Step => libc::PTRACE_SINGLESTEP,
        Go::Stay => libc::PTRACE_LISTEN,
        Go::Free => libc::PTRACE_DETACH,
    };
    let nowhere = std::ptr::null_mut::<libc::c_void>();
    // SAFETY: these requests touch no memory of this process; the last argument is a number.
    let done = unsafe { libc::ptrace(request, thread, nowhere, signal as usize) };
    match done {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Has the process that `command` starts say its number to `tell`, and wait for a byte from `told`, whose other end is
/// `other`, before it becomes the program.
pub(super) fn hold_back(command: &mut Command, tell: PipeWriter, told: PipeReader, other: RawFd) {
    // SAFETY: between fork and exec the closure only makes system calls, which are async-signal-safe.
    unsafe {
        command.pre_exec(move || {
            (&tell).write_all(&libc::getpid().to_le_bytes())?;
            // Else nothing would end the wait if who attends were gone.
            libc::close(other);
            (&told).read(&mut [0]).map(|_| ())
        });
    }
}
