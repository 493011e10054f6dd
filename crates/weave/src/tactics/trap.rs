//! Trap: an `int3` over the first byte of an instruction.
//!
//! One byte changes whole, and it is the first of an instruction in every way of decoding that the
//! model allows. The agent marks and restores in its handler. Costs a thousand times a detour, so
//! it is what is left when nothing else fits.

/// `int3`.
pub(crate) const TRAP: u8 = 0xcc;
