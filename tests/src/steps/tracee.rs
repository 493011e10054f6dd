//! A process that is stepped: started, seized, stepped, and never left behind.
//!
//! It is started by a shell that stops itself, is seized, and only then becomes the program: so
//! neither side needs code between `fork` and `exec`. Addresses are the same in every run, and
//! functions are bound before the entry point is reached, where a breakpoint ends the fast part.

use std::cell::Cell;
use std::ffi::c_void;
use std::fs::File;
use std::io::{Seek, Write};
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result, bail, ensure};
use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::sys::personality::{self, Persona};
use nix::sys::ptrace;
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;
use object::elf::PF_X;
use object::{Object, ObjectSegment, SegmentFlags};

use super::End;
use super::stack::Pointers;
use crate::corpus::Workload;

/// What a step led to.
pub(super) enum Event {
    /// The program stands at another instruction.
    Stepped(Pointers),
    /// It stands where it was, and this signal waits to be delivered.
    Signalled(i32),
    /// It is no more.
    Ended(End),
}

/// A stopped process, which ends when this is dropped.
pub(super) struct Tracee {
    child: Child,
    pub(super) pid: Pid,
    /// What was added to stated addresses.
    bias: u64,
    /// Stated addresses of the executable's code.
    code: Vec<Range<u64>>,
    /// Where a library has a system call instruction, once it is needed.
    gate: Option<u64>,
    /// Whether the executable's code is not executable at present.
    closed: bool,
    /// `rax` when it was last asked where it stands.
    result: Cell<u64>,
    _pinned: Pinned,
}

