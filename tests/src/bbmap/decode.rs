//! Reading the bytes of `SHT_LLVM_BB_ADDR_MAP` sections, versions 2 to 5.
//!
//! Source: LLVM, `llvm/docs/Extensions.rst` ("SHT_LLVM_BB_ADDR_MAP Section"), the emitter
//! `AsmPrinter::emitBBAddrMapSection` and the types in `llvm/Object/BBAddrMap.h`. A section is a
//! sequence of records, one a function; nothing says how many:
//!
//! | field | form | when |
//! |---|---|---|
//! | version | u8, 2 to 5 | |
//! | features | u8; u16 from version 5 | |
//! | number of ranges | uleb128 | feature *multi range*; else one |
//! | ‣ base address | u64 | per range |
//! | ‣ number of blocks | uleb128 | per range |
//! | ‣ ‣ id, offset from the end of the block before | uleb128 each | per block |
//! | ‣ ‣ number of calls, distance of each call's end from the one before | uleb128 each | feature *calls* (3) |
//! | ‣ ‣ bytes behind the last call's end (or the start), metadata | uleb128 each | |
//! | ‣ ‣ hash | u64 | feature *hash* (4) |
//! | entry count | uleb128 | feature *entry count* |
//! | ‣ frequency | uleb128 | feature *frequency*, per block of all ranges |
//! | ‣ frequency after linking | uleb128 | feature *post-link* (5) |
//! | ‣ number of successors; of each its id, probability, and post-link frequency | uleb128 each | feature *branch probability* |
//!
//! The numbers in brackets are the versions from which LLVM's own reader accepts a feature. clang 19
//! writes version 2 with features 0x04; rustc 1.95 (LLVM 22) version 5 with features 0x24, calls
//! included. Linear in the size of the section; hostile counts cannot reserve memory, because every
//! item read costs at least one byte.

use std::fmt;

/// What went wrong while a map was read, and where.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("basic-block address map, offset {offset:#x}: {what}")]
pub struct DecodeError {
    /// Offset into the section of the field that could not be read.
    pub offset: usize,
    /// What is wrong with it.
    pub what: Fault,
}

/// The ways in which a map can be broken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The section ends inside a field.
    Truncated,
    /// A version that this reader does not know.
    Version(u8),
    /// Feature bits that the version does not have, or that are unknown.
    Features(u16),
    /// A number too large for its field.
    TooLarge,
    /// A function of no ranges.
    NoRanges,
    /// The map leaves out the blocks of its functions.
    BlocksOmitted,
    /// Metadata bits beyond the five that are defined.
    Metadata(u64),
    /// A block that reaches past the end of the address space.
    AddressOverflow,
    /// Two blocks of one function have the same id.
    DuplicateId(u32),
    /// A successor that is no block of the function.
    UnknownSuccessor(u32),
    /// No successors: built without `-pgo-analysis-map=br-prob`.
    NoSuccessors,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Truncated => write!(f, "the section ends inside a record"),
            Self::Version(v) => write!(f, "version {v} is not one of 2 to 5"),
            Self::Features(bits) => write!(f, "feature bits {bits:#x} do not fit the version"),
            Self::TooLarge => write!(f, "a number is too large for its field"),
            Self::NoRanges => write!(f, "a function of no ranges"),
            Self::BlocksOmitted => write!(f, "the map was written without its blocks"),
            Self::Metadata(bits) => write!(f, "unknown metadata bits {bits:#x}"),
            Self::AddressOverflow => write!(f, "a block leaves the address space"),
            Self::DuplicateId(id) => write!(f, "two blocks have the id {id}"),
            Self::UnknownSuccessor(id) => write!(f, "successor {id} is no block of the function"),
            Self::NoSuccessors => write!(f, "no successors (built without br-prob?)"),
        }
    }
}

/// One function as the compiler states it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MapFunction {
    /// Its entry.
    pub entry: u64,
    /// Its blocks in the order in which they were written, which is layout order in each range.
    pub blocks: Vec<MapBlock>,
}

/// One machine basic block as the compiler states it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MapBlock {
    /// Its id, unique in its function.
    pub id: u32,
    /// Its first address.
    pub start: u64,
    /// Its bytes; may be none.
    pub size: u32,
    /// What the compiler says of it.
    pub metadata: Metadata,
    /// The addresses behind its calls, where the map has them.
    pub call_ends: Vec<u64>,
    /// The ids of its successors.
    pub successors: Vec<u32>,
}

