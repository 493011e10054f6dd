//! Lines that the source itself asks to be left out.

use std::collections::BTreeSet;

use crate::bench::Bench;
use crate::formats::lcov;

const SOURCE: &str = "\
#include <stdlib.h>

// LCOV_EXCL_START: for debuggers
static int never(int n)
{
    return n + 1;
}
// LCOV_EXCL_STOP

static inline __attribute__((always_inline)) int helps(int n) // GCOVR_EXCL_LINE
{
    return n / 2;
}

int main(int argc, char **argv)
{
    if (argc > 1) // LCOV_EXCL_BR_LINE
        abort(); // LCOV_EXCL_LINE
    if (argc > 2)
        return never(helps(argc));
    return 0;
}
";

fn covered() -> Bench {
    let bench = Bench::new();
    bench.build("prog", "prog.c", SOURCE, &["-g", "-O0"]);
    let run = bench.tomo(&["cover", "-o", "out", "--", "./prog"]);
    assert_eq!((run.code, run.err.as_str()), (Some(0), ""));
    bench
}

/// The numbers of the lines that a tracefile names by this tag, or what its records name in this field.
fn named(tracefile: &str, tag: &str, field: usize) -> BTreeSet<String> {
    let records = lcov(tracefile).into_values().flatten();
    let records = records.filter(|(known, _)| known == tag);
    records.map(|(_, fields)| fields[field].clone()).collect()
}

#[test]
fn what_the_source_marks_is_left_out_where_that_is_asked_for() {
    let bench = covered();
    let report = ["report", "out", "--include", "prog.c", "--format", "lcov"];
    let all = bench.tomo(&report);
    let rest = bench.tomo(&[&report[..], &["--exclude-marked"]].concat());
    assert_eq!((all.code, rest.code), (Some(0), Some(0)));
    assert!(!all.err.contains("marks"), "{}", all.err);
    let told = "tomo: Left out as the source marks it: 4 lines in 1 file.\n";
    assert!(rest.err.ends_with(told), "{}", rest.err);
    let gone = |tag: &str, field: usize| -> Vec<String> {
        let (all, rest) = (named(&all.out, tag, field), named(&rest.out, tag, field));
        assert!(rest.is_subset(&all));
        all.difference(&rest).cloned().collect()
    };
    assert_eq!(gone("DA", 0), ["18", "5", "6", "7"].map(String::from));
    assert_eq!(gone("FN", 1), ["helps", "never"].map(String::from));
    assert_eq!(gone("BRDA", 0), ["17"].map(String::from));
}

#[test]
fn what_was_left_out_is_said_in_every_view() {
    let bench = covered();
    let report = ["report", "out", "--include", "prog.c", "--exclude-marked"];
    let told = "Left out as the source marks it: 4 lines in 1 file.";
    let text = bench.tomo(&[&report[..], &["--functions"]].concat()).well();
    assert!(text.contains(told) && !text.contains("never"), "{text}");
    let document = bench.tomo(&[&report[..], &["--format", "json"]].concat());
    let document: serde_json::Value = serde_json::from_str(&document.well()).expect("json");
    let left_out =
        serde_json::json!({ "lines": 4, "files": 1, "newer": 0, "open": 0, "unread": 0 });
    assert_eq!(document["left_out"], left_out);
    let lines = &document["totals"]["lines"];
    assert_eq!(document["modules"][0]["totals"]["lines"], *lines);
    let functions = document["modules"][0]["functions"].as_array();
    let is_there = |title| functions.is_some_and(|all| all.iter().any(|it| it["title"] == title));
    assert!(is_there("main") && !is_there("never"));
    let pages = bench.tomo(&[&report[..], &["--html", "pages"]].concat());
    assert_eq!(pages.code, Some(0));
    let index = std::fs::read_to_string(bench.path("pages/index.html")).expect("pages");
    assert!(index.contains(told));
    // Without its source nothing is known of marks.
    std::fs::remove_file(bench.path("prog.c")).expect("removed");
    let text = bench.tomo(&report).well();
    let told = "No line with code is left out as the source marks it; the source of 1 file cannot be read, so no mark in it is known.";
    let words: Vec<&str> = text.split_whitespace().collect();
    assert!(words.join(" ").contains(told), "{text}");
    let whole = bench.tomo(&["report", "out", "--format", "json"]).well();
    let whole: serde_json::Value = serde_json::from_str(&whole).expect("json");
    assert!(whole["left_out"].is_null());
}

