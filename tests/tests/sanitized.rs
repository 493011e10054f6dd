//! Programs that compilers' sanitizers are in do what they do alone: these want to be the first library of all, stand between us
//! and the C library, and have threads and handlers of their own.

use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use tomo_testkit::corpus::compiled;
use tomo_testkit::coverage::{Covering, complete};

/// The program of scenarios.
fn built(compiler: &str, flags: &[&str]) -> PathBuf {
    compiled(compiler, "manners.c", &[flags, &["-ldl"]].concat()).expect("built")
}

/// The exit code that a shell would give it.
fn code(output: &Output) -> Option<i32> {
    let signal = output.status.signal().map(|signal| 128 + signal);
    signal.or(output.status.code())
}

/// A compiler's library of this name.
fn library(compiler: &str, name: &str) -> PathBuf {
    let mut command = Command::new(compiler);
    command.arg(format!("-print-file-name={name}"));
    let named = complete(command, b"").expect("run").stdout;
    String::from_utf8(named).expect("a path").trim().into()
}

fn run(mut command: Command, program: &Path, scenario: &str) -> Output {
    command.arg(program).arg(scenario);
    complete(command, b"").expect("run")
}

/// It does a scenario covered as it does it alone, and is recorded.
fn does_the_same(program: &Path, scenario: &str) {
    let covering = Covering::new().expect("a folder");
    let expected = run(Command::new("env"), program, scenario);
    let got = run(covering.command(&[]).expect("tomo"), program, scenario);
    let what = format!("{} {scenario}", program.display());
    assert_eq!(code(&got), code(&expected), "{what}");
    assert_eq!(got.stdout, expected.stdout, "{what}");
    assert!(covering.only().expect("a record").hit.len() > 10, "{what}");
}

/// An address sanitizer does not start behind a library that it does not know, and has threads with all
/// signals blocked.
#[test]
fn a_sanitizer_that_is_preloaded_finds_everything_as_alone() {
    let library = library("gcc", "libasan.so");
    let covering = Covering::new().expect("a folder");
    let program = built("gcc", &["-O2", "-pthread"]);
    let run = |mut command: Command| {
        command.env("LD_PRELOAD", &library);
        run(command, &program, "exit")
    };
    let expected = run(Command::new("env"));
    let got = run(covering.command(&[]).expect("tomo"));
    assert_eq!(code(&got), code(&expected));
    assert_eq!(got.stdout, expected.stdout);
    assert!(covering.only().expect("a record").hit.len() > 10);
}

#[test]
fn programs_with_sanitizers_are_covered() {
    for sanitizer in ["-fsanitize=address", "-fsanitize=undefined"] {
        let program = built("gcc", &["-O1", "-pthread", "-w", sanitizer]);
        for scenario in ["exit", "forked", "one_thread"] {
            does_the_same(&program, scenario);
        }
    }
}

/// It starts wherever it is started, though what starts it has none.
#[test]
fn programs_with_a_sanitizer_start_below_others() {
    let address = ["-O1", "-pthread", "-w", "-fsanitize=address"];
    let folder = library("clang-19", "libclang_rt.asan-x86_64.so");
    let folder = format!(
        "-Wl,-rpath,{}",
        folder.parent().expect("a folder").display()
    );
    let shared = [&address[..], &["-shared-libasan", &folder]].concat();
    let programs = [built("gcc", &address), built("clang-19", &shared)];
    for program in programs {
        let covering = Covering::new().expect("a folder");
        let mut command = covering.command(&[]).expect("tomo");
        command.args(["sh", "-c", "\"$0\" exit"]).arg(&program);
        let got = complete(command, b"").expect("run");
        let expected = run(Command::new("env"), &program, "exit");
        assert_eq!(got.stdout, expected.stdout, "{got:?}");
        assert_eq!(code(&got), code(&expected), "{got:?}");
    }
}

/// Its functions on signals stand behind ours and before the C library's, and have handlers run with all signals blocked.
#[test]
fn handlers_below_a_thread_sanitizer_run_new_code() {
    let program = built("gcc", &["-O1", "-pthread", "-w", "-fsanitize=thread"]);
    for scenario in ["full_mask", "alternate_stack"] {
        does_the_same(&program, scenario);
    }
}

/// They start, whatever comes before the sanitizer's library.
#[test]
fn programs_with_a_sanitizer_are_counted_followed_and_traced() {
    let program = built("gcc", &["-O1", "-pthread", "-w", "-fsanitize=address"]);
    let covering = Covering::new().expect("a folder");
    for name in ["count", "paths", "chains", "predicates", "trace"] {
        let mut command = Command::new(tomo_testkit::tomo::path().expect("tomo"));
        command.args([name, "-o"]).arg(covering.output().join(name));
        command.arg("--").arg(&program).arg("exit");
        let got = complete(command, b"").expect("run");
        let said = String::from_utf8_lossy(&got.stderr);
        assert_eq!(code(&got), Some(6), "{name}: {said}");
        assert!(!said.contains("not observed"), "{name}: {said}");
    }
}

/// The sanitizer's own library has code that runs with all signals blocked.
#[test]
fn a_sanitizers_library_can_be_observed() {
    let program = built("gcc", &["-O1", "-pthread", "-w", "-fsanitize=address"]);
    let covering = Covering::new().expect("a folder");
    let mut command = covering.command(&["--module", "libasan"]).expect("tomo");
    command.arg(&program).arg("exit");
    let got = complete(command, b"").expect("run");
    assert_eq!(code(&got), Some(6));
    let units = covering.only().expect("a record");
    assert!(units.hit.len() > 100 && units.traps == 0);
}

/// GCC's thread sanitizer remembers handlers, gives the system its own, and tells the program of the one or the other by what the system has.
#[test]
fn a_thread_sanitizer_remembers_handlers_as_alone() {
    let program = built("gcc", &["-O1", "-pthread", "-w", "-fsanitize=thread"]);
    let expected = run(Command::new("env"), &program, "for_a_while");
    assert_eq!(code(&expected), Some(0));
    let covering = Covering::new().expect("a folder");
    for name in ["count", "trace", "cover", "crashes"] {
        let mut command = Command::new(tomo_testkit::tomo::path().expect("tomo"));
        match name {
            "cover" => command.args([name, "--disposal", "none"]),
            "crashes" => command.args(["cover", "--crashes"]),
            _ => command.arg(name),
        };
        command
            .arg("-o")
            .arg(covering.output().join(name))
            .arg("--");
        let got = run(command, &program, "for_a_while");
        assert_eq!(got.stdout, expected.stdout, "{name}: {got:?}");
        assert_eq!(code(&got), Some(0), "{name}");
    }
}
