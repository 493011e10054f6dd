//! Programs that close a sandbox around themselves (seccomp) which ends whoever asks the system for more than they need. They do
//! under observation what they do alone, and what they do in there is observed.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

use serde_json::{Value, json};
use tomo_testkit::corpus::compiled;
use tomo_testkit::coverage::complete;
use tomo_testkit::tomo;

/// The program of scenarios.
fn program() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| compiled("gcc", "closing.c", &["-O2", "-w", "-pthread"]).expect("built"))
}

/// Where what is made of the program is kept.
fn cache() -> &'static Path {
    static FOLDER: OnceLock<tempfile::TempDir> = OnceLock::new();
    FOLDER
        .get_or_init(|| tempfile::tempdir().expect("a folder"))
        .path()
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

/// Output and exit code are as alone, with `tomo` run so; gives what `tomo` says, and the calls that the program states.
fn does_the_same(words: &[&str], scenario: &str) -> (String, u64) {
    let folder = tempfile::tempdir().expect("a folder");
    let expected = run(Command::new("env"), scenario);
    assert_eq!(expected.status.code(), Some(3), "{scenario}");
    let mut command = Command::new(tomo::path().expect("tomo"));
    command.args(words).arg("-o").arg(folder.path().join("out"));
    command.env("TOMO_CACHE_DIR", cache()).arg("--");
    let got = run(command, scenario);
    let said = text(&got.stdout);
    assert_eq!(said, text(&expected.stdout), "{words:?} {scenario}");
    let errors = text(&got.stderr);
    assert_eq!(got.status.code(), Some(3), "{words:?} {scenario}: {errors}");
    (errors, calls(&said).expect("calls"))
}

const SCENARIOS: [&str; 5] = ["alone", "threads", "forks", "lent", "stacks"];

#[test]
fn who_closes_a_sandbox_that_ends_others_is_not_ended_by_us() {
    let ways: [&[&str]; 8] = [
        &["cover"],
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
            does_the_same(way, scenario);
        }
    }
}

/// What threads and processes do that begin in there is counted, however many they are, one after the other.
#[test]
fn calls_behind_a_sandbox_that_ends_others_are_counted() {
    for scenario in SCENARIOS {
        let file = tempfile::NamedTempFile::new().expect("a file");
        let path = file.path().to_str().expect("a name");
        let (_, calls) = does_the_same(&["count", "--format", "json", "--to", path], scenario);
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
    for (scenario, lost) in [("alone", None), ("stacks", Some("20")), ("lent", None)] {
        let (said, _) = does_the_same(&["trace"], scenario);
        let (_, count) = said.split_once(SAID).unzip();
        assert_eq!(count.map(str::trim), lost, "{scenario}: {said}");
    }
}
