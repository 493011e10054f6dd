//! Broken debug sections: nothing may panic or run away, and what is broken costs itself.

use crate::build::{C, CPP, build};
use crate::check::{self, NAMES};
use proptest::prelude::*;
use std::borrow::Cow;
use std::collections::BTreeMap;
use tomo_program::dwarf::{DebugInfo, Lines, ResultKind, Sections, functions};

type Contents = BTreeMap<&'static str, Vec<u8>>;

/// The debug sections of a program, as bytes to break.
fn contents(bytes: &[u8]) -> Contents {
    use object::read::elf::{FileHeader, SectionHeader};
    let endian = object::LittleEndian;
    let header = object::elf::FileHeader64::<object::LittleEndian>::parse(bytes).expect("ELF");
    let sections = header.sections(endian, bytes).expect("section headers");
    let contents = |name: &'static str| {
        let (_, section) = sections.section_by_name(endian, name.as_bytes())?;
        Some((name, section.data(endian, bytes).ok()?.to_vec()))
    };
    NAMES.iter().filter_map(|&name| contents(name)).collect()
}

fn sections(contents: &Contents) -> Sections<'_> {
    Sections::load(|name| contents.get(name).map(|data| Cow::Borrowed(&data[..])))
}

fn read(contents: &Contents) -> (DebugInfo, Lines) {
    check::everything(&sections(contents))
}

fn programs() -> Vec<Contents> {
    let c = |flags: &[&str]| contents(&build("gcc", flags, &C).bytes());
    vec![
        c(&["-gdwarf-5", "-O2"]),
        c(&["-gdwarf-4", "-O2"]),
        c(&["-gdwarf-2", "-O1"]),
        contents(&build("clang-19", &["-gdwarf-5", "-O1"], &C).bytes()),
        contents(&build("g++", &["-g", "-O1"], &CPP[..]).bytes()),
    ]
}

#[test]
fn cut_off_at_any_byte() {
    let small = [(
        "small.c",
        "static int f(int x) { return x; } int main(void) { return f(3); }",
    )];
    let mut all = programs();
    for flags in [
        ["-gdwarf-5", "-O0"],
        ["-gdwarf-4", "-O0"],
        ["-gdwarf-2", "-O0"],
    ] {
        all.push(contents(&build("gcc", &flags, &small).bytes()));
    }
    for program in &all {
        for (name, data) in program {
            // At every byte of the small ones.
            let step = 1 + data.len() / 500;
            for length in (0..data.len()).step_by(step) {
                let mut broken = program.clone();
                broken.insert(name, data[..length].to_vec());
                read(&broken);
            }
        }
    }
}

/// A small generator (xorshift), so that a failure can be had again from its seed.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % bound.max(1) as u64) as usize
    }
}

#[test]
fn thousands_of_mutations() {
    let programs = programs();
    for seed in 1..=5000 {
        let mut random = Random(u64::wrapping_mul(seed, 0x9e37_79b9_7f4a_7c15));
        let mut broken = programs[random.below(programs.len())].clone();
        for _ in 0..=random.below(6) {
            let name = NAMES[random.below(NAMES.len())];
            let Some(data) = broken.get_mut(name).filter(|data| !data.is_empty()) else {
                continue;
            };
            let at = random.below(data.len());
            match random.below(4) {
                0 => data[at] ^= 1 << random.below(8),
                1 => data[at] = [0, 1, 0x7f, 0x80, 0xff][random.below(5)],
                2 => drop(data.drain(at..(at + random.below(9)).min(data.len()))),
                _ => {
                    let from = random.below(data.len());
                    let piece = data[from..(from + 8).min(data.len())].to_vec();
                    data.splice(at..at, piece);
                }
            }
        }
        read(&broken);
        check::some_frames(&sections(&broken));
    }
}

#[test]
fn a_broken_unit_costs_only_itself() {
    let whole = contents(&build("gcc", &["-gdwarf-5", "-O1", "-fno-inline"], &C).bytes());
    let (intact, _) = read(&whole);
    let mut broken = whole.clone();
    let info = broken.get_mut(".debug_info").expect("a section");
    // The second unit's root gets an abbreviation that does not exist.
    let second = 4 + u32::from_le_bytes(info[..4].try_into().expect("a length")) as usize;
    info[second + 12] = 0x7f;
    let (info, _) = read(&broken);
    let warnings: Vec<String> = info.warnings.iter().map(ToString::to_string).collect();
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    assert!(warnings[0].starts_with(&format!(".debug_info+{second:#x}: unit cannot be read")));
    let names = |info: &DebugInfo| -> Vec<_> {
        info.functions
            .iter()
            .filter_map(|it| it.name.clone())
            .collect()
    };
    assert!(names(&intact).contains(&"elsewhere".to_owned()));
    assert!(!names(&info).contains(&"elsewhere".to_owned()));
    for function in &info.functions {
        assert!(intact.functions.contains(function), "{function:?}");
    }
    assert!(
        info.functions
            .iter()
            .any(|it| it.name.as_deref() == Some("main"))
    );
}

