//! Loops whose rounds are counted by a register: told block for block by two values, and said where they are not.

use std::path::{Path, PathBuf};
use std::process::Command;

use tomo_export::traced::Traced;
use tomo_profile::tracing::Divergence;
use tomo_testkit::corpus::{Built, Compiler, Level, Recipe, Source, Workload, build, compiled};
use tomo_testkit::coverage::complete;
use tomo_testkit::tomo;
use tomo_wire::tracing::{SLOTS, UNIT};

use super::kit::{blocks, compare, entered, read, traced};

fn program(tool: &str, level: &str) -> PathBuf {
    compiled(tool, "rounds.c", &[level, "-fno-inline"]).expect("built")
}

fn rounds(scenario: &str, options: &[&str], folder: &Path) -> Traced {
    let program = program("gcc", "-O2");
    let words: Vec<String> = scenario.split(' ').map(str::to_owned).collect();
    let trace = traced(&program, &words, b"", options, folder);
    read(&trace, folder)
}

/// The folder of counts of a run.
fn counts(program: &Path, words: &[String], input: &[u8], folder: &Path) -> String {
    let out = tempfile::tempdir_in(folder).expect("a folder").keep();
    let mut command = Command::new(tomo::path().expect("tomo"));
    command.env("TOMO_CACHE_DIR", folder.join("cache"));
    command.arg("count").arg("-o").arg(&out).arg("--");
    command.arg(program).args(words);
    let output = complete(command, input).expect("run");
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let made = std::fs::read_dir(&out).expect("counts").flatten().next();
    made.expect("counts").path().display().to_string()
}

const BUILDS: [(&str, &str); 4] = [
    ("gcc", "-O1"),
    ("gcc", "-O2"),
    ("gcc", "-O3"),
    ("clang-19", "-O2"),
];

/// As often as things are thought to run, and as often as they do, which chooses other cycles.
#[test]
fn rounds_are_exact_however_loops_are_left() {
    for (tool, level) in BUILDS {
        let folder = tempfile::tempdir().expect("a folder");
        let built = Built {
            program: program(tool, level),
            name: format!("rounds {tool} {level}"),
            workloads: vec![Workload {
                args: vec!["plain".into()],
                ..Workload::default()
            }],
        };
        let counts = counts(&built.program, &["plain".into()], b"", folder.path());
        let weighted = ["--runs", "2", "--weights", &counts];
        let fine = ["--runs", "3", "--strategy", "fine"];
        compare(&built, &[&[], &fine, &weighted], folder.path());
    }
}

/// A loop with branches, of which one way round is taken most, takes words only where another one is. (Of what clang makes of it none
/// can be counted.)
#[test]
fn the_most_taken_way_round_is_counted() {
    for (tool, level) in BUILDS.into_iter().filter(|(tool, _)| *tool == "gcc") {
        let folder = tempfile::tempdir().expect("a folder");
        let program = program(tool, level);
        let words = ["mostly".to_owned(), "5000".to_owned()];
        let counts = counts(&program, &words, b"", folder.path());
        let trace = traced(
            &program,
            &words,
            b"",
            &["--weights", &counts],
            folder.path(),
        );
        let trace = read(&trace, folder.path());
        let (blocks, ended) = blocks(&trace);
        assert_eq!(ended.divergence, None, "{tool} {level}");
        let threads = trace.threads(&trace.atlas().expect("an atlas"));
        let words: usize = threads[0].runs.iter().map(|run| run.words.len()).sum();
        assert!(blocks.len() > 5 * 5000, "{tool} {level}: {}", blocks.len());
        assert!(words < 1500, "{tool} {level}: {words}");
    }
}

/// Programs with loops of all kinds are told alike whatever is counted: nothing, what is thought to pay, and what does.
#[test]
fn real_programs_are_told_alike_with_and_without_counted_cycles() {
    for recipe in [
        Recipe::new(Source::Bzip2, Compiler::Gcc, Level::O2),
        Recipe::new(Source::Zstd, Compiler::Gcc, Level::O3),
    ] {
        let built = build(&recipe).expect("built");
        let folder = tempfile::tempdir().expect("a folder");
        let workload = built.workloads.first().expect("a workload");
        let input = workload.stdin.as_deref().unwrap_or_default();
        let counts = counts(&built.program, &workload.args, input, folder.path());
        let told = |options: &[&str]| {
            let trace = traced(
                &built.program,
                &workload.args,
                input,
                options,
                folder.path(),
            );
            let trace = read(&trace, folder.path());
            let threads = trace.threads(&trace.atlas().expect("an atlas"));
            (
                blocks(&trace).0,
                threads[0]
                    .runs
                    .iter()
                    .map(|run| run.words.len())
                    .sum::<usize>(),
            )
        };
        // A bounded profile has no values; no profile has so many witnesses.
        let (plain, words) = told(&["--limit", "1000000"]);
        let (counted, fewer) = told(&["--weights", &counts]);
        assert!(fewer < words, "{}: {fewer} words of {words}", built.name);
        assert_eq!(plain, counted, "{}", built.name);
        assert_eq!(plain, told(&[]).0, "{}", built.name);
        let shared = told(&["--runs", "4", "--weights", &counts]);
        assert_eq!(plain, shared.0, "{}", built.name);
    }
}

