//! Programs that fork, with a record for each process: each has all that it did itself, from its fork to
//! its end; all together have what the one record has that processes share otherwise; and the
//! program does what it does alone, wherever it was when it forked.

use std::collections::BTreeSet;
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;

use tomo_testkit::corpus::compiled;
use tomo_testkit::coverage::{Covering, Pool, Units, complete, play};

const SEPARATE: [&str; 2] = ["--fork", "separate"];
/// The functions of which each process runs some.
const FUNCTIONS: [&str; 6] = [
    "by_all",
    "by_parent",
    "by_child",
    "by_second",
    "by_grandchild",
    "after_exec",
];

fn program() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| compiled("gcc", "forking.c", &["-O2", "-pthread"]).expect("built"))
}

/// What is started by what goes on when `tomo` has ended is observed as before.
#[test]
fn programs_that_are_started_after_tomo_has_ended_are_observed() {
    let program = compiled("gcc", "outliving.c", &["-O2"]).expect("built");
    for options in [&[][..], &["--level", "edge"], &SEPARATE] {
        let covering = Covering::new().expect("a folder");
        let mut command = covering.command(options).expect("tomo");
        command.arg(&program);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut tomo = command.spawn().expect("started");
        let (input, output) = (tomo.stdin.take(), tomo.stdout.take());
        assert_eq!(tomo.wait().expect("ended").code(), Some(6));
        input.expect("piped").write_all(b".").expect("told");
        let mut said = String::new();
        let read = output.expect("piped").read_to_string(&mut said);
        read.expect("read");
        assert_eq!(said, "ended with 5\n", "{options:?}");
        let units = covering.all().expect("records");
        let ran = functions(&program, &units);
        let wanted = BTreeSet::from(["by_all", "by_child", "after_exec"]);
        assert_eq!(ran, wanted, "{options:?}");
    }
}

fn of_another_library() -> PathBuf {
    compiled("musl-gcc", "forking.c", &["-O2"]).expect("built")
}

fn run(command: Command, program: &Path, scenario: &str) -> Output {
    play(command, program, scenario).expect("run")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Runs a scenario covered; it must print what it prints alone, in whichever order processes do, and end
/// as it does alone.
fn covered(program: &Path, options: &[&str], scenario: &str) -> (Covering, String) {
    let covering = Covering::new().expect("a folder");
    let alone = run(Command::new("env"), program, scenario);
    let got = run(covering.command(options).expect("tomo"), program, scenario);
    let lines = |output: &Output| {
        let mut lines: Vec<_> = text(&output.stdout).lines().map(String::from).collect();
        lines.sort();
        lines
    };
    assert_eq!(lines(&got), lines(&alone), "{scenario}");
    assert_eq!(got.status.code(), alone.status.code(), "{scenario}");
    (covering, text(&got.stderr))
}

/// The functions of the program that a process ran.
fn functions(program: &Path, units: &Units) -> BTreeSet<&'static str> {
    let output = Command::new("nm").arg("-S").arg(program).output();
    let symbols = text(&output.expect("nm").stdout);
    let ran = symbols.lines().filter_map(|line| {
        let words: Vec<_> = line.split_whitespace().collect();
        let [start, size, _, name] = words.as_slice() else {
            return None;
        };
        let number = |text: &str| u64::from_str_radix(text, 16).expect("a number");
        let (start, size) = (number(start), number(size));
        let blocks = units.hit.range(start..start + size).count();
        let known = FUNCTIONS.iter().find(|known| *known == name)?;
        assert!(
            blocks == 0 || blocks > 5,
            "{name}: {blocks} blocks, not all"
        );
        (blocks > 0).then_some(*known)
    });
    ran.collect()
}

/// What each process ran, sorted.
fn each(program: &Path, processes: &[Units]) -> Vec<BTreeSet<&'static str>> {
    let mut each: Vec<_> = processes.iter().map(|it| functions(program, it)).collect();
    each.sort();
    each
}

