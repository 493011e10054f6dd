//! Where the standard library cannot start the program as it would be started without us, the new process executes it by itself.
//!
//! The library keeps variables by name: of entries of one name, and of those without name or value, it loses some. Then the program gets
//! all of them, in their order, and ours in their places or behind. Otherwise the library starts it, which sorts them, but needs fewer
//! files and less memory (`posix_spawn`).
//!
//! Some variables name the program by its process's number, as service managers state them for whom they start. `LISTEN_PID` says whose
//! the sockets are that were handed over (`sd_listen_fds(3)`), `WATCHDOG_PID` whose life is watched (`sd_watchdog_enabled(3)`),
//! `SYSTEMD_EXEC_PID` who was executed. Where one names this process it names the program's in the program. That has a number only once
//! it exists, so it writes it by itself, and executes the program by itself, too: the standard library has copied the variables before.

use std::ffi::{CStr, OsStr};
use std::io::{self, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::process::CommandExt as _;
use std::process::Command;

use nix::libc;

const NAMES: [&str; 3] = ["LISTEN_PID", "WATCHDOG_PID", "SYSTEMD_EXEC_PID"];

/// Digits of the largest number of a process, and a byte for the zero behind.
const ROOM: usize = 11;

/// Has the program that `command` starts, called as `name`, find all of this process's environment with what the command changes of it,
/// and its own number where this process's is. The last thing that is done before it starts.
pub(crate) fn hand_on(command: &mut Command, name: &OsStr) {
    let all = entries();
    let names_us = names_us();
    if !is_lossy(&all) && !all.iter().any(|entry| names_us.contains(entry)) {
        return;
    }
    let mut executed = Executed::of(command, name, all, &names_us);
    // SAFETY: between fork and exec the closure writes to memory that is there, and makes system calls that are
    // async-signal-safe.
    unsafe { command.pre_exec(move || executed.execute()) };
}

/// The entries of this process's environment.
fn entries() -> Vec<Vec<u8>> {
    let mut all = Vec::new();
    // SAFETY: the list and its strings are as they were when this process began, and end with null and zero bytes: nothing here changes
    // variables, so that no other thread does.
    unsafe {
        let mut at = libc::environ;
        while !at.is_null() && !(*at).is_null() {
            all.push(CStr::from_ptr(*at).to_bytes().to_vec());
            at = at.add(1);
        }
    }
    all
}

/// The entries by which this process is named.
fn names_us() -> [Vec<u8>; 3] {
    let us = std::process::id().to_string();
    NAMES.map(|name| [name, "=", &us].concat().into_bytes())
}

/// Whether the standard library would lose some of these entries.
fn is_lossy(entries: &[Vec<u8>]) -> bool {
    // A name may begin with the sign that ends it.
    let name = |entry: &Vec<u8>| {
        let end = entry.iter().skip(1).position(|byte| *byte == b'=')?;
        Some(entry[..=end].to_vec())
    };
    let mut names: Vec<_> = entries.iter().map(name).collect();
    names.sort();
    names.contains(&None) || names.windows(2).any(|pair| pair[0] == pair[1])
}

/// Sets a variable in all its entries, or in one more.
fn set(all: &mut Vec<Vec<u8>>, name: &OsStr, value: &OsStr) {
    let text = [name.as_bytes(), b"=", value.as_bytes()].concat();
    let mut here = all.iter_mut().filter(|entry| is_of(entry, name)).peekable();
    if here.peek().is_some() {
        here.for_each(|entry| entry.clone_from(&text));
    } else {
        all.push(text);
    }
}

fn is_of(entry: &[u8], name: &OsStr) -> bool {
    let value = entry.strip_prefix(name.as_bytes());
    value.is_some_and(|value| value.starts_with(b"="))
}

/// All that is needed to execute a program: strings that end with a zero byte.
struct Executed {
    program: Vec<u8>,
    arguments: Vec<Vec<u8>>,
    variables: Vec<Vec<u8>>,
    /// Which variables get the number, and from which byte on.
    numbers: Vec<(usize, usize)>,
    /// Room for the lists of the arguments and of the variables, each with null at its end.
    lists: [Vec<usize>; 2],
}

impl Executed {
    fn of(command: &Command, name: &OsStr, mut all: Vec<Vec<u8>>, names_us: &[Vec<u8>]) -> Self {
        for (name, value) in command.get_envs() {
            match value {
                Some(value) => set(&mut all, name, value),
                None => all.retain(|entry| !is_of(entry, name)),
            }
        }
        let mut numbers = Vec::new();
        let variable = |(at, mut text): (usize, Vec<u8>)| {
            let Some(which) = names_us.iter().position(|entry| *entry == text) else {
                return ended(&text);
            };
            let from = NAMES[which].len() + 1;
            numbers.push((at, from));
            text.truncate(from);
            text.resize(from + ROOM, 0);
            text
        };
        let variables: Vec<_> = all.into_iter().enumerate().map(variable).collect();
        let arguments = [name].into_iter().chain(command.get_args());
        let arguments: Vec<_> = arguments.map(|it| ended(it.as_bytes())).collect();
        Self {
            program: ended(command.get_program().as_bytes()),
            lists: [&arguments, &variables].map(|list| vec![0; list.len() + 1]),
            arguments,
            variables,
            numbers,
        }
    }

    /// Comes back where the program cannot be executed. Allocates nothing.
    fn execute(&mut self) -> io::Result<()> {
        let number = std::process::id();
        for &(variable, from) in &self.numbers {
            let place = self
                .variables
                .get_mut(variable)
                .and_then(|it| it.get_mut(from..));
            if let Some(mut place) = place {
                write!(place, "{number}")?;
            }
        }
        for (list, strings) in self
            .lists
            .iter_mut()
            .zip([&self.arguments, &self.variables])
        {
            let pointers = strings.iter().map(|text| text.as_ptr().expose_provenance());
            list.iter_mut()
                .zip(pointers)
                .for_each(|(place, pointer)| *place = pointer);
        }
        let [arguments, variables] = self.lists.each_ref().map(|list| list.as_ptr().cast());
        // SAFETY: strings and lists end as they must, and live until the call comes back.
        unsafe { libc::execvpe(self.program.as_ptr().cast(), arguments, variables) };
        Err(io::Error::last_os_error())
    }
}

fn ended(text: &[u8]) -> Vec<u8> {
    [text, &[0]].concat()
}

#[cfg(test)]
mod tests {
    use super::is_lossy;

    #[test]
    fn what_a_map_by_names_would_lose_is_told() {
        let lossy = |entries: &[&str]| {
            let entries: Vec<_> = entries.iter().map(|it| it.as_bytes().to_vec()).collect();
            let kept = entries
                .iter()
                .all(|it| it.iter().skip(1).any(|byte| *byte == b'='));
            assert!(kept || is_lossy(&entries));
            is_lossy(&entries)
        };
        assert!(!lossy(&["B=2", "A=1", "C=", "D==", "=E=1", "AB=1"]));
        for entries in [&["A=1", "B=1", "A=2"][..], &["A"], &[""], &["=A"], &["="]] {
            assert!(lossy(entries), "{entries:?}");
        }
    }
}
