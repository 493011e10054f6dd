//! Decoding against all paths written down, and tables of random executions against what ran.

use proptest::collection::vec;
use proptest::prelude::*;
use std::collections::BTreeMap;
use tomo_graph::check::{Entropy, generate};
use tomo_graph::{AcyclicPaths, FlowArc, FlowGraph, Graph, NodeId, Weight};
use tomo_plan::counting::{CountingPlan, Frequencies};
use tomo_plan::paths::selective::Selection;
use tomo_plan::paths::{ArcId, Beyond, DagNode, Interest, Op, PathPlan, Policy};
use tomo_profile::counts::infer;
use tomo_profile::paths::{
    Decoder, PathCount, TableError, all_counts, frequencies, selected_counts,
};

const HASH: Policy = Policy {
    array: 1 << 10,
    beyond: Beyond::Hash,
};

fn plan(graph: &FlowGraph) -> PathPlan {
    PathPlan::new(graph, HASH, |_| Weight::Finite(1)).expect("few paths")
}

fn chain_of_diamonds(length: u32) -> FlowGraph {
    let edges = (0..length).flat_map(|at| [(at, at + 1); 2]);
    let edges = edges.map(|(from, to)| (NodeId(from), NodeId(to)));
    FlowGraph::new(length as usize + 1, NodeId(0), edges).expect("a chain")
}

fn config(cases: u32) -> ProptestConfig {
    ProptestConfig {
        cases,
        failure_persistence: None,
        rng_seed: proptest::test_runner::RngSeed::Fixed(1996),
        ..ProptestConfig::default()
    }
}

/// Executions of at most so many steps that carry out probes by place: the table they leave, and
/// how often each arc ran of the executions that ended by themselves.
struct Runs {
    table: BTreeMap<u64, u64>,
    arcs: BTreeMap<FlowArc, u64>,
    register: u64,
}

impl Runs {
    fn new() -> Self {
        Self {
            table: BTreeMap::new(),
            arcs: BTreeMap::new(),
            register: 77,
        }
    }

    fn run(&mut self, op: Op) {
        let number = match op {
            Op::Set(value) => return self.register = value,
            Op::Add(value) => return self.register = self.register.wrapping_add(value),
            Op::Count(value) => self.register.wrapping_add(value),
            Op::CountAt(value) => value,
        };
        *self.table.entry(number).or_default() += 1;
    }

    /// The arcs of one execution, if it ends within so many steps.
    fn arcs(graph: &FlowGraph, entropy: &mut Entropy<'_>) -> Option<Vec<FlowArc>> {
        let mut node = graph.entry();
        let mut arcs = vec![FlowArc::Return];
        for _ in 0..60 {
            let hops: Vec<_> = graph.out_edges(node).collect();
            let choice = entropy.below(hops.len() + usize::from(graph.is_exit(node)));
            let Some(hop) = hops.get(choice) else {
                arcs.push(FlowArc::Exit(node));
                return Some(arcs);
            };
            arcs.push(FlowArc::Edge(hop.edge));
            node = hop.node;
        }
        None
    }

    fn execute(&mut self, plan: &PathPlan, arcs: &[FlowArc]) {
        for &arc in arcs {
            *self.arcs.entry(arc).or_default() += 1;
            let here = plan.probes().iter().filter(|probe| probe.at == arc);
            here.flat_map(|probe| &probe.ops)
                .for_each(|&op| self.run(op));
        }
    }
}

proptest! {
    #![proptest_config(config(2000))]

    /// The path of a number is the one that has it, from the source and cut anywhere.
    #[test]
    fn numbers_give_their_paths(bytes in vec(any::<u8>(), 0..120), number in any::<u64>()) {
        let graph = generate(&mut Entropy::new(&bytes), 16);
        let plan = plan(&graph);
        let (decoder, known) = (Decoder::of(&plan), AcyclicPaths::of(&graph));
        let total = plan.numbering().total();
        prop_assert_eq!(decoder.path(total), None);
        let number = number % total;
        prop_assert_eq!(decoder.path(number), known.path(number));
        let mut arcs = vec![ArcId(9)];
        prop_assert!(decoder.decode(number, &mut arcs));
        prop_assert_eq!(plan.numbering().number(&arcs), number);
        for length in 1..arcs.len() {
            let prefix = &arcs[..length];
            let block = plan.dag().block(plan.dag().arc(prefix[length - 1]).to).expect("a block");
            let sum = plan.numbering().number(prefix);
            prop_assert_eq!(decoder.prefix(block, sum), Some(prefix.to_vec()));
        }
    }

    /// A table gives the paths that ran, and these the edges that ran.
    #[test]
    fn tables_tell_what_ran(bytes in vec(any::<u8>(), 0..240)) {
        let mut entropy = Entropy::new(&bytes);
        let graph = generate(&mut entropy, 12);
        let plan = plan(&graph);
        let mut runs = Runs::new();
        for _ in 0..5 {
            if let Some(arcs) = Runs::arcs(&graph, &mut entropy) {
                runs.execute(&plan, &arcs);
            }
        }
        let paths = all_counts(&plan, runs.table.clone()).expect("numbers of paths");
        prop_assert_eq!(paths.len(), runs.table.len());
        let found = frequencies(&graph, plan.dag(), &paths).expect("small counts");
        let mut expected = Frequencies::none(&graph);
        for (&arc, &count) in &runs.arcs {
            match arc {
                FlowArc::Return => expected.entries = count,
                FlowArc::Exit(node) => expected.exits[node.index()] = count,
                FlowArc::Edge(edge) => expected.edges[edge.index()] = count,
                FlowArc::Endless(_) => {}
            }
        }
        prop_assert_eq!(&found, &expected);
        // Counters and paths of the same executions agree.
        let counters = CountingPlan::new(&graph, |arc| Frequencies::uniform(&graph).weight(&graph, arc));
        let count = |arc| runs.arcs.get(arc).copied().unwrap_or(0);
        let recorded: Vec<u64> = counters.counters().iter().map(count).collect();
        let counts = infer(&counters, &recorded, &[]).expect("what ran");
        if counters.is_complete() {
            prop_assert_eq!(counts.frequencies(&graph), expected);
        }
    }
}