impl MapBlock {
    /// First address behind it.
    #[must_use]
    pub fn end(&self) -> u64 {
        self.start.saturating_add(u64::from(self.size))
    }
}

/// The five bits that LLVM keeps of a block (`BBAddrMap::BBEntry::Metadata`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Metadata(u8);

impl Metadata {
    /// From its five bits; `None` if others are set.
    #[must_use]
    pub fn from_bits(bits: u64) -> Option<Self> {
        u8::try_from(bits).ok().filter(|&bits| bits < 32).map(Self)
    }
    /// It ends with a return.
    #[must_use]
    pub fn has_return(self) -> bool {
        self.0 & 1 != 0
    }
    /// It ends with a tail call.
    #[must_use]
    pub fn has_tail_call(self) -> bool {
        self.0 & 2 != 0
    }
    /// It is a landing pad.
    #[must_use]
    pub fn is_landing_pad(self) -> bool {
        self.0 & 4 != 0
    }
    /// Control can run into the block behind it.
    #[must_use]
    pub fn can_fall_through(self) -> bool {
        self.0 & 8 != 0
    }
    /// It ends with an indirect branch.
    #[must_use]
    pub fn has_indirect_branch(self) -> bool {
        self.0 & 16 != 0
    }
}

/// The optional fields of one function's record.
#[derive(Clone, Copy)]
struct Features(u16);

impl Features {
    /// The bits that each version knows; later versions only add some.
    fn checked(bits: u16, version: u8) -> Option<Self> {
        let known = match version {
            2 => 0x1f,
            3 => 0x3f,
            4 => 0x7f,
            _ => 0xff,
        };
        (bits & !known == 0).then_some(Self(bits))
    }
    fn entry_count(self) -> bool {
        self.0 & 1 != 0
    }
    fn frequency(self) -> bool {
        self.0 & 2 != 0
    }
    fn branch_probability(self) -> bool {
        self.0 & 4 != 0
    }
    fn many_ranges(self) -> bool {
        self.0 & 8 != 0
    }
    fn blocks_omitted(self) -> bool {
        self.0 & 16 != 0
    }
    fn calls(self) -> bool {
        self.0 & 32 != 0
    }
    fn hash(self) -> bool {
        self.0 & 64 != 0
    }
    fn post_link(self) -> bool {
        self.0 & 128 != 0
    }
}

/// Reads all functions of one section's contents (addresses already final, as in a linked file).
///
/// # Errors
/// [`DecodeError`] names the offset of the first field that cannot be right.
pub fn decode(section: &[u8]) -> Result<Vec<MapFunction>, DecodeError> {
    let mut cursor = Cursor {
        bytes: section,
        at: 0,
    };
    let mut functions = Vec::new();
    while cursor.at < section.len() {
        functions.push(function(&mut cursor)?);
    }
    Ok(functions)
}

fn function(cursor: &mut Cursor<'_>) -> Result<MapFunction, DecodeError> {
    let features = header(cursor)?;
    let start = cursor.at;
    let ranges = if features.many_ranges() {
        cursor.uleb32()?
    } else {
        1
    };
    let mut entry = None;
    let mut blocks = Vec::new();
    for _ in 0..ranges {
        let base = cursor.u64()?;
        entry.get_or_insert(base);
        range(cursor, features, base, &mut blocks)?;
    }
    let entry = entry.ok_or(DecodeError {
        offset: start,
        what: Fault::NoRanges,
    })?;
    analysis(cursor, features, &mut blocks)?;
    check_ids(start, &blocks)?;
    Ok(MapFunction { entry, blocks })
}

fn header(cursor: &mut Cursor<'_>) -> Result<Features, DecodeError> {
    let start = cursor.at;
    let version = cursor.u8()?;
    if !(2..=5).contains(&version) {
        return Err(DecodeError {
            offset: start,
            what: Fault::Version(version),
        });
    }
    let at = cursor.at;
    let bits = if version >= 5 {
        cursor.u16()?
    } else {
        u16::from(cursor.u8()?)
    };
    let fault = |what| DecodeError { offset: at, what };
    let features = Features::checked(bits, version).ok_or_else(|| fault(Fault::Features(bits)))?;
    if features.blocks_omitted() {
        return Err(fault(Fault::BlocksOmitted));
    }
    if !features.branch_probability() {
        return Err(fault(Fault::NoSuccessors));
    }
    Ok(features)
}

fn range(
    cursor: &mut Cursor<'_>,
    features: Features,
    base: u64,
    blocks: &mut Vec<MapBlock>,
) -> Result<(), DecodeError> {
    let mut end = base;
    for _ in 0..cursor.uleb32()? {
        let block = block(cursor, features, end)?;
        end = block.end();
        blocks.push(block);
    }
    Ok(())
}

