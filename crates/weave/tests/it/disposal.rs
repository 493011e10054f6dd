//! Probes that are disposed of in a file: whichever of them are gone, the checker proves the rest; and
//! when all are, the text is the module's.

use proptest::prelude::*;
use proptest::test_runner::{Config, TestCaseError, TestRng, TestRunner};
use tomo_testkit::corpus::{Compiler, Level, Recipe, Source, build};
use tomo_weave::{Files, Options, Woven, dispose};
use tomo_wire::disposal::DisposalsView;

use crate::woven::{Program, all_options};

/// Programs in which all tactics occur.
fn programs() -> Vec<Program> {
    let recipes = [
        Recipe::new(Source::CFeatures, Compiler::Gcc, Level::O2),
        Recipe::new(Source::Lua, Compiler::Gcc, Level::O2),
        Recipe::new(Source::Bzip2, Compiler::Clang, Level::O3),
    ];
    let built = recipes.map(|recipe| build(&recipe).expect("a program of the corpus").program);
    built.iter().map(|path| Program::read(path)).collect()
}

/// The image without the probes for which the bits say so.
fn without(woven: &Woven, is_gone: &dyn Fn(u32) -> bool) -> Vec<u8> {
    let mut image = woven.image.clone();
    let left = dispose(&mut image, &woven.disposals, |probe| !is_gone(probe)).expect("disposed");
    // What is left can be disposed of as ever, and nothing else.
    let of = |file| DisposalsView::read(file, &woven.header).expect("disposals");
    let (all, left) = (of(&woven.disposals), of(&left));
    let expected = all.iter().filter(|(probe, _)| !is_gone(*probe));
    assert!(left.iter().eq(expected));
    image
}

fn prove(
    program: &Program,
    woven: &Woven,
    image: &[u8],
    is_gone: &dyn Fn(u32) -> bool,
) -> Result<usize, TestCaseError> {
    let files = Files {
        image,
        plan: &woven.plan,
        disposals: &woven.disposals,
        is_gone,
    };
    let checked = program.check_files(&files);
    Ok(checked
        .map_err(|flaw| TestCaseError::fail(flaw.to_string()))?
        .changed)
}

#[test]
fn whatever_is_disposed_of_the_rest_is_proven() {
    let mut runner = TestRunner::new_with_rng(
        Config::with_cases(12),
        TestRng::deterministic_rng(Default::default()),
    );
    for program in programs() {
        let woven = program.weave(&Options::of(tomo_wire::plan::Level::Edge));
        let probes = woven.header.probes.get() as usize;
        let subset = prop::collection::vec(any::<bool>(), probes);
        let outcome = runner.run(&(subset, 0..probes), |(gone, other)| {
            let is_gone = |probe: u32| gone[probe as usize];
            let image = without(&woven, &is_gone);
            prove(&program, &woven, &image, &is_gone)?;
            // Whoever is wrong about one of them is told.
            let mistaken = |probe: u32| gone[probe as usize] ^ (probe as usize == other);
            prop_assert!(prove(&program, &woven, &image, &mistaken).is_err());
            Ok(())
        });
        outcome.expect("every subset is proven");
    }
}

#[test]
fn an_image_without_probes_is_the_modules_text() {
    for program in programs() {
        for options in all_options() {
            let woven = program.weave(&options);
            let image = without(&woven, &|_| true);
            let differing = prove(&program, &woven, &image, &|_| true).expect("a proof");
            let rows = DisposalsView::read(&woven.disposals, &woven.header).expect("disposals");
            let fillings = rows.iter().filter(|(_, row)| row.slot.get() != 0).count();
            // A jump of five bytes in filling, and up to two of two bytes on the way there; a byte of them may be what the
            // filling had there.
            assert!(
                differing <= (5 + 2 * 2) * fillings,
                "{options:?}: {differing} bytes differ"
            );
            assert_eq!(differing == 0, fillings == 0, "{options:?}");
            assert_eq!(without(&woven, &|_| false), woven.image);
        }
    }
}

#[test]
fn disposals_of_another_image_are_refused() {
    let program = &programs()[0];
    let [block, edge] = [tomo_wire::plan::Level::Block, tomo_wire::plan::Level::Edge]
        .map(|level| program.weave(&Options::of(level)));
    let mut image = block.image.clone();
    assert!(dispose(&mut image, &edge.disposals, |_| false).is_err());
    assert_eq!(image, block.image);
    // A variant's are not those of all.
    let left = dispose(&mut image, &block.disposals, |probe| probe % 2 == 0).expect("disposed");
    let variant = image.clone();
    assert!(dispose(&mut image, &left, |_| false).is_err());
    assert_eq!(image, variant);
}
