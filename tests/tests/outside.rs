//! Programs that are linked statically, into which no agent can be loaded, are covered from outside, and notice nothing of it.

use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tomo_testkit::corpus::{Compiler, Level, Recipe, Source, build, compiled};
use tomo_testkit::coverage::{
    Covering, Units, as_stepped, complete, differences, play, run_as_stepped,
};
use tomo_testkit::steps::{Outside, observe};
use tomo_testkit::tomo;

/// The program with each C library, at a fixed address and at any.
fn programs() -> [PathBuf; 3] {
    let builds = [
        ("gcc", "-static"),
        ("gcc", "-static-pie"),
        ("musl-gcc", "-static"),
    ];
    builds.map(|(compiler, link)| {
        compiled(compiler, "static.c", &["-O2", "-pthread", link]).expect("built")
    })
}

fn run(command: Command, program: &Path, scenario: &str) -> Output {
    play(command, program, scenario).expect("run")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Runs a scenario covered; it must do what it does alone.
fn covered(program: &Path, options: &[&str], scenario: &str) -> (Covering, String) {
    let covering = Covering::new().expect("a folder");
    let alone = run(Command::new("env"), program, scenario);
    let got = run(covering.command(options).expect("tomo"), program, scenario);
    let what = format!("{} {scenario}: {}", program.display(), text(&got.stderr));
    assert_eq!(text(&got.stdout), text(&alone.stdout), "{what}");
    assert_eq!(got.status.code(), alone.status.code(), "{what}");
    (covering, text(&got.stderr))
}

/// Whether any block of a function of the program ran.
fn ran(program: &Path, units: &Units, function: &str) -> bool {
    let output = Command::new("nm").arg("-S").arg(program).output();
    let symbols = text(&output.expect("nm").stdout);
    // Newer compilers have a copy of it alone, whose name goes on behind a point.
    let is_it = |name: &str| name.split('.').next() == Some(function);
    let mut lines = symbols
        .lines()
        .map(|line| line.split_whitespace().collect());
    let words: Option<Vec<_>> =
        lines.find(|words: &Vec<_>| words.last().is_some_and(|name| is_it(name)));
    let words = words.expect("a function");
    let number = |text: &str| u64::from_str_radix(text, 16).expect("a number");
    let (start, size) = (number(words[0]), number(words[1]));
    units.hit.range(start..start + size).count() > 0
}

/// The functions that can tell which of them ran.
fn told(program: &Path, units: &Units) -> Vec<&'static str> {
    let known = [
        "in_child",
        "in_executed",
        "in_handler",
        "in_thread",
        "never",
    ];
    let ran = known.into_iter().filter(|name| ran(program, units, name));
    ran.collect()
}

/// On all levels and placements. Of the C library only what the program's own functions need is alike in each run: its start looks at
/// the environment.
#[test]
fn what_static_programs_executed_is_recorded_and_nothing_else() {
    let cache = tempfile::tempdir().expect("a folder");
    for link in ["-static", "-static-pie"] {
        let recipe = Recipe {
            extra: vec![link.into()],
            ..Recipe::new(Source::CFeatures, Compiler::Gcc, Level::O2)
        };
        let built = build(&recipe).expect("built");
        let [workload] = built.workloads.as_slice() else {
            panic!("one workload");
        };
        let trace = observe(&built.program, workload, Outside::Leap, LIMIT).expect("traced");
        let own = own_functions(&built.program);
        let is_own = |block: &u64| own.iter().any(|function| function.contains(block));
        let ran = trace.executed();
        let missed = ran.iter().filter(|block| !is_own(block));
        assert!(missed.count() > 500, "the C library is in it");
        let of_own = |blocks: &BTreeSet<u64>| blocks.iter().copied().filter(is_own).collect();
        for way in WAYS {
            let units = as_the_oracle(&built.program, way, cache.path());
            let what = format!("{link} {way:?}");
            assert_eq!((units.processes, units.traps), (1, 0), "{what}");
            let [hit, missed, ran]: [BTreeSet<u64>; 3] =
                [&units.hit, &units.missed, &ran].map(of_own);
            assert!(hit.len() > 20, "{what}: {}", hit.len());
            assert_eq!(differences(&hit, &missed, &ran), None, "{what}");
        }
    }
}

/// The functions of a program that those of its source are.
fn own_functions(program: &Path) -> Vec<Range<u64>> {
    let output = Command::new("nm").args(["-S", "-l"]).arg(program).output();
    let symbols = text(&output.expect("nm").stdout);
    let number = |text: &str| u64::from_str_radix(text, 16).ok();
    let own = symbols.lines().filter_map(|line| {
        let mut words = line.split_whitespace();
        let (start, size) = (number(words.next()?)?, number(words.next()?)?);
        let is_own = line.contains("/features.c:") && matches!(words.next(), Some("t" | "T"));
        is_own.then_some(start..start + size)
    });
    own.collect()
}

