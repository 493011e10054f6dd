//! Time and random numbers that are alike in each run.
//!
//! A filter stops threads at the few system calls that ask for them, and they are answered from here; every other call goes
//! its way. Where the kernel starts a program, its vDSO is hidden, which would answer without a call, and the random bytes
//! beside the arguments are written over. What is opened as `/dev/urandom` or `/dev/random` is a file of
//! random bytes.
//!
//! Each thread has a *lane*, which depends on who made it and how many it had made before, and on nothing else: so it
//! does not matter in which order threads ask. In a lane time begins where that of its maker was, goes on by [`STEP`] with each question,
//! and by as much as is slept. Clocks that do not tell the time of day begin at [`BEGINNING`], which is past on every
//! system that runs: who waits until a moment never waits for longer than he would.

use std::ffi::OsStr;
use std::fs;
use std::io::{self, IoSlice, IoSliceMut};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use nix::libc;
use nix::sys::uio::{RemoteIoVec, process_vm_readv, process_vm_writev};
use nix::unistd::Pid;

use super::apart::{self, Apart};

/// By how much time goes on with each question.
const STEP: u64 = 100_000;
/// Where clocks begin that do not tell the time of day, in nanoseconds.
const BEGINNING: u64 = 1_000_000_000;
const SECOND: u64 = 1_000_000_000;
/// How many random bytes there are to be read from a device that was opened.
const DEVICE: usize = 1 << 16;
/// Random bytes that one call may have.
const MOST: u64 = 1 << 20;

/// The system calls that are answered.
pub(super) const ASKED: [libc::c_long; 9] = [
    libc::SYS_clock_gettime,
    libc::SYS_gettimeofday,
    libc::SYS_time,
    libc::SYS_getrandom,
    libc::SYS_open,
    libc::SYS_openat,
    libc::SYS_openat2,
    libc::SYS_nanosleep,
    libc::SYS_clock_nanosleep,
];

/// How a program is calmed.
#[derive(Clone, Debug)]
pub struct Calm {
    /// The moment at which its time begins, in nanoseconds since 1970.
    moment: u64,
    /// A folder for files that it opens in place of devices.
    folder: PathBuf,
    /// How it gets process numbers of its own.
    pub(super) apart: Option<Apart>,
}

impl Calm {
    /// One whose time begins at this moment, in seconds since 1970; what is needed is made in `folder`, which is new. An
    /// agent in the program opens files of this process.
    ///
    /// # Errors
    /// Where the folder cannot be made.
    pub fn beginning(moment: u64, folder: &Path, has_agent: bool) -> io::Result<Self> {
        let passage = folder.join("passage");
        fs::create_dir_all(&passage)?;
        Ok(Self {
            moment: moment.saturating_mul(SECOND),
            folder: folder.into(),
            apart: Apart::possible(&passage, !has_agent),
        })
    }

    /// The folder in which the program finds the open files of this process, if it has process numbers of its own.
    #[must_use]
    pub fn window(&self) -> Option<PathBuf> {
        let apart = self.apart.as_ref();
        apart.map(|_| OsStr::from_bytes(apart::WINDOW.to_bytes()).into())
    }

    /// What cannot be calmed that should be.
    #[must_use]
    pub fn restless(&self) -> Option<&'static str> {
        let is_possible = self.apart.is_some();
        (!is_possible).then_some(
            "process ids, for the system does not let the program have numbers of its own (with --collect breakpoint it might)",
        )
    }
}

/// What a thread is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Lane {
    /// How much time has passed.
    passed: u64,
    random: u64,
    /// How many threads and processes it has made.
    made: u64,
}

/// A number that looks drawn: Steele, Lea, Flood, *Fast Splittable Pseudorandom Number Generators*, OOPSLA 2014.
fn mixed(number: u64) -> u64 {
    let number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}

impl Lane {
    /// That of a program's first thread.
    pub(super) fn first() -> Self {
        Self {
            passed: 0,
            random: 0,
            made: 0,
        }
    }

    /// That of a thread or process that this one makes.
    pub(super) fn next(&mut self) -> Self {
        self.made += 1;
        Self {
            passed: self.passed,
            random: mixed(self.random ^ mixed(self.made)),
            made: 0,
        }
    }

    fn bytes(&mut self, count: usize) -> Vec<u8> {
        let words = (0..count.div_ceil(8)).flat_map(|_| {
            self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
            mixed(self.random).to_le_bytes()
        });
        let mut bytes: Vec<u8> = words.collect();
        bytes.truncate(count);
        bytes
    }

    fn time(&mut self, beginning: u64) -> u64 {
        self.passed = self.passed.saturating_add(STEP);
        beginning.saturating_add(self.passed)
    }
}

