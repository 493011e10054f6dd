//! Counts are exact: what `tomo count` says of every block and edge is how often a debugger that executes
//! the same run instruction by instruction saw it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use serde::Deserialize;
use tomo_testkit::corpus::{
    Built, Compiler, Level, Recipe, Source, Workload, build, compiled, given,
};
use tomo_testkit::coverage::{as_stepped, complete, complete_as_stepped};
use tomo_testkit::held::tell;
use tomo_testkit::steps::{Kind, Outside, Trace, observe};
use tomo_testkit::tomo;

/// Far more steps than any workload takes.
const LIMIT: u64 = 60_000_000;

#[derive(Deserialize)]
struct Document {
    functions: Vec<Function>,
    contradictory: Vec<String>,
    lost_threads: u64,
    lost_faults: u64,
}

#[derive(Deserialize)]
struct Function {
    name: String,
    blocks: Vec<Block>,
    edges: Vec<Edge>,
}

#[derive(Deserialize)]
struct Block {
    address: String,
    size: u64,
    count: Option<u64>,
}

#[derive(Deserialize)]
struct Edge {
    from: String,
    to: String,
    count: Option<u64>,
}

fn address(text: &str) -> u64 {
    let digits = text.strip_prefix("0x").expect("an address");
    u64::from_str_radix(digits, 16).expect("an address")
}

/// How often control arrived at instructions, whether or not they could be executed, and passages of control made.
#[derive(Default)]
struct Seen {
    instructions: BTreeMap<u64, i64>,
    /// By where they led and where they came from.
    passages: BTreeMap<(u64, u64), u64>,
    /// Arrivals by returns, by where.
    returns: BTreeMap<u64, u64>,
    /// Arrivals by unwinders and `longjmp`, by where.
    landings: BTreeMap<u64, u64>,
}

impl Seen {
    fn of(trace: &Trace) -> Self {
        let mut seen = Self::default();
        for (transition, count) in &trace.transitions {
            if let Some(from) = transition.from {
                *seen.instructions.entry(from).or_default() += count.cast_signed();
            }
            let Some(to) = transition.to else { continue };
            // It is the same arrival once more.
            if transition.kind == Kind::Resume {
                *seen.instructions.entry(to).or_default() -= count.cast_signed();
            }
            let came = match transition.kind {
                Kind::Flow => transition.from,
                Kind::Return { call } => {
                    *seen.returns.entry(to).or_default() += count;
                    call
                }
                Kind::Landing { call } => {
                    *seen.landings.entry(to).or_default() += count;
                    call
                }
                _ => None,
            };
            if let Some(from) = came {
                *seen.passages.entry((to, from)).or_default() += count;
            }
        }
        seen
    }

    fn block(&self, start: u64) -> u64 {
        let arrivals = self.instructions.get(&start).copied().unwrap_or(0);
        u64::try_from(arrivals).expect("who comes back was there")
    }

    /// How often control passed from the block with these bytes to `to`. What `setjmp` was called once for may
    /// come back twice; but where nothing ever returns to, a block that happens to end in front of a landing pad
    /// has nothing to do with it.
    fn edge(&self, from: std::ops::Range<u64>, to: u64) -> u64 {
        let passages = self.passages.range((to, from.start)..(to, from.end));
        let passages = passages.map(|(_, count)| count).sum();
        match self.returns.get(&to) {
            Some(returns) if to == from.end => returns + self.landings.get(&to).unwrap_or(&0),
            _ => passages,
        }
    }
}

fn counted(program: &Path, args: &[String], input: &[u8], cache: &Path) -> Document {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("counts");
    let mut command = as_stepped(tomo::path().expect("tomo"));
    command
        .env("TOMO_CACHE_DIR", cache)
        .current_dir(folder.path());
    command
        .args(["count", "--format", "json", "--to"])
        .arg(&file);
    command.arg("--").arg(program).args(args);
    let output = complete_as_stepped(command, input).expect("run");
    let text = std::fs::read(&file).unwrap_or_else(|error| {
        let said = String::from_utf8_lossy(&output.stderr);
        panic!("{}: {error}: {said}", program.display())
    });
    serde_json::from_slice(&text).expect("a document")
}

