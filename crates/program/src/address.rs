//! Addresses as an ELF file states them.
//!
//! Three things are easily confused and never mix here: an offset into the file (`usize`, only
//! inside the ELF reader), a *stated* address ([`Address`], what symbols, unwind tables, DWARF and
//! disassemblers show), and the address at which a running process has the byte (elsewhere).

use std::fmt;

/// An address as the file states it (a virtual address of the ELF file, before any relocation by
/// the loader).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Address(pub u64);

impl Address {
    /// The address `bytes` further on, or `None` past the end of the address space.
    #[must_use]
    pub fn checked_add(self, bytes: u64) -> Option<Self> {
        self.0.checked_add(bytes).map(Self)
    }

    /// The address `bytes` further on, wrapping as the processor does.
    #[must_use]
    pub fn wrapping_add(self, bytes: u64) -> Self {
        Self(self.0.wrapping_add(bytes))
    }

    /// How many bytes lie between `earlier` and this address, if it is not before `earlier`.
    #[must_use]
    pub fn offset_from(self, earlier: Self) -> Option<u64> {
        self.0.checked_sub(earlier.0)
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#x}", self.0)
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#x}", self.0)
    }
}

impl fmt::LowerHex for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::LowerHex::fmt(&self.0, f)
    }
}

/// A half-open range of stated addresses; `start <= end` always holds.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Range {
    start: Address,
    end: Address,
}

impl Range {
    /// The range from `start` up to, but without, `end`; `None` where they are the wrong way round.
    #[must_use]
    pub fn new(start: Address, end: Address) -> Option<Self> {
        (start <= end).then_some(Self { start, end })
    }

    /// The `size` bytes from `start`; `None` where they would pass the end of the address space.
    #[must_use]
    pub fn sized(start: Address, size: u64) -> Option<Self> {
        Some(Self {
            start,
            end: start.checked_add(size)?,
        })
    }

    /// First address.
    #[must_use]
    pub fn start(self) -> Address {
        self.start
    }

    /// First address behind the range.
    #[must_use]
    pub fn end(self) -> Address {
        self.end
    }

    /// Bytes in the range.
    #[must_use]
    pub fn size(self) -> u64 {
        self.end.0 - self.start.0
    }

    /// Whether the range has no byte.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.start == self.end
    }

    /// Whether `address` lies inside.
    #[must_use]
    pub fn contains(self, address: Address) -> bool {
        self.start <= address && address < self.end
    }
}

impl fmt::Debug for Range {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#x}..{:#x}", self.start.0, self.end.0)
    }
}
