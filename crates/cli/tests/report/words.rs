//! What commands other than `tomo report` say of runs that are real ones.

use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::bench::Bench;

/// One folder that is not there does not cost the crashes of another.
#[test]
fn crashes_of_one_folder_are_shown_without_those_of_another() {
    let bench = Bench::new();
    bench.build(
        "prog",
        "prog.c",
        "int main(void) { __builtin_trap(); }",
        &["-g"],
    );
    bench.tomo(&["cover", "--crashes", "-o", "out", "--", "./prog"]);
    let said = bench.tomo(&["crashes", "nowhere", "out"]);
    assert_eq!(said.code, Some(0), "{}", said.err);
    assert_eq!(
        said.err,
        "tomo: left out: nowhere: no such file or directory\n"
    );
    assert!(said.out.contains("SIGILL"), "{}", said.out);
}

/// A program that crashes, and two runs of it.
fn two_crashes() -> (Bench, [PathBuf; 2]) {
    let bench = Bench::new();
    let source = "int main(void) { __builtin_trap(); }";
    bench.build("prog", "prog.c", source, &["-g"]);
    let runs = ["one", "other"].map(|out| {
        bench.tomo(&["cover", "--crashes", "-o", out, "--", "./prog"]);
        let mut runs = fs::read_dir(bench.path(out)).expect("a folder");
        let run = runs.next().expect("a run").expect("an entry").path();
        let run = run.strip_prefix(bench.path("")).expect("below");
        run.to_owned()
    });
    (bench, runs)
}

#[test]
fn of_several_runs_it_is_said_which_crashed() {
    let (bench, runs) = two_crashes();
    let said = bench.tomo(&["crashes", "one", "other"]).well();
    let mut lines = said.lines();
    for run in &runs {
        let run = run.display().to_string();
        assert!(lines.any(|line| line == run), "{run} in order in {said}");
        assert!(
            lines
                .next()
                .is_some_and(|line| line.starts_with("process "))
        );
    }
    let said = bench.tomo(&["crashes", "one"]).well();
    assert!(said.starts_with("process "), "{said}");
}

/// What waits for ever, or never ends, is named and left out.
#[test]
fn crashes_that_are_no_files_are_left_out() {
    let (bench, [one, other]) = two_crashes();
    let made = |path: &Path| Command::new("mkfifo").arg(path).status().expect("mkfifo");
    let crashes = bench.path(&one).join("crashes");
    fs::remove_file(&crashes).expect("there");
    assert!(made(&crashes).success());
    let description = bench.path(&other).join("run.json");
    fs::remove_file(&description).expect("there");
    assert!(made(&description).success());
    let said = bench.tomo(&["crashes", "one", "other"]);
    let left_out = format!("tomo: left out: {}/crashes: it is no file\n", one.display());
    assert_eq!((said.code, said.err), (Some(0), left_out));
    assert!(said.out.contains("SIGILL"), "{}", said.out);
    fs::remove_file(&crashes).expect("there");
    std::os::unix::fs::symlink("/dev/zero", &crashes).expect("made");
    let said = bench.tomo(&["crashes", "one"]);
    assert!(said.err.contains("crashes: it is no file"), "{}", said.err);
    assert_eq!(said.code, Some(2));
}

/// The same of counts.
#[test]
fn runs_whose_files_are_none_are_not_waited_for() {
    let bench = Bench::new();
    bench.build("prog", "prog.c", "int main(void) { return 0; }", &["-g"]);
    for file in ["slabs", "run.json", ".record"] {
        bench.tomo(&["count", "-o", file, "--", "./prog"]);
        let mut runs = fs::read_dir(bench.path(file)).expect("a folder");
        let run = runs.next().expect("a run").expect("an entry").path();
        let files = fs::read_dir(&run).expect("a folder");
        let mut files = files.map(|file| file.expect("an entry").path());
        let found = files.find(|path| path.as_os_str().as_bytes().ends_with(file.as_bytes()));
        let found = found.expect("the run has it");
        fs::remove_file(&found).expect("there");
        let made = Command::new("mkfifo").arg(&found).status();
        assert!(made.expect("mkfifo").success());
        let run = run.to_str().expect("UTF-8");
        let said = bench.tomo(&["count", "--show", run]);
        assert!(said.err.contains("it is no file"), "{file}: {}", said.err);
    }
}

/// Of another program's search nothing is used, and nothing is run to find that out.
#[test]
fn a_search_is_not_begun_where_another_programs_is() {
    let bench = Bench::new();
    let source = "int main(int n, char **v) { if (v[1][0] == 'x') return 1; return 0; }";
    for name in ["one", "other"] {
        bench.build(name, &format!("{name}.c"), source, &["-g"]);
    }
    fs::write(bench.path("cases"), "x\na\nb\n").expect("written");
    let search = |cases: &str, program: &str| {
        let words = ["isolate", "--cases", cases, "-o", "search", "--", program];
        bench.tomo(&words)
    };
    assert_eq!(search("cases", "./one").code, Some(0));
    let like = "x\na\nb => like sh -c 'touch ran'\n";
    fs::write(bench.path("others"), like).expect("written");
    let said = search("others", "./other");
    assert_eq!(said.code, Some(2));
    let words = "search holds another search (of another program, or with other arguments): go on with its own, or choose another folder (-o)";
    assert!(said.err.contains(words), "{}", said.err);
    assert!(!bench.path("ran").exists());
}