/// How many counts agreed, of those that are known; panics where one does not.
fn compare(built: &Built, document: &Document, trace: &Trace) -> usize {
    let name = &built.name;
    assert_eq!(document.contradictory, Vec::<String>::new(), "{name}");
    assert_eq!(document.lost_threads, 0, "{name}");
    assert_eq!(document.lost_faults, 0, "{name}");
    let seen = Seen::of(trace);
    let (mut wrong, mut agreed) = (Vec::new(), 0);
    for function in &document.functions {
        let mut sizes = BTreeMap::new();
        for block in &function.blocks {
            let start = address(&block.address);
            sizes.insert(start, block.size);
            match block.count {
                Some(count) if count == seen.block(start) => agreed += 1,
                Some(count) => wrong.push(format!(
                    "{}: block {start:#x} ran {} times, not {count}",
                    function.name,
                    seen.block(start)
                )),
                None => {}
            }
        }
        // Both ways of a branch may lead to one block; which one was gone no step shows.
        let mut passages: BTreeMap<(u64, u64), Option<u64>> = BTreeMap::new();
        for edge in &function.edges {
            let ends = (address(&edge.from), address(&edge.to));
            let sum = passages.entry(ends).or_insert(Some(0));
            *sum = sum.zip(edge.count).map(|(sum, count)| sum + count);
        }
        for ((from, to), count) in passages {
            let ran = seen.edge(from..from + sizes.get(&from).copied().unwrap_or(0), to);
            match count {
                Some(count) if count == ran => agreed += 1,
                Some(count) => wrong.push(format!(
                    "{}: edge {from:#x} to {to:#x} ran {ran} times, not {count}",
                    function.name
                )),
                None => {}
            }
        }
    }
    let some: Vec<&String> = wrong.iter().take(20).collect();
    assert!(wrong.is_empty(), "{name}: {} wrong: {some:#?}", wrong.len());
    agreed
}

fn check(recipes: impl IntoIterator<Item = Recipe>) {
    for recipe in recipes {
        check_one(&build(&recipe).expect("built"), 100);
    }
}

/// Holds the counts of one build against single steps; each workload must have more than `least` that are known.
fn check_one(built: &Built, least: usize) {
    let cache = tempfile::tempdir().expect("a folder");
    let mut all = 0;
    for workload in &built.workloads {
        let trace = observe(&built.program, workload, Outside::Leap, LIMIT).expect("traced");
        let input = workload.stdin.as_deref().unwrap_or_default();
        let document = counted(&built.program, &workload.args, input, cache.path());
        let agreed = compare(built, &document, &trace);
        assert!(
            agreed > least,
            "{}: only {agreed} counts are known",
            built.name
        );
        all += agreed;
    }
    tell("counts", &built.name, all);
}

#[test]
#[ignore = "cargo xtask held names the program"]
fn counts_hold_for_the_named_program() {
    check_one(&given().expect("a program"), 0);
}

#[test]
fn counts_of_c_features_are_exact() {
    check(Recipe::family(Source::CFeatures));
}

#[test]
fn counts_of_cpp_exceptions_are_exact() {
    check([
        Recipe::new(Source::CppFeatures, Compiler::Gcc, Level::O2),
        Recipe::new(Source::CppFeatures, Compiler::Clang, Level::O0),
    ]);
}

/// Landing pads lie in parts that nothing else leads to.
#[test]
fn counts_of_blocks_in_sections_of_their_own_are_exact() {
    let of = |(source, level)| Recipe {
        extra: vec!["-fbasic-block-sections=all".into()],
        ..Recipe::new(source, Compiler::Clang, level)
    };
    check([(Source::Bzip2, Level::O2), (Source::CppFeatures, Level::O0)].map(of));
}

/// A function is entered by others in its middle; a jump leads to a label or leaves.
#[test]
fn counts_of_what_comes_in_and_goes_out_by_jumps_are_exact() {
    for source in ["crossing.c", "threaded.c"] {
        for level in ["-O0", "-O2"] {
            check_one(&small("gcc", source, &[level]), 30);
        }
    }
}

/// Both ways of a branch lead to one block.
#[test]
fn counts_of_ways_that_lead_to_one_block_are_exact() {
    check_one(&small("gcc", "awkward.s", &[]), 80);
}

/// A table was once read to an end that nothing speaks for any more.
#[test]
fn counts_behind_a_table_that_seemed_shorter_are_exact() {
    check_one(&small("clang-19", "capped.c", &["-Os", "-w"]), 30);
}

/// A program of one file, that is run once.
fn small(compiler: &str, source: &str, flags: &[&str]) -> Built {
    Built {
        program: compiled(compiler, source, flags).expect("built"),
        name: format!("{source}{}", flags.concat()),
        workloads: vec![Workload::default()],
    }
}

