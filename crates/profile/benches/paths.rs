//! How fast paths are decoded and counts inferred, for the functions of a large library.
//!
//! Prints one JSON object a line; seconds are the processor's. Run by `cargo bench -p tomo-profile --bench paths`. The library
//! is analysed once and its model kept where `tomo` keeps models.

use std::hint::black_box;

use tomo_graph::Weight;
use tomo_plan::counting::{CountingPlan, Frequencies};
use tomo_plan::paths::{Beyond, PathPlan, Policy};
use tomo_profile::counts::infer;
use tomo_profile::paths::Decoder;
use tomo_testkit::clock;
use tomo_testkit::graphs::Graphs;

fn main() {
    // Cargo passes --bench, and `cargo test --benches` does not: then there is nothing to do.
    if !std::env::args().any(|argument| argument == "--bench") {
        return;
    }
    let library = Graphs::large().expect("the library can be analysed");
    decoding(&library);
    inference(&library);
}

fn print(what: &str, value: f64, unit: &str, promise: &str) {
    // No text here holds anything that JSON would write otherwise than Rust does.
    println!(
        r#"{{"bench":"paths","what":{what:?},"value":{value},"unit":{unit:?},"promise":{promise:?}}}"#
    );
}

/// Random numbers of all functions with a thousand to 2^60 paths, function by function as they
/// come in tables, and one function after the other as they come in a trace.
fn decoding(library: &Graphs) {
    let policy = Policy {
        array: 0,
        beyond: Beyond::Hash,
    };
    let plans: Vec<PathPlan> = library
        .graphs
        .iter()
        .filter_map(|graph| PathPlan::new(graph, policy, |_| Weight::Finite(1)).ok())
        .filter(|plan| (1000..1 << 60).contains(&plan.numbering().total()))
        .collect();
    let origin = &library.origin;
    let what = format!("functions of {origin} with 1,000 to 2^60 paths");
    print(&what, plans.len() as f64, "functions", "");
    let (decoders, seconds) =
        clock::timed(|| Vec::from_iter(plans.iter().map(Decoder::of))).expect("the kernel tells");
    print("making the decoders", seconds, "s", "");
    for (order, each) in [("function by function", 200), ("in turn", 1)] {
        let ((paths, ways), seconds) =
            clock::timed(|| decode(&plans, &decoders, each)).expect("the kernel tells");
        let what = format!("paths decoded a second, {order}, of {origin}");
        let rate = paths as f64 / seconds;
        print(&what, rate, "paths/s", "> 1,000,000 paths/s");
        let what = format!("ways a path, {order}");
        print(&what, ways as f64 / paths as f64, "ways", "");
    }
}

/// Decodes 400 random numbers of each function, so many of one in succession. Gives the numbers of
/// paths and of ways.
fn decode(plans: &[PathPlan], decoders: &[Decoder<'_>], each: usize) -> (u64, usize) {
    let (mut state, mut arcs, mut paths, mut ways) = (1u64, Vec::new(), 0, 0);
    for _ in 0..400 / each {
        for (plan, decoder) in plans.iter().zip(decoders) {
            for _ in 0..each {
                state = state
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1_442_695_040_888_963_407);
                let number = state % plan.numbering().total();
                assert!(decoder.decode(number, &mut arcs));
                ways += black_box(&arcs).len();
                paths += 1;
            }
        }
    }
    (paths, ways)
}

/// All counts of all functions, from counters that each counted once.
fn inference(library: &Graphs) {
    let Graphs { origin, graphs } = library;
    let plan = |graph| {
        let even = Frequencies::uniform(graph);
        CountingPlan::new(graph, |arc| even.weight(graph, arc))
    };
    let plans: Vec<CountingPlan> = graphs.iter().map(plan).collect();
    let arcs: usize = plans.iter().map(|plan| plan.arcs().len()).sum();
    let infer_all = || {
        for plan in &plans {
            // Nothing ran: the counts are the same work as any.
            let recorded = vec![0; plan.counters().len()];
            black_box(infer(plan, &recorded, &[]).expect("counts of nothing"));
        }
    };
    let ((), seconds) = clock::timed(infer_all).expect("the kernel tells");
    print(
        &format!("inferring all counts of {origin}"),
        seconds,
        "s",
        "",
    );
    print(
        &format!("arcs inferred a second of {origin}"),
        arcs as f64 / seconds,
        "arcs/s",
        "",
    );
}
