//! Where faults took threads out of the middle of a block, in a part of the record's first page that processes change while
//! they run: [`MOST`] words, each an instruction and how often that happened there, less how often a thread came back there.
//! An instruction may have several words, whose sum counts.

use zerocopy::FromBytes as _;
use zerocopy::little_endian::U64;

use crate::PAGE;
use crate::door::{Refusal, part};
use crate::record::{LIVE, Live};

/// Where they are in a record's file.
pub const CUTS: u64 = 2048;
/// Words at most.
pub const MOST: usize = 255;
/// Where in a record's file it says how often there was no word left.
pub const LOST: u64 = CUTS + 8 * MOST as u64;

const _: () = assert!(LIVE + size_of::<Live>() as u64 <= CUTS && LOST + 8 <= PAGE);

/// What a word says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cut {
    /// The instruction, from the first region's start.
    pub place: u32,
    /// How often threads were taken out there, less how often they came back.
    pub count: i32,
}

impl Cut {
    /// The word that says so; one that says nothing may say anything else next.
    #[must_use]
    pub fn word(self) -> u64 {
        u64::from(self.count.cast_unsigned()) << 32 | u64::from(self.place)
    }

    /// What a word says.
    #[must_use]
    pub fn of(word: u64) -> Self {
        Self {
            place: word as u32,
            count: ((word >> 32) as u32).cast_signed(),
        }
    }
}

/// What a record in `file` says, and how often there was no word left.
///
/// # Errors
/// Where it is cut short.
pub fn cuts(file: &[u8]) -> Result<(impl Iterator<Item = Cut>, u64), Refusal> {
    let words = part(file, CUTS, 8 * MOST as u64)?;
    let words = <[U64]>::ref_from_bytes(words).map_err(|_| Refusal::Inconsistent)?;
    let lost = part(file, LOST, 8)?;
    let lost = U64::read_from_bytes(lost).map_err(|_| Refusal::Inconsistent)?;
    let said = words.iter().map(|word| Cut::of(word.get()));
    Ok((said.filter(|cut| cut.count != 0), lost.get()))
}