impl Drop for Tracee {
    fn drop(&mut self) {
        // Both fail only where it has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Keeps glibc from clearing and copying by string instructions, which take a step for each byte.
const TUNABLES: &str = "glibc.cpu.x86_rep_movsb_threshold=0x7fffffffffff:\
    glibc.cpu.x86_rep_stosb_threshold=0x7fffffffffff";

impl Tracee {
    /// Starts `program` and lets it run up to its entry point.
    pub(super) fn start(program: &Path, workload: &Workload, cpu: usize) -> Result<Self> {
        let data = std::fs::read(program)?;
        let file = object::File::parse(&*data)?;
        let code = file
            .segments()
            .filter(is_code)
            .map(|s| s.address()..s.address() + s.size());
        let code = code.collect();
        let pinned = Pinned::to(cpu)?;
        let child = spawn(program, workload)?;
        let pid = Pid::from_raw(i32::try_from(child.id())?);
        let mut tracee = Self {
            child,
            pid,
            bias: 0,
            code,
            gate: None,
            closed: false,
            result: Cell::new(0),
            _pinned: pinned,
        };
        tracee.seize()?;
        let entry = tracee.entry()?;
        tracee.bias = entry.wrapping_sub(file.entry());
        tracee.run_to(entry)?;
        Ok(tracee)
    }

    /// Takes hold of the shell that has stopped itself, and waits until it is the program.
    fn seize(&self) -> Result<()> {
        let stopped = waitpid(self.pid, Some(WaitPidFlag::WUNTRACED))?;
        ensure!(
            matches!(stopped, WaitStatus::Stopped(..)),
            "the shell did not stop: {stopped:?}"
        );
        let options = ptrace::Options::PTRACE_O_TRACEEXEC | ptrace::Options::PTRACE_O_EXITKILL;
        ptrace::seize(self.pid, options).context("this system does not allow ptrace")?;
        kill(self.pid, Signal::SIGCONT)?;
        loop {
            match waitpid(self.pid, None)? {
                WaitStatus::PtraceEvent(_, _, event) if is_exec(event) => return Ok(()),
                WaitStatus::PtraceEvent(..) => ptrace::cont(self.pid, None)?,
                WaitStatus::Stopped(_, signal) => ptrace::cont(self.pid, signal)?,
                other => bail!("it ended before it began: {other:?}"),
            }
        }
    }

    /// The loaded address of the entry point, from the vector that the kernel hands to the loader.
    fn entry(&self) -> Result<u64> {
        const AT_ENTRY: u64 = 9;
        let vector = std::fs::read(format!("/proc/{}/auxv", self.pid))?;
        let mut words = vector
            .as_chunks::<8>()
            .0
            .iter()
            .map(|w| u64::from_le_bytes(*w));
        while let (Some(tag), Some(value)) = (words.next(), words.next()) {
            if tag == AT_ENTRY {
                return Ok(value);
            }
        }
        bail!("the kernel names no entry point")
    }

    /// Runs it at full speed up to `address`, which it must reach.
    fn run_to(&self, address: u64) -> Result<()> {
        const TRAP: i64 = 0xcc;
        let place = address as *mut c_void;
        let word = ptrace::read(self.pid, place)?;
        ptrace::write(self.pid, place, (word & !0xff) | TRAP)?;
        ptrace::cont(self.pid, None)?;
        let stopped = waitpid(self.pid, None)?;
        ensure!(
            matches!(stopped, WaitStatus::Stopped(_, Signal::SIGTRAP)),
            "it did not reach its entry point: {stopped:?}"
        );
        ptrace::write(self.pid, place, word)?;
        let mut registers = ptrace::getregs(self.pid)?;
        ensure!(
            registers.rip == address + 1,
            "it stopped at {:#x}",
            registers.rip
        );
        registers.rip = address;
        Ok(ptrace::setregs(self.pid, registers)?)
    }

    /// Executes one instruction, or enters the handler of `signal`.
    pub(super) fn step(&mut self, signal: Option<i32>) -> Result<Event> {
        ptrace::step(self.pid, signal.map(Signal::try_from).transpose()?)?;
        let event = self.next_event()?;
        match event {
            Event::Stepped(next) if self.closed && self.stated(next.instruction).is_some() => {
                self.close(false)?;
            }
            _ => {}
        }
        Ok(event)
    }

    /// Runs from where it stands outside to where it next enters the executable's code.
    pub(super) fn leap(&mut self, signal: Option<i32>) -> Result<Event> {
        if !self.closed {
            self.close(true)?;
        }
        ptrace::cont(self.pid, signal.map(Signal::try_from).transpose()?)?;
        let event = self.next_event()?;
        if matches!(event, Event::Signalled(number) if number == Signal::SIGSEGV as i32) {
            let next = self.pointers()?;
            if self.stated(next.instruction).is_some() {
                self.close(false)?;
                return Ok(Event::Stepped(next));
            }
        }
        Ok(event)
    }

    /// Waits for what happens next.
    fn next_event(&mut self) -> Result<Event> {
        Ok(match waitpid(self.pid, None)? {
            WaitStatus::Stopped(_, Signal::SIGTRAP) => Event::Stepped(self.pointers()?),
            WaitStatus::Stopped(_, signal) => Event::Signalled(signal as i32),
            WaitStatus::Exited(_, code) => Event::Ended(End::Exited(code)),
            WaitStatus::Signaled(_, signal, _) => Event::Ended(End::Killed(signal as i32)),
            WaitStatus::PtraceEvent(_, _, event) if is_exec(event) => Event::Ended(End::Replaced),
            other => bail!("unexpected: {other:?}"),
        })
    }

    /// Makes the executable's code not executable, or executable again, by system calls that the
    /// program is made to do where it stands.
    fn close(&mut self, closed: bool) -> Result<()> {
        const PAGE: u64 = 4096;
        let access = if closed {
            PROT_READ
        } else {
            PROT_READ | PROT_EXEC
        };
        for range in self.code.clone() {
            let start = range.start.wrapping_add(self.bias) & !(PAGE - 1);
            let end = range.end.wrapping_add(self.bias).next_multiple_of(PAGE);
            let result = self.call(MPROTECT, [start, end - start, access, 0, 0, 0])?;
            ensure!(result == 0, "mprotect: {:?}", result.cast_signed());
        }
        self.closed = closed;
        Ok(())
    }

    /// What a system call gives that it is made to do where it stands.
    pub(super) fn call(&mut self, number: u64, arguments: [u64; 6]) -> Result<u64> {
        let gate = self.gate()?;
        let before = ptrace::getregs(self.pid)?;
        let mut call = before;
        (call.rip, call.rax, call.orig_rax) = (gate, number, u64::MAX);
        [call.rdi, call.rsi, call.rdx, call.r10, call.r8, call.r9] = arguments;
        ptrace::setregs(self.pid, call)?;
        ptrace::step(self.pid, None)?;
        let stopped = waitpid(self.pid, None)?;
        let after = ptrace::getregs(self.pid)?;
        ensure!(after.rip == gate + 2, "no system call: {stopped:?}");
        ptrace::setregs(self.pid, before)?;
        Ok(after.rax)
    }

    /// Where outside the executable there is a system call instruction.
    fn gate(&mut self) -> Result<u64> {
        const SYSCALL: [u8; 2] = [0x0f, 0x05];
        if let Some(gate) = self.gate {
            return Ok(gate);
        }
        let maps = std::fs::read_to_string(format!("/proc/{}/maps", self.pid))?;
        let memory = File::open(format!("/proc/{}/mem", self.pid))?;
        for range in maps.lines().filter_map(executable) {
            let mut bytes = vec![0; usize::try_from(range.end - range.start)?];
            let own = self.stated(range.start).is_some();
            if own || memory.read_exact_at(&mut bytes, range.start).is_err() {
                continue;
            }
            if let Some(at) = bytes.windows(2).position(|w| w == SYSCALL) {
                self.gate = Some(range.start + at as u64);
            }
        }
        self.gate.context("there is no system call instruction")
    }

    /// Where it stands.
    pub(super) fn pointers(&self) -> Result<Pointers> {
        let registers = ptrace::getregs(self.pid)?;
        self.result.set(registers.rax);
        Ok(Pointers {
            instruction: registers.rip,
            stack: registers.rsp,
        })
    }

    /// What was in `rax` when it was last asked where it stands.
    pub(super) fn result(&self) -> u64 {
        self.result.get()
    }

    /// A word of its memory.
    pub(super) fn word(&self, address: u64) -> Option<u64> {
        ptrace::read(self.pid, address as *mut c_void)
            .ok()
            .map(i64::cast_unsigned)
    }

    /// Whether it has a handler for `signal`, by the kernel's own word.
    pub(super) fn catches(&self, signal: i32) -> Result<bool> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.pid))?;
        let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
        let caught = u64::from_str_radix(caught.context("no SigCgt")?.trim(), 16)?;
        Ok(caught >> (signal - 1) & 1 == 1)
    }

    /// The address that the executable states for what is loaded at `loaded`, if it is its code.
    pub(super) fn stated(&self, loaded: u64) -> Option<u64> {
        let stated = loaded.wrapping_sub(self.bias);
        self.code
            .iter()
            .any(|r| r.contains(&stated))
            .then_some(stated)
    }
}

