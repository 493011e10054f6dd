//! The model file's header: which sections there are, where they lie, and whether they are what
//! they were when they were written.

use std::ops::Range;
use std::sync::Arc;

use crate::Facts;
use rayon::prelude::*;
use xxhash_rust::xxh3::xxh3_64;
use zerocopy::little_endian::{U32, U64, U128};
use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes, KnownLayout, Unaligned};

/// Version of the file's layout.
pub const FORMAT_VERSION: u32 = 3;

/// Version of the analysis: to be raised with every change that could let it find anything else in
/// any program, for models of older analyses are not used again.
pub const ANALYSIS_VERSION: u32 = 26;

const MAGIC: [u8; 8] = *b"TOMOMODL";
/// Bytes of the longest build id that is kept (linkers write 8, 16 or 20).
pub(crate) const LONGEST_BUILD_ID: usize = 64;

/// Why bytes are not accepted as a model.
#[derive(Clone, Debug, thiserror::Error)]
pub enum ModelError {
    /// The file cannot be read.
    #[error("cannot be read: {0}")]
    Unreadable(Arc<std::io::Error>),
    /// It is something else.
    #[error("is no program model")]
    NoModel,
    /// It is of another time.
    #[error(
        "has format {format} of analysis {analysis}; this tomo reads format {FORMAT_VERSION} of analysis {ANALYSIS_VERSION}"
    )]
    Version {
        /// Format version found.
        format: u32,
        /// Analysis version found.
        analysis: u32,
    },
    /// It is not as long as it says.
    #[error("has {found} bytes instead of {expected}")]
    Length {
        /// What the header says.
        expected: u64,
        /// What there is.
        found: u64,
    },
    /// Bytes have changed.
    #[error("is damaged: the checksum of its {section} is wrong")]
    Checksum {
        /// Where.
        section: &'static str,
    },
    /// The checksums are right, but it makes no sense.
    #[error("is damaged: its {section} cannot be: {what}")]
    Malformed {
        /// Where.
        section: &'static str,
        /// What is wrong.
        what: &'static str,
    },
}

impl From<std::io::Error> for ModelError {
    fn from(error: std::io::Error) -> Self {
        Self::Unreadable(Arc::new(error))
    }
}

/// The parts of a model file, in their order in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Section {
    Summary,
    Warnings,
    Imports,
    Functions,
    Names,
    Ranges,
    RangeOrder,
    Spans,
    Blocks,
    Edges,
    Exits,
    Calls,
    IndirectJumps,
    Files,
    Lines,
}

impl Section {
    pub(crate) const ALL: [Self; 15] = [
        Self::Summary,
        Self::Warnings,
        Self::Imports,
        Self::Functions,
        Self::Names,
        Self::Ranges,
        Self::RangeOrder,
        Self::Spans,
        Self::Blocks,
        Self::Edges,
        Self::Exits,
        Self::Calls,
        Self::IndirectJumps,
        Self::Files,
        Self::Lines,
    ];

    /// Its name in error messages.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Summary => "summary",
            Self::Warnings => "warnings",
            Self::Imports => "imports",
            Self::Functions => "functions",
            Self::Names => "names",
            Self::Ranges => "ranges",
            Self::RangeOrder => "ranges by address",
            Self::Spans => "spans",
            Self::Blocks => "blocks",
            Self::Edges => "edges",
            Self::Exits => "exits",
            Self::Calls => "calls",
            Self::IndirectJumps => "indirect jumps",
            Self::Files => "files",
            Self::Lines => "lines",
        }
    }
}

/// Where a section lies, and the xxh3 hash of its bytes.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct SectionRecord {
    offset: U64,
    length: U64,
    checksum: U64,
}

/// What a model file starts with.
#[derive(Clone, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct Header {
    magic: [u8; 8],
    format: U32,
    analysis: U32,
    length: U64,
    fingerprint: U64,
    content: U128,
    build_id_length: U64,
    build_id: [u8; LONGEST_BUILD_ID],
    sections: [SectionRecord; Section::ALL.len()],
    /// Of all bytes of the header before it.
    checksum: U64,
}

const HEADER_BYTES: usize = size_of::<Header>();
const SUMMED_BYTES: usize = HEADER_BYTES - size_of::<U64>();

/// A header that has been checked: all sections lie inside the bytes.
#[derive(Clone, Debug)]
pub(crate) struct Layout {
    sections: [(Range<usize>, u64); Section::ALL.len()],
    build_id_length: usize,
    pub(crate) fingerprint: u64,
    pub(crate) content: u128,
}

