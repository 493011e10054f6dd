//! The debug sections of a file, decompressed.
//!
//! Compressed sections come in two kinds: `SHF_COMPRESSED` (System V ABI, chapter 4) with zlib or
//! zstd, and the older `.zdebug_*` of GNU tools. The size that a compressed section states is believed
//! only as far as its format could reach it from the bytes that are there, so that a small file cannot
//! ask for any amount of memory.

use super::line_program::{Row, Sink};
use super::shared;
use crate::elf::Binary;
use crate::{Warning, go};
use gimli::{LittleEndian, SectionId};
use object::elf::{self, FileHeader64, SectionHeader64};
use object::read::elf::{CompressionHeader, FileHeader, SectionHeader};
use object::read::{CompressedData, CompressionFormat};
use rayon::prelude::*;
use std::borrow::Cow;
use std::path::{Path, PathBuf};

/// zlib's deflate makes at most 1032 bytes of one (two bits for 258 bytes).
const ZLIB_RATIO: u64 = 1032;
/// What zstd can make of one byte has no useful limit; this is far more than debug sections reach.
const ZSTD_RATIO: u64 = 256;

/// The sections that are read.
const WANTED: [SectionId; 9] = [
    SectionId::DebugInfo,
    SectionId::DebugAbbrev,
    SectionId::DebugStr,
    SectionId::DebugLineStr,
    SectionId::DebugStrOffsets,
    SectionId::DebugAddr,
    SectionId::DebugRanges,
    SectionId::DebugRngLists,
    SectionId::DebugLine,
];

pub(super) type Slice<'a> = gimli::EndianSlice<'a, LittleEndian>;

/// The debug sections of one file: the program itself, or a separate file with its debug information.
#[derive(Clone, Debug, Default)]
pub struct Sections<'data> {
    sections: [Cow<'data, [u8]>; WANTED.len()],
    /// `.debug_str` of the file that it shares with others.
    shared: Cow<'data, [u8]>,
    /// That file, if there are entries in it.
    unread: Option<PathBuf>,
    /// What stands in for a line table.
    go: Option<go::Table<'data>>,
    warnings: Vec<Warning>,
}

impl<'data> Sections<'data> {
    /// Takes the sections from `load`, which gives the decompressed contents of the section of a name.
    #[must_use]
    pub fn load(mut load: impl FnMut(&'static str) -> Option<Cow<'data, [u8]>>) -> Self {
        let sections = WANTED.map(|id| load(id.name()).unwrap_or_default());
        Self {
            sections,
            ..Self::default()
        }
    }

    /// Takes the sections from an ELF file (64 bits, little endian). A file without section headers,
    /// or one whose headers cannot be read, has no debug sections.
    #[must_use]
    pub fn read(elf: &'data [u8]) -> Self {
        let (sections, warnings) = named(elf, WANTED.map(|id| id.name()));
        Self {
            sections,
            warnings,
            ..Self::default()
        }
    }

    /// The same of the file at `path`, with the texts that it shares with other files (in `shared`).
    #[must_use]
    pub fn read_at(elf: &'data [u8], path: &Path) -> Self {
        let mut all = Self::read(elf);
        match shared::of(elf, path) {
            Ok(shared) => {
                all.shared = Cow::Owned(shared.texts);
                all.unread = shared.entries;
            }
            Err(warning) => all.warnings.push(warning),
        }
        all
    }

    /// The same, and what Go's linker states of lines in the table of functions of the same file, if there is no debug
    /// information.
    #[must_use]
    pub fn or_of_go(mut self, elf: &'data [u8]) -> Self {
        if self.is_empty() {
            self.go = Binary::parse(elf).ok().and_then(|it| go::Table::find(&it));
        }
        self
    }

    /// Whether there is any debug information.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        let is_empty = |id| self.get(id).is_empty();
        is_empty(SectionId::DebugInfo) && is_empty(SectionId::DebugLine)
    }

    /// What could not be read.
    #[must_use]
    pub fn warnings(&self) -> &[Warning] {
        &self.warnings
    }

    /// The file that it shares with others, if there are entries in it: these are not read.
    #[must_use]
    pub fn unread(&self) -> Option<&Path> {
        self.unread.as_deref()
    }

    pub(super) fn has_lines(&self) -> bool {
        !self.get(SectionId::DebugLine).is_empty() || self.go.is_some()
    }

    /// How long the table is in which Go's linker states lines; 0 where none is read.
    pub(super) fn bytes_of_go(&self) -> usize {
        self.go.as_ref().map_or(0, go::Table::size)
    }

    /// Gives `sink` the lines that Go's linker states; and gives back what names its files.
    pub(super) fn drive_go<S: Sink>(&self, mut sink: S) -> Option<(S, impl Fn(u64) -> String)> {
        let table = self.go.as_ref()?;
        table.each_line(|begin| {
            let row = begin.place.map(|(file, line)| Row {
                file,
                line,
                is_statement: true,
            });
            sink.row(begin.address, row);
        });
        Some((sink, |file| table.path(file).unwrap_or_default()))
    }

