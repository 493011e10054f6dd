//! PT_DYNAMIC: the table by which the loader finds symbols, relocations and initialisers.
//!
//! System V ABI, "Dynamic Section". It is read in preference to section headers, because it is
//! what the running program obeys.

use object::elf;
use object::endian::LittleEndian as LE;
use object::read::ReadRef;
use object::read::elf::{GnuHashTable, HashTable};
use rustc_hash::FxHashMap;

use super::header::Header;
use super::sections::Sections;
use super::segments::Segments;
use crate::{Address, Warning};

/// The values of the dynamic table by tag.
#[derive(Clone, Debug, Default)]
pub(crate) struct Dynamic {
    values: FxHashMap<i64, u64>,
}

impl Dynamic {
    /// Reads the table; empty for a program without one (static, not position independent).
    pub(crate) fn read(segments: &Segments<'_>, warnings: &mut Vec<Warning>) -> Self {
        let mut values = FxHashMap::default();
        let Some((_, header)) = segments.of_type(elf::PT_DYNAMIC).next() else {
            return Self::default();
        };
        let address = Address(header.p_vaddr.get(LE));
        let Some(bytes) = segments.at_most(address, header.p_memsz.get(LE)) else {
            let what = format!("p_vaddr {address} lies in no loadable segment's file bytes");
            warnings.push(Warning::new("PT_DYNAMIC", what));
            return Self::default();
        };
        for entry in slice_of::<elf::Dyn64<LE>>(bytes) {
            let tag = entry.d_tag.get(LE);
            if tag == elf::DT_NULL {
                break;
            }
            // As in the loader, a later entry replaces an earlier one.
            values.insert(tag.0, entry.d_val.get(LE));
        }
        Self { values }
    }

    /// The value of a tag.
    pub(crate) fn value(&self, tag: elf::DynamicTag) -> Option<u64> {
        self.values.get(&tag.0).copied()
    }

    /// The address that a tag gives.
    pub(crate) fn address(&self, tag: elf::DynamicTag) -> Option<Address> {
        self.value(tag).map(Address)
    }

    /// Whether DT_FLAGS_1 says that this is an executable.
    pub(crate) fn says_executable(&self) -> bool {
        self.value(elf::DT_FLAGS_1)
            .is_some_and(|flags| flags & elf::DF_1_PIE.0 != 0)
    }

    /// The bytes of a table given by its address and its size, cut off where the file ends.
    pub(crate) fn table<'data>(
        &self,
        segments: &Segments<'data>,
        name: &'static str,
        (start, size): (elf::DynamicTag, elf::DynamicTag),
        warnings: &mut Vec<Warning>,
    ) -> &'data [u8] {
        let (Some(address), Some(size)) = (self.address(start), self.value(size)) else {
            return &[];
        };
        if size == 0 {
            return &[];
        }
        let bytes = segments.at_most(address, size).unwrap_or_default();
        if (bytes.len() as u64) < size {
            let what = format!(
                "of {size:#x} bytes at {address} only {:#x} lie in a loadable segment's file bytes",
                bytes.len()
            );
            warnings.push(Warning::new(name, what));
        }
        bytes
    }
}

/// The longest run of whole entries that the bytes hold.
pub(crate) fn slice_of<T: object::pod::Pod>(bytes: &[u8]) -> &[T] {
    bytes
        .read_slice_at(0, bytes.len() / size_of::<T>().max(1))
        .unwrap_or_default()
}

/// The symbols and strings that the loader uses.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct DynamicSymbols<'data> {
    pub(crate) symbols: &'data [elf::Sym64<LE>],
    pub(crate) strings: &'data [u8],
}

impl<'data> DynamicSymbols<'data> {
    /// Finds them by the dynamic table. `at_least` is how many entries relocations refer to: the
    /// table does not state its own length, and the hash tables leave out trailing imports.
    pub(crate) fn read(
        dynamic: &Dynamic,
        segments: &Segments<'data>,
        sections: &Sections<'data>,
        at_least: usize,
        warnings: &mut Vec<Warning>,
    ) -> Self {
        let Some(address) = dynamic.address(elf::DT_SYMTAB) else {
            return Self::default();
        };
        let strings = dynamic.table(
            segments,
            "DT_STRTAB",
            (elf::DT_STRTAB, elf::DT_STRSZ),
            warnings,
        );
        let all = slice_of(segments.from(address).unwrap_or_default());
        let room = room(dynamic, address).min(all.len());
        let count = exact_count(dynamic, segments, sections, address).unwrap_or_else(|| {
            let hashed = hashed_count(dynamic, segments).unwrap_or(0);
            hashed.max(at_least).min(room)
        });
        if count > all.len() {
            let what = format!(
                "{count} symbols expected, the segment has room for {}",
                all.len()
            );
            warnings.push(Warning::new("DT_SYMTAB", what));
        }
        Self {
            symbols: &all[..count.min(all.len())],
            strings,
        }
    }
}

/// How many dynamic symbols there are, by the section header or DT_HASH.
fn exact_count(
    dynamic: &Dynamic,
    segments: &Segments<'_>,
    sections: &Sections<'_>,
    address: Address,
) -> Option<usize> {
    let section = sections
        .of_type(elf::SHT_DYNSYM)
        .map(|(_, section)| section);
    if let Some(section) = section.filter(|section| section.address == address) {
        return Some(usize::try_from(section.size).ok()? / size_of::<elf::Sym64<LE>>());
    }
    let bytes = segments.from(dynamic.address(elf::DT_HASH)?)?;
    let table = HashTable::<Header>::parse(LE, bytes).ok()?;
    Some(table.symbol_table_length() as usize)
}

/// How many there are at least, by DT_GNU_HASH, which leaves out imports.
fn hashed_count(dynamic: &Dynamic, segments: &Segments<'_>) -> Option<usize> {
    let bytes = segments.from(dynamic.address(elf::DT_GNU_HASH)?)?;
    let table = GnuHashTable::<Header>::parse(LE, bytes).ok()?;
    Some(table.symbol_table_length(LE)? as usize)
}

/// How many there can be before the next table begins.
fn room(dynamic: &Dynamic, address: Address) -> usize {
    let tables = [
        elf::DT_STRTAB,
        elf::DT_GNU_HASH,
        elf::DT_VERSYM,
        elf::DT_VERNEED,
        elf::DT_RELA,
        elf::DT_JMPREL,
    ];
    let behind = tables
        .iter()
        .filter_map(|&tag| dynamic.address(tag)?.offset_from(address));
    let next = behind
        .filter(|&distance| distance > 0)
        .min()
        .unwrap_or(u64::MAX);
    usize::try_from(next).unwrap_or(usize::MAX) / size_of::<elf::Sym64<LE>>()
}
