//! The model is true: of every function that it calls exact, every instruction that real programs
//! execute is in a known block and every passage of control a known edge. And so is coverage: in each
//! way of asking, `tomo cover` records what was executed, and nothing else.
//!
//! A step takes some 20 µs on a virtual machine, so of the four large programs only a few builds are
//! looked at unless [`ALL`] is set in the environment, as `cargo xtask bench truth --all` does. What was
//! looked at is printed, one JSON object a build.

use tomo_testkit::corpus::{Built, Compiler, Level, Recipe, Source, build, given};
use tomo_testkit::coverage::{Covering, differences};
use tomo_testkit::steps::{Kind, Outside, Trace, Transition, observe};
use tomo_testkit::tomo;
use tomo_testkit::truth::{Model, Verdict};

/// Far more steps than any workload takes.
const LIMIT: u64 = 60_000_000;

/// Has every build of every program looked at.
const ALL: &str = "TOMO_TRUTH_ALL";

/// The builds of large programs that are looked at anyway: each compiler and each level in some.
const FEW: [(Source, Compiler, Level); 6] = [
    (Source::Lua, Compiler::Gcc, Level::O2),
    (Source::Lua, Compiler::Clang, Level::O3),
    (Source::Bzip2, Compiler::Gcc, Level::O0),
    (Source::Bzip2, Compiler::Clang, Level::O2),
    (Source::Zstd, Compiler::Gcc, Level::O3),
    (Source::Sqlite, Compiler::Clang, Level::O2),
];

fn recipes(source: Source) -> Vec<Recipe> {
    let family = Recipe::family(source);
    let large = FEW.iter().any(|few| few.0 == source);
    if !large || std::env::var_os(ALL).is_some() {
        return family;
    }
    let among_few = |recipe: &Recipe| FEW.contains(&(source, recipe.compiler, recipe.level));
    family.into_iter().filter(among_few).collect()
}

/// What must at least have been looked at, for every program of a family.
struct Least {
    functions: usize,
    passages: usize,
}

fn model(built: &Built) -> Model {
    let lines = tomo::map_lines(&built.program).expect("a model");
    let program = std::fs::read(&built.program).expect("the program");
    Model::read(&lines, &program).expect("the model's lines")
}

fn traces(built: &Built) -> Vec<Trace> {
    let observe =
        |workload| observe(&built.program, workload, Outside::Leap, LIMIT).expect("traced");
    built.workloads.iter().map(observe).collect()
}

/// In which ways `tomo cover` is asked.
const WAYS: [&[&str]; 6] = [
    &["--level", "block"],
    &["--level", "block", "--placement", "reduced"],
    &["--level", "edge"],
    &["--level", "edge", "--placement", "reduced"],
    &["--level", "block", "--disposal", "none"],
    &["--level", "function"],
];

/// What was found of one build.
struct Judged {
    wrong: String,
    /// Edges that `tomo cover` recorded.
    edges: usize,
}

/// Where what `tomo cover` records of each workload differs from what the workload executed.
fn covered(built: &Built, model: &Model, traces: &[Trace]) -> Judged {
    let (mut wrong, mut told) = (String::new(), 0);
    let cache = tempfile::tempdir().expect("a folder");
    for way in WAYS {
        for (workload, trace) in built.workloads.iter().zip(traces) {
            let covering = Covering::cached_in(cache.path()).expect("a folder");
            let output = covering.run(way, &built.program, workload).expect("run");
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            let units = covering.only().unwrap_or_else(|e| panic!("{e}: {said}"));
            assert_eq!(units.processes, 1, "{}: {said}", built.name);
            assert!(!units.hit.is_empty(), "{}: nothing was hit", built.name);
            let edges = way.contains(&"edge") || units.taken.is_empty();
            assert!(edges, "{} {way:?}: nobody asked for edges", built.name);
            told += units.taken.len();
            let blocks = differences(&units.hit, &units.missed, &trace.executed());
            let edges = differences(&units.taken, &units.untaken, &model.edges(trace));
            for difference in [blocks, edges].into_iter().flatten() {
                wrong.push_str(&format!(
                    "{} {way:?} {:?}: {difference}\n",
                    built.name, workload.args
                ));
            }
        }
    }
    Judged { wrong, edges: told }
}

fn check(recipes: impl IntoIterator<Item = Recipe>, least: &Least) {
    let builds = recipes.into_iter();
    let builds = builds.map(|recipe| build(&recipe).expect("built"));
    let judge = |built| {
        let Judged { wrong, edges } = judge(&built, least);
        assert!(edges > 0, "{}: no edges were recorded", built.name);
        wrong
    };
    let wrong: String = builds.map(judge).collect();
    assert!(wrong.is_empty(), "the model is wrong:\n{wrong}");
}

