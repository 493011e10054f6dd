//! Where runs crash: that the frames told are those of the source, whoever handles the signal, and that programs end
//! as they do without anybody looking.

use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;
use tomo_testkit::corpus::compiled;
use tomo_testkit::tomo;

/// What a program does under `tomo cover --crashes`, and what `tomo crashes` tells of it.
struct Watched {
    output: Output,
    crashes: Vec<Value>,
}

fn watched(program: &Path, words: &[&str]) -> Watched {
    let folder = tempfile::tempdir().expect("a folder");
    let tomo = || {
        let mut command = Command::new(tomo::path().expect("tomo"));
        command.env("TOMO_CACHE_DIR", folder.path().join("cache"));
        command.current_dir(folder.path());
        command
    };
    let mut cover = tomo();
    cover
        .args(["cover", "--crashes", "-o", "out", "--"])
        .arg(program)
        .args(words);
    let output = cover.output().expect("run");
    let shown = tomo().args(["crashes", "--json", "out"]).output();
    let shown = shown.expect("run");
    let said = String::from_utf8_lossy(&shown.stderr);
    assert!(shown.status.success(), "{words:?}: {said}");
    let document: Value = serde_json::from_slice(&shown.stdout).expect("JSON");
    let crashes = document["crashes"].as_array().expect("crashes").clone();
    Watched { output, crashes }
}

/// Runs a program as it is and watched: it must do the same. What is told of where it crashed.
fn crashes(program: &Path, words: &[&str]) -> Vec<Value> {
    let plain = Command::new(program).args(words).output().expect("run");
    let seen = watched(program, words);
    assert_eq!(seen.output.stdout, plain.stdout, "{words:?}");
    let code = plain
        .status
        .signal()
        .map_or(plain.status.code(), |signal| Some(128 + signal));
    let said = String::from_utf8_lossy(&seen.output.stderr);
    assert_eq!(seen.output.status.code(), code, "{words:?}: {said}");
    seen.crashes
}

/// Functions and lines of the frames that are the program's own.
fn own(crash: &Value, program: &Path) -> Vec<(String, u64)> {
    let frames = crash["frames"].as_array().expect("frames").iter();
    let mine = frames.filter(|frame| frame["module"] == *program.to_string_lossy());
    mine.map(|frame| {
        let name = frame["function"].as_str().unwrap_or("?");
        // What compilers split off is the same function.
        let name = name.trim_end_matches(".cold").to_owned();
        (name, frame["line"].as_u64().unwrap_or(0))
    })
    .collect()
}

const SOURCE: &str = include_str!("../programs/crashing.c");

/// The line of the C program with this remark.
fn line(remark: &str) -> u64 {
    let at = SOURCE.lines().position(|line| line.contains(remark));
    at.expect("the line") as u64 + 1
}

/// The C program in the ways that compilers build it.
fn built() -> impl Iterator<Item = std::path::PathBuf> {
    let ways = [("gcc", "-O0"), ("gcc", "-O2"), ("clang-19", "-O2")];
    ways.into_iter().map(|(compiler, level)| {
        compiled(compiler, "crashing.c", &[level, "-g", "-pthread"]).expect("built")
    })
}

/// That the only crash has these frames of the program's own, and comes to the start of the thread.
fn check(program: &Path, way: &str, signal: i32, first: &[(&str, &str)]) {
    let all = crashes(program, &[way]);
    assert_eq!(all.len(), 1, "{way}: {all:#?}");
    let crash = &all[0];
    assert_eq!(crash["signal"], signal, "{way}");
    assert_eq!(crash["complete"], true, "{way}: {crash:#}");
    let way_up = [("outer", Some("the way down")), ("main", Some("the start"))];
    let found = own(crash, program);
    let names: Vec<&str> = found.iter().map(|(name, _)| name.as_str()).collect();
    let mut expected: Vec<&str> = first.iter().map(|(name, _)| *name).collect();
    expected.push("inner");
    expected.extend(way_up.iter().map(|(name, _)| *name));
    // What begins the program stands below, in some.
    assert_eq!(
        names.get(..expected.len()),
        Some(&expected[..]),
        "{way}: {crash:#}"
    );
    for (name, remark) in first
        .iter()
        .copied()
        .chain([("outer", "the way down"), ("main", "the start")])
    {
        let told = found
            .iter()
            .find(|(found, _)| found == name)
            .expect("found")
            .1;
        if !remark.is_empty() {
            assert_eq!(told, line(remark), "{way}: {name}");
        }
    }
}

