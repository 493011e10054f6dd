//! Functions of the source, held against what `gcov` counts in builds that are not optimised: compilers put most of their bodies in
//! place of calls, of some they keep no code of their own, and nothing of that changes which of them ran.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;
use tomo_testkit::corpus::{Compiler, Level, Recipe, Source, Workload, build, compiled};
use tomo_testkit::coverage::{Covering, complete};
use tomo_testkit::tomo;

/// Whether functions ran, by the last name of their file and theirs for linkers.
type Functions = BTreeMap<(String, String), bool>;

/// Functions that are called only where nothing is left of their bodies, neither code of its own nor an entry in the debug
/// information: a store that was merged with others, a constant. Nobody can tell that they ran.
const WITHOUT_TRACE: [&str; 3] = ["BZ2_bsInitWrite", "chosen_plain", "isCint"];

fn last(path: &str) -> String {
    path.rsplit('/').next().unwrap_or_default().to_owned()
}

fn run(mut command: Command, workload: &Workload) {
    command.args(&workload.args);
    if let Some(folder) = &workload.cwd {
        command.current_dir(folder);
    }
    complete(command, workload.stdin.as_deref().unwrap_or_default()).expect("run");
}

/// What gcov counts.
fn by_gcov(source: Source) -> Functions {
    let mut recipe = Recipe::new(source, Compiler::Gcc, Level::O0);
    recipe.extra = vec!["--coverage".into()];
    let built = build(&recipe).expect("built");
    // Counters go where nobody else's are, beside the notes that the compiler has left.
    let folder = tempfile::tempdir().expect("a folder");
    for workload in &built.workloads {
        let mut command = Command::new(&built.program);
        command.env("GCOV_PREFIX", folder.path());
        command.env("GCOV_PREFIX_STRIP", "99");
        run(command, workload);
    }
    let left = fs::read_dir(built.program.parent().expect("a folder")).expect("a folder");
    let left = left.map(|entry| entry.expect("an entry").path());
    for notes in left.filter(|path| path.extension().is_some_and(|it| it == "gcno")) {
        let to = folder.path().join(notes.file_name().expect("a name"));
        fs::copy(&notes, to).expect("copied");
    }
    let counters = fs::read_dir(folder.path()).expect("a folder");
    let counters = counters.map(|entry| entry.expect("an entry").path());
    let counters = counters.filter(|path| path.extension().is_some_and(|it| it == "gcda"));
    let mut gcov = Command::new("gcov");
    gcov.args(["--json-format", "--stdout"]).args(counters);
    gcov.current_dir(folder.path());
    let told = complete(gcov, b"").expect("gcov (it comes with gcc)");
    let mut functions = Functions::new();
    for document in String::from_utf8(told.stdout).expect("text").lines() {
        let document: Value = serde_json::from_str(document).expect("JSON");
        for file in document["files"].as_array().expect("files") {
            let name = last(file["file"].as_str().expect("a path"));
            // Of the library's headers a build that is optimised has other instances.
            if !name.ends_with(".c") && !name.ends_with(".cpp") {
                continue;
            }
            for function in file["functions"].as_array().expect("functions") {
                let called = function["name"].as_str().expect("a name").to_owned();
                let ran = function["execution_count"].as_u64().expect("a count") > 0;
                *functions.entry((name.clone(), called)).or_default() |= ran;
            }
        }
    }
    functions
}

/// What a report of the same runs of another build says.
fn by_tomo(recipe: &Recipe) -> Functions {
    let built = build(recipe).expect("built");
    let covering = Covering::new().expect("a folder");
    for workload in &built.workloads {
        let mut command = covering.command(&[]).expect("tomo");
        command.arg(&built.program);
        run(command, workload);
    }
    told(&covering.output())
}

fn told(folder: &Path) -> Functions {
    let mut report = Command::new(tomo::path().expect("tomo"));
    report.args(["report", "--format", "lcov"]).arg(folder);
    let text = complete(report, b"").expect("a report").stdout;
    let text = String::from_utf8(text).expect("text");
    let (mut file, mut functions) = (String::new(), Functions::new());
    for line in text.lines() {
        if let Some(path) = line.strip_prefix("SF:") {
            file = last(path);
        }
        if let Some(function) = line.strip_prefix("FNDA:") {
            let (hits, name) = function.split_once(',').expect("a name");
            functions.insert((file.clone(), name.to_owned()), hits != "0");
        }
    }
    functions
}

