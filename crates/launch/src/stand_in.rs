//! What this process does for the program when it cannot go on itself, for want of memory or because of a mistake of ours.
//!
//! Before the program is started it becomes the program, as that is: what to execute stands in the arguments that the kernel
//! has put there, so nothing need be understood or allocated for it. Afterwards it waits for the program, and ends as that
//! has. Both are done by one thread, for which the others wait.
//!
//! If it can go on, it exits in the end with the program's code, or is interrupted as the program was.

use std::ffi::{CStr, c_char, c_int};
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicPtr, AtomicU8, AtomicUsize, Ordering};

use nix::libc;

use crate::{Ended, inherited, passing, scarce};

/// The arguments of this process, as the kernel has put them there, and how many.
static ARGUMENTS: AtomicPtr<*const c_char> = AtomicPtr::new(ptr::null_mut());
static COUNT: AtomicUsize = AtomicUsize::new(0);
/// Words of the command that is to be started, which are the last arguments; 0 as long as nobody has understood them.
static WORDS: AtomicUsize = AtomicUsize::new(0);

/// How far the program has come.
static STATE: AtomicU8 = AtomicU8::new(NOT_STARTED);
const NOT_STARTED: u8 = 0;
const STARTED: u8 = 1;
/// This process ends, or becomes the program.
const LEAVING: u8 = 2;

/// The process of the program that was started last; 0 as long as there is none.
static PROCESS: AtomicI32 = AtomicI32::new(0);
/// The exit code that it has had, if it has ended.
static CODE: AtomicI32 = AtomicI32::new(RUNNING);
const RUNNING: i32 = -1;
/// Whether it was interrupted (SIGINT).
static INTERRUPTED: AtomicBool = AtomicBool::new(false);

// SAFETY: the C library calls what stands in this section before `main`, once; glibc does with the arguments of the process, which
// stay where they are, and those of others are not looked at.
#[used]
#[unsafe(link_section = ".init_array")]
static BEGIN: extern "C" fn(c_int, *mut *const c_char) = begin;

extern "C" fn begin(count: c_int, arguments: *mut *const c_char) {
    if cfg!(target_env = "gnu") {
        ARGUMENTS.store(arguments, Ordering::Relaxed);
        COUNT.store(count.unsigned_abs() as usize, Ordering::Relaxed);
    }
}

/// The last `words` arguments are the command that is to be started.
pub fn is_to_start(words: usize) {
    WORDS.store(words, Ordering::Relaxed);
}

/// Whether there is one, and no more.
pub(crate) fn stands_for_a_program() -> bool {
    WORDS.load(Ordering::Relaxed) > 0
}

/// From now on the command is not executed in the place of this process.
pub(crate) fn is_started() {
    // Who leaves already goes on leaving.
    let relaxed = Ordering::Relaxed;
    let _ = STATE.compare_exchange(NOT_STARTED, STARTED, relaxed, relaxed);
    CODE.store(RUNNING, Ordering::Relaxed);
    PROCESS.store(0, Ordering::Relaxed);
}

/// It could not be.
pub(crate) fn is_not_started() {
    STATE.store(NOT_STARTED, Ordering::Relaxed);
}

/// This is the program's process, for which this one waits.
pub(crate) fn runs_as(process: i32) {
    PROCESS.store(process, Ordering::Relaxed);
}

/// The program has ended like this.
pub(crate) fn has_ended(ended: Ended) {
    CODE.store(ended.code().into(), Ordering::Relaxed);
    INTERRUPTED.store(ended == Ended::Killed(libc::SIGINT), Ordering::Relaxed);
}

/// If somebody has interrupted the program, that ends this process, too: shells leave their loops and lists only for who is
/// ended by that signal, not for who exits with its number.
pub fn end_if_interrupted() {
    if INTERRUPTED.load(Ordering::Relaxed) {
        // SAFETY: calls that are async-signal-safe; the handler is the kernel's own.
        unsafe {
            libc::signal(libc::SIGINT, libc::SIG_DFL);
            libc::raise(libc::SIGINT);
        }
    }
}

