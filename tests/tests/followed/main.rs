//! Paths are exact: what `tomo paths` says of every function is what an oracle saw that executed the same run
//! instruction by instruction.

mod selected;

use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::process::Command;

use serde::Deserialize;
use tomo_testkit::corpus::{
    Built, Compiler, Level, Recipe, Source, Workload, build, compiled, given,
};
use tomo_testkit::coverage::complete;
use tomo_testkit::held::tell;
use tomo_testkit::paths::{self, End, Ends, Follower, Last, Ran};
use tomo_testkit::steps::{Outside, observe_each};
use tomo_testkit::tomo;

/// Far more steps than any workload takes.
const LIMIT: u64 = 60_000_000;

#[derive(Deserialize)]
struct Document {
    functions: Vec<Function>,
    left_out: Vec<Left>,
    contradictory: Vec<String>,
    lost_threads: u64,
}

#[derive(Deserialize)]
struct Function {
    name: String,
    address: String,
    asked: String,
    started: Option<u64>,
    completed: Option<u64>,
    cut: Option<u64>,
    paths: Vec<Counted>,
    breaks: Vec<Break>,
    unfollowed: Vec<String>,
}

#[derive(Deserialize)]
struct Counted {
    count: u64,
    blocks: Vec<String>,
    end: Option<String>,
}

#[derive(Deserialize)]
struct Break {
    from: String,
    to: String,
    path: End,
}

#[derive(Deserialize)]
struct Left {
    name: String,
    reason: String,
}

fn address(text: &str) -> u64 {
    let digits = text.strip_prefix("0x").expect("an address");
    u64::from_str_radix(digits, 16).expect("an address")
}

impl Function {
    fn ends(&self) -> Ends {
        let breaks = self.breaks.iter();
        let edges = breaks.map(|one| ((address(&one.from), address(&one.to)), one.path));
        let unfollowed = self.unfollowed.iter();
        Ends {
            edges: edges.collect(),
            unfollowed: unfollowed.map(|block| address(block)).collect(),
        }
    }

    /// Its paths as the oracle names them, with their counts.
    fn paths(&self) -> impl Iterator<Item = (paths::Path, u64)> {
        self.paths.iter().map(|path| {
            let blocks = path.blocks.iter().map(|block| address(block)).collect();
            let end = path
                .end
                .as_deref()
                .map_or(Last::Exit, |to| Last::Edge(address(to)));
            ((blocks, end), path.count)
        })
    }

    /// What it is said to have done, as the oracle says it.
    fn ran(&self) -> Ran {
        Ran {
            paths: self.paths().collect(),
            cut: self.cut.expect("without forks it is known"),
            cyclic: 0,
        }
    }
}

fn document(program: &Path, args: &[String], input: &[u8], cache: &Path) -> Document {
    let text = told(program, args, input, cache, &[]);
    serde_json::from_slice(&text).expect("a document")
}

/// What `tomo paths` tells in JSON, with these options besides.
fn told(program: &Path, args: &[String], input: &[u8], cache: &Path, more: &[&str]) -> Vec<u8> {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("paths");
    // As in the oracle's run: programs behave by addresses and by their environment.
    let mut command = Command::new("setarch");
    command.arg("-R").arg(tomo::path().expect("tomo"));
    command
        .env_clear()
        .env("PATH", "/usr/bin:/bin")
        .env("LC_ALL", "C")
        .env("TZ", "UTC")
        .env("LD_BIND_NOW", "1")
        .env("TOMO_CACHE_DIR", cache)
        .current_dir(folder.path());
    command
        .args(["paths", "--format", "json", "--to"])
        .arg(&file)
        .args(more);
    command.arg("--").arg(program).args(args);
    let output = complete(command, input).expect("run");
    std::fs::read(&file).unwrap_or_else(|error| {
        let said = String::from_utf8_lossy(&output.stderr);
        panic!("{}: {error}: {said}", program.display())
    })
}

/// What single steps say of the functions of `document`.
fn oracle(
    program: &Path,
    lines: &[u8],
    workload: &Workload,
    document: &Document,
) -> HashMap<u64, Ran> {
    let functions = document.functions.iter();
    let ends = functions.map(|function| (address(&function.address), function.ends()));
    let mut follower = Follower::new(lines, ends.collect()).expect("a model");
    let each = &mut |step: &_| follower.step(step);
    observe_each(program, workload, Outside::Leap, LIMIT, each).expect("traced");
    follower.finish()
}