const MPROTECT: u64 = 10;
pub(super) const PROT_READ: u64 = 1;
pub(super) const PROT_EXEC: u64 = 4;

/// The range of a line of `/proc/PID/maps`, if it is executable.
fn executable(line: &str) -> Option<Range<u64>> {
    let mut words = line.split_whitespace();
    let (start, end) = words.next()?.split_once('-')?;
    words.next().filter(|access| access.contains('x'))?;
    Some(u64::from_str_radix(start, 16).ok()?..u64::from_str_radix(end, 16).ok()?)
}

fn is_exec(event: i32) -> bool {
    event == ptrace::Event::PTRACE_EVENT_EXEC as i32
}

fn is_code<'data>(segment: &impl ObjectSegment<'data>) -> bool {
    matches!(segment.flags(), SegmentFlags::Elf { p_flags, .. } if p_flags.0 & PF_X.0 != 0)
}

/// The shell that will become `program`: with the same addresses and the same few variables in
/// every run.
fn spawn(program: &Path, workload: &Workload) -> Result<Child> {
    let mut input = tempfile::tempfile()?;
    input.write_all(workload.stdin.as_deref().unwrap_or_default())?;
    input.rewind()?;
    let mut command = Command::new("/bin/sh");
    command
        .args(["-c", r#"ulimit -c 0 -t 600; kill -STOP $$; exec "$0" "$@""#])
        .arg(program)
        .args(&workload.args);
    command
        .env_clear()
        .env("PATH", "/usr/bin:/bin")
        .env("LC_ALL", "C")
        .env("TZ", "UTC");
    command
        .env("LD_BIND_NOW", "1")
        .env("GLIBC_TUNABLES", TUNABLES);
    command
        .stdin(input)
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    if let Some(dir) = &workload.cwd {
        command.current_dir(dir);
    }
    // Inherited by the child; this thread takes it back at once.
    let before = personality::set(personality::get()? | Persona::ADDR_NO_RANDOMIZE)?;
    let child = command.spawn();
    personality::set(before)?;
    Ok(child?)
}

/// This thread, kept on one processor until dropped: a process steps much faster where its tracer
/// is.
struct Pinned {
    before: CpuSet,
}

impl Pinned {
    /// On the `index`-th of the processors that it may use.
    fn to(index: usize) -> Result<Self> {
        let this = Pid::from_raw(0);
        let before = sched_getaffinity(this)?;
        let allowed = (0..CpuSet::count()).filter(|&c| before.is_set(c).unwrap_or(false));
        let allowed: Vec<_> = allowed.collect();
        let mut one = CpuSet::new();
        one.set(allowed[index % allowed.len()])?;
        sched_setaffinity(this, &one)?;
        Ok(Self { before })
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        // Nothing worse than a slower test follows where it fails.
        let _ = sched_setaffinity(Pid::from_raw(0), &self.before);
    }
}