/// Far more steps than it takes.
const LIMIT: u64 = 60_000_000;

/// In which ways `tomo cover` is asked.
const WAYS: [&[&str]; 5] = [
    &["--level", "block"],
    &["--level", "block", "--placement", "reduced"],
    &["--level", "edge"],
    &["--level", "block", "--disposal", "none"],
    &["--level", "function"],
];

/// What is recorded of a run that finds what the oracle gives to its own.
fn as_the_oracle(program: &Path, options: &[&str], cache: &Path) -> Units {
    let covering = Covering::cached_in(cache).expect("a folder");
    let mut command = as_stepped(tomo::path().expect("tomo"));
    command
        .env("TOMO_CACHE_DIR", cache)
        .args(["cover", "-o"])
        .arg(covering.output())
        .args(options)
        .arg("--")
        .arg(program)
        .stdout(Stdio::null());
    run_as_stepped(command).expect("run");
    covering.only().expect("a record")
}

/// Open files, signals, rights, and who attends to it.
#[test]
fn a_static_program_finds_what_it_finds_alone() {
    for program in programs() {
        let (covering, said) = covered(&program, &[], "finds");
        assert_eq!(said, "");
        let units = covering.only().expect("a record");
        assert_eq!(units.processes, 1);
        assert!(units.hit.len() > 50, "{} blocks", units.hit.len());
    }
}

#[test]
fn threads_handlers_and_children_of_a_static_program_are_covered() {
    for program in programs() {
        for options in [&[][..], &["--level", "edge"], &["--placement", "reduced"]] {
            let (covering, said) = covered(&program, options, "does");
            assert_eq!(said, "");
            let units = covering.only().expect("a record");
            assert_eq!((units.processes, units.traps), (1, 0));
            let expected = ["in_child", "in_handler", "in_thread"];
            assert_eq!(told(&program, &units), expected, "{options:?}");
        }
    }
}

/// Nobody is there to arm it.
#[test]
fn what_a_static_program_executes_is_not_covered() {
    for program in programs() {
        let (covering, _) = covered(&program, &[], "executes");
        let units = covering.only().expect("a record");
        assert_eq!(told(&program, &units), [] as [&str; 0]);
    }
}

/// That is said, and what others start runs as it is.
#[test]
fn a_static_program_that_others_start_is_said_not_to_be_covered() {
    for program in programs() {
        let path = program.to_str().expect("text");
        let covering = Covering::new().expect("a folder");
        let mut command = covering.command(&["--module", path]).expect("tomo");
        command.args(["sh", "-c", "\"$0\" does", path]);
        let output = complete(command, b"").expect("run");
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(4), "{said}");
        assert!(said.contains("is statically linked"), "{said}");
    }
}

/// No probe traps, so no signal need be deliverable.
#[test]
fn a_static_program_may_block_all_signals() {
    for program in programs() {
        let (covering, _) = covered(&program, &[], "blocks");
        let units = covering.only().expect("a record");
        assert_eq!(told(&program, &units), ["in_handler", "in_thread"]);
    }
}

/// Whoever has made it ends only with `tomo`.
#[test]
fn a_static_program_that_is_to_end_with_its_parent_does_not_end_before() {
    let [program, ..] = programs();
    for _ in 0..10 {
        covered(&program, &[], "follows");
    }
}

/// Nobody is there to give it back, and others execute it.
#[test]
fn a_static_program_may_not_change_its_text() {
    for program in programs() {
        let covering = Covering::new().expect("a folder");
        let output = run(covering.command(&[]).expect("tomo"), &program, "patches");
        assert_eq!(text(&output.stdout), "denied\n");
        assert_eq!(output.status.code(), Some(8));
    }
}

/// Then it runs as it is, where it would run alone.
#[test]
fn a_static_program_runs_where_hardly_a_file_can_be_opened() {
    let [program, ..] = programs();
    let cache = tempfile::tempdir().expect("a folder");
    for files in [32, 16, 15, 14, 13, 12, 11, 10, 9, 8] {
        let covering = Covering::cached_in(cache.path()).expect("a folder");
        let tomo = covering.command(&[]).expect("tomo");
        let mut command = Command::new("bash");
        command
            .args(["-c", "ulimit -n $0; exec \"$@\"", &files.to_string()])
            .arg(tomo.get_program())
            .args(tomo.get_args())
            .arg(&program)
            .arg("does")
            .env("TOMO_CACHE_DIR", cache.path());
        let output = complete(command, b"").expect("run");
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(4), "{files}: {said}");
    }
}

/// What is put back there is what was there, and nothing behind it.
#[test]
fn the_last_bytes_of_a_text_are_put_back() {
    let flags = ["-nostdlib", "-static", "-Wl,-z,separate-code"];
    let program = compiled("gcc", "pageend.s", &flags).expect("built");
    let covering = Covering::new().expect("a folder");
    let output = run(covering.command(&[]).expect("tomo"), &program, "");
    assert_eq!(output.status.code(), Some(7));
    let units = covering.only().expect("a record");
    assert!(ran(&program, &units, "last"), "{:x?}", units.hit);
}