/// How many paths agreed; panics where one does not.
fn compare(name: &str, document: &Document, oracle: &HashMap<u64, Ran>) -> usize {
    assert_eq!(document.contradictory, Vec::<String>::new(), "{name}");
    assert_eq!(document.lost_threads, 0, "{name}");
    let mut wrong = Vec::new();
    let mut agreed = 0;
    for function in &document.functions {
        let ran = oracle
            .get(&address(&function.address))
            .cloned()
            .unwrap_or_default();
        let said = function.ran();
        match said == ran {
            true => agreed += said.paths.len(),
            false => wrong.push(difference(&function.name, &said, &ran)),
        }
    }
    let some: Vec<&String> = wrong.iter().take(3).collect();
    assert!(wrong.is_empty(), "{name}: {} wrong: {some:#?}", wrong.len());
    agreed
}

fn difference(name: &str, said: &Ran, seen: &Ran) -> String {
    let beside = |one: &Ran, other: &Ran| -> BTreeMap<_, _> {
        let paths = one.paths.iter();
        let differ = paths.filter(|(path, count)| other.paths.get(*path) != Some(count));
        differ.map(|(path, count)| (path.clone(), *count)).collect()
    };
    let (only_said, only_seen) = (beside(said, seen), beside(seen, said));
    let (cut, cyclic) = ([said.cut, seen.cut], seen.cyclic);
    format!("{name}: {only_said:x?} is said, {only_seen:x?} was seen, cut {cut:?}, cyclic {cyclic}")
}

/// Compares all workloads; gives how many functions were followed, and how many were left out by reason.
fn check_one(built: &Built, least: usize) -> BTreeMap<String, usize> {
    let cache = tempfile::tempdir().expect("a folder");
    let lines = tomo::map_lines(&built.program).expect("a model");
    let mut reasons = BTreeMap::new();
    let mut all = 0;
    for workload in &built.workloads {
        let input = workload.stdin.as_deref().unwrap_or_default();
        let document = document(&built.program, &workload.args, input, cache.path());
        let oracle = oracle(&built.program, &lines, workload, &document);
        let agreed = compare(&built.name, &document, &oracle);
        assert!(agreed >= least, "{}: only {agreed} paths ran", built.name);
        all += agreed;
        reasons = BTreeMap::from([("followed".to_owned(), document.functions.len())]);
        for left in &document.left_out {
            *reasons.entry(left.reason.clone()).or_default() += 1;
        }
    }
    tell("paths", &built.name, all);
    reasons
}

fn check(recipes: impl IntoIterator<Item = Recipe>, least: usize) {
    for recipe in recipes {
        check_one(&build(&recipe).expect("built"), least);
    }
}

#[test]
#[ignore = "cargo xtask held names the program"]
fn paths_hold_for_the_named_program() {
    check_one(&given().expect("a program"), 1);
}

#[test]
fn paths_of_c_features_are_exact() {
    check(Recipe::family(Source::CFeatures), 50);
}

#[test]
fn paths_of_cpp_exceptions_are_exact() {
    check(Recipe::family(Source::CppFeatures), 50);
}

#[test]
fn paths_of_rust_panics_are_exact() {
    check(Recipe::family(Source::RustFeatures), 50);
}

/// Paths end where what returns twice is called, whatever it is called, and where a function runs on into the next one.
#[test]
fn paths_where_control_is_unusual_are_exact() {
    let program = compiled("gcc", "unusual.c", &["-O2"]).expect("built");
    let built = Built {
        name: "unusual".into(),
        program,
        workloads: vec![Workload::default()],
    };
    let reasons = check_one(&built, 15);
    let cache = tempfile::tempdir().expect("a folder");
    let document = document(&built.program, &[], b"", cache.path());
    let ran = |name| counts(named(&document, name));
    assert_eq!(ran("first"), [5, 5], "{reasons:?}");
    assert_eq!(ran("second").iter().sum::<u64>(), 20);
    // At the call, and behind it if nothing is left by its second return.
    for name in [
        "saved",
        "saved_by_name",
        "saved_by_branching",
        "saved_by_leading",
    ] {
        assert_eq!(ran(name).iter().sum::<u64>(), 10 + 5 + 5, "{name}");
    }
}

/// What is done at a block's start comes before what is done at its end, however near that is; both ways of a branch may lead to one
/// block.
#[test]
fn paths_where_blocks_are_awkward_are_exact() {
    let built = Built {
        name: "awkward".into(),
        program: compiled("gcc", "awkward.s", &[]).expect("built"),
        workloads: vec![Workload::default()],
    };
    check_one(&built, 15);
}

#[test]
fn paths_of_lua_are_exact() {
    check([Recipe::new(Source::Lua, Compiler::Gcc, Level::O2)], 500);
}

#[test]
#[ignore = "single steps take minutes; cargo xtask bench truth runs it"]
fn paths_of_large_programs_are_exact() {
    check(Recipe::large(), 30);
}