/// Does what is left to do for the program that was to be started, says that it is not observed, and `why`, and does not come back;
/// returns if there is no program. Allocates nothing.
pub fn end_for_the_program(why: &str) {
    let Some(command) = command() else {
        return;
    };
    match STATE.swap(LEAVING, Ordering::Relaxed) {
        NOT_STARTED => become_it(command, why),
        STARTED => {
            end_as_it_does(why);
            STATE.store(STARTED, Ordering::Relaxed);
        }
        _ => {
            // Another thread ends this process, or finds that it cannot.
            while STATE.load(Ordering::Relaxed) == LEAVING {
                // SAFETY: waits for a millisecond.
                unsafe { libc::usleep(1000) };
            }
        }
    }
}

fn become_it(command: *const *const c_char, why: &str) {
    say(["tomo: the program was not observed: ", why, "\n"]);
    scarce::put_back();
    inherited::put_back();
    passing::put_back();
    // SAFETY: the arguments end with null, and none of them was changed.
    unsafe { libc::execvp(*command, command) };
    say(["tomo: it cannot be executed\n", "", ""]);
    // SAFETY: ends the process.
    unsafe { libc::_exit(127) };
}

/// Returns where the program is not known.
fn end_as_it_does(why: &str) {
    let code = || match CODE.load(Ordering::Relaxed) {
        RUNNING => ended(PROCESS.load(Ordering::Relaxed)),
        code => Some(code),
    };
    if let Some(code) = code() {
        say(["tomo: what was recorded was not looked at: ", why, "\n"]);
        // SAFETY: ends the process.
        unsafe { libc::_exit(code) };
    }
}

/// Waits for a child to end; the exit code that shells give it.
fn ended(process: i32) -> Option<c_int> {
    let process = libc::id_t::try_from(process).ok().filter(|it| *it != 0)?;
    loop {
        // SAFETY: what is written is a `siginfo_t`, of which zeros are one; of an ended child it has both fields.
        let (found, how, status) = unsafe {
            let mut info: libc::siginfo_t = std::mem::zeroed();
            let end = libc::WEXITED | libc::WNOWAIT;
            let found = libc::waitid(libc::P_PID, process, &raw mut info, end);
            (found, info.si_code, info.si_status())
        };
        match (found, how) {
            (0, libc::CLD_EXITED) => return Some(status),
            (0, _) => return Some(128 + status),
            // SAFETY: reads this thread's own error.
            _ if unsafe { *libc::__errno_location() } == libc::EINTR => {}
            _ => return None,
        }
    }
}

/// What is to be executed, among the arguments of this process.
fn command() -> Option<*const *const c_char> {
    /// Commands that start the one behind `--` whatever else they are told.
    const STARTING: [&[u8]; 5] = [b"cover", b"count", b"paths", b"predicates", b"chains"];
    let count = COUNT.load(Ordering::Relaxed);
    let arguments = ARGUMENTS.load(Ordering::Relaxed);
    let first = match WORDS.load(Ordering::Relaxed) {
        0 => {
            // SAFETY: there are so many arguments, each of which ends with a zero byte.
            let argument = |at: usize| unsafe { CStr::from_ptr(*arguments.add(at)) }.to_bytes();
            let starts = count > 1 && STARTING.contains(&argument(1));
            let separator = (2..count).find(|at| argument(*at) == b"--")?;
            starts.then_some(separator + 1)?
        }
        words => count.checked_sub(words)?,
    };
    // SAFETY: there are so many arguments.
    (first > 1 && first < count).then(|| unsafe { arguments.add(first) }.cast_const())
}

fn say(parts: [&str; 3]) {
    for part in parts {
        // SAFETY: the kernel reads as many bytes as there are.
        unsafe { libc::write(libc::STDERR_FILENO, part.as_ptr().cast(), part.len()) };
    }
}
