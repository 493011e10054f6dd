//! Traces that lack something: what is certain is told, and what is missing is said.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tomo_export::traced::Traced;
use tomo_profile::tracing::Divergence;
use tomo_program::Cache;
use tomo_testkit::corpus::{Built, Workload, compiled};
use tomo_testkit::tomo;

use super::kit::{blocks, compare, counting, read, title, traced};
use crate::entered;

fn once(options: &[&str], folder: &Path) -> PathBuf {
    let program = compiled("gcc", "counting.c", &["-O2", "-pthread"]).expect("built");
    traced(&program, &["once".into()], b"", options, folder)
}

fn runs(trace: &Path) -> Vec<PathBuf> {
    let stated = fs::read(trace.join("trace.json")).expect("a document");
    let document: serde_json::Value = serde_json::from_slice(&stated).expect("a document");
    let runs = document["runs"].as_array().expect("runs").iter();
    runs.map(|run| trace.join(run.as_str().expect("a name")))
        .collect()
}

fn error(trace: &Path, folder: &Path) -> String {
    let models = Cache::at(folder.join("cache"));
    let read = Traced::read(trace, None, Some(&models), &());
    read.expect_err("something is missing").to_string()
}

#[test]
fn what_cannot_be_traced_is_said_and_the_program_runs() {
    let folder = tempfile::tempdir().expect("a folder");
    let program = compiled("gcc", "overlapping.c", &["-O2"]).expect("built");
    for (functions, why) in [
        (
            ["--function", "over"].as_slice(),
            "too little is known of over to trace it",
        ),
        (
            &["--function", "main", "--function", "absent"],
            "it has no function absent",
        ),
    ] {
        let mut command = Command::new(tomo::path().expect("tomo"));
        command.env("TOMO_CACHE_DIR", folder.path().join("cache"));
        command.current_dir(folder.path()).arg("trace");
        command.args(functions).arg("--").arg(&program);
        let output = command.output().expect("run");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(said.contains(why), "{said}");
        assert_eq!(output.status.code(), Some(6), "it runs as it would");
    }
}

#[test]
fn a_run_that_is_missing_is_said() {
    let folder = tempfile::tempdir().expect("a folder");
    let trace = once(&["--runs", "2"], folder.path());
    let stated = fs::read_to_string(trace.join("trace.json")).expect("a document");
    let mut document: serde_json::Value = serde_json::from_str(&stated).expect("a document");
    document["runs"].as_array_mut().expect("runs").pop();
    fs::write(trace.join("trace.json"), document.to_string()).expect("written");
    let error = error(&trace, folder.path());
    assert!(error.contains("1 of 2 runs"), "{error}");
}

#[test]
fn a_record_of_another_plan_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let trace = once(&["--runs", "2"], folder.path());
    let other = once(&["--runs", "2", "--witness", "node"], folder.path());
    let (ours, theirs) = (runs(&trace), runs(&other));
    fs::remove_dir_all(&ours[1]).expect("removed");
    fs::rename(&theirs[1], &ours[1]).expect("moved");
    let error = error(&trace, folder.path());
    assert!(error.contains("another plan"), "{error}");
}

/// What is whole of a part that was cut is a beginning of the trace.
#[test]
fn a_part_that_was_cut_tells_what_is_certain() {
    let folder = tempfile::tempdir().expect("a folder");
    let trace = once(&["--runs", "2"], folder.path());
    let (whole, ended) = blocks(&read(&trace, folder.path()));
    assert_eq!(ended.divergence, None);
    for run in runs(&trace) {
        let tracks = run.join("tracks.zst");
        let bytes = fs::read(&tracks).expect("tracks");
        for length in [bytes.len() / 3, bytes.len() - 5] {
            fs::write(&tracks, &bytes[..length]).expect("written");
            let cut = read(&trace, folder.path());
            assert!(cut.runs.iter().any(|run| run.recorded.is_cut));
            if cut.threads(&cut.atlas().expect("an atlas")).is_empty() {
                continue;
            }
            let (part, ended) = blocks(&cut);
            assert!(whole.starts_with(&part[..ended.certain as usize]));
            if let Some(Divergence::Differs { .. }) = ended.divergence {
                panic!("what is missing is taken for a difference: {ended:?}");
            }
        }
        fs::write(&tracks, &bytes).expect("written");
    }
}

#[test]
fn a_program_that_kills_itself_in_a_call_is_told_up_to_there() {
    let folder = tempfile::tempdir().expect("a folder");
    let (killed, ended) = blocks(&counting("killed", &[], folder.path()));
    assert!(ended.certain > 20_000, "{ended:?}");
    assert!(killed.len() as u64 >= ended.certain);
}

/// What follows without a witness behind where the program ended did not happen, and is not told.
#[test]
fn nothing_is_told_behind_the_end_of_the_program() {
    let folder = tempfile::tempdir().expect("a folder");
    for (compiler, level) in [("gcc", "-O0"), ("gcc", "-O2"), ("clang-19", "-O2")] {
        let program = compiled(compiler, "ended.c", &[level]).expect("built");
        for options in [&[][..], &["--collect", "breakpoint"], &["--runs", "2"]] {
            for way in ["fault", "call"] {
                let trace = traced(&program, &[way.into()], b"", options, folder.path());
                let trace = read(&trace, folder.path());
                let name = format!("{compiler} {level} {options:?} {way}");
                let (told, ended) = blocks(&trace);
                // A function that has no room for its witnesses is not traced.
                let is_end = matches!(ended.divergence, Some(Divergence::Ends { .. }));
                assert!(is_end || level != "-O0", "{name}: {ended:?}");
                assert_eq!(ended.certain, told.len() as u64, "{name}: {ended:?}");
                assert_eq!(entered(&trace, "main"), 1, "{name}");
                assert_eq!(entered(&trace, "after"), 0, "{name}");
            }
        }
    }
}

