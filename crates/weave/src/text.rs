//! The text of a module: the file's bytes of its executable segments, in whole pages, as the loader
//! maps them.
//!
//! The first page of a segment also holds the bytes of the file that precede it, the last one those
//! that follow; they are part of what is mapped, so they are part of the text. Source: System V ABI,
//! "Program Loading"; its AMD64 supplement has pages of 4096 bytes as the smallest.
//!
//! What an image cannot stand in for is refused here: text that the loader or the program itself
//! may write, segments that share pages, memory behind the file's bytes.

use object::elf;
use object::endian::LittleEndian as LE;
use object::read::elf::{Dyn, FileHeader, ProgramHeader};
use tomo_program::Address;
use tomo_wire::image::{Image, MOST_REGIONS};
use tomo_wire::{PAGE, checksum};

use crate::WeaveError;

type Segment = elf::ProgramHeader64<LE>;

/// An executable segment.
#[derive(Debug)]
pub(crate) struct TextRegion {
    /// Where its first page starts, as the module states it.
    pub(crate) address: u64,
    /// Its bytes, whole pages.
    pub(crate) bytes: Vec<u8>,
}

impl TextRegion {
    pub(crate) fn end(&self) -> u64 {
        self.address + self.bytes.len() as u64
    }
}

/// All executable segments of a module, by address.
#[derive(Debug)]
pub(crate) struct Text {
    pub(crate) regions: Vec<TextRegion>,
    /// Where the module's first segment starts, executable or not.
    pub(crate) lowest: u64,
    /// Where its last segment ends in memory.
    pub(crate) highest: u64,
}

impl Text {
    /// The text from `address` on as the file `image` with this header has it.
    pub(crate) fn patched<'i>(
        &self,
        (header, image): (&Image, &'i [u8]),
        address: Address,
    ) -> Option<&'i [u8]> {
        let (region, offset) = self.place(address.0)?;
        let region = header.regions().get(region)?;
        let start = usize::try_from(region.offset.get()).ok()?;
        let end = start + region.length.get() as usize;
        image.get(start..end)?.get(offset..)
    }

    /// Whether an image was made of just this text.
    pub(crate) fn is_of(&self, image: &Image) -> bool {
        let said = image.regions();
        said.len() == self.regions.len()
            && said.iter().zip(&self.regions).all(|(said, is)| {
                said.address.get() == is.address
                    && said.length.get() == is.bytes.len() as u64
                    && said.original.get() == checksum(&is.bytes)
            })
    }

    /// Reads the executable segments of the ELF file `data`.
    pub(crate) fn read(data: &[u8]) -> Result<Self, WeaveError> {
        let headers = |_| WeaveError::Headers("they lie outside of the file");
        let header = elf::FileHeader64::<LE>::parse(data).map_err(headers)?;
        let segments = header.program_headers(LE, data).map_err(headers)?;
        if has_text_relocations(segments, data) {
            return Err(WeaveError::RelocatedText);
        }
        let loads: Vec<&Segment> = segments
            .iter()
            .filter(|segment| segment.p_type.get(LE) == elf::PT_LOAD && segment.p_memsz.get(LE) > 0)
            .collect();
        let lowest = loads.iter().map(|load| load.p_vaddr.get(LE)).min();
        let end = |load: &&Segment| load.p_vaddr.get(LE).saturating_add(load.p_memsz.get(LE));
        let highest = loads.iter().map(end).max();
        let executable = |load: &&&Segment| load.p_flags.get(LE).contains(elf::PF_X);
        let chosen: Vec<&Segment> = loads.iter().filter(executable).copied().collect();
        match chosen.len() {
            0 => return Err(WeaveError::NoText),
            count if count > MOST_REGIONS => return Err(WeaveError::TooManySegments(count)),
            _ => {}
        }
        let mut regions = Vec::with_capacity(chosen.len());
        for segment in chosen {
            let shared = loads
                .iter()
                .any(|other| !std::ptr::eq(*other, segment) && share_pages(other, segment));
            regions.push(region(segment, shared, data)?);
        }
        regions.sort_by_key(|region| region.address);
        Ok(Self {
            regions,
            lowest: lowest.unwrap_or(0),
            highest: highest.unwrap_or(0),
        })
    }

    /// Where the first region starts.
    pub(crate) fn origin(&self) -> u64 {
        self.regions.first().map_or(0, |region| region.address)
    }

    /// Which region has `address`, and how far behind that region's start it is.
    pub(crate) fn place(&self, address: u64) -> Option<(usize, usize)> {
        let within = |region: &TextRegion| (region.address..region.end()).contains(&address);
        let index = self.regions.iter().position(within)?;
        let offset = usize::try_from(address - self.regions[index].address).ok()?;
        Some((index, offset))
    }

    /// The bytes from `address` to the end of its region.
    pub(crate) fn from(&self, address: Address) -> Option<&[u8]> {
        let (region, offset) = self.place(address.0)?;
        self.regions[region].bytes.get(offset..)
    }

    /// The `N` bytes at `address`, or as many as there are to the end of its region, with zeros behind them.
    pub(crate) fn head<const N: usize>(&self, address: Address) -> [u8; N] {
        let mut head = [0; N];
        let bytes = self.from(address).unwrap_or_default();
        head.iter_mut()
            .zip(bytes)
            .for_each(|(to, byte)| *to = *byte);
        head
    }

    /// The `N` bytes at `address`.
    pub(crate) fn chunk<const N: usize>(&self, address: Address) -> Option<[u8; N]> {
        self.from(address)?.first_chunk().copied()
    }
}

