//! What somebody sends to this process reaches the programs that it has started: a handler passes each signal on, by system
//! calls alone. No thread waits for them, and waiting for a program is but waiting for a program.
//!
//! Signals that whoever started this process wanted ignored are ignored by the program as long as it does not say otherwise. Once no
//! program is left everything is as it was, but that a signal which was passed on does not end this process when the same sender sends it
//! once more: `timeout` sends one to its child, and then to its group, and this process may have something to write by then.
//!
//! What a program sends to its group, or to its parent, comes to this process, too, and is not passed on: it was not meant
//! for who sent it, and the group has it already. Without us its parent would have been ours; so that gets what comes from
//! outside of our group, which nobody can have sent to the group.

use std::io::{self, Write as _};
use std::mem::zeroed;
use std::os::unix::process::CommandExt as _;
use std::process::{self, Command};
use std::ptr;
use std::sync::atomic::{AtomicI32, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use nix::errno::Errno;
use nix::libc::{self, c_int, c_void, sigaction, siginfo_t};

use crate::job;

/// The signals that are passed on: all that would end this process without reaching the program, and those to which servers
/// give a meaning of their own. The real-time signals are those that the C library leaves to programs.
const PASSED_ON: [&[c_int]; 2] = [&NAMED, &REAL_TIME];
const NAMED: [c_int; 16] = [
    libc::SIGTERM,
    libc::SIGINT,
    libc::SIGQUIT,
    libc::SIGHUP,
    libc::SIGUSR1,
    libc::SIGUSR2,
    libc::SIGALRM,
    libc::SIGABRT,
    libc::SIGVTALRM,
    libc::SIGPROF,
    libc::SIGXCPU,
    libc::SIGIO,
    libc::SIGWINCH,
    libc::SIGSTKFLT,
    libc::SIGPWR,
    libc::SIGURG,
];
/// Those that stop jobs and send them on, which are passed on where there is no terminal: servers have more processes, or take no
/// more work, for them, and who stops a program so is not the shell that waits for it.
const OF_JOBS: [c_int; 4] = [libc::SIGTSTP, libc::SIGTTIN, libc::SIGTTOU, libc::SIGCONT];
const REAL_TIME: [c_int; 31] = {
    let mut signals = [34; 31];
    let mut next = 1;
    while next < signals.len() {
        signals[next] = signals[next - 1] + 1;
        next += 1;
    }
    signals
};

/// A program that gets what is sent to this process.
struct Place {
    /// Its process, [`NONE`] or [`STARTING`].
    process: AtomicI32,
    /// What was sent while it was starting, bit by bit.
    missed: AtomicU64,
}

/// There is no program.
const NONE: i32 = 0;
/// There will be one.
const STARTING: i32 = -1;

/// Programs at once at most.
const MOST: usize = 1024;
static PLACES: [Place; MOST] = [const {
    Place {
        process: AtomicI32::new(NONE),
        missed: AtomicU64::new(0),
    }
}; MOST];

/// Who has sent a signal that was passed on last, by its number; 0 where that was no process.
static SENDERS: [AtomicI32; 65] = [const { AtomicI32::new(0) }; 65];

/// The process that passes on, and what it was to ignore, bit by bit.
static OURS: AtomicI32 = AtomicI32::new(0);
static IGNORED: AtomicU64 = AtomicU64::new(0);

/// What was done with the signals before there was a program, and how many there are.
struct Before {
    programs: usize,
    actions: Vec<(c_int, sigaction)>,
}

static BEFORE: Mutex<Before> = Mutex::new(Before {
    programs: 0,
    actions: Vec::new(),
});

fn before() -> MutexGuard<'static, Before> {
    BEFORE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Signals are passed on to a program until this is dropped.
#[derive(Debug)]
pub(crate) struct Passing(usize);

impl Passing {
    /// From now on none is missed: what comes before the program has started it gets once [`Passing::to`] is called.
    ///
    /// # Errors
    /// Where there are too many programs.
    pub(crate) fn prepare() -> io::Result<Self> {
        let mut before = before();
        let free = |place: &Place| place.process.load(Ordering::SeqCst) == NONE;
        let number = PLACES.iter().position(free);
        let number = number.ok_or_else(|| io::Error::other("too many programs at once"))?;
        PLACES[number].missed.store(0, Ordering::SeqCst);
        PLACES[number].process.store(STARTING, Ordering::SeqCst);
        if before.programs == 0 {
            OURS.store(process::id() as i32, Ordering::SeqCst);
            let of_jobs: &[c_int] = match job::terminal() {
                Ok(_) => &[],
                Err(_) => &OF_JOBS,
            };
            let signals = PASSED_ON.into_iter().flatten().chain(of_jobs);
            for signal in signals {
                let is_known = before.actions.iter().any(|(known, _)| known == signal);
                if !is_known && let Some(action) = handle_always(*signal, pass_on) {
                    before.actions.push((*signal, action));
                }
            }
            let ignored = before.actions.iter();
            let ignored = ignored.filter(|(_, action)| action.sa_sigaction == libc::SIG_IGN);
            let ignored = ignored.fold(0, |bits, (signal, _)| bits | bit(*signal));
            IGNORED.store(ignored, Ordering::SeqCst);
        }
        before.programs += 1;
        Ok(Self(number))
    }

    /// Has the program that `command` starts ignore what was to be ignored.
    ///
    /// At a terminal it gets memory of its own before it is executed, too: this process would wait for one with borrowed memory,
    /// and could not be stopped, while the terminal stops that.
    pub(crate) fn hand_on(&self, command: &mut Command) {
        let before = before();
        let actions = before.actions.iter();
        let ignored = actions.filter(|(_, action)| action.sa_sigaction == libc::SIG_IGN);
        let ignored: Vec<c_int> = ignored.map(|(signal, _)| *signal).collect();
        if ignored.is_empty() && job::terminal().is_err() {
            return;
        }
        // SAFETY: between fork and exec the closure only makes system calls.
        unsafe {
            command.pre_exec(move || {
                ignored.iter().for_each(|signal| {
                    reset(*signal, Left::Ignored);
                });
                Ok(())
            });
        }
    }

    /// The program has started: it is `process`.
    pub(crate) fn to(&self, process: i32) {
        let place = &PLACES[self.0];
        place.process.store(process, Ordering::SeqCst);
        let missed = place.missed.swap(0, Ordering::SeqCst);
        let signals = (1..=64).filter(|signal| missed & bit(*signal) != 0);
        signals.for_each(|signal| send(process, signal));
    }
}

impl Drop for Passing {
    fn drop(&mut self) {
        let mut before = before();
        PLACES[self.0].process.store(NONE, Ordering::SeqCst);
        before.programs -= 1;
        if before.programs == 0 {
            let was_sent = |signal: c_int| {
                let sender = SENDERS.get(signal as usize);
                sender.is_some_and(|sender| sender.load(Ordering::SeqCst) != 0)
            };
            before.actions.retain(|(signal, action)| {
                let stays = was_sent(*signal);
                if !stays {
                    set(*signal, action);
                }
                stays
            });
        }
    }
}

/// Has a program that is executed in the place of this process ignore what was to be ignored.
pub(crate) fn put_back() {
    if let Ok(before) = BEFORE.try_lock() {
        before.actions.iter().for_each(|(signal, action)| {
            set(*signal, action);
        });
    }
}

/// Whether the process is a program that was started here, or may be one that is just being started.
pub(crate) fn is_program(process: i32) -> bool {
    let mut numbers = PLACES
        .iter()
        .map(|place| place.process.load(Ordering::SeqCst));
    numbers.any(|number| number == process || number == STARTING)
}

/// From now on a file that becomes larger than this process may write is an error, as a full disk
/// is, and does not end it. The programs that it starts are not affected.
pub fn keep_going() {
    extern "C" fn nothing(_: c_int, _: *mut siginfo_t, _: *mut c_void) {}
    handle(libc::SIGXFSZ, nothing);
}

pub(crate) type Handler = extern "C" fn(c_int, *mut siginfo_t, *mut c_void);

/// What is done with a signal.
pub(crate) fn action(signal: c_int) -> sigaction {
    // SAFETY: an action of zeros is one, and the call only writes into it.
    unsafe {
        let mut action: sigaction = zeroed();
        libc::sigaction(signal, ptr::null(), &raw mut action);
        action
    }
}

/// Has a signal handled, unless it is ignored; gives what was done with it before.
pub(crate) fn handle(signal: c_int, handler: Handler) -> Option<sigaction> {
    let is_ignored = action(signal).sa_sigaction == libc::SIG_IGN;
    (!is_ignored).then(|| handle_always(signal, handler))?
}

/// Has a signal handled, and gives what was done with it before.
fn handle_always(signal: c_int, handler: Handler) -> Option<sigaction> {
    let before = action(signal);
    // SAFETY: an action of zeros is one, and blocks nothing.
    let mut action: sigaction = unsafe { zeroed() };
    action.sa_sigaction = handler as usize;
    action.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART;
    set(signal, &action).then_some(before)
}

/// Leaves a signal to the kernel; gives what was done with it before.
pub(crate) fn reset(signal: c_int, how: Left) -> sigaction {
    // SAFETY: actions of zeros are some, and the call only writes into one of them; the handler is the kernel's.
    unsafe {
        let (mut action, mut before): (sigaction, sigaction) = (zeroed(), zeroed());
        action.sa_sigaction = match how {
            Left::Default => libc::SIG_DFL,
            Left::Ignored => libc::SIG_IGN,
        };
        libc::sigaction(signal, &raw const action, &raw mut before);
        before
    }
}

/// What the kernel does with a signal.
pub(crate) enum Left {
    Default,
    Ignored,
}

/// Sets what is done with a signal; whether it could be set.
pub(crate) fn set(signal: c_int, action: &sigaction) -> bool {
    // SAFETY: the action is the default, one that this process had before, or a handler of this file, and those do nothing
    // but atomic operations and system calls.
    unsafe { libc::sigaction(signal, action, ptr::null_mut()) == 0 }
}

/// A signal that was sent to a process that this one has made, and that has not become the program yet: the kernel does with it what it
/// would do a moment later.
fn take_at_start(signal: c_int) {
    if IGNORED.load(Ordering::SeqCst) & bit(signal) == 0 {
        reset(signal, Left::Default);
        // SAFETY: it comes once this handler is left.
        unsafe { libc::raise(signal) };
    }
}

/// The handler.
pub(crate) extern "C" fn pass_on(signal: c_int, info: *mut siginfo_t, _: *mut c_void) {
    if process::id() as i32 != OURS.load(Ordering::SeqCst) {
        return take_at_start(signal);
    }
    // SAFETY: the kernel hands handlers of this kind what it knows of the signal.
    let info = unsafe { &*info };
    let is_none = |place: &Place| place.process.load(Ordering::SeqCst) == NONE;
    if PLACES.iter().all(is_none) {
        let sender = SENDERS.get(signal as usize);
        let was = sender.map_or(0, |sender| sender.load(Ordering::SeqCst));
        if was == 0 || sender_of(info) != was {
            take_at_start(signal);
        }
        return;
    }
    let interrupted = Errno::last_raw();
    match meant_for(info) {
        Meant::Programs => {
            if let Some(sender) = SENDERS.get(signal as usize) {
                sender.store(sender_of(info), Ordering::SeqCst);
            }
            PLACES.iter().for_each(|place| place.pass_on(signal, info));
        }
        Meant::Above(process) => send_on(process, signal, info),
        Meant::Nobody => {}
    }
    Errno::set_raw(interrupted);
}

/// The process that has sent a signal; 0 if it is none.
fn sender_of(info: &siginfo_t) -> i32 {
    match info.si_code {
        // SAFETY: a signal with this code has a sender.
        libc::SI_USER => unsafe { info.si_pid() },
        _ => 0,
    }
}

/// Who has sent a signal, if it is a program that this process has started, or has come of one.
fn sent_from_below(info: &siginfo_t) -> Option<i32> {
    /// More generations are not looked at.
    const DEEPEST: usize = 64;
    if !matches!(info.si_code, libc::SI_USER | libc::SI_QUEUE) {
        return None;
    }
    // SAFETY: a signal with one of these codes has a sender; the other is a system call with nothing.
    let (sender, me) = unsafe { (info.si_pid(), libc::getpid()) };
    let parents = std::iter::successors(parent_of(sender), |process| parent_of(*process));
    let mut parents = parents.take(DEEPEST);
    parents.any(|process| process == me).then_some(sender)
}

/// The process that has made `process`, or now has it in its stead; nobody if it is the first one or gone.
fn parent_of(process: i32) -> Option<i32> {
    let mut stat = [0_u8; 512];
    let length = read_stat(process, &mut stat)?;
    // A name in parentheses, which may have some of its own, the state, and the parent.
    let rest = stat.get(..length)?;
    let name_ends = rest.iter().rposition(|byte| *byte == b')')?;
    let digits = rest.get(name_ends + 4..)?.split(|byte| *byte == b' ');
    let parent = digits.into_iter().next()?.iter().try_fold(0, |sum, digit| {
        let digit = digit.checked_sub(b'0').filter(|digit| *digit < 10)?;
        i32::checked_add(i32::checked_mul(sum, 10)?, digit.into())
    });
    parent.filter(|parent| *parent > 0)
}

/// Reads what the system tells of a process, as far as there is room; how much that is. Nothing is allocated.
fn read_stat(process: i32, to: &mut [u8]) -> Option<usize> {
    let mut path = [0_u8; 32];
    let mut rest = path.as_mut_slice();
    write!(rest, "/proc/{process}/stat\0").ok()?;
    // SAFETY: system calls; the path ends with a zero byte, and the other has as much room as is said.
    let length = unsafe {
        let file = libc::open(path.as_ptr().cast(), libc::O_RDONLY | libc::O_CLOEXEC);
        if file < 0 {
            return None;
        }
        let length = libc::read(file, to.as_mut_ptr().cast(), to.len());
        libc::close(file);
        length
    };
    usize::try_from(length).ok()
}

/// Whom a signal is meant for.
enum Meant {
    /// The programs that were started, unless that depends on the signal.
    Programs,
    /// The parent of this process.
    Above(i32),
    /// Nobody, or those who have it already.
    Nobody,
}

/// A signal from who comes of this process was for whom it would have gone to without us. Where both are in one group that is not
/// known: it may have been sent to the group, which has it then.
fn meant_for(info: &siginfo_t) -> Meant {
    let Some(sender) = sent_from_below(info) else {
        return Meant::Programs;
    };
    // SAFETY: system calls with a number at most, which change nothing.
    let (is_leader, group, ours, above) = unsafe {
        let is_leader = libc::getsid(0) == libc::getpid();
        (
            is_leader,
            libc::getpgid(sender),
            libc::getpgrp(),
            libc::getppid(),
        )
    };
    match above {
        _ if group < 0 || group == ours => Meant::Nobody,
        // Who is the first of all processes has the number that the program would have.
        0 => Meant::Programs,
        _ if is_leader => Meant::Nobody,
        above => Meant::Above(above),
    }
}

/// Whether the program `process` is meant, which did not get the signal itself. What the kernel sends for a terminal it sends to
/// the whole group, the program included unless it has left for a group of its own; but that the terminal is gone it
/// tells only the leader of the session. Of limits it tells each process its own; an alarm that was set before
/// this process was executed rings here alone. What was sent to a thread this process has sent itself: when it aborts, the
/// program goes on.
fn is_for_the_program(process: i32, signal: c_int, code: c_int) -> bool {
    // SAFETY: system calls with a number at most, which change nothing.
    let (is_leader, is_apart) = unsafe {
        let leader = libc::getsid(0) == libc::getpid();
        let group = libc::getpgid(process);
        (
            leader,
            process > 0 && group >= 0 && group != libc::getpgrp(),
        )
    };
    match (code, signal) {
        (libc::SI_KERNEL, libc::SIGALRM) => true,
        (libc::SI_KERNEL, libc::SIGHUP) => is_leader || is_apart,
        // One that is starting may not have had it, and one more stop does not stop what is stopped.
        (libc::SI_KERNEL, libc::SIGTSTP) => is_apart || process == STARTING,
        (libc::SI_KERNEL, libc::SIGINT | libc::SIGQUIT) => is_apart,
        (libc::SI_KERNEL | libc::SI_TKILL, _) => false,
        _ => true,
    }
}

impl Place {
    /// Passes a signal on, once: now, or when the program has started, whoever comes first.
    fn pass_on(&self, signal: c_int, info: &siginfo_t) {
        let process = self.process.load(Ordering::SeqCst);
        if process == NONE || !is_for_the_program(process, signal, info.si_code) {
            return;
        }
        let noted = bit(signal);
        self.missed.fetch_or(noted, Ordering::SeqCst);
        let process = self.process.load(Ordering::SeqCst);
        let started = process > 0;
        if started && self.missed.fetch_and(!noted, Ordering::SeqCst) & noted != 0 {
            send_on(process, signal, info);
        }
    }
}

/// Sends a signal that came to a process, with what came with it.
fn send_on(process: i32, signal: c_int, info: &siginfo_t) {
    if info.si_code == libc::SI_QUEUE {
        // SAFETY: a system call with three numbers, of which a signal with this code has the third.
        unsafe { libc::sigqueue(process, signal, info.si_value()) };
    } else {
        send(process, signal);
    }
}

/// The bit that notes a signal.
fn bit(signal: c_int) -> u64 {
    1_u64.rotate_left(signal.unsigned_abs())
}

/// Sends a signal to a process.
fn send(process: i32, signal: c_int) {
    // SAFETY: a system call with two numbers. That the process has ended is no error here.
    let _ = unsafe { libc::kill(process, signal) };
}

#[cfg(test)]
mod tests {
    use super::{Passing, pass_on};
    use nix::libc;
    use nix::sys::signal::Signal;
    use nix::unistd::Pid;
    use std::os::unix::process::ExitStatusExt as _;
    use std::process::{Command, Stdio};

    /// What is done with a signal now.
    fn action(signal: i32) -> usize {
        super::action(signal).sa_sigaction
    }

    #[test]
    fn what_comes_before_the_program_reaches_it_and_all_is_put_back() {
        let before = [libc::SIGUSR1, libc::SIGTERM].map(action);
        let passing = Passing::prepare().expect("room");
        let other = Passing::prepare().expect("room");
        assert_eq!(action(libc::SIGUSR1), pass_on as *const () as usize);
        // To itself, which would be the first that reaches the program.
        nix::sys::signal::raise(Signal::SIGHUP).expect("sent");
        nix::sys::signal::kill(Pid::this(), Signal::SIGUSR1).expect("sent");
        let mut cat = Command::new("cat");
        let mut cat = cat.stdin(Stdio::piped()).spawn().expect("started");
        passing.to(cat.id() as i32);
        let ended = cat.wait().expect("ended");
        assert_eq!(ended.signal(), Some(libc::SIGUSR1));
        drop(passing);
        assert_eq!(action(libc::SIGUSR1), pass_on as *const () as usize);
        drop(other);
        assert_eq!(action(libc::SIGTERM), before[1]);
        // Once more from the same sender it would have reached the program, and does not end who may have something to write.
        nix::sys::signal::kill(Pid::this(), Signal::SIGUSR1).expect("sent");
        assert_eq!(action(libc::SIGUSR1), pass_on as *const () as usize);
        let again = Passing::prepare().expect("room");
        let known = super::before()
            .actions
            .iter()
            .find(|(signal, _)| *signal == libc::SIGUSR1)
            .map(|(_, action)| action.sa_sigaction);
        assert_eq!(
            known,
            Some(before[0]),
            "it is known what was done with it before"
        );
        drop(again);
    }
}
