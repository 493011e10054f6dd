//! The records of the model file: fixed size, little-endian, no padding, no alignment.
//!
//! Sizes matter where there are millions: a block has 21 bytes, an edge 5. Addresses of blocks are
//! whole (64 bits): four bytes more than an offset, but no program is too sparse for them. Lists of
//! a function lie behind each other in the order of the functions, so a record tells only where its
//! list starts; it ends where that of the next function starts.

use zerocopy::little_endian::{U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::{Reason, Status};

/// Declares records with the derives that let them be read in place.
macro_rules! records {
    ($($(#[$doc:meta])* struct $name:ident { $($(#[$field_doc:meta])* $field:ident: $type:ty,)* })*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
        #[repr(C)]
        pub(crate) struct $name { $($(#[$field_doc])* pub(crate) $field: $type,)* }
    )*};
}

records! {
    struct FunctionRecord {
        entry: U64,
        /// Bytes of all its ranges.
        size: U64,
        first_range: U32,
        first_block: U32,
        first_call: U32,
        first_jump: U32,
        branches: U32,
        /// 0 exact, 1 partial, 2 opaque.
        status: u8,
        /// A [`crate::Reason`], or 0.
        reason: u8,
        /// [`NAMED`], [`RETURNS`] and [`RETURNS_AGAIN`].
        flags: u8,
    }

    struct RangeRecord {
        start: U64,
        size: U64,
        function: U32,
    }

    /// Blocks with consecutive numbers and ascending addresses, as many as there are in a row.
    struct SpanRecord {
        start: U64,
        first_block: U32,
        blocks: U32,
    }

    struct BlockRecord {
        address: U64,
        size: U32,
        instructions: U32,
        first_edge: U32,
        /// Bytes of its first instruction, 0 where unknown; and of its last one [`FORKS_OR_ENDS`].
        first_and_last: u8,
    }

    struct EdgeRecord {
        /// A block, or an index into the exits.
        target: U32,
        /// A [`crate::EdgeKind`], and [`EXIT`] if the target is an index into the exits.
        kind: u8,
    }

    struct CallRecord {
        block: U32,
        /// Of the call instruction, from the start of the block.
        offset: U32,
        /// The entry of a function, or the number of an import.
        callee: U64,
        /// [`CALLS_FUNCTION`], [`CALLS_IMPORT`] or [`CALLS_INDIRECT`].
        kind: u8,
        /// [`RETURNS`] and [`VOID`].
        flags: u8,
    }

    struct IndirectJumpRecord {
        block: U32,
        /// Of the jump instruction, from the start of the block.
        offset: U32,
        /// The number of an import, or [`NONE`].
        import: U32,
        /// A [`crate::Resolution`].
        resolution: u8,
    }

    struct LineRecord {
        /// A file, or [`NONE`].
        file: U32,
        line: U32,
    }
}

impl BlockRecord {
    /// Bytes of its first instruction; 0 where unknown.
    pub(crate) fn first_instruction(&self) -> u8 {
        self.first_and_last & !FORKS_OR_ENDS
    }

    /// Whether it ends in a system call that may come back in two processes, or never.
    pub(crate) fn forks_or_ends(&self) -> bool {
        self.first_and_last & FORKS_OR_ENDS != 0
    }
}

/// No number.
pub(crate) const NONE: u32 = u32::MAX;

/// Flag of functions: it has a name.
pub(crate) const NAMED: u8 = 1;
/// Flag of functions and calls: control can come back.
pub(crate) const RETURNS: u8 = 2;
/// Flag of functions: control may come back more than once.
pub(crate) const RETURNS_AGAIN: u8 = 4;
/// Flag of blocks: they end in a system call that may come back twice or never.
pub(crate) const FORKS_OR_ENDS: u8 = 0x80;
/// Flag of calls: the result is void.
pub(crate) const VOID: u8 = 4;
/// Flag of edges: the target is not a block of the same function.
pub(crate) const EXIT: u8 = 0x80;

/// Kind of call: to a function of the program.
pub(crate) const CALLS_FUNCTION: u8 = 0;
/// Kind of call: to an import.
pub(crate) const CALLS_IMPORT: u8 = 1;
/// Kind of call: to whatever a register or memory says.
pub(crate) const CALLS_INDIRECT: u8 = 2;

impl FunctionRecord {
    /// How much is known of the function. A record that makes no sense is of an opaque one.
    pub(crate) fn status(&self) -> Status {
        match (self.status, Reason::from_code(self.reason)) {
            (0, None) => Status::Exact,
            (1, Some(reason)) => Status::Partial(reason),
            (_, reason) => Status::Opaque(reason.unwrap_or(Reason::NoBytes)),
        }
    }
}
