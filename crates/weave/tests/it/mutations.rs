//! The checker notices what it should: images that are changed, and then made to pass the door.

use std::collections::HashMap;

use proptest::prelude::*;
use proptest::strategy::ValueTree as _;
use proptest::test_runner::{Config, TestRunner};
use tomo_testkit::corpus::{Compiler, Level, Recipe, Source, build};
use tomo_weave::{Asked, Files, Options, Woven};
use tomo_wire::disposal::{Disposal, Disposals};
use tomo_wire::image::Image;
use tomo_wire::predicates::{Kind, Predicates, Recorded, Row, Sinks, Told};
use zerocopy::{FromBytes, IntoBytes};

use crate::woven::{Program, STAMP};

pub(crate) fn small_program() -> Program {
    let recipe = Recipe::new(Source::CFeatures, Compiler::Gcc, Level::O2);
    Program::read(&build(&recipe).expect("a program of the corpus").program)
}

/// The image with its header made to agree with its trap table.
pub(crate) fn sealed(mut image: Vec<u8>) -> Vec<u8> {
    let size = size_of::<Image>();
    let mut header = Image::read_from_bytes(&image[..size]).expect("a header");
    let start = header.windows.get() as usize;
    let rows = header.window_count.get() as usize * size_of::<tomo_wire::image::Window>();
    header.windows_checksum = tomo_wire::checksum(&image[start..start + rows]).into();
    image[..size].copy_from_slice(&header.sealed());
    image
}

/// The parts of an image file whose every byte matters.
pub(crate) fn parts(header: &Image) -> Vec<std::ops::Range<usize>> {
    let part = |start: u64, length: u64| start as usize..(start + length) as usize;
    let rows = header.window_count.get() * size_of::<tomo_wire::image::Window>() as u64;
    let trampolines = header.trampolines_length.get();
    let mut parts = vec![
        part(header.windows.get(), rows),
        part(header.trampolines.get(), trampolines),
    ];
    parts.extend(
        header
            .regions()
            .iter()
            .map(|r| part(r.offset.get(), r.length.get())),
    );
    parts
}

/// No byte of the text, nor of the code that it leads to, can be changed without notice.
#[test]
fn what_an_image_with_counters_executes_cannot_be_changed() {
    let program = small_program();
    let woven = program.weave_counters();
    let right = program.check_counters(&woven.image, &woven.counters);
    let right = right.expect("a proof");
    every_change_is_noticed(&woven.image, &woven.header, |image| {
        program.check_counters(image, &woven.counters).is_err()
    });
    assert!(right.moved > 1000, "{right:?}");
}

/// The same of predicates, marked and counted.
#[test]
fn what_an_image_with_predicates_executes_cannot_be_changed() {
    let program = small_program();
    for recorded in [Recorded::Marks, Recorded::Counts] {
        let woven = program.weave_predicates(recorded, Asked::All);
        let right = program.check_predicates(&woven.image, &woven.predicates);
        let right = right.expect("a proof");
        every_change_is_noticed(&woven.image, &woven.header, |image| {
            program.check_predicates(image, &woven.predicates).is_err()
        });
        let vanish = recorded == Recorded::Marks;
        assert!(right.actions > 100, "{right:?}");
        assert_eq!(right.windows > 50, vanish, "{right:?}");
    }
}

