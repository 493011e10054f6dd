//! The model is true by the compiler's word: clang's and rustc's own maps of basic blocks.
//!
//! In exact functions, block starts and edges are equal; over all functions precision and recall of
//! both are at least 99.9 %. What is compared, and after which normalisation, is told in
//! `tomo_testkit::bbmap`. The places where a compiler's map is itself wrong are in [`WRONG_MAPS`],
//! each by name.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
};

use object::{Object, ObjectSection};
use tomo_testkit::{
    bbmap::{
        compare::{Comparison, Difference, Score, compare},
        graph::{Edge, Graph},
        model::{ModelFunction, read},
        program::Program,
        refine::refine,
        returns::cut_calls_that_never_return,
    },
    corpus::{Built, Compiler, Level, Recipe, Source, build},
    tomo,
};

/// A place where a compiler's map does not tell what its own code does.
struct WrongMap {
    /// How the programs' names begin, as reports have them.
    programs: &'static str,
    /// A part of the function's mangled name (hashes in it change with the compiler).
    function: &'static str,
    /// The block, or the start of the edge, that differs; from the function's entry.
    offset: u64,
    /// What the disassembly shows.
    #[expect(dead_code, reason = "for whoever reads the table")]
    reason: &'static str,
}

/// Where the map states more than the code can do. It never states less, and never contradicts the
/// decoded instructions, in any program looked at.
const WRONG_MAPS: &[WrongMap] = &[WrongMap {
    programs: "rustfeatures-rustc-O",
    function: "find_leaf_edges_spanning_range",
    offset: 0,
    reason: "the dispatch was copied to where its index is the constant 0 (xor edi, edi; lea r10, \
             [table]; movsxd rdi, [r10 + rdi*4]; add rdi, r10; jmp rdi), so only the first entry \
             of the table can be its target; the map states the targets of all",
}];

fn recipe(source: Source, level: Level) -> Recipe {
    let rust = source == Source::RustFeatures;
    let compiler = if rust {
        Compiler::Rustc
    } else {
        Compiler::Clang
    };
    Recipe {
        block_address_map: true,
        ..Recipe::new(source, compiler, level)
    }
}

fn is_known(program: &str, difference: &Difference) -> bool {
    let from_entry = |at: u64| at.wrapping_sub(difference.entry);
    WRONG_MAPS.iter().any(|wrong| {
        program.starts_with(wrong.programs)
            && difference.function.contains(wrong.function)
            && difference.what.address().map(from_entry) == Some(wrong.offset)
    })
}

/// Holds one program's model against its compiler's map, at every level.
fn check(source: Source) {
    let (mut starts, mut edges) = (Score::default(), Score::default());
    let mut wrong = String::new();
    for level in Level::ALL {
        let built = build(&recipe(source, level)).expect("built");
        let comparison = by_the_compiler(&built);
        println!("{}:\n{comparison}", built.name);
        let unknown = comparison
            .in_exact()
            .filter(|difference| !is_known(&built.name, difference));
        wrong.extend(unknown.map(|difference| format!("{}: {difference}\n", built.name)));
        starts = starts.plus(comparison.starts);
        edges = edges.plus(comparison.edges);
    }
    assert!(wrong.is_empty(), "differences in exact functions:\n{wrong}");
    for (what, score) in [("blocks", starts), ("edges", edges)] {
        assert!(
            score.precision() >= 0.999 && score.recall() >= 0.999,
            "{source:?} {what}: {score}"
        );
    }
}

fn by_the_compiler(built: &Built) -> Comparison {
    let program = Program::read(&built.program).expect("a map");
    let lines = tomo::map_lines(&built.program).expect("a model");
    let comparison = compare(
        &program,
        &read(lines.as_slice()).expect("the model's lines"),
    );
    assert!(comparison.exact > 0, "{}: no function is exact", built.name);
    comparison
}

#[test]
fn lua_is_true() {
    check(Source::Lua);
}

#[test]
fn sqlite_is_true() {
    check(Source::Sqlite);
}

#[test]
fn bzip2_is_true() {
    check(Source::Bzip2);
}

#[test]
fn zstd_is_true() {
    check(Source::Zstd);
}

#[test]
fn the_cpp_features_are_true() {
    check(Source::CppFeatures);
}

#[test]
fn the_rust_features_are_true() {
    check(Source::RustFeatures);
}

