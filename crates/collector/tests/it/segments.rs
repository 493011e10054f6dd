//! Segments: read as they were written; cut or changed anywhere, what is whole is used and nothing else.

#[path = "segments/check.rs"]
mod check;

use proptest::prelude::*;
use tomo_collector::segment::{Damage, Entry, Writer, read};
use tomo_collector::state::State;
use tomo_protocol::{CampaignId, InstanceId, Name};

use crate::fleet::Word;

const ID: CampaignId = CampaignId([3; 16]);

/// A segment of three reports and an assignment.
fn sample() -> Vec<u8> {
    let mut writer = Writer::new(ID);
    for run in 1..=3 {
        let report = Word::of(1, run, &[run as u32, 40]).report_for(ID, Name(5));
        writer.report(&report, run as i64);
    }
    writer.assignment(InstanceId([1; 16]), 7, -1);
    writer.finish()
}

/// A snapshot of all instances.
pub(crate) fn snapshot_of(campaign: CampaignId, state: &State) -> Vec<u8> {
    let mut writer = Writer::new(campaign);
    for (id, instance) in state.instances() {
        writer.instance(id, instance).expect("written");
    }
    writer.finish()
}

/// What the instances of a snapshot, joined to this state, come to.
pub(crate) fn read_into(mut state: State, campaign: CampaignId, snapshot: &[u8]) -> State {
    read(snapshot, campaign, |entry, _| {
        if let Entry::Instance(id, instance) = entry {
            state.join_instance(id, *instance);
        }
    })
    .expect("a whole snapshot");
    state
}

fn entries(bytes: &[u8]) -> (Vec<String>, Result<(), Damage>) {
    let mut entries = Vec::new();
    let outcome = read(bytes, ID, |entry, at| {
        entries.push(match entry {
            Entry::Report(report) => format!("{at} run {}", report.header.run),
            Entry::Assignment(instance, variant) => format!("{at} {instance} has {variant}"),
            Entry::Instance(instance, _) => format!("{at} {instance}"),
            Entry::Edition(edition) => format!("{at} edition {}", edition.number),
        });
    });
    (entries, outcome)
}

#[test]
fn a_segment_is_read_as_it_was_written() {
    let (entries, outcome) = entries(&sample());
    assert_eq!(outcome, Ok(()));
    let assigned = format!("-1 {} has 7", InstanceId([1; 16]));
    assert_eq!(entries, ["1 run 1", "2 run 2", "3 run 3", &assigned]);
}

#[test]
fn a_segment_cut_anywhere_gives_what_is_whole_and_says_so() {
    let whole = sample();
    let (all, _) = entries(&whole);
    for length in 0..whole.len() {
        let (some, outcome) = entries(&whole[..length]);
        assert!(outcome.is_err(), "{length}");
        assert_eq!(some, all[..some.len()], "{length}");
    }
}

#[test]
fn any_changed_byte_is_noticed() {
    let whole = sample();
    let (all, _) = entries(&whole);
    for at in (0..whole.len()).filter(|at| !(12..16).contains(at)) {
        let mut changed = whole.clone();
        changed[at] ^= 0x20;
        let (some, outcome) = entries(&changed);
        assert!(outcome.is_err(), "byte {at}");
        assert_eq!(some, all[..some.len()], "byte {at}");
    }
}

#[test]
fn a_segment_of_another_version_or_campaign_is_not_used() {
    let mut other = sample();
    other[8] = 9;
    assert_eq!(entries(&other).1, Err(Damage::Version(9)));
    let other = CampaignId([4; 16]);
    assert_eq!(read(&sample(), other, |_, _| {}), Err(Damage::Misplaced));
}

/// A frame with a right checksum whose state no collector would write: units that do not ascend.
#[test]
fn a_state_in_another_form_is_not_joined() {
    let data = [
        0xff, 0, 2, 0, 0, 0, 0xff, 10, 0, 0, 0x7a, 0, 0xef, 0, 0, 0x13, 0, 0, 0, 0, 0, 0, 2, 0x29,
        0x29, 0x29, 0xef, 0xfa, 0x25,
    ];
    check::check(&data);
}

proptest! {
    #[test]
    fn no_bytes_make_the_reader_panic(data in prop::collection::vec(any::<u8>(), 0..600)) {
        check::check(&data);
    }
}
