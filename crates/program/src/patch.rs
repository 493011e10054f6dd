//! What may be done to a block's first bytes without breaking the program.
//!
//! A *detour* overwrites five bytes with a jump, a *trap* overwrites one with `int3`. The rules
//! are those of the design, and err on the side of less:
//!
//! - A detour's five bytes must lie in sixteen aligned bytes, so that no processor fetches half of the
//!   old bytes and half of the new ones: to lie in one line is not enough. This holds for every kind
//!   of detour. Addresses here are stated ones; the loader moves programs by whole pages.
//! - Five bytes over several instructions need an *exact* function: only there is it proven that
//!   nothing jumps between them. A block has no way in but its start.
//! - Five bytes within the first instruction need no more than that the instruction really starts
//!   there, as it does in *partial* functions too, save those where decodings overlap or where
//!   something jumps into instructions.
//! - A trap needs a known start of an instruction. In functions whose decodings overlap even this
//!   byte may be the middle of something else, so there is none; nor is there one in blocks of partial
//!   functions that nothing but a table without a known end names (`sure.rs`).

use iced_x86::{Decoder, DecoderOptions};
use rayon::prelude::*;

use crate::sure::sure_blocks;
use crate::{Address, Block, Function, Reason, Status};

/// Bytes of a jump with a 32-bit displacement.
pub const DETOUR_BYTES: u32 = 5;
/// Bytes, aligned, that any processor fetches at once; many fetch more.
pub const FETCH_BYTES: u64 = 16;

/// The strongest probe that a block can carry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Patchability {
    /// None: too little is known.
    None = 0,
    /// A trap probe.
    Trap = 1,
    /// A detour, or a trap probe.
    Detour = 2,
}

impl Patchability {
    /// Its name in machine-readable output.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Trap => "trap",
            Self::Detour => "detour",
        }
    }
}

/// What the block at `start` with `size` bytes can carry, whose first instruction has
/// `first_instruction` bytes (0: unknown, or whether one starts there), in a function of which `status` is known.
#[must_use]
pub fn patchability(
    status: Status,
    start: Address,
    size: u32,
    first_instruction: u8,
) -> Patchability {
    let one_fetch = start.0 % FETCH_BYTES + u64::from(DETOUR_BYTES) <= FETCH_BYTES;
    let one_instruction = u32::from(first_instruction) >= DETOUR_BYTES;
    let fits = size >= DETOUR_BYTES && one_fetch;
    match status {
        Status::Opaque(_) | Status::Partial(Reason::OverlappingInstructions) => Patchability::None,
        Status::Partial(_) if first_instruction == 0 => Patchability::None,
        Status::Partial(Reason::EnteredInsideInstruction) => Patchability::Trap,
        Status::Exact if fits => Patchability::Detour,
        Status::Partial(_) if fits && one_instruction => Patchability::Detour,
        Status::Exact | Status::Partial(_) => Patchability::Trap,
    }
}

/// How long the first instruction of each block of the program is, in the order of the blocks'
/// addresses; 0 where `code` has no bytes, or they are no instruction, or it is not sure that one starts there. `code` gives
/// the bytes from an address on. Time: one instruction decoded a block, on all processors.
pub fn first_instruction_sizes<'data>(
    functions: &[Function],
    code: impl Fn(Address) -> Option<&'data [u8]> + Sync,
) -> Vec<u8> {
    let size = |(block, sure): (&Block, bool)| {
        let size = if sure { first_size(*block, &code) } else { 0 };
        (block.range.start(), size)
    };
    let sizes_of = |function| {
        let sure = sure_blocks(function);
        function.blocks.iter().zip(sure).map(size)
    };
    let mut sizes: Vec<(Address, u8)> = functions
        .par_iter()
        .with_min_len(512)
        .flat_map_iter(sizes_of)
        .collect();
    sizes.par_sort_by_key(|size| size.0);
    sizes.into_iter().map(|size| size.1).collect()
}

/// How long the first instruction of `block` is. A block with one instruction needs no decoding.
fn first_size<'data>(block: Block, code: &impl Fn(Address) -> Option<&'data [u8]>) -> u8 {
    if block.instructions == 1 {
        return u8::try_from(block.range.size()).unwrap_or(0);
    }
    let Some(bytes) = code(block.range.start()) else {
        return 0;
    };
    let bytes = bytes.get(..16).unwrap_or(bytes);
    let instruction = Decoder::new(64, bytes, DecoderOptions::NONE).decode();
    if instruction.is_invalid() {
        0
    } else {
        u8::try_from(instruction.len()).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PARTIAL: Status = Status::Partial(Reason::UnresolvedIndirectJump);

    #[test]
    fn a_detour_needs_five_bytes_in_one_fetch() {
        let at = |address, size| patchability(Status::Exact, Address(address), size, 1);
        assert_eq!(at(0x1000, 5), Patchability::Detour);
        assert_eq!(at(0x1000, 4), Patchability::Trap);
        assert_eq!(at(0x103b, 5), Patchability::Detour, "ends with its line");
        assert_eq!(at(0x103c, 50), Patchability::Trap, "one byte over the line");
    }

    #[test]
    fn partial_functions_take_detours_over_one_instruction_only() {
        assert_eq!(patchability(PARTIAL, Address(0), 20, 4), Patchability::Trap);
        assert_eq!(patchability(PARTIAL, Address(0), 20, 0), Patchability::None);
        assert_eq!(
            patchability(PARTIAL, Address(0), 20, 5),
            Patchability::Detour
        );
        assert_eq!(
            patchability(PARTIAL, Address(60), 20, 7),
            Patchability::Trap
        );
        let entered = Status::Partial(Reason::EnteredInsideInstruction);
        assert_eq!(patchability(entered, Address(0), 20, 7), Patchability::Trap);
        let overlapping = Status::Partial(Reason::OverlappingInstructions);
        assert_eq!(
            patchability(overlapping, Address(0), 20, 7),
            Patchability::None
        );
        let opaque = Status::Opaque(Reason::InvalidInstruction);
        assert_eq!(patchability(opaque, Address(0), 20, 7), Patchability::None);
    }
}
