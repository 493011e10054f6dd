//! The comparer is held against a program made by hand, in which everything that the map's oddities
//! are about occurs, and against every small mutation of its model.

use super::*;
use crate::bbmap::{
    decode::{MapBlock, MapFunction, Metadata},
    graph::Graph,
};

const RETURN: u64 = 1;
const PAD: u64 = 4;
const RUNS_ON: u64 = 8;

fn block(id: u32, start: u64, size: u32, bits: u64, successors: &[u32]) -> MapBlock {
    let metadata = Metadata::from_bits(bits).expect("five bits");
    MapBlock {
        id,
        start,
        size,
        metadata,
        call_ends: Vec::new(),
        successors: successors.to_vec(),
    }
}

/// Three functions at 0x1000, 0x1020 and 0x1040.
#[rustfmt::skip]
const CODE: &[u8] = &[
    // 1000: two terminators in one block; alignment that is run through; a loop.
    0x66, 0x0f, 0x2e, 0xc1, // ucomisd xmm0, xmm1
    0x75, 0x0a,             // jne 1010
    0x7a, 0x08,             // jp 1010
    0x31, 0xc0,             // xor eax, eax
    0x66, 0x66, 0x66, 0x66, 0x66, 0x90, // nop
    0x85, 0xff,             // 1010: test edi, edi
    0x75, 0xfc,             // jne 1010
    0xe8, 0x07, 0x00, 0x00, 0x00, // call 1020
    0xc3,                   // ret
    0xcc, 0xcc, 0xcc, 0xcc, 0xcc, 0xcc,
    // 1020: calls that may throw to one pad, with one between them that does not, but which the
    // exception table covers too.
    0xe8, 0xdb, 0x0f, 0x00, 0x00, // call 2000, may throw
    0x85, 0xc0,             // test eax, eax
    0xe8, 0xd4, 0x0f, 0x00, 0x00, // call 2000, does not throw
    0xe8, 0xcf, 0x0f, 0x00, 0x00, // call 2000, may throw
    0xeb, 0x02,             // jmp 1035
    0x58, 0x5a,             // 1033: the pad: pop rax; pop rdx
    0xc3,                   // 1035: ret
    0xcc, 0xcc, 0xcc, 0xcc, 0xcc, 0xcc, 0xcc, 0xcc, 0xcc, 0xcc,
    // 1040: a call to 1050, which never returns, and what the compiler keeps behind it.
    0x85, 0xff,             // test edi, edi
    0x74, 0x07,             // je 104b
    0xe8, 0x07, 0x00, 0x00, 0x00, // call 1050
    0x89, 0xc3,             // mov ebx, eax
    0xc3,                   // 104b: ret
    0xcc, 0xcc, 0xcc, 0xcc,
    // 1050: it never returns.
    0xe8, 0xab, 0x0f, 0x00, 0x00, // call 2000
];

fn program() -> Program {
    let functions = [
        (
            0x1000,
            vec![
                block(0, 0x1000, 8, 0, &[1, 2]),
                block(1, 0x1008, 2, RUNS_ON, &[2]),
                block(2, 0x1010, 4, RUNS_ON, &[2, 3]),
                block(3, 0x1014, 6, RETURN, &[]),
            ],
        ),
        (
            0x1020,
            vec![
                block(0, 0x1020, 7, RUNS_ON, &[1, 3]),
                block(1, 0x1027, 12, 0, &[3, 4]),
                block(3, 0x1033, 0, PAD | RUNS_ON, &[5]),
                block(5, 0x1033, 2, RUNS_ON, &[4]),
                block(4, 0x1035, 1, RETURN, &[]),
            ],
        ),
        (
            0x1040,
            vec![
                block(0, 0x1040, 4, RUNS_ON, &[1, 2]),
                block(1, 0x1044, 7, RUNS_ON, &[2]),
                block(2, 0x104b, 1, RETURN, &[]),
            ],
        ),
        (0x1050, vec![block(0, 0x1050, 5, 0, &[])]),
    ];
    let functions = functions.map(|(entry, blocks)| MapFunction { entry, blocks });
    Program::from_parts(functions.to_vec(), [(0x1000, CODE.to_vec())].into())
}