/// The claim on which all of this rests.
#[test]
fn the_map_does_not_change_the_code() {
    for source in [Source::Lua, Source::RustFeatures] {
        let with = recipe(source, Level::O2);
        let without = Recipe {
            block_address_map: false,
            ..with.clone()
        };
        let [with, without] = [with, without].map(|recipe| {
            let built = build(&recipe).expect("built");
            text(&fs::read(built.program).expect("read"))
        });
        assert!(!with.is_empty());
        assert!(with == without, "{source:?}: .text differs");
    }
}

fn text(file: &[u8]) -> Vec<u8> {
    let file = object::File::parse(file).expect("an ELF file");
    let text = file.section_by_name(".text").expect("code");
    text.data().expect("bytes").to_vec()
}

/// The comparer is held against a real program: what the map itself says is equal to the map, and every
/// function that is changed is reported, and no other.
#[test]
fn changed_functions_of_a_real_program_are_reported() {
    let built = build(&recipe(Source::Lua, Level::O2)).expect("built");
    let program = Program::read(&built.program).expect("a map");
    let true_model = what_the_map_says(&program);
    assert_eq!(compare(&program, &true_model).differences, []);
    for change in [drop_an_edge, add_an_edge, move_a_block, drop_a_block] {
        let mut model = true_model.clone();
        let changed: BTreeSet<u64> = model
            .iter_mut()
            .enumerate()
            .filter(|(number, _)| number % 2 == 0)
            .filter_map(|(number, (&entry, function))| {
                function.graph = change(&function.graph, number)?;
                Some(entry)
            })
            .collect();
        let comparison = compare(&program, &model);
        let reported: BTreeSet<u64> = comparison
            .differences
            .iter()
            .map(|found| found.entry)
            .collect();
        assert!(
            changed.len() > 100,
            "only {} functions could be changed",
            changed.len()
        );
        assert_eq!(reported, changed);
    }
}

fn what_the_map_says(program: &Program) -> BTreeMap<u64, ModelFunction> {
    let functions = program.functions.iter();
    let refined =
        functions.map(|function| (function.entry, refine(function, |at| program.code_at(at))));
    let mut refined = refined.collect();
    cut_calls_that_never_return(&mut refined);
    let model = |graph| ModelFunction {
        name: String::new(),
        exact: true,
        graph,
    };
    refined
        .into_iter()
        .map(|(entry, refined)| (entry, model(refined.graph)))
        .collect()
}

fn drop_an_edge(graph: &Graph, seed: usize) -> Option<Graph> {
    let mut graph = graph.clone();
    let edge = *graph
        .edges
        .iter()
        .nth(seed.checked_rem(graph.edges.len())?)?;
    graph.edges.remove(&edge);
    Some(graph)
}

fn add_an_edge(graph: &Graph, seed: usize) -> Option<Graph> {
    let pairs = graph
        .blocks
        .keys()
        .flat_map(|&from| graph.blocks.keys().map(move |&to| (from, to)));
    let new: Vec<_> = pairs
        .map(|(from, to)| Edge::plain(from, to))
        .filter(|edge| !graph.edges.contains(edge))
        .collect();
    let mut graph = graph.clone();
    graph.edges.insert(*new.get(seed.checked_rem(new.len())?)?);
    Some(graph)
}

fn move_a_block(graph: &Graph, seed: usize) -> Option<Graph> {
    let inner: Vec<u64> = graph
        .blocks
        .keys()
        .copied()
        .filter(|&start| start != graph.entry)
        .collect();
    let moved = *inner.get(seed.checked_rem(inner.len())?)?;
    let to = |at: u64| if at == moved { at + 1 } else { at };
    let edges = graph.edges.iter();
    Some(Graph {
        entry: graph.entry,
        blocks: graph
            .blocks
            .iter()
            .map(|(&start, &end)| (to(start), end))
            .collect(),
        edges: edges
            .map(|edge| Edge {
                from: to(edge.from),
                to: to(edge.to),
                ..*edge
            })
            .collect(),
        leaving: graph.leaving.iter().map(|&start| to(start)).collect(),
    })
}

fn drop_a_block(graph: &Graph, seed: usize) -> Option<Graph> {
    let dropped = *graph.blocks.keys().nth(seed % graph.blocks.len())?;
    let mut graph = graph.clone();
    graph.blocks.remove(&dropped);
    graph.edges.retain(|edge| edge.from != dropped);
    Some(graph)
}
