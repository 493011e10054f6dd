//! Placement of witnesses for every function of a large library, with and without taking away what is
//! not needed, and distribution over machines. Prints one JSON object a line; seconds are the
//! processor's. The library is analysed once and its model kept where `tomo` keeps models.

use tomo_graph::{FlowGraph, Weight};
use tomo_plan::witnesses::check::{Dice, Shape, program};
use tomo_plan::witnesses::{
    Effort, Ends, Entered, Flow, FunctionId, Machines, Place, Program, Strategy, distribute, place,
};
use tomo_testkit::clock;
use tomo_testkit::graphs::Graphs;

fn main() {
    // Cargo passes --bench, and `cargo test --benches` does not: then there is nothing to do.
    if !std::env::args().any(|argument| argument == "--bench") {
        return;
    }
    let Graphs { origin, graphs } = Graphs::large().expect("the library can be analysed");
    say(
        &format!("functions of {origin}"),
        graphs.len() as f64,
        "functions",
        "",
    );
    for (what, effort) in [
        ("forest", Effort::Forest),
        ("pruned", Effort::Pruned(2_000)),
    ] {
        let placed = clock::timed(|| place_all(&graphs, effort));
        let ((cost, failed), seconds) = placed.expect("the kernel tells");
        say(
            &format!("placement on nodes and edges, {what}"),
            seconds,
            "s",
            "",
        );
        say(&format!("cost, {what}"), cost as f64, "expected hits", "");
        say(
            &format!("not realizable, {what}"),
            failed as f64,
            "functions",
            "at most 0 functions",
        );
    }
    distribution(&mut Dice(1));
}

fn say(what: &str, value: f64, unit: &str, promise: &str) {
    println!(
        "{{\"bench\":\"witnesses\",\"what\":\"{what}\",\"value\":{value:.4},\"unit\":\"{unit}\",\
         \"promise\":\"{promise}\"}}"
    );
}

fn weight(place: Place) -> Weight {
    let (number, dearer) = match place {
        Place::Node(node) => (node.0, 0),
        Place::Edge(edge) => (edge.0, 1),
    };
    Weight::Finite(1 + dearer + u64::from(number) * 2_654_435_761 % 97)
}

fn place_all(graphs: &[FlowGraph], effort: Effort) -> (u64, usize) {
    let placed = graphs.iter().map(|graph| {
        let flow = Flow::of_graph(graph, Entered::Again);
        place(&flow, weight, effort).ok().map(|placed| placed.cost)
    });
    placed.fold((0, 0), |(sum, failed), cost| match cost {
        Some(cost) => (sum + cost, failed),
        None => (sum, failed + 1),
    })
}

fn distribution(dice: &mut Dice) {
    let shape = Shape {
        functions: 120,
        nodes: 60,
        several_targets: false,
        halts: false,
    };
    let weigh = |_: FunctionId, place| weight(place);
    let alone = Machines {
        count: 1,
        bound: None,
        besides: &[],
    };
    // In some programs a node calls its own function again and then chooses to leave.
    let fits = |made: &Program| {
        let kind = Strategy::FunctionWise;
        made.functions().len() > 60 && distribute(made, weigh, kind, alone, Ends::Returns).is_ok()
    };
    let made = std::iter::repeat_with(|| program(dice, shape)).find(fits);
    let Some(made) = made else { return };
    for strategy in [
        Strategy::FunctionWise,
        Strategy::Grouped,
        Strategy::FineGrained,
    ] {
        let machines = Machines {
            count: 4,
            bound: None,
            besides: &[],
        };
        let run = || distribute(&made, weigh, strategy, machines, Ends::Returns);
        let (result, seconds) = clock::timed(run).expect("the kernel tells");
        let what = format!(
            "distribution of {} functions, {strategy:?}",
            made.functions().len()
        );
        say(&what, seconds, "s", "");
        if let Ok(result) = result {
            let loads = result.loads(4, weigh);
            let dearest = loads.into_iter().max().unwrap_or(0);
            say(
                &format!("dearest of 4 machines, {strategy:?}"),
                dearest as f64,
                "expected hits",
                "",
            );
        }
    }
}
