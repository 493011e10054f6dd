//! What whoever started this process wants the program to find, and this process cannot live with or does not keep:
//!
//! - how broken pipes are handled. Rust's standard library ignores SIGPIPE before `main`, and gives the programs that it
//!   starts the default; some test runners do ignore it;
//! - that ends of children are ignored (SIGCHLD). Who ignores them cannot wait for any;
//! - that standard files are closed. The standard library opens `/dev/null` in their place.
//!
//! All of it is asked before the standard library begins, and is so again in the program.

use std::os::unix::process::CommandExt as _;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};

use nix::libc::{self, c_int};

use crate::passing::{self, Left};

/// The signals of which it is known whether they were ignored.
const SIGNALS: [c_int; 2] = [libc::SIGPIPE, libc::SIGCHLD];
static IGNORED: [AtomicBool; SIGNALS.len()] = [const { AtomicBool::new(false) }; SIGNALS.len()];

/// The standard files, and which of them were closed.
const FILES: [c_int; 3] = [libc::STDIN_FILENO, libc::STDOUT_FILENO, libc::STDERR_FILENO];
static CLOSED: [AtomicBool; FILES.len()] = [const { AtomicBool::new(false) }; FILES.len()];

// SAFETY: the C library calls what stands in this section before `main`, once, with arguments that
// a function of this type does not look at.
#[used]
#[unsafe(link_section = ".init_array")]
static ASK: extern "C" fn() = ask;

extern "C" fn ask() {
    for (signal, ignored) in SIGNALS.into_iter().zip(&IGNORED) {
        let is_ignored = passing::action(signal).sa_sigaction == libc::SIG_IGN;
        ignored.store(is_ignored, Ordering::Relaxed);
        if is_ignored && signal == libc::SIGCHLD {
            passing::reset(signal, Left::Default);
        }
    }
    for (file, closed) in FILES.into_iter().zip(&CLOSED) {
        // SAFETY: asks for the flags of a file.
        let is_open = unsafe { libc::fcntl(file, libc::F_GETFD) } >= 0;
        closed.store(!is_open, Ordering::Relaxed);
    }
}

fn is_set(flag: &AtomicBool) -> bool {
    flag.load(Ordering::Relaxed)
}

/// Has the program that `command` starts find what this process has found, but for the standard files that it was `given`.
pub(crate) fn hand_on(command: &mut Command, given: [bool; FILES.len()]) {
    if !IGNORED.iter().chain(&CLOSED).any(is_set) {
        return;
    }
    // SAFETY: between fork and exec the closure only makes system calls, which are
    // async-signal-safe.
    unsafe {
        command.pre_exec(move || {
            put_back_but(given);
            Ok(())
        });
    }
}

/// Has a program that is executed in the place of this process find what this one has found.
pub(crate) fn put_back() {
    put_back_but([false; FILES.len()]);
}

fn put_back_but(given: [bool; FILES.len()]) {
    for (signal, ignored) in SIGNALS.into_iter().zip(&IGNORED) {
        let before = if is_set(ignored) {
            Left::Ignored
        } else {
            Left::Default
        };
        passing::reset(signal, before);
    }
    for ((file, closed), given) in FILES.into_iter().zip(&CLOSED).zip(given) {
        if is_set(closed) && !given {
            // SAFETY: nobody here uses what was opened in its place.
            unsafe { libc::close(file) };
        }
    }
}
