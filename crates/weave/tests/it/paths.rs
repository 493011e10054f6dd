//! Images that count paths are proven, and changes of them noticed.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use proptest::strategy::ValueTree as _;
use proptest::test_runner::{Config, TestRunner};
use tomo_program::{Address, BlockId, EdgeKind, FunctionView};
use tomo_testkit::corpus::{Compiler, Level, Recipe, Source, build, compiled};
use tomo_weave::{Ask, NamedPath, PathsOf, WeaveError, WovenPaths};
use tomo_wire::paths::{Asked, Function, Mark, MarkKind, Paths};

use crate::moved::{self, Added};
use crate::woven::Program;

fn program(source: Source, compiler: Compiler, level: Level) -> Program {
    let recipe = Recipe::new(source, compiler, level);
    Program::read(&build(&recipe).expect("a program of the corpus").program)
}

#[test]
fn paths_of_whole_programs() {
    for (source, compiler, level) in [
        (Source::CFeatures, Compiler::Clang, Level::O0),
        (Source::CppFeatures, Compiler::Gcc, Level::O2),
        (Source::RustFeatures, Compiler::Rustc, Level::O2),
        (Source::Lua, Compiler::Gcc, Level::O2),
        (Source::Bzip2, Compiler::Clang, Level::O3),
    ] {
        let program = program(source, compiler, level);
        let woven = program.weave_paths();
        let checked = program.check_paths(&woven.image, &woven.paths);
        let checked = checked.unwrap_or_else(|flaw| panic!("{source:?} {compiler:?}: {flaw}"));
        assert!(checked.counters.increments > 100, "{checked:?}");
        assert!(moved::prove("paths", &program, &woven.image, Added::Sums) > 0);
    }
}

/// Where a call lands if something is thrown is no end of a path, though it be another function's.
#[test]
fn no_path_ends_at_a_call_that_lands_in_another_function() {
    let flags = [
        "-O2",
        "-mindirect-branch=thunk-inline",
        "-fcf-protection=none",
    ];
    let program = Program::read(&compiled("g++", "landing.cpp", &flags).expect("built"));
    let woven = program.weave_paths();
    let checked = program.check_paths(&woven.image, &woven.paths);
    checked.unwrap_or_else(|flaw| panic!("{flaw}"));
    let (_, rows) = Paths::read(&woven.paths).expect("paths");
    let graphs = program.model.graphs().expect("graphs");
    let lands = graphs.functions().flat_map(|function| {
        let calls = function.calls().map(|call| call.block());
        let calls: Vec<_> = calls.filter_map(|block| function.block(block)).collect();
        let elsewhere = calls.into_iter().filter(|block| {
            let mut edges = block.successors();
            edges.any(|edge| edge.kind == EdgeKind::JumpInto && edge.address != block.range().end())
        });
        let entry = function.entry().0;
        elsewhere
            .map(move |block| (entry, block.address().0))
            .collect::<Vec<_>>()
    });
    let mut found = 0;
    for (entry, block) in lands {
        let row = rows.functions.iter().find(|row| row.entry.get() == entry);
        let Some(row) = row else { continue };
        let dead = |mark: &&Mark| mark.kind.get() == MarkKind::Dead as u32;
        let mut marks = rows.marks_of(row).iter().filter(dead);
        assert!(marks.any(|mark| mark.from.get() == block), "{block:#x}");
        found += 1;
    }
    assert!(found > 0, "no call lands in another function");
}

/// The path that takes the first way on at every block of a function; none where ways are taken that a path may end
/// at for other reasons.
fn first_path(function: &FunctionView<'_>) -> Option<NamedPath> {
    let start = |block: BlockId| Some(function.block(block)?.address().0);
    let mut blocks = Vec::new();
    let mut at = function.entry_block()?;
    loop {
        blocks.push(at.address().0);
        let next = at.successors().next();
        let Some(next) = next.filter(|edge| edge.block().is_some()) else {
            return Some(NamedPath { blocks, end: None });
        };
        if !matches!(
            next.kind,
            EdgeKind::Fallthrough | EdgeKind::Taken | EdgeKind::NotTaken | EdgeKind::Jump
        ) {
            return None;
        }
        let to = next
            .block()
            .filter(|to| function.position_of(*to).is_some());
        let Some(to) = to else {
            return Some(NamedPath { blocks, end: None });
        };
        if blocks.contains(&start(to)?) {
            let end = start(to);
            return Some(NamedPath { blocks, end });
        }
        at = function.block(to)?;
    }
}

/// Paths to ask for, by entry: of every second function one, of the others all but that.
fn some_paths(program: &Program) -> BTreeMap<u64, PathsOf> {
    let graphs = program.model.graphs().expect("graphs");
    let functions = graphs.functions().enumerate();
    let paths = functions.filter_map(|(at, function)| {
        let paths = PathsOf {
            others: at % 2 == 0,
            paths: BTreeSet::from([first_path(&function)?]),
            ends: None,
        };
        Some((function.entry().0, paths))
    });
    paths.collect()
}

fn asked<'a>(paths: &'a BTreeMap<u64, PathsOf>, function: &FunctionView<'_>) -> Ask<'a> {
    paths
        .get(&function.entry().0)
        .map_or(Ask::Nothing, Ask::Some)
}

