//! Counters of earlier runs shown again.

use std::collections::BTreeMap;
use std::fs;

use serde_json::json;
use tomo_wire::chains::{NODE, Node, ROOT};
use tomo_wire::counting::Slabs;
use zerocopy::FromBytes as _;

use crate::bench::Bench;

const COUNTING: &str = "
__attribute__((noinline)) int counted(int n) { int all = 0; while (n--) all += n & 3; return all; }
int main(int n, char **words) { (void)words; return counted(n) > 9 ? counted(n) : 0; }
";

/// A bench with two runs of a program, of one and of two words; their folders are named.
fn with_two_runs() -> (Bench, [String; 2]) {
    let bench = Bench::new();
    bench.build("counting", "counting.c", COUNTING, &["-O1", "-g"]);
    for words in [&["a"][..], &["a", "b"]] {
        let flags = ["count", "--format", "json", "--to", "told"];
        let said = bench.tomo(&[&flags[..], &["--", "./counting"], words].concat());
        assert_eq!((said.code, said.err.as_str()), (Some(0), ""));
        fs::rename(
            bench.path("told"),
            bench.path(format!("told-{}", words.len())),
        )
        .expect("told");
    }
    let runs = fs::read_dir(bench.path("tomo-counts")).expect("runs");
    let names = runs.map(|run| format!("tomo-counts/{}", run.expect("run").file_name().display()));
    let names: Vec<String> = names.collect();
    let names = names.try_into().expect("two");
    (bench, names)
}

fn document(text: &[u8]) -> serde_json::Value {
    serde_json::from_slice(text).expect("JSON")
}

/// How often the function that is called so was entered, and all counts of its blocks together.
fn told(document: &serde_json::Value, name: &str) -> (u64, u64) {
    let functions = document["functions"].as_array().expect("functions");
    let function = functions.iter().find(|function| function["name"] == name);
    let function = function.expect("the function");
    let blocks = function["blocks"].as_array().expect("blocks").iter();
    let counts = blocks.map(|block| block["count"].as_u64().expect("a count"));
    (function["entered"].as_u64().expect("a count"), counts.sum())
}

#[test]
fn counters_of_a_run_are_shown_as_at_its_end() {
    let (bench, runs) = with_two_runs();
    let ends = ["told-1", "told-2"].map(|name| fs::read(bench.path(name)).expect("told"));
    let shown = runs.map(|run| {
        bench
            .tomo(&["count", "--format", "json", "--show", &run])
            .well()
    });
    assert!(shown.iter().all(|shown| {
        let shown = document(shown.as_bytes());
        ends.iter().any(|end| document(end) == shown)
    }));
    assert_ne!(shown[0], shown[1]);
}

#[test]
fn counters_of_several_runs_are_added_up() {
    let (bench, [one, other]) = with_two_runs();
    let ends = ["told-1", "told-2"].map(|name| fs::read(bench.path(name)).expect("told"));
    let flags = ["count", "--format", "json", "--show", &one, &other];
    let together = document(bench.tomo(&flags).well().as_bytes());
    let each = ends.each_ref().map(|end| told(&document(end), "counted"));
    let sum = (each[0].0 + each[1].0, each[0].1 + each[1].1);
    assert_eq!(sum.0, 2);
    assert_eq!(told(&together, "counted"), sum);
    // One that was killed in its first moments is named, and left out.
    let early = "tomo-counts/run-early";
    fs::create_dir(bench.path(early)).expect("a folder");
    let said = bench.tomo(&["count", "--format", "json", "--show", early, &one, &other]);
    let words = "left out: tomo-counts/run-early is no run of `tomo count`";
    assert!(said.err.contains(words), "{}", said.err);
    let together = document(said.out.as_bytes());
    assert_eq!((told(&together, "counted"), said.code), (sum, Some(0)));
}

#[test]
fn what_holds_no_counters_is_no_run_of_them() {
    let (bench, [run, _]) = with_two_runs();
    let said = bench.tomo(&["count", "--show", "tomo-counts"]);
    assert_eq!(said.code, Some(2));
    let words = "tomo-counts is no run of `tomo count`; a run's folder is called run-…";
    assert!(said.err.contains(words), "{}", said.err);
    let said = bench.tomo(&["paths", "--show", &run]);
    assert_eq!(said.code, Some(2));
    assert!(
        said.err.contains("is no run of `tomo paths`"),
        "{}",
        said.err
    );
    bench
        .tomo(&["count", "--format", "callgrind", "--show", &run])
        .well();
}