/// What is to become of a call.
#[derive(Debug)]
pub(super) enum Answer {
    /// It is not made, and this comes of it.
    Given(u64),
    /// It is made as it is.
    Made,
    /// It is made with this other path, which lies below the stack; afterwards the register is to be what it was.
    Renamed(Renamed),
}

/// A call that opens something else.
#[derive(Debug)]
pub(super) struct Renamed {
    /// What its register held.
    pub(super) before: u64,
    /// What it opens.
    file: PathBuf,
}

impl Renamed {
    /// Puts back what the call was made with; the file has been opened.
    pub(super) fn over(self, registers: &mut libc::user_regs_struct) {
        *path_register(registers) = self.before;
        let _ = fs::remove_file(self.file);
    }
}

/// Where a call that opens something has the path.
fn path_register(registers: &mut libc::user_regs_struct) -> &mut libc::c_ulonglong {
    match registers.orig_rax as libc::c_long {
        libc::SYS_open => &mut registers.rdi,
        _ => &mut registers.rsi,
    }
}

/// A program that is calmed.
#[derive(Debug)]
pub(super) struct Calming {
    calm: Calm,
    files: u32,
}

fn fault() -> Answer {
    Answer::Given((-libc::c_long::from(libc::EFAULT)) as u64)
}

fn read(thread: i32, at: u64, bytes: &mut [u8]) -> io::Result<usize> {
    let remote = RemoteIoVec {
        base: at as usize,
        len: bytes.len(),
    };
    let own = &mut [IoSliceMut::new(bytes)];
    Ok(process_vm_readv(Pid::from_raw(thread), own, &[remote])?)
}

/// Whether all of it could be written.
fn write(thread: i32, at: u64, bytes: &[u8]) -> bool {
    let remote = RemoteIoVec {
        base: at as usize,
        len: bytes.len(),
    };
    let written = process_vm_writev(Pid::from_raw(thread), &[IoSlice::new(bytes)], &[remote]);
    written == Ok(bytes.len())
}

fn word(thread: i32, at: u64) -> io::Result<u64> {
    let mut bytes = [0; 8];
    match read(thread, at, &mut bytes)? {
        8 => Ok(u64::from_le_bytes(bytes)),
        _ => Err(io::Error::other("the stack ends")),
    }
}

impl Calming {
    pub(super) fn new(calm: Calm) -> Self {
        Self { calm, files: 0 }
    }

    /// What a thread is answered that stands before a system call with these registers, which are changed for that.
    pub(super) fn answer(
        &mut self,
        thread: i32,
        lane: &mut Lane,
        registers: &mut libc::user_regs_struct,
    ) -> Answer {
        let arguments = [registers.rdi, registers.rsi, registers.rdx];
        let answer = match registers.orig_rax as libc::c_long {
            libc::SYS_clock_gettime => self.clock(thread, lane, arguments),
            libc::SYS_gettimeofday => self.time_of_day(thread, lane, arguments),
            libc::SYS_time => {
                let seconds = lane.time(self.calm.moment) / SECOND;
                let to = arguments[0];
                match to == 0 || write(thread, to, &seconds.to_le_bytes()) {
                    true => Answer::Given(seconds),
                    false => fault(),
                }
            }
            libc::SYS_getrandom => {
                let count = arguments[1].min(MOST);
                match write(thread, arguments[0], &lane.bytes(count as usize)) || count == 0 {
                    true => Answer::Given(count),
                    false => fault(),
                }
            }
            libc::SYS_nanosleep => self.sleeps(thread, lane, (0, 0), arguments[0]),
            libc::SYS_clock_nanosleep => {
                self.sleeps(thread, lane, (arguments[0], arguments[1]), arguments[2])
            }
            _ => self.opens(thread, lane, registers),
        };
        if let Answer::Given(value) = answer {
            // No call has this number, so none is made.
            registers.orig_rax = u64::MAX;
            registers.rax = value;
        }
        answer
    }

    /// Where a clock begins.
    fn beginning(&self, clock: u64) -> u64 {
        const TIMES_OF_DAY: [libc::clockid_t; 3] = [
            libc::CLOCK_REALTIME,
            libc::CLOCK_REALTIME_COARSE,
            libc::CLOCK_TAI,
        ];
        match TIMES_OF_DAY.contains(&(clock as libc::clockid_t)) {
            true => self.calm.moment,
            false => BEGINNING,
        }
    }

