//! What the comparison needs of an ELF file: the maps, the code, and names for the report.
//!
//! A linked file has one `.llvm_bb_addr_map` (the linker joins the objects' sections of that name),
//! already relocated: the section is not loaded, so no run-time relocation can touch it. A relocatable
//! object may have several, one a function section. In it the base addresses are still zero, so only
//! linked files are accepted. A linker may leave behind the record of a function that it dropped (GNU
//! ld drops them with their function, for the sections are linked to it by `SHF_LINK_ORDER`); such a
//! record's base has no code and it is dropped here, but counted. Identical functions that the
//! linker folded into one have one record each: equal ones are kept once.

use std::{collections::BTreeMap, fs, path::Path};

use anyhow::{Context, Result, ensure};
use iced_x86::{Decoder, DecoderOptions, Mnemonic};
use object::{Object, ObjectKind, ObjectSection, ObjectSymbol, SectionKind, SymbolKind};

use super::decode::{MapFunction, decode};

/// A linked program with its maps.
#[derive(Clone, Debug, Default)]
pub struct Program {
    /// Functions by the compiler's word, by address.
    pub functions: Vec<MapFunction>,
    /// Records whose function has no code in this file.
    pub dangling: usize,
    /// Records that repeat another one.
    pub repeated: usize,
    code: BTreeMap<u64, Vec<u8>>,
    names: BTreeMap<u64, String>,
}

impl Program {
    /// Reads a linked file.
    ///
    /// # Errors
    /// If it cannot be read, is no linked ELF file, or its map is missing or broken.
    pub fn read(path: &Path) -> Result<Self> {
        let data = fs::read(path).with_context(|| format!("reading {}", path.display()))?;
        Self::parse(&data).with_context(|| format!("in {}", path.display()))
    }

    /// Reads a linked file's bytes.
    ///
    /// # Errors
    /// As for [`Self::read`].
    pub fn parse(data: &[u8]) -> Result<Self> {
        let file = object::File::parse(data)?;
        ensure!(
            file.kind() != ObjectKind::Relocatable,
            "not linked: its map has no addresses yet"
        );
        let mut program = Self {
            code: code(&file)?,
            names: names(&file),
            ..Self::default()
        };
        let maps = file
            .sections()
            .filter(|section| section.name() == Ok(".llvm_bb_addr_map"));
        let mut functions = Vec::new();
        for section in maps {
            functions.extend(decode(section.data()?)?);
        }
        ensure!(!functions.is_empty(), "no basic-block address map");
        program.keep(functions);
        Ok(program)
    }

    /// A program made by hand: code by address, no names.
    #[must_use]
    pub fn from_parts(functions: Vec<MapFunction>, code: BTreeMap<u64, Vec<u8>>) -> Self {
        let mut program = Self {
            code,
            ..Self::default()
        };
        program.keep(functions);
        program
    }

    fn keep(&mut self, mut functions: Vec<MapFunction>) {
        let stated = functions.len();
        functions.retain(|function| self.code_at(function.entry).is_some());
        self.dangling = stated - functions.len();
        functions.sort_by_key(|function| function.entry);
        functions.dedup();
        self.repeated = stated - self.dangling - functions.len();
        self.functions = functions;
    }

    /// The bytes from `address` to the end of its section, if it is code.
    #[must_use]
    pub fn code_at(&self, address: u64) -> Option<&[u8]> {
        let (start, bytes) = self.code.range(..=address).next_back()?;
        bytes
            .get(usize::try_from(address - start).ok()?..)
            .filter(|rest| !rest.is_empty())
    }

    /// How many bytes of the code from `start` to `end` are instructions that do nothing, before any other.
    #[must_use]
    pub fn padding(&self, start: u64, end: u64) -> u64 {
        let size = usize::try_from(end.saturating_sub(start)).ok();
        let bytes = self
            .code_at(start)
            .zip(size)
            .and_then(|(bytes, size)| bytes.get(..size));
        let mut decoder =
            Decoder::with_ip(64, bytes.unwrap_or_default(), start, DecoderOptions::NONE);
        let nops = decoder
            .iter()
            .take_while(|instruction| instruction.mnemonic() == Mnemonic::Nop);
        nops.map(|instruction| instruction.len() as u64).sum()
    }

    /// A symbol's name, or the address where there is none.
    #[must_use]
    pub fn name(&self, address: u64) -> String {
        self.names
            .get(&address)
            .cloned()
            .unwrap_or_else(|| format!("{address:#x}"))
    }
}

fn code(file: &object::File<'_>) -> Result<BTreeMap<u64, Vec<u8>>> {
    let sections = file
        .sections()
        .filter(|section| section.kind() == SectionKind::Text);
    sections
        .map(|section| Ok((section.address(), section.data()?.to_vec())))
        .collect()
}

fn names(file: &object::File<'_>) -> BTreeMap<u64, String> {
    let symbols = file
        .symbols()
        .filter(|symbol| symbol.kind() == SymbolKind::Text);
    symbols
        .filter_map(|symbol| Some((symbol.address(), symbol.name().ok()?.to_owned())))
        .collect()
}
