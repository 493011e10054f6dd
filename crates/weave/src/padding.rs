//! Filling behind a block that may be covered because it never runs.
//!
//! Bytes that belong to no block of an exact function do not run, but they may be data. So only
//! `nop` of any length and `int3` count as filling, never zeros, and only if *everything* up to the
//! next thing that is known, or the end of the section, is filling: then no function that nobody
//! named can be hidden in it either.

use iced_x86::{Decoder, DecoderOptions, Mnemonic};
use tomo_program::{Address, Binary};

use crate::spots::Ways;

/// Bytes of a gap that are looked at, at most. Longer ones are no alignment.
const LONGEST_GAP: u64 = 256;

/// How many bytes of filling are behind `end`, if there is nothing else up to the next start.
pub(crate) fn behind(end: Address, binary: &Binary<'_>, ways: &Ways) -> u64 {
    let Some(code) = binary.code_at(end) else {
        return 0;
    };
    let mut length = 0;
    while length < LONGEST_GAP {
        let here = end.wrapping_add(length);
        let rest = code.get(length as usize..).unwrap_or_default();
        if rest.is_empty() || ways.starts.has(here) {
            return length;
        }
        let size = filler(rest);
        if size == 0 || ways.entered.has(here) || has_inside(here, size, ways) {
            return 0;
        }
        length += size;
    }
    0
}

fn has_inside(start: Address, size: u64, ways: &Ways) -> bool {
    ways.starts.has_inside(start, size) || ways.entered.has_inside(start, size)
}

/// The length of the filler that `bytes` begins with, or 0.
fn filler(bytes: &[u8]) -> u64 {
    match bytes {
        [0xcc | 0x90, ..] => 1,
        // Operand-size and segment prefixes, and the two-byte opcode map: what long ones start with.
        [0x66 | 0x0f | 0x2e, ..] => {
            let instruction = Decoder::new(64, bytes, DecoderOptions::NONE).decode();
            // `xchg ax,ax` with prefixes goes by the name of nop.
            if instruction.mnemonic() == Mnemonic::Nop && !instruction.is_invalid() {
                instruction.len() as u64
            } else {
                0
            }
        }
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::filler;

    #[test]
    fn zeros_and_code_are_no_filling() {
        assert_eq!(filler(&[0, 0, 0, 0]), 0);
        assert_eq!(filler(&[0x0f, 0x0b]), 0);
        assert_eq!(filler(&[0x66, 0x89, 0xc8]), 0);
        assert_eq!(filler(&[0x0f, 0x1f, 0x84]), 0, "a cut one");
        assert_eq!(filler(&[0x0f, 0x1f, 0x44, 0, 0, 0x55]), 5);
        assert_eq!(filler(&[0x66, 0x90]), 2);
        assert_eq!(
            filler(&[0x66, 0x66, 0x2e, 0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0]),
            11
        );
    }
}