#[test]
fn counts_of_rust_panics_are_exact() {
    check(Recipe::family(Source::RustFeatures));
}

#[test]
fn counts_of_bzip2_are_exact() {
    check([Recipe::new(Source::Bzip2, Compiler::Clang, Level::O2)]);
}

#[test]
#[ignore = "single steps take minutes; cargo xtask bench truth runs it"]
fn counts_of_large_programs_are_exact() {
    check(Recipe::large());
}

/// A known number of calls of `work` in each scenario, of which every second takes the one way and every third
/// another, in threads and processes of all kinds.
#[test]
fn counts_are_exact_whatever_threads_and_processes_do() {
    let program = compiled("gcc", "counting.c", &["-O2", "-pthread"]).expect("built");
    let cache = tempfile::tempdir().expect("a folder");
    for (scenario, times) in [
        ("once", 1),
        ("threads", 8),
        ("left", 8),
        ("many", 400),
        ("forks", 18),
        ("vfork", 2),
        ("terminals", 4),
        ("killed", 1),
        ("exits", 2),
    ] {
        let document = counted(&program, &[scenario.into()], b"", cache.path());
        assert_eq!(document.contradictory, Vec::<String>::new(), "{scenario}");
        assert_eq!(document.lost_threads, 0, "{scenario}");
        let rounds = 20_000 * times;
        assert_eq!(
            counts_of(&document, "work"),
            (rounds, rounds / 2),
            "{scenario}"
        );
    }
    let document = counted(&program, &["parts".into()], b"", cache.path());
    assert_eq!(document.contradictory, Vec::<String>::new());
    let parts = document.functions.iter().find(|one| one.name == "parts");
    let blocks = &parts.expect("the function").blocks;
    let counts: Vec<u64> = blocks.iter().filter_map(|block| block.count).collect();
    assert_eq!((counts.len(), counts[0]), (blocks.len(), 8));
    // What is behind the one that comes back twice runs in both processes; behind the other nothing does.
    let times = |wanted| counts.iter().filter(|count| **count == wanted).count();
    let [never, half, each, twice] = [0, 4, 8, 16].map(times);
    assert_eq!(never + half + each + twice, counts.len(), "{counts:?}");
    assert!(
        never >= 1 && half >= 2 && each >= 3 && twice == 1,
        "{counts:?}"
    );
    let document = counted(&program, &["leaps".into()], b"", cache.path());
    assert_eq!(counts_of(&document, "work").0, 100);
    assert_eq!(counts_of(&document, "handler").0, 100);
}

/// Counts are exact also where faults take threads out of the middle of blocks: handlers throw or jump from there, come back, go on behind
/// it, fault themselves, enter functions or end the program, or there is none.
#[test]
fn counts_around_faults_are_exact() {
    for (compiler, level) in [("gcc", "-O0"), ("gcc", "-O2"), ("clang-19", "-O2")] {
        let mut built = small(compiler, "cut.c", &[level]);
        built.workloads.push(Workload {
            args: vec!["crash".into()],
            ..Workload::default()
        });
        check_one(&built, 40);
        // A handler that raises the signal once more, or returns and is none any more, leaves the thread where it was.
        let cache = tempfile::tempdir().expect("a folder");
        let count = |way: &str| {
            let document = counted(&built.program, &[way.into()], b"", cache.path());
            assert_eq!(document.contradictory, Vec::<String>::new(), "{way}");
            let functions = document.functions.into_iter();
            let copies = functions.filter(|one| one.name.starts_with("compared"));
            let blocks = copies.flat_map(|one| one.blocks);
            let counts: Vec<_> = blocks.map(|block| block.count).collect();
            assert!(counts.iter().any(|count| *count > Some(1)), "{counts:?}");
            counts
        };
        let crashed = count("crash");
        for way in ["raises", "returns"] {
            assert_eq!(count(way), crashed, "{compiler} {level}: {way}");
        }
    }
    let flags = ["-fnon-call-exceptions", "-rdynamic"];
    for level in ["-O0", "-O2"] {
        check_one(
            &small("g++", "faulting.cpp", &[&flags[..], &[level]].concat()),
            40,
        );
    }
}

