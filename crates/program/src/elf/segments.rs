//! The loadable segments: the one truth about which bytes lie at which address at run time.
//!
//! Section headers are only names for parts of them; wherever both speak, the segments win,
//! because the loader reads nothing else. Lookup is a binary search over disjoint segments.

use object::elf;
use object::endian::LittleEndian as LE;
use object::read::ReadRef;

use super::ElfError;
use crate::{Address, Range, Warning};

/// One PT_LOAD.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Load<'data> {
    /// Its bytes in memory; what exceeds `bytes` is zero at start.
    pub(crate) range: Range,
    /// Its bytes in the file.
    pub(crate) bytes: &'data [u8],
    /// Where those are in the file.
    pub(crate) file_offset: u64,
    pub(crate) writable: bool,
    pub(crate) executable: bool,
}

impl<'data> Load<'data> {
    /// The file's bytes from `address` to the end of the segment's file part.
    pub(crate) fn from(&self, address: Address) -> Option<&'data [u8]> {
        let offset = usize::try_from(address.offset_from(self.range.start())?).ok()?;
        self.bytes.get(offset..).filter(|bytes| !bytes.is_empty())
    }

    /// The addresses that have bytes in the file.
    pub(crate) fn file_range(&self) -> Range {
        Range::sized(self.range.start(), self.bytes.len() as u64).unwrap_or(self.range)
    }
}

/// All PT_LOAD, by address and disjoint, and the headers of everything else.
#[derive(Clone, Debug)]
pub(crate) struct Segments<'data> {
    loads: Vec<Load<'data>>,
    headers: &'data [elf::ProgramHeader64<LE>],
}

impl<'data> Segments<'data> {
    /// Reads the program headers' PT_LOAD entries.
    ///
    /// A loadable segment that reaches behind the end of the file is an error: the loader would
    /// map it and the program would die of SIGBUS, so the file is cut off.
    pub(crate) fn read(
        headers: &'data [elf::ProgramHeader64<LE>],
        data: &'data [u8],
        warnings: &mut Vec<Warning>,
    ) -> Result<Self, ElfError> {
        let mut loads = Vec::new();
        for (index, header) in headers.iter().enumerate() {
            if header.p_type.get(LE) == elf::PT_LOAD {
                loads.extend(load(index, header, data, warnings)?);
            }
        }
        loads.sort_by_key(|load| load.range.start());
        make_disjoint(&mut loads, warnings);
        Ok(Self { loads, headers })
    }

    /// The loadable segments, by address, disjoint.
    pub(crate) fn loads(&self) -> &[Load<'data>] {
        &self.loads
    }

    /// The program headers of one type, with their index.
    pub(crate) fn of_type(
        &self,
        p_type: elf::ProgramType,
    ) -> impl Iterator<Item = (usize, &'data elf::ProgramHeader64<LE>)> + use<'data> {
        let headers = self.headers.iter().enumerate();
        headers.filter(move |(_, header)| header.p_type.get(LE) == p_type)
    }

    /// The loadable segment that has `address` in memory.
    pub(crate) fn load_at(&self, address: Address) -> Option<&Load<'data>> {
        let after = self
            .loads
            .partition_point(|load| load.range.start() <= address);
        let load = self.loads.get(after.checked_sub(1)?)?;
        load.range.contains(address).then_some(load)
    }

    /// The file's bytes from `address` to the end of its segment's file part.
    pub(crate) fn from(&self, address: Address) -> Option<&'data [u8]> {
        self.load_at(address)?.from(address)
    }

    /// The file's bytes from `address`, at most `size` of them.
    pub(crate) fn at_most(&self, address: Address, size: u64) -> Option<&'data [u8]> {
        let bytes = self.from(address)?;
        Some(&bytes[..bytes.len().min(usize::try_from(size).unwrap_or(usize::MAX))])
    }

    /// The eight bytes at `address` as a number.
    pub(crate) fn word(&self, address: Address) -> Option<u64> {
        let bytes = self.from(address)?.first_chunk::<8>()?;
        Some(u64::from_le_bytes(*bytes))
    }
}

fn load<'data>(
    index: usize,
    header: &elf::ProgramHeader64<LE>,
    data: &'data [u8],
    warnings: &mut Vec<Warning>,
) -> Result<Option<Load<'data>>, ElfError> {
    let (offset, size) = (header.p_offset.get(LE), header.p_filesz.get(LE));
    let bytes = data
        .read_bytes_at(offset, size)
        .map_err(|()| ElfError::Truncated {
            what: format!("loadable segment {index} (p_offset, p_filesz)"),
            offset,
            needed: size,
            end: data.len() as u64,
        })?;
    let (start, memory) = (Address(header.p_vaddr.get(LE)), header.p_memsz.get(LE));
    let Some(range) = Range::sized(start, memory) else {
        warnings.push(place(
            index,
            "p_vaddr + p_memsz passes the end of the address space",
        ));
        return Ok(None);
    };
    if size > memory {
        warnings.push(place(index, "p_filesz is greater than p_memsz"));
    }
    let inside = bytes
        .len()
        .min(usize::try_from(memory).unwrap_or(usize::MAX));
    let flags = header.p_flags.get(LE);
    Ok(Some(Load {
        range,
        bytes: &bytes[..inside],
        file_offset: offset,
        writable: flags.contains(elf::PF_W),
        executable: flags.contains(elf::PF_X),
    }))
}

fn place(index: usize, what: &'static str) -> Warning {
    Warning::new(format!("loadable segment {index}"), what)
}

/// Cuts each segment where the next one begins, as mapping one over the other would.
fn make_disjoint(loads: &mut Vec<Load<'_>>, warnings: &mut Vec<Warning>) {
    for index in 1..loads.len() {
        let limit = loads[index].range.start();
        let before = &mut loads[index - 1];
        if before.range.end() > limit {
            warnings.push(Warning::new(
                "program headers",
                format!("loadable segments overlap at {limit}; the earlier one is cut off there"),
            ));
            before.range = Range::new(before.range.start(), limit).unwrap_or_default();
            let size = usize::try_from(before.range.size()).unwrap_or(usize::MAX);
            before.bytes = &before.bytes[..before.bytes.len().min(size)];
        }
    }
    loads.retain(|load| !load.range.is_empty());
}