fn block(
    cursor: &mut Cursor<'_>,
    features: Features,
    previous_end: u64,
) -> Result<MapBlock, DecodeError> {
    let at = cursor.at;
    let overflow = || DecodeError {
        offset: at,
        what: Fault::AddressOverflow,
    };
    let id = cursor.uleb32()?;
    let start = previous_end
        .checked_add(u64::from(cursor.uleb32()?))
        .ok_or_else(overflow)?;
    let mut end = start;
    let mut call_ends = Vec::new();
    if features.calls() {
        for _ in 0..cursor.uleb32()? {
            end = end
                .checked_add(u64::from(cursor.uleb32()?))
                .ok_or_else(overflow)?;
            call_ends.push(end);
        }
    }
    end = end
        .checked_add(u64::from(cursor.uleb32()?))
        .ok_or_else(overflow)?;
    let size = u32::try_from(end - start).map_err(|_| overflow())?;
    let metadata = metadata(cursor)?;
    if features.hash() {
        cursor.u64()?;
    }
    Ok(MapBlock {
        id,
        start,
        size,
        metadata,
        call_ends,
        successors: Vec::new(),
    })
}

fn metadata(cursor: &mut Cursor<'_>) -> Result<Metadata, DecodeError> {
    let offset = cursor.at;
    let bits = cursor.uleb()?;
    Metadata::from_bits(bits).ok_or(DecodeError {
        offset,
        what: Fault::Metadata(bits),
    })
}

/// Counts, frequencies and successors, which stand behind all blocks of all ranges.
fn analysis(
    cursor: &mut Cursor<'_>,
    features: Features,
    blocks: &mut [MapBlock],
) -> Result<(), DecodeError> {
    if features.entry_count() {
        cursor.uleb()?;
    }
    for block in blocks {
        if features.frequency() {
            cursor.uleb()?;
        }
        if features.post_link() {
            cursor.uleb32()?;
        }
        for _ in 0..cursor.uleb()? {
            block.successors.push(cursor.uleb32()?);
            cursor.uleb32()?;
            if features.post_link() {
                cursor.uleb32()?;
            }
        }
    }
    Ok(())
}

fn check_ids(offset: usize, blocks: &[MapBlock]) -> Result<(), DecodeError> {
    let mut ids: Vec<u32> = blocks.iter().map(|block| block.id).collect();
    ids.sort_unstable();
    if let Some(pair) = ids.windows(2).find(|pair| pair[0] == pair[1]) {
        return Err(DecodeError {
            offset,
            what: Fault::DuplicateId(pair[0]),
        });
    }
    let mut successors = blocks.iter().flat_map(|block| &block.successors);
    match successors.find(|id| ids.binary_search(id).is_err()) {
        Some(&id) => Err(DecodeError {
            offset,
            what: Fault::UnknownSuccessor(id),
        }),
        None => Ok(()),
    }
}

/// A reading position that never passes the end of its bytes.
struct Cursor<'data> {
    bytes: &'data [u8],
    at: usize,
}

impl Cursor<'_> {
    fn take<const N: usize>(&mut self) -> Result<[u8; N], DecodeError> {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        let taken = *rest.first_chunk::<N>().ok_or(DecodeError {
            offset: self.at,
            what: Fault::Truncated,
        })?;
        self.at += N;
        Ok(taken)
    }
    fn u8(&mut self) -> Result<u8, DecodeError> {
        self.take::<1>().map(|[byte]| byte)
    }
    fn u16(&mut self) -> Result<u16, DecodeError> {
        self.take().map(u16::from_le_bytes)
    }
    fn u64(&mut self) -> Result<u64, DecodeError> {
        self.take().map(u64::from_le_bytes)
    }
    fn uleb(&mut self) -> Result<u64, DecodeError> {
        let start = self.at;
        let mut value = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = self.u8()?;
            let bits = u64::from(byte & 0x7f);
            if (bits << shift) >> shift != bits {
                break;
            }
            value |= bits << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(DecodeError {
            offset: start,
            what: Fault::TooLarge,
        })
    }
    fn uleb32(&mut self) -> Result<u32, DecodeError> {
        let start = self.at;
        let value = self.uleb()?;
        u32::try_from(value).map_err(|_| DecodeError {
            offset: start,
            what: Fault::TooLarge,
        })
    }
}

#[cfg(test)]
mod tests;
