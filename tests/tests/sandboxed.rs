//! Programs that close a sandbox around themselves (seccomp) which ends whoever asks the system for more than they need. They do
//! under observation what they do alone, and what they do in there is observed.

use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

use nix::sys::signal::Signal;
use serde_json::{Value, json};
use tomo_testkit::corpus::compiled;
use tomo_testkit::coverage::complete;
use tomo_testkit::tomo;

/// The program of scenarios.
fn program() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| compiled("gcc", "closing.c", &["-O2", "-w", "-pthread"]).expect("built"))
}

/// Where a test keeps runs, and what is made of the program.
struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Self {
        Self(tempfile::tempdir().expect("a folder"))
    }

    fn tomo(&self, words: &[&str]) -> Command {
        let mut command = Command::new(tomo::path().expect("tomo"));
        command.env("TOMO_CACHE_DIR", self.0.path().join("cache"));
        command.current_dir(self.0.path()).args(words);
        command
    }

    /// What `tomo` prints.
    fn said(&self, words: &[&str]) -> String {
        text(&complete(self.tomo(words), b"").expect("run").stdout)
    }

    /// Output and exit code are as alone, with `tomo` run so; gives what `tomo` says, and the calls that the program states.
    fn does_the_same(&self, words: &[&str], scenario: &str) -> (String, u64) {
        let expected = run(Command::new("env"), scenario);
        assert_eq!(expected.status.code(), Some(3), "{scenario}");
        let mut command = self.tomo(words);
        command.args(["-o", scenario, "--"]);
        let got = run(command, scenario);
        let said = text(&got.stdout);
        assert_eq!(said, text(&expected.stdout), "{words:?} {scenario}");
        let errors = text(&got.stderr);
        assert_eq!(got.status.code(), Some(3), "{words:?} {scenario}: {errors}");
        (errors, calls(&said).expect("calls"))
    }
}

fn run(mut command: Command, scenario: &str) -> Output {
    command.arg(program()).arg(scenario);
    complete(command, b"").expect("run")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// How often the program says that its function was called.
fn calls(said: &str) -> Option<u64> {
    said.lines()
        .find_map(|line| line.strip_prefix("calls "))?
        .parse()
        .ok()
}

const SCENARIOS: [&str; 5] = ["alone", "threads", "forks", "lent", "stacks"];

#[test]
fn who_closes_a_sandbox_that_ends_others_is_not_ended_by_us() {
    let folder = Folder::new();
    let ways: [&[&str]; 9] = [
        &["cover"],
        &["cover", "--fork", "separate"],
        &["cover", "--level", "edge"],
        &["cover", "--crashes"],
        &["count"],
        &["paths"],
        &["chains"],
        &["predicates"],
        &["trace"],
    ];
    for scenario in SCENARIOS {
        for way in ways {
            folder.does_the_same(way, scenario);
        }
    }
}

/// A fault in there ends the program as alone.
#[test]
fn faults_in_a_sandbox_end_the_program_as_without_us() {
    let folder = Folder::new();
    let expected = run(Command::new("env"), "faults");
    assert_eq!(expected.status.signal(), Some(Signal::SIGSEGV as i32));
    let ways: [&[&str]; 6] = [
        &["cover", "--disposal", "none"],
        &["count"],
        &["paths"],
        &["chains"],
        &["predicates"],
        &["trace"],
    ];
    for way in ways {
        let mut command = folder.tomo(way);
        command.args(["-o", "faults", "--"]);
        let got = run(command, "faults");
        let code = 128 + Signal::SIGSEGV as i32;
        assert_eq!(
            got.status.code(),
            Some(code),
            "{way:?}: {}",
            text(&got.stderr)
        );
    }
}

/// What threads and processes do that begin in there is counted, however many they are, one after the other.
#[test]
fn calls_behind_a_sandbox_that_ends_others_are_counted() {
    let folder = Folder::new();
    for scenario in SCENARIOS {
        let file = tempfile::NamedTempFile::new().expect("a file");
        let path = file.path().to_str().expect("a name");
        let words = ["count", "--format", "json", "--to", path];
        let (_, calls) = folder.does_the_same(&words, scenario);
        let text = std::fs::read(path).expect("read");
        let document: Value = serde_json::from_slice(&text).expect("a document");
        assert_eq!(document["lost_threads"], 0, "{scenario}");
        assert_eq!(document["contradictory"], json!([]), "{scenario}");
        let functions = document["functions"].as_array().expect("functions");
        let falls = functions.iter().find(|one| one["name"] == "falls");
        let count = &falls.expect("the function")["blocks"][0]["count"];
        assert_eq!(count, calls, "{scenario}");
    }
}

/// Threads that start in there have no tracks, which is said. Those of who has lent its memory have.
#[test]
fn threads_behind_a_sandbox_are_traced_unless_they_are_in_it() {
    const SAID: &str = "threads that are not traced, for want of room or of a right, or since a run has no more than 4096: ";
    let folder = Folder::new();
    for (scenario, lost) in [("alone", None), ("stacks", Some("20")), ("lent", None)] {
        let (said, _) = folder.does_the_same(&["trace"], scenario);
        let (_, count) = said.split_once(SAID).unzip();
        assert_eq!(count.map(str::trim), lost, "{scenario}: {said}");
    }
}

/// A track that cannot grow in there has the beginning of what it would have, and is not said to be complete.
#[test]
fn a_track_behind_a_sandbox_holds_the_beginning() {
    /// `prctl`, with what closes a sandbox.
    const CLOSING: &str = "157:22";
    let folder = Folder::new();
    let (said, _) = folder.does_the_same(&["trace"], "at_length");
    assert!(
        said.contains("up to where there was no more room"),
        "{said}"
    );
    // The same program, which is refused its sandbox.
    let mut whole = Command::new(compiled("gcc", "forbidding.c", &["-O2"]).expect("built"));
    let tomo = folder.tomo(&["trace", "-o", "whole", "--"]);
    whole.args([CLOSING, "--"]).arg(tomo.get_program());
    whole.args(tomo.get_args()).current_dir(folder.0.path());
    let whole = run(whole, "at_length");
    assert_eq!(whole.status.code(), Some(3), "{}", text(&whole.stderr));
    let traces = ["at_length", "whole"].map(|name| only(&folder.0.path().join(name)));
    let [cut, whole] = traces.each_ref().map(String::as_str);
    let stats = folder.said(&["trace", "stats", cut]);
    let (_, thread) = stats.split_once("thread 0  ").expect("a thread");
    let (blocks, end) = thread.split_once(" blocks, ").expect("how many blocks");
    assert!(
        end.starts_with("to its end, or to where there was no more room\n"),
        "{stats}"
    );
    assert!(
        folder
            .said(&["trace", "stats", whole])
            .contains(" blocks, complete\n")
    );
    let first = folder.said(&["trace", "diff", cut, whole]);
    let expected = format!("thread 0: the same up to block {blocks}\n");
    assert!(first.starts_with(&expected), "{first} {stats}");
}

/// What alone is in a folder.
fn only(folder: &Path) -> String {
    let mut entries = std::fs::read_dir(folder).expect("a folder");
    let path = entries.next().expect("one").expect("read").path();
    assert!(entries.next().is_none());
    path.display().to_string()
}