/// Of a chain of 62 diamonds, 2^62 paths: any of them, at once.
#[test]
fn large_numbers_decode() {
    let graph = chain_of_diamonds(62);
    let plan = plan(&graph);
    let decoder = Decoder::of(&plan);
    let mut arcs = Vec::new();
    for number in [0, 1, 0x1234_5678_9abc_def0, (1 << 62) - 1] {
        assert!(decoder.decode(number, &mut arcs));
        assert_eq!(plan.numbering().number(&arcs), number);
    }
    assert!(!decoder.decode(1 << 62, &mut arcs));
    assert_eq!(arcs, []);
}

/// A switch with more ways than 16 bits count, behind and before more blocks in a row than that.
#[test]
fn wide_and_long_functions_decode() {
    let (long, wide) = (70_000u32, 70_001u32);
    let row = (0..long).map(|block| (block, block + 1));
    let last = long + wide + 1;
    let ways = (long + 1..last).flat_map(|block| [(long, block), (block, last)]);
    let behind = (last..last + long).map(|block| (block, block + 1));
    let edges = row.chain(ways).chain(behind);
    let edges = edges.map(|(from, to)| (NodeId(from), NodeId(to)));
    let graph = FlowGraph::new((last + long + 1) as usize, NodeId(0), edges).expect("a graph");
    let plan = plan(&graph);
    assert_eq!(plan.numbering().total(), u64::from(wide));
    let (decoder, mut arcs) = (Decoder::of(&plan), Vec::new());
    for number in [0, 1, 65_534, 65_535, 65_536, u64::from(wide) - 1] {
        assert!(decoder.decode(number, &mut arcs));
        assert_eq!(arcs.len() as u32, 2 * long + 4);
        assert!(plan.dag().path_along(&arcs).is_some());
        assert_eq!(plan.numbering().number(&arcs), number);
    }
}

#[test]
fn tables_that_cannot_be_are_refused() {
    let graph = chain_of_diamonds(2);
    let plan = plan(&graph);
    let refused = TableError::NoSuchPath {
        number: 4,
        total: 4,
    };
    assert_eq!(all_counts(&plan, [(0, 1), (4, 1)]), Err(refused));
    assert_eq!(all_counts(&plan, [(4, 0)]), Ok(Vec::new()));
    let most = all_counts(&plan, [(0, u64::MAX), (1, 1)]).expect("numbers of paths");
    let overflow = frequencies(&graph, plan.dag(), &most);
    assert_eq!(overflow, Err(TableError::Overflow));
    assert_eq!(Decoder::of(&plan).prefix(NodeId(9), 0), None);
    assert_eq!(Decoder::of(&plan).prefix(NodeId(1), 1), None);
}

/// A selection's table: selected paths by name, the others as a number.
#[test]
fn selections_tell_selected_from_others() {
    let graph = chain_of_diamonds(3);
    let plan = plan(&graph);
    let dag = plan.dag();
    let mut path = Vec::new();
    let mut node = DagNode::SOURCE;
    while node != dag.sink() {
        path.extend(dag.out(node).last());
        node = dag.arc(path[path.len() - 1]).to;
    }
    let interest = Interest::of(dag, [&path]).expect("a path");
    let selection = Selection::new(dag, interest, |_| Weight::Finite(1)).expect("small sums");
    let table = [(selection.sum(&path), 7), (0, 2), (1, 3)];
    let selected = selected_counts(dag, &selection, table).expect("small counts");
    assert_eq!(
        selected.paths,
        [PathCount {
            arcs: path,
            count: 7
        }]
    );
    assert_eq!(selected.others, 5);
    let most = [(0, u64::MAX), (1, 1)];
    assert_eq!(
        selected_counts(dag, &selection, most),
        Err(TableError::Overflow)
    );
}