#[test]
fn functions_and_branches_are_demanded_as_lines_are() {
    let bench = covered();
    let report = |flags: &[&str]| {
        let shown = ["report", "out", "--include", "prog.c", "--exclude-marked"];
        let said = bench.tomo(&[&shown[..], flags].concat());
        (said.code, said.err)
    };
    let well = (Some(0), String::new());
    assert_eq!(report(&["--fail-under-functions", "100"]), well);
    assert_eq!(report(&["--fail-under-branches", "50"]), well);
    let flags = [
        "--fail-under-lines=99",
        "--fail-under-functions=99",
        "--fail-under-branches=99",
    ];
    let words = "\
tomo: 5 of 7 lines ran (71.4 %), 99 % are demanded
tomo: 1 of 2 sides of branches were taken (50.0 %), 99 % are demanded
";
    assert_eq!(report(&flags), (Some(1), words.to_owned()));
    let nothing = report(&[
        "--include",
        "nothing",
        "--exclude",
        "prog.c",
        "--fail-under-branches",
        "1",
    ]);
    let words = "\
tomo: no source file matches --include
tomo: no branch is known, so it cannot be said how many sides of branches were taken
";
    assert_eq!(nothing, (Some(1), words.to_owned()));
}

/// Where marks hide the line that a function in several units begins at, its copies are one as ever.
#[test]
fn copies_of_a_function_are_one_whatever_is_marked() {
    let bench = Bench::new();
    let header = "\
static int held(int n) // LCOV_EXCL_LINE
{
    if (n > 3) // LCOV_EXCL_BR_LINE
        n++;
    if (n > 4)
        n++;
    return n;
}
";
    std::fs::write(bench.path("held.h"), header).expect("written");
    let other = "#include \"held.h\"\nint other(int n) { return held(n) - 1; }\n";
    std::fs::write(bench.path("other.c"), other).expect("written");
    let source = "\
#include \"held.h\"
int other(int n);
int main(int argc, char **argv) { return other(argc) + held(argc) - 1; }
";
    bench.build("prog", "prog.c", source, &["-g", "-O0", "other.c"]);
    let run = bench.tomo(&["cover", "--level", "edge", "-o", "out", "--", "./prog"]);
    assert_eq!((run.code, run.err.as_str()), (Some(0), ""));
    let report = |flags: &[&str]| {
        let shown = ["report", "out", "--include", "held.h", "--format", "lcov"];
        bench.tomo(&[&shown[..], flags].concat()).out
    };
    let branches = |tracefile: &str| {
        let all = lcov(tracefile).into_values().flatten();
        let all = all.filter(|(tag, _)| tag == "BRDA");
        all.map(|(_, fields)| fields).collect::<BTreeSet<_>>()
    };
    let all = branches(&report(&[]));
    let rest = branches(&report(&["--exclude-marked"]));
    let expected: BTreeSet<_> = all.iter().filter(|it| it[0] != "3").cloned().collect();
    assert_eq!((all.len(), rest.len()), (4, 2), "{all:?}");
    assert_eq!(rest, expected);
}

/// What is demanded is demanded of what has a source, as lcov and gcovr know it, and exactly.
#[test]
fn what_the_c_library_brings_along_counts_for_nothing() {
    let bench = Bench::new();
    let source = "\
int f(int x) { if (x) return 1; return 2; }
int never(int x) { return x; }
int main(void) { return f(0) + f(1) - 3; }
";
    bench.build("prog", "prog.c", source, &["-g", "-O0"]);
    let run = bench.tomo(&["cover", "--level", "edge", "-o", "out", "--", "./prog"]);
    assert_eq!((run.code, run.err.as_str()), (Some(0), ""));
    let report = |flag: &str| bench.tomo(&["report", "out", flag]).code;
    assert_eq!(report("--fail-under-branches=100"), Some(0));
    assert_eq!(report("--fail-under-functions=66.66"), Some(0));
    assert_eq!(report("--fail-under-functions=66.67"), Some(1));
}