/// Holds builds by both compilers against what gcov counts; of so many in a hundred functions both must know.
fn check(source: Source, at_least: usize) {
    let expected = by_gcov(source);
    assert!(expected.values().any(|ran| *ran) && expected.values().any(|ran| !ran));
    let compilers = [Compiler::Gcc, Compiler::Clang];
    let all = compilers
        .iter()
        .flat_map(|it| [(*it, Level::O2), (*it, Level::O3)]);
    for (compiler, level) in all {
        hold(&Recipe::new(source, compiler, level), &expected, at_least);
    }
}

fn hold(recipe: &Recipe, expected: &Functions, at_least: usize) {
    let found = by_tomo(recipe);
    let both = expected.iter().filter_map(|(function, ran)| {
        let found = found.get(function)?;
        Some((function, *ran, *found))
    });
    let both: Vec<_> = both.collect();
    let without_trace = |function: &str, ran: bool| ran && WITHOUT_TRACE.contains(&function);
    let differing = both
        .iter()
        .filter(|((_, function), ran, found)| ran != found && !without_trace(function, *ran));
    let differing: Vec<_> = differing.collect();
    assert!(differing.is_empty(), "{}: {differing:?}", recipe.name());
    assert!(
        both.len() * 100 >= expected.len() * at_least,
        "{}: {} of {} functions",
        recipe.name(),
        both.len(),
        expected.len()
    );
}

/// Units that were compiled together refer to each other; some leave the rest in files of their own.
#[test]
fn functions_are_known_wherever_debug_information_is() {
    let source = Source::CFeatures;
    let expected = by_gcov(source);
    for (compiler, extra) in [
        (Compiler::Gcc, &["-flto"][..]),
        (Compiler::Gcc, &["-gdwarf-4"]),
        (Compiler::Gcc, &["-gsplit-dwarf"]),
        (Compiler::Clang, &["-gdwarf-4"]),
        (Compiler::Clang, &["-gsplit-dwarf"]),
        (Compiler::Clang, &["-flto", "-fuse-ld=lld-19"]),
    ] {
        let mut recipe = Recipe::new(source, compiler, Level::O2);
        recipe.extra = extra.iter().map(|&flag| flag.into()).collect();
        hold(&recipe, &expected, 70);
    }
}

/// What a report says of a program that was built with these flags and run once.
fn document(compiler: &str, source: &str, flags: &[&str]) -> Value {
    let program = compiled(compiler, source, flags).expect("built");
    let covering = Covering::new().expect("a folder");
    let mut command = covering.command(&[]).expect("tomo");
    command.arg(&program);
    complete(command, b"").expect("run");
    let mut report = Command::new(tomo::path().expect("tomo"));
    report
        .args(["report", "--format", "json"])
        .arg(covering.output());
    let json = complete(report, b"").expect("a report").stdout;
    serde_json::from_slice(&json).expect("JSON")
}

/// The functions of such a program that come from its own source, each time that the report has one: at which line of `lines`, in what
/// state.
fn reported(compiler: &str, source: &str, flags: &[&str], lines: &[usize]) -> Vec<(usize, String)> {
    let json = document(compiler, source, flags);
    let files = json["files"].as_array().expect("files").iter();
    let own = files.filter(|file| last(file["path"].as_str().expect("a path")) == source);
    let functions = own.flat_map(|file| file["functions"].as_array().expect("a list"));
    let place = |function: &Value| {
        let line = function["line"].as_u64().expect("a line") as usize;
        // A function begins with the first line with code from where it is declared on.
        let declared = lines.iter().copied().rfind(|start| *start <= line);
        let state = function["state"].as_str().expect("a state");
        (declared.unwrap_or(0), state.to_owned())
    };
    let mut found: Vec<_> = functions.map(place).collect();
    found.sort();
    found
}

/// What a program says itself of its functions, at the ends of the lines that declare them.
fn marked(source: &str) -> Vec<(usize, String)> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("programs")
        .join(source);
    let text = fs::read_to_string(path).expect("a source");
    let line = |(at, line): (usize, &str)| {
        let states = [("// ran", "ran"), ("// missed", "not-run")];
        let state = states.iter().find(|(mark, _)| line.ends_with(mark))?.1;
        Some((at + 1, state.to_owned()))
    };
    text.lines().enumerate().filter_map(line).collect()
}