/// A thread counts for itself from its first instruction on, be it a handler's.
#[test]
fn counts_of_handlers_in_new_threads_are_exact() {
    let program = compiled("gcc", "awaited.c", &["-O1", "-pthread"]).expect("built");
    let folder = tempfile::tempdir().expect("a folder");
    for _ in 0..3 {
        let output = folder.path().join("counts.json");
        let mut command = Command::new(tomo::path().expect("tomo"));
        command
            .env("TOMO_CACHE_DIR", folder.path().join("cache"))
            .current_dir(folder.path())
            .args(["count", "--format", "json", "--to"])
            .arg(&output)
            .arg("--")
            .arg(&program);
        let said = complete(command, b"").expect("run").stdout;
        let said = String::from_utf8_lossy(&said);
        let said: Vec<u64> = said
            .split_whitespace()
            .map(|word| word.parse().expect("a number"))
            .collect();
        let [handled, calls] = said[..] else {
            panic!("{said:?}");
        };
        assert!(handled > 0);
        let document = std::fs::read(&output).expect("counts");
        let document: Document = serde_json::from_slice(&document).expect("a document");
        assert_eq!(counts_of(&document, "handle").0, handled);
        assert_eq!(counts_of(&document, "work").0, calls);
    }
}

/// Where a handler sends threads into a block by no way that is known, nothing is claimed of the function, and that is said.
#[test]
fn a_function_into_which_handlers_send_threads_is_not_told_wrongly() {
    let program = compiled("gcc", "cut.c", &["-O1"]).expect("built");
    let cache = tempfile::tempdir().expect("a folder");
    let document = counted(&program, &["divert".into()], b"", cache.path());
    assert_eq!(document.contradictory.len(), 1);
    let named = |name: &str| document.functions.iter().any(|one| one.name == name);
    assert!(named("diverts") && !named("diverted"));
}

/// Of more places than a record has room for those are said that were not noted.
#[test]
fn faults_at_too_many_places_are_counted() {
    let program = compiled("gcc", "cut.c", &["-O1"]).expect("built");
    let cache = tempfile::tempdir().expect("a folder");
    let document = counted(&program, &["many".into()], b"", cache.path());
    assert_eq!(document.lost_faults, 300 - tomo_wire::cuts::MOST as u64);
}

/// Counts are exact also where a function that is called forks, and comes back to its caller in both processes.
#[test]
fn counts_above_a_function_that_forks_are_exact() {
    let program = compiled("gcc", "counting.c", &["-O2", "-pthread"]).expect("built");
    let cache = tempfile::tempdir().expect("a folder");
    let document = counted(&program, &["below".into()], b"", cache.path());
    assert_eq!(document.contradictory, Vec::<String>::new());
    let below = document.functions.iter().find(|one| one.name == "below");
    let blocks = below.expect("the function").blocks.iter();
    let counts: Vec<_> = blocks.map(|block| block.count.expect("known")).collect();
    // Its call, what is behind it in both processes, and what only the one or the other does.
    assert_eq!((counts[0], counts[1]), (8, 16), "{counts:?}");
    assert!(counts[2..].iter().all(|count| *count == 8), "{counts:?}");
}

/// Who comes back from a system call finds the module's own code, and counts from there on.
#[test]
fn counts_behind_system_calls_are_exact() {
    let program = compiled("gcc", "behind.c", &["-O2"]).expect("built");
    let cache = tempfile::tempdir().expect("a folder");
    let document = counted(&program, &[], b"", cache.path());
    // No jump fits in front of the one, so its calls are not counted.
    for (name, calls) in [("behind", Some(5)), ("closely_behind", None)] {
        let function = document.functions.iter().find(|one| one.name == name);
        let blocks = function.expect("the function").blocks.iter();
        let counts: Vec<_> = blocks.map(|block| block.count).collect();
        assert_eq!(counts, [calls, Some(15), Some(5)], "{name}");
    }
}

/// How often a function was entered, and how often the block ran that comes first of those that did not run
/// each time.
fn counts_of(document: &Document, name: &str) -> (u64, u64) {
    let function = document.functions.iter().find(|one| one.name == name);
    let blocks = &function.expect("the function").blocks;
    let counts: Vec<u64> = blocks
        .iter()
        .map(|block| block.count.expect("known"))
        .collect();
    let seldom = counts.iter().find(|count| **count < counts[0]);
    (counts[0], seldom.copied().unwrap_or(counts[0]))
}