/// Build ids may be named by hand: what a program is, is told by all of its bytes.
#[test]
fn another_program_of_the_same_build_id_and_layout_is_another_one() {
    let bench = Bench::new();
    let (g, h) = (
        "__attribute__((noinline)) int g(int x) { if (x & 1) return x * 3; if (x > 10) return x / 7; return x + 1; }\n",
        "__attribute__((noinline)) int h(int x) { int s = 0; while (x > 1) { s += x; x -= 2; } return s; }\n",
    );
    let main = "int main(void) { int s = 0; for (int i = 0; i < 30; i++) s += g(i) + h(i); return s % 101; }\n";
    let flags = ["-O1", "-Wl,--build-id=0xfeedfacefeedface"];
    for (number, functions) in [[g, h], [h, g]].iter().enumerate() {
        bench.build("prog", "prog.c", &(functions.concat() + main), &flags);
        for command in ["cover", "count", "paths"] {
            let output = format!("out-{command}");
            let said = bench.tomo(&[command, "-o", &output, "--", "./prog"]);
            assert_eq!(said.code, Some(3078 % 101), "{command}: {}", said.err);
            assert!(command != "cover" || said.err.is_empty(), "{}", said.err);
        }
        let shown = bench.tomo(&["report", "out-cover", "--functions"]);
        let ran = shown.out.lines().filter(|line| {
            let words: Vec<&str> = line.split_whitespace().collect();
            words.contains(&"g") || words.contains(&"h")
        });
        let whole = ran.filter(|line| line.contains(" 100 %") && !line.contains("0/1"));
        assert_eq!(whole.count(), 2, "{}", shown.out);
        let left_out = shown.err.lines().filter(|line| line.contains("left out"));
        assert_eq!(left_out.count(), number, "{}", shown.err);
    }
}

const BRANCHES: &str = "
__attribute__((noinline)) int decided(int n) { if (n > 2) return n * 3; return n - 7; }
int main(int n, char **words) { if (words[0] && decided(n) > 0) return 1; return 0; }
";

/// The folders of the two runs of a program, of one and of three words, that `command` has observed.
fn two_runs(bench: &Bench, command: &[&str]) -> [String; 2] {
    for words in [&["a"][..], &["a", "b", "c"]] {
        let said = bench.tomo(&[command, &["-o", "runs", "--", "./branches"], words].concat());
        assert!(said.code.is_some_and(|code| code < 2), "{}", said.err);
    }
    let runs = fs::read_dir(bench.path("runs")).expect("runs");
    let names = runs.map(|run| format!("runs/{}", run.expect("run").file_name().display()));
    let names: Vec<String> = names.collect();
    names.try_into().expect("two")
}

/// How often each chain of a document was called, by the names along it.
fn called(document: &serde_json::Value) -> BTreeMap<String, u64> {
    let rows = document["chains"].as_array().expect("chains");
    let mut names = vec![String::new()];
    let mut called = BTreeMap::new();
    for row in rows {
        let parent = row["parent"].as_u64().expect("a number") as usize;
        let name = format!(
            "{};{}",
            names[parent],
            row["name"].as_str().expect("a name")
        );
        *called.entry(name.clone()).or_default() += row["calls"].as_u64().expect("a count");
        names.push(name);
    }
    called
}

#[test]
fn chains_of_several_runs_are_added_up() {
    let bench = Bench::new();
    bench.build("branches", "branches.c", BRANCHES, &["-O1", "-g"]);
    let runs = two_runs(&bench, &["chains"]);
    let shown = |runs: &[&str]| {
        let words = [&["chains", "--json", "-", "--show"][..], runs].concat();
        let said = bench.tomo(&words);
        assert_eq!(said.code, Some(0), "{}", said.err);
        // What is for programs stands alone there.
        assert!(said.err.contains("decided ← main"), "{}", said.err);
        called(&document(said.out.as_bytes()))
    };
    let [one, other] = runs.each_ref().map(|run| shown(&[run]));
    assert_eq!(one[";_start;main;decided"], 1);
    assert_eq!(one, other);
    let together = shown(&[&runs[0], &runs[1]]);
    let doubled: BTreeMap<String, u64> = one.into_iter().map(|(name, n)| (name, n * 2)).collect();
    assert_eq!(together, doubled);
}