/// What is to be read by programs stands alone on standard output, if it is to be there.
#[test]
fn a_search_is_told_as_json_where_that_goes_to_standard_output() {
    let bench = Bench::new();
    let source = "int main(int n, char **v) { if (v[1][0] == 'x') return 1; return 0; }";
    bench.build("prog", "prog.c", source, &["-g"]);
    fs::write(bench.path("cases"), "x\na\nb\n").expect("written");
    let words = ["isolate", "--cases", "cases", "--json", "-", "--", "./prog"];
    let said = bench.tomo(&words);
    let document: serde_json::Value = serde_json::from_str(&said.out).expect("JSON");
    assert_eq!(document["schema"], "tomo.isolate/1");
    assert!(!bench.path("-").exists());
}

/// What a search has left may be damaged, or be something else.
#[test]
fn a_search_that_cannot_be_read_is_named() {
    let bench = Bench::new();
    bench.build("prog", "prog.c", "int main(void) { return 0; }", &["-g"]);
    fs::write(bench.path("cases"), "x\ny => exit 1\n").expect("written");
    fs::create_dir(bench.path("search")).expect("made");
    let state = bench.path("search/state.json");
    let search = || {
        let words = [
            "isolate", "--cases", "cases", "-o", "search", "--", "./prog",
        ];
        bench.tomo(&words).err
    };
    for (text, why) in [("{}", "missing field `version`"), ("", "EOF")] {
        fs::write(&state, text).expect("written");
        let said = search();
        assert!(said.contains("search/state.json: "), "{said}");
        assert!(said.contains(why), "{said}");
        assert!(
            said.ends_with("; begin anew in another folder (-o)\n"),
            "{said}"
        );
    }
    fs::remove_file(&state).expect("there");
    let made = Command::new("mkfifo").arg(&state).status().expect("mkfifo");
    assert!(made.success());
    assert!(search().contains("state.json: it is no file; "));
}

/// Who asks for the calls of a function that made none is told so, and not shown nothing.
#[test]
fn calls_that_were_not_traced_are_told() {
    let bench = Bench::new();
    bench.build("prog", "prog.c", "int main(void) { return 0; }", &["-g"]);
    bench
        .tomo(&["trace", "-o", "traces", "--", "./prog"])
        .well();
    let mut traces = fs::read_dir(bench.path("traces")).expect("a folder");
    let trace = traces.next().expect("a trace").expect("an entry").path();
    let trace = trace.to_str().expect("text");
    let shown = |function| bench.tomo(&["trace", "show", trace, "--function", function]);
    assert!(shown("main").well().starts_with("main"));
    let said = shown("mian");
    assert_eq!((said.code, said.out.as_str()), (Some(2), ""));
    assert!(
        said.err.contains("no call of \"mian\" was traced"),
        "{}",
        said.err
    );
}

#[test]
fn a_folder_of_no_trace_is_told() {
    let bench = Bench::new();
    fs::create_dir(bench.path("traces")).expect("made");
    let said = bench.tomo(&["trace", "show", "traces"]);
    let words = "tomo: traces is no trace; a trace's folder is called trace-…\n";
    assert_eq!((said.code, said.err.as_str()), (Some(2), words));
}

/// Each failing case has a reason of its own, so none of them predicts more than one failure.
#[test]
fn failures_of_different_reasons_are_told_to_be_searched_one_by_one() {
    let bench = Bench::new();
    let source = "int main(int n, char **v) {
    if (v[1][0] == 'x') return 1;
    if (v[1][0] == 'y') return 1;
    return 0;
}";
    bench.build("prog", "prog.c", source, &["-g"]);
    let passing = "abcdefghijklmnop"
        .chars()
        .map(|letter| format!("{letter}\n"));
    let cases = format!("x\ny\n{}", passing.collect::<String>());
    fs::write(bench.path("cases"), cases).expect("written");
    let said = bench.tomo(&["isolate", "--cases", "cases", "--", "./prog"]);
    assert_eq!(said.code, Some(1), "{}", said.out);
    let words = "What is true in one failure of several does not count: if they have different reasons, search them one by one.";
    assert!(said.out.contains(words), "{}", said.out);
}

/// Of two branches at one line the table says which is which, as the document calls them.
#[test]
fn branches_at_one_line_are_told_apart() {
    let bench = Bench::new();
    let source = "int main(int n, char **v) { if (n > 1) n++; if (n > 5) n++;
    return n > 9; }";
    bench.build("prog", "prog.c", source, &["-g", "-O0"]);
    let table = bench.tomo(&["predicates", "--", "./prog"]).err;
    let lines = table.lines().filter(|line| line.starts_with("prog.c:1 "));
    let places: Vec<&str> = lines
        .filter_map(|line| line.split_whitespace().nth(1))
        .collect();
    assert_eq!(places.len(), 2, "{table}");
    let addresses = places.iter().all(|place| place.starts_with("0x"));
    assert!(addresses && places[0] != places[1], "{table}");
}

