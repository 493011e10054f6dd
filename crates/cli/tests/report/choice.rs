//! What is chosen by flags: files, names, demands.

use crate::bench::Bench;
use crate::formats::lcov;

#[test]
fn files_are_chosen_and_renamed() {
    let bench = Bench::with_a_run();
    let files = |flags: &[&str]| -> Vec<String> {
        let said = bench.tomo(&[&["report", "--format", "lcov"], flags].concat());
        lcov(&said.well()).into_keys().collect()
    };
    let (a, b) = ("/src/demo/a.c", "/src/demo/lib/b.h");
    assert_eq!(files(&[]), [a, b]);
    assert_eq!(files(&["--include", "demo/*.c"]), [a]);
    assert_eq!(files(&["--exclude", "lib"]), [a]);
    assert_eq!(files(&["--include", "*.c", "--include", "*.h"]), [a, b]);
    assert_eq!(files(&["--include", "demo", "--exclude", "*.c"]), [b]);
    assert_eq!(
        files(&[
            "--replace-src-path",
            "/src/demo:/here",
            "--include",
            "/here/lib"
        ]),
        ["/here/lib/b.h"]
    );
    let nothing = bench.tomo(&["report", "--format", "lcov", "--include", "nothing"]);
    assert_eq!(nothing.code, Some(0));
    assert_eq!(nothing.err, "tomo: no source file matches --include\n");
    assert!(lcov(&nothing.out).is_empty());
    let bad = bench.tomo(&["report", "--include", "["]);
    let words = "tomo: \"[\" is no pattern: unclosed character class; missing ']'\n";
    assert_eq!(bad.err, words, "in the user's words");
    let twice = ["report", "--format", "html", "-o", "one", "--html", "other"];
    assert_eq!(bench.tomo(&twice).code, Some(2));
    assert!(!bench.path("one").exists() && !bench.path("other").exists());
    let piped = bench.tomo(&["report", "--format", "html", "-o", "-"]);
    let words = "tomo: pages are many files: name a folder for them by --output\n";
    assert_eq!((piped.code, piped.err.as_str()), (Some(2), words));
    let usual = bench.tomo(&["report", "--format", "html"]);
    let words = "tomo: the pages begin at tomo-html/index.html\n";
    assert_eq!((usual.code, usual.err.as_str()), (Some(0), words));
    for bad in [
        ["--include", "["],
        ["--replace-src-path", "nothing"],
        ["--fail-under-lines", "101"],
    ] {
        assert_eq!(
            bench.tomo(&["report", bad[0], bad[1]]).code,
            Some(2),
            "{bad:?}"
        );
    }
}

/// Whoever asks for all of it is told by the exit code that it is not there.
#[test]
fn what_is_left_out_fails_where_nothing_may_be() {
    let bench = Bench::with_a_run();
    assert_eq!(bench.tomo(&["report", "--strict"]).code, Some(0));
    let broken = bench.path("tomo-out").join("broken.record");
    std::fs::write(broken, "nothing").expect("written");
    let whole = bench.tomo(&["report"]);
    let said = bench.tomo(&["report", "--strict"]);
    assert_eq!((whole.code, said.code), (Some(0), Some(1)));
    assert_eq!(said.out, whole.out, "the rest is shown all the same");
    let words = "broken.record: it is no file of this kind that tomo has made";
    assert!(said.err.contains(words), "{}", said.err);
}

/// A program is started whatever the environment says about how it is to be observed.
#[test]
fn flags_of_the_environment_that_are_none_are_left_out() {
    let bench = Bench::new();
    bench.build("prog", "prog.c", "int main(void) { return 7; }", &[]);
    let cover = ["cover", "-o", "out", "--", "./prog"];
    let said = bench.tomo_with(("TOMO_OPTIONS", "level=bogus"), &cover);
    assert_eq!(said.code, Some(7), "{}", said.err);
    let words = "tomo: TOMO_OPTIONS is left out: invalid value 'bogus' for '--level";
    assert!(said.err.starts_with(words), "{}", said.err);
    assert_eq!(said.err.lines().count(), 1, "{}", said.err);
    assert!(bench.path("out").is_dir(), "it is observed");
}

/// Where records go the flags say, if they do; all else that the environment says counts.
#[test]
fn a_folder_of_the_environment_makes_way_for_a_pool() {
    let bench = Bench::new();
    bench.build("prog", "prog.c", "int main(void) { return 7; }", &[]);
    let runs = [
        (
            ("TOMO_OPTIONS", "output=out:level=edge"),
            ["--pool", "pool"],
        ),
        (("TOMO_OPTIONS", "pool=other:level=edge"), ["-o", "own"]),
    ];
    for (options, [flag, folder]) in runs {
        let said = bench.tomo_with(options, &["cover", flag, folder, "--", "./prog"]);
        assert_eq!((said.code, said.err.as_str()), (Some(7), ""));
        let table = bench.tomo(&["report", folder]).well();
        assert!(table.contains("edge level"), "{table}");
    }
    assert!(!bench.path("out").exists() && !bench.path("other").exists());
}

