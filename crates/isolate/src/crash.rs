//! Where runs crash: the block of the program in which a fatal signal came, or from which it had called what
//! raised it.
//!
//! The case is run once more under `ptrace`, as it is. Where the signal came outside of the executable, as that of
//! `abort` does, the first word on the stack counts that is the address behind a call of the executable. That
//! is a good guess and no proof; only where the search begins rests on it.

use std::ffi::OsString;
use std::io;
use std::os::fd::{AsFd as _, BorrowedFd};
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};
use std::time::Duration;

use nix::sys::ptrace;
use nix::sys::signal::{Signal, kill, killpg};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;
use tomo_graph::NodeId;
use tomo_program::{Address, Graphs};

use crate::cases::Case;
use crate::run::ends_within;

/// Signals that programs bring upon themselves.
const FATAL: [Signal; 6] = [
    Signal::SIGSEGV,
    Signal::SIGABRT,
    Signal::SIGBUS,
    Signal::SIGFPE,
    Signal::SIGILL,
    Signal::SIGTRAP,
];
/// Words of a stack that are looked at.
const WORDS: u64 = 8192;

/// A place of a run: its instruction, and what was on its stack.
struct Stopped {
    instruction: u64,
    words: Vec<u64>,
    bias: u64,
}

/// The function (by number) and block in which a run of `case` crashes, if it does.
pub(crate) fn place(
    program: &[OsString],
    case: &Case,
    entry: u64,
    graphs: &Graphs<'_>,
) -> io::Result<Option<(u32, NodeId)>> {
    let Some(stopped) = observe(program, case, entry)? else {
        return Ok(None);
    };
    let stated = |loaded: u64| Address(loaded.wrapping_sub(stopped.bias));
    let found = |address: Address| {
        let block = graphs.block_at(address)?;
        let function = block.function()?;
        Some((function.id().index() as u32, function.node(block.id())?))
    };
    let behind_call = |word: u64| {
        let address = stated(word);
        let before = graphs.block_at(Address(address.0.wrapping_sub(1)))?;
        let function = before.function()?;
        let calls = function.calls().any(|call| call.block() == before.id());
        (calls && before.range().end() == address).then_some(Address(address.0 - 1))
    };
    let here = found(stated(stopped.instruction));
    Ok(here.or_else(|| {
        let mut calls = stopped.words.iter().filter_map(|word| behind_call(*word));
        found(calls.next()?)
    }))
}

/// Runs the case, in a group of its own, up to the signal that ends it, or until its time is over.
fn observe(program: &[OsString], case: &Case, entry: u64) -> io::Result<Option<Stopped>> {
    let limit = case.timeout;
    let script = format!(r#"ulimit -t {limit}; kill -STOP $$; exec "$0" "$@""#);
    let mut command = Command::new("/bin/sh");
    command
        .args(["-c", &script])
        .args(program)
        .args(&case.arguments);
    command
        .stdin(case.opened()?)
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let mut child = command.process_group(0).spawn()?;
    let group = Pid::from_raw(child.id() as i32);
    let id = rustix::process::Pid::from_child(&child);
    let mut end = || {
        let _ = killpg(group, Signal::SIGKILL);
        let _ = child.kill();
    };
    let seen = match rustix::process::pidfd_open(id, rustix::process::PidfdFlags::empty()) {
        Ok(process) => std::thread::scope(|scope| {
            scope.spawn(|| end_late(process.as_fd(), group, Duration::from_secs(limit)));
            let seen = follow(group, entry);
            // Also where it could not be followed: who waits for its end is to see it.
            end();
            seen
        }),
        Err(error) => {
            end();
            Err(error.into())
        }
    };
    let _ = child.wait();
    seen
}

/// Ends the group of a process that does not end in time: it may crash no more, and wait.
fn end_late(process: BorrowedFd<'_>, group: Pid, limit: Duration) {
    if !matches!(ends_within(process, limit), Ok(true)) {
        let _ = killpg(group, Signal::SIGKILL);
    }
}

fn follow(pid: Pid, entry: u64) -> io::Result<Option<Stopped>> {
    waitpid(pid, Some(WaitPidFlag::WUNTRACED))?;
    let options = ptrace::Options::PTRACE_O_TRACEEXEC | ptrace::Options::PTRACE_O_EXITKILL;
    ptrace::seize(pid, options)?;
    kill(pid, Signal::SIGCONT)?;
    let mut last = None;
    let mut runs = false;
    loop {
        match waitpid(pid, None)? {
            WaitStatus::PtraceEvent(_, _, event) => {
                runs |= event == ptrace::Event::PTRACE_EVENT_EXEC as i32;
                ptrace::cont(pid, None)?;
            }
            WaitStatus::Stopped(_, signal) => {
                if runs && FATAL.contains(&signal) {
                    last = Some(look(pid, entry)?);
                }
                ptrace::cont(pid, signal)?;
            }
            WaitStatus::Signaled(_, signal, _) if FATAL.contains(&signal) => return Ok(last),
            WaitStatus::Signaled(..) | WaitStatus::Exited(..) => return Ok(None),
            _ => {}
        }
    }
}

fn look(pid: Pid, entry: u64) -> io::Result<Stopped> {
    let registers = ptrace::getregs(pid)?;
    let words = (0..WORDS).map_while(|word| {
        let address = registers.rsp.wrapping_add(8 * word) as *mut std::ffi::c_void;
        ptrace::read(pid, address).ok().map(i64::cast_unsigned)
    });
    Ok(Stopped {
        instruction: registers.rip,
        words: words.collect(),
        bias: loaded_entry(pid)?.wrapping_sub(entry),
    })
}

/// The loaded address of the entry point, from the vector that the kernel hands to the loader.
fn loaded_entry(pid: Pid) -> io::Result<u64> {
    const AT_ENTRY: u64 = 9;
    let vector = std::fs::read(format!("/proc/{pid}/auxv"))?;
    let words = vector.as_chunks::<8>().0.iter();
    let words: Vec<u64> = words.map(|word| u64::from_le_bytes(*word)).collect();
    let pairs = words.as_chunks::<2>().0.iter();
    let mut entries = pairs.filter(|[tag, _]| *tag == AT_ENTRY);
    let entry = entries.next().map(|[_, value]| *value);
    entry.ok_or_else(|| io::Error::other("the kernel names no entry point"))
}
