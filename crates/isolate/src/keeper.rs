//! Runs end with this process, whatever ends it.
//!
//! A case is in a group of its own, which no terminal interrupts, and for which nobody looks at the clock but this process. So
//! another one, in a group of its own, too, hears on its standard input which runs there are. When nobody writes there any
//! more this process has ended, and that one kills what is left.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{ChildStdin, Command, Stdio};
use std::sync::OnceLock;

use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::Pid;

/// The command of `tomo` that is [`end_groups`].
pub const END_GROUPS: &str = "end-groups";

static KEEPER: OnceLock<Option<ChildStdin>> = OnceLock::new();

/// From now on runs end with this process, which is `tomo`. Where that cannot be had they are run all the same.
pub fn end_runs_with_us() {
    KEEPER.get_or_init(|| started().ok());
}

fn started() -> io::Result<ChildStdin> {
    let mut command = Command::new(std::env::current_exe()?);
    command.arg(END_GROUPS).process_group(0);
    command.stdin(Stdio::piped()).stdout(Stdio::null());
    let child = command.stderr(Stdio::null()).spawn()?;
    child.stdin.ok_or_else(|| io::ErrorKind::BrokenPipe.into())
}

/// Hears on standard input of runs: `+ PIPE GROUP` of one that there is, by the pipe into which it prints, with 0 before its group
/// is known, and `- PIPE` when it is over. Kills those that are left at its end.
///
/// # Errors
/// Where it cannot be read; what was heard of is killed all the same.
pub fn end_groups() -> io::Result<()> {
    let mut runs: BTreeMap<u64, i32> = BTreeMap::new();
    let mut read = Ok(());
    for line in io::stdin().lines() {
        let line = match line {
            Ok(line) => line,
            Err(error) => {
                read = Err(error);
                break;
            }
        };
        let words: Vec<&str> = line.split(' ').collect();
        match words.as_slice() {
            ["+", pipe, group] => {
                if let (Ok(pipe), Ok(group)) = (pipe.parse(), group.parse()) {
                    runs.insert(pipe, group);
                }
            }
            ["-", pipe] => drop(pipe.parse().map(|pipe: u64| runs.remove(&pipe))),
            _ => {}
        }
    }
    for (pipe, group) in runs {
        if group > 1 {
            let _ = killpg(Pid::from_raw(group), Signal::SIGKILL);
        }
        kill_who_holds(pipe);
    }
    read
}

/// Kills whoever has this pipe: a run that was just being started has no group that anybody knows of.
fn kill_who_holds(pipe: u64) {
    const TRIES: usize = 100;
    let pipe = PathBuf::from(format!("pipe:[{pipe}]"));
    for _ in 0..TRIES {
        let held = who_holds(&pipe);
        if held.is_empty() {
            return;
        }
        for process in held {
            let _ = kill(Pid::from_raw(process), Signal::SIGKILL);
        }
        std::thread::yield_now();
    }
}

fn who_holds(pipe: &Path) -> Vec<i32> {
    let holds = |process: &i32| {
        let files = fs::read_dir(format!("/proc/{process}/fd"));
        let mut files = files.into_iter().flatten().flatten();
        files.any(|file| fs::read_link(file.path()).is_ok_and(|file| file == pipe))
    };
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let numbers = processes.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    numbers.filter(holds).collect()
}

/// A run that ends with this process, until this is dropped: it prints into this pipe.
pub(crate) struct Kept(u64);

impl Kept {
    /// One that is about to be started.
    pub(crate) fn new(pipe: u64) -> Self {
        tell(&format!("+ {pipe} 0\n"));
        Self(pipe)
    }

    /// It is in this group.
    pub(crate) fn is(&self, group: Pid) {
        tell(&format!("+ {} {group}\n", self.0));
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        tell(&format!("- {}\n", self.0));
    }
}

/// Tells the other process, if there is one; a line so short is written at once or not at all.
fn tell(line: &str) {
    if let Some(Some(mut keeper)) = KEEPER.get().map(Option::as_ref) {
        let _ = keeper.write_all(line.as_bytes());
    }
}
