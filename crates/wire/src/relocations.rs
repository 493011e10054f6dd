//! The displacements that change if the trampolines of an image are put elsewhere.
//!
//! Trampolines lie at one distance from the text, so that one file serves any load address. Where that place is taken, a copy of
//! the image is *relocated* to another: each displacement of 32 bits between the two grows or shrinks by as much as the
//! trampolines have moved. Where these displacements are, in the file of the image, says a table: for each, ascending, how many bytes
//! behind the one before it, as an unsigned LEB128 number (the DWARF 5 standard, §7.6).

use crate::door::{Refusal, checksum, part};
use crate::image::Image;

/// Bytes of a displacement.
pub const FIELD: usize = 4;
/// Bits of a number that are in one byte of the table.
const BITS: u32 = 7;
/// What says that more follow.
const MORE: u8 = 1 << BITS;

/// The bytes of the table for one displacement, so many bytes behind the one before it.
pub fn encode(behind: u64) -> impl Iterator<Item = u8> {
    let mut rest = Some(behind);
    core::iter::from_fn(move || {
        let number = rest?;
        let low = number as u8 & !MORE;
        rest = Some(number >> BITS).filter(|left| *left != 0);
        Some(if rest.is_some() { low | MORE } else { low })
    })
}

/// Takes the first number off the table; `None` where it is cut short or has more than 64 bits.
fn decode(table: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for shift in (0..u64::BITS).step_by(BITS as usize) {
        let (byte, rest) = table.split_first()?;
        *table = rest;
        let low = u64::from(byte & !MORE);
        (low.checked_shl(shift)? >> shift == low).then_some(())?;
        number |= low << shift;
        if byte & MORE == 0 {
            return Some(number);
        }
    }
    None
}

impl Image {
    /// The table of displacements of this image, in the bytes of its file from where the table starts.
    ///
    /// # Errors
    /// Where it is cut short or damaged.
    pub fn relocations_in<'f>(&self, bytes: &'f [u8]) -> Result<&'f [u8], Refusal> {
        let table = part(bytes, 0, self.relocations_length.get())?;
        if checksum(table) == self.relocations_checksum.get() {
            Ok(table)
        } else {
            Err(Refusal::Damaged)
        }
    }

    /// Relocates `copy`, which is the file of this image up to its table of displacements, so that the trampolines lie at
    /// this `distance` from the first region's start; gives the header that it has then.
    ///
    /// Where the text has what the module itself has there a probe was taken away, and it stays: `original` says what
    /// the module has at a stated address.
    ///
    /// # Errors
    /// Where the table contradicts the image, what is in the text is neither the module's nor leads to the trampolines, or something
    /// would be out of reach. The copy is of no use then.
    pub fn relocate(
        &self,
        table: &[u8],
        copy: &mut [u8],
        distance: i64,
        original: impl Fn(u64) -> [u8; FIELD],
    ) -> Result<Self, Refusal> {
        let by = distance.wrapping_sub(self.distance.get());
        let relocated = self.at(distance)?;
        let (mut rest, mut at) = (table, 0_u64);
        while !rest.is_empty() {
            let change = decode(&mut rest).and_then(|behind| {
                at = at.checked_add(behind)?;
                let field = usize::try_from(at).ok()?;
                let field = copy.get_mut(field..)?.first_chunk_mut::<FIELD>()?;
                let changed = match self.side(at)? {
                    Side::Trampolines => moved(*field, by.checked_neg()?)?,
                    Side::Text(address) if original(address) == *field => *field,
                    Side::Text(address) => {
                        self.leads(address, *field).then(|| moved(*field, by))??
                    }
                };
                *field = changed;
                Some(())
            });
            change.ok_or(Refusal::Inconsistent)?;
        }
        Ok(relocated)
    }

    /// The header of a copy without a table whose trampolines are at this distance.
    fn at(&self, distance: i64) -> Result<Self, Refusal> {
        let is_told = self.relocations_length.get() > 0 || self.trampolines_length.get() == 0;
        let mut relocated = *self;
        relocated.distance = distance.into();
        relocated.length = self.relocations;
        relocated.relocations_length = 0.into();
        relocated.relocations_checksum = checksum(&[]).into();
        let fits = is_told && relocated.is_consistent();
        fits.then_some(relocated).ok_or(Refusal::Inconsistent)
    }

    /// Whether a displacement at this stated address leads to the trampolines.
    fn leads(&self, address: u64, field: [u8; FIELD]) -> bool {
        let first = self
            .regions()
            .first()
            .map_or(0, |first| first.address.get());
        let behind = address.wrapping_sub(first) as i64 + FIELD as i64;
        let way = i64::from(i32::from_le_bytes(field)) - self.distance.get();
        let inside = behind.wrapping_add(way) as u64;
        inside < self.trampolines_length.get()
    }

    /// In what the displacement is that starts at this offset of the file.
    fn side(&self, offset: u64) -> Option<Side> {
        let within = |start: u64, length: u64| {
            let within = offset.checked_sub(start)?;
            let end = within.checked_add(FIELD as u64)?;
            (end <= length).then_some(within)
        };
        if within(self.trampolines.get(), self.trampolines_length.get()).is_some() {
            return Some(Side::Trampolines);
        }
        self.regions().iter().find_map(|region| {
            let within = within(region.offset.get(), region.length.get())?;
            Some(Side::Text(region.address.get().checked_add(within)?))
        })
    }
}

/// Which side of the way between text and trampolines.
enum Side {
    Trampolines,
    /// At this stated address.
    Text(u64),
}

/// The displacement when what it leads to has moved by so much against where it is.
fn moved(field: [u8; FIELD], by: i64) -> Option<[u8; FIELD]> {
    let moved = i64::from(i32::from_le_bytes(field)).checked_add(by)?;
    i32::try_from(moved).ok().map(i32::to_le_bytes)
}

#[cfg(test)]
mod tests {
    use super::{decode, encode};

    #[test]
    fn numbers_are_read_as_they_were_written() {
        let mut table = [0; 64];
        let numbers = [
            0,
            1,
            127,
            128,
            16_383,
            16_384,
            u64::from(u32::MAX),
            u64::MAX,
        ];
        let bytes = numbers.into_iter().flat_map(encode);
        let length = table
            .iter_mut()
            .zip(bytes)
            .map(|(to, byte)| *to = byte)
            .count();
        let mut rest = &table[..length];
        for number in numbers {
            assert_eq!(decode(&mut rest), Some(number));
        }
        assert!(rest.is_empty());
    }

    #[test]
    fn what_is_no_number_is_refused() {
        let eleven = [
            0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0,
        ];
        let too_large = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2];
        for table in [&[][..], &[0x80], &eleven, &too_large] {
            assert_eq!(decode(&mut { table }), None, "{table:x?}");
        }
    }
}