/// A program that another one executes is told by its own name.
#[test]
fn who_is_executed_is_told_by_its_own_name() {
    let program = built().next().expect("a program");
    let shell = Path::new("/bin/sh");
    let script = format!("{} null; exit 5", program.display());
    let seen = watched(shell, &["-c", &script]);
    assert_eq!(seen.output.status.code(), Some(5));
    let [crash] = &seen.crashes[..] else {
        panic!("{:#?}", seen.crashes);
    };
    let found = own(crash, &program);
    assert!(found.iter().any(|(name, _)| name == "main"), "{crash:#}");
}

#[test]
fn faults_are_told_with_their_lines() {
    for program in built() {
        check(&program, "write", 11, &[("write_nowhere", "the fault")]);
        check(&program, "divide", 8, &[("divide", "the division")]);
        check(&program, "ud2", 4, &[("no_instruction", "no instruction")]);
        check(&program, "bus", 7, &[("past_the_file", "past the file")]);
        check(
            &program,
            "wild",
            11,
            &[("call_nowhere", "the call of nothing")],
        );
    }
}

#[test]
fn who_aborts_is_told() {
    for program in built() {
        check(&program, "abort", 6, &[("give_up", "the end */")]);
    }
}

#[test]
fn the_programs_own_handler_does_what_it_did() {
    for program in built() {
        // Went on, and ended as it wanted.
        let went_on = crashes(&program, &["handled"]);
        assert_eq!(went_on.len(), 1);
        assert_eq!(went_on[0]["handled"], true);
        assert_eq!(went_on[0]["ended_by_signal"], Value::Null);
        // Ends the program by the signal, which comes once the handler has returned; or from inside of it, and then
        // its frames stand above those of the fault.
        check(&program, "again", 11, &[("write_nowhere", "the fault")]);
        let inside = [("end_by_it", ""), ("write_nowhere", "the fault")];
        check(&program, "inside", 11, &inside);
        check(&program, "exits", 11, &[("write_nowhere", "the fault")]);
        check(&program, "once", 11, &[("write_nowhere", "the fault")]);
    }
}

#[test]
fn a_handler_on_a_stack_of_its_own_finds_it() {
    for program in built() {
        check(&program, "stack", 11, &[("write_nowhere", "the fault")]);
    }
}

#[test]
fn a_stack_that_overflows_is_told() {
    for program in built() {
        let all = crashes(&program, &["overflow"]);
        assert_eq!(all.len(), 1, "{all:#?}");
        let found = own(&all[0], &program);
        assert!(
            found.len() > 10 && found.iter().all(|(name, _)| name == "overflow"),
            "{found:?}"
        );
        assert_eq!(found[1].1, line("the recursion"));
        assert_eq!(all[0]["complete"], false);
    }
}

#[test]
fn a_crash_in_a_thread_is_told() {
    for program in built() {
        let all = crashes(&program, &["thread"]);
        assert_eq!(all.len(), 1, "{all:#?}");
        assert_ne!(all[0]["thread"], all[0]["process"]);
        assert_eq!(all[0]["complete"], true, "{:#}", all[0]);
        let names: Vec<String> = own(&all[0], &program)
            .into_iter()
            .map(|one| one.0)
            .collect();
        assert_eq!(names, ["write_nowhere", "inner", "outer", "thread"]);
    }
}

#[test]
fn what_a_program_ignores_or_blocks_ends_it_as_without() {
    for program in built() {
        for way in ["ignored", "blocked"] {
            assert!(crashes(&program, &[way]).is_empty(), "{way}");
        }
    }
}

#[test]
fn children_and_signals_that_were_sent_are_told() {
    for program in built() {
        let forked = crashes(&program, &["fork"]);
        assert_eq!(forked.len(), 1);
        assert_eq!(forked[0]["ended_by_signal"], Value::Null);
        let names: Vec<String> = own(&forked[0], &program)
            .into_iter()
            .map(|one| one.0)
            .collect();
        assert_eq!(
            names.get(..4),
            Some(&["write_nowhere", "inner", "outer", "main"].map(str::to_owned)[..])
        );
        let sent = crashes(&program, &["sent"]);
        assert_eq!(sent.len(), 1);
        assert_eq!(sent[0]["address"], Value::Null);
    }
}

