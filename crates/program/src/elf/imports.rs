//! What a program imports, with the version each import asks for (GNU symbol versioning, LSB
//! core "Symbol Versioning").

use object::elf;
use object::endian::LittleEndian as LE;
use object::read::ReadRef;
use rustc_hash::FxHashMap;

use super::dynamic::{Dynamic, DynamicSymbols, slice_of};
use super::segments::Segments;
use super::symbols::{Names, kind};
use super::{Import, SymbolKind};
use crate::Warning;

/// More versions than this cannot be told apart: an index has 15 bits.
const MOST_VERSIONS: usize = 1 << 15;

/// Imports, and which of them a dynamic symbol is.
#[derive(Clone, Debug, Default)]
pub(crate) struct Imports<'data> {
    /// In the order of the dynamic symbol table.
    pub(crate) list: Vec<Import<'data>>,
    /// By index of the dynamic symbol.
    by_symbol: Vec<Option<u32>>,
}

impl<'data> Imports<'data> {
    /// The undefined symbols of the dynamic symbol table.
    pub(crate) fn read(
        dynamic: &Dynamic,
        table: DynamicSymbols<'data>,
        segments: &Segments<'data>,
        size: usize,
        warnings: &mut Vec<Warning>,
    ) -> Self {
        let versions = Versions::read(dynamic, segments, table.strings);
        let mut names = Names::new(table.strings, size);
        let mut imports = Self {
            list: Vec::new(),
            by_symbol: vec![None; table.symbols.len()],
        };
        // Entry 0 is reserved and stands for no symbol.
        for (index, raw) in table.symbols.iter().enumerate().skip(1) {
            if raw.st_shndx.get(LE) != elf::SHN_UNDEF {
                continue;
            }
            let Some(name) = names.at(raw.st_name.get(LE)) else {
                continue;
            };
            let kind = kind(raw).unwrap_or(SymbolKind::Object);
            imports.by_symbol[index] = u32::try_from(imports.list.len()).ok();
            imports.list.push(Import {
                name,
                version: versions.of(index),
                kind,
            });
        }
        names.finish(".dynsym (imports)", warnings);
        imports
    }

    /// Which import a dynamic symbol is, if it is one.
    pub(crate) fn of_symbol(&self, symbol: u32) -> Option<u32> {
        self.by_symbol.get(symbol as usize).copied().flatten()
    }
}

/// DT_VERSYM and DT_VERNEED.
struct Versions<'data> {
    by_symbol: &'data [elf::Versym<LE>],
    names: FxHashMap<u16, &'data str>,
}

impl<'data> Versions<'data> {
    fn read(dynamic: &Dynamic, segments: &Segments<'data>, strings: &'data [u8]) -> Self {
        let from = |tag| {
            dynamic
                .address(tag)
                .and_then(|address| segments.from(address))
        };
        let by_symbol = slice_of(from(elf::DT_VERSYM).unwrap_or_default());
        let needed = from(elf::DT_VERNEED).unwrap_or_default();
        Self {
            by_symbol,
            names: needed_versions(needed, strings),
        }
    }

    fn of(&self, symbol: usize) -> Option<&'data str> {
        let index = self.by_symbol.get(symbol)?.0.get(LE).index();
        self.names.get(&index.0).copied()
    }
}

/// Version names by index. The two linked lists may be made to overlap; no more entries are read
/// than there can be indices.
fn needed_versions<'data>(needed: &'data [u8], strings: &'data [u8]) -> FxHashMap<u16, &'data str> {
    let mut found = FxHashMap::default();
    let mut names = Names::new(strings, strings.len());
    let mut left = MOST_VERSIONS;
    let mut file_at = 0u64;
    while let Ok(file) = needed.read_at::<elf::Verneed<LE>>(file_at) {
        let mut at = file_at.saturating_add(file.vn_aux.get(LE).into());
        for _ in 0..file.vn_cnt.get(LE) {
            let Ok(version) = needed.read_at::<elf::Vernaux<LE>>(at) else {
                break;
            };
            if left == 0 {
                return found;
            }
            left -= 1;
            if let Some(name) = names.at(version.vna_name.get(LE)) {
                found.insert(version.vna_other.get(LE).0 & 0x7fff, name);
            }
            match version.vna_next.get(LE) {
                0 => break,
                next => at = at.saturating_add(next.into()),
            }
        }
        match file.vn_next.get(LE) {
            0 => break,
            next => file_at = file_at.saturating_add(next.into()),
        }
    }
    found
}
