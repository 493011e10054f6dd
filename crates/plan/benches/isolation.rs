//! How fast placement, search and simulation are; a line of JSON each, in seconds of the processor.
//!
//! Placement is measured on every function of a large library. Which of its blocks end in calls is not
//! in the graphs, so for [`Ending::AtStops`] each block with a single way on counts as a call: more
//! probes than there need be. The program that is searched is made up. `cargo bench -p tomo-plan
//! --bench isolation`.

use std::hint::black_box;

use tomo_graph::{FlowGraph, Graph, NodeId};
use tomo_plan::coverage::{Ending, Flow, Subdivision, edges, reduced};
use tomo_plan::disposal::{Costs, Mix, Policy, Scenario, Technique, simulate};
use tomo_plan::predicates::{Model, implied};
use tomo_plan::random::Random;
use tomo_plan::search::{Direction, Icdg, PredicateId, Routine, Search, SiteId, breadth_first};
use tomo_testkit::clock;
use tomo_testkit::graphs::Graphs;

fn main() {
    // Cargo passes --bench, and `cargo test --benches` does not: then there is nothing to do.
    if !std::env::args().any(|argument| argument == "--bench") {
        return;
    }
    let library = Graphs::large().expect("the library can be analysed");
    println!("the library: {}", library.origin);
    placements(&library.graphs);
    drop(library);
    search(&mut Random::new(1));
    deployment();
}

fn report(what: &str, value: f64, unit: &str, promise: &str) {
    println!(
        "{{\"bench\":\"isolation\",\"what\":\"{what}\",\"value\":{value:.6},\"unit\":\"{unit}\",\"promise\":\"{promise}\"}}"
    );
}

fn timed<T>(work: impl FnOnce() -> T) -> (T, f64) {
    clock::timed(|| black_box(work())).expect("the kernel tells")
}

/// Blocks in a row, with branches forward over some of them, and back.
fn structured(random: &mut Random, size: usize) -> Vec<(u32, u32)> {
    let last = size as u32 - 1;
    let mut edges: Vec<(u32, u32)> = (0..last).map(|block| (block, block + 1)).collect();
    for block in 0..last {
        match random.below(10) {
            0..=3 => edges.push((block, (block + 2 + random.below(6) as u32).min(last))),
            4 => edges.push((block, block - block.min(random.below(8) as u32))),
            _ => {}
        }
    }
    edges
}

fn graph(size: usize, edges: &[(u32, u32)]) -> FlowGraph {
    let edges = edges.iter().map(|&(from, to)| (NodeId(from), NodeId(to)));
    FlowGraph::new(size, NodeId(0), edges).expect("edges within")
}

/// Blocks with a single way on may end in calls.
fn flow(graph: &FlowGraph, ending: Ending) -> Flow<'_> {
    Flow::new(graph, ending, |node| {
        graph.successors(node).nth(1).is_none()
    })
}

fn placements(graphs: &[FlowGraph]) {
    let blocks: usize = graphs.iter().map(Graph::node_count).sum();
    let edge_count: usize = graphs.iter().map(Graph::edge_count).sum();
    report(
        "functions of the library",
        graphs.len() as f64,
        "functions",
        "",
    );
    report("blocks of the library", blocks as f64, "blocks", "");
    report("edges of the library", edge_count as f64, "edges", "");
    for (name, ending) in [("at stops", Ending::AtStops), ("at exits", Ending::AtExits)] {
        let (probes, seconds) = timed(|| {
            let place = |graph| reduced(&flow(graph, ending), |_| Some(1)).probes.len();
            graphs.iter().map(place).sum::<usize>()
        });
        report(&format!("reduced placement {name}"), seconds, "s", "");
        let share = probes as f64 / blocks as f64;
        report(&format!("probes a block {name}"), share, "probes", "");
    }
    let divide = |graph| Subdivision::of(&flow(graph, Ending::AtStops)).expect("small");
    let (probes, seconds) = timed(|| {
        let place = |graph| edges(&divide(graph), |_| Some(1)).probes.len();
        graphs.iter().map(place).sum::<usize>()
    });
    report("edge placement at stops", seconds, "s", "");
    report(
        "edge and block probes a block",
        probes as f64 / blocks as f64,
        "probes",
        "",
    );
    for (name, model) in [("binary", Model::Binary), ("counts", Model::Counts)] {
        let (_, seconds) = timed(|| {
            let removal = |graph| {
                implied(&divide(graph), model, |node| node.0 % 3 == 1)
                    .order
                    .len()
            };
            graphs.iter().map(removal).sum::<usize>()
        });
        report(&format!("implied predicates, {name}"), seconds, "s", "");
    }
}