    pub(super) fn get(&self, id: SectionId) -> &[u8] {
        WANTED
            .iter()
            .position(|&wanted| wanted == id)
            .map_or(&[], |index| &self.sections[index])
    }

    /// All sections as `gimli` wants them.
    pub(super) fn dwarf(&self) -> gimli::Dwarf<Slice<'_>> {
        let load = |id| Ok::<_, gimli::Error>(Slice::new(self.get(id), LittleEndian));
        let mut dwarf = gimli::Dwarf::load(load).unwrap_or_default();
        dwarf.set_sup(gimli::Dwarf {
            debug_str: gimli::DebugStr::from(Slice::new(&self.shared, LittleEndian)),
            ..gimli::Dwarf::default()
        });
        dwarf
    }
}

type Header = SectionHeader64<object::LittleEndian>;

const ENDIAN: object::LittleEndian = object::LittleEndian;

/// The sections of an ELF file that have these names, decompressed; empty where there is none. And what could not be read.
pub(super) fn named<'data, const N: usize>(
    elf: &'data [u8],
    names: [&'static str; N],
) -> ([Cow<'data, [u8]>; N], Vec<Warning>) {
    let mut all: [Cow<'data, [u8]>; N] = std::array::from_fn(|_| Cow::default());
    let found = match find(elf, names) {
        Ok(found) => found,
        Err(error) => {
            return (
                all,
                vec![Warning::new("section headers", error.to_string())],
            );
        }
    };
    let read: Vec<_> = found
        .par_iter()
        .map(|found| found.map(|it| contents(elf, it)))
        .collect();
    let mut warnings = Vec::new();
    for ((contents, name), section) in read.into_iter().zip(names).zip(&mut all) {
        match contents {
            Some(Ok(data)) => *section = data,
            Some(Err(error)) => warnings.push(Warning::new(name, error)),
            None => {}
        }
    }
    (all, warnings)
}

/// The headers of the wanted sections, and whether the name says that it is compressed the old way.
fn find<'data, const N: usize>(
    elf: &'data [u8],
    names: [&str; N],
) -> object::read::Result<[Option<(&'data Header, bool)>; N]> {
    let mut found = [None; N];
    let table = FileHeader64::<object::LittleEndian>::parse(elf)?.sections(ENDIAN, elf)?;
    for section in table.iter() {
        let Ok(name) = table.section_name(ENDIAN, section) else {
            continue;
        };
        if let Some(index) = names.iter().position(|wanted| is_named(name, wanted)) {
            found[index] = Some((section, name.starts_with(b".z")));
        }
    }
    Ok(found)
}

/// Whether a section is called `.debug_x`, or `.zdebug_x` as the older compressed ones are.
fn is_named(name: &[u8], wanted: &str) -> bool {
    let wanted = wanted.as_bytes();
    name == wanted || (name.starts_with(b".z") && name[2..] == wanted[1..])
}

fn contents<'data>(
    elf: &'data [u8],
    (section, old): (&Header, bool),
) -> Result<Cow<'data, [u8]>, String> {
    let compressed = section
        .compression(ENDIAN, elf)
        .map_err(|error| error.to_string())?;
    if let Some((header, offset, size)) = compressed {
        let data = cut(elf, offset, size).ok_or("lies outside the file")?;
        return decompress(data, header.ch_type(ENDIAN), header.ch_size(ENDIAN));
    }
    let data = section
        .data(ENDIAN, elf)
        .map_err(|error| error.to_string())?;
    match data
        .strip_prefix(b"ZLIB")
        .and_then(<[u8]>::split_first_chunk::<8>)
    {
        Some((size, rest)) if old => {
            decompress(rest, elf::ELFCOMPRESS_ZLIB, u64::from_be_bytes(*size))
        }
        _ => Ok(Cow::Borrowed(data)),
    }
}

fn cut(bytes: &[u8], offset: u64, size: u64) -> Option<&[u8]> {
    let start = usize::try_from(offset).ok()?;
    bytes.get(start..start.checked_add(usize::try_from(size).ok()?)?)
}

fn decompress(
    data: &[u8],
    kind: elf::CompressionType,
    uncompressed_size: u64,
) -> Result<Cow<'_, [u8]>, String> {
    let (format, ratio) = match kind {
        elf::ELFCOMPRESS_ZLIB => (CompressionFormat::Zlib, ZLIB_RATIO),
        elf::ELFCOMPRESS_ZSTD => (CompressionFormat::Zstandard, ZSTD_RATIO),
        _ => return Err("compressed in an unknown way".to_owned()),
    };
    if uncompressed_size > (data.len() as u64).saturating_mul(ratio) {
        return Err(format!(
            "{} bytes cannot hold {uncompressed_size}",
            data.len()
        ));
    }
    let data = CompressedData {
        format,
        data,
        uncompressed_size,
    };
    data.decompress().map_err(|error| error.to_string())
}
