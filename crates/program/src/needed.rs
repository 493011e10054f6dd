//! Which libraries a program names to its loader, and whether it needs one at all, read without the rest of the file (System V
//! ABI, "Dynamic Section").

use std::fs::File;

use object::elf::{self, FileHeader64};
use object::endian::LittleEndian as LE;
use object::read::elf::{Dyn as _, FileHeader as _, ProgramHeader as _};
use object::read::{ReadCache, ReadRef};

/// The names that a program or library gives its loader, and whether it says where to look.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Needed {
    /// DT_NEEDED.
    pub names: Vec<Vec<u8>>,
    /// Whether it names folders, auditors or filters of its own (DT_RUNPATH and the like).
    pub searches: bool,
    /// Whether it says by which name others need it (DT_SONAME).
    pub is_named: bool,
}

impl Needed {
    /// Of the ELF file, if it has a dynamic section that can be read.
    #[must_use]
    pub fn of(file: &File) -> Option<Self> {
        let data = ReadCache::new(file);
        read(&data)
    }
}

/// Whether the ELF file is a program that is linked statically: it names nothing that would have to be loaded, others cannot
/// name it (DT_SONAME) as they name a loader, and something can begin in it. It may name a loader all the same, which then
/// moves it alone: Go's linker makes such programs.
#[must_use]
pub fn is_static(file: &File) -> bool {
    is_static_in(&ReadCache::new(file))
}

/// The same of a file in memory, or that is read piece by piece.
#[must_use]
pub fn is_static_in<'data>(data: impl ReadRef<'data>) -> bool {
    let Ok(header) = FileHeader64::<LE>::parse(data) else {
        return false;
    };
    let is_library = || read(data).is_some_and(|told| told.is_named || !told.names.is_empty());
    header.e_entry(LE) != 0 && !is_library()
}

/// Tags of entries that change where libraries are looked for, or which.
const SEARCH: [elf::DynamicTag; 7] = [
    elf::DT_RPATH,
    elf::DT_RUNPATH,
    elf::DT_AUDIT,
    elf::DT_DEPAUDIT,
    elf::DT_AUXILIARY,
    elf::DT_FILTER,
    elf::DT_CONFIG,
];

fn read<'data>(data: impl ReadRef<'data>) -> Option<Needed> {
    let header = FileHeader64::<LE>::parse(data).ok()?;
    let segments = header.program_headers(LE, data).ok()?;
    let table = segments
        .iter()
        .find_map(|segment| segment.dynamic(LE, data).ok()?)?;
    let value = |tag| {
        table
            .iter()
            .find(|entry| entry.tag(LE) == tag)
            .map(|entry| entry.val(LE))
    };
    let (address, size) = (value(elf::DT_STRTAB)?, value(elf::DT_STRSZ)?);
    let strings = segments.iter().find_map(|segment| {
        let bytes = segment.data_range(LE, data, address, size).ok()?;
        bytes.filter(|_| segment.p_type(LE) == elf::PT_LOAD)
    })?;
    let mut needed = Needed::default();
    for entry in table
        .iter()
        .take_while(|entry| entry.tag(LE) != elf::DT_NULL)
    {
        needed.searches |= SEARCH.contains(&entry.tag(LE));
        needed.is_named |= entry.tag(LE) == elf::DT_SONAME;
        if entry.tag(LE) == elf::DT_NEEDED {
            let rest = strings.get(usize::try_from(entry.val(LE)).ok()?..)?;
            needed
                .names
                .push(rest.split(|byte| *byte == 0).next()?.to_vec());
        }
    }
    Some(needed)
}