#[test]
fn predicates_of_several_runs_are_put_together() {
    let bench = Bench::new();
    bench.build("branches", "branches.c", BRANCHES, &["-O1", "-g"]);
    for counts in [false, true] {
        let _ = fs::remove_dir_all(bench.path("runs"));
        let flags: &[&str] = if counts { &["--counts"] } else { &[] };
        let runs = two_runs(&bench, &[&["predicates"], flags].concat());
        let shown = |runs: &[&str]| {
            let words = [&["predicates", "--json", "--show"][..], runs].concat();
            values(&document(bench.tomo(&words).well().as_bytes()))
        };
        let [one, other] = runs.each_ref().map(|run| shown(&[run]));
        assert_ne!(one, other, "they go other ways");
        let both = one.iter().zip(&other).map(|((id, a), (_, b))| {
            let both = match counts {
                true => json!(a.as_u64().expect("a count") + b.as_u64().expect("a count")),
                false => json!(a == true || b == true),
            };
            (id.clone(), both)
        });
        assert_eq!(shown(&[&runs[0], &runs[1]]), both.collect::<Vec<_>>());
    }
}

/// The predicates of a document with what is said of each.
fn values(document: &serde_json::Value) -> Vec<(String, serde_json::Value)> {
    let sites = document["sites"].as_array().expect("sites").iter();
    let predicates = sites.flat_map(|site| site["predicates"].as_array().expect("predicates"));
    let named = predicates.map(|one| (one["id"].to_string(), one["true"].clone()));
    named.collect()
}

/// Where the program was when it ran, and where its models would be kept, does not matter.
#[test]
fn runs_are_shown_wherever_their_program_is_now() {
    let bench = Bench::new();
    bench.build("branches", "branches.c", BRANCHES, &["-O1", "-g"]);
    for command in ["count", "paths", "chains", "predicates"] {
        let _ = fs::remove_dir_all(bench.path("runs"));
        let [one, other] = two_runs(&bench, &[command]);
        let alone = bench.tomo(&[command, "--show", &one]).well();
        let both = bench.tomo(&[command, "--show", &one, &other]).well();
        // One that is named twice ran once.
        let again = format!("./{one}/");
        let twice = bench.tomo(&[command, "--show", &one, &again, &other]);
        assert_eq!(twice.well(), both, "{command}");
        fs::rename(bench.path("branches"), bench.path("moved")).expect("moved");
        let said = bench.tomo(&[command, "--show", &one]);
        assert_eq!((said.code, said.out.as_str()), (Some(2), ""));
        assert!(said.err.contains("--program PATH names another file"));
        let words = [command, "--program", "moved", "--show", &one];
        assert_eq!(bench.tomo(&words).well(), alone, "{command}");
        fs::rename(bench.path("moved"), bench.path("branches")).expect("moved");
        let nowhere = bench.tomo_with(("TOMO_CACHE_DIR", "/proc/none"), &[command, "--show", &one]);
        assert_eq!(
            (nowhere.code, nowhere.out),
            (Some(0), alone),
            "{}",
            nowhere.err
        );
    }
}

/// They cannot be put together, and it is said of which.
#[test]
fn runs_that_observed_other_predicates_are_shown_each_by_itself() {
    let bench = Bench::new();
    bench.build("branches", "branches.c", BRANCHES, &["-O1", "-g"]);
    for flags in [&[][..], &["--counts"]] {
        let words = [&["predicates"], flags, &["-o", "runs", "--", "./branches"]].concat();
        assert_eq!(bench.tomo(&words).code, Some(0));
    }
    let runs = fs::read_dir(bench.path("runs")).expect("runs");
    let names = runs.map(|run| format!("runs/{}", run.expect("run").file_name().display()));
    let names: Vec<String> = names.collect();
    let said = bench.tomo(&["predicates", "--show", &names[0], &names[1]]);
    assert_eq!((said.code, said.out.as_str()), (Some(2), ""));
    let words = format!(
        "{} did not observe the same predicates as {}",
        names[1], names[0]
    );
    assert!(said.err.contains(&words), "{}", said.err);
}

