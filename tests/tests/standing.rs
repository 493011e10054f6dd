//! What programs ask of the C library comes out as without observation, also where the agent stands before it and has to do
//! something about it.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

use tomo_testkit::corpus::compiled;
use tomo_testkit::coverage::{Covering, complete};

/// The program of scenarios.
fn program() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| compiled("gcc", "standing.c", &["-O2", "-w", "-pthread"]).expect("built"))
}

fn run(mut command: Command, arguments: &[&str]) -> Output {
    command.arg(program()).args(arguments);
    complete(command, b"").expect("run")
}

/// The same, by a shell that says this before.
fn run_behind(said: &str, command: &Command, arguments: &[&str]) -> Output {
    let mut shell = Command::new("bash");
    shell.args(["-c", &format!("{said} exec \"$@\""), "-"]);
    shell.arg(command.get_program()).args(command.get_args());
    run(shell, arguments)
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// `tomo` with these words, which writes into this folder.
fn observing(words: &str, folder: &Path) -> Command {
    let mut command = Command::new(tomo_testkit::tomo::path().expect("tomo"));
    command.args(words.split(' '));
    let output = folder.join(words.replace(' ', "-"));
    command.arg("-o").arg(output).arg("--");
    command
}

/// Alone and observed in each of these ways the program says the same, and ends so; gives what `tomo` says of it.
fn says_the_same(ways: &[&str], arguments: &[&str], code: i32) -> Vec<String> {
    let alone = run(Command::new("env"), arguments);
    let what = text(&alone.stderr);
    assert_eq!(alone.status.code(), Some(code), "{arguments:?}: {what}");
    let covering = Covering::new().expect("a folder");
    let observed = |words: &&str| {
        let got = run(observing(words, &covering.output()), arguments);
        let said = text(&got.stderr);
        let what = format!("{words} {arguments:?}: {said}");
        assert_eq!(text(&got.stdout), text(&alone.stdout), "{what}");
        assert_eq!(got.status.code(), Some(code), "{what}");
        said
    };
    ways.iter().map(observed).collect()
}

const COVERING: [&str; 3] = ["cover", "cover --level edge", "cover --fork separate"];

/// There is no room on it for what a trap takes.
#[test]
fn a_stack_that_is_too_small_for_a_trap_is_left_alone() {
    says_the_same(&COVERING, &["small_stack"], 3);
}

/// Without a signal nobody asks whether the memory is still there; traps would.
#[test]
fn a_stack_that_was_unmapped_is_left_alone() {
    says_the_same(&COVERING, &["unmapped_stack"], 6);
    says_the_same(&COVERING, &["forked_unmapped_stack"], 6);
}

/// A handler is to go on there, though the thread is elsewhere meanwhile.
#[test]
fn a_stack_that_a_handler_leaves_for_another_one_is_left_alone() {
    says_the_same(&COVERING, &["left_stack"], 13);
}

/// Traps come to several threads at once.
#[test]
fn a_stack_that_all_threads_name_is_left_alone() {
    for _ in 0..3 {
        says_the_same(&COVERING, &["shared_stack"], 4);
    }
}

/// A child of `vfork` writes into its parent's memory, and has other dispositions.
#[test]
fn what_a_vforked_child_asks_of_signals_is_not_its_parents() {
    let ways = [COVERING.as_slice(), &["cover --crashes"]].concat();
    says_the_same(&ways, &["vforked"], 5);
}

/// The C library has all signals blocked there.
#[test]
fn functions_in_threads_of_the_c_library_run_new_code() {
    says_the_same(&COVERING, &["notified_in_threads"], 8);
}

/// It sets a context's mask by a system call of its own.
#[test]
fn contexts_that_block_all_signals_run_new_code() {
    says_the_same(&COVERING, &["masked_contexts"], 9);
    says_the_same(&COVERING, &["masked_pause"], 11);
}

/// What is asked for by number comes to the system by no function of its own.
#[test]
fn calls_by_number_that_block_all_signals_run_new_code() {
    let ways = [COVERING.as_slice(), &["cover --crashes"]].concat();
    says_the_same(&ways, &["masked_by_number"], 12);
}

/// A process can begin without handlers.
#[test]
fn processes_that_begin_without_handlers_run_new_code() {
    let ways = [COVERING.as_slice(), &["cover --crashes"]].concat();
    says_the_same(&ways, &["cleared_handlers"], 10);
}

/// Sanitizers that are linked into a program bring some, which are not ready when the agent starts.
#[test]
fn functions_that_a_program_has_by_the_names_of_the_c_librarys_are_not_called() {
    let program = compiled("gcc", "iterating.c", &["-O2", "-w", "-rdynamic"]).expect("built");
    let covering = Covering::new().expect("a folder");
    let run = |mut command: Command| {
        command.arg(&program);
        complete(command, b"").expect("run")
    };
    let alone = run(Command::new("env"));
    assert_eq!(
        (alone.status.code(), text(&alone.stdout)),
        (Some(3), "1 1\n2\n".to_owned())
    );
    for words in ["cover", "cover --fork separate", "count"] {
        let got = run(observing(words, &covering.output()));
        let said = text(&got.stderr);
        assert_eq!(text(&got.stdout), text(&alone.stdout), "{words}: {said}");
        assert_eq!(got.status.code(), Some(3), "{words}: {said}");
    }
}

/// Whoever starts a program may ignore it, and whom that starts finds it so.
#[test]
fn sigtrap_is_ignored_from_one_program_to_the_next() {
    let covering = Covering::new().expect("a folder");
    for before in ["", "trap '' TRAP;"] {
        let expected = run_behind(before, &Command::new("env"), &["ignores"]);
        for words in ["cover", "cover --fork separate", "count"] {
            let observed = observing(words, &covering.output().join(before));
            let got = run_behind(before, &observed, &["ignores"]);
            let said = text(&got.stderr);
            assert_eq!(text(&got.stdout), text(&expected.stdout), "{words}: {said}");
            assert_eq!(got.status.code(), Some(7), "{words}: {said}");
        }
    }
}

/// How often `tomo count` says that the function was entered that is called so.
fn entered(said: &str) -> Option<&str> {
    let line = said.lines().find(|line| line.ends_with(" counted"))?;
    line.split_whitespace().next()
}

/// Of those that a program makes past `fork` the C library tells nobody; each has counters and a record of its own all the same.
#[test]
fn processes_that_no_fork_has_made_are_processes() {
    let ways = ["cover", "count", "paths", "chains", "predicates", "trace"];
    let said = says_the_same(&ways, &["forks"], 8);
    assert_eq!(entered(&said[1]), Some("12000000"), "{}", said[1]);
    let covering = Covering::new().expect("a folder");
    let separate = covering.command(&["--fork", "separate"]);
    let got = run(separate.expect("tomo"), &["forks"]);
    assert_eq!(got.status.code(), Some(8), "{}", text(&got.stderr));
    let processes = covering.processes().expect("records");
    assert_eq!(processes.len(), 7, "{}", text(&got.stderr));
    assert!(processes.iter().all(|units| units.hit.len() > 3));
}

/// What a process has counted in another one counts on, wherever that is among those that are still there.
#[test]
fn processes_that_come_and_go_are_counted_however_many_stay() {
    let said = says_the_same(&["count"], &["crowd"], 9);
    assert_eq!(entered(&said[0]), Some("4200"), "{}", said[0]);
    assert!(!said[0].contains("not counted"), "{}", said[0]);
}

/// Nobody has stood before their creation. Text is replaced only where they do not run yet, and without traps if no signal reaches
/// them.
#[test]
fn threads_that_are_there_before_the_agent_are_no_danger() {
    let staying = ["count", "paths", "chains", "trace"].map(|command| (command, true));
    let all = ("cover --module all", true);
    early_threads_are_no_danger(&[], &[&staying[..], &[("cover", false), all]].concat());
    early_threads_are_no_danger(&["-DDEAF"], &[("count", true), ("cover", true), all]);
}

/// Each command does not disturb the program; whether it says why it does not observe it.
fn early_threads_are_no_danger(flags: &[&str], commands: &[(&str, bool)]) {
    let built = |flags: &[&str]| {
        let flags = [&["-O2", "-pthread"], flags].concat();
        compiled("gcc", "early.c", &flags).expect("built")
    };
    let first = ["-DLIBRARY", "-shared", "-fPIC", "-Wl,-z,initfirst"];
    let library = built(&[&first, flags].concat());
    let program = built(&["-Wl,--no-as-needed", &library.to_string_lossy()]);
    let expected = complete(Command::new(&program), b"").expect("run");
    assert_eq!(expected.status.code(), Some(3));
    let folder = tempfile::tempdir().expect("a folder");
    let words = "another library starts threads before the agent can begin";
    for (command, is_said) in commands {
        let mut observing = Command::new(tomo_testkit::tomo::path().expect("tomo"));
        observing.args(command.split(' ')).arg("-o");
        observing.arg(folder.path().join(command));
        if *command == "cover" {
            // The library, which may come with it, has been run.
            observing.arg("--module").arg(&program);
        }
        observing.arg("--").arg(&program);
        let output = complete(observing, b"").expect("run");
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(3), "{command}: {said}");
        assert_eq!(output.stdout, expected.stdout, "{command}: {said}");
        assert_eq!(said.contains(words), *is_said, "{command}: {said}");
    }
}
