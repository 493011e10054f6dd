//! What everybody needs of every function of a large library: weights, counters, path numbers and
//! witnesses, on one core.
//!
//! Prints one JSON object a line; seconds are the processor's. Run by `cargo bench -p tomo-plan
//! --bench library`, and with all others by `cargo xtask bench plan`. The library is analysed once
//! and its model kept where `tomo` keeps models.

use tomo_graph::{FlowGraph, Graph, Weight};
use tomo_plan::counting::{CountingPlan, Frequencies};
use tomo_plan::paths::{Numbering, PathDag, PathError};
use tomo_plan::witnesses::{Effort, Entered, Flow, Place, place};
use tomo_testkit::clock;
use tomo_testkit::graphs::Graphs;

/// How many moves the pruning of one function's witnesses may look at.
const PATIENCE: u64 = 2_000;

fn main() {
    // Cargo passes --bench, and `cargo test --benches` does not: then there is nothing to do.
    if !std::env::args().any(|argument| argument == "--bench") {
        return;
    }
    let library = Graphs::large().expect("the library can be analysed");
    sizes(&library);
    let (estimates, weighing) = timed("static weights", &library, |graphs| {
        Vec::from_iter(graphs.iter().map(Frequencies::estimate))
    });
    let counting = counters(&library, &estimates);
    let numbering = numbers(&library);
    let tracing = witnesses(&library, &estimates);
    let what = format!("numbering and witness placement, {}", library.origin);
    print(&what, numbering + tracing, "s", "< 5 s");
    let what = format!(
        "the same with static weights and counters, {}",
        library.origin
    );
    let all = weighing + counting + numbering + tracing;
    print(&what, all, "s", "< 5 s");
}

fn print(what: &str, value: f64, unit: &str, promise: &str) {
    // No text here holds anything that JSON would write otherwise than Rust does.
    println!(
        r#"{{"bench":"library","what":{what:?},"value":{value},"unit":{unit:?},"promise":{promise:?}}}"#
    );
}

/// What `run` gives for the graphs of the library, and the seconds that it took.
fn timed<T>(part: &str, library: &Graphs, run: impl FnOnce(&[FlowGraph]) -> T) -> (T, f64) {
    let (result, seconds) = clock::timed(|| run(&library.graphs)).expect("the kernel tells");
    let what = format!("{part} of all functions of {}", library.origin);
    print(&what, seconds, "s", "");
    (result, seconds)
}

fn sizes(library: &Graphs) {
    let Graphs { origin, graphs } = library;
    let blocks: usize = graphs.iter().map(Graph::node_count).sum();
    let edges: usize = graphs.iter().map(Graph::edge_count).sum();
    for (part, count) in [
        ("functions", graphs.len()),
        ("blocks", blocks),
        ("edges", edges),
    ] {
        print(&format!("{part} of {origin}"), count as f64, part, "");
    }
}

fn counters(library: &Graphs, estimates: &[Frequencies]) -> f64 {
    let (counters, seconds) = timed("counters (spanning trees)", library, |graphs| {
        let plans = graphs
            .iter()
            .zip(estimates)
            .map(|(graph, estimate)| CountingPlan::new(graph, |arc| estimate.weight(graph, arc)));
        plans.map(|plan| plan.counters().len()).sum::<usize>()
    });
    let what = format!("counters of {}", library.origin);
    print(&what, counters as f64, "counters", "");
    seconds
}

fn numbers(library: &Graphs) -> f64 {
    let ((total, refused), seconds) = timed("numbering", library, |graphs| {
        let (mut total, mut refused) = (0, 0);
        for graph in graphs {
            match Numbering::of(&PathDag::of(graph)) {
                Ok(numbering) => total += u128::from(numbering.total()),
                Err(PathError::TooMany(_)) => refused += 1,
                Err(_) => unreachable!("numbering fails by number only"),
            }
        }
        (total, refused)
    });
    let origin = &library.origin;
    let what = format!("paths in numbered functions of {origin}");
    print(&what, total as f64, "paths", "");
    let what = format!("functions of {origin} with more than 2^64 paths");
    print(&what, f64::from(refused), "functions", "");
    seconds
}

/// On nodes and edges; every function may be entered again.
fn witnesses(library: &Graphs, estimates: &[Frequencies]) -> f64 {
    let ((witnesses, failed), seconds) = timed("witness placement", library, |graphs| {
        let (mut witnesses, mut failed) = (0, 0);
        for (graph, estimate) in graphs.iter().zip(estimates) {
            let flow = Flow::of_graph(graph, Entered::Again);
            let weight = |at| Weight::Finite(passed(graph, estimate, at));
            match place(&flow, weight, Effort::Pruned(PATIENCE)) {
                Ok(placed) => witnesses += placed.witnesses.len(),
                Err(_) => failed += 1,
            }
        }
        (witnesses, failed)
    });
    let origin = &library.origin;
    let what = format!("witnesses of {origin}");
    print(&what, witnesses as f64, "witnesses", "");
    let what = format!("functions of {origin} that no witnesses tell");
    print(&what, f64::from(failed), "functions", "at most 0 functions");
    seconds
}

/// How often a place is passed, by estimate.
fn passed(graph: &FlowGraph, estimate: &Frequencies, place: Place) -> u64 {
    match place {
        Place::Edge(edge) => estimate.edges[edge.index()],
        Place::Node(node) => {
            let entered = u64::from(node == graph.entry()) * estimate.entries;
            let edges = graph
                .in_edges(node)
                .map(|hop| estimate.edges[hop.edge.index()]);
            edges.fold(entered, u64::saturating_add)
        }
    }
}