fn sorted<const N: usize>(wanted: [&[&'static str]; N]) -> Vec<BTreeSet<&'static str>> {
    let mut wanted: Vec<_> = wanted
        .iter()
        .map(|names| names.iter().copied().collect())
        .collect();
    wanted.sort();
    wanted
}

/// What a parent has run before, its child runs again, and has it in its own record; what the others run,
/// it has not.
#[test]
fn each_process_has_all_that_it_did_itself() {
    for program in [program().to_path_buf(), of_another_library()] {
        for level in ["block", "edge"] {
            let options = [&SEPARATE[..], &["--level", level]].concat();
            let (covering, said) = covered(&program, &options, "family");
            assert_eq!(said, "");
            let processes = covering.processes().expect("records");
            assert!(processes.iter().all(|units| units.processes == 1));
            let wanted = sorted([
                &["by_all", "by_parent"],
                &["by_all", "by_child"],
                &["by_all", "by_grandchild"],
                &["by_all", "by_second"],
            ]);
            assert_eq!(each(&program, &processes), wanted, "{level}");
            // That it began in the midst of functions is known of who did.
            for process in &processes {
                let began = functions(&program, process).contains("by_parent");
                assert_eq!(process.forked, u64::from(!began), "{level}");
            }
        }
    }
}

/// `tomo report` says the same of both, to the byte; and of each process by itself.
#[test]
fn all_processes_together_are_what_they_share_otherwise() {
    let report = |arguments: &[&str], folder: &Path| {
        let mut command = Command::new(tomo_testkit::tomo::path().expect("tomo"));
        command.arg("report").args(arguments).arg(folder);
        command.env("TOMO_CACHE_DIR", folder.with_file_name("cache"));
        let output = complete(command, b"").expect("run");
        assert_eq!(text(&output.stderr), "");
        text(&output.stdout)
    };
    let (separate, _) = covered(program(), &SEPARATE, "family");
    let (shared, _) = covered(program(), &[], "family");
    assert_eq!(shared.processes().expect("records").len(), 0);
    let full = ["--format", "json"];
    let both = [&separate, &shared].map(|covering| {
        let json = report(&full, &covering.output());
        let document: serde_json::Value = serde_json::from_str(&json).expect("JSON");
        (document["totals"].clone(), document["functions"].clone())
    });
    assert_eq!(both[0], both[1]);
    assert_eq!(
        separate.all().expect("records").hit,
        shared.only().expect("a record").hit
    );
    let table = report(&["--processes"], &separate.output());
    let rows = table.lines().filter(|line| {
        let first = line.split_whitespace().next().unwrap_or_default();
        first.parse::<u32>().is_ok()
    });
    assert_eq!(rows.count(), 4, "{table}");
}

/// What a program keeps of its handlers looks like the beginning of what the kernel keeps.
#[test]
fn where_handlers_are_kept_processes_have_their_own_records() {
    let (covering, said) = covered(program(), &SEPARATE, "scopes");
    assert_eq!(said, "");
    let processes = covering.processes().expect("records");
    let wanted = sorted([&["by_all"], &["by_all", "by_child"]]);
    assert_eq!(each(program(), &processes), wanted);
}

/// The handler forks, and the child goes on in the middle of what a probe covered.
#[test]
fn a_process_that_a_handler_has_forked_goes_on_where_the_signal_came() {
    for program in [program().to_path_buf(), of_another_library()] {
        for scenario in ["handler", "alternate"] {
            let (covering, said) = covered(&program, &SEPARATE, scenario);
            assert_eq!(said, "");
            let processes = covering.processes().expect("records");
            let wanted = sorted([&["by_child"], &["by_parent"]]);
            assert_eq!(each(&program, &processes), wanted);
        }
    }
}

#[test]
fn signals_that_fork_anywhere_disturb_nothing() {
    for program in [program().to_path_buf(), of_another_library()] {
        let (covering, said) = covered(&program, &SEPARATE, "interrupted");
        assert_eq!(said, "");
        assert_eq!(covering.processes().expect("records").len(), 61);
    }
}

/// Also in the midst of what a probe does, be it a store of several.
#[test]
fn signals_that_fork_after_each_instruction_disturb_nothing() {
    for level in ["block", "edge"] {
        let options = [&SEPARATE[..], &["--level", level]].concat();
        let (covering, said) = covered(program(), &options, "stepped");
        assert_eq!(said, "");
        let processes = covering.processes().expect("records");
        assert!(processes.len() > 200, "{}", processes.len());
        assert!(processes.iter().all(|units| units.processes == 1));
    }
}

#[test]
fn a_program_with_threads_may_fork() {
    let (covering, said) = covered(program(), &SEPARATE, "threads");
    assert_eq!(said, "");
    let processes = covering.processes().expect("records");
    assert_eq!(
        each(program(), &processes),
        sorted([&["by_all"], &["by_child"]])
    );
}

/// A process that executes a program stays the process that it is.
#[test]
fn a_forked_process_that_executes_the_program_goes_on_in_its_record() {
    let (covering, said) = covered(program(), &SEPARATE, "executes");
    assert_eq!(said, "");
    let processes = covering.processes().expect("records");
    let wanted = sorted([&[], &["by_child", "after_exec"]]);
    assert_eq!(each(program(), &processes), wanted);
    assert!(processes.iter().all(|units| units.processes == 1));
    let forked = processes.iter().map(|units| units.forked);
    assert_eq!(forked.sum::<u64>(), 1);
}

#[test]
fn daemons_have_records_of_their_own() {
    let (covering, said) = covered(program(), &SEPARATE, "to_background");
    assert_eq!(said, "");
    let processes = covering.processes().expect("records");
    let each = each(program(), &processes);
    let wanted = sorted([&["by_all"], &["by_all", "by_child"]]);
    assert!(wanted.iter().all(|ran| each.contains(ran)), "{each:?}");
}

/// Where a process can have no record of its own it runs on, its parent's record has what it did, and that is said.
#[test]
fn what_cannot_be_separate_is_said_and_nothing_is_lost() {
    for (scenario, why) in [
        ("locked_in", "Operation not permitted"),
        ("locked_in_by_number", "Operation not permitted"),
        ("limited", "File too large"),
        ("out_of_files", "Too many open files"),
    ] {
        let (covering, said) = covered(program(), &SEPARATE, scenario);
        assert!(
            said.contains("not observed by itself in a process"),
            "{said}"
        );
        assert!(said.contains(why) && said.lines().count() == 1, "{said}");
        let processes = covering.processes().expect("records");
        assert_eq!(
            each(program(), &processes),
            sorted([&["by_all", "by_child"]])
        );
        assert_eq!(processes[0].processes, 2);
        let mut report = Command::new(tomo_testkit::tomo::path().expect("tomo"));
        report.arg("report").arg(covering.output());
        let report = complete(report, b"").expect("run");
        let said = String::from_utf8_lossy(&report.stderr).into_owned();
        let wanted = "not observed by itself in a process of a run";
        assert!(said.contains(wanted), "{said}");
    }
}

/// Armed by the environment, each process has its own, too: of all that it does, whoever came before.
#[test]
fn processes_of_a_pool_can_be_separate() {
    let pool = Pool::with(&SEPARATE, program()).expect("a pool");
    let image = pool.file("image").expect("an image");
    let before = std::fs::read(&image).expect("read");
    for runs in 1..=2 {
        let mut command = pool.command(program());
        command.arg("family");
        assert!(complete(command, b"").expect("run").status.success());
        let processes = pool.processes().expect("records");
        assert_eq!(processes.len(), 4 * runs);
        let family = [
            &["by_all", "by_parent"],
            &["by_all", "by_child"],
            &["by_all", "by_grandchild"],
            &["by_all", "by_second"],
        ];
        let mut wanted = Vec::new();
        (0..runs).for_each(|_| wanted.extend(sorted(family.map(|names| &names[..]))));
        wanted.sort();
        assert_eq!(each(program(), &processes), wanted);
    }
    assert!(
        before == std::fs::read(&image).expect("read"),
        "disposed of"
    );
}

/// A pool is of the one kind or of the other.
#[test]
fn pools_do_not_mix_shared_and_separate_processes() {
    let pool = Pool::new(program()).expect("a pool");
    let path = pool.path();
    let path = path.to_string_lossy();
    let covering = Covering::new().expect("a folder");
    let options = [&SEPARATE[..], &["--pool", &path]].concat();
    let command = covering.command(&options).expect("tomo");
    let output = run(command, program(), "one_child");
    assert!(output.status.success());
    let said = text(&output.stderr);
    assert!(said.contains("was made with --fork shared"), "{said}");
}
