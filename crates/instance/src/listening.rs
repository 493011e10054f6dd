//! The program's errors, where somebody asked to look at them (`--stderr-regex`): passed on as they come, and looked at
//! line by line. A line that matches says that the run fails; what names the cause is the first group of the
//! pattern, or else all that matched. It stays here: reports have its checksum.
//!
//! Whoever is left of the program's children when it has ended writes into a pipe that nobody reads any more. So this is
//! done on request only.

use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::ChildStderr;
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread;
use std::time::Duration;

use regex::Regex;

/// Bytes of a line that are looked at.
const LONGEST: usize = 64 << 10;

/// The thread that passes on.
#[derive(Debug)]
pub(crate) struct Listening {
    done: Receiver<()>,
}

impl Listening {
    /// Starts it; what it finds it writes into the file `outcome`, unless the program has told itself how it went.
    pub(crate) fn start(pattern: Regex, errors: ChildStderr, outcome: PathBuf) -> Option<Self> {
        let (tell, done) = sync_channel(1);
        let work = move || {
            pass_on(&pattern, errors, &outcome);
            let _ = tell.send(());
        };
        let thread = thread::Builder::new().name("tomo-errors".into());
        thread.spawn(work).ok().map(|_| Self { done })
    }

    /// Waits until all has been passed on, for so long at most: others may hold the pipe.
    pub(crate) fn finish(self, within: Duration) {
        let _ = self.done.recv_timeout(within);
    }
}

fn pass_on(pattern: &Regex, mut errors: ChildStderr, outcome: &Path) {
    let mut line = Vec::new();
    let mut buffer = [0; 8192];
    let mut found = false;
    loop {
        let read = match errors.read(&mut buffer) {
            Ok(0) | Err(_) => break,
            Ok(read) => buffer.get(..read).unwrap_or_default(),
        };
        // If ours cannot be written the program shall not notice.
        let _ = std::io::stderr().write_all(read);
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
    }
    if !found {
        look(pattern, &line, outcome);
    }
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
