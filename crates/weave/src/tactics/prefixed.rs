//! Prefixed: a jump behind the first byte of an instruction, which is a prefix and stays.
//!
//! An instruction that begins with a REX prefix at the last byte of a word becomes the same prefix before
//! a jump, which the prefix changes nothing of (Intel SDM vol. 2, §2.2.1: a REX prefix that an instruction
//! has no use for is ignored; a near jump has 64 bits in any case). So the five bytes that do change begin with
//! the next word, and one store restores them as a quadword (`quadword.rs`), where otherwise there
//! would have to be a hold, or, at the end of a line, a trap. The byte in the word or line before
//! is the same at any time.
//!
//! Nothing may ever put an `int3` behind the prefix: who trapped there would go on without it.
//!
//! Instructions that keep some of their bytes under a jump: Chamith, Svensson, Dalessandro, Newton,
//! *Instruction Punning: Lightweight Instrumentation for x86-64*, PLDI 2017, §3.

use crate::trampoline::{Job, Writer};
use crate::window::WORD_BYTES;
use tomo_program::Address;

/// Bytes of a trampoline.
pub(crate) const LENGTH: usize = super::quadword::LENGTH;

/// Whether an instruction at `start` that begins with `first` can keep that byte, and the five bytes
/// behind it lie in one word.
pub(crate) fn fits(start: Address, first: u8) -> bool {
    start.0 % WORD_BYTES == WORD_BYTES - 1 && is_rex(first)
}

/// Whether the byte is a REX prefix in 64-bit code.
fn is_rex(byte: u8) -> bool {
    byte & 0xf0 == 0x40
}

/// Marks, restores, goes back to the prefix. The job's window begins behind it, with its word.
pub(crate) fn write(writer: &mut Writer, job: &Job) {
    writer.store_byte(job.mark, 1);
    writer.store_quadword(job.alias, job.word);
    writer.jump(job.window.plus(-1));
}