/// The image of `paths`, less those that end sooner than [`first_path`] can tell: in front of blocks without room.
fn weave_some(program: &Program, paths: &mut BTreeMap<u64, PathsOf>) -> WovenPaths {
    let before = paths.len();
    loop {
        let name = match program.weave_asked(&|function| asked(paths, function)) {
            Ok(woven) => {
                assert!(paths.len() * 10 > before * 9, "{} of {before}", paths.len());
                return woven;
            }
            Err(WeaveError::NoSuchPath { function, .. }) => function,
            Err(error) => panic!("{error}"),
        };
        let graphs = program.model.graphs().expect("graphs");
        paths.retain(|entry, _| {
            let function = graphs.function_starting_at(Address(*entry));
            function.is_none_or(|function| function.title() != name)
        });
    }
}

#[test]
fn selected_paths_of_whole_programs() {
    for (source, compiler, level) in [
        (Source::CFeatures, Compiler::Gcc, Level::O0),
        (Source::RustFeatures, Compiler::Rustc, Level::O2),
        (Source::Lua, Compiler::Clang, Level::O2),
    ] {
        let program = program(source, compiler, level);
        let mut paths = some_paths(&program);
        let woven = weave_some(&program, &mut paths);
        let checked = program.check_paths(&woven.image, &woven.paths);
        checked.unwrap_or_else(|flaw| panic!("{source:?} {compiler:?}: {flaw}"));
        let (_, rows) = Paths::read(&woven.paths).expect("paths");
        let all = program.weave_paths();
        let (_, whole) = Paths::read(&all.paths).expect("paths");
        let selective = rows
            .functions
            .iter()
            .filter(|one| one.is_selective())
            .count();
        assert!(
            selective * 10 > rows.functions.len() * 9,
            "{selective} of {}",
            rows.functions.len()
        );
        // Who is asked for one path has one counter, or few.
        let named = rows
            .functions
            .iter()
            .filter(|one| one.asked() == Some(Asked::Named));
        let numbers = |rows: &[Function], entry| {
            let row = rows.iter().find(|one: &&Function| one.entry.get() == entry);
            row.map_or(0, |row| row.numbers.get())
        };
        for row in named {
            let entry = row.entry.get();
            assert!(
                row.numbers.get() <= numbers(whole.functions, entry),
                "{entry:#x}"
            );
        }
        assert!(woven.image.len() <= all.image.len(), "{source:?}");
    }
}

#[test]
fn a_path_that_is_none_is_no_image() {
    let program = program(Source::CFeatures, Compiler::Gcc, Level::O2);
    let mut paths = some_paths(&program);
    paths.retain(|_, paths| !paths.others);
    let one = paths.values_mut().next().expect("a function");
    one.paths.insert(NamedPath {
        blocks: vec![1, 2],
        end: None,
    });
    let woven = program.weave_asked(&|function| asked(&paths, function));
    assert!(matches!(woven, Err(WeaveError::NoSuchPath { .. })));
}

/// No byte of the text, nor of the code that it leads to, can be changed without notice, but for the sums of paths.
#[test]
fn what_an_image_with_paths_executes_cannot_be_changed() {
    let program = program(Source::CFeatures, Compiler::Gcc, Level::O2);
    let woven = program.weave_paths();
    cannot_be_changed(&program, &woven);
}

#[test]
fn what_an_image_with_selected_paths_executes_cannot_be_changed() {
    let program = program(Source::CFeatures, Compiler::Gcc, Level::O2);
    let woven = weave_some(&program, &mut some_paths(&program));
    cannot_be_changed(&program, &woven);
}

fn cannot_be_changed(program: &Program, woven: &WovenPaths) {
    let right = program.check_paths(&woven.image, &woven.paths);
    let right = right.expect("a proof");
    let header = &woven.header;
    let start = header.trampolines.get() as usize;
    let code = start..start + header.trampolines_length.get() as usize;
    // Filling up to the end of a page.
    let filled = woven.image[code.clone()].iter().rev();
    let code = start..code.end - filled.take_while(|byte| **byte == 0xcc).count();
    let texts = header.regions().iter().map(|region| {
        let start = region.offset.get() as usize;
        start..start + region.length.get() as usize
    });
    let parts: Vec<_> = texts.chain([code]).collect();
    let place = (0..parts.len()).prop_flat_map(move |part| parts[part].clone());
    let mut runner = TestRunner::new_with_rng(
        Config::with_cases(600),
        proptest::test_runner::TestRng::deterministic_rng(Default::default()),
    );
    let mut sums = 0;
    for _ in 0..600 {
        let tree = (&place, 1u8..).new_tree(&mut runner).expect("a change");
        let (at, change) = tree.current();
        let mut image = woven.image.clone();
        image[at] ^= change;
        let noticed = program.check_paths(&image, &woven.paths).is_err();
        let is_sum = right.sums.iter().any(|sum| sum.contains(&at));
        sums += usize::from(is_sum);
        assert!(noticed || is_sum, "byte {at:#x} by {change:#x}");
    }
    assert!(sums < 300, "{sums}");
}
