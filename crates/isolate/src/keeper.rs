//! Runs end with this process, whatever ends it.
//!
//! A case is in a group of its own, which no terminal interrupts, and for which nobody looks at the clock but this process. So
//! another one, in a group of its own, too, hears on its standard input which groups there are. When nobody writes there any
//! more this process has ended, and that one kills what is left.

use std::collections::BTreeSet;
use std::io::{self, Write as _};
use std::os::unix::process::CommandExt as _;
use std::process::{ChildStdin, Command, Stdio};
use std::sync::OnceLock;

use nix::sys::signal::{Signal, killpg};
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

/// Hears on standard input of groups that there are (their numbers), and of those that there are no more (the same below zero);
/// kills those that are left at its end.
///
/// # Errors
/// Where it cannot be read; what was heard of is killed all the same.
pub fn end_groups() -> io::Result<()> {
    let mut groups = BTreeSet::new();
    let mut read = Ok(());
    for line in io::stdin().lines() {
        match line.map(|line| line.parse::<i32>()) {
            Ok(Ok(group)) if group > 1 => drop(groups.insert(group)),
            Ok(Ok(gone)) => drop(groups.remove(&gone.saturating_neg())),
            Ok(Err(_)) => {}
            Err(error) => {
                read = Err(error);
                break;
            }
        }
    }
    for group in groups {
        let _ = killpg(Pid::from_raw(group), Signal::SIGKILL);
    }
    read
}

/// A group that ends with this process, until this is dropped.
pub(crate) struct Kept(Pid);

impl Kept {
    pub(crate) fn new(group: Pid) -> Self {
        tell(group.as_raw());
        Self(group)
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        tell(-self.0.as_raw());
    }
}

/// Tells the other process, if there is one; a line so short is written at once or not at all.
fn tell(number: i32) {
    if let Some(Some(mut keeper)) = KEEPER.get().map(Option::as_ref) {
        let _ = keeper.write_all(format!("{number}\n").as_bytes());
    }
}