/// Holds the model of a build, and its coverage, against single steps.
fn judge(built: &Built, least: &Least) -> Judged {
    let model = model(built);
    let mut verdict = Verdict::default();
    let traces = traces(built);
    for trace in &traces {
        verdict.merge(model.judge(trace));
    }
    let mut judged = covered(built, &model, &traces);
    let steps: u64 = traces.iter().map(|trace| trace.steps).sum();
    println!(
        "{}",
        serde_json::json!({
            "build": built.name,
            "steps": steps,
            "functions": verdict.functions,
            "passages": verdict.checked,
            "passed_over": verdict.passed_over,
        })
    );
    assert!(
        verdict.functions >= least.functions && verdict.checked >= least.passages,
        "{}: too little was checked",
        built.name
    );
    for violation in verdict.violations.iter().take(20) {
        judged.wrong += &format!("{}: {violation}\n", built.name);
    }
    judged
}

#[test]
#[ignore = "cargo xtask held names the program"]
fn model_and_coverage_hold_for_the_named_program() {
    let least = Least {
        functions: 1,
        passages: 1,
    };
    let Judged { wrong, .. } = judge(&given().expect("a program"), &least);
    assert!(wrong.is_empty(), "wrong:\n{wrong}");
}

#[test]
fn lua_is_true() {
    check(
        recipes(Source::Lua),
        &Least {
            functions: 200,
            passages: 4000,
        },
    );
}

#[test]
fn bzip2_is_true() {
    check(
        recipes(Source::Bzip2),
        &Least {
            functions: 20,
            passages: 1000,
        },
    );
}

#[test]
fn sqlite_is_true() {
    check(
        recipes(Source::Sqlite),
        &Least {
            functions: 300,
            passages: 10_000,
        },
    );
}

#[test]
fn zstd_is_true() {
    check(
        recipes(Source::Zstd),
        &Least {
            functions: 60,
            passages: 3000,
        },
    );
}

#[test]
fn c_switches_cold_code_and_tail_calls_are_true() {
    check(
        recipes(Source::CFeatures),
        &Least {
            functions: 20,
            passages: 300,
        },
    );
}

/// Every block is a part of its function, and begins where another one ends.
#[test]
fn blocks_in_sections_of_their_own_are_true() {
    let of = |(source, level)| Recipe {
        extra: vec!["-fbasic-block-sections=all".into()],
        ..Recipe::new(source, Compiler::Clang, level)
    };
    let builds = [(Source::Bzip2, Level::O2), (Source::CppFeatures, Level::O0)];
    check(
        builds.map(of),
        &Least {
            functions: 10,
            passages: 300,
        },
    );
}

#[test]
fn cpp_exceptions_are_true() {
    check(
        recipes(Source::CppFeatures),
        &Least {
            functions: 20,
            passages: 300,
        },
    );
}

#[test]
fn rust_panics_are_true() {
    check(
        recipes(Source::RustFeatures),
        &Least {
            functions: 100,
            passages: 1000,
        },
    );
}

/// The judge notices what it is there to notice: any one wrong thing in a true model of a real run.
#[test]
fn a_spoiled_trace_is_noticed() {
    let recipe = &Recipe::family(Source::CFeatures)[1];
    let built = build(recipe).expect("built");
    let model = model(&built);
    let trace = traces(&built).remove(0);
    assert!(model.judge(&trace).violations.is_empty());
    let flows: Vec<Transition> = trace
        .transitions
        .keys()
        .copied()
        .filter(|seen| seen.kind == Kind::Flow && seen.from.is_some() && seen.to.is_some())
        .collect();
    let (mut noticed, mut tried) = (0, 0);
    for seen in flows {
        for to in [seen.to.map(|to| to + 1), seen.to.map(|to| to ^ 0x40)] {
            let mut spoiled = trace.clone();
            spoiled.transitions.clear();
            spoiled.transitions.insert(Transition { to, ..seen }, 1);
            let verdict = model.judge(&spoiled);
            tried += verdict.checked;
            noticed += usize::from(!verdict.violations.is_empty());
        }
    }
    // A wrong target may by chance be another successor of the same block; hardly any is.
    assert!(
        tried > 500 && noticed * 100 >= tried * 99,
        "{noticed} of {tried}"
    );
}