/// A version 4 unit with the given entries, which use the abbreviations of [`abbreviations`].
fn unit(entries: &[u8]) -> Vec<u8> {
    let mut unit = vec![4, 0, 0, 0, 0, 0, 8];
    unit.extend_from_slice(entries);
    unit.push(0);
    let mut sized = (unit.len() as u32).to_le_bytes().to_vec();
    sized.extend(unit);
    sized
}

const HEADER: u32 = 11;

/// 1: the unit; 2: a function with an origin, an address and a size; 3: a function with a list of
/// ranges and a name; 4: a type that is another's name; 5: a function with that type; 6: a function
/// with a name, that may be said not to return; 7: one whose origin is in another file.
fn abbreviations() -> Vec<u8> {
    // Tag, whether it has children, pairs of attribute and form.
    let tables: [&[u8]; 8] = [
        &[1, 0x11, 1],
        &[2, 0x2e, 0, 0x31, 0x13, 0x11, 0x01, 0x12, 0x0b],
        &[3, 0x2e, 0, 0x55, 0x17, 0x03, 0x0e],
        &[4, 0x16, 0, 0x49, 0x13],
        &[5, 0x2e, 0, 0x49, 0x13, 0x11, 0x01, 0x12, 0x0b],
        &[
            6, 0x2e, 0, 0x03, 0x08, 0x87, 0x01, 0x0c, 0x27, 0x0c, 0x11, 0x01, 0x12, 0x0b,
        ],
        &[7, 0x2e, 0, 0x31, 0xa0, 0x3e, 0x11, 0x01, 0x12, 0x0b],
        &[],
    ];
    tables.join(&[0, 0][..])
}

fn with(info: Vec<u8>) -> Contents {
    BTreeMap::from([(".debug_info", info), (".debug_abbrev", abbreviations())])
}

fn function(abbreviation: u8, reference: u32, address: u64) -> Vec<u8> {
    let mut entry = vec![abbreviation];
    entry.extend(reference.to_le_bytes());
    entry.extend(address.to_le_bytes());
    entry.push(16);
    entry
}

#[test]
fn references_in_a_circle() {
    // Two functions that are each other's origin, one that is its own, and one of nowhere.
    let (first, second, third) = (HEADER + 1, HEADER + 1 + 14, HEADER + 1 + 28);
    let mut entries = vec![1];
    entries.extend(function(2, second, 0x1000));
    entries.extend(function(2, first, 0x2000));
    entries.extend(function(2, third, 0x3000));
    entries.extend(function(2, 0xffff_fff0, 0x4000));
    let (info, _) = read(&with(unit(&entries)));
    assert_eq!(info.functions.len(), 4);
    assert!(
        info.functions
            .iter()
            .all(|it| it.prototype == Default::default())
    );
}

fn named(name: &str, noreturn: bool, address: u64) -> Vec<u8> {
    let mut entry = vec![6];
    entry.extend(name.as_bytes());
    entry.extend([0, u8::from(noreturn), 1]);
    entry.extend(address.to_le_bytes());
    entry.push(16);
    entry
}

#[test]
fn what_is_said_twice_of_one_entry() {
    let mut entries = vec![1];
    entries.extend(named("same", false, 0x2000));
    entries.extend(named("same", true, 0x2000));
    entries.extend(named("folded", true, 0x1000));
    entries.extend(named("other", false, 0x1000));
    let (info, _) = read(&with(unit(&entries)));
    let said: Vec<_> = info
        .functions
        .iter()
        .map(|it| (it.entry.0, it.name.as_deref(), it.prototype.noreturn))
        .collect();
    // Of one function, what is promised anywhere; of two, what is promised of both.
    assert_eq!(
        said,
        [
            (0x1000, Some("folded"), false),
            (0x2000, Some("same"), true)
        ]
    );
}

