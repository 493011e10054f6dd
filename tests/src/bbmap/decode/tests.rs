//! Records made by hand from LLVM's documentation, each version with what it alone has.

use proptest::prelude::*;

use super::*;

/// Version 2 with successors, as clang 19 writes it: two blocks, a gap of 3 bytes between them.
const V2: &[u8] = &[
    2, 0x04, // version, features: branch probability
    0x00, 0x10, 0, 0, 0, 0, 0, 0, // base address 0x1000
    2, // blocks
    0, 0, 0x05, 0x08, // id 0, offset 0, size 5, can fall through
    7, 3, 0x81, 0x01, 0x01, // id 7, offset 3, size 129, returns
    1, 7, 0x80, 0x80, 0x80, 0x80, 0x08, // block 0: one successor, 7, probability 1 (2^31)
    0,    // block 7: none
];

/// Version 3 with call ends: the block's size is what follows the last of them.
const V3: &[u8] = &[
    3, 0x24, // branch probability, call ends
    0x00, 0x20, 0, 0, 0, 0, 0, 0, 1, // base 0x2000, one block
    0, 0, 2, 0x0a, 0x05, 0x01,
    0x02, // id, offset, 2 calls ending at +10 and +15, 1 more byte, tail call
    0,    // no successors
];

/// Version 4 with everything before post-link data: count, frequency, ranges, hash.
const V4: &[u8] = &[
    4, 0x4f, // entry count, frequency, branch probability, ranges, hash
    2,    // ranges
    0x00, 0x30, 0, 0, 0, 0, 0, 0, 1, // range at 0x3000, one block
    0, 0, 4, 0x08, 1, 2, 3, 4, 5, 6, 7, 8, // id 0, offset 0, size 4, falls through, hash
    0x00, 0x50, 0, 0, 0, 0, 0, 0, 1, // range at 0x5000, one block
    1, 0, 6, 0x14, 8, 7, 6, 5, 4, 3, 2,
    1, // id 1, size 6, landing pad and indirect branch, hash
    0xc8, 0x01, // entry count 200
    9, 1, 1, 5, // block 0: frequency 9, one successor: 1, probability 5
    3, 0, // block 1: frequency 3, none
];

/// Version 5: wide features, post-link frequencies.
const V5: &[u8] = &[
    5, 0x84, 0x00, // branch probability, post-link
    0x00, 0x60, 0, 0, 0, 0, 0, 0, 2, // base 0x6000, two blocks
    0, 0, 4, 0, // id 0, offset 0, size 4, nothing said
    1, 0, 0, 0, // id 1, offset 0, no bytes
    0x64, 1, 1, 5,
    6, // block 0: post-link frequency 100, successor 1, probability 5, post-link 6
    0, 0, // block 1
];

fn one(section: &[u8]) -> MapFunction {
    let mut functions = decode(section).expect("well-formed");
    assert_eq!(functions.len(), 1);
    functions.remove(0)
}

fn extents(function: &MapFunction) -> Vec<(u32, u64, u32, Vec<u32>)> {
    let blocks = function.blocks.iter();
    blocks
        .map(|block| (block.id, block.start, block.size, block.successors.clone()))
        .collect()
}

#[test]
fn version_2() {
    let function = one(V2);
    assert_eq!(function.entry, 0x1000);
    assert_eq!(
        extents(&function),
        [(0, 0x1000, 5, vec![7]), (7, 0x1008, 129, vec![])]
    );
    assert!(function.blocks[0].metadata.can_fall_through());
    assert!(function.blocks[1].metadata.has_return());
    assert!(!function.blocks[1].metadata.has_tail_call());
}

#[test]
fn version_3_has_call_ends() {
    let function = one(V3);
    assert_eq!(extents(&function), [(0, 0x2000, 16, vec![])]);
    assert_eq!(function.blocks[0].call_ends, [0x200a, 0x200f]);
    assert!(function.blocks[0].metadata.has_tail_call());
}

