//! How many blocks a second are reconstructed. Prints one JSON object a line; seconds are the
//! processor's.

use tomo_graph::Weight;
use tomo_plan::witnesses::check::{self, Dice, Shape, execute, program, record};
use tomo_plan::witnesses::{Criterion, Ends, Machines, Place, Strategy, distribute};
use tomo_profile::reconstruction::{Ending, Reconstructor};
use tomo_testkit::clock;

const STEPS: usize = 20_000_000;

fn main() {
    // Cargo passes --bench, and `cargo test --benches` does not: then there is nothing to do.
    if !std::env::args().any(|argument| argument == "--bench") {
        return;
    }
    let mut dice = Dice(2);
    for strategy in [
        Strategy::FunctionWise,
        Strategy::Grouped,
        Strategy::FineGrained,
    ] {
        let (rate, blocks, events) = measure(&mut dice, strategy);
        say(
            &format!("blocks, {strategy:?}"),
            blocks as f64,
            "blocks",
            "",
        );
        say(
            &format!("events, {strategy:?}"),
            events as f64,
            "events",
            "",
        );
        say(
            &format!("reconstruction, {strategy:?}"),
            rate,
            "blocks/s",
            "> 10,000,000 blocks/s",
        );
    }
}

fn say(what: &str, value: f64, unit: &str, promise: &str) {
    println!(
        "{{\"bench\":\"reconstruction\",\"what\":\"{what}\",\"value\":{value:.0},\
         \"unit\":\"{unit}\",\"promise\":\"{promise}\"}}"
    );
}

/// Blocks a second, blocks and events of a long run of a random program.
fn measure(dice: &mut Dice, strategy: Strategy) -> (f64, usize, usize) {
    loop {
        let shape = Shape {
            functions: 60,
            nodes: 40,
            several_targets: false,
            halts: false,
        };
        let made = program(dice, shape);
        let machines = Machines {
            count: 3,
            bound: None,
            besides: &[],
        };
        let weight = |_, place| match place {
            Place::Node(_) => Weight::Finite(2),
            Place::Edge(_) => Weight::Finite(3),
        };
        let Ok(distribution) = distribute(&made, weight, strategy, machines, Ends::Returns) else {
            continue;
        };
        let Ok(criterion) = Criterion::of(&made, &distribution, Ends::Returns) else {
            continue;
        };
        let execution = execute(&made, dice, STEPS);
        if execution.steps.len() < STEPS / 4 {
            continue;
        }
        let partial = record(&distribution, &execution.steps);
        let tool = Reconstructor::new(&made, &distribution, &criterion);
        let ending = match execution.ending {
            check::Ending::Returned => Ending::Returned,
            check::Ending::Halted => Ending::Halted,
            check::Ending::Cut => Ending::Cut,
        };
        let traced = clock::timed(|| tool.trace(&partial, ending));
        let (trace, seconds) = traced.expect("the kernel tells");
        let events = partial.iter().map(Vec::len).sum();
        // A rate of wrong traces would be worth nothing.
        let Ok(trace) = trace else { continue };
        if trace.steps.len() * 10 < execution.steps.len() * 9
            || trace.steps[..] != execution.steps[..trace.steps.len()]
        {
            continue;
        }
        return (
            trace.steps.len() as f64 / seconds,
            trace.steps.len(),
            events,
        );
    }
}
