//! The reading side of ELF: what the file says there is, at which stated address, and which
//! pointers the loader will write where.
//!
//! Sources: System V ABI (gABI) chapters 4 and 5; its AMD64 supplement; the GNU extensions of the
//! Linux Standard Base. The `object` crate lays the structures over the bytes; what they mean for
//! an analysis is decided here.
//!
//! Two rules run through all submodules. The loadable segments and the dynamic table decide, since
//! they are what the loader obeys; section headers only give names and extents. And nothing in
//! the file is trusted: what cannot be read costs only itself and leaves a [`Warning`], unless the
//! program could not run either, which is an [`ElfError`].
//!
//! [`Binary::parse`] takes O(n log n) time in the number of symbols and relocations, and memory
//! proportional to them: 40 bytes a symbol and 16 a relocation.

mod contents;
mod dynamic;
mod error;
mod header;
mod imports;
mod initial;
mod notes;
mod plt;
mod regions;
mod relocations;
mod sections;
mod segments;
mod symbols;

use std::borrow::Cow;

use object::elf as spec;
use object::endian::LittleEndian as LE;

pub use error::ElfError;

use crate::{Address, Range, Warning};
use dynamic::{Dynamic, DynamicSymbols};
use imports::Imports;
use regions::Regions;
use relocations::{Slots, Tables, lookup};
use sections::Sections;
use segments::Segments;
pub use symbols::sharing;
pub(crate) use symbols::symbols_of;

/// What kind of program a file is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FileKind {
    /// ET_EXEC: runs at its stated addresses.
    Executable,
    /// ET_DYN that is meant to be executed.
    PositionIndependentExecutable,
    /// ET_DYN that is meant to be loaded by others.
    SharedObject,
}

/// A run of bytes at stated addresses.
#[derive(Clone, Copy, Debug)]
pub struct Region<'data> {
    /// Its addresses, as many as `bytes` has.
    pub range: Range,
    /// What the file has there.
    pub bytes: &'data [u8],
    /// Its section's name; empty where there are no section headers.
    pub name: &'data str,
}

/// What a symbol stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SymbolKind {
    /// STT_FUNC.
    Function,
    /// STT_GNU_IFUNC: its address is that of a resolver.
    IndirectFunction,
    /// STT_OBJECT.
    Object,
    /// STT_NOTYPE: labels of assembly code, and linker-made names.
    Untyped,
}

/// A name for an address of this file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Symbol<'data> {
    /// What it names.
    pub address: Address,
    /// Bytes there, zero where unknown.
    pub size: u64,
    /// As the file has it (mangled; .symtab may append `@VERSION` or `@@VERSION`).
    pub name: &'data str,
    /// What it stands for.
    pub kind: SymbolKind,
    /// Whether other files may refer to it (STB_GLOBAL, STB_WEAK, STB_GNU_UNIQUE).
    pub global: bool,
}

/// Something that another file is to provide.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Import<'data> {
    /// As the file has it (mangled).
    pub name: &'data str,
    /// The version it asks for.
    pub version: Option<&'data str>,
    /// What it stands for; linkers often leave this [`SymbolKind::Untyped`].
    pub kind: SymbolKind,
}

/// A few instructions that the linker made to reach a function through a pointer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PltStub {
    /// Its bytes, padding included.
    pub range: Range,
    /// Whom it reaches.
    pub target: PltTarget,
}

/// Whom a PLT stub reaches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PltTarget {
    /// An index into [`Binary::imports`].
    Import(u32),
    /// A function of this file.
    Function(Address),
    /// The function that the resolver at this address chooses at run time.
    Resolver(Address),
    /// A stub of unknown form, or through a slot that no relocation fills.
    Unknown,
    /// Not a stub for any function: what lazy stubs share, and which enters the loader.
    Header,
}

/// A section's bytes.
#[derive(Clone, Debug)]
pub struct Section<'data> {
    /// Its stated address, zero where it is not part of the running program.
    pub address: Address,
    /// Its bytes, decompressed.
    pub data: Cow<'data, [u8]>,
    /// Where the file has it (compressed, if it is).
    pub file_offset: u64,
}

/// An x86-64 executable or shared object; borrows the file's bytes and owns only small tables.
#[derive(Clone, Debug)]
pub struct Binary<'data> {
    data: &'data [u8],
    kind: FileKind,
    entry: Option<Address>,
    build_id: Option<&'data [u8]>,
    segments: Segments<'data>,
    sections: Sections<'data>,
    dynamic: Dynamic,
    regions: Regions<'data>,
    symbols: Vec<Symbol<'data>>,
    imports: Vec<Import<'data>>,
    slots: Slots,
    plt: Vec<PltStub>,
    warnings: Vec<Warning>,
}

