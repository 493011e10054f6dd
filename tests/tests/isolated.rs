//! What `tomo isolate` finds: the planted bug, whichever way it goes, and as well as all that could be watched tells;
//! and what it says where there is nothing to be found.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;
use tomo_testkit::corpus::compiled;
use tomo_testkit::tomo;

struct Bench {
    folder: tempfile::TempDir,
    program: PathBuf,
}

impl Bench {
    fn new(level: &str) -> Self {
        let program = compiled("gcc", "isolating.c", &[level, "-g"]).expect("built");
        let folder = tempfile::tempdir().expect("a folder");
        Self { folder, program }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn tomo(&self, words: &[&str]) -> Command {
        let mut command = Command::new(tomo::path().expect("tomo"));
        command.env("TOMO_CACHE_DIR", self.path("cache"));
        command.current_dir(self.folder.path()).args(words);
        command
    }

    fn isolate(&self, cases: &str, program: &Path, options: &[&str]) -> Output {
        fs::write(self.path("cases"), cases).expect("cases");
        let mut command = self.tomo(&["isolate", "--cases", "cases", "--json", "answer"]);
        command.args(options).arg("--").arg(program);
        command.output().expect("run")
    }

    /// The answer of a search in a folder of its own.
    fn answer(&self, cases: &str, options: &[&str]) -> Value {
        let out = tempfile::tempdir_in(self.folder.path()).expect("a folder");
        let out = out.path().join("search");
        let all = [&["-o", out.to_str().expect("UTF-8")], options].concat();
        let output = self.isolate(cases, &self.program, &all);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{options:?}: {said}");
        let answer = fs::read(self.path("answer")).expect("an answer");
        serde_json::from_slice(&answer).expect("JSON")
    }
}

/// Numbers that look random and always are the same.
fn numbers(case: u64) -> Vec<u64> {
    let count = 3 + case % 4;
    let one = |at: u64| {
        let mixed = (case * 31 + at).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let number = 1 + (mixed >> 40) % 97;
        // Not by chance: those that are planted.
        if matches!(number, 13 | 66) {
            12
        } else {
            number
        }
    };
    (0..count).map(one).collect()
}

fn words(word: &str, case: u64, planted: Option<u64>) -> String {
    let mut all = numbers(case);
    if let Some(planted) = planted {
        let at = case as usize % all.len();
        all[at] = planted;
    }
    let numbers: Vec<String> = all.iter().map(u64::to_string).collect();
    format!("{word} {}", numbers.join(" "))
}

/// How many cases there are; a fourth of them fails.
const CASES: u64 = 16;

/// Cases of which every fourth fails since its output is wrong.
fn wrong() -> String {
    let right = compiled("gcc", "isolating.c", &["-O1", "-DRIGHT"]).expect("built");
    let cases = (0..CASES).map(|case| words("weigh", case, (case % 4 == 1).then_some(13)));
    let cases: Vec<String> = cases.collect();
    format!("%success like {}\n{}\n", right.display(), cases.join("\n"))
}

/// Cases of which every fourth crashes.
fn crashing() -> String {
    let cases = (0..CASES).map(|case| words("look", case, (case % 4 == 1).then_some(66)));
    cases.collect::<Vec<_>>().join("\n")
}

/// The line of the source with this text.
fn line_of(text: &str) -> u64 {
    let source = include_str!("../programs/isolating.c");
    let at = source.lines().position(|line| line.contains(text));
    at.expect("the line") as u64 + 1
}

/// Importance by its definition (ABI §4.3), of what `tomo predicates` says of each case; the highest.
fn complete_best(bench: &Bench, cases: &str, fails: impl Fn(usize) -> bool) -> f64 {
    let mut tallies: BTreeMap<String, [u64; 4]> = BTreeMap::new();
    let mut failed = 0u64;
    let cases = cases.lines().filter(|line| !line.starts_with('%'));
    for (number, case) in cases.enumerate() {
        let mut command = bench.tomo(&["predicates", "--json", "--to", "predicates", "--"]);
        command.arg(&bench.program).args(case.split(' '));
        command.output().expect("run");
        let document = fs::read(bench.path("predicates")).expect("predicates");
        let document: Value = serde_json::from_slice(&document).expect("JSON");
        let fails = fails(number);
        failed += u64::from(fails);
        for site in document["sites"].as_array().expect("sites") {
            let predicates = site["predicates"].as_array().expect("predicates");
            let seen = predicates.iter().any(|one| one["true"] == true);
            for one in predicates {
                let id = one["id"].as_str().expect("an id").to_owned();
                let tally = tallies.entry(id).or_default();
                tally[usize::from(!fails)] += u64::from(one["true"] == true);
                tally[2 + usize::from(!fails)] += u64::from(seen);
            }
        }
    }
    let importance = |[f, s, f_seen, s_seen]: &[u64; 4]| {
        if *f == 0 {
            return 0.0;
        }
        let share = |a: u64, b: u64| a as f64 / (a + b) as f64;
        let increase = share(*f, *s) - share(*f_seen, *s_seen);
        let depth = (*f as f64).ln() / (failed as f64).ln();
        match increase > 0.0 && depth > 0.0 {
            true => 2.0 / (1.0 / increase + 1.0 / depth),
            false => 0.0,
        }
    };
    tallies.values().map(importance).fold(0.0, f64::max)
}

const SCORES: [&str; 8] = [
    "ochiai",
    "ttest",
    "importance",
    "maximp",
    "failcount",
    "bfs",
    "random",
    "oracle",
];

#[test]
fn every_way_finds_what_complete_monitoring_finds() {
    let bench = Bench::new("-O0");
    for (cases, text) in [(wrong(), "number == 13"), (crashing(), "number == 66")] {
        let best = complete_best(&bench, &cases, |case| case % 4 == 1);
        assert!(best > 0.8, "{best}");
        // Where nothing crashes there is nowhere to go backward from.
        let directions: &[&str] = match text.ends_with("66") {
            true => &["forward", "backward", "both"],
            false => &["forward"],
        };
        for &direction in directions {
            for score in SCORES {
                let options = ["--direction", direction, "--score", score];
                let answer = bench.answer(&cases, &options);
                let found = &answer["findings"][0];
                let value = found["importance"]["value"].as_f64().expect("a number");
                assert!(
                    (value - best).abs() < 1e-9,
                    "{options:?}: {value}, not {best}"
                );
                assert_eq!(found["line"], line_of(text), "{options:?}: {answer:#}");
                assert_eq!(found["failures"]["true"], CASES / 4, "{options:?}");
                assert_eq!(found["successes"]["true"], 0, "{options:?}");
            }
        }
    }
}

#[test]
fn a_crash_in_a_thread_is_where_the_search_begins() {
    let bench = Bench::new("-O0");
    let cases = crashing().replace("look ", "apart ");
    let flags = ["-O0", "-g", "-DAPART", "-pthread"];
    let program = compiled("gcc", "isolating.c", &flags).expect("built");
    let output = bench.isolate(&cases, &program, &["--direction", "backward"]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!said.contains("goes forward"), "{said}");
    assert_eq!(output.status.code(), Some(0), "{said}");
    let answer = fs::read(bench.path("answer")).expect("an answer");
    let answer: Value = serde_json::from_slice(&answer).expect("JSON");
    let line = &answer["findings"][0]["line"];
    assert_eq!(*line, line_of("number == 66"), "{answer:#}");
}

#[test]
fn the_condition_is_said_to_have_held() {
    let bench = Bench::new("-O0");
    let answer = bench.answer(&wrong(), &[]);
    assert_eq!(answer["findings"][0]["what"], "`number == 13` was true");
    let optimised = Bench::new("-O2");
    let answer = optimised.answer(&wrong(), &["--html", "page", "--sarif", "sarif"]);
    assert_eq!(
        answer["findings"][0]["failures"]["true"],
        CASES / 4,
        "{answer:#}"
    );
    let page = fs::read_to_string(optimised.path("page")).expect("a page");
    assert!(
        page.contains("4 of 4 failures, 0 of 12 successes"),
        "{page}"
    );
    let sarif = fs::read(optimised.path("sarif")).expect("a log");
    let sarif: Value = serde_json::from_slice(&sarif).expect("JSON");
    assert_eq!(sarif["version"], "2.1.0");
    assert!(sarif["runs"][0]["results"][0]["message"]["text"].is_string());
}

/// Step by step, in processes of their own, it comes to the same as in one.
#[test]
fn a_search_that_is_interrupted_goes_on() {
    for score in ["bfs", "ochiai"] {
        interrupted(&Bench::new("-O0"), score);
    }
}

fn interrupted(bench: &Bench, score: &str) {
    let cases = wrong();
    let whole = bench.answer(&cases, &["--score", score]);
    for _ in 0..whole["steps"].as_array().expect("steps").len() {
        let options = ["--score", score, "--steps", "1", "-o", "search"];
        bench.isolate(&cases, &bench.program, &options);
        let more = ["--score", score, "-o", "search", "--steps"];
        let made = fs::read_to_string(bench.path("search/state.json")).expect("a state");
        let made: Value = serde_json::from_str(&made).expect("JSON");
        let next = (made["steps"].as_array().expect("steps").len() + 1).to_string();
        bench.isolate(
            &cases,
            &bench.program,
            &[&more[..], &[next.as_str()]].concat(),
        );
    }
    let answer = fs::read(bench.path("answer")).expect("an answer");
    let mut answer: Value = serde_json::from_slice(&answer).expect("JSON");
    let mut whole = whole;
    for document in [&mut answer, &mut whole] {
        for step in document["steps"].as_array_mut().expect("steps") {
            step["slowdown"] = Value::Null;
        }
    }
    assert_eq!(answer, whole);
}

#[test]
fn what_cannot_be_searched_is_said() {
    let bench = Bench::new("-O0");
    let right = |count: u64| -> String {
        let cases = (0..count).map(|case| words("look", case, None));
        cases.collect::<Vec<_>>().join("\n")
    };
    let hanging = format!("%timeout 1\nhang\n{}", right(3));
    let alternating = format!("{}\nalternate mark\nlook 66\nlook 66 1\n", right(3));
    for (cases, options, code, says) in [
        (right(3), &[][..], 2, "none of the 3 cases fails"),
        ("other\nother\n".into(), &[], 2, "all 2 cases fail"),
        (String::new(), &[], 2, "has no case"),
        ("'look".into(), &[], 2, "cases:1: a ' is not closed"),
        (hanging, &[], 0, "line 2 did not end within 1 s"),
        (alternating, &[], 0, "line 4 does not always end alike"),
        (
            "look 1 => check ./nowhere\nlook 66\n".into(),
            &[],
            2,
            "nobody can tell whether the case in line 1 is a success: ./nowhere: no such file or directory\n",
        ),
        (
            crashing(),
            &["--start", "branch@0x1"],
            2,
            "no site branch@0x1",
        ),
    ] {
        let out = tempfile::tempdir_in(bench.folder.path()).expect("a folder");
        let out = out.path().join("search");
        let all = [&["-o", out.to_str().expect("UTF-8")], options].concat();
        let output = bench.isolate(&cases, &bench.program, &all);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(said.contains(says), "{cases}: {said}");
        assert_eq!(output.status.code(), Some(code), "{cases}: {said}");
    }
}

#[test]
fn failures_that_vanish_when_observed_are_said_to() {
    let bench = Bench::new("-O0");
    let output = bench.isolate("shy\nshy 1\nlook 1\nlook 2\n", &bench.program, &[]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        said.contains("none of the 2 failing cases fails while it is observed"),
        "{said}"
    );
    let verdict = String::from_utf8_lossy(&output.stdout);
    assert!(
        verdict.starts_with("The failures vanish when the program is observed: "),
        "{verdict}"
    );
    assert_eq!(output.status.code(), Some(1));
}

/// Two conditions, of which neither predicts the failure, but both together do.
#[test]
fn a_bug_that_only_a_path_predicts_is_found_along_paths() {
    let right = compiled("gcc", "isolating.c", &["-O1", "-DRIGHT"]).expect("built");
    let case = |number: u64| {
        let one = if number.is_multiple_of(2) {
            60 + number
        } else {
            number
        };
        let other = if number % 4 < 2 { 60 + number } else { number };
        format!("combine {one} {other}")
    };
    let cases: Vec<String> = (0..24).map(case).collect();
    let cases = format!("%success like {}\n{}\n", right.display(), cases.join("\n"));
    let bench = Bench::new("-O0");
    let without = bench.answer(&cases, &[]);
    let best = without["findings"][0]["importance"]["value"].as_f64();
    assert!(best.is_some_and(|best| best < 0.5), "{without:#}");
    let answer = bench.answer(&cases, &["--paths"]);
    let found = &answer["findings"][0];
    // It runs in a fourth of the cases, which are those that fail: 2 / (1 / 0.75 + 1).
    let value = found["importance"]["value"].as_f64().expect("a number");
    assert!((value - 6.0 / 7.0).abs() < 1e-9, "{answer:#}");
    assert_eq!(found["function"], "combine");
    assert_eq!(found["failures"]["true"], 6);
    assert_eq!(found["successes"]["true"], 0);
    let what = found["what"].as_str().expect("words");
    let first = what.find("`value > 50` was true").expect(what);
    let second = what.find("`other > 50` was true").expect(what);
    assert!(first < second, "{what}");
    assert!(
        found["id"]
            .as_str()
            .is_some_and(|id| id.starts_with("path@0x"))
    );
}

#[test]
fn where_nothing_predicts_the_failure_that_is_said() {
    let bench = Bench::new("-O0");
    // The same is done whether it is right or not.
    let cases = "look 1 2 => exit 0\nlook 1 2 => exit 1\nlook 1 2 => exit 1\nlook 1 2\n";
    let output = bench.isolate(cases, &bench.program, &[]);
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(
        said.starts_with("Nothing that was watched predicts the failure: "),
        "{said}"
    );
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn a_program_that_changes_meanwhile_is_noticed() {
    let bench = Bench::new("-O0");
    let copy = bench.path("copy");
    fs::copy(&bench.program, &copy).expect("a copy");
    let cases = crashing();
    let first = bench.isolate(&cases, &copy, &["--steps", "1"]);
    assert!(first.status.code() != Some(2), "{first:?}");
    let other = compiled("gcc", "isolating.c", &["-O1", "-g"]).expect("built");
    fs::remove_file(&copy).expect("removed");
    fs::copy(other, &copy).expect("a copy");
    let output = bench.isolate(&cases, &copy, &[]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        said.contains("has changed since the search began"),
        "{said}"
    );
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn two_searches_in_one_folder_do_not_meet() {
    let bench = Bench::new("-O0");
    let search = |steps: &str| {
        let options = ["-o", "search", "--steps", steps];
        bench.isolate(&crashing(), &bench.program, &options)
    };
    assert_ne!(search("1").status.code(), Some(2));
    let other = fs::File::open(bench.path("search").join("lock")).expect("a lock");
    other.lock().expect("locked");
    let output = search("9");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("another search is going on there"), "{said}");
    assert_eq!(output.status.code(), Some(2));
    other.unlock().expect("unlocked");
    assert_eq!(search("9").status.code(), Some(0));
}

#[test]
fn cases_that_are_hard_on_who_runs_them_are_run_to_their_end() {
    use std::os::unix::process::CommandExt as _;
    let program = compiled("gcc", "wayward.c", &["-O1", "-g"]).expect("built");
    let search = |name: &str, cases: &str| {
        let bench = Bench::new("-O1");
        fs::write(bench.path("cases"), cases).expect("cases");
        let mut command = bench.tomo(&["isolate", "--cases", "cases", "-j", "1", "-o", name]);
        command.arg("--").arg(&program);
        // Whatever a case does to its group, it is to meet this one's alone.
        command.process_group(0);
        command.output().expect("run")
    };
    // One sends signals to all of its group; the other crashes twice, and waits for ever when it is run again.
    for (name, cases) in [
        ("group", "group 1\ngroup 2\ngroup 8\ngroup 9\n"),
        ("wait", "%timeout 1\nwait 1\nwait 2\nwait 8\n"),
    ] {
        let output = search(name, cases);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(
            output.status.code().is_some(),
            "{name}: {:?} {said}",
            output.status
        );
    }
}
