//! Bytes that assemblers and linkers put between code to align it.

use iced_x86::{Decoder, DecoderOptions, Mnemonic};

/// Whether `bytes` is empty or begins with filling: `nop` of any length, `int3`, or zeros.
pub(crate) fn starts_with_padding(bytes: &[u8]) -> bool {
    bytes.is_empty() || padding_length(bytes) > 0
}

/// How many bytes of filling `bytes` begins with.
pub(crate) fn padding_length(bytes: &[u8]) -> usize {
    let mut at = 0;
    while at < bytes.len() {
        match filler(&bytes[at..]) {
            0 => break,
            length => at += length,
        }
    }
    at
}

/// Whether all of `bytes` is filling; `ud2`, which compilers place behind calls that never return,
/// counts as such.
pub(crate) fn is_padding(mut bytes: &[u8]) -> bool {
    loop {
        bytes = &bytes[padding_length(bytes)..];
        match bytes {
            [0x0f, 0x0b, rest @ ..] => bytes = rest,
            _ => return bytes.is_empty(),
        }
    }
}

/// Whether all of `bytes` is `nop` of any length, which control may run through.
pub(crate) fn is_nops(bytes: &[u8]) -> bool {
    let mut decoder = Decoder::new(64, bytes, DecoderOptions::NONE);
    decoder
        .iter()
        .all(|instruction| instruction.mnemonic() == Mnemonic::Nop)
}

/// The length of the direct jump that `bytes` begins with, or 0.
pub(crate) fn jump_length(bytes: &[u8]) -> u32 {
    match bytes {
        [0xeb, _, ..] => 2,
        [0xe9, _, _, _, _, ..] => 5,
        _ => 0,
    }
}

/// The length of the one filler that `bytes` begins with, or 0.
fn filler(bytes: &[u8]) -> usize {
    match bytes {
        [0xcc | 0x90, ..] => 1,
        [0, 0, ..] | [0] => 1,
        // Every multi-byte filler of assemblers and linkers starts with one of these: operand-size and
        // segment prefixes, the two-byte opcode map, `xchg %ax,%ax`, `lea 0(%rsi),%rsi`.
        [0x66 | 0x0f | 0x2e | 0x48 | 0x8d | 0xf3, ..] => long_filler(bytes),
        _ => 0,
    }
}

fn long_filler(bytes: &[u8]) -> usize {
    let instruction = Decoder::new(64, bytes, DecoderOptions::NONE).decode();
    let is_nop = instruction.mnemonic() == Mnemonic::Nop
        || matches!(
            bytes,
            [0x66, 0x66, 0x90, ..]
                | [0x66, 0x90, ..]
                | [0x8d, 0x76, 0, ..]
                | [0x48, 0x8d, 0x76, 0, ..]
        );
    if is_nop && !instruction.is_invalid() {
        instruction.len()
    } else {
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn knows_the_fillers_of_the_common_assemblers() {
        for filler in [
            &[0x90][..],
            &[0xcc, 0xcc],
            &[0x66, 0x90],
            &[0x0f, 0x1f, 0x00],
            &[0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0],
            &[0x66, 0x2e, 0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0],
            &[0x66, 0x66, 0x2e, 0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0],
            &[0, 0, 0],
        ] {
            assert!(is_padding(filler), "{filler:x?}");
        }
        assert!(is_padding(&[0x0f, 0x0b, 0x90]));
        assert!(!is_padding(&[0x90, 0xc3]));
        assert!(!starts_with_padding(&[0x55, 0x90]));
        assert_eq!(padding_length(&[0x66, 0x90, 0xc3]), 2);
        assert!(is_nops(&[0x66, 0x90, 0x0f, 0x1f, 0x00]));
        assert!(!is_nops(&[0x90, 0xcc]) && !is_nops(&[0, 0]) && !is_nops(&[0x0f, 0x1f]));
    }

    #[test]
    fn a_cut_filler_is_no_filler() {
        assert_eq!(padding_length(&[0x0f, 0x1f, 0x84]), 0);
    }
}
