//! Who starts a program at a shell has a job, which can be stopped and sent on. The shell waits for this process: so this one
//! stops where the program stops, and nowhere else, and if it is sent on the program is.
//!
//! That is so for the first process of a job whose terminal has the program in front, or that a shell with jobs has started. Elsewhere
//! nobody waits for a stop, and whoever sends the program on again may know nothing of this process.

use std::fs::File;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};

use nix::errno::Errno;
use nix::libc::{self, c_int, c_void, sigaction, siginfo_t};
use nix::sys::signal::{SigSet, SigmaskHow, Signal, kill, killpg, raise};
use nix::sys::wait::{Id, WaitPidFlag, WaitStatus, waitid};
use nix::unistd::{Pid, getpgid, getpgrp, getppid, getsid, tcgetpgrp, tcsetpgrp};

use crate::about::has_signal;
use crate::passing::{self, Handler, Left};
use crate::stand_in;

/// Waits until `program` has ended, and does not ask how: as long as nobody has, no other process gets its number.
pub(crate) fn wait_until_ends(program: Pid, job: Option<&Job>) {
    let mut awaited = WaitPidFlag::WEXITED | WaitPidFlag::WNOWAIT;
    awaited.set(WaitPidFlag::WSTOPPED, job.is_some());
    loop {
        match waitid(Id::Pid(program), awaited) {
            Err(Errno::EINTR) => {}
            Ok(WaitStatus::Stopped(..)) => stop_with(program),
            _ => return,
        }
    }
}

/// The job of a shell; until this is dropped signals that stop it do not stop this process.
#[derive(Debug)]
pub(crate) struct Job {
    /// What was done with signals before.
    before: [Option<sigaction>; SIGNALS.len()],
}

const SIGNALS: [(c_int, Handler); 2] = [
    // From the terminal the program has it, too.
    (libc::SIGTSTP, passing::pass_on),
    (libc::SIGCONT, is_sent_on),
];

/// Whether the job was sent on.
static SENT_ON: AtomicBool = AtomicBool::new(false);

extern "C" fn is_sent_on(_: c_int, _: *mut siginfo_t, _: *mut c_void) {
    SENT_ON.store(true, Ordering::SeqCst);
}

impl Job {
    /// `None` where no shell waits for this process alone.
    pub(crate) fn ours() -> Option<Self> {
        let me = Pid::this();
        // The first process of all waits for ends alone; where there is no terminal all is passed on.
        let is_job = getpgrp() == me && getsid(None) != Ok(me) && getppid() != Pid::from_raw(1);
        let is_job = is_job && terminal().is_ok();
        (is_job && stand_in::stands_for_a_program()).then(|| Self {
            before: SIGNALS.map(|(signal, handler)| passing::handle(signal, handler)),
        })
    }
}

impl Drop for Job {
    fn drop(&mut self) {
        for ((signal, _), before) in SIGNALS.into_iter().zip(&self.before) {
            before.iter().for_each(|action| {
                passing::set(signal, action);
            });
        }
    }
}

/// The program was stopped.
fn stop_with(program: Pid) {
    SENT_ON.store(false, Ordering::SeqCst);
    let (stopped, now) = (WaitPidFlag::WSTOPPED, WaitPidFlag::WNOHANG);
    let is_stopped = waitid(Id::Pid(program), stopped | now);
    let (Ok(WaitStatus::Stopped(_, signal)), Ok(terminal), Ok(group)) =
        (is_stopped, terminal(), getpgid(Some(program)))
    else {
        return;
    };
    if tcgetpgrp(&terminal) != Ok(group) && !has_jobs(getppid()) {
        return;
    }
    stop_this_process(signal);
    // A program that is a shell itself has a group of its own; its terminal was given to ours.
    let ours = getpgrp();
    if group != ours && tcgetpgrp(&terminal) == Ok(ours) {
        let _ = tcsetpgrp(&terminal, group);
    }
    let news = stopped | now | WaitPidFlag::WCONTINUED | WaitPidFlag::WNOWAIT;
    if waitid(Id::Pid(program), news) == Ok(WaitStatus::StillAlive) {
        let _ = match group == ours {
            true => kill(program, Signal::SIGCONT),
            false => killpg(group, Signal::SIGCONT),
        };
    }
}

/// Whether a process is a shell with jobs: who gives the terminal to jobs and takes it back ignores that it is in the background.
fn has_jobs(process: Pid) -> bool {
    has_signal(process.as_raw(), "SigIgn:", libc::SIGTTOU)
}

/// The terminal of this process, if it has one.
pub(crate) fn terminal() -> io::Result<File> {
    File::open("/dev/tty")
}

/// Comes back when it was sent on. A job that is sent on meanwhile does not stop: what came before is noted, and what comes later
/// takes a stop back that is only pending. (SIGSTOP never is: who is faster than that sends a process on that is about to stop.)
fn stop_this_process(signal: Signal) {
    let is_sent_on = || SENT_ON.load(Ordering::SeqCst);
    if signal == Signal::SIGSTOP {
        if !is_sent_on() {
            let _ = raise(signal);
        }
        return;
    }
    let handled = passing::reset(signal as c_int, Left::Default);
    if let Ok(mask) = SigSet::from(signal).thread_swap_mask(SigmaskHow::SIG_BLOCK) {
        let _ = raise(signal);
        if is_sent_on() {
            passing::reset(signal as c_int, Left::Ignored);
        }
        let _ = mask.thread_set_mask();
    }
    passing::set(signal as c_int, &handled);
}
