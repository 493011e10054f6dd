//! Images whose trampolines are put elsewhere.

use tomo_wire::image::Image;
use tomo_wire::relocations::encode;
use tomo_wire::{PAGE, Refusal};

use crate::{BELOW, samples};

/// What leads from the trampolines to the text becomes longer by as much as the other way becomes shorter; where a probe
/// was taken away the module's own bytes stay.
#[test]
fn an_image_is_relocated_where_it_leads_from_one_part_to_the_other() {
    let (header, file) = samples::image(3, 40, BELOW);
    let end = header.relocations.get() as usize;
    let table = header.relocations_in(&file[end..]).expect("a table");
    let to = BELOW - 0x1000;
    let relocated = |original: [u8; 4]| {
        let mut copy = file[..end].to_vec();
        let told = |address: u64| {
            assert_eq!(address, 16 * PAGE + samples::IN_TEXT);
            original
        };
        let header = header.relocate(table, &mut copy, to, told);
        (header.expect("within reach"), copy)
    };
    let field = |file: &[u8], at: u64| -> i32 {
        let bytes = file[at as usize..].first_chunk().expect("a field");
        i32::from_le_bytes(*bytes)
    };
    let in_trampolines = header.trampolines.get() + samples::IN_TRAMPOLINES;
    let in_text = header.regions[0].offset.get() + samples::IN_TEXT;
    let filled = i32::from_le_bytes([0xcc; 4]);
    let lead = BELOW as i32 + (samples::LEADS - samples::IN_TEXT) as i32 - 4;
    assert_eq!(field(&file, in_text), lead);

    let (other, copy) = relocated([0; 4]);
    assert_eq!(other.distance.get(), to);
    assert_eq!(field(&copy, in_trampolines), filled + 0x1000);
    assert_eq!(field(&copy, in_text), lead - 0x1000);
    let mut same = copy.clone();
    for at in [in_trampolines, in_text] {
        let at = at as usize;
        same[at..at + 4].copy_from_slice(&file[at..at + 4]);
    }
    assert_eq!(same, file[..end], "and nothing else changes");
    let sealed = other.sealed();
    assert!(
        Image::read(&sealed, end as u64).is_ok(),
        "the copy is an image"
    );

    let (_, copy) = relocated(lead.to_le_bytes());
    assert_eq!(field(&copy, in_text), lead);
}

/// It is neither the image's nor the module's, so nobody knows what it means.
#[test]
fn what_leads_nowhere_is_not_relocated() {
    let (header, file) = samples::image(3, 40, BELOW);
    let end = header.relocations.get() as usize;
    let table = header.relocations_in(&file[end..]).expect("a table");
    let in_text = (header.regions[0].offset.get() + samples::IN_TEXT) as usize;
    let lead = BELOW as i32 - samples::IN_TEXT as i32 - 4;
    for (lead, is_told) in [(lead, true), (lead - 1, false), (lead + PAGE as i32, false)] {
        let mut copy = file[..end].to_vec();
        copy[in_text..in_text + 4].copy_from_slice(&lead.to_le_bytes());
        let relocated = header.relocate(table, &mut copy, BELOW - 0x1000, |_| [0; 4]);
        assert_eq!(relocated.is_ok(), is_told, "{lead:#x}");
    }
}

#[test]
fn an_image_is_not_relocated_by_a_table_that_contradicts_it() {
    let (header, file) = samples::image(3, 40, BELOW);
    let end = header.relocations.get() as usize;
    let refused = |table: &[u8], distance: i64| {
        let mut copy = file[..end].to_vec();
        header
            .relocate(table, &mut copy, distance, |_| [0; 4])
            .err()
    };
    let table = header.relocations_in(&file[end..]).expect("a table");
    assert_eq!(refused(table, BELOW), None);
    for far in [-(1 << 31), 0, 1 << 40, BELOW + 1] {
        assert_eq!(refused(table, far), Some(Refusal::Inconsistent), "{far:#x}");
    }
    let at = |offset: u64| -> Vec<u8> { encode(offset).collect() };
    let trampolines = header.trampolines.get();
    for offset in [
        0,
        trampolines - 1,
        trampolines + PAGE - 3,
        end as u64 - 3,
        u64::MAX,
    ] {
        let refusal = refused(&at(offset), BELOW);
        assert_eq!(refusal, Some(Refusal::Inconsistent), "{offset:#x}");
    }
    assert_eq!(refused(&[0x80], BELOW), Some(Refusal::Inconsistent));
    let mut damaged = file.clone();
    damaged[end] ^= 1;
    assert_eq!(
        header.relocations_in(&damaged[end..]).err(),
        Some(Refusal::Damaged)
    );
}
