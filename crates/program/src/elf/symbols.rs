//! Symbols: what .symtab and the dynamic symbol table define, and what the latter imports.
//!
//! Sorting dominates: O(n log n) for n symbols, in parallel.

use std::cmp::Reverse;
use std::ffi::CStr;

use object::elf;
use object::endian::LittleEndian as LE;
use rayon::slice::ParallelSliceMut;

use super::dynamic::{DynamicSymbols, slice_of};
use super::header;
use super::sections::Sections;
use super::{Symbol, SymbolKind};
use crate::{Address, Warning, source_name};

/// How many times the file's size the names of one table may have in all: names may share bytes,
/// but a table made so that reading it never ends is none.
const NAME_BUDGET: usize = 16;

/// Reads names and counts what cannot be read.
pub(crate) struct Names<'data> {
    strings: &'data [u8],
    budget: usize,
    broken: usize,
}

impl<'data> Names<'data> {
    /// Names in `strings`, for a file of `size` bytes.
    pub(crate) fn new(strings: &'data [u8], size: usize) -> Self {
        Self {
            strings,
            budget: size.saturating_mul(NAME_BUDGET),
            broken: 0,
        }
    }

    /// The name at `offset`, `None` and counted when it is cut off or not UTF-8.
    pub(crate) fn at(&mut self, offset: u32) -> Option<&'data str> {
        let name = self.read(offset);
        self.broken += usize::from(name.is_none());
        name
    }

    fn read(&mut self, offset: u32) -> Option<&'data str> {
        let bytes = self.strings.get(offset as usize..)?;
        let within = &bytes[..bytes.len().min(self.budget)];
        let Ok(name) = CStr::from_bytes_until_nul(within) else {
            self.budget -= within.len();
            return None;
        };
        self.budget -= name.count_bytes();
        name.to_str().ok()
    }

    /// One warning for all of them.
    pub(crate) fn finish(self, table: &'static str, warnings: &mut Vec<Warning>) {
        if self.broken > 0 {
            let what = format!(
                "{} symbols left out whose name is cut off or not UTF-8",
                self.broken
            );
            warnings.push(Warning::new(table, what));
        }
    }
}

/// All defined symbols of both tables, by (address, larger first, name), each once.
pub(crate) fn defined<'data>(
    data: &'data [u8],
    sections: &Sections<'data>,
    dynamic: DynamicSymbols<'data>,
    warnings: &mut Vec<Warning>,
) -> Vec<Symbol<'data>> {
    let (static_symbols, static_strings) = static_table(data, sections, warnings);
    let mut symbols = Vec::new();
    collect(
        static_symbols,
        Names::new(static_strings, data.len()),
        ".symtab",
        &mut symbols,
        warnings,
    );
    let names = Names::new(dynamic.strings, data.len());
    collect(dynamic.symbols, names, ".dynsym", &mut symbols, warnings);
    symbols.par_sort_unstable_by_key(|symbol| {
        (
            symbol.address,
            Reverse(symbol.size),
            symbol.name,
            symbol.kind,
            !symbol.global,
        )
    });
    symbols.dedup_by(|later, kept| {
        let same = later.address == kept.address && later.size == kept.size;
        let same = same && later.name == kept.name;
        kept.global |= same && later.global;
        same
    });
    symbols
}

/// What `.symtab` of the file that these bytes are defines, by (address, larger first, name); empty where it cannot be read.
pub(crate) fn symbols_of(data: &[u8]) -> Vec<Symbol<'_>> {
    let none = &mut Vec::new();
    let sections = header::read(data).and_then(|header| Sections::read(header, data, none));
    let sections = sections.unwrap_or_default();
    defined(data, &sections, DynamicSymbols::default(), none)
}

/// Functions of the source of which there is one and the same code, by address, where there are several: what a compiler or a linker
/// has folded, since they are alike, and aliases. Each by one of its names.
#[must_use]
pub fn sharing(data: &[u8]) -> Vec<(Address, Vec<&str>)> {
    let mut functions = symbols_of(data);
    functions.retain(|symbol| symbol.kind == SymbolKind::Function);
    let together = functions.chunk_by(|one, next| one.address == next.address);
    let names = together
        .filter(|all| all.len() > 1)
        .map(|all| (all[0].address, names_of(all)));
    names.filter(|(_, names)| names.len() > 1).collect()
}

/// One name for each function of the source, without its version.
fn names_of<'data>(symbols: &[Symbol<'data>]) -> Vec<&'data str> {
    let names = symbols.iter().map(|symbol| {
        let name = symbol.name;
        name.find('@').map_or(name, |at| &name[..at])
    });
    let mut names: Vec<_> = names.map(|name| (source_name(name), name)).collect();
    names.sort();
    names.dedup_by(|one, other| one.0 == other.0);
    names.into_iter().map(|it| it.1).collect()
}

fn static_table<'data>(
    data: &'data [u8],
    sections: &Sections<'data>,
    warnings: &mut Vec<Warning>,
) -> (&'data [elf::Sym64<LE>], &'data [u8]) {
    let Some((_, table)) = sections.of_type(elf::SHT_SYMTAB) else {
        return (&[], &[]);
    };
    let strings = sections.all().get(table.link as usize);
    let Some(strings) = strings.filter(|section| section.kind == elf::SHT_STRTAB) else {
        let what = format!(
            "sh_link {} names no string table; symbols have no names",
            table.link
        );
        warnings.push(Warning::new(".symtab", what));
        return (&[], &[]);
    };
    (slice_of(table.bytes(data)), strings.bytes(data))
}

fn collect<'data>(
    table: &'data [elf::Sym64<LE>],
    mut names: Names<'data>,
    table_name: &'static str,
    symbols: &mut Vec<Symbol<'data>>,
    warnings: &mut Vec<Warning>,
) {
    symbols.reserve(table.len());
    for raw in table.iter().filter(|raw| is_defined(raw)) {
        let Some(kind) = kind(raw) else { continue };
        let Some(name) = names.at(raw.st_name.get(LE)) else {
            continue;
        };
        if name.is_empty() {
            continue;
        }
        symbols.push(Symbol {
            address: Address(raw.st_value.get(LE)),
            size: raw.st_size.get(LE),
            name,
            kind,
            global: raw.st_info.st_bind() != elf::STB_LOCAL,
        });
    }
    names.finish(table_name, warnings);
}

/// Whether the symbol stands for an address of this file.
pub(crate) fn is_defined(raw: &elf::Sym64<LE>) -> bool {
    let section = raw.st_shndx.get(LE);
    section == elf::SHN_XINDEX || !section.is_special()
}

/// What it stands for; `None` for sections, files and thread-local variables.
pub(crate) fn kind(raw: &elf::Sym64<LE>) -> Option<SymbolKind> {
    match raw.st_info.st_type() {
        elf::STT_FUNC => Some(SymbolKind::Function),
        elf::STT_GNU_IFUNC => Some(SymbolKind::IndirectFunction),
        elf::STT_OBJECT => Some(SymbolKind::Object),
        elf::STT_NOTYPE => Some(SymbolKind::Untyped),
        _ => None,
    }
}
