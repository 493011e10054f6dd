//! The sample program, looked at from every side.

use tomo_graph::{AcyclicPaths, Graph, NodeId, PathCount};
use tomo_program::{Address, EdgeKind, FunctionView, Graphs, Model, Search};

use crate::sample;

fn with_sample(test: impl FnOnce(&Graphs<'_>)) {
    let model = Model::build(sample::functions(), sample::facts());
    test(&model.graphs().expect("sound"));
}

fn found<'g>(graphs: &'g Graphs<'_>, query: &str) -> FunctionView<'g> {
    match graphs.search(query) {
        Search::Found(function) => function,
        other => panic!("{query}: {other:?}"),
    }
}

#[test]
fn functions_are_found_by_whatever_they_are_called() {
    with_sample(|graphs| {
        for query in [
            "_ZN2ns4spinEi",
            "ns::spin(int)",
            "ns::spin",
            "spin",
            "0x1000",
            "4096",
            "0x2005",
            "0x1027",
        ] {
            assert_eq!(found(graphs, query).entry(), Address(0x1000), "{query}");
        }
        for query in ["demo::second", "second", "0x1030"] {
            assert_eq!(found(graphs, query).entry(), Address(0x1030), "{query}");
        }
        assert_eq!(found(graphs, "sub_1070").entry(), Address(0x1070));
        assert!(matches!(graphs.search("nowhere"), Search::NothingNamed));
        assert!(matches!(graphs.search(""), Search::NothingNamed));
        assert!(matches!(
            graphs.search("0x3000"),
            Search::NothingAt(Address(0x3000))
        ));
        assert!(
            matches!(graphs.search("n"), Search::Several(named) if named.by_part && named.functions.len() == 2)
        );
    });
}

#[test]
fn titles_are_for_people() {
    with_sample(|graphs| {
        let titles: Vec<_> = graphs
            .functions()
            .map(|function| function.title())
            .collect();
        assert_eq!(titles, ["ns::spin(int)", "demo::second", "sub_1070"]);
    });
}

#[test]
fn calls_know_whom_they_call() {
    with_sample(|graphs| {
        let calls: Vec<_> = found(graphs, "spin").calls().collect();
        assert_eq!(calls[0].import(), Some("puts"));
        assert!(calls[0].function().is_none() && calls[0].is_return_site());
        assert_eq!(
            calls[1].function().map(|callee| callee.entry()),
            Some(Address(0x1030))
        );
        assert!(calls[1].import().is_none() && !calls[1].is_return_site());
        let jumps: Vec<_> = found(graphs, "second").indirect_jumps().collect();
        assert_eq!(
            jumps.iter().map(|jump| jump.import()).collect::<Vec<_>>(),
            [None, Some("longjmp")]
        );
    });
}

#[test]
fn numbers_are_positions() {
    with_sample(|graphs| {
        let ids = |function: FunctionView<'_>| {
            function
                .blocks()
                .map(|block| block.id().0)
                .collect::<Vec<_>>()
        };
        let all: Vec<_> = graphs.functions().map(ids).collect();
        assert_eq!(all, [vec![0, 1, 2, 3, 4], vec![5, 6, 7], vec![]]);
        let edges: Vec<_> = graphs
            .functions()
            .flat_map(|f| f.edges().map(|e| e.id.0).collect::<Vec<_>>())
            .collect();
        assert_eq!(edges, (0..9).collect::<Vec<_>>());
    });
}

#[test]
fn graphs_leave_out_what_leads_out() {
    with_sample(|graphs| {
        let graph = found(graphs, "spin").flow_graph().expect("blocks");
        assert_eq!((graph.node_count(), graph.edges().len()), (5, 5));
        // From the entry or the loop's head: into the loop and round, or to the landing pad, or past it.
        assert_eq!(AcyclicPaths::of(&graph).count(), PathCount::Exact(5));
        let partial = found(graphs, "second");
        let graph = partial.flow_graph().expect("blocks");
        assert_eq!(graph.edges().len(), 3, "the tail call is none");
        assert!(graph.is_exit(NodeId(2)));
        let last = partial
            .blocks()
            .last()
            .and_then(|block| block.successors().next())
            .expect("an edge");
        assert_eq!(
            (last.kind, last.block(), last.address),
            (EdgeKind::TailCall, None, Address(0x1000))
        );
        assert!(found(graphs, "sub_1070").flow_graph().is_none());
    });
}