/// Where a name that is asked for is none of a chain, that is not left to be guessed.
#[test]
fn chains_that_nobody_has_are_told() {
    let bench = Bench::new();
    bench.build("prog", "prog.c", "int main(void) { return 0; }", &["-g"]);
    let words = "there is no chain that --root, --leaf and --through ask for";
    for (name, is_none) in [("nobody", true), ("main", false)] {
        let said = bench.tomo(&["chains", "--root", name, "--", "./prog"]);
        assert_eq!(said.code, Some(0), "{}", said.err);
        assert_eq!(said.err.contains(words), is_none, "{}", said.err);
    }
}

#[test]
fn a_path_of_one_block_has_one() {
    let bench = Bench::new();
    bench.build("prog", "prog.c", "int main(void) { return 0; }", &["-g"]);
    let said = bench.tomo(&["paths", "--", "./prog"]);
    assert!(said.err.contains("main, 1 block\n"), "{}", said.err);
}

/// No witnesses at all are fewer than any trace takes, not as many as it likes.
#[test]
fn a_limit_of_nothing_is_refused() {
    let bench = Bench::new();
    let said = bench.tomo(&["trace", "--limit", "0", "--", "true"]);
    assert_eq!((said.code, said.out.as_str()), (Some(2), ""));
    assert!(
        said.err.contains("invalid value '0' for '--limit <K>'"),
        "{}",
        said.err
    );
}

/// Whatever ends a search ends what it runs: the pipe has its end when nobody is left who could write.
#[test]
fn runs_of_a_search_end_with_it() {
    let bench = Bench::new();
    bench.build("prog", "prog.c", "int main(void) { return 0; }", &["-g"]);
    let case = "%timeout 100000\nx => like sh -c 'exec 3>runs; cat hold'\n";
    fs::write(bench.path("cases"), case).expect("written");
    let script = "mkfifo runs hold
\"$0\" isolate --cases cases -o search -- ./prog 2> said &
exec 4< runs
kill -s $1 $!
cat <&4
rm runs hold
echo over";
    for signal in ["TERM", "KILL"] {
        let said = bench.shell(script, &[signal]);
        assert_eq!(said.out, "over\n", "{signal}: {}", said.err);
    }
}

/// Names of symbols are others': in no table do they steer the terminal or begin a line.
#[test]
fn names_in_tables_do_nothing_to_a_terminal() {
    let bench = Bench::new();
    let source = "__attribute__((noipa)) int odd(int n) { return n > 1 ? n + odd(n - 1) : 7; }\n\
                  int main(int n, char **v) { return odd(n + 3) + !v; }";
    bench.build("made", "prog.c", source, &["-O1"]);
    let mut objcopy = Command::new("objcopy");
    objcopy.args(["--redefine-sym", "odd=e\x1b[31mRED\nrow"]);
    let renamed = objcopy.args([bench.path("made"), bench.path("prog")]);
    assert!(renamed.status().expect("objcopy (binutils)").success());
    for command in ["count", "chains", "paths", "predicates"] {
        let said = bench.tomo(&[command, "--", "./prog"]);
        let told = format!("{}{}", said.out, said.err);
        assert!(
            told.contains("e\u{fffd}[31mRED\u{fffd}row"),
            "{command}: {told}"
        );
        assert!(!told.contains('\u{1b}'), "{command}: {told}");
    }
    bench.tomo(&["trace", "--", "./prog"]);
    let runs = fs::read_dir(bench.path("tomo-traces")).expect("traced");
    let run = runs.map(|run| run.expect("an entry").path()).next();
    let run = run.expect("a run");
    let said = bench.tomo(&["trace", "show", run.to_str().expect("UTF-8")]);
    let told = format!("{}{}", said.out, said.err);
    assert!(told.contains("e\u{fffd}[31mRED\u{fffd}row"), "{told}");
    assert!(!told.contains('\u{1b}'), "{told}");
}

/// What `dwz -m` has put into a file that programs share is not read: that is told.
#[test]
fn a_file_that_has_shared_debug_information_is_named_as_not_read() {
    let bench = Bench::new();
    let shared = ["-g", "-shared", "-nostdlib", "-Wl,--build-id=0x01020304"];
    bench.build(
        "common.debug",
        "common.c",
        "int common(void) { return 0; }",
        &shared,
    );
    let link = r#"__asm__(".pushsection .gnu_debugaltlink\n.string \"common.debug\"\n.byte 1, 2, 3, 4\n.popsection");"#;
    let source = format!("{link}\nint main(void) {{ return 0; }}");
    bench.build("prog", "prog.c", &source, &["-g"]);
    bench.tomo(&["cover", "--", "./prog"]);
    let said = bench.tomo(&["report"]).well();
    let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
    let told = "common.debug, in which dwz put what its debug information shares with others";
    assert!(said.contains(told), "{said}");
    let said = bench.tomo(&["count", "--format", "source", "--", "./prog"]);
    assert!(said.err.contains(told), "{}", said.err);
}
