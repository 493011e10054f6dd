//! A process that is stopped before its program's first instruction, and makes system calls for us.
//!
//! They are made by the kernel's own library, which is in its memory (vdso(7)). Meanwhile the process blocks all signals, so those
//! that come reach the program when it runs; it is never stopped by one of ours, which would change what the program does with it.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;

use memchr::memmem;
use nix::libc::{self, user_regs_struct};
use nix::sys::ptrace;
use nix::unistd::Pid;
use tomo_wire::PAGE;

use crate::attended::held::has_stopped;
use crate::attended::system::{self, Go, Status};
use crate::auxiliary;

/// The instruction `syscall`.
const CALL: [u8; 2] = [0x0f, 0x05];
/// How a stop at a system call is told (`PTRACE_O_TRACESYSGOOD`).
const AT_CALL: i32 = libc::SIGTRAP | 0x80;
/// Pages of the kernel's library at most.
const PAGES: u64 = 8;

/// Such a process. It is let go when this is dropped.
#[derive(Debug)]
pub(super) struct Stopped {
    process: i32,
    /// What it begins with.
    registers: user_regs_struct,
    blocked: u64,
    /// Where a `syscall` is.
    call: u64,
}

/// Whether there is what processes can make system calls by.
pub(super) fn is_possible() -> bool {
    find_call(std::process::id() as i32).is_ok()
}

/// Whether what was executed in the process begins there: with the program, or with the loader that it names.
fn begins_at(process: i32, place: u64) -> io::Result<bool> {
    /// No loader is larger.
    const LOADER: u64 = 16 << 20;
    Ok(match auxiliary::value(process, auxiliary::BASE)? {
        0 => place == auxiliary::value(process, auxiliary::ENTRY)?,
        base => (base..base.saturating_add(LOADER)).contains(&place),
    })
}

impl Stopped {
    /// A process that is attended to and becomes the program now.
    ///
    /// # Errors
    /// Where it ends before that, or cannot be asked. It is let go then.
    pub(super) fn at_start(process: i32) -> io::Result<Self> {
        let stopped = Self::prepare(process);
        if stopped.is_err() {
            let _ = system::go(process, Go::Free, 0);
        }
        stopped
    }

    fn prepare(process: i32) -> io::Result<Self> {
        loop {
            match wait(process)? {
                Status::Event(libc::PTRACE_EVENT_EXEC, _) => break,
                Status::Event(libc::PTRACE_EVENT_STOP, signal) if signal != libc::SIGTRAP => {
                    system::go(process, Go::Stay, 0)?;
                }
                Status::Signal(signal) => system::go(process, Go::On, signal)?,
                _ => system::go(process, Go::On, 0)?,
            }
        }
        let blocked = system::blocked(process)?;
        let mut stopped = Self {
            process,
            registers: ptrace::getregs(Pid::from_raw(process))?,
            blocked,
            call: find_call(process)?,
        };
        if !begins_at(process, stopped.registers.rip)? {
            return Err(io::Error::other("/proc tells of another process"));
        }
        system::block(process, u64::MAX)?;
        // The end of the system call by which it has become the program.
        stopped.go_on()?;
        stopped.registers = ptrace::getregs(Pid::from_raw(process))?;
        Ok(stopped)
    }

    /// Has the process make the system call of this number; gives what that does.
    ///
    /// # Errors
    /// As the call says, or where the process was killed.
    pub(super) fn call(&self, number: libc::c_long, arguments: [u64; 6]) -> io::Result<u64> {
        let [rdi, rsi, rdx, r10, r8, r9] = arguments;
        let registers = user_regs_struct {
            rip: self.call,
            rax: number as u64,
            rdi,
            rsi,
            rdx,
            r10,
            r8,
            r9,
            ..self.registers
        };
        ptrace::setregs(Pid::from_raw(self.process), registers)?;
        self.go_on()?;
        self.go_on()?;
        let given = ptrace::getregs(Pid::from_raw(self.process))?.rax;
        // The last page of numbers is those of errors.
        match given as i64 {
            error @ -4095..=-1 => Err(io::Error::from_raw_os_error(-error as i32)),
            _ => Ok(given),
        }
    }

    /// To the next beginning or end of a system call.
    fn go_on(&self) -> io::Result<()> {
        system::go(self.process, Go::Over, 0)?;
        loop {
            match wait(self.process)? {
                Status::Signal(AT_CALL) => return Ok(()),
                // Nobody can block it: the process stands still until it is sent on.
                Status::Signal(libc::SIGSTOP) => {
                    system::go(self.process, Go::Over, libc::SIGSTOP)?;
                }
                Status::Event(libc::PTRACE_EVENT_STOP, signal) if signal != libc::SIGTRAP => {
                    system::go(self.process, Go::Stay, 0)?;
                }
                Status::Event(..) => system::go(self.process, Go::Over, 0)?,
                // A fault: there is no such instruction.
                _ => return Err(io::Error::from_raw_os_error(libc::EFAULT)),
            }
        }
    }
}

impl Drop for Stopped {
    fn drop(&mut self) {
        let process = Pid::from_raw(self.process);
        // Who was killed meanwhile needs none of that.
        let _ = ptrace::setregs(process, self.registers);
        let _ = system::block(self.process, self.blocked);
        let _ = system::go(self.process, Go::Free, 0);
    }
}

/// Waits until the process stops. Its end is left to be heard of by whoever has started it.
fn wait(process: i32) -> io::Result<Status> {
    match has_stopped(process) {
        true => Ok(system::wait(Some(process))?.1),
        false => Err(io::Error::from_raw_os_error(libc::ESRCH)),
    }
}

/// Where the kernel's library has a `syscall` in the memory of a process.
fn find_call(process: i32) -> io::Result<u64> {
    let start = auxiliary::value(process, auxiliary::LIBRARY)?;
    let memory = File::open(format!("/proc/{process}/mem"))?;
    let mut page = [0; PAGE as usize];
    for at in (start..).step_by(page.len()).take(PAGES as usize) {
        memory.read_exact_at(&mut page, at)?;
        if let Some(found) = memmem::find(&page, &CALL) {
            return Ok(at + found as u64);
        }
    }
    Err(io::Error::other(
        "the kernel's library makes no system calls",
    ))
}
