//! Files that are no programs, are cut off, or lie: one clear error or warnings, never a panic.

use std::fs;
use std::sync::LazyLock;

use crate::build::Workshop;
use crate::{build, check};
use proptest::prelude::*;
use tomo_program::elf::{Binary, ElfError};
use tomo_program::{Address, unwind};

/// Exceptions, imports, relocations and names, all in few bytes.
const SOURCE: &str = r#"
struct Guard { ~Guard(); };
extern "C" int step(int);
static int one() { return 1; }
int (*table[])() = { one, one };
extern "C" int run(int n) {
    Guard guard;
    try { return step(n) + table[n & 1](); } catch (int caught) { return caught; }
}
"#;

/// A shared object of some 14 KiB.
static SMALL: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let flags = [
        "-shared",
        "-fPIC",
        "-nostdlib",
        "-O1",
        "-Wl,-z,noseparate-code",
        "-g0",
    ];
    let workshop = Workshop::new();
    let path = workshop.build("g++", &flags, "small.cc", SOURCE, "small.so");
    fs::read(path).expect("built above")
});

fn small() -> Vec<u8> {
    SMALL.clone()
}

fn error(data: &[u8]) -> String {
    Binary::parse(data)
        .expect_err("this is no program")
        .to_string()
}

/// The small program with some of its bytes replaced.
fn with(offset: usize, bytes: &[u8]) -> Vec<u8> {
    let mut data = small();
    data[offset..offset + bytes.len()].copy_from_slice(bytes);
    data
}

fn number(data: &[u8], offset: usize) -> usize {
    let bytes = data[offset..].first_chunk().expect("inside the file");
    usize::try_from(u64::from_le_bytes(*bytes)).expect("a small number")
}

/// File offset of the program header of that type.
fn program_header(data: &[u8], kind: u32) -> usize {
    let (start, count) = (number(data, 0x20), usize::from(data[0x38]));
    let mut offsets = (0..count).map(|index| start + 56 * index);
    let found = offsets.find(|&offset| data[offset..].starts_with(&kind.to_le_bytes()));
    found.expect("the program has such a header")
}

/// File offset of the section header of that type.
fn section_header(data: &[u8], kind: u32) -> usize {
    let (start, count) = (number(data, 0x28), usize::from(data[0x3c]));
    let mut offsets = (0..count).map(|index| start + 64 * index);
    let found = offsets.find(|&offset| data[offset + 4..].starts_with(&kind.to_le_bytes()));
    found.expect("the program has such a section")
}

#[test]
fn what_is_no_program_is_named() {
    assert_eq!(error(b""), "the file is empty");
    assert_eq!(
        error(b"hello"),
        "not an ELF file: it starts with 68 65 6c 6c, not with 7f 45 4c 46 (ELFMAG)"
    );
    assert!(error(b"#!/bin/sh\n").contains("script"));
    assert!(error(b"!<arch>\n").contains("static library"));
    assert!(error(&with(4, &[1])).contains("32-bit"));
    assert!(error(&with(4, &[9])).contains("EI_CLASS at offset 0x4 is 0x9"));
    assert!(error(&with(5, &[2])).contains("big-endian"));
    assert!(error(&with(0x12, &[183, 0])).contains("64-bit ARM (EM_AARCH64)"));
    assert!(error(&with(0x10, &[1, 0])).contains("relocatable object (ET_REL)"));
    assert!(error(&with(0x10, &[4, 0])).contains("core dump (ET_CORE)"));
    assert!(error(&with(0x36, &[1, 0])).contains("e_phentsize"));
    assert!(error(&with(0x38, &[0, 0])).contains("no program headers"));
}

#[test]
fn what_is_cut_off_says_where() {
    let data = small();
    assert_eq!(
        error(&data[..16]),
        "truncated: the ELF header at offset 0x0 needs 0x40 bytes, the file ends at 0x10"
    );
    assert!(error(&data[..100]).starts_with("truncated: the program header table"));
    let last = error(&data[..data.len() - 1]);
    assert!(
        last.starts_with("truncated: the section header table"),
        "{last}"
    );
    let far = with(0x20, &u64::MAX.to_le_bytes());
    assert!(matches!(
        Binary::parse(&far),
        Err(ElfError::Truncated {
            offset: u64::MAX,
            ..
        })
    ));
}

#[test]
fn every_prefix_is_an_error() {
    let data = small();
    for end in 0..data.len() {
        let prefix = &data[..end];
        assert!(Binary::parse(prefix).is_err(), "the first {end:#x} bytes");
        check::elf(prefix);
    }
    check::promises(&Binary::parse(&data).expect("the whole is a program"));
}

