//! What reports say of programs: the same whatever else was observed, and in whatever way.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use tomo_testkit::corpus::compiled;
use tomo_testkit::coverage::{Covering, Pool, complete};
use tomo_testkit::tomo;

/// A report of what lies in `folder`, in this format.
fn told(folder: &Path, format: &str) -> String {
    let mut report = Command::new(tomo::path().expect("tomo"));
    report.args(["report", "--format", format]).arg(folder);
    let reported = complete(report, b"").expect("a report");
    String::from_utf8(reported.stdout).expect("text")
}

/// lcov's lines, without remarks.
fn report(folder: PathBuf) -> Vec<String> {
    let text = told(&folder, "lcov");
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines.map(str::to_owned).collect()
}

/// Of a run of `program` that is observed in this way.
fn covered(program: &Path, arguments: &[&str], way: &[&str]) -> Vec<String> {
    let covering = Covering::new().expect("a folder");
    let mut command = covering.command(way).expect("tomo");
    command.arg(program).args(arguments);
    complete(command, b"").expect("run");
    report(covering.output())
}

/// Of a run of `program` that is counted.
fn counted(program: &Path) -> Vec<String> {
    let folder = tempfile::tempdir().expect("a folder");
    let mut command = Command::new(tomo::path().expect("tomo"));
    command.env("TOMO_CACHE_DIR", folder.path());
    command.current_dir(folder.path());
    command.args(["count", "--format", "lcov", "--to", "lcov", "--"]);
    command.arg(program);
    complete(command, b"").expect("run");
    let text = std::fs::read_to_string(folder.path().join("lcov")).expect("counts");
    assert!(text.contains("DA:"), "{text}");
    text.lines().map(str::to_owned).collect()
}

/// Where fewer blocks and edges have probes the rest is inferred.
#[test]
fn fewer_probes_tell_what_all_of_them_tell() {
    for flags in [["-O0", "-g"], ["-O2", "-g"]] {
        let program = compiled("gcc", "distant.c", &flags).expect("built");
        for arguments in [&[][..], &["a", "b"], &["a", "b", "c"]] {
            for level in ["block", "edge"] {
                let all = covered(&program, arguments, &["--level", level]);
                assert!(all.iter().any(|line| line.starts_with("DA:")), "{all:?}");
                let way = ["--level", level, "--placement", "reduced"];
                assert_eq!(
                    covered(&program, arguments, &way),
                    all,
                    "{flags:?} {arguments:?}"
                );
            }
        }
    }
}

/// A program that never ran says nothing of lines, and takes nothing of what another one says of them.
#[test]
fn a_program_that_never_ran_hides_nothing_of_another() {
    let program = |flag| compiled("gcc", "distant.c", &["-O0", "-g", flag]).expect("built");
    let (one, other) = (program("-DONE"), program("-DOTHER"));
    let other = other.to_str().expect("text");
    let of = |options: &[&str]| {
        let pool = Pool::with(options, &one).expect("a pool");
        complete(pool.command(&one), b"").expect("run");
        let lines = report(pool.path()).into_iter();
        let lines = lines.filter(|line| line.starts_with("DA:") || line.starts_with('L'));
        lines.collect::<Vec<_>>()
    };
    let alone = of(&[]);
    assert!(
        alone
            .iter()
            .any(|line| line.starts_with("DA:") && line.ends_with(",0"))
    );
    assert_eq!(of(&[other]), alone);
}

/// Two programs of one source that are run once each tell what one tells that is run twice.
#[test]
fn functions_that_several_programs_have_count_once() {
    let program = |flag| compiled("gcc", "distant.c", &["-O0", "-g", flag]).expect("built");
    let (one, other) = (program("-DONE"), program("-DOTHER"));
    let of = |first: &Path, second: &Path| {
        let second = second.to_str().expect("text");
        let pool = Pool::with(&["--level", "edge", second], first).expect("a pool");
        for (program, arguments) in [(first, &["a", "b"][..]), (Path::new(second), &["a"])] {
            let mut command = pool.command(program);
            command.args(arguments);
            complete(command, b"").expect("run");
        }
        let document: Value = serde_json::from_str(&told(&pool.path(), "json")).expect("JSON");
        let files = document["files"].as_array().expect("files").iter();
        let files: Vec<Value> = files.map(|file| file["totals"].clone()).collect();
        (files, document["totals"].clone(), report(pool.path()))
    };
    let (twice, both) = (of(&one, &one), of(&one, &other));
    assert_eq!(twice, both);
    let ran = |what: &str| twice.0[0][what]["ran"].as_u64().expect("a number");
    assert_eq!(ran("functions"), 2);
    // One run alone takes one side of each branch.
    assert!(ran("branches") > ran("functions"), "{twice:?}");
}

/// A function stays in the file that it is written in, also where another one's body begins it.
#[test]
fn a_function_is_where_it_is_written_whatever_is_inlined_there() {
    for compiler in ["gcc", "clang-19"] {
        for level in ["-O0", "-O1", "-O2"] {
            let program = compiled(compiler, "begun.c", &[level, "-g"]).expect("built");
            for lines in [covered(&program, &[], &[]), counted(&program)] {
                let is_begun = |line: &String| ["FN:5,begun", "FN:6,begun"].contains(&&**line);
                let function = lines.iter().position(is_begun).expect("its own lines");
                let name = lines[..function].iter().rfind(|it| it.starts_with("SF:"));
                let name = name.expect("a file");
                assert!(name.ends_with("begun.c"), "{compiler} {level}: {name}");
            }
        }
    }
}

/// Code of a line may go on in a block in which the line does not begin.
#[test]
fn lines_that_go_on_where_ways_join_ran() {
    let source = include_str!("../programs/joined.c");
    let named = |text: &str| {
        1 + source
            .lines()
            .position(|line| line.trim() == text)
            .expect("a line")
    };
    for compiler in ["gcc", "clang-19"] {
        for level in ["-O0", "-O1", "-O2"] {
            let program = compiled(compiler, "joined.c", &[level, "-g"]).expect("built");
            let lines = covered(&program, &[], &[]);
            let counted = counted(&program);
            for text in ["PUT(byte);", "PUT(3);", "PUT(byte + 1);"] {
                let missed = format!("DA:{},0", named(text));
                for lines in [&lines, &counted] {
                    assert!(
                        !lines.contains(&missed),
                        "{compiler} {level}: {text} {lines:?}"
                    );
                }
            }
        }
    }
}

/// Instructions may be executed before the statement that they are of is reached, which then never is.
#[test]
fn lines_of_which_instructions_were_moved_away_did_not_run() {
    let source = include_str!("../programs/hoisted.c");
    let never: Vec<usize> = (1..)
        .zip(source.lines())
        .filter(|(_, line)| line.ends_with("// never"))
        .map(|(number, _)| number)
        .collect();
    assert_eq!(never.len(), 5);
    for compiler in ["gcc", "clang-19"] {
        for level in ["-O0", "-O1", "-Os", "-O2", "-O3"] {
            let program = compiled(compiler, "hoisted.c", &[level, "-g"]).expect("built");
            for lines in [covered(&program, &[], &[]), counted(&program)] {
                let said = |number: &usize| {
                    let start = format!("DA:{number},");
                    lines.iter().find_map(|line| line.strip_prefix(&start))
                };
                let said: Vec<&str> = never.iter().filter_map(said).collect();
                assert!(!said.is_empty(), "{compiler} {level}: {lines:?}");
                assert!(
                    said.iter().all(|hits| *hits == "0"),
                    "{compiler} {level}: {lines:?}"
                );
            }
        }
    }
}
