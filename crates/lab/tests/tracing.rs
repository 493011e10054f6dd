//! The study of traces: what is counted is what single steps saw, and what distributions cost is what they hit there.

use std::collections::HashMap;
use std::path::Path;
use std::process::Command;

use tomo_lab::tracing::{
    Effort, Field, Function, Hits, Results, STRATEGIES, Weights, Whose, compared, counts,
    functions, render, ways,
};
use tomo_plan::witnesses::Place;
use tomo_program::{Address, Graphs, Loaded, Request, load};
use tomo_testkit::corpus::{Compiler, Level, Recipe, Source, Workload, build};
use tomo_testkit::coverage::complete;
use tomo_testkit::steps::{Kind, Outside, Trace, observe};
use tomo_testkit::tomo;

fn loaded(program: &Path) -> Loaded {
    let request = Request {
        path: program,
        cache: None,
        refresh: false,
        whole: true,
    };
    load(&request, &()).expect("a model")
}

/// What `tomo count` tells of a run.
fn counted(program: &Path, workload: &Workload) -> Vec<u8> {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("counts.json");
    let mut command = Command::new(tomo::path().expect("tomo"));
    command.env("TOMO_CACHE_DIR", folder.path().join("cache"));
    command
        .args(["count", "--format", "json", "--to"])
        .arg(&file);
    command.arg("-o").arg(folder.path().join("runs"));
    command.arg("--").arg(program).args(&workload.args);
    complete(command, workload.stdin.as_deref().unwrap_or_default()).expect("run");
    std::fs::read(&file).expect("counts")
}

/// How often the blocks and ways of functions were passed, step by step.
fn stepped(functions: &[Function], graphs: &Graphs<'_>, trace: &Trace) -> Hits {
    let start = |at: u64| Some(graphs.block_at(Address(at))?.address().0);
    let mut entered: HashMap<u64, u64> = HashMap::new();
    let mut passed: HashMap<(u64, u64), u64> = HashMap::new();
    for (one, times) in &trace.transitions {
        let Some(to) = one.to.filter(|to| start(*to) == Some(*to)) else {
            continue;
        };
        // An instruction that repeats itself takes a step for each time; where a handler ends, nothing begins anew.
        if one.from == Some(to) || one.kind == Kind::Resume {
            continue;
        }
        *entered.entry(to).or_default() += times;
        let from = match one.kind {
            Kind::Flow => one.from.and_then(start),
            Kind::Return { call } => call.and_then(start),
            _ => None,
        };
        if let Some(from) = from {
            *passed.entry((from, to)).or_default() += times;
        }
    }
    // Nothing led to the instruction with which the steps begin.
    let mut all = graphs.functions();
    if let Some(first) = all.find(|function| function.title() == "_start") {
        *entered.entry(first.entry().0).or_default() += 1;
    }
    let of = |function: &Function| -> Vec<u64> {
        let blocks = function.starts.iter();
        let blocks = blocks.map(|at| entered.get(at).copied().unwrap_or(0));
        let ways = function.graph.edges().iter().map(|(from, to)| {
            let ends = (function.starts[from.index()], function.starts[to.index()]);
            passed.get(&ends).copied().unwrap_or(0)
        });
        blocks.chain(ways).collect()
    };
    functions.iter().map(of).collect()
}

