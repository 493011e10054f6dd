//! The program's errors, where somebody asked to look at them (`--stderr-regex`): passed on as they come, and looked at
//! line by line. A line that matches says that the run fails; what names the cause is the first group of the
//! pattern, or else all that matched. It stays here: reports have its checksum.
//!
//! Whoever is left of the program's children when it has ended goes on writing into the pipe: a process of ours that does nothing
//! else passes that on ([`pass_on_alone`]) until all of them have ended. Where nobody reads our errors any more, nobody reads
//! the program's, which it is told as it would be without us (SIGPIPE).

use std::fs::File;
use std::io::{self, ErrorKind, PipeReader, PipeWriter, Read as _, Write as _};
use std::os::fd::AsFd as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{ChildStderr, Command, Stdio};
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread;
use std::time::Duration;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use regex::Regex;

/// Bytes of a line that are looked at.
const LONGEST: usize = 64 << 10;
/// How long who is told to stop may take, as it does where nobody reads our errors.
const PROMPT: Duration = Duration::from_secs(1);
/// The command of `tomo` that is [`pass_on_alone`].
pub const PASS_ON: &str = "pass-on";

/// The thread that passes on.
#[derive(Debug)]
pub(crate) struct Listening {
    /// What is left to be passed on when it has been told to stop.
    done: Receiver<Option<ChildStderr>>,
    /// Tells it when this is dropped.
    stop: PipeWriter,
}

impl Listening {
    /// Starts it; what it finds it writes into the file `outcome`, unless the program has told itself how it went.
    pub(crate) fn start(pattern: Regex, mut errors: ChildStderr, outcome: PathBuf) -> Option<Self> {
        let (tell, done) = sync_channel(1);
        let Ok((told, stop)) = io::pipe() else {
            leave(errors);
            return None;
        };
        let work = move || {
            let more = pass_on(&pattern, &mut errors, &outcome, &told);
            let _ = tell.send(more.then_some(errors));
        };
        let thread = thread::Builder::new().name("tomo-errors".into());
        thread.spawn(work).ok().map(|_| Self { done, stop })
    }

    /// Waits until all has been passed on, for so long at most: others may hold the pipe, for whom another process goes on.
    pub(crate) fn finish(self, within: Duration) {
        let Self { done, stop } = self;
        if done.recv_timeout(within).is_ok() {
            return;
        }
        drop(stop);
        if let Ok(Some(errors)) = done.recv_timeout(PROMPT) {
            leave(errors);
        }
    }
}

/// Has another process pass on what is still to come. It is in a group of its own, so that it is not interrupted with the command.
fn leave(errors: ChildStderr) {
    let Ok(tomo) = std::env::current_exe() else {
        return;
    };
    let mut command = Command::new(tomo);
    command.arg(PASS_ON).process_group(0);
    command.stdin(errors).stdout(io::stderr());
    // If it cannot be started, who writes finds nobody who reads.
    let _ = command.stderr(Stdio::null()).spawn();
}

/// Passes standard input on to standard output, as it comes, until nobody writes or nobody reads any more.
///
/// # Errors
/// Where one of them cannot be used.
pub fn pass_on_alone() -> io::Result<()> {
    let own = |file: io::Result<_>| file.map(File::from);
    let mut from = own(io::stdin().as_fd().try_clone_to_owned())?;
    let mut to = own(io::stdout().as_fd().try_clone_to_owned())?;
    io::copy(&mut from, &mut to).map(drop)
}

/// Passes on until nobody writes any more, or nobody reads; or until `told` to stop while nothing is there, and whether that is so.
fn pass_on(pattern: &Regex, errors: &mut ChildStderr, outcome: &Path, told: &PipeReader) -> bool {
    let mut line = Vec::new();
    let mut buffer = [0; 8192];
    let mut found = false;
    let mut more = false;
    loop {
        if has_been_told(errors, told) {
            more = true;
            break;
        }
        let read = match errors.read(&mut buffer) {
            Ok(0) | Err(_) => break,
            Ok(read) => buffer.get(..read).unwrap_or_default(),
        };
        let written = io::stderr().write_all(read);
        for byte in read {
            match byte {
                b'\n' => {
                    found = found || look(pattern, &line, outcome);
                    line.clear();
                }
                _ if line.len() < LONGEST => line.push(*byte),
                _ => {}
            }
        }
        // Of all else that may be wrong with ours the program shall not notice.
        if written.is_err_and(|error| error.kind() == ErrorKind::BrokenPipe) {
            break;
        }
    }
    if !found {
        look(pattern, &line, outcome);
    }
    more
}

/// Waits until something can be read of the errors, or there is nothing and the other end of `told` is gone; whether it is that.
fn has_been_told(errors: &ChildStderr, told: &PipeReader) -> bool {
    let wait = |file| PollFd::new(file, PollFlags::POLLIN);
    let mut files = [wait(errors.as_fd()), wait(told.as_fd())];
    while poll(&mut files, PollTimeout::NONE).is_err_and(|error| error == nix::Error::EINTR) {}
    let [errors, told] = files.map(|file| file.revents().is_some_and(|seen| !seen.is_empty()));
    told && !errors
}

/// Looks at a line; whether it matched.
fn look(pattern: &Regex, line: &[u8], outcome: &Path) -> bool {
    let text = String::from_utf8_lossy(line);
    let Some(found) = pattern.captures(&text) else {
        return false;
    };
    let words = found.get(1).or_else(|| found.get(0));
    let words = words.map_or("", |words| words.as_str());
    let file = std::fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .open(outcome);
    if let Ok(mut file) = file {
        let _ = file.write_all(format!("failure {words}\n").as_bytes());
    }
    true
}