/// What a handler has interrupted goes on, however the handler returns.
#[test]
fn what_a_handler_has_interrupted_goes_on() {
    let folder = tempfile::tempdir().expect("a folder");
    for (compiler, level) in [("gcc", "-O0"), ("gcc", "-O2"), ("clang-19", "-O2")] {
        let flags = [level, "-Wno-cast-function-type"];
        let program = compiled(compiler, "resumed.c", &flags).expect("built");
        for options in [&[][..], &["--collect", "breakpoint"]] {
            let trace = traced(&program, &[], b"", options, folder.path());
            let trace = read(&trace, folder.path());
            let (_, ended) = blocks(&trace);
            let name = format!("{compiler} {level} {options:?}: {ended:?}");
            assert_eq!(ended.divergence, None, "{name}");
            let counts = ["passes", "calls", "leaf"].map(|name| entered(&trace, name));
            assert_eq!(counts, [8, 8, 40], "{name}");
        }
    }
}

/// Branches lead into endless loops, where nothing is called and nothing can end; whether they were taken is told.
#[test]
fn branches_into_endless_loops_are_told() {
    for level in ["-O0", "-O1", "-O2"] {
        let folder = tempfile::tempdir().expect("a folder");
        let program = compiled("gcc", "waiting.c", &[level]).expect("built");
        let built = Built {
            name: format!("waiting {level}"),
            program: program.clone(),
            workloads: vec![Workload::default()],
        };
        compare(&built, &[&[], &["--collect", "breakpoint"]], folder.path());
        let stopped = traced(&program, &["alarm".into()], b"", &[], folder.path());
        let stopped = read(&stopped, folder.path());
        let (blocks, ended) = blocks(&stopped);
        assert_eq!(ended.certain, blocks.len() as u64, "{level} {ended:?}");
        let last = title(&stopped, blocks[blocks.len() - 1]);
        assert!(last.starts_with("spin"), "{level}: {last}");
    }
}

/// `tomo` with an endless program, which has begun to work; and that program's number.
fn endless(folder: &Path, options: &[&str]) -> (Child, Pid) {
    let program = compiled("gcc", "endless.c", &["-O1"]).expect("built");
    let mut command = Command::new(tomo::path().expect("tomo"));
    command
        .env("TOMO_CACHE_DIR", folder.join("cache"))
        .current_dir(folder)
        .args(["trace", "-o", "out"])
        .args(options)
        .arg("--")
        .arg(program)
        .stdin(Stdio::null())
        .stdout(Stdio::piped());
    let mut tomo = command.spawn().expect("tomo");
    let mut line = String::new();
    let output = tomo.stdout.as_mut().expect("an output");
    BufReader::new(output).read_line(&mut line).expect("a line");
    let number = line.trim().parse().expect("its number");
    (tomo, Pid::from_raw(number))
}

fn only_trace(folder: &Path) -> PathBuf {
    let traces = fs::read_dir(folder.join("out")).expect("traces");
    traces.flatten().next().expect("a trace").path()
}

/// Waits until so many bytes are packed, so the ring has gone round.
fn until_packed(folder: &Path, bytes: u64) {
    let run = runs(&only_trace(folder)).remove(0);
    let size = || fs::metadata(run.join("tracks.zst")).map_or(0, |found| found.len());
    while size() < bytes {
        std::thread::yield_now();
    }
}

#[test]
fn an_endless_program_that_is_stopped_is_told_up_to_there() {
    for options in [&[][..], &["--collect", "breakpoint"]] {
        let folder = tempfile::tempdir().expect("a folder");
        let (mut tomo, _) = endless(folder.path(), options);
        until_packed(folder.path(), 2_000);
        kill(Pid::from_raw(tomo.id() as i32), Signal::SIGTERM).expect("sent");
        let status = tomo.wait().expect("waited");
        assert_eq!(status.code(), Some(128 + Signal::SIGTERM as i32));
        let (blocks, ended) = blocks(&read(&only_trace(folder.path()), folder.path()));
        assert!(ended.certain > 1_000, "{options:?} {ended:?}");
        assert!(blocks.len() as u64 >= ended.certain);
        assert!(
            !matches!(ended.divergence, Some(Divergence::Differs { .. })),
            "{ended:?}"
        );
    }
}

/// The disk has no more than the rings, however long a program runs; and where `tomo` itself is killed the program runs on, and nothing
/// is lost of what it has done.
#[test]
fn what_was_recorded_survives_who_takes_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let (mut tomo, program) = endless(folder.path(), &[]);
    until_packed(folder.path(), 200_000);
    let trace = only_trace(folder.path());
    let live = runs(&trace).remove(0).join("tracks");
    let before = fs::metadata(&live).expect("tracks").len();
    kill(Pid::from_raw(tomo.id() as i32), Signal::SIGKILL).expect("sent");
    tomo.wait().expect("waited");
    // It runs on until its track has grown beyond the ring.
    while fs::metadata(&live).expect("tracks").len() == before {
        std::thread::yield_now();
    }
    kill(program, Signal::SIGKILL).expect("it runs on");
    // Its end is nobody's to wait for here.
    let state = || fs::read_to_string(format!("/proc/{program}/stat")).unwrap_or_default();
    while kill(program, None).is_ok() && !state().contains(") Z ") {
        std::thread::yield_now();
    }
    let (_, ended) = blocks(&read(&trace, folder.path()));
    assert!(ended.certain > 1_000_000, "{ended:?}");
    assert!(
        !matches!(ended.divergence, Some(Divergence::Differs { .. })),
        "{ended:?}"
    );
}
