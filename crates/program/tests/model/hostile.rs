//! Damaged and forged model files.

use proptest::prelude::*;
use tomo_program::{Model, ModelError};

use crate::model_check::{SECTIONS, TABLE, check, outcome, place, seal};
use crate::{arbitrary, sample};

fn sample_bytes() -> Vec<u8> {
    Model::build(sample::functions(), sample::facts())
        .as_bytes()
        .to_vec()
}

#[test]
fn the_sample_is_sound_and_sealing_changes_nothing() {
    let bytes = sample_bytes();
    let mut sealed = bytes.clone();
    assert!(seal(&mut sealed));
    assert!(sealed == bytes, "the checker computes the same checksums");
    outcome(bytes).expect("sound");
}

#[test]
fn a_model_cut_short_is_refused() {
    let bytes = sample_bytes();
    for end in 0..bytes.len() {
        assert!(
            outcome(bytes[..end].to_vec()).is_err(),
            "cut after {end} bytes"
        );
        check(&bytes[..end]);
    }
    assert!(
        outcome([&bytes[..], b"\0"].concat()).is_err(),
        "one byte more"
    );
}

#[test]
fn a_model_with_any_byte_changed_is_refused() {
    let bytes = sample_bytes();
    for at in 0..bytes.len() {
        let mut changed = bytes.clone();
        changed[at] ^= 1 << (at % 8);
        assert!(outcome(changed).is_err(), "byte {at} changed");
    }
}

/// Whoever can compute checksums can lie, but not break anything.
#[test]
fn any_changed_byte_with_right_checksums_is_harmless() {
    let bytes = sample_bytes();
    for at in 0..bytes.len() {
        for value in [0, 1, 0x7f, 0xff] {
            let mut changed = bytes.clone();
            changed[at] = value;
            check(&changed);
        }
    }
}

/// All bits of each section set, and all clear.
#[test]
fn whole_sections_of_nonsense_are_harmless() {
    let bytes = sample_bytes();
    let sections = (0..SECTIONS).filter_map(|section| place(&bytes, section));
    let sections: Vec<_> = sections.filter(|place| !place.is_empty()).collect();
    assert!(
        sections.len() >= 14,
        "the sample has something in nearly every section"
    );
    for place in sections {
        for value in [0, 0xff] {
            let mut changed = bytes.clone();
            changed[place.clone()].fill(value);
            check(&changed);
        }
    }
}

#[test]
fn other_versions_are_refused_as_such() {
    for field in [8, 12] {
        let mut bytes = sample_bytes();
        bytes[field] = 99;
        seal(&mut bytes);
        let error = outcome(bytes).expect_err("another version");
        assert!(matches!(error, ModelError::Version { .. }), "{error}");
        assert!(error.to_string().contains("99"), "{error}");
    }
    assert!(matches!(
        outcome(b"\x7fELF".to_vec()),
        Err(ModelError::NoModel)
    ));
    assert!(matches!(outcome(Vec::new()), Err(ModelError::NoModel)));
}

/// Sections by their place in the header, and where fields lie in their records.
const FUNCTIONS: usize = 3;
const BLOCKS: usize = 8;
const FIRST_BLOCK: usize = 8 + 8 + 4;
const FIRST_EDGE: usize = 8 + 4 + 4;

/// Lists that overlap would make a walk longer than the file.
#[test]
fn lists_that_overlap_are_refused() {
    for (section, field) in [(FUNCTIONS, FIRST_BLOCK), (BLOCKS, FIRST_EDGE)] {
        let mut bytes = sample_bytes();
        let at = place(&bytes, section).expect("inside").start + field;
        bytes[at] = 200;
        seal(&mut bytes);
        let error = outcome(bytes).expect_err("the second list starts before the first");
        assert!(matches!(error, ModelError::Malformed { .. }), "{error}");
    }
}

#[test]
fn sections_that_reach_over_the_end_are_refused() {
    let mut bytes = sample_bytes();
    let last = bytes.len();
    let ends = |section: &usize| place(&bytes, *section).is_some_and(|place| place.end == last);
    let section = (0..SECTIONS).rfind(ends).expect("something lies last");
    bytes[TABLE + section * 24 + 8] += 1;
    seal(&mut bytes);
    let error = outcome(bytes).expect_err("one byte too long");
    assert!(error.to_string().contains("outside the file"), "{error}");
}

/// Opening looks at header and summary only; the rest is refused when it is wanted.
#[test]
fn damage_beyond_the_summary_shows_when_it_matters() {
    let mut bytes = sample_bytes();
    *bytes.last_mut().expect("bytes") ^= 1;
    let model = Model::from_bytes(bytes).expect("header and summary are sound");
    assert_eq!(model.summary().functions, 3);
    assert!(matches!(
        model.graphs().map(|_| ()),
        Err(ModelError::Checksum { .. })
    ));
    assert!(
        matches!(model.graphs().map(|_| ()), Err(ModelError::Checksum { .. })),
        "and again"
    );
}

proptest! {
    #[test]
    fn random_changes_with_right_checksums_are_harmless(
        functions in arbitrary::program(),
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..30),
    ) {
        let mut bytes = Model::build(functions, sample::facts()).as_bytes().to_vec();
        for (at, value) in changes {
            let at = at.index(bytes.len());
            bytes[at] = value;
        }
        check(&bytes);
    }

    #[test]
    fn random_bytes_are_no_model(bytes in proptest::collection::vec(any::<u8>(), 0..2000)) {
        prop_assert!(outcome(bytes.clone()).is_err());
        let forged = [b"TOMOMODL\x01\0\0\0\x01\0\0\0", &bytes[..]].concat();
        check(&forged);
    }
}
