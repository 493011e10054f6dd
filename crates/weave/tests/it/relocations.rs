//! An image that was relocated is the one that is woven for that place.

use tomo_testkit::corpus::{Compiler, Level, Recipe, Source, build, compiled};
use tomo_weave::{
    Ask, Asked, Collect, Kind, Options, PredicateWeaver, Strategy, Tracing, Wanted, WeaveError,
    Weights, weave, weave_chains, weave_counters, weave_paths, weave_traces,
};
use tomo_wire::PAGE;
use tomo_wire::image::Image;
use tomo_wire::predicates::Recorded;
use tomo_wire::relocations::FIELD;

use crate::woven::{Program, STAMP, all_options};

/// Where trampolines are, from the first region's start.
type Distance = Option<i64>;

/// An image with its header.
type Made = Result<(Vec<u8>, Image), WeaveError>;

fn counters(program: &Program, distance: Distance) -> Made {
    let (binary, bytes, model) = (&program.binary(), &program.bytes, &program.model);
    let (place, weights) = ((distance, 64), &Weights::default());
    let woven = weave_counters(binary, bytes, model, program.module, STAMP, place, weights)?;
    Ok((woven.image, woven.header))
}

fn paths(program: &Program, distance: Distance) -> Made {
    let (binary, bytes, model) = (&program.binary(), &program.bytes, &program.model);
    let place = (distance, 64);
    let woven = weave_paths(binary, bytes, model, program.module, STAMP, place, &|_| {
        Ask::All
    })?;
    Ok((woven.image, woven.header))
}

fn chains(program: &Program, distance: Distance) -> Made {
    let (binary, bytes, model) = (&program.binary(), &program.bytes, &program.model);
    let all = &|_| true;
    let woven = weave_chains(binary, bytes, model, program.module, STAMP, distance, all)?;
    Ok((woven.image, woven.header))
}

fn predicates(program: &Program, distance: Distance, recorded: Recorded) -> Made {
    let binary = program.binary();
    let weaver = PredicateWeaver::of(&binary, &program.bytes, &program.model)?;
    let asked = Asked::All;
    let wanted = Wanted { asked, recorded };
    let woven = weaver.weave((program.module, STAMP), (distance, 64, true), &wanted)?;
    Ok((woven.image, woven.header))
}

fn traces(program: &Program, distance: Distance) -> Made {
    let tracing = Tracing {
        runs: 2,
        limit: None,
        strategy: Strategy::Grouped,
        kind: Kind::Auto,
        collect: Collect::Detour,
        weights: &Weights::default(),
        functions: &[],
    };
    let (binary, bytes, model) = (&program.binary(), &program.bytes, &program.model);
    let module = program.module;
    let woven = weave_traces(binary, bytes, model, module, STAMP, distance, &tracing)?;
    Ok(woven.images.into_iter().next_back().expect("two runs"))
}

fn covering(program: &Program, options: &Options, distance: Distance) -> Made {
    let (binary, bytes, model) = (&program.binary(), &program.bytes, &program.model);
    let options = Options {
        distance,
        ..*options
    };
    let woven = weave(binary, bytes, model, program.module, STAMP, &options)?;
    Ok((woven.image, woven.header))
}

/// The bytes of the module at a stated address.
fn original(program: &Program, address: u64) -> [u8; FIELD] {
    let binary = program.binary();
    let code = binary.code_at(tomo_program::Address(address));
    *code.and_then(<[u8]>::first_chunk).expect("code")
}