#[test]
fn what_cpp_terminates_is_told() {
    for level in ["-O0", "-O2"] {
        let program = compiled("g++", "crashing.cpp", &[level, "-g"]).expect("built");
        let all = crashes(&program, &[]);
        assert_eq!(all.len(), 1, "{all:#?}");
        assert_eq!(all[0]["signal"], 6);
        assert_eq!(all[0]["complete"], true, "{:#}", all[0]);
        let found = own(&all[0], &program);
        let names: Vec<&str> = found
            .iter()
            .map(|(name, _)| name.split('(').next().unwrap_or(""))
            .collect();
        assert_eq!(
            names.get(..4),
            Some(&["check", "deep::inner", "outer", "main"][..])
        );
        let source = include_str!("../programs/crashing.cpp");
        let thrown = source
            .lines()
            .position(|line| line.contains("the throw"))
            .expect("a line");
        assert_eq!(found[0].1, thrown as u64 + 1);
    }
}

#[test]
fn rust_panics_that_abort_are_told() {
    for level in ["0", "2"] {
        let flags = ["--edition", "2021", "-g", "-C", "panic=abort", "-C"];
        let level = format!("opt-level={level}");
        let flags = [&flags[..], &[level.as_str()]].concat();
        let program = compiled("rustc", "crashing.rs", &flags).expect("built");
        let all = crashes(&program, &[]);
        assert_eq!(all.len(), 1, "{all:#?}");
        assert_eq!(
            (&all[0]["signal"], &all[0]["complete"]),
            (&6.into(), &true.into())
        );
        let names: Vec<String> = own(&all[0], &program)
            .into_iter()
            .map(|one| one.0)
            .collect();
        let at = names.iter().position(|name| name == "crashing::inner");
        let at = at.unwrap_or_else(|| panic!("{names:?}"));
        assert_eq!(names[at + 1..at + 3], ["crashing::outer", "crashing::main"]);
        // Rust's own handler says what it says, and what is kept is where the stack ended.
        let overflown = crashes(&program, &["overflow"]);
        assert_eq!(overflown[0]["signal"], 11);
        let names: Vec<String> = own(&overflown[0], &program)
            .into_iter()
            .map(|one| one.0)
            .collect();
        assert_eq!(names[1], "crashing::overflow");
    }
}

/// Functions that compilers put into others have frames of their own, at the line of the call that is gone.
#[test]
fn functions_that_were_inlined_are_told() {
    const SOURCE: &str = include_str!("../programs/crashing_inlined.c");
    let line = |remark: &str| {
        let at = SOURCE.lines().position(|line| line.contains(remark));
        at.expect("the line") as u64 + 1
    };
    let stack = [
        ("innermost", "the fault", true),
        ("middle", "the call of innermost", true),
        ("outer", "the call of middle", false),
        ("start", "the call of outer", true),
        ("main", "the call of start", false),
    ];
    for (compiler, version) in [("gcc", "5"), ("gcc", "4"), ("clang-19", "5")] {
        let flags = ["-O2", "-g", &format!("-gdwarf-{version}")];
        let program = compiled(compiler, "crashing_inlined.c", &flags).expect("built");
        let all = crashes(&program, &[]);
        assert_eq!(all.len(), 1, "{all:#?}");
        let frames = all[0]["frames"].as_array().expect("frames").iter();
        let told: Vec<_> = frames
            .map(|frame| (&frame["function"], &frame["line"], &frame["inlined"]))
            .collect();
        for (at, (name, remark, is_inlined)) in stack.into_iter().enumerate() {
            let expected = (&name.into(), &line(remark).into(), &is_inlined.into());
            assert_eq!(told[at], expected, "{compiler}: {told:?}");
        }
    }
}

/// A run that was killed before it wrote anything is named, and the others are told.
#[test]
fn runs_that_cannot_be_read_are_left_out() {
    let program = built().next().expect("a program");
    let folder = tempfile::tempdir().expect("a folder");
    let tomo = |words: &[&str]| {
        let mut command = Command::new(tomo::path().expect("tomo"));
        command.env("TOMO_CACHE_DIR", folder.path().join("cache"));
        command.current_dir(folder.path()).args(words);
        command.output().expect("run")
    };
    let program = program.to_string_lossy().into_owned();
    tomo(&["cover", "--crashes", "-o", "out", "--", &program, "segv"]);
    let early = folder.path().join("out/run-early");
    std::fs::create_dir(&early).expect("a folder");
    std::fs::write(early.join("crashes"), "").expect("written");
    let shown = tomo(&["crashes", "out"]);
    let said = String::from_utf8_lossy(&shown.stderr).into_owned();
    assert!(shown.status.success(), "{said}");
    assert!(said.contains("left out: out/run-early/crashes"), "{said}");
    assert!(String::from_utf8_lossy(&shown.stdout).contains("SIGSEGV"));
    let shown = tomo(&["crashes", "out/run-early"]);
    assert_eq!(shown.status.code(), Some(2));
}
