//! The functions that run without anything in the program calling them: gABI "Initialization and
//! Termination Functions".

use object::elf;

use super::{Binary, FileKind};
use crate::{Address, Range};

/// Arrays of initialisers are cut off here; no linker has made one that long.
const LONGEST_ARRAY: u64 = 1 << 20;

/// Entry, DT_INIT, DT_FINI and the contents of the three arrays; sorted, each once.
pub(crate) fn functions(binary: &Binary<'_>) -> Vec<Address> {
    let dynamic = &binary.dynamic;
    let mut found: Vec<Address> = entry(binary).into_iter().collect();
    found.extend(dynamic.address(elf::DT_INIT));
    found.extend(dynamic.address(elf::DT_FINI));
    for range in arrays(binary) {
        found.extend(array(binary, range));
    }
    found.retain(|&function| binary.is_code(function));
    found.sort_unstable();
    found.dedup();
    found
}

/// The entry, unless it is what linkers put into libraries that have none: the start of .text.
fn entry(binary: &Binary<'_>) -> Option<Address> {
    let entry = binary.entry?;
    let library = binary.kind == FileKind::SharedObject;
    let runs = binary.segments.of_type(elf::PT_INTERP).next().is_some();
    let at_start = binary
        .code()
        .iter()
        .any(|region| region.range.start() == entry);
    (!library || runs || !at_start).then_some(entry)
}

/// Where the arrays are: by the dynamic table, or by section type in static programs.
fn arrays(binary: &Binary<'_>) -> Vec<Range> {
    let tags = [
        (elf::DT_PREINIT_ARRAY, elf::DT_PREINIT_ARRAYSZ),
        (elf::DT_INIT_ARRAY, elf::DT_INIT_ARRAYSZ),
        (elf::DT_FINI_ARRAY, elf::DT_FINI_ARRAYSZ),
    ];
    let by_tag = tags.iter().filter_map(|&(start, size)| {
        let size = binary.dynamic.value(size)?.min(LONGEST_ARRAY);
        Range::sized(binary.dynamic.address(start)?, size)
    });
    let kinds = [
        elf::SHT_PREINIT_ARRAY,
        elf::SHT_INIT_ARRAY,
        elf::SHT_FINI_ARRAY,
    ];
    let by_section = kinds.iter().filter_map(|&kind| {
        let range = binary.sections.of_type(kind)?.1.range()?;
        Range::sized(range.start(), range.size().min(LONGEST_ARRAY))
    });
    by_tag.chain(by_section).collect()
}

/// The pointers of one array: by relocation, else as the file has them.
fn array(binary: &Binary<'_>, range: Range) -> impl Iterator<Item = Address> {
    let slots = (0..range.size() / 8).filter_map(move |index| range.start().checked_add(8 * index));
    slots.filter_map(|slot| {
        let stored = || binary.segments.word(slot).map(Address);
        binary.pointer_in_slot(slot).or_else(stored)
    })
}
