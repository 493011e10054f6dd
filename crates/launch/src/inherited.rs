//! How whoever started this process wants broken pipes handled.
//!
//! Rust's standard library ignores SIGPIPE before `main`, and gives the programs that it starts the default. A
//! program that is started by way of `tomo` must find what it would have found without, and some test
//! runners do ignore SIGPIPE. So it is asked before the standard library begins.

use std::os::unix::process::CommandExt as _;
use std::process::Command;
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering};

use nix::libc;

static PIPES_IGNORED: AtomicBool = AtomicBool::new(false);

// SAFETY: the C library calls what stands in this section before `main`, once, with arguments that
// a function of this type does not look at.
#[used]
#[unsafe(link_section = ".init_array")]
static ASK: extern "C" fn() = ask;

extern "C" fn ask() {
    // SAFETY: an action of zeros is one, and the call only writes into it.
    let action = unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        libc::sigaction(libc::SIGPIPE, ptr::null(), &raw mut action);
        action
    };
    PIPES_IGNORED.store(action.sa_sigaction == libc::SIG_IGN, Ordering::Relaxed);
}

/// Has the program that `command` starts ignore broken pipes if this process was started so.
pub(crate) fn hand_on(command: &mut Command) {
    if !PIPES_IGNORED.load(Ordering::Relaxed) {
        return;
    }
    // SAFETY: between fork and exec the closure only makes a system call, which is
    // async-signal-safe.
    unsafe {
        command.pre_exec(|| {
            libc::signal(libc::SIGPIPE, libc::SIG_IGN);
            Ok(())
        });
    }
}

/// Has a program that is executed in the place of this process find what this one has found.
pub(crate) fn put_back() {
    if !PIPES_IGNORED.load(Ordering::Relaxed) {
        // SAFETY: an async-signal-safe call; nobody has asked to be told of broken pipes.
        unsafe { libc::signal(libc::SIGPIPE, libc::SIG_DFL) };
    }
}