impl<'data> Binary<'data> {
    /// Reads all tables of a 64-bit, little-endian x86-64 executable or shared object.
    ///
    /// # Errors
    ///
    /// When the file is not such a program, is cut off, or has no executable code.
    pub fn parse(data: &'data [u8]) -> Result<Self, ElfError> {
        let mut warnings = Vec::new();
        let header = header::read(data)?;
        let headers = header::program_headers(header, data)?;
        let sections = Sections::read(header, data, &mut warnings)?;
        if sections.is_debug_file() {
            let why = "its code sections are SHT_NOBITS: this is a separate debug file";
            return Err(ElfError::NoCode { why });
        }
        let segments = Segments::read(headers, data, &mut warnings)?;
        let regions = Regions::read(&segments, &sections, &mut warnings);
        if regions.code.is_empty() {
            let why = "no section or loadable segment is executable and has bytes";
            return Err(ElfError::NoCode { why });
        }
        let dynamic = Dynamic::read(&segments, &mut warnings);
        let binary = Self {
            data,
            kind: kind(header, &segments, &dynamic),
            entry: Some(Address(header.e_entry.get(LE))).filter(|entry| entry.0 != 0),
            build_id: notes::build_id(data, &segments),
            segments,
            sections,
            dynamic,
            regions,
            symbols: Vec::new(),
            imports: Vec::new(),
            slots: Slots::default(),
            plt: Vec::new(),
            warnings,
        };
        Ok(binary.with_tables())
    }

    /// Reads symbols, imports, relocations and PLT, none of which can fail the whole.
    fn with_tables(mut self) -> Self {
        let warnings = &mut self.warnings;
        let tables = Tables::find(&self.dynamic, &self.segments, &self.sections, warnings);
        let dynamic_symbols = DynamicSymbols::read(
            &self.dynamic,
            &self.segments,
            &self.sections,
            tables.symbols_used(),
            warnings,
        );
        let size = self.data.len();
        let imports = Imports::read(
            &self.dynamic,
            dynamic_symbols,
            &self.segments,
            size,
            warnings,
        );
        self.symbols = symbols::defined(self.data, &self.sections, dynamic_symbols, warnings);
        self.slots = Slots::read(&tables, dynamic_symbols, &imports, &self.segments, warnings);
        self.plt = plt::read(&self.regions.code, &self.slots, tables.plt);
        self.imports = imports.list;
        self
    }

    /// What kind of program this is.
    #[must_use]
    pub fn kind(&self) -> FileKind {
        self.kind
    }