/// A block of the model: start, size, successors, and the landing pad of the call that ends it.
type Stated = (u64, u64, &'static [u64], Option<u64>);

/// What a true model says of that program.
fn model() -> BTreeMap<u64, ModelFunction> {
    let functions: [(u64, &[Stated]); 4] = [
        (
            0x1000,
            &[
                (0x1000, 6, &[0x1006, 0x1010], None),
                (0x1006, 2, &[0x1008, 0x1010], None),
                (0x1008, 8, &[0x1010], None),
                (0x1010, 4, &[0x1010, 0x1014], None),
                (0x1014, 5, &[0x1019], None),
                (0x1019, 1, &[], None),
            ],
        ),
        (
            0x1020,
            &[
                (0x1020, 5, &[0x1025], Some(0x1033)),
                (0x1025, 7, &[0x102c], Some(0x1033)),
                (0x102c, 5, &[0x1031], Some(0x1033)),
                (0x1031, 2, &[0x1035], None),
                (0x1033, 2, &[0x1035], None),
                (0x1035, 1, &[], None),
            ],
        ),
        (
            0x1040,
            &[
                (0x1040, 4, &[0x1044, 0x104b], None),
                (0x1044, 5, &[], None),
                (0x104b, 1, &[], None),
            ],
        ),
        (0x1050, &[(0x1050, 5, &[], None)]),
    ];
    functions
        .iter()
        .map(|&(entry, blocks)| (entry, function(entry, blocks)))
        .collect()
}

fn function(entry: u64, blocks: &[Stated]) -> ModelFunction {
    let mut graph = Graph {
        entry,
        ..Graph::default()
    };
    for &(start, size, successors, pad) in blocks {
        graph.blocks.insert(start, start + size);
        graph
            .edges
            .extend(successors.iter().map(|&to| Edge::plain(start, to)));
        let thrown = pad.map(|to| Edge {
            from: start,
            to,
            thrown_at: Some(start + size),
        });
        graph.edges.extend(thrown);
    }
    ModelFunction {
        name: String::new(),
        exact: true,
        graph,
    }
}

#[test]
fn the_true_model_is_equal() {
    let comparison = compare(&program(), &model());
    assert_eq!(comparison.differences, []);
    assert_eq!((comparison.functions, comparison.exact), (4, 4));
    assert_eq!((comparison.never_return, comparison.merged_ranges), (1, 1));
    let all = Score {
        common: 5 + 5 + 3 + 1,
        only_model: 0,
        only_compiler: 0,
    };
    assert_eq!(comparison.starts, all);
    assert_eq!(comparison.edges.common, 7 + 6 + 2);
}

#[test]
fn a_model_that_goes_on_behind_the_call_is_equal_too() {
    let mut model = model();
    let graph = &mut model.get_mut(&0x1040).expect("function").graph;
    graph.blocks.insert(0x1049, 0x104b);
    graph
        .edges
        .extend([Edge::plain(0x1044, 0x1049), Edge::plain(0x1049, 0x104b)]);
    assert_eq!(compare(&program(), &model).differences, []);
}

/// Applies every change to a function's graph in turn; each must be reported for that very function.
fn each_is_reported(changes: impl Fn(&Graph) -> Vec<Graph>) -> usize {
    let (program, model) = (program(), model());
    let mut count = 0;
    for (&entry, function) in &model {
        for graph in changes(&function.graph) {
            let mut mutated = model.clone();
            mutated.insert(
                entry,
                ModelFunction {
                    graph: graph.clone(),
                    ..function.clone()
                },
            );
            let comparison = compare(&program, &mutated);
            let only_there = comparison
                .in_exact()
                .all(|difference| difference.entry == entry);
            assert!(
                !comparison.differences.is_empty() && only_there,
                "{graph:x?}"
            );
            count += 1;
        }
    }
    count
}

#[test]
fn every_dropped_edge_is_reported() {
    let count = each_is_reported(|graph| {
        // Only the pad of the call that does not throw may be there or not.
        let edges = graph
            .edges
            .iter()
            .filter(|edge| edge.thrown_at != Some(0x102c));
        edges
            .map(|edge| {
                let mut graph = graph.clone();
                graph.edges.remove(edge);
                graph
            })
            .collect()
    });
    assert_eq!(count, 8 + 7 + 2);
}

#[test]
fn every_added_edge_is_reported() {
    each_is_reported(|graph| {
        let starts = || graph.blocks.keys().copied();
        let pairs = starts().flat_map(|from| starts().map(move |to| Edge::plain(from, to)));
        let new = pairs.filter(|new| {
            !graph
                .edges
                .iter()
                .any(|old| (old.from, old.to) == (new.from, new.to))
        });
        new.map(|edge| {
            let mut graph = graph.clone();
            graph.edges.insert(edge);
            graph
        })
        .collect()
    });
}

#[test]
fn every_added_landing_pad_is_reported() {
    each_is_reported(|graph| {
        let calls = [0x1019, 0x1055]
            .iter()
            .filter_map(|&end| Some((graph.block_of(end - 1)?, end)));
        calls
            .map(|(from, end)| {
                let mut graph = graph.clone();
                graph.edges.insert(Edge {
                    from,
                    to: graph.entry,
                    thrown_at: Some(end),
                });
                graph
            })
            .collect()
    });
}

#[test]
fn every_moved_block_is_reported() {
    let count = each_is_reported(|graph| {
        let joined = [0x1019, 0x102c];
        let moved = graph
            .blocks
            .keys()
            .filter(|&start| *start != graph.entry && !joined.contains(start));
        moved.map(|&start| moved_by_one(graph, start)).collect()
    });
    assert_eq!(count, 4 + 4 + 2);
}

fn moved_by_one(graph: &Graph, start: u64) -> Graph {
    let to = |at: u64| if at == start { at + 1 } else { at };
    let edges = graph.edges.iter();
    Graph {
        entry: graph.entry,
        blocks: graph
            .blocks
            .iter()
            .map(|(&start, &end)| (to(start), to(end)))
            .collect(),
        edges: edges
            .map(|edge| Edge {
                from: to(edge.from),
                to: to(edge.to),
                ..*edge
            })
            .collect(),
        leaving: graph.leaving.clone(),
    }
}

#[test]
fn a_missing_function_counts_with_all_it_has() {
    let mut model = model();
    model.remove(&0x1000);
    let comparison = compare(&program(), &model);
    assert_eq!(comparison.starts.only_compiler, 5);
    assert_eq!(comparison.edges.only_compiler, 7);
    assert_eq!(comparison.differences[0].what, What::NoFunction);
    assert!((comparison.starts.recall() - 9.0 / 14.0).abs() < 1e-9);
    assert!((comparison.starts.precision() - 1.0).abs() < 1e-9);
}

#[test]
fn a_map_that_contradicts_its_bytes_is_reported() {
    let contradictions: [(usize, usize, &[u32], Oddity); 4] = [
        (
            0,
            0,
            &[1, 2, 3],
            Oddity::Stale {
                block: 0x1000,
                successor: 0x1014,
            },
        ),
        (
            0,
            0,
            &[1],
            Oddity::Unstated {
                block: 0x1000,
                target: 0x1010,
            },
        ),
        (
            0,
            1,
            &[],
            Oddity::RunsOn {
                block: 0x1008,
                next: 0x1010,
            },
        ),
        (
            1,
            3,
            &[4, 3],
            Oddity::PadWithoutCall {
                block: 0x1033,
                pad: 0x1033,
            },
        ),
    ];
    for (function, block, successors, oddity) in contradictions {
        let mut program = program();
        program.functions[function].blocks[block].successors = successors.to_vec();
        let comparison = compare(&program, &model());
        let found = comparison
            .differences
            .iter()
            .any(|found| found.what == What::Odd(oddity));
        assert!(found, "{oddity:x?} not in {:x?}", comparison.differences);
    }
}

#[test]
fn blocks_of_wrong_size_are_reported() {
    let mut program = program();
    program.functions[0].blocks[0].size = 7;
    program.functions[0].blocks[3].call_ends = vec![0x1018];
    let differences = compare(&program, &model()).differences;
    for oddity in [
        Oddity::Undecodable { address: 0x1006 },
        Oddity::NoCall { address: 0x1018 },
    ] {
        assert!(
            differences
                .iter()
                .any(|found| found.what == What::Odd(oddity)),
            "{oddity:x?}"
        );
    }
}
