//! Images with witnesses are proven, and the checker notices what is changed in them.

use proptest::prelude::*;
use proptest::strategy::ValueTree as _;
use proptest::test_runner::{Config, TestRunner};
use tomo_testkit::corpus::{Compiler, Level, Recipe, Source, build};
use tomo_weave::{
    Collect, CountersChecked, Flaw, Kind, Strategy as Distributed, Tracing, Weights, WovenTraces,
    check_traces, weave_traces,
};
use tomo_wire::tracing::ChartView;

use crate::moved::{self, Added};
use crate::mutations::{parts, sealed, small_program};
use crate::woven::{Program, STAMP};

fn woven(program: &Program, runs: u32) -> WovenTraces {
    let weights = Weights::default();
    let tracing = Tracing {
        runs,
        limit: None,
        strategy: Distributed::Grouped,
        kind: Kind::Auto,
        collect: Collect::Detour,
        weights: &weights,
        functions: &[],
    };
    let (model, module) = (&program.model, program.module);
    let woven = weave_traces(
        &program.binary(),
        &program.bytes,
        model,
        module,
        STAMP,
        None,
        &tracing,
    );
    woven.expect("images")
}

fn proof(program: &Program, image: &[u8], chart: &[u8], run: u32) -> Result<CountersChecked, Flaw> {
    let files = (image, chart, run);
    check_traces(files, &program.bytes, &program.binary(), &program.model)
}

/// The images of all runs, of programs in all languages.
#[test]
fn images_of_traces_are_proven() {
    for recipe in [
        Recipe::new(Source::CFeatures, Compiler::Gcc, Level::O2),
        Recipe::new(Source::CFeatures, Compiler::Clang, Level::O0),
        Recipe::new(Source::CppFeatures, Compiler::Gcc, Level::O2),
        Recipe::new(Source::Lua, Compiler::Gcc, Level::O2),
        Recipe {
            pie: false,
            ..Recipe::new(Source::CFeatures, Compiler::Gcc, Level::O2)
        },
    ] {
        let built = build(&recipe).expect("a program of the corpus");
        let program = Program::read(&built.program);
        let woven = woven(&program, 3);
        let chart = ChartView::read(&woven.chart).expect("a chart");
        let functions = program.model.graphs().expect("graphs").functions().len();
        assert!(2 * chart.functions.len() > functions, "{}", built.name);
        for (run, (image, _)) in (0..).zip(&woven.images) {
            let checked = proof(&program, image, &woven.chart, run);
            let checked = checked.unwrap_or_else(|flaw| panic!("{}, {run}: {flaw}", built.name));
            assert!(checked.entrances > 0, "{checked:?}");
            assert!(checked.moved > checked.increments, "{checked:?}");
            assert!(moved::prove(&built.name, &program, image, Added::Words) > 0);
        }
    }
}

/// No byte of the text, nor of the code that it leads to, can be changed without notice, nor can an image be taken
/// for that of another run.
#[test]
fn what_an_image_with_witnesses_executes_cannot_be_changed() {
    let program = small_program();
    let woven = woven(&program, 2);
    let (image, header) = &woven.images[0];
    assert!(proof(&program, &woven.images[1].0, &woven.chart, 0).is_err());
    proof(&program, image, &woven.chart, 0).expect("a proof");
    let mut parts = parts(header);
    parts.retain(|part| !part.is_empty());
    // Filling up to the end of a page.
    let code = &mut parts[0];
    let filled = image[code.clone()].iter().rev();
    code.end -= filled.take_while(|byte| **byte == 0xcc).count();
    let place = (0..parts.len()).prop_flat_map(move |part| parts[part].clone());
    let mut runner = TestRunner::new_with_rng(
        Config::with_cases(400),
        proptest::test_runner::TestRng::deterministic_rng(Default::default()),
    );
    for _ in 0..400 {
        let tree = (&place, 1u8..).new_tree(&mut runner).expect("a change");
        let (at, change) = tree.current();
        let mut changed = image.clone();
        changed[at] ^= change;
        let noticed = proof(&program, &sealed(changed), &woven.chart, 0);
        assert!(noticed.is_err(), "byte {at:#x} by {change:#x}");
    }
}