/// A report with names from another machine, where that was to be mended, is not what was asked for.
#[test]
fn a_replacement_that_no_name_begins_with_is_said() {
    let bench = Bench::with_a_run();
    let replaced = |from: &str| {
        let said = bench.tomo(&["report", "--replace-src-path", from]);
        assert_eq!(said.code, Some(0));
        said.err
    };
    assert_eq!(replaced("/src/demo:/here"), "");
    let said = "tomo: no source file's name begins as in --replace-src-path /scr/demo:/here\n";
    assert_eq!(replaced("/scr/demo:/here"), said);
}

#[test]
fn a_dash_is_standard_output() {
    let bench = Bench::with_a_run();
    let report = |flags: &[&str]| bench.tomo(&[&["report", "--format", "json"], flags].concat());
    assert_eq!(report(&["-o", "-"]).well(), report(&[]).well());
    bench.build("prog", "prog.c", "int main(void) { return 7; }", &[]);
    let map = |flags: &[&str]| bench.tomo(&[&["map", "./prog", "--functions"], flags].concat());
    assert_eq!(map(&["-o", "-"]).well(), map(&[]).well());
    let said = bench.tomo(&["count", "--format", "json", "--to", "-", "--", "./prog"]);
    assert_eq!((said.code, said.err.as_str()), (Some(7), ""));
    let document = serde_json::from_str::<serde_json::Value>(&said.out);
    assert!(
        document.is_ok_and(|document| document.is_object()),
        "{}",
        said.out
    );
    assert!(!bench.path("-").exists());
}

#[test]
fn demands_are_held_against_what_is_shown() {
    let bench = Bench::with_a_run();
    // 7 of 10 lines ran, of those in a.c 6 of 8.
    for (demand, code) in [("70", 0), ("70.1", 1), ("0", 0), ("100%", 1)] {
        assert_eq!(
            bench.tomo(&["report", "--fail-under-lines", demand]).code,
            Some(code),
            "{demand}"
        );
    }
    let of_a = bench.tomo(&["report", "--fail-under-lines", "75", "--include", "a.c"]);
    assert_eq!(of_a.code, Some(0));
    let nothing = bench.tomo(&["report", "--fail-under-lines", "1", "--include", "nothing"]);
    assert_eq!(nothing.code, Some(1), "no lines are not enough lines");
}

/// What was not asked to be shown was observed all the same.
#[test]
fn where_no_file_is_chosen_that_is_not_for_want_of_observation() {
    let bench = Bench::with_a_run();
    let said = bench.tomo(&["report", "--include", "nothing"]);
    assert!(
        said.out
            .contains("\nNothing of what was observed is shown.\n"),
        "{}",
        said.out
    );
    assert!(!said.out.contains("of what was asked for"), "{}", said.out);
}

/// Shares are not taken for less than they are, nor said to be what they have not reached.
#[test]
fn a_share_that_is_reached_is_enough() {
    let bench = Bench::new();
    let lines = |count: usize| "__asm__ volatile (\"nop\");\n".repeat(count);
    let (ran, missed) = (lines(26), lines(19));
    let source =
        format!("void unused(void)\n{{\n{missed}}}\nint main(void)\n{{\n{ran}return 0;\n}}\n");
    bench.build("prog", "prog.c", &source, &["-g", "-O0"]);
    assert_eq!(
        bench.tomo(&["cover", "-o", "out", "--", "./prog"]).code,
        Some(0)
    );
    // 29 of 50 times a hundred is less than 58, as computers count.
    let enough = bench.tomo(&["report", "out", "--fail-under-lines", "58"]);
    assert!(enough.out.contains("29/50"), "{}", enough.out);
    assert_eq!((enough.code, enough.err.as_str()), (Some(0), ""));
    let more = bench.tomo(&["report", "out", "--fail-under-lines", "58.01"]);
    let words = "tomo: 29 of 50 lines ran (58.0 %), 58.01 % are demanded\n";
    assert_eq!((more.code, more.err.as_str()), (Some(1), words));
}

/// A path that is mistyped is not one that was not needed.
#[test]
fn a_program_that_is_not_there_is_named() {
    let bench = Bench::with_a_run();
    let said = bench.tomo(&["report", "--program", "nowhere"]);
    assert_eq!((said.code, said.out.as_str()), (Some(2), ""));
    assert_eq!(
        said.err,
        "tomo: --program nowhere: no such file or directory\n"
    );
}
