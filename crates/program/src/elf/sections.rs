//! The section headers: names for parts of the file. They may be missing, and a program runs just
//! as well without them or with wrong ones, so what is odd here costs only the section it is in. Only
//! sections that reach behind the end of the file are an error: the file has been cut or damaged. (Of
//! debug information that costs only itself.)

use std::ffi::CStr;

use object::elf;
use object::endian::LittleEndian as LE;
use object::read::ReadRef;
use object::read::elf::FileHeader as _;

use super::ElfError;
use super::header::Header;
use crate::{Address, Range, Warning};

/// Longest section name that is read; the specification knows none.
const LONGEST_NAME: usize = 4096;

/// One section header.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SectionHeader<'data> {
    pub(crate) name: &'data str,
    pub(crate) kind: elf::SectionType,
    pub(crate) flags: elf::SectionFlags,
    pub(crate) address: Address,
    pub(crate) offset: u64,
    pub(crate) size: u64,
    pub(crate) link: u32,
}

impl SectionHeader<'_> {
    /// Whether the section is part of the running program.
    pub(crate) fn is_allocated(&self) -> bool {
        self.flags.contains(elf::SHF_ALLOC)
    }

    /// Whether it says that it holds machine code.
    pub(crate) fn is_code(&self) -> bool {
        self.is_allocated() && self.flags.contains(elf::SHF_EXECINSTR)
    }

    /// Whether the file has its bytes.
    pub(crate) fn has_bytes(&self) -> bool {
        self.kind != elf::SHT_NOBITS
    }

    /// Its bytes in the file.
    pub(crate) fn bytes<'file>(&self, data: &'file [u8]) -> &'file [u8] {
        let bytes = data.read_bytes_at(self.offset, self.size);
        bytes.unwrap_or_default()
    }

    fn is_debug_information(&self) -> bool {
        let prefixes = [".debug", ".zdebug", ".gnu_debug"];
        !self.is_allocated() && prefixes.iter().any(|prefix| self.name.starts_with(prefix))
    }

    /// Refuses a section whose bytes are not all in the file, but for debug information.
    fn check_is_inside(&self, index: usize, data: &[u8]) -> Result<(), ElfError> {
        let has_none = !self.has_bytes() || self.kind == elf::SHT_NULL || self.size == 0;
        let end = data.len() as u64;
        let is_inside = || {
            self.offset
                .checked_add(self.size)
                .is_some_and(|to| to <= end)
        };
        if has_none || self.is_debug_information() || is_inside() {
            return Ok(());
        }
        Err(ElfError::Truncated {
            what: format!("section {index} {} (sh_offset)", self.name.escape_debug()),
            offset: self.offset,
            needed: self.size,
            end,
        })
    }

    /// Its addresses, when it is part of the running program.
    pub(crate) fn range(&self) -> Option<Range> {
        if self.is_allocated() {
            Range::sized(self.address, self.size)
        } else {
            None
        }
    }
}

/// All section headers, in the file's order.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sections<'data> {
    list: Vec<SectionHeader<'data>>,
}

impl<'data> Sections<'data> {
    /// Reads the section header table; a table that lies outside the file means that the file is
    /// cut off, because linkers write it last.
    pub(crate) fn read(
        header: &Header,
        data: &'data [u8],
        warnings: &mut Vec<Warning>,
    ) -> Result<Self, ElfError> {
        let headers = table(header, data, warnings)?;
        if headers.is_empty() {
            return Ok(Self::default());
        }
        let names = names(header, headers, data, warnings);
        let mut nameless = 0;
        let list: Vec<_> = headers
            .iter()
            .map(|section| {
                let name = name_at(names, section.sh_name.get(LE));
                nameless += usize::from(name.is_none());
                interpret(section, name.unwrap_or_default())
            })
            .collect();
        if nameless > 0 {
            warnings.push(Warning::new(
                "section headers",
                format!("{nameless} sections whose name (sh_name) cannot be read"),
            ));
        }
        for (index, section) in list.iter().enumerate() {
            section.check_is_inside(index, data)?;
        }
        Ok(Self { list })
    }

    /// All of them; empty when the file has none.
    pub(crate) fn all(&self) -> &[SectionHeader<'data>] {
        &self.list
    }

    /// The first section of that name.
    pub(crate) fn named(&self, name: &str) -> Option<&SectionHeader<'data>> {
        self.list.iter().find(|section| section.name == name)
    }

    /// The first section of that type, with its index.
    pub(crate) fn of_type(&self, kind: elf::SectionType) -> Option<(usize, &SectionHeader<'data>)> {
        self.list
            .iter()
            .enumerate()
            .find(|(_, section)| section.kind == kind)
    }

    /// Whether the file has names for code but not the code: a separate debug file.
    pub(crate) fn is_debug_file(&self) -> bool {
        let mut code = self
            .list
            .iter()
            .filter(|section| section.is_code())
            .peekable();
        code.peek().is_some() && code.all(|section| !section.has_bytes())
    }
}

fn interpret<'data>(section: &elf::SectionHeader64<LE>, name: &'data str) -> SectionHeader<'data> {
    SectionHeader {
        name,
        kind: section.sh_type.get(LE),
        flags: section.sh_flags.get(LE),
        address: Address(section.sh_addr.get(LE)),
        offset: section.sh_offset.get(LE),
        size: section.sh_size.get(LE),
        link: section.sh_link.get(LE),
    }
}

fn table<'data>(
    header: &Header,
    data: &'data [u8],
    warnings: &mut Vec<Warning>,
) -> Result<&'data [elf::SectionHeader64<LE>], ElfError> {
    let offset = header.e_shoff.get(LE);
    let size = size_of::<elf::SectionHeader64<LE>>() as u64;
    if offset == 0 {
        return Ok(&[]);
    }
    let entry_size = u64::from(header.e_shentsize.get(LE));
    if entry_size != size {
        let what =
            format!("e_shentsize is {entry_size:#x}, expected {size:#x}; sections are ignored");
        warnings.push(Warning::at("ELF header", 0x3a, what));
        return Ok(&[]);
    }
    let truncated = |count: u64| ElfError::Truncated {
        what: format!("the section header table (e_shoff, {count} entries)"),
        offset,
        needed: count.saturating_mul(size),
        end: data.len() as u64,
    };
    // With e_shnum zero the count is in the first header, which must exist then.
    let count = header
        .shnum(LE, data)
        .map_err(|_| truncated(header.e_shnum.get(LE).max(1).into()))?;
    data.read_slice_at(offset, count as usize)
        .map_err(|()| truncated(count.into()))
}

/// The string table with the sections' names; empty with a warning when there is none.
fn names<'data>(
    header: &Header,
    headers: &[elf::SectionHeader64<LE>],
    data: &'data [u8],
    warnings: &mut Vec<Warning>,
) -> &'data [u8] {
    let index = header.shstrndx(LE, data).ok();
    let table = index.and_then(|index| headers.get(index as usize));
    let Some(table) = table.filter(|table| table.sh_type.get(LE) == elf::SHT_STRTAB) else {
        warnings.push(Warning::at(
            "ELF header",
            0x3e,
            "e_shstrndx names no string table; sections have no names",
        ));
        return &[];
    };
    interpret(table, ".shstrtab").bytes(data)
}

fn name_at(names: &[u8], offset: u32) -> Option<&str> {
    let name = names.get(offset as usize..)?;
    let name = &name[..name.len().min(LONGEST_NAME)];
    CStr::from_bytes_until_nul(name).ok()?.to_str().ok()
}
