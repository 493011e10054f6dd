//! Images that count paths are proven, and changes of them noticed.

use proptest::prelude::*;
use proptest::strategy::ValueTree as _;
use proptest::test_runner::{Config, TestRunner};
use tomo_testkit::corpus::{Compiler, Level, Recipe, Source, build};

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
    }
}

/// No byte of the text, nor of the code that it leads to, can be changed without notice, but for the sums of paths.
#[test]
fn what_an_image_with_paths_executes_cannot_be_changed() {
    let program = program(Source::CFeatures, Compiler::Gcc, Level::O2);
    let woven = program.weave_paths();
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
