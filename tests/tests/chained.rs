//! Chains of calls are exact: what `tomo chains` notes is what a debugger that executes the same run instruction
//! by instruction saw, chain by chain, call site by call site.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::process::Command;

use serde::Deserialize;
use tomo_testkit::corpus::{
    Built, Compiler, Level, Recipe, Source, Workload, build, compiled, given,
};
use tomo_testkit::coverage::{as_stepped, complete, complete_as_stepped};
use tomo_testkit::held::tell;
use tomo_testkit::steps::chains::{Chain, Follower, Functions, Observed, Way};
use tomo_testkit::steps::{Outside, follow};
use tomo_testkit::tomo;

/// Far more steps than any workload takes.
const LIMIT: u64 = 60_000_000;

#[derive(Deserialize)]
struct Document {
    chains: Vec<Row>,
    functions: Vec<Function>,
    unobserved: Vec<Function>,
    lost_threads: u64,
}

#[derive(Deserialize)]
struct Row {
    parent: usize,
    way: String,
    site: Option<String>,
    function: String,
    name: Option<String>,
    calls: u64,
}

#[derive(Deserialize)]
struct Function {
    address: String,
    name: Option<String>,
    #[serde(default)]
    leaf: bool,
}

fn address(text: &str) -> u64 {
    let digits = text.strip_prefix("0x").expect("an address");
    u64::from_str_radix(digits, 16).expect("an address")
}

impl Document {
    fn observed(&self) -> Observed {
        let functions = self.functions.iter();
        let functions = functions.map(|function| (address(&function.address), function.leaf));
        Observed {
            functions: functions.collect(),
        }
    }

    /// The chains as the oracle tells them.
    fn chains(&self) -> BTreeMap<Chain, u64> {
        let mut known: Vec<Chain> = vec![Chain::new()];
        let mut chains = BTreeMap::new();
        for row in &self.chains {
            let site = row.site.as_deref().map(address);
            let way = match (row.way.as_str(), site) {
                ("call" | "unobserved", Some(site)) => Way::Call(site),
                ("tail-call", Some(site)) => Way::Tail(site),
                ("outside", site) => Way::Outside(site),
                ("signal", _) => Way::Signal,
                (way, _) => panic!("{way} {} {:?}", row.calls, row.name),
            };
            let mut chain = known[row.parent].clone();
            chain.push((way, address(&row.function)));
            known.push(chain.clone());
            if row.calls > 0 {
                *chains.entry(chain).or_default() += row.calls;
            }
        }
        chains
    }

    fn name(&self, function: u64) -> String {
        let named = self.functions.iter().chain(&self.unobserved);
        let mut named = named.filter(|one| address(&one.address) == function);
        let name = named.next().and_then(|one| one.name.clone());
        name.unwrap_or_else(|| format!("{function:#x}"))
    }

    fn words(&self, chain: &Chain) -> String {
        let steps = chain.iter().map(|(way, function)| {
            let name = self.name(*function);
            match way {
                Way::Call(site) => format!("-{site:#x}-> {name}"),
                Way::Tail(site) => format!("~{site:#x}~> {name}"),
                Way::Outside(Some(site)) => format!("[{site:#x}] {name}"),
                Way::Outside(None) => format!("[] {name}"),
                Way::Signal => format!("! {name}"),
            }
        });
        steps.collect::<Vec<_>>().join(" ")
    }
}

fn noted(program: &Path, workload: &Workload, cache: &Path) -> Document {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("chains.json");
    let mut command = as_stepped(tomo::path().expect("tomo"));
    command.env("TOMO_CACHE_DIR", cache);
    command.current_dir(workload.cwd.as_deref().unwrap_or(folder.path()));
    command
        .args(["chains", "-o"])
        .arg(folder.path().join("runs"));
    command.arg("--json").arg(&file);
    command.arg("--").arg(program).args(&workload.args);
    let input = workload.stdin.as_deref().unwrap_or_default();
    let output = complete_as_stepped(command, input).expect("run");
    let text = std::fs::read(&file).unwrap_or_else(|error| {
        let said = String::from_utf8_lossy(&output.stderr);
        panic!("{}: {error}: {said}", program.display())
    });
    serde_json::from_slice(&text).expect("a document")
}

/// How many chains agreed; panics where one does not.
fn compare(
    name: &str,
    program: &Path,
    functions: &Functions,
    workload: &Workload,
    cache: &Path,
) -> usize {
    let document = noted(program, workload, cache);
    assert_eq!(document.lost_threads, 0, "{name}");
    let follower = Follower::new(functions.clone(), document.observed());
    let followed = follow(program, workload, Outside::Leap, LIMIT, follower);
    let (_, follower) = followed.expect("followed");
    let (seen, noted) = (follower.chains(), document.chains());
    let mut wrong: Vec<String> = Vec::new();
    let only = noted.keys().filter(|chain| !seen.contains_key(*chain));
    for chain in only.chain(seen.keys()) {
        let (times, count) = (seen.get(chain), noted.get(chain));
        if times != count {
            let words = document.words(chain);
            wrong.push(format!("{words}: called {times:?} times, noted {count:?}"));
        }
    }
    let some: Vec<&String> = wrong.iter().take(12).collect();
    let all = seen.len();
    assert!(
        wrong.is_empty(),
        "{name}: {} of {all} wrong: {some:#?}",
        wrong.len()
    );
    all
}

fn check(recipes: impl IntoIterator<Item = Recipe>) {
    for recipe in recipes {
        check_one(&build(&recipe).expect("built"), 50);
    }
}

