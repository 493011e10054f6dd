//! What the system is asked for that no safe library offers: signals of all numbers, being held before the start, and
//! being told what happens to a process that is stopped.

use std::io::{self, PipeReader, PipeWriter, Read as _, Write as _};
use std::os::fd::RawFd;
use std::os::unix::process::CommandExt as _;
use std::process::Command;

use nix::libc;

use super::calm::ASKED;
use super::held::Hold;
use crate::passing::{self, Left};

/// What happened to a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Status {
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
pub(crate) fn wait(thread: Option<i32>) -> io::Result<(i32, Status)> {
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
pub(crate) enum Go {
    /// As if nothing had been.
    On,
    /// For one instruction.
    Step,
    /// Until the system call that it makes is over.
    Over,
    /// Not at all, as its whole process; it is told of what ends that.
    Stay,
    /// Unattended.
    Free,
}

/// Lets a stopped thread go on, with this signal if it is not 0.
pub(crate) fn go(thread: i32, how: Go, signal: i32) -> io::Result<()> {
    let request = match how {
        Go::On => libc::PTRACE_CONT,
        Go::Step => libc::PTRACE_SINGLESTEP,
        Go::Over => libc::PTRACE_SYSCALL,
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

/// The signals that a stopped thread blocks, bit by bit.
pub(crate) fn blocked(thread: i32) -> io::Result<u64> {
    let mut signals = 0_u64;
    let size = size_of_val(&signals);
    // SAFETY: the call writes one set of signals, of as many bytes as is said, which is ours.
    let done = unsafe { libc::ptrace(libc::PTRACE_GETSIGMASK, thread, size, &raw mut signals) };
    match done {
        0 => Ok(signals),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Has a stopped thread block these signals and no others.
pub(crate) fn block(thread: i32, signals: u64) -> io::Result<()> {
    let size = size_of_val(&signals);
    // SAFETY: the call reads one set of signals, of as many bytes as is said, which is ours.
    let done = unsafe { libc::ptrace(libc::PTRACE_SETSIGMASK, thread, size, &raw const signals) };
    match done {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// What a process that was held back is told.
pub(super) const ATTENDED: u8 = 1;
pub(super) const ALONE: u8 = 0;

/// By what a process that is held back and whoever attends to it hear of one another.
pub(super) struct Ends {
    /// Where the process says its number.
    pub(super) tell: PipeWriter,
    /// From where it is told to go on.
    pub(super) told: PipeReader,
    /// The other end of that.
    pub(super) other: RawFd,
}

/// Has the process that `command` starts wait before it becomes the program.
pub(super) fn hold_back(command: &mut Command, hold: Hold, ends: Ends) {
    let filter = filter();
    // SAFETY: between fork and exec the closure only makes system calls, which are async-signal-safe.
    unsafe {
        command.pre_exec(move || {
            // What is sent to it is the program's, and nothing that would be passed on once more.
            (1..=64).for_each(leave_to_the_kernel);
            let number = match &hold.apart {
                Some(apart) => apart.enter()?,
                None => libc::getpid(),
            };
            (&ends.tell).write_all(&number.to_le_bytes())?;
            // Else nothing would end the wait if who attends were gone.
            libc::close(ends.other);
            let mut answer = [ALONE];
            let heard = (&ends.told).read(&mut answer)?;
            let is_attended = heard == 1 && answer == [ATTENDED];
            for file in hold.open.iter().filter(|_| is_attended) {
                libc::fcntl(*file, libc::F_SETFD, 0);
            }
            match hold.calmed && is_attended {
                true => install(&filter),
                false => Ok(()),
            }
        });
    }
}

/// Takes this process's handler of a signal away, if it has one.
fn leave_to_the_kernel(signal: i32) {
    let handler = passing::action(signal).sa_sigaction;
    if handler != libc::SIG_DFL && handler != libc::SIG_IGN {
        passing::reset(signal, Left::Default);
    }
}

/// A program for the kernel that stops a thread at the calls that are answered, and nowhere else.
fn filter() -> Vec<libc::sock_filter> {
    const LOAD: u16 = (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16;
    const EQUAL: u16 = (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16;
    const RETURN: u16 = (libc::BPF_RET | libc::BPF_K) as u16;
    /// Of `struct seccomp_data`.
    const NUMBER_AT: u32 = 0;
    const ARCHITECTURE_AT: u32 = 4;
    const X86_64: u32 = 0xc000_003e;
    let one = |code, jt, jf, k| libc::sock_filter { code, jt, jf, k };
    let count = ASKED.len() as u8;
    let mut filter = vec![
        one(LOAD, 0, 0, ARCHITECTURE_AT),
        one(EQUAL, 0, count + 1, X86_64),
        one(LOAD, 0, 0, NUMBER_AT),
    ];
    // Each leads to the last but for those behind it and the one that lets all others pass.
    let asked = (1..).zip(ASKED);
    filter.extend(asked.map(|(at, call)| one(EQUAL, count - at + 1, 0, call as u32)));
    filter.push(one(RETURN, 0, 0, libc::SECCOMP_RET_ALLOW));
    filter.push(one(RETURN, 0, 0, libc::SECCOMP_RET_TRACE));
    filter
}

/// Puts this thread, and all that come of it, behind a filter.
fn install(filter: &[libc::sock_filter]) -> io::Result<()> {
    let program = libc::sock_fprog {
        len: filter.len() as u16,
        filter: filter.as_ptr().cast_mut(),
    };
    // SAFETY: the kernel reads the filter, which is as long as is said.
    let done = unsafe {
        match libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) {
            0 => libc::prctl(
                libc::PR_SET_SECCOMP,
                libc::SECCOMP_MODE_FILTER,
                &raw const program,
            ),
            refused => refused,
        }
    };
    match done {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
