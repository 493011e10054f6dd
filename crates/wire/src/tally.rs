//! Which unit of a campaign each counter of an image counts: what an instance made of its assignment.
//!
//! A file beside the image: a header, then a unit for each counter, or [`NONE`].

use core::mem::size_of;

use zerocopy::little_endian::{U32, U64};
use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes, KnownLayout};

use crate::checksum;
use crate::door::{Header, Preamble, Refusal, promised, rows};

/// The unit of a counter that counts nothing that was assigned.
pub const NONE: u32 = u32::MAX;

/// The header of such a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct Tally {
    preamble: Preamble,
    /// Names what the image observes, as its header does.
    pub plan: U64,
    /// How many counters.
    pub counters: U32,
    /// How many bytes into each slab they start.
    pub at: U32,
    /// Checksum of the rows.
    pub rows_checksum: U64,
}

impl Header for Tally {
    const MAGIC: [u8; 8] = *b"TOMOTLY\n";
    const VERSION: u32 = 1;

    fn preamble(&mut self) -> &mut Preamble {
        &mut self.preamble
    }
}

impl Tally {
    /// Its header before the units of these counters, which start `at` bytes into each slab, of the image of this plan.
    #[must_use]
    pub fn sealed(plan: u64, at: u32, units: &[U32]) -> [u8; size_of::<Self>()] {
        let mut header = Self {
            plan: plan.into(),
            counters: (units.len() as u32).into(),
            at: at.into(),
            rows_checksum: checksum(units.as_bytes()).into(),
            ..Self::new_zeroed()
        };
        header.seal();
        zerocopy::transmute!(header)
    }

    /// The header of a file of `length` bytes that starts with `head`; what follows it is not looked at.
    ///
    /// # Errors
    /// Where it is no such file, of another version, cut short or damaged.
    pub fn head(head: &[u8], length: u64) -> Result<Self, Refusal> {
        let header = <Self as Header>::open(head)?;
        promised::<Self, U32>(header.counters, length)?;
        Ok(header)
    }

    /// The header and the unit of each counter in `file`.
    ///
    /// # Errors
    /// Where it is no such file, of another version, cut short or damaged.
    pub fn read(file: &[u8]) -> Result<(Self, &[U32]), Refusal> {
        let header = <Self as Header>::open(file)?;
        let units = rows::<Self, U32>(file, header.counters, header.rows_checksum)?;
        Ok((header, units))
    }
}