/// Holds the chains of one build against single steps; there must be more than `least`.
fn check_one(built: &Built, least: usize) {
    let cache = tempfile::tempdir().expect("a folder");
    let lines = tomo::map_lines(&built.program).expect("a map");
    let functions = Functions::read(&lines).expect("functions");
    let Built { program, name, .. } = built;
    let agreed = |workload| compare(name, program, &functions, workload, cache.path());
    let agreed: usize = built.workloads.iter().map(agreed).sum();
    assert!(agreed > least, "{name}: only {agreed} chains");
    tell("chains", name, agreed);
}

#[test]
#[ignore = "cargo xtask held names the program"]
fn chains_hold_for_the_named_program() {
    check_one(&given().expect("a program"), 0);
}

#[test]
fn chains_of_c_features_are_exact() {
    check(Recipe::family(Source::CFeatures));
}

#[test]
fn chains_of_cpp_exceptions_are_exact() {
    check(Recipe::family(Source::CppFeatures));
}

#[test]
fn chains_of_rust_panics_are_exact() {
    check(Recipe::family(Source::RustFeatures));
}

#[test]
fn chains_of_lua_are_exact() {
    check([Recipe::new(Source::Lua, Compiler::Gcc, Level::O2)]);
}

#[test]
#[ignore = "single steps take minutes; cargo xtask bench truth runs it"]
fn chains_of_large_programs_are_exact() {
    check(Recipe::large());
}

#[test]
fn chains_of_bzip2_are_exact() {
    check([Recipe::new(Source::Bzip2, Compiler::Clang, Level::O2)]);
}

/// A function is known again where a pointer leads to it, whether there is room for a jump at its start or for a short
/// one only; what leads to it by a jump of its own is another, and is not observed.
#[test]
fn chains_are_exact_where_pointers_replace_functions() {
    for compiler in ["gcc", "clang-19"] {
        let program = compiled(compiler, "replacing.c", &["-O2"]).expect("built");
        let lines = tomo::map_lines(&program).expect("a map");
        let functions = Functions::read(&lines).expect("functions");
        let cache = tempfile::tempdir().expect("a folder");
        let workload = Workload::default();
        let document = noted(&program, &workload, cache.path());
        let is_among = |all: &[Function], name: &str| {
            let mut names = all.iter().map(|one| one.name.as_deref());
            names.any(|one| one == Some(name))
        };
        for observed in ["crowded", "roomy", "chooses", "looks_up"] {
            assert!(is_among(&document.functions, observed), "{observed}");
        }
        assert!(is_among(&document.unobserved, "passes_on"));
        let agreed = compare(compiler, &program, &functions, &workload, cache.path());
        assert!(agreed > 10, "{compiler}: only {agreed} chains");
    }
}

/// The chains of a run of `counting.c`, as folded stacks.
fn folded(scenario: &str) -> String {
    let folder = tempfile::tempdir().expect("a folder");
    folded_in(folder.path(), scenario, &[])
}

/// The same of a run whose folder is made in `folder`, with more flags.
fn folded_in(folder: &Path, scenario: &str, flags: &[&str]) -> String {
    let program = compiled("gcc", "counting.c", &["-O2", "-pthread"]).expect("built");
    let mut command = Command::new(tomo::path().expect("tomo"));
    command.env("TOMO_CACHE_DIR", folder.join("cache"));
    command.current_dir(folder);
    command.args(["chains", "--folded", "folded", "--leaf", "work"]);
    command.args(flags).arg("--").arg(&program).arg(scenario);
    complete(command, b"").expect("run");
    std::fs::read_to_string(folder.join("folded")).expect("folded stacks")
}

/// A known number of calls of `work`, in threads and processes of all kinds. The chains of a forked process begin with it.
#[test]
fn chains_are_exact_whatever_threads_and_processes_do() {
    let main = "_start;[__libc_start_main];main";
    for (scenario, expected) in [
        ("once", format!("{main};all;work 20000\n")),
        ("threads", "thread;all;work 160000\n".to_owned()),
        ("left", "thread;all;work 160000\n".to_owned()),
        ("many", "thread;all;work 8000000\n".to_owned()),
        (
            "forks",
            "[unplaced];all;work 120000\nthread;all;work 240000\n".to_owned(),
        ),
        ("vfork", format!("{main};all;work 40000\n")),
        ("killed", format!("{main};all;work 20000\n")),
        (
            "exits",
            format!("[unplaced];all;work 20000\n{main};all;work 20000\n"),
        ),
        ("leaps", format!("{main};[signal];handler;work 100\n")),
    ] {
        assert_eq!(folded(scenario), expected, "{scenario}");
    }
}

/// Bytes that the files of this name take on the disk, in the folders in `folder`.
fn taken(folder: &Path, name: &str) -> u64 {
    let folders = std::fs::read_dir(folder).expect("a folder");
    let files = folders.map(|each| each.expect("an entry").path().join(name));
    let taken = files.map(|file| std::fs::metadata(file).expect("a file").blocks() * 512);
    taken.sum()
}

/// Each of many processes that run at once has a tree of its own; those beyond the first ones have less room for it.
#[test]
fn a_crowd_of_processes_is_told_of_and_does_not_fill_the_disk() {
    let folder = tempfile::tempdir().expect("a folder");
    let chains = folded_in(folder.path(), "crowd", &["--memory", "1", "-o", "runs"]);
    assert_eq!(chains, "[unplaced];work 300\n");
    let taken = taken(&folder.path().join("runs"), "slabs") >> 20;
    assert!((64..80).contains(&taken), "{taken} MB");
}