/// Relocates the image that `make` gives, and holds it against the one that is made for that place: as it is, and where
/// probes were taken away from every other part of the text.
fn hold(name: &str, program: &Program, make: &dyn Fn(Distance) -> Made) {
    let (image, header) = make(None).expect("an image");
    // Farther away, or nearer where the module's name has it lie far away.
    const STEP: i64 = 77 << 20;
    let distance = match header.distance.get() {
        far if far < -(1 << 30) => far + STEP,
        near => near - STEP,
    };
    let (woven, woven_header) = make(Some(distance)).expect("an image for another place");
    assert_eq!(header.relocations, woven_header.relocations, "{name}");
    let end = header.relocations.get() as usize;
    let table = header.relocations_in(&image[end..]).expect("a table");

    let mut copy = image[..end].to_vec();
    let relocated = header.relocate(table, &mut copy, distance, |at| original(program, at));
    let relocated = relocated.unwrap_or_else(|refusal| panic!("{name}: {refusal}"));
    assert_eq!(relocated.distance, woven_header.distance, "{name}");
    let differs = (PAGE as usize..end).find(|at| copy[*at] != woven[*at]);
    assert_eq!(differs.map(|at| format!("{at:#x}")), None, "{name}");
    assert!(copy != image[..end], "{name}: something leads there");

    const PART: u64 = 256;
    let is_gone = |address: u64| (address / PART).is_multiple_of(2);
    let offset = |address: u64| {
        let first = header.regions()[0].address.get();
        let at = header.text_at((address - first) as u32, FIELD as u64);
        at.expect("text") as usize
    };
    let left = |address: u64| match is_gone(address) {
        true => *image[offset(address)..].first_chunk().expect("a field"),
        false => original(program, address),
    };
    let mut copy = image[..end].to_vec();
    header
        .relocate(table, &mut copy, distance, left)
        .expect("within reach");
    for region in header.regions() {
        for address in region.address.get()..region.address.get() + region.length.get() - 4 {
            // A field may begin in the part before.
            if is_gone(address) == is_gone(address - FIELD as u64) {
                let expected = if is_gone(address) { &image } else { &woven };
                let at = offset(address);
                assert_eq!(copy[at], expected[at], "{name}: {address:#x}");
            }
        }
    }
}

fn hold_all(name: &str, program: &Program) {
    for options in all_options() {
        let name = format!("{name}, {options:?}");
        hold(&name, program, &|distance| {
            covering(program, &options, distance)
        });
    }
    hold(name, program, &|distance| counters(program, distance));
    hold(name, program, &|distance| paths(program, distance));
    hold(name, program, &|distance| chains(program, distance));
    hold(name, program, &|distance| traces(program, distance));
    for recorded in [Recorded::Marks, Recorded::Counts] {
        hold(name, program, &|distance| {
            predicates(program, distance, recorded)
        });
    }
}

#[test]
fn a_relocated_image_is_the_one_that_is_woven_for_that_place() {
    for recipe in [
        Recipe::new(Source::CFeatures, Compiler::Clang, Level::O2),
        Recipe::new(Source::CppFeatures, Compiler::Gcc, Level::O2),
        Recipe::new(Source::RustFeatures, Compiler::Rustc, Level::O2),
        Recipe::new(Source::Lua, Compiler::Gcc, Level::O2),
    ] {
        let built = build(&recipe).expect("a program of the corpus");
        hold_all(&built.name, &Program::read(&built.program));
    }
}

/// The trampolines of a program at its stated address lie above it.
#[test]
fn so_is_that_of_a_program_at_its_stated_address() {
    let path = compiled("gcc", "isolating.c", &["-O2", "-no-pie"]).expect("built");
    hold_all("no-pie", &Program::read(&path));
}

#[test]
fn an_image_is_not_relocated_out_of_reach() {
    let path = compiled("gcc", "isolating.c", &["-O2"]).expect("built");
    let program = Program::read(&path);
    let (image, header) = counters(&program, None).expect("an image");
    let end = header.relocations.get() as usize;
    let table = header.relocations_in(&image[end..]).expect("a table");
    let is_refused = |distance| {
        let mut copy = image[..end].to_vec();
        let original = |at| original(&program, at);
        header
            .relocate(table, &mut copy, distance, original)
            .is_err()
    };
    assert!(!is_refused(-(1 << 30)));
    assert!(is_refused(-(1 << 31)));
    assert!(is_refused(-(PAGE as i64)), "on the module");
    assert!(is_refused(1 << 32));
}