/// Nor can what is said of a predicate: another site, another case, another width, another mark, that of another one.
#[test]
fn what_is_said_of_a_predicate_cannot_be_changed() {
    let program = small_program();
    let woven = program.weave_predicates(Recorded::Marks, Asked::All);
    let (header, rows) = Predicates::read(&woven.predicates).expect("predicates");
    let analysis = header.analysis.get();
    let changes: [fn(&mut Row); 4] = [
        |row| row.site = (row.site.get() + 1).into(),
        |row| row.case ^= 1,
        |row| row.width ^= 1,
        |row| row.by = (row.by.get() ^ 1).into(),
    ];
    let observed = |row: &&Row| row.told() == Some(Told::Itself);
    let notices = |other: &[Row]| {
        let marks = Sinks::Marks {
            all: header.probes.get(),
            vanish: header.vanish.get(),
        };
        let file = Predicates::of(header.module, analysis, marks, other);
        let mut image = woven.image.clone();
        let mut head = Image::read_from_bytes(&image[..size_of::<Image>()]).expect("a header");
        head.plan = file.name().into();
        image[..size_of::<Image>()].copy_from_slice(&head.sealed());
        let file = [file.as_bytes(), other.as_bytes()].concat();
        program.check_predicates(&sealed(image), &file).is_err()
    };
    assert!(!notices(rows), "what is right is said to be wrong");
    for pair in (0..rows.len() - 1).step_by(3) {
        if observed(&&rows[pair]) && observed(&&rows[pair + 1]) {
            let mut other = rows.to_vec();
            (other[pair].by, other[pair + 1].by) = (rows[pair + 1].by, rows[pair].by);
            assert!(notices(&other), "{:?}", &rows[pair..pair + 2]);
        }
    }
    for (at, row) in rows
        .iter()
        .enumerate()
        .step_by(5)
        .filter(|(_, row)| observed(row))
    {
        for change in changes {
            let mut other = rows.to_vec();
            change(&mut other[at]);
            assert!(notices(&other), "{row:?}, {:?}", other[at]);
        }
    }
    let shared = shared(rows);
    assert!(shared.len() > 1, "{shared:?}");
    for (result, branch) in shared {
        // The mark of the branch's other way; this one's for another case.
        let mut other = rows.to_vec();
        let way = match rows[branch].case {
            0 => branch + 1,
            _ => branch - 1,
        };
        other[result].by = rows[way].by;
        assert!(notices(&other), "{:?}", &rows[way]);
        let mut other = rows.to_vec();
        let case = match rows[result].case {
            0 => result + 1,
            _ => result - 1,
        };
        other[case].by = rows[branch].by;
        assert!(notices(&other), "{:?}", &rows[case]);
    }
}

/// Rows of results that have the marks of ways of branches, each with the row of the way.
fn shared(rows: &[Row]) -> Vec<(usize, usize)> {
    let own = |kind: Kind| {
        let each = rows.iter().enumerate();
        each.filter(move |(_, row)| row.told() == Some(Told::Itself) && row.kind() == Some(kind))
    };
    let ways = own(Kind::Branch).map(|(at, row)| (row.by.get(), at));
    let ways: HashMap<u32, usize> = ways.collect();
    let results = own(Kind::Result);
    let results = results.filter_map(|(at, row)| Some((at, *ways.get(&row.by.get())?)));
    results.collect()
}

/// Nor what one with chains does, but how deep calls are, which only says by which of several calls control went outside.
#[test]
fn what_an_image_with_chains_executes_cannot_be_changed() {
    let program = small_program();
    let woven = program.weave_chains();
    let right = program.check_chains(&woven.image, &woven.functions);
    let right = right.expect("a proof");
    every_change_is_noticed(&woven.image, &woven.header, |image| {
        program.check_chains(image, &woven.functions).is_err()
    });
    assert!(right.moved > 1000, "{right:?}");
}

/// Changes bytes of code, one at a time, and sees whether that is noticed.
fn every_change_is_noticed(image: &[u8], header: &Image, notices: impl Fn(&[u8]) -> bool) {
    let mut parts = parts(header);
    parts.retain(|part| !part.is_empty());
    // Filling up to the end of a page.
    let start = header.trampolines.get() as usize;
    for code in parts.iter_mut().filter(|part| part.start == start) {
        let filled = image[code.clone()].iter().rev();
        code.end -= filled.take_while(|byte| **byte == 0xcc).count();
    }
    let place = (0..parts.len()).prop_flat_map(move |part| parts[part].clone());
    let mut runner = TestRunner::new_with_rng(
        Config::with_cases(600),
        proptest::test_runner::TestRng::deterministic_rng(Default::default()),
    );
    for _ in 0..600 {
        let tree = (&place, 1u8..).new_tree(&mut runner).expect("a change");
        let (at, change) = tree.current();
        let mut changed = image.to_vec();
        changed[at] ^= change;
        assert!(notices(&sealed(changed)), "byte {at:#x} by {change:#x}");
    }
}