/// Where nothing can be counted the program runs all the same, and it is said.
#[test]
fn a_program_runs_that_cannot_be_counted() {
    let program = compiled("gcc", "counting.c", &["-O2", "-pthread"]).expect("built");
    let mut command = Command::new(tomo::path().expect("tomo"));
    command.env("TOMO_CACHE_DIR", "/dev/null/cache");
    command.args(["count", "--"]).arg(&program).arg("once");
    let output = complete(command, b"").expect("run");
    assert_eq!(output.stdout, b"once\n");
    assert!(output.status.success());
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("was not counted"), "{said}");
    assert!(said.contains("TOMO_CACHE_DIR names another"), "{said}");
}

/// Lines ran as often as the source says that they do.
#[test]
fn counts_of_lines_are_those_that_the_source_states() {
    let source = include_str!("../programs/lines.c");
    assert_eq!(lines_as_stated("gcc", ("lines.c", source), "-O0"), 11);
}

/// Copies of a line are that line: what ran in each of them is added up.
#[test]
fn counts_of_lines_are_those_of_all_their_copies() {
    let source = include_str!("../programs/copies.cpp");
    assert_eq!(lines_as_stated("g++", ("copies.cpp", source), "-O0"), 4);
}

/// So are those of bodies that were put in place of calls, several in one function, one in another, and in one line.
#[test]
fn counts_of_lines_are_those_of_all_inlined_bodies() {
    let source = include_str!("../programs/put.c");
    // At -O2 Clang unrolls.
    for (compiler, levels) in [
        ("gcc", &["-O0", "-O1", "-O2"][..]),
        ("clang-19", &["-O0", "-O1"]),
    ] {
        for level in levels {
            let stated = lines_as_stated(compiler, ("put.c", source), level);
            assert_eq!(stated, 8, "{compiler} {level}");
        }
    }
}

/// Holds the counts of lines against those that the source states behind them; how many there are.
fn lines_as_stated(compiler: &str, (name, source): (&str, &str), level: &str) -> usize {
    let program = compiled(compiler, name, &[level, "-g"]).expect("built");
    let folder = tempfile::tempdir().expect("a folder");
    let mut command = Command::new(tomo::path().expect("tomo"));
    command
        .env("TOMO_CACHE_DIR", folder.path())
        .current_dir(folder.path());
    command.args(["count", "--format", "lcov", "--to", "lcov", "--"]);
    command.arg(&program);
    complete(command, b"").expect("run");
    let tracefile = std::fs::read_to_string(folder.path().join("lcov")).expect("a tracefile");
    let mut stated = 0;
    for (number, line) in (1..).zip(source.lines()) {
        let count = line
            .strip_suffix(" */")
            .and_then(|line| line.rsplit_once("/* "));
        let Some(count) = count.and_then(|(_, count)| count.parse::<u64>().ok()) else {
            continue;
        };
        stated += 1;
        let expected = format!("DA:{number},{count}");
        assert!(
            tracefile.lines().any(|line| line == expected),
            "{expected}:\n{tracefile}"
        );
    }
    stated
}

/// Counters that are chosen by an earlier run say the same, and fewer increments say it.
#[test]
fn an_earlier_run_chooses_cheaper_counters_that_say_the_same() {
    let program = compiled("gcc", "counting.c", &["-O2", "-pthread"]).expect("built");
    let folder = tempfile::tempdir().expect("a folder");
    let run = |options: &[&str], to: &str| {
        let mut command = Command::new(tomo::path().expect("tomo"));
        command.env("TOMO_CACHE_DIR", folder.path().join("cache"));
        command.current_dir(folder.path());
        command.args([
            "count",
            "--format",
            "json",
            "--to",
            to,
            "-o",
            to.trim_end_matches(".json"),
        ]);
        command.args(options).arg("--").arg(&program).arg("threads");
        complete(command, b"").expect("run");
        let text = std::fs::read(folder.path().join(to)).expect("counts");
        serde_json::from_slice::<serde_json::Value>(&text).expect("a document")
    };
    let increments = |runs: &str| -> u64 {
        let made = std::fs::read_dir(folder.path().join(runs)).expect("runs");
        let path = made.flatten().next().expect("a run").path();
        let counters = std::fs::read_dir(&path).expect("a run").flatten();
        let mut counters = counters.map(|entry| entry.path());
        let file = counters.find(|path| path.extension().is_some_and(|kind| kind == "counters"));
        let file = std::fs::read(file.expect("counters")).expect("counters");
        let (header, rows) = tomo_wire::counting::Counters::read(&file).expect("counters");
        let slabs = std::fs::read(path.join("slabs")).expect("slabs");
        let mut sums = vec![0; rows.len()];
        tomo_wire::counting::sums(&slabs, header.at.get(), &mut sums).expect("slabs");
        sums.iter().sum()
    };
    let first = run(&[], "first.json");
    let made = std::fs::read_dir(folder.path().join("first")).expect("runs");
    let earlier = made.flatten().next().expect("a run").path();
    let again = run(
        &["--weights", earlier.to_str().expect("UTF-8")],
        "again.json",
    );
    assert_eq!(first["lines"], again["lines"]);
    let counts = |document: &serde_json::Value, name: &str| {
        let functions = document["functions"].as_array().expect("functions");
        let named = functions.iter().find(|one| one["name"] == name);
        named.expect("the function")["blocks"].clone()
    };
    assert_eq!(counts(&first, "work"), counts(&again, "work"));
    assert!(increments("again") <= increments("first"));
}