#[test]
fn every_prefix_without_section_headers_is_an_error_or_whole() {
    let mut data = with(0x28, &[0; 8]);
    data[0x3c..0x40].fill(0);
    let header = program_header(&data, 1);
    let mut segments = 0;
    for index in 0..usize::from(data[0x38]) {
        let at = number(&data, 0x20) + 56 * index;
        if data[at..].starts_with(&1u32.to_le_bytes()) {
            segments = segments.max(number(&data, at + 8) + number(&data, at + 32));
        }
    }
    assert!(header > 0 && segments < data.len());
    for end in 0..data.len() {
        let whole = Binary::parse(&data[..end]).is_ok();
        assert_eq!(whole, end >= segments, "the first {end:#x} bytes");
        check::unwind(&data[..end]);
    }
}

#[test]
fn unwind_tables_need_neither_section_headers_nor_a_terminator() {
    let data = small();
    let mut bare_data = with(0x28, &[0; 8]);
    bare_data[0x3c..0x40].fill(0);
    let whole = Binary::parse(&data).expect("a program");
    let bare = Binary::parse(&bare_data).expect("a program without section headers");
    let found = unwind::read(&bare);
    assert_eq!(found.functions, unwind::read(&whole).functions);
    assert_eq!(found.warnings, []);
    assert!(found.functions.len() >= 2);
}

#[test]
fn a_relocation_of_a_symbol_that_is_none_costs_only_itself() {
    let data = small();
    let whole = Binary::parse(&data).expect("a program");
    let at = number(&data, section_header(&data, 4) + 0x18); // sh_offset of SHT_RELA
    let mut entries = (0..64).map(|index| at + 24 * index);
    let slot = |entry| Address(number(&data, entry) as u64);
    let symbolic = entries.find(|&entry| whole.import_in_slot(slot(entry)).is_some());
    let symbolic = symbolic.expect("a relocation against an import");
    let mut broken_data = with(symbolic + 12, &[0xff, 0xff, 0xff, 0]);
    for sections in [true, false] {
        if !sections {
            broken_data[0x28..0x30].fill(0);
            broken_data[0x3c..0x40].fill(0);
        }
        let broken = Binary::parse(&broken_data).expect("still a program");
        assert_eq!(broken.imports(), whole.imports());
        assert!(
            broken
                .warnings()
                .iter()
                .any(|warning| warning.what.contains("1 relocation"))
        );
        assert_eq!(broken.import_in_slot(slot(symbolic)), None);
    }
}

#[test]
fn nothing_to_execute_is_an_error() {
    let mut data = with(0x28, &[0; 8]);
    data[0x3c..0x40].fill(0);
    for index in 0..usize::from(data[0x38]) {
        let flags = number(&data, 0x20) + 56 * index + 4;
        data[flags] &= !1; // PF_X
    }
    assert!(error(&data).starts_with("no executable code"));
}

#[test]
fn a_separate_debug_file_is_named() {
    let workshop = Workshop::new();
    let flags = ["-shared", "-fPIC", "-nostdlib", "-g"];
    let path = workshop.build("g++", &flags, "small.cc", SOURCE, "small.so");
    let debug = workshop.path("small.debug");
    let (from, to) = (
        path.to_str().expect("UTF-8"),
        debug.to_str().expect("UTF-8"),
    );
    build::run("objcopy", &["--only-keep-debug", from, to]);
    assert!(error(&fs::read(debug).expect("made above")).contains("separate debug file"));
}

#[test]
fn a_section_outside_the_file_is_an_error_that_says_where() {
    let data = small();
    for kind in [2, 3, 4, 11] {
        let header = section_header(&data, kind); // SHT_SYMTAB, STRTAB, RELA, DYNSYM
        let said = error(&with(header + 0x18, &[0xf0; 8])); // sh_offset
        assert!(said.starts_with("truncated: section "), "{said}");
        assert!(
            said.contains("at offset 0xf0f0f0f0f0f0f0f0 needs"),
            "{said}"
        );
        let said = error(&with(header + 0x20, &[0xf0; 8])); // sh_size
        assert!(said.contains("needs 0xf0f0f0f0f0f0f0f0 bytes"), "{said}");
    }
}

#[test]
fn overlapping_code_sections_are_split_with_a_warning() {
    let data = small();
    let whole = Binary::parse(&data).expect("a program");
    let text = whole.section(".text").expect("it has code");
    let at = (0..usize::from(data[0x3c])).map(|index| number(&data, 0x28) + 64 * index);
    let header = at
        .clone()
        .find(|&at| number(&data, at + 0x10) as u64 == text.address.0);
    let header = header.expect(".text has a header");
    // .text starts 16 bytes earlier, in what comes before it.
    let mut broken = data.clone();
    for field in [0x10, 0x18] {
        let value = number(&data, header + field) as u64 - 16;
        broken[header + field..header + field + 8].copy_from_slice(&value.to_le_bytes());
    }
    let broken = Binary::parse(&broken).expect("still a program");
    check::promises(&broken);
    assert!(
        broken
            .warnings()
            .iter()
            .any(|warning| warning.what.contains("overlaps"))
    );
}

