//! What must hold whatever the debug sections are, for the tests and for the fuzz target.

use std::borrow::Cow;
use tomo_program::dwarf::{
    DebugInfo, Lines, Position, Sections, block_lines, frames, functions, lines,
};
use tomo_program::{Address, Range};

/// The sections that are read, in the order in which [`joined`] has them.
pub(crate) const NAMES: [&str; 9] = [
    ".debug_info",
    ".debug_abbrev",
    ".debug_str",
    ".debug_line_str",
    ".debug_str_offsets",
    ".debug_addr",
    ".debug_ranges",
    ".debug_rnglists",
    ".debug_line",
];

/// Reads everything, and checks what the documentation promises of any input.
pub(crate) fn everything(sections: &Sections<'_>) -> (DebugInfo, Lines) {
    let info = functions(sections);
    assert!(
        info.functions
            .windows(2)
            .all(|pair| pair[0].entry < pair[1].entry)
    );
    for function in &info.functions {
        assert!(!function.ranges.is_empty() && function.ranges.iter().all(|it| !it.is_empty()));
    }
    assert!(
        info.warnings
            .iter()
            .all(|it| !it.to_string().contains('\n'))
    );
    let addresses: Vec<Address> = (0..200).map(|it| Address(0x1000 + 8 * it)).collect();
    let lines = lines(sections, &addresses);
    assert_eq!(lines.at.len(), addresses.len());
    for position in lines.at.iter().flatten() {
        assert!(position.line > 0 && (position.file as usize) < lines.files.len());
    }
    of_blocks(sections);
    (info, lines)
}

/// The same of the lines of blocks.
fn of_blocks(sections: &Sections<'_>) {
    let block = |number: u64| {
        let start = Address(0x1000 + 16 * number);
        Range::new(start, Address(start.0 + 12))
    };
    let blocks: Vec<Range> = (0..200).filter_map(block).collect();
    let lines = block_lines(sections, &blocks);
    let is_known =
        |position: &Position| position.line > 0 && (position.file as usize) < lines.files.len();
    for block in 0..blocks.len() {
        assert!(lines.statements(block).iter().all(is_known));
        let ends = [lines.first[block], lines.last[block], lines.begin(block)];
        assert!(ends.iter().flatten().all(is_known));
    }
    for body in &lines.bodies {
        assert!(!body.blocks.is_empty() && body.blocks.end as usize <= blocks.len());
        assert!((body.function as usize) < lines.inlined.len());
    }
    assert!(lines.inlined.iter().all(|it| is_known(&it.declared)));
}

/// Asks for the functions at some addresses. Not part of [`everything`]: what takes long is no promise there.
pub(crate) fn some_frames(sections: &Sections<'_>) {
    let addresses: Vec<u64> = (0..50).map(|it| 0x1000 + 32 * it).collect();
    assert_eq!(frames(sections, &addresses).len(), addresses.len());
}

/// Takes bytes for an ELF file, or else for debug sections one behind the other, each behind its size
/// in two bytes, and checks everything.
pub(crate) fn any(data: &[u8]) {
    let mut parts = parts(data);
    let sections = match data.starts_with(b"\x7fELF") {
        true => Sections::read(data).or_of_go(data),
        false => Sections::load(|name| {
            let index = NAMES.iter().position(|&it| it == name)?;
            Some(Cow::Borrowed(std::mem::take(&mut parts[index])))
        }),
    };
    everything(&sections);
    some_frames(&sections);
}

fn parts(mut data: &[u8]) -> [&[u8]; NAMES.len()] {
    [(); NAMES.len()].map(|()| {
        let Some((size, rest)) = data.split_first_chunk::<2>() else {
            return &[][..];
        };
        let size = usize::from(u16::from_le_bytes(*size)).min(rest.len());
        let (part, rest) = rest.split_at(size);
        data = rest;
        part
    })
}