#[test]
fn functions_thrown_away_by_the_linker() {
    let mut entries = vec![1];
    for gone in [0, u64::MAX, u64::MAX - 1] {
        entries.extend(named("gone", false, gone));
    }
    entries.extend(named("kept", false, 0x1000));
    let (info, _) = read(&with(unit(&entries)));
    assert_eq!(info.warnings, []);
    assert_eq!(info.functions.len(), 1);
    assert_eq!(info.functions[0].name.as_deref(), Some("kept"));
}

#[test]
fn an_origin_in_another_file_leaves_the_result_unknown() {
    let mut entries = vec![1];
    entries.extend(named("full", false, 0x1000));
    entries.extend(function(7, 0x1234, 0x2000));
    let (info, _) = read(&with(unit(&entries)));
    let results: Vec<_> = info
        .functions
        .iter()
        .map(|it| it.prototype.result)
        .collect();
    assert_eq!(results, [ResultKind::Void, ResultKind::Unknown]);
}

#[test]
fn types_in_a_circle() {
    let typedef = HEADER + 1;
    let mut entries = vec![1, 4];
    entries.extend(typedef.to_le_bytes());
    entries.extend(function(5, typedef, 0x1000));
    let (info, _) = read(&with(unit(&entries)));
    assert_eq!(info.functions.len(), 1);
    assert_eq!(info.functions[0].prototype, Default::default());
}

#[test]
fn many_functions_that_share_one_long_list_and_one_long_name() {
    let mut entries = vec![1];
    for _ in 0..50_000 {
        entries.extend([3, 0, 0, 0, 0, 0, 0, 0, 0]);
    }
    let mut contents = with(unit(&entries));
    let list: Vec<u8> = (1u64..100_000)
        .flat_map(|it| [it * 32, it * 32 + 16])
        .flat_map(u64::to_le_bytes)
        .collect();
    contents.insert(".debug_ranges", list);
    let mut name = vec![b'x'; 60_000];
    name.push(0);
    contents.insert(".debug_str", name);
    let (info, _) = read(&contents);
    let said: Vec<String> = info.warnings.iter().map(ToString::to_string).collect();
    assert!(
        said.iter()
            .any(|it| it.contains("too many range list entries")),
        "{said:?}"
    );
}

#[test]
fn one_byte_entries_with_endless_attributes() {
    let mut table = vec![1, 0x11, 1, 0, 0, 2, 0x2e, 0];
    // DW_AT_prototyped, DW_FORM_flag_present: no bytes.
    table.extend([0x27, 0x19].repeat(100_000));
    table.extend([0, 0, 0]);
    let mut entries = vec![1];
    entries.extend(vec![2; 100_000]);
    let mut contents = with(unit(&entries));
    contents.insert(".debug_abbrev", table);
    let (info, _) = read(&contents);
    assert!(
        info.warnings[0].to_string().contains("too many attributes"),
        "{:?}",
        info.warnings
    );
}

#[test]
fn many_units_with_overlapping_abbreviations() {
    // Each unit's table would run to the end of the section, if it did not end where another starts.
    let mut section = vec![1, 0x34, 0, 0, 0];
    let mut info = Vec::new();
    for code in 0..20_000u32 {
        let offset = section.len() as u32;
        section.extend([
            0x80 | (code & 0x7f) as u8,
            0x80 | (code >> 7 & 0x7f) as u8,
            1,
            0x34,
            0,
            0,
            0,
        ]);
        info.extend(9u32.to_le_bytes());
        info.extend([4, 0]);
        info.extend(offset.to_le_bytes());
        info.extend([8, 1, 0]);
    }
    let contents = BTreeMap::from([(".debug_info", info), (".debug_abbrev", section)]);
    let (info, _) = read(&contents);
    assert!(
        info.warnings[0].to_string().contains("cannot be read"),
        "{:?}",
        info.warnings
    );
}

/// A version 2 line program with the given instructions.
fn line_program(instructions: &[u8]) -> Vec<u8> {
    // Minimum length 1, statements, lines from -5 in 14 steps, opcodes from 10, one file "a".
    let tail = [
        1, 1, 0xfb, 14, 10, 0, 1, 1, 1, 1, 0, 0, 0, 1, 0, b'a', 0, 0, 0, 0, 0,
    ];
    let mut program = vec![2, 0];
    program.extend((tail.len() as u32).to_le_bytes());
    program.extend(tail);
    program.extend(instructions);
    let mut sized = (program.len() as u32).to_le_bytes().to_vec();
    sized.extend(program);
    sized
}