/// By itself the newest run chooses the counters, or the one by which that was chosen itself; whose counts are damaged,
/// is passed over, and that is said.
#[test]
fn the_newest_run_chooses_counters_by_itself() {
    let program = compiled("gcc", "counting.c", &["-O2", "-pthread"]).expect("built");
    let folder = tempfile::tempdir().expect("a folder");
    let runs = || {
        let made = std::fs::read_dir(folder.path().join("runs"));
        let made = made.into_iter().flatten().flatten();
        made.map(|entry| entry.path()).collect::<BTreeSet<_>>()
    };
    // The counts, the run by which counters were chosen, the run itself, and what was said.
    let run = |options: &[&str]| {
        let before = runs();
        let mut command = Command::new(tomo::path().expect("tomo"));
        command.env("TOMO_CACHE_DIR", folder.path().join("cache"));
        command.current_dir(folder.path());
        command.args(["count", "--format", "json", "--to", "json", "-o", "runs"]);
        command.args(options).arg("--").arg(&program).arg("once");
        let output = complete(command, b"").expect("run");
        let text = std::fs::read(folder.path().join("json")).expect("counts");
        let counts: serde_json::Value = serde_json::from_slice(&text).expect("a document");
        let own = runs().difference(&before).next().cloned().expect("a run");
        let by = std::fs::read_to_string(own.join("weighed-by")).ok();
        (
            counts["lines"].clone(),
            by.map(PathBuf::from),
            own,
            output.stderr,
        )
    };
    let (lines, by, first, _) = run(&[]);
    assert_eq!(by, None);
    for _ in 0..2 {
        let (again, by, ..) = run(&[]);
        assert_eq!((&again, by.as_ref()), (&lines, Some(&first)));
    }
    let (again, by, ..) = run(&["--weights", "none"]);
    assert_eq!((&again, by), (&lines, None));
    for run in runs() {
        std::fs::write(run.join("slabs"), "damaged").expect("written");
    }
    let (again, by, _, said) = run(&[]);
    assert_eq!((&again, by), (&lines, None));
    let said = String::from_utf8_lossy(&said);
    assert!(said.contains("no weights are taken"), "{said}");
}

/// Each block of a profile for pprof ran as often as JSON says.
#[test]
fn pprof_is_told_the_same() {
    let program = compiled("gcc", "lines.c", &["-O0", "-g"]).expect("built");
    let folder = tempfile::tempdir().expect("a folder");
    let run = |format: &str| {
        let mut command = Command::new(tomo::path().expect("tomo"));
        command.env("TOMO_CACHE_DIR", folder.path().join("cache"));
        command.current_dir(folder.path());
        command.args(["count", "--format", format, "--to", format, "--"]);
        command.arg(&program);
        complete(command, b"").expect("run");
        std::fs::read(folder.path().join(format)).expect("a profile")
    };
    let document: Document = serde_json::from_slice(&run("json")).expect("a document");
    let blocks = document.functions.iter().flat_map(|one| &one.blocks);
    let ran = blocks.filter(|block| block.count.is_some_and(|count| count > 0));
    let profile = run("pprof");
    // A sample is a field of its own: 2, of bytes.
    let mut rest = profile.as_slice();
    let mut samples = 0;
    while let [key, after @ ..] = rest {
        let (length, head) = match after {
            [low, high, ..] if *low >= 0x80 => {
                (usize::from(low & 0x7f) | usize::from(*high) << 7, 2)
            }
            [low, ..] => (usize::from(*low), 1),
            [] => panic!("cut"),
        };
        samples += usize::from(*key == 0x12);
        rest = &after[head + length..];
    }
    assert_eq!(samples, ran.count());
}
