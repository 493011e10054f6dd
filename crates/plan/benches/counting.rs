//! How long whole plans for counters and paths take for every function of a large library, and how
//! many probes selections take, published and corrected.
//!
//! Prints one JSON object a line; seconds are the processor's. Run by `cargo bench -p tomo-plan --bench counting`. The library
//! is analysed once and its model kept where `tomo` keeps models.

use tomo_graph::{FlowGraph, NodeId, Weight};
use tomo_plan::counting::{CountingPlan, Frequencies, verify};
use tomo_plan::paths::selective::{Selection, printed, published};
use tomo_plan::paths::split::split;
use tomo_plan::paths::{
    ArcId, Beyond, DagNode, Interest, Numbering, PathDag, PathPlan, Policy, Storage,
};
use tomo_testkit::clock;
use tomo_testkit::graphs::Graphs;

fn main() {
    // Cargo passes --bench, and `cargo test --benches` does not: then there is nothing to do.
    if !std::env::args().any(|argument| argument == "--bench") {
        return;
    }
    let library = Graphs::large().expect("the library can be analysed");
    proofs(&library);
    whole_plans(&library);
    selections_on_random_graphs();
    selections_on_functions(&library);
}

fn print(what: &str, value: f64, unit: &str, promise: &str) {
    // No text here holds anything that JSON would write otherwise than Rust does.
    println!(
        r#"{{"bench":"counting","what":{what:?},"value":{value},"unit":{unit:?},"promise":{promise:?}}}"#
    );
}

fn timed<T>(what: &str, promise: &str, run: impl FnOnce() -> T) -> T {
    let (result, seconds) = clock::timed(run).expect("the kernel tells");
    print(what, seconds, "s", promise);
    result
}

/// The checker, on plans that count as little as they can.
fn proofs(library: &Graphs) {
    let Graphs { origin, graphs } = library;
    let what = format!("proving the counting plans of {origin}");
    let (incomplete, arcs) = timed(&what, "", || {
        let (mut incomplete, mut arcs) = (0, 0);
        for graph in graphs {
            let even = Frequencies::uniform(graph);
            let plan = CountingPlan::new(graph, |arc| even.weight(graph, arc));
            verify(graph, &plan).expect("plans are right");
            incomplete += u32::from(!plan.is_complete());
            arcs += plan.arcs().len();
        }
        (incomplete, arcs)
    });
    print(&format!("arcs of {origin}"), arcs as f64, "arcs", "");
    let what = format!("functions of {origin} of which counters cannot tell all");
    print(&what, f64::from(incomplete), "functions", "");
}

/// Numbers, increments, placement, splits.
fn whole_plans(library: &Graphs) {
    let Graphs { origin, graphs } = library;
    let policy = Policy {
        array: 4096,
        beyond: Beyond::HashOrSplit(4096),
    };
    let what = format!("whole path plans of all functions of {origin}");
    let [
        mut arrays,
        mut hashes,
        mut split_up,
        mut refused,
        mut unplaceable,
    ] = [0u32; 5];
    timed(&what, "", || {
        for graph in graphs {
            let estimate = Frequencies::estimate(graph);
            match PathPlan::new(graph, policy, |arc| estimate.weight(graph, arc)) {
                Ok(plan) => {
                    arrays += u32::from(plan.storage() != Storage::Hash);
                    hashes += u32::from(plan.storage() == Storage::Hash);
                    split_up += u32::from(!plan.breaks().is_empty());
                    unplaceable += u32::from(!plan.unplaceable().is_empty());
                }
                Err(_) => refused += 1,
            }
        }
    });
    let parts = [
        ("with an array", arrays),
        ("with a hash table", hashes),
        ("that were split", split_up),
        ("that cannot be split into pieces of 4,096 paths", refused),
        (
            "with a probe in the middle of a block that goes on",
            unplaceable,
        ),
    ];
    for (part, count) in parts {
        print(
            &format!("functions of {origin} {part}"),
            f64::from(count),
            "functions",
            "",
        );
    }
    let what = format!("splitting all functions of {origin} into pieces of 256 paths");
    let breaks = timed(&what, "", || {
        let split = |graph: &FlowGraph| {
            let estimate = Frequencies::estimate(graph);
            split(graph, 256, |arc| estimate.weight(graph, arc)).map_or(0, |breaks| breaks.len())
        };
        graphs.iter().map(split).sum::<usize>()
    });
    print(
        &format!("edges broken for that in {origin}"),
        breaks as f64,
        "edges",
        "",
    );
}

/// What selections of one function cost, added up.
#[derive(Default)]
struct Tally {
    instances: u32,
    /// Published, after phases 1 and 3 alone, corrected from these, corrected from compact values,
    /// and all paths (BL96: ways whose value is not zero, as SPP §4 counts them).
    probes: [usize; 5],
    failures: u32,
}

const KINDS: [&str; 5] = [
    "published (which does not keep its promise)",
    "phases 1 and 3 alone",
    "corrected, printed values",
    "corrected, compact values",
    "all paths by Ball and Larus",
];