fn with_lines(instructions: &[u8]) -> Contents {
    let abbreviations = vec![1, 0x11, 0, 0x10, 0x17, 0, 0, 0];
    BTreeMap::from([
        (".debug_info", unit(&[1, 0, 0, 0, 0])),
        (".debug_abbrev", abbreviations),
        (".debug_line", line_program(instructions)),
    ])
}

fn set_address(address: u64) -> Vec<u8> {
    let mut instruction = vec![0, 9, 2];
    instruction.extend(address.to_le_bytes());
    instruction
}

#[test]
fn a_line_program_made_by_hand() {
    let mut program = set_address(0x1000);
    // Line 7 (copy), 16 bytes on; line 0, 16 bytes on; line 9 up to the end, 16 bytes on.
    program.extend([3, 6, 1, 2, 16, 3, 0x79, 1, 2, 16, 3, 9, 1, 2, 16, 0, 1, 1]);
    let (_, lines) = read(&with_lines(&program));
    assert_eq!(lines.warnings, []);
    assert_eq!(lines.files, ["a"]);
    let read: Vec<_> = lines
        .at
        .iter()
        .map(|it| it.map_or(0, |it| it.line))
        .take(8)
        .collect();
    assert_eq!(read, [7, 7, 0, 0, 9, 9, 0, 0]);
}

#[test]
fn line_numbers_and_addresses_that_overflow() {
    let minimum = [
        3, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x7f,
    ];
    let huge = [
        2, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01,
    ];
    let mut program = set_address(0x1000);
    for _ in 0..50 {
        program.extend(minimum);
        program.push(1);
        program.extend(huge);
        program.push(255);
    }
    program.extend([0, 1, 1]);
    read(&with_lines(&program));
}

#[test]
fn endless_sequences_over_all_addresses() {
    // Each sequence claims every address; the first has them.
    let mut program = Vec::new();
    for line in 1..=60u8 {
        program.extend(set_address(0x1000));
        program.extend([3, line, 1, 2, 0x80, 0x80, 4, 0, 1, 1]);
    }
    let program = program.repeat(300);
    let (_, lines) = read(&with_lines(&program));
    assert!(lines.at.iter().all(|it| it.is_some_and(|it| it.line == 2)));
}

#[test]
fn code_thrown_away_by_the_linker_has_no_lines() {
    let mut program = Vec::new();
    for gone in [0, u64::MAX, u64::MAX - 1] {
        program.extend(set_address(gone));
        program.extend([3, 1, 1, 2, 0xff, 0xff, 0x7f, 0, 1, 1]);
    }
    // One that sets no address at all.
    program.extend([3, 1, 1, 2, 0xff, 0xff, 0x7f, 0, 1, 1]);
    let (_, lines) = read(&with_lines(&program));
    assert!(lines.at.iter().all(Option::is_none));
}

#[test]
fn compressed_sections_that_promise_too_much() {
    let built = build("gcc", &["-g", "-gz", "-O1"], &C);
    let bytes = built.bytes();
    let whole = functions(&Sections::read(&bytes)).functions;
    let magic = b"\x01\0\0\0\0\0\0\0"; // ELFCOMPRESS_ZLIB, and padding
    let headers = bytes.windows(8).enumerate().filter(|(_, it)| it == magic);
    let mut broken = bytes.clone();
    let mut count = 0;
    for (at, _) in headers {
        // Only compression headers have the alignment 1 or 8 there.
        if matches!(
            bytes.get(at + 16..at + 24),
            Some([1 | 8, 0, 0, 0, 0, 0, 0, 0])
        ) {
            broken[at + 8..at + 16].copy_from_slice(&(u64::MAX / 2).to_le_bytes());
            count += 1;
        }
    }
    assert!(count > 0 && !whole.is_empty());
    let sections = Sections::read(&broken);
    assert!(!sections.warnings().is_empty());
    assert!(functions(&sections).functions.len() <= whole.len());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn any_bytes_as_line_instructions(instructions in prop::collection::vec(any::<u8>(), 0..200)) {
        let mut program = set_address(0x1000);
        program.extend(instructions);
        read(&with_lines(&program));
    }

    #[test]
    fn any_bytes_as_entries(entries in prop::collection::vec(0u8..24, 0..300)) {
        read(&with(unit(&entries)));
    }

    #[test]
    fn any_bytes_as_sections(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        check::any(&bytes);
    }

    #[test]
    fn any_bytes_as_a_file(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let mut file = b"\x7fELF\x02\x01\x01".to_vec();
        file.extend(bytes);
        let sections = Sections::read(&file);
        prop_assert!(functions(&sections).functions.is_empty());
    }
}
