//! Paths that are selected are counted as if all were, and no others are told of.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};
use tomo_testkit::corpus::{Built, Compiler, Level, Recipe, Source, Workload, build};
use tomo_testkit::paths;
use tomo_testkit::tomo;

use super::{Document, address, oracle, told};

/// The paths of functions, with their counts.
type Counted = BTreeMap<(u64, paths::Path), u64>;

fn counted(document: &Document) -> Counted {
    let mut all = Counted::new();
    for function in &document.functions {
        let entry = address(&function.address);
        let paths = function.paths();
        all.extend(paths.map(|(path, count)| ((entry, path), count)));
    }
    all
}

/// What single steps say of the functions of `document`.
fn stepped(built: &Built, workload: &Workload, document: &Document) -> Counted {
    let lines = tomo::map_lines(&built.program).expect("a model");
    let ran = oracle(&built.program, &lines, workload, document);
    let functions = ran.into_iter();
    let paths = functions.flat_map(|(entry, ran)| {
        let paths = ran.paths.into_iter();
        paths.map(move |(path, count)| ((entry, path), count))
    });
    paths.collect()
}

/// One run of a program, with a folder for its runs.
struct Site<'b> {
    built: &'b Built,
    cache: tempfile::TempDir,
    runs: tempfile::TempDir,
}

impl<'b> Site<'b> {
    fn of(built: &'b Built) -> Self {
        Self {
            built,
            cache: tempfile::tempdir().expect("a folder"),
            runs: tempfile::tempdir().expect("a folder"),
        }
    }

    fn text(&self, workload: &Workload, more: &[&str]) -> Vec<u8> {
        let runs = self.runs.path().display().to_string();
        let more = [&["-o", &runs], more].concat();
        let input = workload.stdin.as_deref().unwrap_or_default();
        let program = &self.built.program;
        told(program, &workload.args, input, self.cache.path(), &more)
    }

    fn run(&self, workload: &Workload, more: &[&str]) -> Document {
        let text = self.text(workload, more);
        let document: Document = serde_json::from_slice(&text).expect("a document");
        let name = &self.built.name;
        assert_eq!(document.contradictory, Vec::<String>::new(), "{name}");
        assert_eq!(document.lost_threads, 0, "{name}");
        document
    }
}

/// What is said of the paths asked for is what happened, whether it did or not.
fn agree(name: &str, said: &Counted, seen: &Counted) {
    let wrong = said.iter().filter(|(path, count)| {
        let ran = seen.get(path).copied().unwrap_or_default();
        ran != **count
    });
    let wrong: Vec<_> = wrong.take(3).collect();
    assert!(wrong.is_empty(), "{name}: {wrong:x?}");
}

/// Leaves every `nth` path that ran; gives how many these are.
fn thinned(document: &mut Value, nth: usize) -> usize {
    let mut number = 0;
    let functions = document["functions"].as_array_mut().expect("functions");
    for function in functions.iter_mut() {
        let paths = function["paths"].as_array_mut().expect("paths");
        paths.retain(|_| {
            number += 1;
            number % nth == 0
        });
    }
    functions.retain(|function| {
        function["paths"]
            .as_array()
            .is_some_and(|all| !all.is_empty())
    });
    number / nth
}

fn selected_are_exact(recipe: &Recipe, least: usize) {
    let built = build(recipe).expect("built");
    let site = Site::of(&built);
    let text = site.text(&built.workloads[0], &[]);
    let mut document: Value = serde_json::from_slice(&text).expect("JSON");
    let asked = thinned(&mut document, 3);
    assert!(asked >= least, "{}: only {asked}", built.name);
    let file = site.runs.path().join("selection");
    std::fs::write(&file, document.to_string()).expect("written");
    let selection: Document = serde_json::from_value(document).expect("a document");
    let file = file.display().to_string();
    // In other runs some of them do not run at all.
    for workload in built.workloads.iter().take(4) {
        let said = site.run(workload, &["--select", &file]);
        for function in &said.functions {
            assert_eq!(function.asked, "named", "{}", built.name);
            assert_eq!((function.started, function.cut), (None, None));
        }
        let seen = stepped(&built, workload, &said);
        let said = counted(&said);
        agree(&built.name, &said, &seen);
        let names = |all: &Counted| all.keys().cloned().collect::<BTreeSet<_>>();
        assert_eq!(names(&said), names(&counted(&selection)), "{}", built.name);
    }
}

#[test]
fn selected_paths_of_c_features_are_exact() {
    for level in [Level::O0, Level::O2, Level::O3] {
        selected_are_exact(&Recipe::new(Source::CFeatures, Compiler::Gcc, level), 30);
        selected_are_exact(&Recipe::new(Source::CFeatures, Compiler::Clang, level), 30);
    }
}

#[test]
fn selected_paths_of_exceptions_and_panics_are_exact() {
    selected_are_exact(
        &Recipe::new(Source::CppFeatures, Compiler::Gcc, Level::O2),
        30,
    );
    selected_are_exact(
        &Recipe::new(Source::RustFeatures, Compiler::Rustc, Level::O2),
        30,
    );
}

#[test]
fn selected_paths_of_lua_and_bzip2_are_exact() {
    selected_are_exact(&Recipe::new(Source::Lua, Compiler::Gcc, Level::O2), 150);
    selected_are_exact(&Recipe::new(Source::Bzip2, Compiler::Clang, Level::O3), 10);
}