    /// The linker's identification of exactly this build, as raw bytes.
    #[must_use]
    pub fn build_id(&self) -> Option<&'data [u8]> {
        self.build_id
    }

    /// Where the program starts (e_entry).
    #[must_use]
    pub fn entry(&self) -> Option<Address> {
        self.entry
    }

    /// Whether the loader may place the file anywhere.
    #[must_use]
    pub fn is_position_independent(&self) -> bool {
        self.kind != FileKind::Executable
    }

    /// Executable bytes, by address, disjoint.
    #[must_use]
    pub fn code(&self) -> &[Region<'data>] {
        &self.regions.code
    }

    /// Whether the byte at `address` is executable.
    #[must_use]
    pub fn is_code(&self, address: Address) -> bool {
        regions::find(&self.regions.code, address).is_some()
    }

    /// The executable bytes from `address` to the end of its region.
    #[must_use]
    pub fn code_at(&self, address: Address) -> Option<&'data [u8]> {
        regions::bytes_at(&self.regions.code, address)
    }

    /// The bytes from `address` to the end of its region, where nothing changes them once the
    /// loader has applied its relocations: segments that are not writable, PT_GNU_RELRO and
    /// `.data.rel.ro`. What relocations put there is told by [`Binary::pointer_in_slot`].
    #[must_use]
    pub fn constant_at(&self, address: Address) -> Option<&'data [u8]> {
        regions::bytes_at(&self.regions.constant, address)
    }

    /// The file's bytes from `address` to the end of its segment's.
    #[must_use]
    pub fn data_at(&self, address: Address) -> Option<&'data [u8]> {
        self.segments.from(address)
    }

    /// Everything that is mapped from the file and not executable, by address, disjoint.
    pub fn data_regions(&self) -> impl Iterator<Item = &Region<'data>> {
        self.regions.data.iter()
    }

    /// Defined symbols of .symtab and .dynsym by (address, larger first, name), each once.
    #[must_use]
    pub fn symbols(&self) -> &[Symbol<'data>] {
        &self.symbols
    }

    /// What the program needs from others, in the order of the dynamic symbol table.
    #[must_use]
    pub fn imports(&self) -> &[Import<'data>] {
        &self.imports
    }

    /// The import (index into [`Binary::imports`]) whose address the loader writes into `slot`.
    #[must_use]
    pub fn import_in_slot(&self, slot: Address) -> Option<u32> {
        lookup(&self.slots.imports, slot)
    }

    /// The address of this file that the loader writes into the eight bytes at `slot`.
    #[must_use]
    pub fn pointer_in_slot(&self, slot: Address) -> Option<Address> {
        lookup(&self.slots.pointers, slot)
    }

    /// All (slot, address of this file written there), by slot.
    #[must_use]
    pub fn pointer_slots(&self) -> &[(Address, Address)] {
        &self.slots.pointers
    }

    /// The resolver whose result the loader writes into `slot`.
    #[must_use]
    pub fn resolver_in_slot(&self, slot: Address) -> Option<Address> {
        lookup(&self.slots.resolvers, slot)
    }

    /// All (slot, resolver whose result is written there), by slot.
    #[must_use]
    pub fn resolver_slots(&self) -> &[(Address, Address)] {
        &self.slots.resolvers
    }

    /// All PLT stubs, by address, disjoint.
    #[must_use]
    pub fn plt(&self) -> &[PltStub] {
        &self.plt
    }

    /// The PLT stub that starts at `address`.
    #[must_use]
    pub fn plt_stub(&self, address: Address) -> Option<&PltStub> {
        let index = self
            .plt
            .binary_search_by_key(&address, |stub| stub.range.start())
            .ok()?;
        self.plt.get(index)
    }

    /// Functions that the loader and the C library call by address: the entry, DT_INIT, DT_FINI,
    /// and what the initialiser arrays hold. Sorted, each once, all of them code.
    #[must_use]
    pub fn initial_functions(&self) -> Vec<Address> {
        initial::functions(self)
    }

    /// A section by name, decompressed; `None` when there is none, or none that can be read
    /// ([`Binary::try_section`] says why).
    #[must_use]
    pub fn section(&self, name: &str) -> Option<Section<'data>> {
        self.try_section(name).ok().flatten()
    }

    /// A section by name, decompressed; `Ok(None)` when there is none.
    ///
    /// # Errors
    ///
    /// A warning that says what is wrong with it.
    pub fn try_section(&self, name: &str) -> Result<Option<Section<'data>>, Warning> {
        contents::section(self.data, &self.sections, name)
            .map_err(|what| Warning::new(name.to_owned(), what))
    }

    /// Where a section of the running program is, and what the file has there.
    pub(crate) fn mapped_section(&self, name: &str) -> Option<(Address, &'data [u8])> {
        let range = self.sections.named(name)?.range()?;
        let bytes = self.segments.at_most(range.start(), range.size())?;
        Some((range.start(), bytes))
    }

    /// What PT_GNU_EH_FRAME leads to.
    pub(crate) fn eh_frame_hdr(&self) -> Option<(Address, &'data [u8])> {
        let (_, header) = self.segments.of_type(spec::PT_GNU_EH_FRAME).next()?;
        let address = Address(header.p_vaddr.get(LE));
        Some((
            address,
            self.segments.at_most(address, header.p_memsz.get(LE))?,
        ))
    }

    /// What pointers relative to data are relative to.
    pub(crate) fn global_offset_table(&self) -> Option<Address> {
        let section = || Some(self.mapped_section(".got")?.0);
        self.dynamic.address(spec::DT_PLTGOT).or_else(section)
    }

    /// How many bytes the file has.
    pub(crate) fn file_size(&self) -> usize {
        self.data.len()
    }

    /// What was found broken.
    #[must_use]
    pub fn warnings(&self) -> &[Warning] {
        &self.warnings
    }
}

/// Executables and shared objects are both ET_DYN. Linkers of today mark the former (DF_1_PIE);
/// older ones are recognised by their interpreter, which some libraries have as well (they are
/// told apart by their name, DT_SONAME).
fn kind(header: &header::Header, segments: &Segments<'_>, dynamic: &Dynamic) -> FileKind {
    if header.e_type.get(LE) == spec::ET_EXEC {
        return FileKind::Executable;
    }
    let interpreted = segments.of_type(spec::PT_INTERP).next().is_some();
    let named = dynamic.value(spec::DT_SONAME).is_some();
    if dynamic.says_executable() || (interpreted && !named) {
        FileKind::PositionIndependentExecutable
    } else {
        FileKind::SharedObject
    }
}