#[test]
fn paths_of_bzip2_are_exact() {
    check([Recipe::new(Source::Bzip2, Compiler::Clang, Level::O3)], 30);
}

/// The function with this name, which must have been followed.
fn named<'d>(document: &'d Document, name: &str) -> &'d Function {
    let function = document.functions.iter().find(|one| one.name == name);
    function.unwrap_or_else(|| {
        let left = document.left_out.iter().find(|left| left.name == name);
        panic!(
            "{name} was not followed: {:?}",
            left.map(|left| &left.reason)
        )
    })
}

/// How often each path ran, the most frequent first.
fn counts(function: &Function) -> Vec<u64> {
    let mut counts: Vec<u64> = function.paths.iter().map(|path| path.count).collect();
    counts.sort_unstable_by_key(|count| std::cmp::Reverse(*count));
    counts
}

/// A known number of calls of `work` in each scenario, a third of which takes each of two ways, half of those
/// another, in threads and processes of all kinds.
#[test]
fn paths_are_exact_whatever_threads_and_processes_do() {
    let program = compiled("gcc", "counting.c", &["-O2", "-pthread"]).expect("built");
    let cache = tempfile::tempdir().expect("a folder");
    for (scenario, times) in [
        ("once", 1),
        ("threads", 8),
        ("left", 8),
        ("many", 400),
        ("forks", 18),
        ("vfork", 2),
        ("killed", 1),
        ("exits", 2),
    ] {
        let document = document(&program, &[scenario.into()], b"", cache.path());
        assert_eq!(document.contradictory, Vec::<String>::new(), "{scenario}");
        assert_eq!(document.lost_threads, 0, "{scenario}");
        let work = named(&document, "work");
        let expected = [6667, 6666, 3334, 3333].map(|count| count * times);
        assert_eq!(counts(work), expected, "{scenario}");
        assert_eq!(
            (work.started, work.completed),
            (Some(20_000 * times), Some(20_000 * times))
        );
    }
    let document = document(&program, &["leaps".into()], b"", cache.path());
    assert_eq!(counts(named(&document, "work")), [100]);
}

/// What comes in the middle of a path: recursion, signals, `longjmp`, exceptions of the C library, the end of the
/// process. What is said of each is stated in the program.
#[test]
fn what_comes_in_the_middle_of_a_path_leaves_others_alone() {
    for compiler in ["gcc", "clang-19"] {
        for level in ["-O0", "-O1", "-O2"] {
            let program = compiled(
                compiler,
                "interrupting.c",
                &[level, "-pthread", "-fexceptions"],
            );
            let program = program.expect("built");
            let cache = tempfile::tempdir().expect("a folder");
            for scenario in ["recursion", "signals", "leaps", "leaves", "ends"] {
                interrupted(&program, (level, scenario), cache.path());
            }
        }
    }
}

fn interrupted(program: &Path, (level, scenario): (&str, &str), cache: &Path) {
    let document = document(program, &[scenario.into()], b"", cache);
    let name = format!("{} {level} {scenario}", program.display());
    assert_eq!(document.contradictory, Vec::<String>::new(), "{name}");
    // Where a block has no room paths end at the call before, so that there are more, and fewer are cut.
    let is_whole = |function: &Function| function.unfollowed.is_empty();
    let check = |function: &str, expected: (u64, u64)| {
        let function = named(&document, function);
        if is_whole(function) {
            let (started, completed) = expected;
            let cut = Some(started - completed);
            let said = (function.started, function.completed, function.cut);
            assert_eq!(said, (Some(started), Some(completed), cut), "{name}");
        }
        let both = function.started.zip(function.completed);
        let cut = both.map(|(started, completed)| started - completed);
        assert_eq!(cut, function.cut, "{name}");
    };
    match scenario {
        // The tree of calls of depth 10, in each of which a path starts and ends.
        "recursion" => {
            check("tree", (2047, 2047));
            let tree = named(&document, "tree");
            assert!(level != "-O0" || counts(tree) == [1024, 512, 511], "{name}");
        }
        "signals" => {
            check("between", (2000, 2000));
            check("handler", (1000, 1000));
            let between = named(&document, "between");
            assert_eq!(between.cut, Some(0), "{name}");
            assert!(level != "-O0" || counts(between) == [500; 4], "{name}");
        }
        "leaps" => check("leaper", (100, 50)),
        "leaves" => check("leaver", (8, 4)),
        _ => check("ender", (3, 2)),
    }
    if level == "-O0" {
        let function = ["tree", "between", "leaper", "leaver", "ender"];
        assert!(
            function.iter().all(|name| is_whole(named(&document, name))),
            "{name}"
        );
    }
}
