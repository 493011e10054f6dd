//! Every analysis against its oracle, on thousands of random and mutated graphs.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestRng, TestRunner};
use tomo_graph::check::{self, Entropy, Outcome};

/// Runs `check` on `cases` byte strings, the same ones every time.
fn drive(cases: u32, check: impl Fn(&[u8]) -> Outcome) {
    let config = Config {
        cases,
        failure_persistence: None,
        ..Config::default()
    };
    let rng = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let outcome = TestRunner::new_with_rng(config, rng).run(&vec(any::<u8>(), 0..120), |bytes| {
        check(&bytes).map_err(TestCaseError::fail)
    });
    if let Err(failure) = outcome {
        panic!("{failure}");
    }
}

macro_rules! on_graphs {
    ($($name:ident: $most:literal nodes, $cases:literal cases;)+) => {$(
        #[test]
        fn $name() {
            drive($cases, |bytes| {
                let mut entropy = Entropy::new(bytes);
                let graph = check::generate(&mut entropy, $most);
                check::$name(&graph).map_err(|wrong| format!("{wrong}, in {:?}", graph.edges()))
            });
        }
    )+};
}

on_graphs! {
    depth_first: 24 nodes, 4000 cases;
    components: 24 nodes, 4000 cases;
    views: 16 nodes, 3000 cases;
    dominators: 16 nodes, 4000 cases;
    post_dominators: 14 nodes, 3000 cases;
    control_dependence: 14 nodes, 3000 cases;
    loops: 18 nodes, 5000 cases;
    acyclic_paths: 14 nodes, 4000 cases;
    enumerations: 6 nodes, 2000 cases;
}

macro_rules! on_graphs_with_choices {
    ($($name:ident: $most:literal nodes, $cases:literal cases;)+) => {$(
        #[test]
        fn $name() {
            drive($cases, |bytes| {
                let mut entropy = Entropy::new(bytes);
                let graph = check::generate(&mut entropy, $most);
                check::$name(&graph, &mut entropy)
                    .map_err(|wrong| format!("{wrong}, in {:?}", graph.edges()))
            });
        }
    )+};
}

on_graphs_with_choices! {
    spanning_tree: 7 nodes, 2000 cases;
    realizability: 8 nodes, 4000 cases;
    executions: 4 nodes, 2000 cases;
}

/// What a fuzz target drives runs here too, on fewer cases.
#[test]
fn all_on_arbitrary_bytes() {
    drive(300, check::all);
}
