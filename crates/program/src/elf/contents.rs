//! The bytes of a section by name, decompressed where they are compressed (SHF_COMPRESSED, gABI
//! "Section Compression", with zlib or Zstandard; and the older .zdebug sections of GNU).

use std::borrow::Cow;

use object::elf;
use object::endian::LittleEndian as LE;
use object::read::elf::CompressionHeader as _;
use object::read::{CompressedData, CompressionFormat, ReadRef};

use super::Section;
use super::sections::{SectionHeader, Sections};

/// No section may say that it has more bytes than this once it is decompressed.
const MOST_BYTES: u64 = 1 << 34;

/// Deflate cannot make a thousand and thirty-three bytes of one. Zstandard can, but not in debug
/// information that anybody has written.
const MOST_RATIO: u64 = 1032;

/// Finds and decompresses a section. `Err` says why there is one that cannot be read.
pub(crate) fn section<'data>(
    data: &'data [u8],
    sections: &Sections<'data>,
    name: &str,
) -> Result<Option<Section<'data>>, &'static str> {
    if let Some(header) = sections.named(name).filter(|header| header.has_bytes()) {
        return read(data, header).map(Some);
    }
    let Some(rest) = name.strip_prefix(".debug_") else {
        return Ok(None);
    };
    match sections.named(&format!(".zdebug_{rest}")) {
        Some(header) => read_gnu(data, header).map(Some),
        None => Ok(None),
    }
}

fn raw<'data>(data: &'data [u8], header: &SectionHeader<'_>) -> Result<&'data [u8], &'static str> {
    data.read_bytes_at(header.offset, header.size)
        .map_err(|()| "its bytes (sh_offset, sh_size) reach behind the end of the file")
}

fn read<'data>(
    data: &'data [u8],
    header: &SectionHeader<'_>,
) -> Result<Section<'data>, &'static str> {
    let bytes = raw(data, header)?;
    if !header.flags.contains(elf::SHF_COMPRESSED) {
        return Ok(place(header, Cow::Borrowed(bytes)));
    }
    let start = size_of::<elf::CompressionHeader64<LE>>();
    let compression = bytes
        .read_at::<elf::CompressionHeader64<LE>>(0)
        .map_err(|()| "it is too short for a compression header (Elf64_Chdr)")?;
    let format = match compression.ch_type(LE) {
        elf::ELFCOMPRESS_ZLIB => CompressionFormat::Zlib,
        elf::ELFCOMPRESS_ZSTD => CompressionFormat::Zstandard,
        _ => return Err("its ch_type is neither ELFCOMPRESS_ZLIB nor ELFCOMPRESS_ZSTD"),
    };
    let contents = decompress(format, &bytes[start..], compression.ch_size(LE))?;
    Ok(place(header, contents))
}

/// "ZLIB", the size as eight big-endian bytes, then a zlib stream.
fn read_gnu<'data>(
    data: &'data [u8],
    header: &SectionHeader<'_>,
) -> Result<Section<'data>, &'static str> {
    let bytes = raw(data, header)?;
    let rest = bytes
        .strip_prefix(b"ZLIB")
        .ok_or("it does not start with \"ZLIB\"")?;
    let (size, rest) = rest.split_first_chunk::<8>().ok_or("its size is cut off")?;
    let contents = decompress(CompressionFormat::Zlib, rest, u64::from_be_bytes(*size))?;
    Ok(place(header, contents))
}

fn decompress(
    format: CompressionFormat,
    data: &[u8],
    uncompressed_size: u64,
) -> Result<Cow<'_, [u8]>, &'static str> {
    let possible = (data.len() as u64)
        .saturating_mul(MOST_RATIO)
        .min(MOST_BYTES);
    if uncompressed_size > possible {
        return Err("its uncompressed size (ch_size) is more than its bytes can hold");
    }
    let compressed = CompressedData {
        format,
        data,
        uncompressed_size,
    };
    compressed
        .decompress()
        .map_err(|_| "its compressed data is broken")
}

fn place<'data>(header: &SectionHeader<'_>, data: Cow<'data, [u8]>) -> Section<'data> {
    Section {
        address: header.address,
        data,
        file_offset: header.offset,
    }
}
