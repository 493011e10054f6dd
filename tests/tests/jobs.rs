//! At a shell with jobs a program that `tomo` starts can be stopped and sent on, by itself and from the terminal.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tomo_testkit::coverage::Covering;

/// A terminal with a shell, alone or under another one.
const SHELLS: [&str; 2] = [
    "exec bash --norc --noprofile --noediting -i",
    "bash --norc --noprofile --noediting -i; exit $?",
];

/// A terminal with a shell.
struct Terminal {
    /// Its output so far, of which nobody has asked for what came last.
    seen: String,
    output: ChildStdout,
    input: ChildStdin,
    child: Child,
    _covering: Covering,
}

impl Terminal {
    /// `$OBSERVED` are the words that have a command observed, or none.
    fn open(shell: &str, is_observed: bool) -> Self {
        let covering = Covering::new().expect("a folder");
        let tomo = tomo_testkit::tomo::path().expect("tomo");
        let output = covering.output();
        let words = format!("{} cover -o {} --", tomo.display(), output.display());
        // Who waits for what never comes is told so in the end.
        let mut child = Command::new("timeout")
            .args(["--foreground", "300", "script", "-qfec", shell, "/dev/null"])
            .env("SHELL", "/bin/sh")
            .env("OBSERVED", if is_observed { &words } else { "" })
            .env("TOMO_CACHE_DIR", &output)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("a terminal");
        Self {
            seen: String::new(),
            output: child.stdout.take().expect("piped"),
            input: child.stdin.take().expect("piped"),
            child,
            _covering: covering,
        }
    }

    fn types(&mut self, text: &str) {
        self.input.write_all(text.as_bytes()).expect("typed");
    }

    /// Waits until the terminal shows `text`.
    fn shows(&mut self, text: &str) {
        let mut bytes = [0; 256];
        loop {
            if let Some(at) = self.seen.find(text) {
                self.seen.drain(..at + text.len());
                return;
            }
            let count = self.output.read(&mut bytes).expect("read");
            assert!(count > 0, "no {text} in {}", self.seen);
            self.seen += &String::from_utf8_lossy(&bytes[..count]);
        }
    }

    /// Waits until the shell has ended, with this code.
    fn ends(mut self, code: i32) {
        let ended = self.child.wait().expect("ended");
        assert_eq!(ended.code(), Some(code), "{}", self.seen);
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // Where a test has failed; the shell finds its terminal gone.
        if let Ok(None) = self.child.try_wait() {
            let _ = kill(Pid::from_raw(self.child.id() as i32), Signal::SIGTERM);
            let _ = self.child.wait();
        }
    }
}

/// The same with the program alone and observed.
fn in_both(test: impl Fn(Terminal)) {
    for shell in SHELLS {
        for is_observed in [false, true] {
            test(Terminal::open(shell, is_observed));
        }
    }
}

#[test]
fn who_stops_itself_is_stopped_and_sent_on() {
    in_both(|mut terminal| {
        for how in ["TSTP $$", "TSTP 0", "STOP $$", "STOP 0"] {
            terminal.types(&format!("$OBSERVED sh -c 'kill -{how}; exit 7'\n"));
            terminal.shows("Stopped");
            terminal.types("fg; echo code $?.\n");
            terminal.shows("code 7.");
        }
        // In the background, too.
        terminal.types("$OBSERVED sh -c 'kill -TSTP $$; exit 7'\n");
        terminal.shows("Stopped");
        terminal.types("bg; wait -f %1; echo code $?.\n");
        terminal.shows("code 7.");
        terminal.types("exit 3\n");
        terminal.ends(3);
    });
}

/// A job in the background stops as one in front does, and is stopped as it is.
#[test]
fn jobs_in_the_background_stop() {
    in_both(|mut terminal| {
        terminal.types("set -o notify\n");
        terminal.types("$OBSERVED sh -c 'kill -STOP $$; exit 7' &\n");
        terminal.shows("Stopped");
        terminal.types("fg; echo code $?.\n");
        terminal.shows("code 7.");
        terminal.types("$OBSERVED sh -c 'echo re''ady; read line; exit 7' &\n");
        terminal.shows("Stopped");
        terminal.types("fg; echo code $?.\non\n");
        terminal.shows("code 7.");
        terminal.types("exit 3\n");
        terminal.ends(3);
    });
}

/// What stopped the program is what the shell is told.
#[test]
fn the_code_of_a_stop_is_the_signal_s() {
    in_both(|mut terminal| {
        for (signal, code) in [("STOP", 147), ("TSTP", 148), ("TTIN", 149), ("TTOU", 150)] {
            terminal.types(&format!("$OBSERVED sh -c 'kill -{signal} $$'\n"));
            terminal.shows("Stopped");
            terminal.types("echo code $?.; fg\n");
            terminal.shows(&format!("code {code}."));
        }
        terminal.types("exit 3\n");
        terminal.ends(3);
    });
}

