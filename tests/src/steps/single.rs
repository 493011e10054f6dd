//! One instruction, executed by the processor from a stated state: the oracle of what instructions read and
//! write, which no table of a decoder has a part in.
//!
//! A process is stopped before its program begins and gets a page for code and one for data. Its registers are
//! set, it makes one step, and its registers and the data are read.

use std::fs::{File, OpenOptions};
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use nix::sys::ptrace::{self, regset};
use nix::sys::signal::Signal;
use nix::sys::wait::{WaitStatus, waitpid};

use super::tracee::{PROT_EXEC, PROT_READ, Tracee};
use crate::corpus::Workload;

/// What an instruction may look at beside the data: the general registers by their numbers in encodings, and the
/// register of flags.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct State {
    /// `rax`, `rcx`, `rdx`, `rbx`, `rsp`, `rbp`, `rsi`, `rdi`, `r8` to `r15`.
    pub registers: [u64; 16],
    /// Of `rflags`, the six status flags at their places.
    pub flags: u64,
}

/// The status flags' places in `rflags`.
const STATUS: u64 = 1 | 1 << 2 | 1 << 4 | 1 << 6 | 1 << 7 | 1 << 11;
/// The rest of `rflags` in a program: interrupts are on, and a bit is always set.
const OTHER_FLAGS: u64 = 1 << 9 | 1 << 1;

/// What executing it led to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It was executed.
    Done {
        /// What it left.
        state: State,
        /// Where the next instruction is.
        next: u64,
        /// The data, at [`Processor::DATA`].
        data: Vec<u8>,
    },
    /// It was not: this signal came.
    Signalled(i32),
}

/// A processor that executes single instructions. For the thread that made it alone.
pub struct Processor {
    tracee: Tracee,
    memory: File,
    data: Vec<u8>,
    /// Registers that are not in [`State`], as they are before each instruction.
    others: nix::libc::user_regs_struct,
    vectors: nix::libc::user_fpregs_struct,
}

const PAGE: u64 = 4096;

impl Processor {
    /// Where the instruction is.
    pub const CODE: u64 = 0x1000_0000;
    /// Where the data is: words that are addresses of nothing, the same before each instruction.
    pub const DATA: Range<u64> = 0x1000_2000..0x1000_3000;

    /// One in a process of its own, which ends with it.
    ///
    /// # Errors
    /// Where this system does not let processes be traced.
    pub fn new() -> Result<Self> {
        const WRITE: u64 = 2;
        let mut tracee = Tracee::start(Path::new("/bin/true"), &Workload::default(), 0)?;
        map(&mut tracee, Self::CODE, PROT_READ | PROT_EXEC)?;
        map(&mut tracee, Self::DATA.start, PROT_READ | WRITE)?;
        let path = format!("/proc/{}/mem", tracee.pid);
        let memory = OpenOptions::new().read(true).write(true).open(path)?;
        let words = (0..PAGE / 8).map(|word| (word + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 18);
        let data: Vec<u8> = words.flat_map(u64::to_le_bytes).collect();
        memory.write_all_at(&data, Self::DATA.start)?;
        Ok(Self {
            others: ptrace::getregs(tracee.pid)?,
            vectors: ptrace::getregset::<regset::NT_PRFPREG>(tracee.pid)?,
            tracee,
            memory,
            data,
        })
    }

    /// Executes the instruction that `code` begins with.
    ///
    /// # Errors
    /// Where the process does not do what it is told.
    pub fn execute(&mut self, code: &[u8], before: &State) -> Result<Outcome> {
        let pid = self.tracee.pid;
        self.memory.write_all_at(code, Self::CODE)?;
        ptrace::setregset::<regset::NT_PRFPREG>(pid, self.vectors)?;
        let mut registers = self.others;
        for (place, value) in general(&mut registers).into_iter().zip(before.registers) {
            *place = value;
        }
        registers.eflags = OTHER_FLAGS | before.flags & STATUS;
        (registers.rip, registers.orig_rax) = (Self::CODE, u64::MAX);
        ptrace::setregs(pid, registers)?;
        ptrace::step(pid, None)?;
        match waitpid(pid, None)? {
            WaitStatus::Stopped(_, Signal::SIGTRAP) => self.done(),
            WaitStatus::Stopped(_, signal) => Ok(Outcome::Signalled(signal as i32)),
            other => anyhow::bail!("unexpected: {other:?}"),
        }
    }

    fn done(&mut self) -> Result<Outcome> {
        let mut registers = ptrace::getregs(self.tracee.pid)?;
        let state = State {
            flags: registers.eflags & STATUS,
            registers: general(&mut registers).map(|place| *place),
        };
        let mut data = vec![0; self.data.len()];
        self.memory.read_exact_at(&mut data, Self::DATA.start)?;
        if data != self.data {
            self.memory.write_all_at(&self.data, Self::DATA.start)?;
        }
        Ok(Outcome::Done {
            state,
            next: registers.rip,
            data,
        })
    }
}

/// A page at `address`.
fn map(tracee: &mut Tracee, address: u64, access: u64) -> Result<()> {
    const MMAP: u64 = 9;
    const PRIVATE_ANONYMOUS_FIXED: u64 = 0x10_0022;
    let nothing = u64::MAX;
    let arguments = [address, PAGE, access, PRIVATE_ANONYMOUS_FIXED, nothing, 0];
    let mapped = tracee.call(MMAP, arguments).context("mmap")?;
    ensure!(mapped == address, "mmap: {:?}", mapped.cast_signed());
    Ok(())
}

/// The general registers by their numbers.
fn general(all: &mut nix::libc::user_regs_struct) -> [&mut u64; 16] {
    [
        &mut all.rax,
        &mut all.rcx,
        &mut all.rdx,
        &mut all.rbx,
        &mut all.rsp,
        &mut all.rbp,
        &mut all.rsi,
        &mut all.rdi,
        &mut all.r8,
        &mut all.r9,
        &mut all.r10,
        &mut all.r11,
        &mut all.r12,
        &mut all.r13,
        &mut all.r14,
        &mut all.r15,
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_addition_adds_and_a_fault_is_told() -> Result<()> {
        let mut processor = Processor::new()?;
        let mut before = State::default();
        (before.registers[0], before.registers[1]) = (u64::MAX, 1);
        // add rax, rcx
        let outcome = processor.execute(&[0x48, 0x01, 0xc8], &before)?;
        let Outcome::Done { state, next, .. } = outcome else {
            anyhow::bail!("{outcome:?}");
        };
        assert_eq!((state.registers[0], state.registers[1]), (0, 1));
        assert_eq!(
            state.flags,
            1 | 1 << 2 | 1 << 4 | 1 << 6,
            "carry, parity, adjust, zero"
        );
        assert_eq!(next, Processor::CODE + 3);
        // mov [rcx], al
        let outcome = processor.execute(&[0x88, 0x01], &before)?;
        assert_eq!(outcome, Outcome::Signalled(Signal::SIGSEGV as i32));
        before.registers[1] = Processor::DATA.start + 7;
        let outcome = processor.execute(&[0x88, 0x01], &before)?;
        assert!(matches!(outcome, Outcome::Done { data, .. } if data[7] == 0xff));
        // mov al, [rcx]: what was written before is not there any more.
        let outcome = processor.execute(&[0x8a, 0x01], &before)?;
        assert!(matches!(outcome, Outcome::Done { data, .. } if data == processor.data));
        Ok(())
    }
}
