//! Dynamic relocations: which eight-byte slots the loader fills, and with what.
//!
//! System V ABI, AMD64 supplement, §4.4; IRELATIVE by the GNU extension; DT_RELR by the generic
//! ABI's "Relative Relocation Table". Besides the tables that the dynamic section names, allocated
//! SHT_RELA sections are read, because static programs that are not position independent have their
//! IRELATIVE relocations there and no dynamic section. Sorting is O(n log n), and O(n) for what
//! linkers have sorted already.

use object::elf;
use object::endian::LittleEndian as LE;
use object::read::elf::RelrIterator;

use super::dynamic::{Dynamic, DynamicSymbols, slice_of};
use super::header::Header;
use super::imports::Imports;
use super::sections::Sections;
use super::segments::Segments;
use super::symbols::is_defined;
use crate::{Address, Warning};

type Rela = elf::Rela64<LE>;

/// More relocation tables than this are not looked at; real programs have two.
const MOST_TABLES: usize = 64;

/// The relocation tables of a file.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tables<'data> {
    /// All RELA tables.
    rela: Vec<&'data [Rela]>,
    /// Relocations of PLT slots, in the order in which lazy PLT stubs number them.
    pub(crate) plt: &'data [Rela],
    relr: &'data [elf::Relr64<LE>],
}

impl<'data> Tables<'data> {
    /// Finds all tables, each once.
    pub(crate) fn find(
        dynamic: &Dynamic,
        segments: &Segments<'data>,
        sections: &Sections<'data>,
        warnings: &mut Vec<Warning>,
    ) -> Self {
        let mut table = |name, tags| dynamic.table(segments, name, tags, warnings);
        let main = table("DT_RELA", (elf::DT_RELA, elf::DT_RELASZ));
        let relr = table("DT_RELR", (elf::DT_RELR, elf::DT_RELRSZ));
        let mut plt = &[][..];
        if dynamic.value(elf::DT_PLTREL) == Some(elf::DT_RELA.0.unsigned_abs()) {
            plt = table("DT_JMPREL", (elf::DT_JMPREL, elf::DT_PLTRELSZ));
        }
        let mut known = vec![main, plt];
        for section in sections
            .all()
            .iter()
            .filter(|section| section.is_allocated())
        {
            if section.kind == elf::SHT_RELA && known.len() < MOST_TABLES {
                let bytes = segments
                    .at_most(section.address, section.size)
                    .unwrap_or_default();
                if !known.iter().any(|table| overlap(table, bytes)) {
                    known.push(bytes);
                }
            }
        }
        if plt.is_empty() {
            let section = sections
                .named(".rela.plt")
                .filter(|section| section.is_allocated());
            let bytes = section.and_then(|section| segments.at_most(section.address, section.size));
            plt = bytes.unwrap_or_default();
        }
        let rela = known.into_iter().map(slice_of).collect();
        Self {
            rela,
            plt: slice_of(plt),
            relr: slice_of(relr),
        }
    }

    /// How long the dynamic symbol table must at least be.
    pub(crate) fn symbols_used(&self) -> usize {
        let all = self.rela.iter().flat_map(|table| table.iter());
        let symbols = all
            .filter(|rela| slot_kind(rela).is_some())
            .map(|rela| rela.r_sym(LE, false));
        symbols.max().map_or(0, |last| last as usize + 1)
    }
}

/// Whether two parts of one file have a byte in common.
fn overlap(one: &[u8], other: &[u8]) -> bool {
    let (one, other) = (one.as_ptr_range(), other.as_ptr_range());
    one.start < other.end && other.start < one.end
}

/// How a relocation's value comes about.
#[derive(Clone, Copy)]
enum Value {
    /// Base and addend.
    Relative,
    /// What the resolver at base and addend returns.
    Resolver,
    /// The symbol's address.
    Symbol,
    /// The symbol's address and the addend.
    SymbolAndAddend,
}

fn slot_kind(rela: &Rela) -> Option<Value> {
    match rela.r_type(LE, false) {
        elf::R_X86_64_RELATIVE | elf::R_X86_64_RELATIVE64 => Some(Value::Relative),
        elf::R_X86_64_IRELATIVE => Some(Value::Resolver),
        elf::R_X86_64_GLOB_DAT | elf::R_X86_64_JUMP_SLOT => Some(Value::Symbol),
        elf::R_X86_64_64 => Some(Value::SymbolAndAddend),
        _ => None,
    }
}

