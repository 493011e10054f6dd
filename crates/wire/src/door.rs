//! The checks that every format shares: magic, version, length, checksum.

use core::fmt;
use core::mem::size_of;

use xxhash_rust::xxh64::xxh64;
use zerocopy::little_endian::{U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// Hash of `bytes` (xxh64 with seed 0). Tells damage, not malice.
#[must_use]
pub fn checksum(bytes: &[u8]) -> u64 {
    xxh64(bytes, 0)
}

/// Why bytes were not taken for what they should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// They do not start with the format's magic number.
    Foreign,
    /// They were written in another version of the format.
    Version {
        /// The version they state.
        found: u32,
        /// The version that this program knows.
        known: u32,
    },
    /// They end before what their header promises.
    CutShort {
        /// Bytes there are.
        length: u64,
        /// Bytes there should be.
        promised: u64,
    },
    /// A checksum does not match what it covers.
    Damaged,
    /// A number in them contradicts another.
    Inconsistent,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Foreign => f.write_str("it is no file of this kind that tomo has made"),
            Self::Version { found, known } if found > known => write!(
                f,
                "it has format version {found}, and this program knows version {known}: a newer tomo has made it, and can read it"
            ),
            Self::Version { found, known } => write!(
                f,
                "it has format version {found}, and this program knows version {known}: make it anew with this version of tomo"
            ),
            Self::CutShort { length, promised } => {
                write!(f, "it is cut short: {length} of {promised} bytes")
            }
            Self::Damaged => f.write_str("it is damaged: a checksum does not match"),
            Self::Inconsistent => f.write_str("it is damaged: it contradicts itself"),
        }
    }
}

impl core::error::Error for Refusal {}

/// Whether a document of the schema `stated` (`tomo.run/1`) can be read by who knows the schema `known`.
///
/// # Errors
/// Where it is another version, or something else.
pub fn of_schema(stated: &str, known: &str) -> Result<(), Refusal> {
    fn parts(schema: &str) -> Option<(&str, u32)> {
        let (kind, version) = schema.rsplit_once('/')?;
        Some((kind, version.parse().ok()?))
    }
    match (parts(stated), parts(known)) {
        (Some(stated), Some(known)) if stated == known => Ok(()),
        (Some((stated, found)), Some((kind, known))) if stated == kind => {
            Err(Refusal::Version { found, known })
        }
        _ => Err(Refusal::Foreign),
    }
}

/// What every header starts with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub(crate) struct Preamble {
    magic: [u8; 8],
    version: [u8; 4],
    /// Bytes of the header, this included.
    header: [u8; 4],
    /// Checksum of the header from here on.
    checksum: [u8; 8],
}

impl Preamble {
    pub(crate) fn checksum(self) -> [u8; 8] {
        self.checksum
    }
}

/// A header that knows its format.
pub(crate) trait Header: FromBytes + IntoBytes + KnownLayout + Immutable + Copy {
    /// The first eight bytes of such a file.
    const MAGIC: [u8; 8];
    /// The version of the format that this program writes and reads.
    const VERSION: u32;

    fn preamble(&mut self) -> &mut Preamble;

    /// Fills in the preamble, over what the rest of the header says by now.
    fn seal(&mut self) {
        *self.preamble() = Preamble {
            magic: Self::MAGIC,
            version: Self::VERSION.to_le_bytes(),
            header: (size_of::<Self>() as u32).to_le_bytes(),
            checksum: [0; 8],
        };
        let sum = checksum(&self.as_bytes()[size_of::<Preamble>()..]);
        self.preamble().checksum = sum.to_le_bytes();
    }

    /// The header at the start of `bytes`, once magic, version and checksum agree.
    fn open(bytes: &[u8]) -> Result<Self, Refusal> {
        let (preamble, _) = Preamble::read_from_prefix(bytes).map_err(|_| Refusal::Foreign)?;
        if preamble.magic != Self::MAGIC {
            return Err(Refusal::Foreign);
        }
        let found = u32::from_le_bytes(preamble.version);
        if found != Self::VERSION {
            let known = Self::VERSION;
            return Err(Refusal::Version { found, known });
        }
        let promised = size_of::<Self>() as u64;
        if u64::from(u32::from_le_bytes(preamble.header)) != promised {
            return Err(Refusal::Inconsistent);
        }
        let length = bytes.len() as u64;
        let cut = Refusal::CutShort { length, promised };
        let (header, _) = Self::read_from_prefix(bytes).map_err(|_| cut)?;
        let sum = checksum(&header.as_bytes()[size_of::<Preamble>()..]);
        if sum.to_le_bytes() == preamble.checksum {
            Ok(header)
        } else {
            Err(Refusal::Damaged)
        }
    }
}

/// The `size` bytes of `file` from `offset`.
pub(crate) fn part(file: &[u8], offset: u64, size: u64) -> Result<&[u8], Refusal> {
    let end = offset.checked_add(size).ok_or(Refusal::Inconsistent)?;
    let length = file.len() as u64;
    let cut = Refusal::CutShort {
        length,
        promised: end,
    };
    if end > length {
        return Err(cut);
    }
    // Both fit: they are at most the length of a slice.
    file.get(offset as usize..end as usize).ok_or(cut)
}

/// Whether a file of `length` bytes has so many rows behind its header.
pub(crate) fn promised<H: Header, R>(count: U32, length: u64) -> Result<(), Refusal> {
    let promised = size_of::<H>() as u64 + u64::from(count.get()) * size_of::<R>() as u64;
    match promised <= length {
        true => Ok(()),
        false => Err(Refusal::CutShort { length, promised }),
    }
}

/// The `count` rows behind the header `H` in `file`, which have this checksum.
pub(crate) fn rows<H: Header, R: FromBytes + Immutable + KnownLayout>(
    file: &[u8],
    count: U32,
    checksum: U64,
) -> Result<&[R], Refusal> {
    let size = u64::from(count.get()) * size_of::<R>() as u64;
    let bytes = part(file, size_of::<H>() as u64, size)?;
    match crate::checksum(bytes) == checksum.get() {
        true => <[R]>::ref_from_bytes(bytes).map_err(|_| Refusal::Inconsistent),
        false => Err(Refusal::Damaged),
    }
}