#[test]
fn any_changed_byte_of_table_trampolines_or_text_is_noticed() {
    for stays in [false, true] {
        changes_are_noticed(&Options {
            stays,
            ..Options::of(tomo_wire::plan::Level::Edge)
        });
    }
}

fn changes_are_noticed(options: &Options) {
    let program = small_program();
    let woven = program.weave(options);
    program.check(&woven).expect("a proof");
    let parts = parts(&woven.header);
    let place = (0..parts.len()).prop_flat_map(move |part| parts[part].clone());
    let mut runner = TestRunner::new_with_rng(
        Config::with_cases(400),
        proptest::test_runner::TestRng::deterministic_rng(Default::default()),
    );
    let outcome = runner.run(&(place, 1u8..), |(at, change)| {
        let mut image = woven.image.clone();
        image[at] ^= change;
        let changed = Files {
            image: &sealed(image),
            ..files(&woven)
        };
        prop_assert!(program.check_files(&changed).is_err(), "byte {at:#x}");
        Ok(())
    });
    outcome.expect("every change is noticed");
}

#[test]
fn any_changed_byte_of_the_disposals_is_noticed() {
    let program = small_program();
    let woven = program.weave(&Options::of(tomo_wire::plan::Level::Edge));
    let header = size_of::<Disposals>();
    let mut runner = TestRunner::new_with_rng(
        Config::with_cases(400),
        proptest::test_runner::TestRng::deterministic_rng(Default::default()),
    );
    let outcome = runner.run(&(header..woven.disposals.len(), 1u8..), |(at, change)| {
        let mut rows = woven.disposals[header..].to_vec();
        rows[at - header] ^= change;
        let rows = <[Disposal]>::ref_from_bytes(&rows).expect("whole rows");
        let sealed = Disposals::sealed(woven.header.module, woven.header.plan.get(), rows);
        let changed = [&sealed, rows.as_bytes()].concat();
        let changed = Files {
            disposals: &changed,
            ..files(&woven)
        };
        prop_assert!(program.check_files(&changed).is_err(), "byte {at:#x}");
        Ok(())
    });
    outcome.expect("every change is noticed");
}

/// What was woven, as it was woven.
fn files(woven: &Woven) -> Files<'_> {
    Files {
        image: &woven.image,
        plan: &woven.plan,
        disposals: &woven.disposals,
        is_gone: &|_| false,
    }
}

#[test]
fn an_image_with_another_plan_is_noticed() {
    let program = small_program();
    let [block, edge] = [tomo_wire::plan::Level::Block, tomo_wire::plan::Level::Edge]
        .map(|level| program.weave(&Options::of(level)));
    let mixed = Files {
        plan: &edge.plan,
        ..files(&block)
    };
    assert!(program.check_files(&mixed).is_err());
    let mixed = Files {
        disposals: &edge.disposals,
        ..files(&block)
    };
    assert!(program.check_files(&mixed).is_err());
}

#[test]
fn trampolines_on_the_module_or_out_of_reach_are_refused() {
    let program = small_program();
    let fitting = program.weave(&Options::of(tomo_wire::plan::Level::Block));
    let module = fitting.header.module;
    for distance in [0, 4096, 1 << 31, -(1 << 31), -(1 << 28) - 1] {
        let options = Options {
            distance: Some(distance),
            traps: true,
            ..Options::of(tomo_wire::plan::Level::Block)
        };
        let (binary, bytes) = (program.binary(), &program.bytes);
        let woven = tomo_weave::weave(&binary, bytes, &program.model, module, STAMP, &options);
        assert!(woven.is_err(), "{distance:#x}");
    }
}

#[test]
fn the_header_is_what_the_file_says() {
    let woven = small_program().weave(&Options::of(tomo_wire::plan::Level::Block));
    let length = woven.image.len() as u64;
    let read = Image::read(&woven.image, length).expect("an image");
    assert_eq!(read.as_bytes(), woven.header.as_bytes());
    assert_eq!(read.relocations.get() % tomo_wire::PAGE, 0);
}