/// A loop that goes round 5,000 times takes no more words than one that never does.
#[test]
fn words_do_not_grow_with_rounds() {
    let folder = tempfile::tempdir().expect("a folder");
    let words = |scenario| {
        let trace = rounds(scenario, &[], folder.path());
        let (blocks, ended) = blocks(&trace);
        assert_eq!(ended.divergence, None, "{scenario}");
        let threads = trace.threads(&trace.atlas().expect("an atlas"));
        (
            blocks.len(),
            threads[0]
                .runs
                .iter()
                .map(|run| run.words.len())
                .sum::<usize>(),
        )
    };
    let (few, many) = (words("often 1"), words("often 5000"));
    assert_eq!(many.1, few.1, "{few:?} {many:?}");
    assert_eq!(many.0, few.0 + 4_999 * 20);
}

/// More words than there are in a ring, so that units are taken while the program runs: none with a value looks as if it were still to
/// be written.
#[test]
fn values_are_taken_while_the_program_runs() {
    let folder = tempfile::tempdir().expect("a folder");
    let trace = rounds("long", &[], folder.path());
    let (_, ended) = blocks(&trace);
    assert_eq!(ended.divergence, None);
    assert_eq!(entered(&trace, "up"), 300_000);
    let threads = trace.threads(&trace.atlas().expect("an atlas"));
    let words = &threads[0].runs[0].words;
    assert!(words.len() as u64 * 4 > 2 * SLOTS * UNIT);
    assert!(!words.contains(&0));
}

/// Signal handlers that go round such loops between others disturb nothing.
#[test]
fn handlers_interrupt_counted_loops() {
    let folder = tempfile::tempdir().expect("a folder");
    for runs in ["1", "3"] {
        let trace = rounds("noted", &["--runs", runs], folder.path());
        let (_, ended) = blocks(&trace);
        assert_eq!((ended.divergence, ended.unfinished), (None, 0), "{runs}");
        assert_eq!(entered(&trace, "note"), 50);
        assert_eq!(entered(&trace, "up"), 100);
        assert_eq!(entered(&trace, "down"), 50);
    }
}

/// A signal handler that comes in the middle of such a loop, and goes round it itself, disturbs nothing; in which round it
/// came is not recorded, and said.
#[test]
fn handlers_go_round_the_loop_that_they_interrupt() {
    let folder = tempfile::tempdir().expect("a folder");
    for runs in ["1", "3"] {
        let trace = rounds("repaired", &["--runs", runs], folder.path());
        let (told, ended) = blocks(&trace);
        assert_eq!((ended.divergence, ended.unfinished), (None, 0), "{runs}");
        assert_eq!(ended.interruptions, 3);
        assert_eq!(entered(&trace, "repair"), 3);
        assert_eq!(entered(&trace, "scan"), 6);
        assert!(told.len() > 2 * 3 * 4096, "only {} blocks", told.len());
    }
}

/// Who is thrown out of such a loop goes on being told, and it is said that the rounds before that are not known.
#[test]
fn loops_that_handlers_leave_are_said() {
    let folder = tempfile::tempdir().expect("a folder");
    for runs in ["1", "3"] {
        let trace = rounds("left", &["--runs", runs], folder.path());
        let (_, ended) = blocks(&trace);
        assert_eq!((ended.divergence, ended.unfinished), (None, 5), "{runs}");
        assert_eq!(entered(&trace, "leave"), 5);
        assert_eq!(entered(&trace, "up"), 20);
    }
}

/// Where the program crashes in such a loop the trace is certain up to there.
#[test]
fn a_crash_in_a_counted_loop_ends_the_trace_there() {
    let folder = tempfile::tempdir().expect("a folder");
    for runs in ["1", "3"] {
        let trace = rounds("crashes", &["--runs", runs], folder.path());
        let (told, ended) = blocks(&trace);
        assert!(matches!(ended.divergence, Some(Divergence::Ends { .. })));
        assert_eq!(entered(&trace, "up"), 1);
        assert_eq!(entered(&trace, "run_off"), 1);
        assert!(told.len() as u64 <= ended.certain + 1, "{ended:?}");
    }
}