#[test]
fn version_4_has_ranges_and_hashes() {
    let function = one(V4);
    assert_eq!(function.entry, 0x3000);
    assert_eq!(
        extents(&function),
        [(0, 0x3000, 4, vec![1]), (1, 0x5000, 6, vec![])]
    );
    let pad = function.blocks[1].metadata;
    assert!(pad.is_landing_pad() && pad.has_indirect_branch() && !pad.can_fall_through());
}

#[test]
fn version_5_has_wide_features_and_post_link_data() {
    assert_eq!(
        extents(&one(V5)),
        [(0, 0x6000, 4, vec![1]), (1, 0x6004, 0, vec![])]
    );
}

#[test]
fn records_follow_each_other() {
    let functions = decode(&[V2, V3, V4, V5, V2].concat()).expect("well-formed");
    let entries: Vec<u64> = functions.iter().map(|function| function.entry).collect();
    assert_eq!(entries, [0x1000, 0x2000, 0x3000, 0x6000, 0x1000]);
    assert_eq!(decode(&[]), Ok(vec![]));
}

#[test]
fn cut_anywhere_it_is_truncated_there() {
    for record in [V2, V3, V4, V5] {
        for length in 1..record.len() {
            let error = decode(&record[..length]).expect_err("cut");
            assert_eq!(error.what, Fault::Truncated, "{length} of {record:x?}");
            assert!(error.offset <= length);
        }
    }
}

/// One byte of a good record replaced, and what must be said of it.
fn spoiled(record: &[u8], at: usize, byte: u8) -> DecodeError {
    let mut bytes = [V2, record].concat();
    bytes[V2.len() + at] = byte;
    let mut error = decode(&bytes).expect_err("spoiled");
    error.offset -= V2.len();
    error
}

#[test]
fn faults_are_named_with_their_offsets() {
    let cases = [
        (V2, 0, 1, 0, Fault::Version(1)),
        (V2, 0, 6, 0, Fault::Version(6)),
        (V2, 1, 0x00, 1, Fault::NoSuccessors),
        (V2, 1, 0x14, 1, Fault::BlocksOmitted),
        (V2, 1, 0x24, 1, Fault::Features(0x24)),
        (V3, 1, 0x64, 1, Fault::Features(0x64)),
        (V4, 1, 0xcf, 1, Fault::Features(0xcf)),
        (V5, 2, 0x01, 1, Fault::Features(0x184)),
        (V4, 2, 0, 2, Fault::NoRanges),
        (V2, 14, 0x28, 14, Fault::Metadata(0x28)),
        (V2, 15, 0, 2, Fault::DuplicateId(0)),
        (V2, 21, 9, 2, Fault::UnknownSuccessor(9)),
        (V2, 26, 0x18, 22, Fault::TooLarge),
    ];
    for (record, at, byte, offset, what) in cases {
        assert_eq!(spoiled(record, at, byte), DecodeError { offset, what });
    }
}

#[test]
fn a_block_cannot_leave_the_address_space() {
    let mut bytes = V2.to_vec();
    bytes[2..10].copy_from_slice(&(u64::MAX - 4).to_le_bytes());
    assert_eq!(
        decode(&bytes).expect_err("overflow").what,
        Fault::AddressOverflow
    );
}

#[test]
fn an_endless_number_is_too_large() {
    let mut bytes = V2[..10].to_vec();
    bytes.extend([0xff; 12]);
    assert_eq!(
        decode(&bytes).expect_err("endless"),
        DecodeError {
            offset: 10,
            what: Fault::TooLarge
        }
    );
}

proptest! {
    #[test]
    fn nothing_makes_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = decode(&bytes);
    }

    #[test]
    fn a_spoiled_byte_does_not_make_it_panic(at in 0..V4.len(), byte: u8) {
        let mut bytes = V4.to_vec();
        bytes[at] = byte;
        if let Err(error) = decode(&bytes) {
            prop_assert!(error.offset <= bytes.len());
        }
    }
}
