//! Variables that name the program by its process's number, as service managers state them for whom they start.
//!
//! `LISTEN_PID` says whose the sockets are that were handed over (`sd_listen_fds(3)`), `WATCHDOG_PID` whose life is watched
//! (`sd_watchdog_enabled(3)`), `SYSTEMD_EXEC_PID` who was executed. Where one names this process it names the program's in
//! the program. That has a number only once it exists, so it writes it by itself, and executes the program by itself, too: the
//! standard library has copied the variables before.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io::{self, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::process::CommandExt as _;
use std::process::Command;

use nix::libc;

const NAMES: [&str; 3] = ["LISTEN_PID", "WATCHDOG_PID", "SYSTEMD_EXEC_PID"];

/// Digits of the largest number of a process, and a byte for the zero behind.
const ROOM: usize = 11;

/// Has the program that `command` starts, called as `name`, find its own number where this process's is. The last thing that is
/// done before it starts.
pub(crate) fn hand_on(command: &mut Command, name: &OsStr) {
    let own = std::process::id().to_string();
    let names_us = |name: &&str| std::env::var_os(name).is_some_and(|value| value == *own);
    let ours: Vec<&str> = NAMES.into_iter().filter(names_us).collect();
    if !ours.is_empty() {
        let mut executed = Executed::of(command, name, &ours);
        // SAFETY: between fork and exec the closure writes to memory that is there, and makes system calls that are
        // async-signal-safe.
        unsafe { command.pre_exec(move || executed.execute()) };
    }
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
    fn of(command: &Command, name: &OsStr, ours: &[&str]) -> Self {
        let mut all: BTreeMap<OsString, OsString> = std::env::vars_os().collect();
        for (name, value) in command.get_envs() {
            match value {
                Some(value) => all.insert(name.into(), value.into()),
                None => all.remove(name),
            };
        }
        let mut numbers = Vec::new();
        let mut variable = |(at, (name, value)): (usize, (&OsString, &OsString))| {
            let mut text = [name.as_bytes(), b"="].concat();
            if ours.iter().any(|our| name == our) {
                numbers.push((at, text.len()));
                text.resize(text.len() + ROOM, 0);
                return text;
            }
            text.extend(value.as_bytes());
            ended(&text)
        };
        let variables: Vec<_> = all.iter().enumerate().map(&mut variable).collect();
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