#[test]
fn a_static_program_has_the_memory_that_it_has_alone() {
    for program in programs() {
        covered(&program, &[], "grows");
    }
}

#[test]
fn what_a_static_program_did_before_it_was_killed_is_known() {
    for program in programs() {
        let covering = Covering::new().expect("a folder");
        let mut command = covering.command(&[]).expect("tomo");
        command.arg(&program).arg("serves").stdout(Stdio::piped());
        let mut started = command.spawn().expect("run");
        let mut output = BufReader::new(started.stdout.take().expect("a pipe"));
        let mut line = String::new();
        output.read_line(&mut line).expect("read");
        assert_eq!(line, "ready\n");
        let children = format!("/proc/{0}/task/{0}/children", started.id());
        let child = std::fs::read_to_string(children).expect("its children");
        let child = child.trim().parse().expect("one child");
        kill(Pid::from_raw(child), Signal::SIGKILL).expect("it runs");
        assert_eq!(started.wait().expect("an end").code(), Some(128 + 9));
        let units = covering.only().expect("a record");
        assert!(ran(&program, &units, "main"));
    }
}

/// It comes to the program's process, which is there before the program is.
#[test]
fn a_signal_that_comes_before_a_static_program_begins_is_not_lost() {
    let program = compiled("gcc", "patient.c", &["-O2", "-static"]).expect("built");
    let cache = tempfile::tempdir().expect("a folder");
    for _ in 0..30 {
        let covering = Covering::cached_in(cache.path()).expect("a folder");
        let mut command = covering.command(&[]).expect("tomo");
        command.arg(&program).stdin(Stdio::piped());
        let mut started = command.spawn().expect("run");
        let children = format!("/proc/{0}/task/{0}/children", started.id());
        let child = loop {
            let child = std::fs::read_to_string(&children).expect("its children");
            if let Ok(child) = child.trim().parse() {
                break child;
            }
        };
        kill(Pid::from_raw(child), Signal::SIGTERM).expect("it is there");
        // What has lost it ends with its input, which this closes.
        assert_eq!(started.wait().expect("an end").code(), Some(128 + 15));
    }
}

/// What one has hit is gone for the next, and the record is that of both.
#[test]
fn static_programs_share_a_pool() {
    for program in programs() {
        let folder = tempfile::tempdir().expect("a folder");
        let pool = folder.path().join("pool");
        for (scenario, code, processes) in [("finds", 3, 1), ("does", 4, 2), ("does", 4, 3)] {
            let covering = Covering::cached_in(&folder.path().join("cache")).expect("a folder");
            let options = ["--pool", pool.to_str().expect("text")];
            let command = covering.command(&options).expect("tomo");
            let output = run(command, &program, scenario);
            assert_eq!(output.status.code(), Some(code), "{}", text(&output.stderr));
            let file = |kind: &str| {
                let entries = std::fs::read_dir(&pool).expect("a pool").flatten();
                let mut paths = entries.map(|entry| entry.path());
                paths.find(|path| path.extension().is_some_and(|found| found == kind))
            };
            let [plan, record] = ["plan", "record"].map(|kind| file(kind).expect("it"));
            let units = Units::read(&plan, &record).expect("a record");
            assert_eq!(units.processes, processes);
            assert!(ran(&program, &units, "finds"));
            assert_eq!(ran(&program, &units, "does"), processes > 1);
        }
    }
}

/// It runs, and that is said.
#[test]
fn what_takes_an_agent_is_not_done_for_a_static_program() {
    let [program, ..] = programs();
    for (options, what) in [
        (&["--fork", "separate"][..], "--fork separate"),
        (&["--crashes"], "--crashes"),
    ] {
        let (_, said) = covered(&program, options, "does");
        assert!(
            said.contains("statically linked") && said.contains(what),
            "{said}"
        );
    }
}

/// Who is attended to already cannot be attended to once more: it runs, and that is said.
#[test]
fn a_static_program_that_somebody_attends_to_runs_as_it_is() {
    for program in programs() {
        let covering = Covering::new().expect("a folder");
        let tomo = covering.command(&[]).expect("tomo");
        let mut command = Command::new("strace");
        command
            .args(["-f", "-o", "/dev/null"])
            .arg(tomo.get_program());
        command.args(tomo.get_args());
        command.envs(
            tomo.get_envs()
                .filter_map(|(name, value)| Some((name, value?))),
        );
        let output = run(command, &program, "does");
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(4), "{said}");
        assert!(said.contains("did not allow"), "{said}");
        assert_eq!(covering.only().expect("a record").processes, 0);
    }
}
