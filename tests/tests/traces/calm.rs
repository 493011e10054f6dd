//! Programs that do what they do by time, process numbers and random numbers: their runs differ, unless they are calmed.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;
use tomo_export::traced::Traced;
use tomo_profile::tracing::Divergence;
use tomo_testkit::corpus::compiled;
use tomo_testkit::coverage::complete;
use tomo_testkit::tomo;

use super::kit::{entered, read, threads};

const FLAGS: [&str; 2] = ["-O1", "-pthread"];

fn program(more: &[&str]) -> PathBuf {
    compiled("gcc", "restless.c", &[&FLAGS, more].concat()).expect("built")
}

/// What running it under `tomo trace` comes to, and the folder of the trace.
fn trace(program: &Path, word: &str, options: &[&str], folder: &Path) -> (Output, PathBuf) {
    let out = tempfile::tempdir_in(folder).expect("a folder").keep();
    let mut command = Command::new(tomo::path().expect("tomo"));
    command
        .env("TOMO_CACHE_DIR", folder.join("cache"))
        .current_dir(folder)
        .arg("trace")
        .args(options)
        .arg("-o")
        .arg(&out)
        .arg("--")
        .arg(program)
        .arg(word);
    let output = complete(command, b"").expect("run");
    let made = std::fs::read_dir(&out).expect("traces").flatten().next();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    (output, made.unwrap_or_else(|| panic!("{said}")).path())
}

/// How many threads of a trace are not told to their last decision, or go on differently in some run.
fn parted(traced: &Traced) -> usize {
    let atlas = traced.atlas().expect("an atlas");
    let mut nothing = |_: u32, _: u32| {};
    let threads = traced.threads(&atlas);
    let parts = threads.iter().filter(|thread| {
        let ended = traced.walk(&atlas, &threads, thread, &mut nothing);
        let differs = matches!(ended.divergence, Some(Divergence::Differs { .. }));
        differs || ended.certain + 1 < ended.steps
    });
    parts.count()
}

/// Every block of every thread of three runs is told, with these options, and what it asks it asks as often as it does.
fn is_calm(program: &Path, options: &[&str], folder: &Path) {
    let options = [&["--calm", "--runs", "3"], options].concat();
    let (output, made) = trace(program, "print", &options, folder);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert!(!said.contains("tomo:"), "{said}");
    let traced = read(&made, folder);
    assert_eq!(traced.differences, Vec::<String>::new());
    assert_eq!(parted(&traced), 0);
    assert_eq!(threads(&traced), 4);
    assert_eq!(entered(&traced, "ask"), 6);
    assert_eq!(entered(&traced, "decide"), 2 + 6 * 10);
}

#[test]
fn restless_programs_part_and_say_so() {
    let folder = tempfile::tempdir().expect("a folder");
    let (output, made) = trace(
        &program(&[]),
        "print",
        &["--runs", "3", "--strategy", "fine"],
        folder.path(),
    );
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        said.contains("printed something else than the first"),
        "{said}"
    );
    let traced = read(&made, folder.path());
    assert!(parted(&traced) > 0);
}

#[test]
fn calm_programs_do_the_same_in_each_run() {
    let folder = tempfile::tempdir().expect("a folder");
    is_calm(&program(&[]), &["--strategy", "fine"], folder.path());
    is_calm(
        &program(&[]),
        &["-j", "3", "--witness", "edge"],
        folder.path(),
    );
}

#[test]
fn calm_programs_do_the_same_under_breakpoints() {
    let folder = tempfile::tempdir().expect("a folder");
    is_calm(&program(&[]), &["--collect", "breakpoint"], folder.path());
    let own = ["main", "ask", "decide", "start", "of_clock", "of_device"];
    let own: Vec<&str> = own.iter().flat_map(|name| ["--function", name]).collect();
    is_calm(&program(&["-static"]), &own, folder.path());
}

/// The moment of a trace gives another one that is the same; what a program becomes is calm, too.
#[test]
fn a_repeat_is_alike() {
    let folder = tempfile::tempdir().expect("a folder");
    let (first, made) = trace(&program(&[]), "again", &["--calm"], folder.path());
    assert_eq!(first.status.code(), Some(0));
    let text = std::fs::read(made.join("trace.json")).expect("a trace");
    let told: Value = serde_json::from_slice(&text).expect("JSON");
    assert_eq!(told["calm"]["restless"], Value::Null);
    let moment = told["calm"]["moment"].as_u64().expect("a moment");
    let printed = String::from_utf8_lossy(&first.stdout).into_owned();
    assert!(printed.starts_with(&format!("2 {moment} ")), "{printed}");
    let moment = moment.to_string();
    let repeat = ["--calm", "--moment", &moment];
    let (second, _) = trace(&program(&[]), "again", &repeat, folder.path());
    assert_eq!(second.stdout, first.stdout);
    let earlier = ["--calm", "--moment", "1000000000"];
    let (third, _) = trace(&program(&[]), "again", &earlier, folder.path());
    let printed = String::from_utf8_lossy(&third.stdout).into_owned();
    assert!(printed.starts_with("2 1000000000 "), "{printed}");
}
