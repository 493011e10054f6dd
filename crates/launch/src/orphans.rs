//! Whose parent has ended becomes a child of the first process, which is to ask how it ends. In a container that may be this
//! one, in the place of a program that would have asked.

use std::thread;
use std::time::Duration;

use nix::errno::Errno;
use nix::sys::wait::{Id, WaitPidFlag, waitid, waitpid};
use nix::unistd::Pid;

use crate::passing;

/// The number of the first process.
pub(crate) const FIRST: u32 = 1;

/// Asks how children end that nobody knows, until `program` has ended, of which it does not ask.
pub(crate) fn reap_until_ends(program: Pid) {
    /// How long what ended is left to who has started it.
    const PATIENCE: Duration = Duration::from_millis(1);
    let end = WaitPidFlag::WEXITED | WaitPidFlag::WNOWAIT;
    loop {
        let ended = match waitid(Id::All, end) {
            Ok(status) => status.pid(),
            Err(Errno::EINTR) => continue,
            Err(_) => return,
        };
        match ended {
            Some(ended) if ended == program => return,
            Some(ended) if passing::is_program(ended.as_raw()) => thread::sleep(PATIENCE),
            Some(ended) => {
                let _ = waitpid(ended, None);
            }
            None => return,
        }
    }
}