/// What is damaged costs nobody else's counts.
#[test]
fn of_several_runs_one_that_is_cut_short_is_named_and_left_out() {
    let bench = Bench::new();
    bench.build("branches", "branches.c", BRANCHES, &["-O1", "-g"]);
    for (command, file) in [
        (&["count"][..], "counters"),
        (&["paths"], "paths"),
        (&["chains"], "functions"),
        (&["predicates", "--counts"], "predicates"),
    ] {
        for kind in [file, "slabs"] {
            let _ = fs::remove_dir_all(bench.path("runs"));
            let [sound, damaged] = two_runs(&bench, command);
            let alone = bench.tomo(&[command[0], "--show", &sound]).well();
            let files = fs::read_dir(bench.path(&damaged)).expect("a folder");
            let mut files = files.map(|file| file.expect("an entry").path());
            let cut = files.find(|path| path.to_string_lossy().ends_with(kind));
            let cut = cut.expect("the run has it");
            let whole = fs::read(&cut).expect("read");
            // Not in place: what is woven once is the same file in each run.
            fs::remove_file(&cut).expect("there");
            fs::write(&cut, &whole[..whole.len().min(64) - 7]).expect("written");
            let said = bench.tomo(&[command[0], "--show", &damaged, &sound]);
            let words = format!("tomo: left out: {damaged}");
            assert!(
                said.err.starts_with(&words),
                "{command:?} {kind}: {}",
                said.err
            );
            assert_eq!(
                (said.code, said.out),
                (Some(0), alone),
                "{command:?} {kind}"
            );
            let said = bench.tomo(&[command[0], "--show", &damaged]);
            assert_eq!((said.code, said.out.as_str()), (Some(2), ""));
            assert!(said.err.contains(&damaged), "{}", said.err);
        }
    }
}

/// What no run does is not told as if one had.
#[test]
fn calls_of_more_than_64_bits_are_refused() {
    let bench = Bench::new();
    bench.build("branches", "branches.c", BRANCHES, &["-O1", "-g"]);
    let [run, _] = two_runs(&bench, &["chains"]);
    let slabs = bench.path(&run).join("slabs");
    let mut file = fs::read(&slabs).expect("read");
    let header = Slabs::read(&file, file.len() as u64).expect("slabs");
    let slab = &mut file[header.start(0) as usize..];
    let room = slab.len() as u32 - ROOT;
    let (all, _) =
        <[Node]>::mut_from_prefix_with_elems(&mut slab[ROOT as usize..], (room / NODE) as usize)
            .expect("nodes");
    // The first two are the root and what there was no room for.
    let mut called = all.iter_mut().skip(2).filter(|node| node.count.get() > 0);
    for node in called.by_ref().take(2) {
        node.count = u64::MAX.into();
    }
    fs::write(&slabs, file).expect("written");
    let said = bench.tomo(&["chains", "--show", &run]);
    assert_eq!((said.code, said.out.as_str()), (Some(2), ""));
    let words = format!("tomo: {run}/slabs: calls add up to more than 64 bits hold\n");
    assert_eq!(said.err, words);
}

const PARITY: &str = "
#include <stdlib.h>
__attribute__((noinline)) int parity(int k) { if (k & 1) return rand(); return atoi(\"3\") - k; }
int main(int n, char **words) { int all = 0; while (--n) all += parity(atoi(words[n])); return all == 77; }
";

/// What one run has not counted another has not done less often.
#[test]
fn paths_that_not_all_runs_have_counted_are_said_to_be() {
    let bench = Bench::new();
    bench.build("parity", "parity.c", PARITY, &["-O1", "-g"]);
    let run = |words: &[&str], numbers: &[&str]| {
        let words = [
            &["paths", "--function", "parity"],
            words,
            &["--", "./parity"],
            numbers,
        ];
        assert_eq!(bench.tomo(&words.concat()).code, Some(0));
    };
    run(&[], &["1", "3", "5"]);
    run(&["--select", "hot:1"], &["2", "4", "6", "8", "7"]);
    let runs = fs::read_dir(bench.path("tomo-paths")).expect("runs");
    let runs = runs.map(|run| run.expect("run").path().display().to_string());
    let runs: Vec<String> = runs.collect();
    let table = bench.tomo(&["paths", "--show", &runs[0], &runs[1]]).well();
    let words = "parity: 1 path ran, 4 times in all, of those that one run or another has counted";
    assert!(table.contains(words), "{table}");
    let words = "1 function has had other paths counted in one run than in another";
    assert!(table.contains(words), "{table}");
    let words = ["paths", "--format", "json", "--show", &runs[0], &runs[1]];
    let told = document(bench.tomo(&words).well().as_bytes());
    assert_eq!(told["functions"][0]["asked"], "not the same in all runs");
    // By itself each is as it was.
    let table = bench.tomo(&["paths", "--show", &runs[0], &runs[0]]).well();
    assert!(!table.contains("than in another"), "{table}");
}