/// Counts are those of single steps; and what each machine of each distribution collects is what was passed of its witnesses.
#[test]
fn hits_are_those_of_single_steps() {
    let built = build(&Recipe::new(Source::Bzip2, Compiler::Gcc, Level::O2)).expect("built");
    let workload = &built.workloads[0];
    let loaded = loaded(&built.program);
    let graphs = loaded.model.graphs().expect("graphs");
    let all = functions(&graphs);
    let told = counts(&all, &counted(&built.program, workload)).expect("counts");
    let known = all
        .into_iter()
        .filter(|one| told.contains_key(&one.entry()));
    let field = Field::of(known.collect()).expect("a field");
    assert!(field.functions.len() > 30, "{}", field.functions.len());
    let hits = field.hits(&told);
    let trace = observe(&built.program, workload, Outside::Leap, 60_000_000).expect("steps");
    let truth = stepped(&field.functions, &graphs, &trace);
    for (at, function) in field.functions.iter().enumerate() {
        let title = graphs.function_starting_at(Address(function.entry()));
        let title = title.map(|one| one.title()).unwrap_or_default();
        assert_eq!(hits[at], truth[at], "{title}");
    }
    assert!(truth.iter().flatten().sum::<u64>() > 100_000);
    let effort = Effort {
        machines: 4,
        runs: 2,
        bounds: vec![12],
    };
    let pairs = compared(&field, &[hits], &effort, &()).expect("compared");
    let planned = field.place(&truth).expect("placed");
    let mut compared = 0;
    for way in ways(Weights::Trace, 4, &[12]) {
        let Ok(made) = planned.distribute(way) else {
            assert!(pairs[0].refused.contains(&way), "{way:?}");
            continue;
        };
        let mut machines = vec![0; way.machines as usize];
        for profile in made.profiles() {
            for witness in &profile.witnesses {
                let (function, place) = made.sites()[witness.index()];
                let row = field.functions[function.index()].row(place);
                machines[profile.machine as usize] += truth[function.index()][row];
            }
            let size = profile.witnesses.len();
            assert!(way.bound.is_none_or(|bound| size <= bound as usize) || is_printed(way.whose));
        }
        let cost = pairs[0].costs.iter().find(|cost| cost.way == way);
        let cost = cost.expect("a cost");
        assert_eq!(
            cost.collection,
            machines.into_iter().max().unwrap_or(0),
            "{way:?}"
        );
        assert_eq!(cost.distribution, cost.collection, "{way:?}");
        compared += 1;
    }
    assert!(compared > 30, "{compared}");
    let results = Results {
        pairs,
        ..Results::default()
    };
    tells(&results);
}

fn is_printed(whose: Whose) -> bool {
    whose == Whose::PrintedListed
}

/// Tables say what the results say.
fn tells(results: &Results) {
    let files: HashMap<_, _> = render(results).expect("files").into_iter().collect();
    let pair = &results.pairs[0];
    let cost = |strategy, machines| {
        let found = pair.costs.iter().find(|cost| {
            let way = cost.way;
            (way.whose, way.weights, way.bound) == (Whose::Ours, Weights::Trace, None)
                && (way.strategy, way.machines) == (strategy, machines)
        });
        found.expect("a cost").collection
    };
    let best = |machines| {
        (0..STRATEGIES.len())
            .map(|at| cost(at, machines))
            .min()
            .expect("some")
    };
    let share = 100.0 * best(3) as f64 / best(1) as f64;
    let table = &files["figure-14-trace.csv"];
    let row = table.lines().last().expect("a row");
    assert_eq!(
        row.split(',').nth(2),
        Some(format!("{share:.1}").as_str()),
        "{table}"
    );
    assert!(best(3) < best(1), "machines share the work");
    assert!(files["tracing.md"].contains("*DPT: zrotc*"));
    assert!(files.contains_key("figure-14-estimate.svg"));
}

/// The row of a place is that of its block or way.
#[test]
fn blocks_come_before_ways() {
    let built = build(&Recipe::new(Source::Bzip2, Compiler::Gcc, Level::O2)).expect("built");
    let loaded = loaded(&built.program);
    let graphs = loaded.model.graphs().expect("graphs");
    for function in functions(&graphs) {
        let blocks = function.starts.len();
        let last = Place::Node(tomo_graph::NodeId(blocks as u32 - 1));
        assert_eq!(function.row(last), blocks - 1);
        assert_eq!(function.row(Place::Edge(tomo_graph::EdgeId(0))), blocks);
        assert_eq!(
            function.estimated.len(),
            blocks + function.graph.edges().len()
        );
    }
}