/// A million sites: functions of some fifty blocks that call two others each.
fn search(random: &mut Random) {
    let routines: Vec<Routine> = (0..40_000u32)
        .map(|number| {
            let size = 30 + random.below(40);
            let graph = graph(size, &structured(random, size));
            let at = |random: &mut Random| NodeId(random.below(size) as u32);
            let calls = (0..2)
                .map(|_| (at(random), random.below(40_000) as u32))
                .collect();
            let values = (0..4).map(|_| (at(random), 3)).collect();
            Routine {
                graph,
                calls,
                values,
                root: number < 10,
            }
        })
        .collect();
    let (icdg, seconds) = timed(|| Icdg::of(&routines).expect("a program"));
    report("sites of the search", icdg.site_count() as f64, "sites", "");
    report("building the dependence graph", seconds, "s", "");
    let score = |predicate: PredicateId| u64::from(predicate.0).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let best =
        |candidates: &mut dyn Iterator<Item = PredicateId>| candidates.max_by_key(|&p| score(p));
    // With all sites watched, so that nearly all predicates are candidates.
    let sites: Vec<_> = (0..icdg.site_count() as u32).map(SiteId).collect();
    let mut late = Search::starting(&icdg, Direction::Forward, &sites[..sites.len() * 9 / 10]);
    let (_, first) = timed(|| late.step(best));
    report(
        "the step that takes in 9 sites of 10",
        first,
        "s",
        "< 0.2 s",
    );
    let worst_late = worst(20, || late.step(best));
    report(
        "a step behind that, worst of 20",
        worst_late,
        "s",
        "< 0.2 s",
    );
    let mut early = Search::forward(&icdg);
    let worst = worst(200, || early.step(|c| breadth_first(c)));
    report("a step from the start, worst of 200", worst, "s", "< 0.2 s");
    backward(&icdg, best);
    let (_, seconds) = timed(|| Search::resume(&icdg, late.state().clone()).expect("its own"));
    report("resuming", seconds, "s", "");
}

/// The same backward, from nine sites of ten and from one crash.
fn backward(
    icdg: &Icdg,
    best: impl Fn(&mut dyn Iterator<Item = PredicateId>) -> Option<PredicateId>,
) {
    let sites: Vec<_> = (0..icdg.site_count() as u32 / 10 * 9).map(SiteId).collect();
    let mut late = Search::starting(icdg, Direction::Backward, &sites);
    let (_, first) = timed(|| late.step(&best));
    let what = "the step that takes in 9 sites of 10, backward";
    report(what, first, "s", "< 0.2 s");
    let behind = worst(20, || late.step(&best));
    let what = "a step behind that, backward, worst of 20";
    report(what, behind, "s", "< 0.2 s");
    let mut search = Search::backward(icdg, &[(20_000, NodeId(20))]);
    let early = worst(200, || search.step(|c| breadth_first(c)));
    let what = "a step from a crash, backward, worst of 200";
    report(what, early, "s", "< 0.2 s");
}

/// The most seconds that one of so many steps takes.
fn worst<T>(steps: usize, mut step: impl FnMut() -> T) -> f64 {
    let seconds = (0..steps).map(|_| timed(&mut step).1);
    seconds.fold(0.0, f64::max)
}

fn deployment() {
    let mix = Mix {
        probes: 2219,
        profiles: 15,
        common: 400,
        own: 150,
        length: 1_897_000,
        spread: 1,
        times: 12,
    };
    let costs = Costs {
        probe: 50,
        removal: 130,
        skip: 15,
        service: 20,
        latency: 200,
    };
    let work = mix.draw(37, 1);
    let study = Technique::Collective(Policy::STUDY);
    let bare = mix.length as f64;
    for (name, technique, scenario, printed) in [
        (
            "lasting",
            Technique::Lasting,
            Scenario::Concurrent,
            "35 % in the paper",
        ),
        ("local", Technique::Local, Scenario::Concurrent, "10 %"),
        (
            "collective, concurrent",
            study,
            Scenario::Concurrent,
            "20 %",
        ),
        (
            "collective, diffusion",
            study,
            Scenario::study(mix.length),
            "6 %",
        ),
        ("collective, sequential", study, Scenario::Sequential, "2 %"),
    ] {
        let (outcome, seconds) =
            timed(|| simulate(&work, technique, scenario, costs).expect("valid"));
        let over = (outcome.mean_time() / bare - 1.0) * 100.0;
        report(&format!("overhead simulated: {name}"), over, "%", printed);
        report(&format!("simulating: {name}"), seconds, "s", "");
    }
}
