//! What an image executes elsewhere: where in its trampolines each moved instruction begins, and where it was.
//!
//! Whoever finds a thread in there (a crash came, a debugger stopped it) learns where in the module it is.
//! A header, then a [`Row`] each instruction, ascending by where it is now.

use core::mem::size_of;

use zerocopy::little_endian::{U32, U64};
use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes, KnownLayout};

use crate::checksum;
use crate::door::{Header, Preamble, Refusal, part};

/// An instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct Row {
    /// Where it begins, from the trampolines' start.
    pub offset: U32,
    /// Where it was, from the first region's start.
    pub from: U32,
}

/// The header of such a file.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct Moved {
    preamble: Preamble,
    /// Names what the image observes, as its header does.
    pub plan: U64,
    /// How many instructions.
    pub count: U64,
    /// Checksum of the rows.
    pub rows_checksum: U64,
}

impl Header for Moved {
    const MAGIC: [u8; 8] = *b"TOMOMVD\n";
    const VERSION: u32 = 1;

    fn preamble(&mut self) -> &mut Preamble {
        &mut self.preamble
    }
}

impl Moved {
    /// Its header before these rows, of the image of this plan.
    #[must_use]
    pub fn sealed(plan: u64, rows: &[Row]) -> [u8; size_of::<Self>()] {
        let mut header = Self {
            plan: plan.into(),
            count: (rows.len() as u64).into(),
            rows_checksum: checksum(rows.as_bytes()).into(),
            ..Self::new_zeroed()
        };
        header.seal();
        zerocopy::transmute!(header)
    }

    /// The header and the rows in `file`.
    ///
    /// # Errors
    /// Where it is no such file, of another version, cut short, damaged, or contradicts itself.
    pub fn read(file: &[u8]) -> Result<(Self, &[Row]), Refusal> {
        let header = <Self as Header>::open(file)?;
        let size = header.count.get().checked_mul(size_of::<Row>() as u64);
        let size = size.ok_or(Refusal::Inconsistent)?;
        let bytes = part(file, size_of::<Self>() as u64, size)?;
        if checksum(bytes) != header.rows_checksum.get() {
            return Err(Refusal::Damaged);
        }
        let rows = <[Row]>::ref_from_bytes(bytes).map_err(|_| Refusal::Inconsistent)?;
        match rows.is_sorted_by(|one, other| one.offset.get() < other.offset.get()) {
            true => Ok((header, rows)),
            false => Err(Refusal::Inconsistent),
        }
    }
}

/// Where the instruction was that is executed `offset` bytes into the trampolines; `None` where none begins there.
#[must_use]
pub fn origin(rows: &[Row], offset: u32) -> Option<u32> {
    let found = rows.binary_search_by_key(&offset, |row| row.offset.get());
    Some(rows.get(found.ok()?)?.from.get())
}