/// Who sends on the process that was started sends on the program.
#[test]
fn one_process_is_sent_on() {
    in_both(|mut terminal| {
        terminal.types("$OBSERVED sh -c 'kill -TSTP $$; echo went o''n'\n");
        terminal.shows("Stopped");
        terminal.types("kill -CONT $(jobs -p)\n");
        terminal.shows("went on");
        // A shell that has not seen it yet has to be told twice.
        terminal.types("exit 3\nexit 3\n");
        terminal.ends(3);
    });
}

#[test]
fn from_the_terminal_what_can_be_stopped_is() {
    in_both(|mut terminal| {
        terminal.types("$OBSERVED sh -c 'echo re''ady; read line; echo got $line; exit 7'\n");
        terminal.shows("ready");
        terminal.types("\x1a");
        terminal.shows("Stopped");
        terminal.types("fg; echo code $?.\n");
        terminal.shows("sh -c");
        terminal.types("on\n");
        terminal.shows("got on");
        terminal.shows("code 7.");
        // Who ignores it goes on.
        terminal.types(
            "$OBSERVED sh -c 'trap \"\" TSTP; echo re''ady; read line; echo got $line; exit 7'; echo code $?.\n",
        );
        terminal.shows("ready");
        terminal.types("\x1aon\n");
        terminal.shows("got on");
        terminal.shows("code 7.");
        terminal.types("exit 3\n");
        terminal.ends(3);
    });
}

/// A shell has a group of its own if another process leads the one that it is started in.
#[test]
fn a_shell_is_suspended() {
    in_both(|mut terminal| {
        terminal.types("$OBSERVED bash --norc --noprofile --noediting -i\n");
        terminal.types("echo in''side; suspend\n");
        terminal.shows("inside");
        terminal.shows("Stopped");
        terminal.types("fg\n");
        terminal.types("echo in''side; exit 7\n");
        terminal.shows("inside");
        terminal.types("echo code $?.\n");
        terminal.shows("code 7.");
        terminal.types("exit 3\n");
        terminal.ends(3);
    });
}

/// Servers give meanings of their own to what stops jobs at a terminal, and who has none may stop and send on a program, too.
#[test]
fn without_a_terminal_what_stops_jobs_reaches_the_program() {
    const SCRIPT: &str = "for i in TTIN TTOU TSTP CONT URG; do trap \"echo $i.\" $i; done
        trap 'exit 7' TERM; echo ready; while read -r word; do kill -$word $$; echo behind; done";
    for is_observed in [false, true] {
        let covering = Covering::new().expect("a folder");
        let mut command = Command::new("setsid");
        if is_observed {
            let tomo = tomo_testkit::tomo::path().expect("tomo");
            command.arg(tomo).args(["cover", "-o"]);
            command.arg(covering.output()).arg("--");
        }
        let command = command.args(["bash", "-c", SCRIPT]);
        let command = command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("started");
        let process = Pid::from_raw(child.id() as i32);
        let lines = BufReader::new(child.stdout.take().expect("piped")).lines();
        let mut lines = lines.map(|line| line.expect("read"));
        let mut input = child.stdin.take().expect("piped");
        assert_eq!(lines.next().as_deref(), Some("ready"));
        for (name, signal) in [
            ("TTIN.", Signal::SIGTTIN),
            ("TTOU.", Signal::SIGTTOU),
            ("TSTP.", Signal::SIGTSTP),
            ("CONT.", Signal::SIGCONT),
            ("URG.", Signal::SIGURG),
        ] {
            kill(process, signal).expect("sent");
            // A shell that has just begun to read looks at what has come in the meantime when it has read something.
            let mut has_come = false;
            while !has_come {
                input.write_all(b"0\n").expect("written");
                let said = lines.by_ref().take_while(|line| line != "behind");
                let said: Vec<String> = said.collect();
                assert!(said.is_empty() || said == [name], "{is_observed}: {said:?}");
                has_come = !said.is_empty();
            }
        }
        // What it stops itself by.
        input.write_all(b"STOP\n").expect("written");
        while !is_stopped(process) {
            std::thread::yield_now();
        }
        kill(process, Signal::SIGCONT).expect("sent");
        let said: Vec<String> = lines.by_ref().take(2).collect();
        assert_eq!(said, ["CONT.", "behind"], "observed: {is_observed}");
        kill(process, Signal::SIGTERM).expect("sent");
        while input.write_all(b"0\n").is_ok() && lines.next().is_some() {}
        assert_eq!(child.wait().expect("ended").code(), Some(7));
    }
}

/// Whether this process is stopped, or one that it has started.
fn is_stopped(process: Pid) -> bool {
    let of = |process: &str| std::fs::read_to_string(format!("/proc/{process}/stat"));
    let stopped = |process: &str| of(process).is_ok_and(|text| text.contains(") T "));
    let children = format!("/proc/{process}/task/{process}/children");
    let children = std::fs::read_to_string(children).unwrap_or_default();
    stopped(&process.to_string()) || children.split_whitespace().any(stopped)
}