/// Whatever symbols compilers give them, copies they make of them, parts they split off, and wherever they put their bodies.
#[test]
fn each_function_stands_once_and_where_it_is_declared() {
    let source = "declared.cpp";
    let expected = marked(source);
    let lines: Vec<usize> = expected.iter().map(|it| it.0).collect();
    assert_eq!(lines.len(), 14, "all functions are marked");
    for (compiler, flags) in [
        ("g++", &["-O0", "-g"][..]),
        ("g++", &["-O1", "-g"]),
        ("g++", &["-O2", "-g"]),
        ("g++", &["-O3", "-g", "-gdwarf-4"]),
        ("g++", &["-O2", "-g", "-flto"]),
        ("g++", &["-O2", "-g", "-gsplit-dwarf"]),
        ("clang++-19", &["-O0", "-g"]),
        ("clang++-19", &["-O2", "-g"]),
        ("clang++-19", &["-O3", "-g", "-gdwarf-4"]),
        ("clang++-19", &["-O2", "-g", "-flto", "-fuse-ld=lld-19"]),
    ] {
        let found = reported(compiler, source, flags, &lines);
        assert_eq!(found, expected, "{compiler} {flags:?}");
    }
}

/// Of two bodies that end alike GCC makes one end, and gives it to one of them, which may be the one that is never entered.
#[test]
fn a_body_of_which_just_the_common_end_ran_is_not_known_to_have_run() {
    let states = |level| {
        let found = reported("gcc", "merged.c", &[level, "-g"], &[6, 13, 20, 28]);
        found.into_iter().map(|it| it.1).collect::<Vec<_>>()
    };
    assert_eq!(states("-O1"), ["ran", "not-run", "ran", "ran"]);
    for level in ["-O2", "-Os"] {
        assert_eq!(states(level), ["ran", "unknown", "ran", "ran"], "{level}");
    }
}

/// Of functions that are alike compilers and linkers keep one, of which nobody can tell as which it was called.
#[test]
fn code_that_is_several_functions_goes_by_all_their_names() {
    let folding = [
        "-O2",
        "-ffunction-sections",
        "-fuse-ld=lld-19",
        "-Wl,--icf=all",
    ];
    for (compiler, flags) in [("gcc", &["-O2"][..]), ("clang-19", &folding)] {
        for debug in ["-g", "-g0"] {
            let document = document(compiler, "folded.c", &[flags, &[debug]].concat());
            let list = match debug {
                "-g" => &document["files"][0]["functions"],
                _ => &document["modules"][0]["functions"],
            };
            let titles = list.as_array().expect("a list").iter();
            let titles: Vec<_> = titles.filter_map(|it| it["title"].as_str()).collect();
            assert!(
                titles.contains(&"first (also second)") && !titles.contains(&"second"),
                "{compiler} {debug}: {titles:?}"
            );
        }
    }
}

/// Where the linker has thrown a function away its debug information may remain, at address 0 and up: the bodies that were put into it are
/// then nobody's, however long they are.
#[test]
fn bodies_of_functions_that_were_thrown_away_are_nobodys() {
    let flags = ["-O1", "-g", "-ffunction-sections", "-Wl,--gc-sections"];
    for compiler in ["gcc", "clang-19"] {
        for version in ["-gdwarf-4", "-gdwarf-5"] {
            let flags = [&flags[..], &[version]].concat();
            let document = document(compiler, "discarded.c", &flags);
            let files = document["files"].as_array().expect("files").iter();
            let functions = files.flat_map(|file| file["functions"].as_array().expect("a list"));
            let name = |function: &Value| function["name"].as_str().map(str::to_owned);
            let known: Vec<String> = functions.filter_map(name).collect();
            assert_eq!(known, ["kept_body", "main"], "{compiler} {version}");
        }
    }
}

#[test]
fn functions_of_lua_ran_as_gcov_counts() {
    check(Source::Lua, 98);
}

#[test]
fn functions_of_bzip2_ran_as_gcov_counts() {
    check(Source::Bzip2, 90);
}

#[test]
fn functions_of_the_c_features_ran_as_gcov_counts() {
    check(Source::CFeatures, 85);
}

/// GCC names functions that other units cannot call otherwise than linkers do, so that not all are found.
#[test]
fn functions_of_the_cpp_features_ran_as_gcov_counts() {
    check(Source::CppFeatures, 50);
}