impl Tally {
    fn add(&mut self, dag: &PathDag, interest: &Interest) {
        let nonzero = |values: &[u64]| values.iter().filter(|&&value| value != 0).count();
        let one = |_| Weight::Finite(1);
        let values = published::values(dag, interest).expect("few paths");
        let plain = printed(dag, interest).expect("few paths");
        let corrected = Selection::with_values(dag, interest.clone(), plain.clone(), one);
        let compact = Selection::new(dag, interest.clone(), one).expect("few paths");
        let all = Numbering::of(dag).expect("few paths");
        let counts = [
            nonzero(&values),
            nonzero(&plain),
            corrected.probes(),
            compact.probes(),
            nonzero(all.values()),
        ];
        for (sum, count) in self.probes.iter_mut().zip(counts) {
            *sum += count;
        }
        self.instances += 1;
        self.failures += u32::from(is_broken(dag, interest, &values));
        for kept in [corrected.values(), compact.values()] {
            assert!(
                !is_broken(dag, interest, kept),
                "a selection broke its promise"
            );
        }
    }

    fn print(&self, of: &str) {
        let instances = f64::from(self.instances);
        for (kind, &probes) in KINDS.iter().zip(&self.probes) {
            let what = format!("probes a selection, {kind}; {of}");
            print(&what, probes as f64 / instances, "probes", "");
        }
        let what = format!("selections that the published algorithm gets wrong; {of}");
        print(&what, 100.0 * f64::from(self.failures) / instances, "%", "");
    }
}

/// Whether a selected path shares its sum: by listing all paths, where they are few.
fn is_broken(dag: &PathDag, interest: &Interest, values: &[u64]) -> bool {
    let mut sums: Vec<(u64, bool)> = list(dag)
        .iter()
        .map(|path| {
            let sum = path
                .iter()
                .fold(0u64, |sum, id| sum.wrapping_add(values[id.index()]));
            (sum, interest.has_path(path))
        })
        .collect();
    sums.sort_unstable();
    sums.chunk_by(|a, b| a.0 == b.0)
        .any(|same| same.len() > 1 && same.iter().any(|each| each.1))
}

fn list(dag: &PathDag) -> Vec<Vec<ArcId>> {
    let (mut found, mut work) = (Vec::new(), vec![(DagNode::SOURCE, Vec::new())]);
    while let Some((node, arcs)) = work.pop() {
        if node == dag.sink() {
            found.push(arcs);
        } else {
            work.extend(
                dag.out(node)
                    .map(|id| (dag.arc(id).to, [&arcs[..], &[id]].concat())),
            );
        }
    }
    found
}

/// Numbers out of a linear congruential generator.
struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: usize) -> usize {
        let next = self.0.wrapping_mul(6_364_136_223_846_793_005);
        self.0 = next.wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % bound.max(1)
    }

    fn interest(&mut self, dag: &PathDag, paths: usize) -> Interest {
        let listed = list(dag);
        let chosen = (0..paths).map(|_| &listed[self.below(listed.len())]);
        Interest::of(dag, chosen).expect("paths of the graph")
    }
}

/// Graphs without loops, of six to eleven nodes: one edge upwards from each node, and of the others
/// one in three.
fn selections_on_random_graphs() {
    let mut dice = Dice(7);
    for paths in [1, 2, 6] {
        let mut tally = Tally::default();
        for round in 0..5000u32 {
            let nodes = 6 + round % 6;
            let mut edges = Vec::new();
            for from in 0..nodes - 1 {
                let kept = from + 1 + dice.below((nodes - 1 - from) as usize) as u32;
                for to in from + 1..nodes {
                    if to == kept || dice.below(3) == 0 {
                        edges.push((NodeId(from), NodeId(to)));
                    }
                }
            }
            let graph = FlowGraph::new(nodes as usize, NodeId(0), edges).expect("a graph");
            let dag = PathDag::of(&graph);
            let interest = dice.interest(&dag, paths);
            tally.add(&dag, &interest);
        }
        tally.print(&format!("{paths} of interest, random graphs without loops"));
    }
}

/// Every tenth function with 10 to 1,000 paths.
fn selections_on_functions(library: &Graphs) {
    let mut dice = Dice(8);
    let mut suitable = Vec::new();
    for graph in &library.graphs {
        let dag = PathDag::of(graph);
        let total = Numbering::of(&dag).map_or(0, |numbering| numbering.total());
        if (10..=1000).contains(&total) {
            suitable.push(dag);
        }
    }
    for paths in [1, 2, 5] {
        let mut tally = Tally::default();
        for dag in suitable.iter().step_by(10) {
            let interest = dice.interest(dag, paths);
            tally.add(dag, &interest);
        }
        let of = format!(
            "{paths} of interest, {} functions of {} with 10 to 1,000 paths",
            tally.instances, library.origin
        );
        tally.print(&of);
    }
}