#[test]
fn the_hottest_of_an_earlier_run_are_counted() {
    let built = build(&Recipe::new(Source::Lua, Compiler::Clang, Level::O3)).expect("built");
    let (site, workload) = (Site::of(&built), &built.workloads[0]);
    let all = counted(&site.run(workload, &[]));
    let hot = site.run(workload, &["--select", "hot:25"]);
    let seen = stepped(&built, workload, &hot);
    let hot = counted(&hot);
    assert_eq!(hot.len(), 25);
    agree(&built.name, &hot, &seen);
    agree(&built.name, &hot, &all);
    assert!(
        hot.values().all(|count| *count > 0),
        "what was hot is hot again"
    );
}

#[test]
fn what_no_earlier_run_has_seen_is_counted() {
    let built = build(&Recipe::new(Source::Bzip2, Compiler::Gcc, Level::O2)).expect("built");
    let site = Site::of(&built);
    let mut before = BTreeSet::new();
    for (at, workload) in built.workloads.iter().enumerate() {
        // Without an earlier run all is unseen.
        let unseen = site.run(workload, &["--select", "unseen"]);
        let seen = stepped(&built, workload, &unseen);
        let said = counted(&unseen);
        let expected = seen.into_iter().filter(|(path, _)| !before.contains(path));
        let expected: Counted = expected.collect();
        assert_eq!(said, expected, "{} {at}", built.name);
        assert!(at > 0 || said.len() > 20);
        before.extend(said.into_keys());
    }
    let again = site.run(&built.workloads[0], &["--select", "unseen"]);
    assert_eq!(counted(&again), Counted::new(), "all of it was seen before");
    let seen_all = again
        .left_out
        .iter()
        .filter(|left| left.reason.contains("seen"));
    assert!(
        seen_all.count() > 0,
        "functions of which all is known carry nothing"
    );
}

/// What cannot be selected is said before the program runs.
#[test]
fn bad_selections_are_refused() {
    let built = build(&Recipe::new(Source::CFeatures, Compiler::Gcc, Level::O2)).expect("built");
    let other = build(&Recipe::new(Source::CFeatures, Compiler::Gcc, Level::O3)).expect("built");
    let (site, workload) = (Site::of(&built), &built.workloads[0]);
    let document: Value = serde_json::from_slice(&site.text(workload, &[])).expect("JSON");
    let of_other: Value = serde_json::from_slice(&site_text(&other)).expect("JSON");
    let changed = |change: &dyn Fn(&mut Value)| {
        let mut changed = document.clone();
        change(&mut changed);
        changed.to_string()
    };
    let function = |document: &mut Value, key: &str, value: Value| {
        document["functions"][0][key] = value;
    };
    for (text, expected) in [
        ("{".to_owned(), "EOF"),
        (
            json!({"schema": "x", "functions": []}).to_string(),
            "schema",
        ),
        (
            json!({"schema": "tomo.paths/1", "functions": []}).to_string(),
            "no paths",
        ),
        (of_other.to_string(), "of the build"),
        (
            changed(&|all| function(all, "address", json!("0x1"))),
            "no function starts at 0x1",
        ),
        (
            changed(&|all| function(all, "address", json!("main"))),
            "is no address",
        ),
        (
            changed(&|all| function(all, "paths", json!([{"blocks": ["0x1"], "end": null}]))),
            "is none of its paths",
        ),
        (
            changed(&|all| function(all, "paths", json!([{"blocks": [], "end": null}]))),
            "is none of its paths",
        ),
        (
            changed(&|all| {
                let one = all["functions"][0].clone();
                all["functions"]
                    .as_array_mut()
                    .expect("functions")
                    .push(one);
            }),
            "is there twice",
        ),
    ] {
        let file = site.runs.path().join("selection");
        std::fs::write(&file, text).expect("written");
        let file = file.display().to_string();
        refused(&site, &["--select", &file], expected);
    }
    refused(&site, &["--select", "no such file"], "no such file");
    refused(&site, &["--select", "hot:0"], "no number of paths");
    let elsewhere = tempfile::tempdir().expect("a folder");
    let folder = elsewhere.path().display().to_string();
    refused(
        &site,
        &["-o", &folder, "--select", "hot:5"],
        "no earlier run",
    );
    refused(&site, &["--select", "hot:5", "--of", &folder], "no run of");
}

fn site_text(built: &Built) -> Vec<u8> {
    Site::of(built).text(&built.workloads[0], &[])
}

/// The command fails with these words, and the program does not run.
fn refused(site: &Site<'_>, options: &[&str], expected: &str) {
    let mut command = std::process::Command::new(tomo::path().expect("tomo"));
    command
        .env("TOMO_CACHE_DIR", site.cache.path())
        .arg("paths");
    if !options.contains(&"-o") {
        command.arg("-o").arg(site.runs.path());
    }
    let output = command
        .args(options)
        .args(["--", &site.built.program.display().to_string()])
        .output()
        .expect("run");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success(), "{options:?}: {said}");
    assert!(said.contains(expected), "{options:?}: {said}");
    assert!(output.stdout.is_empty(), "{options:?}: it ran");
}
