//! Chains of direct calls, from a tree of calls that is known.

use serde_json::{Value, json};
use tomo_lab::distribution::Walk;
use tomo_program::{Callee, FunctionView, Graphs, Request, load};
use tomo_testkit::corpus::compiled;

/// Whom a function calls directly, and where each call returns to.
fn calls(graphs: &Graphs<'_>, function: &FunctionView<'_>) -> Vec<(u64, u64)> {
    let calls = function.calls().filter_map(|call| match call.callee() {
        Callee::Function(callee) => Some((callee.0, graphs.block(call.block())?.range().end().0)),
        Callee::Import(_) | Callee::Indirect => None,
    });
    calls.collect()
}

fn row(parent: usize, way: &str, site: Option<u64>, function: u64) -> Value {
    json!({
        "parent": parent,
        "way": way,
        "site": site.map(|site| format!("{site:#x}")),
        "function": format!("{function:#x}"),
    })
}

/// A function and one that it calls, which calls none itself; and where that call returns to.
fn pair(graphs: &Graphs<'_>) -> Option<(u64, u64, u64)> {
    graphs.functions().find_map(|caller| {
        let mut calls_of_it = calls(graphs, &caller).into_iter();
        let (callee, behind) = calls_of_it.find(|(callee, _)| {
            let callee = graphs.function_starting_at(tomo_program::Address(*callee));
            let tails =
                |one: &FunctionView<'_>| one.edges().any(|edge| !edge.kind.is_intraprocedural());
            callee.is_some_and(|one| calls(graphs, &one).is_empty() && !tails(&one))
        })?;
        Some((caller.entry().0, callee, behind))
    })
}

#[test]
fn chains_are_cut_where_nobody_calls_directly() {
    let program = compiled("gcc", "counting.c", &["-O0", "-pthread"]).expect("built");
    let request = Request {
        path: &program,
        cache: None,
        refresh: false,
        whole: true,
    };
    let loaded = load(&request, &()).expect("a model");
    let graphs = loaded.model.graphs().expect("graphs");
    let (caller, callee, behind) = pair(&graphs).expect("such a pair");
    let document = |rows: &[Value]| json!({ "chains": rows }).to_string();
    let both = [
        row(0, "outside", None, caller),
        row(1, "call", Some(behind), callee),
    ];
    let more = [
        both.as_slice(),
        &[
            // Nobody knows from where.
            row(1, "unobserved", Some(behind), callee),
            // By no direct call of that function.
            row(1, "call", Some(behind + 1), callee),
            // A handler, which calls nobody this time.
            row(2, "signal", None, caller),
            // Back into the chain, and what is below.
            row(2, "call", Some(behind), callee),
            row(6, "call", Some(behind), callee),
        ],
    ]
    .concat();
    let mut walk = Walk::of(&graphs).expect("a call graph");
    walk.in_house(document(&both).as_bytes())
        .expect("a document");
    walk.in_field(0, document(&more).as_bytes())
        .expect("a document");
    walk.in_field(1, document(&both).as_bytes())
        .expect("a document");
    assert!(walk.in_field(1, b"{}").is_err());
    let field = walk.finish().expect("a field");
    // In the field the pair, and the callee by itself; the pair alone in house.
    assert_eq!(field.chains, [2, 1, 1]);
    assert_eq!(field.events.sets().len(), 2);
    let lengths = |instance: usize| {
        let runs = field
            .runs
            .iter()
            .filter(move |run| run.instance == instance);
        runs.map(|run| run.trace.len()).collect::<Vec<_>>()
    };
    // The pair, the callee, and the handler, which is not complete.
    assert_eq!((lengths(0), lengths(1)), (vec![4], vec![2]));
    let found = |run: usize| field.events.happened(&field.runs[run].trace).len();
    assert_eq!((found(0), found(1)), (2, 1));
    assert_eq!(field.house.len(), 1);
    assert!(
        field
            .clusters
            .iter()
            .any(|cluster| field.house[0].iter().all(|unit| cluster.contains(unit)))
    );
}
