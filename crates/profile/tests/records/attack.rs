//! Files that are not what they should be: each is refused with a reason, at the door.

use crate::sample::{hits, module, plan, record, with_live};
use tomo_profile::records::{RecordError, read_plan, read_record};
use tomo_wire::record::{MARKS, Record};
use tomo_wire::{ModuleId, Refusal};

#[test]
fn a_record_and_its_plan_are_read() {
    let sighting = read_record(&record([true, false, true])).expect("sound");
    assert_eq!(sighting.marks.hits, hits(&[true, false, true]));
    assert_eq!((sighting.module, sighting.kind.cut), (module(), false));
    let (_, bytes) = plan();
    let read = read_plan(&bytes, &sighting).expect("its plan");
    assert_eq!(read.units.len(), 4);
}

/// Nothing but the whole is a record: of the pages of marks, too, each byte belongs to it.
#[test]
fn a_record_cut_at_any_byte_is_refused() {
    let bytes = record([true, true, true]);
    for end in 0..bytes.len() {
        let refused = read_record(&bytes[..end]).expect_err("cut");
        let is_cut = matches!(refused, RecordError::Record(Refusal::CutShort { .. }));
        let is_foreign = refused == RecordError::Record(Refusal::Foreign);
        assert!(
            is_cut || (is_foreign && end < 64),
            "cut at {end}: {refused}"
        );
    }
}

#[test]
fn a_plan_cut_at_any_byte_is_refused() {
    let sighting = read_record(&record([false; 3])).expect("sound");
    let (_, bytes) = plan();
    for end in 0..bytes.len() {
        let refused = read_plan(&bytes[..end], &sighting).expect_err("cut");
        assert!(matches!(refused, RecordError::Plan(_)), "cut at {end}");
    }
}

/// Each bit of the header counts; what changes while processes run, and marks, may be anything.
#[test]
fn a_header_with_any_bit_changed_is_refused() {
    let bytes = record([false; 3]);
    for bit in 0..size_of::<Record>() * 8 {
        let mut bytes = bytes.clone();
        bytes[bit / 8] ^= 1 << (bit % 8);
        assert!(read_record(&bytes).is_err(), "bit {bit}");
    }
    let (_, bytes) = plan();
    let sighting = read_record(&record([false; 3])).expect("sound");
    for bit in 0..bytes.len() * 8 {
        let mut bytes = bytes.clone();
        bytes[bit / 8] ^= 1 << (bit % 8);
        assert!(read_plan(&bytes, &sighting).is_err(), "bit {bit}");
    }
}

#[test]
fn any_mark_but_zero_is_a_hit() {
    let mut bytes = record([false; 3]);
    bytes[MARKS as usize + 1] = 0x80;
    let sighting = read_record(&bytes).expect("sound");
    assert_eq!(sighting.marks.hits, hits(&[false, true, false]));
}

#[test]
fn records_and_plans_that_do_not_belong_together() {
    let (plan_header, bytes) = plan();
    let sealed = |record: Record| {
        let mut file = vec![0; record.length() as usize];
        file[..size_of::<Record>()].copy_from_slice(&record.sealed());
        file
    };
    let refusal = |record: Record| {
        let sighting = read_record(&sealed(record)).expect("a sound record");
        read_plan(&bytes, &sighting).expect_err("of another plan")
    };
    let name = plan_header.name();
    let other = ModuleId::by_build_id(&[9], 99).expect("an id");
    let record = |module, name, probes| Record::of(module, name, probes, [0; 16], 0);
    assert_eq!(
        refusal(record(module(), name ^ 1, 3)),
        RecordError::OtherPlan
    );
    assert_eq!(refusal(record(other, name, 3)), RecordError::Contradiction);
    assert_eq!(
        refusal(record(module(), name, 4)),
        RecordError::Contradiction
    );
}

#[test]
fn runs_that_a_signal_ended_are_told_apart() {
    let ended = |outcome: u32| {
        let bytes = with_live(record([true; 3]), |live| live.outcome = outcome.into());
        read_record(&bytes).expect("sound").kind.cut
    };
    assert_eq!([0, 1, 2, 3].map(ended), [false, false, true, false]);
}