/// First and last page of a segment's memory.
fn page_range(segment: &Segment) -> (u64, u64) {
    let start = segment.p_vaddr.get(LE);
    let end = start.saturating_add(segment.p_memsz.get(LE));
    (start / PAGE, end.saturating_sub(1) / PAGE)
}

fn share_pages(one: &Segment, other: &Segment) -> bool {
    let (one, other) = (page_range(one), page_range(other));
    one.0 <= other.1 && other.0 <= one.1
}

/// Whether the loader is told to write into segments that are not writable.
fn has_text_relocations(segments: &[Segment], data: &[u8]) -> bool {
    let tables = segments
        .iter()
        .filter_map(|segment| segment.dynamic(LE, data).ok().flatten());
    tables.flatten().any(|entry| {
        let value = entry.d_val(LE);
        entry.d_tag(LE) == elf::DT_TEXTREL
            || (entry.d_tag(LE) == elf::DT_FLAGS && value & elf::DF_TEXTREL.0 != 0)
    })
}

fn region(segment: &Segment, shared: bool, data: &[u8]) -> Result<TextRegion, WeaveError> {
    let (start, size) = (segment.p_vaddr.get(LE), segment.p_memsz.get(LE));
    let offset = segment.p_offset.get(LE);
    let refuse = |what| {
        Err(WeaveError::Layout {
            address: start,
            what,
        })
    };
    if segment.p_flags.get(LE).contains(elf::PF_W) {
        return Err(WeaveError::WritableText { address: start });
    }
    if shared {
        return refuse("shares a page with another segment");
    }
    if segment.p_filesz.get(LE) != size {
        return refuse("has more or less memory than bytes in the file");
    }
    if start % PAGE != offset % PAGE {
        return refuse("starts elsewhere in its page than in the file's");
    }
    let first = offset - offset % PAGE;
    let last = offset.checked_add(size).and_then(tomo_wire::pages);
    let Some(last) = last.filter(|_| start.checked_add(size + PAGE).is_some()) else {
        return refuse("passes the end of the address space");
    };
    let Some(bytes) = usize::try_from(first)
        .ok()
        .and_then(|first| data.get(first..))
        .filter(|bytes| bytes.len() as u64 >= offset % PAGE + size)
    else {
        return refuse("passes the end of the file");
    };
    let length = (last - first) as usize;
    let mut bytes = bytes[..bytes.len().min(length)].to_vec();
    // The loader fills the last page of a file that ends within it with zeros.
    bytes.resize(length, 0);
    Ok(TextRegion {
        address: start - start % PAGE,
        bytes,
    })
}