#[test]
fn a_broken_unwind_entry_costs_only_itself() {
    let data = small();
    let whole = Binary::parse(&data).expect("a program");
    let table = whole.section(".eh_frame").expect("it has unwind tables");
    let expected = unwind::read(&whole);
    // The augmentation length of the last entry leads out of it.
    let offset = usize::try_from(table.file_offset).expect("inside the file");
    let mut at = 0;
    let mut last = 0;
    while at + 4 <= table.data.len() {
        let length = u32::from_le_bytes(*table.data[at..].first_chunk().expect("four bytes"));
        if length == 0 {
            break;
        }
        last = at;
        at += 4 + length as usize;
    }
    let broken = with(offset + last + 16, &[0x7f]);
    let broken = Binary::parse(&broken).expect("still a program");
    let found = unwind::read(&broken);
    check::unwind_promises(&broken, &found);
    assert_eq!(found.functions.len() + 1, expected.functions.len());
    assert!(
        found.warnings[0].to_string().starts_with(".eh_frame+0x"),
        "{:?}",
        found.warnings
    );
}

#[test]
fn a_broken_exception_table_costs_only_itself() {
    let data = small();
    let whole = Binary::parse(&data).expect("a program");
    let expected = unwind::read(&whole);
    let table = whole
        .section(".gcc_except_table")
        .expect("it has exceptions");
    let offset = usize::try_from(table.file_offset).expect("inside the file");
    let broken = with(offset, &[0x3f]);
    let broken = Binary::parse(&broken).expect("still a program");
    let found = unwind::read(&broken);
    assert_eq!(found.functions.len(), expected.functions.len());
    let count = |unwind: &unwind::Unwind, kind| {
        unwind
            .functions
            .iter()
            .filter(|entry| entry.exceptions == kind)
            .count()
    };
    assert_eq!(count(&expected, unwind::ExceptionTable::Broken), 0);
    assert_eq!(count(&found, unwind::ExceptionTable::Broken), 1);
    assert!(
        found.warnings[0]
            .to_string()
            .starts_with(".gcc_except_table: 1 function")
    );
}

#[test]
fn bytes_may_lie_at_any_alignment() {
    let data = small();
    let expected = Binary::parse(&data).expect("a program");
    for shift in 1..8 {
        let mut shifted = vec![0; shift];
        shifted.extend_from_slice(&data);
        let binary = Binary::parse(&shifted[shift..]).expect("the same program");
        assert_eq!(binary.symbols(), expected.symbols());
        assert_eq!(binary.code_at(Address(0)), expected.code_at(Address(0)));
    }
}

#[test]
fn tables_that_refer_to_each_other_end() {
    // All of the file as one table: each of its parts then refers to some other part.
    let data = small();
    // SHT_SYMTAB, SHT_STRTAB, SHT_RELA, SHT_DYNAMIC, SHT_DYNSYM, SHT_GNU_HASH.
    for kind in [2, 3, 4, 6, 11, 0x6fff_fff6] {
        let header = section_header(&data, kind);
        let mut broken = data.clone();
        broken[header + 0x18..header + 0x20].fill(0);
        broken[header + 0x20..header + 0x28].copy_from_slice(&(data.len() as u64).to_le_bytes());
        check::elf(&broken);
        check::unwind(&broken);
    }
}

#[test]
fn every_byte_of_the_headers_may_be_anything() {
    let data = small();
    let program_headers = number(&data, 0x20);
    for offset in (0..64).chain(program_headers..program_headers + 56 * usize::from(data[0x38])) {
        for value in [0x00, 0x01, 0x7f, 0x80, 0xff] {
            let mut broken = data.clone();
            broken[offset] = value;
            check::elf(&broken);
            check::unwind(&broken);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(8192) })]

    #[test]
    fn one_byte_may_be_anything(offset in any::<prop::sample::Index>(), value: u8) {
        let mut data = small();
        let offset = offset.index(data.len());
        data[offset] = value;
        check::elf(&data);
        check::unwind(&data);
    }

    #[test]
    fn one_word_may_be_anything(offset in any::<prop::sample::Index>(), value: u64, small_value: u8, large: bool) {
        let mut data = small();
        let offset = offset.index(data.len() - 8);
        let value = if large { value } else { small_value.into() };
        data[offset..offset + 8].copy_from_slice(&value.to_le_bytes());
        check::elf(&data);
        check::unwind(&data);
    }
}