    fn clock(&self, thread: i32, lane: &mut Lane, [clock, to, _]: [u64; 3]) -> Answer {
        let time = lane.time(self.beginning(clock));
        let both = [time / SECOND, time % SECOND]
            .map(u64::to_le_bytes)
            .concat();
        match write(thread, to, &both) {
            true => Answer::Given(0),
            false => fault(),
        }
    }

    fn time_of_day(&self, thread: i32, lane: &mut Lane, [to, zone, _]: [u64; 3]) -> Answer {
        let time = lane.time(self.calm.moment);
        let both = [time / SECOND, time % SECOND / 1000].map(u64::to_le_bytes);
        let told = to == 0 || write(thread, to, &both.concat());
        let told = told && (zone == 0 || write(thread, zone, &[0; 8]));
        if told { Answer::Given(0) } else { fault() }
    }

    /// A thread sleeps as long as it wants, for what that adds to its time, or until a moment, which may be past.
    fn sleeps(&self, thread: i32, lane: &mut Lane, (clock, flags): (u64, u64), at: u64) -> Answer {
        let wanted = word(thread, at).and_then(|seconds| Ok((seconds, word(thread, at + 8)?)));
        if let Ok((seconds, nanoseconds)) = wanted
            && nanoseconds < SECOND
        {
            let time = seconds.saturating_mul(SECOND).saturating_add(nanoseconds);
            lane.passed = match flags as i32 & libc::TIMER_ABSTIME {
                0 => lane.passed.saturating_add(time),
                _ => lane.passed.max(time.saturating_sub(self.beginning(clock))),
            };
        }
        Answer::Made
    }

    /// A thread opens something.
    fn opens(
        &mut self,
        thread: i32,
        lane: &mut Lane,
        registers: &mut libc::user_regs_struct,
    ) -> Answer {
        const RED_ZONE: u64 = 128;
        let stack = registers.rsp;
        let register = path_register(registers);
        let before = *register;
        let mut path = [0; 13];
        let length = read(thread, before, &mut path).unwrap_or(0);
        let is_random = |device: &[u8]| path[..length].starts_with(device);
        if !is_random(b"/dev/urandom\0") && !is_random(b"/dev/random\0") {
            return Answer::Made;
        }
        self.files += 1;
        let file = self.calm.folder.join(format!("random-{}", self.files));
        if fs::write(&file, lane.bytes(DEVICE)).is_err() {
            return Answer::Made;
        }
        let name = [file.as_os_str().as_bytes(), &[0]].concat();
        let place = (stack - RED_ZONE - name.len() as u64) & !15;
        match write(thread, place, &name) {
            true => {
                *register = place;
                Answer::Renamed(Renamed { before, file })
            }
            false => {
                let _ = fs::remove_file(file);
                Answer::Made
            }
        }
    }

    /// Changes what the kernel tells a program that begins, beside its arguments: see `getauxval`.
    pub(super) fn begins(
        &self,
        thread: i32,
        lane: &mut Lane,
        registers: &libc::user_regs_struct,
    ) -> io::Result<()> {
        const CODE_OF_64_BITS: u64 = 0x33;
        if registers.cs != CODE_OF_64_BITS {
            return Ok(());
        }
        let mut at = registers.rsp + 8 * (word(thread, registers.rsp)? + 2);
        // Behind the arguments come the variables of the environment, and a zero.
        while word(thread, at)? != 0 {
            at += 8;
        }
        at += 8;
        loop {
            let tag = word(thread, at)?;
            match tag {
                libc::AT_NULL => return Ok(()),
                libc::AT_SYSINFO_EHDR => {
                    write(thread, at, &libc::AT_IGNORE.to_le_bytes());
                }
                libc::AT_RANDOM => {
                    write(thread, word(thread, at + 8)?, &lane.bytes(16));
                }
                _ => {}
            }
            at += 16;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Lane, STEP};

    #[test]
    fn lanes_depend_on_who_made_them_alone() {
        let (mut one, mut other) = (Lane::first(), Lane::first());
        assert_eq!(one.bytes(5), other.bytes(5));
        let (mut child, mut second) = (one.next(), one.next());
        // What others do in between changes nothing.
        second.bytes(100);
        assert_eq!(child, other.next());
        assert_ne!(child.bytes(16), second.bytes(16));
        assert_ne!(child.bytes(16), one.bytes(16));
    }

    #[test]
    fn time_never_goes_back() {
        let mut lane = Lane::first();
        let first = lane.time(7);
        let mut child = lane.next();
        assert_eq!((first, lane.time(7)), (7 + STEP, 7 + 2 * STEP));
        assert_eq!(child.time(7), 7 + 2 * STEP);
        // Nor for who has slept for ever until a signal came.
        child.passed = u64::MAX;
        assert_eq!(child.time(7), u64::MAX);
    }
}