impl Layout {
    /// Reads and checks the header of the model in `bytes`.
    pub(crate) fn read(bytes: &[u8]) -> Result<Self, ModelError> {
        if bytes.get(..MAGIC.len()) != Some(&MAGIC) {
            return Err(ModelError::NoModel);
        }
        let found = bytes.len() as u64;
        let Ok((header, _)) = Header::ref_from_prefix(bytes) else {
            return Err(ModelError::Length {
                expected: HEADER_BYTES as u64,
                found,
            });
        };
        let (format, analysis) = (header.format.get(), header.analysis.get());
        if (format, analysis) != (FORMAT_VERSION, ANALYSIS_VERSION) {
            return Err(ModelError::Version { format, analysis });
        }
        if xxh3_64(&bytes[..SUMMED_BYTES]) != header.checksum.get() {
            return Err(ModelError::Checksum { section: "header" });
        }
        if header.length.get() != found {
            return Err(ModelError::Length {
                expected: header.length.get(),
                found,
            });
        }
        header.layout(bytes.len())
    }

    /// The bytes of `section`, unchecked.
    pub(crate) fn bytes<'m>(&self, bytes: &'m [u8], section: Section) -> &'m [u8] {
        bytes
            .get(self.sections[section as usize].0.clone())
            .unwrap_or_default()
    }

    /// The bytes of `section`, if they are as they were written.
    pub(crate) fn verified<'m>(
        &self,
        bytes: &'m [u8],
        section: Section,
    ) -> Result<&'m [u8], ModelError> {
        let content = self.bytes(bytes, section);
        if xxh3_64(content) != self.sections[section as usize].1 {
            return Err(ModelError::Checksum {
                section: section.name(),
            });
        }
        Ok(content)
    }

    /// Checks every section, on all processors.
    pub(crate) fn verify(&self, bytes: &[u8]) -> Result<(), ModelError> {
        Section::ALL
            .par_iter()
            .try_for_each(|section| self.verified(bytes, *section).map(|_| ()))
    }

    /// The build id in the header.
    pub(crate) fn build_id<'m>(&self, bytes: &'m [u8]) -> Option<&'m [u8]> {
        let (header, _) = Header::ref_from_prefix(bytes).ok()?;
        header
            .build_id
            .get(..self.build_id_length)
            .filter(|id| !id.is_empty())
    }
}

impl Header {
    /// Where the sections lie, in a model of `length` bytes.
    fn layout(&self, length: usize) -> Result<Layout, ModelError> {
        let malformed = |what| ModelError::Malformed {
            section: "header",
            what,
        };
        let mut sections = [const { (0..0, 0) }; Section::ALL.len()];
        for (place, record) in sections.iter_mut().zip(&self.sections) {
            let start = usize::try_from(record.offset.get()).ok();
            let size = usize::try_from(record.length.get()).ok();
            let end = start
                .zip(size)
                .and_then(|(start, size)| start.checked_add(size));
            let (Some(start), Some(end)) = (start, end.filter(|end| *end <= length)) else {
                return Err(malformed("a section lies outside the file"));
            };
            *place = (start..end, record.checksum.get());
        }
        let build_id_length = usize::try_from(self.build_id_length.get())
            .ok()
            .filter(|length| *length <= LONGEST_BUILD_ID)
            .ok_or(malformed("the build id is too long"))?;
        Ok(Layout {
            sections,
            build_id_length,
            fingerprint: self.fingerprint.get(),
            content: self.content.get(),
        })
    }
}

/// Puts sections behind each other and a header before them.
pub(crate) struct Writer {
    bytes: Vec<u8>,
    header: Header,
}

impl Writer {
    /// Starts a model of the program of these facts whose sections will have `content` bytes in all.
    pub(crate) fn new(content: usize, facts: &Facts) -> Self {
        let mut header = Header::new_zeroed();
        header.magic = MAGIC;
        header.format = FORMAT_VERSION.into();
        header.analysis = ANALYSIS_VERSION.into();
        header.fingerprint = facts.fingerprint.into();
        header.content = facts.content.into();
        if let Some(id) = facts
            .build_id
            .as_deref()
            .filter(|id| id.len() <= LONGEST_BUILD_ID)
        {
            header.build_id[..id.len()].copy_from_slice(id);
            header.build_id_length = (id.len() as u64).into();
        }
        let mut bytes = Vec::with_capacity(HEADER_BYTES + content);
        bytes.resize(HEADER_BYTES, 0);
        Self { bytes, header }
    }

    /// Appends `section`.
    pub(crate) fn section(&mut self, section: Section, content: &[u8]) {
        self.header.sections[section as usize] = SectionRecord {
            offset: (self.bytes.len() as u64).into(),
            length: (content.len() as u64).into(),
            checksum: xxh3_64(content).into(),
        };
        self.bytes.extend_from_slice(content);
    }

    /// The finished model.
    pub(crate) fn finish(mut self) -> (Vec<u8>, Layout) {
        self.header.length = (self.bytes.len() as u64).into();
        self.header.checksum = xxh3_64(&self.header.as_bytes()[..SUMMED_BYTES]).into();
        self.bytes[..HEADER_BYTES].copy_from_slice(self.header.as_bytes());
        let layout = self
            .header
            .layout(self.bytes.len())
            .unwrap_or_else(|_| unreachable!("just laid out"));
        (self.bytes, layout)
    }
}