/// Slots by what the loader writes into them, each list sorted by slot, one entry a slot.
#[derive(Clone, Debug, Default)]
pub(crate) struct Slots {
    /// Slot and the address of this file that it holds at run time.
    pub(crate) pointers: Vec<(Address, Address)>,
    /// Slot and the resolver whose result it holds.
    pub(crate) resolvers: Vec<(Address, Address)>,
    /// Slot and the import it holds the address of.
    pub(crate) imports: Vec<(Address, u32)>,
}

impl Slots {
    /// Interprets all relocations.
    pub(crate) fn read(
        tables: &Tables<'_>,
        symbols: DynamicSymbols<'_>,
        imports: &Imports<'_>,
        segments: &Segments<'_>,
        warnings: &mut Vec<Warning>,
    ) -> Self {
        let mut slots = Self::default();
        let mut unknown = 0;
        slots
            .pointers
            .reserve(tables.rela.iter().map(|table| table.len()).sum());
        for rela in tables.rela.iter().flat_map(|table| table.iter()) {
            unknown += usize::from(slots.add(rela, symbols, imports).is_none());
        }
        if unknown > 0 {
            let what = format!("{unknown} relocations name a symbol that does not exist");
            warnings.push(Warning::new("relocations", what));
        }
        slots.add_packed(tables.relr, segments, warnings);
        sort(&mut slots.pointers);
        sort(&mut slots.resolvers);
        sort(&mut slots.imports);
        slots
    }

    /// Adds one relocation; `None` when its symbol does not exist.
    fn add(
        &mut self,
        rela: &Rela,
        symbols: DynamicSymbols<'_>,
        imports: &Imports<'_>,
    ) -> Option<()> {
        let slot = Address(rela.r_offset.get(LE));
        let addend = rela.r_addend.get(LE).cast_unsigned();
        let Some(value) = slot_kind(rela) else {
            return Some(());
        };
        let addend = match value {
            Value::Relative => {
                self.pointers.push((slot, Address(addend)));
                return Some(());
            }
            Value::Resolver => {
                self.resolvers.push((slot, Address(addend)));
                return Some(());
            }
            Value::Symbol => 0,
            Value::SymbolAndAddend => addend,
        };
        let index = rela.r_sym(LE, false);
        let symbol = symbols.symbols.get(index as usize)?;
        if let Some(import) = imports.of_symbol(index) {
            self.imports.push((slot, import));
        } else if is_defined(symbol) {
            let target = Address(symbol.st_value.get(LE)).wrapping_add(addend);
            match symbol.st_info.st_type() {
                elf::STT_GNU_IFUNC => self.resolvers.push((slot, target)),
                elf::STT_TLS => {}
                _ => self.pointers.push((slot, target)),
            }
        }
        Some(())
    }

    /// Adds DT_RELR, whose addends are in the slots themselves.
    fn add_packed(
        &mut self,
        relr: &[elf::Relr64<LE>],
        segments: &Segments<'_>,
        warnings: &mut Vec<Warning>,
    ) {
        // Slots do not overlap, so there cannot be more of them than there are words in the file.
        let bytes = segments.loads().iter().map(|load| load.bytes.len());
        let most = bytes.sum::<usize>() / size_of::<u64>();
        let mut outside = 0;
        for (index, offset) in RelrIterator::<Header>::new(LE, relr).enumerate() {
            if index >= most {
                warnings.push(Warning::new(
                    "DT_RELR",
                    "more relocations than slots; the rest is left out",
                ));
                break;
            }
            match segments.word(Address(offset)) {
                Some(target) => self.pointers.push((Address(offset), Address(target))),
                None => outside += 1,
            }
        }
        if outside > 0 {
            let what = format!("{outside} slots outside the file's loadable segments are left out");
            warnings.push(Warning::new("DT_RELR", what));
        }
    }
}

/// Sorts by slot and keeps what was found first for each.
fn sort<T>(slots: &mut Vec<(Address, T)>) {
    if !slots.is_sorted_by_key(|entry| entry.0) {
        slots.sort_by_key(|entry| entry.0);
    }
    slots.dedup_by_key(|entry| entry.0);
    slots.shrink_to_fit();
}

/// What a sorted list says of `slot`.
pub(crate) fn lookup<T: Copy>(slots: &[(Address, T)], slot: Address) -> Option<T> {
    let index = slots.binary_search_by_key(&slot, |entry| entry.0).ok()?;
    slots.get(index).map(|entry| entry.1)
}
