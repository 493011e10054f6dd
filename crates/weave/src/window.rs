//! Windows: the bytes of the text that a probe changes, and which of them get along.

use tomo_program::{Address, DETOUR_BYTES, FETCH_BYTES};
use tomo_wire::plan::Tactic;

/// Bytes that a processor is promised to see change together.
pub(crate) const WORD_BYTES: u64 = 8;
/// Bytes of a jump with a 32-bit displacement.
pub(crate) const JUMP_BYTES: u64 = DETOUR_BYTES as u64;

/// Bytes that a probe changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Window {
    pub(crate) start: Address,
    pub(crate) tactic: Tactic,
}

impl Window {
    pub(crate) fn new(start: Address, tactic: Tactic) -> Self {
        Self { start, tactic }
    }

    /// How many bytes are changed.
    pub(crate) fn length(self) -> u64 {
        length(self.tactic)
    }

    pub(crate) fn end(self) -> Address {
        self.start.wrapping_add(self.length())
    }

    /// Whether it changes a byte of `other`'s.
    pub(crate) fn overlaps(self, other: Self) -> bool {
        self.start < other.end() && other.start < self.end()
    }

    /// Whether it changes a byte that restoring `other` would write: all of its word, if it is a
    /// quadword's.
    pub(crate) fn disturbs(self, other: Self) -> bool {
        writes_word(other.tactic)
            && self.start.0 / WORD_BYTES <= other.start.0 / WORD_BYTES
            && (self.end().0 - 1) / WORD_BYTES >= other.start.0 / WORD_BYTES
    }
}

/// Whether restoring writes all of the word in which the window starts.
pub(crate) fn writes_word(tactic: Tactic) -> bool {
    matches!(tactic, Tactic::Quadword | Tactic::Prefixed)
}

/// How many bytes a tactic changes.
pub(crate) fn length(tactic: Tactic) -> u64 {
    match tactic {
        Tactic::Quadword | Tactic::Held | Tactic::Prefixed | Tactic::Staying => JUMP_BYTES,
        Tactic::Retarget => 4,
        Tactic::Hop | Tactic::HeldHop => 2,
        Tactic::ShortRetarget | Tactic::Trap => 1,
        Tactic::Inferred | Tactic::Unknown | Tactic::NoPlace => 0,
    }
}

/// Whether the `size` bytes from `start` lie in one naturally aligned group of `unit` bytes.
pub(crate) fn within_one(start: Address, size: u64, unit: u64) -> bool {
    start.0 % unit + size <= unit
}

/// Whether a jump at `start` lies in one word.
pub(crate) fn in_one_word(start: Address) -> bool {
    within_one(start, JUMP_BYTES, WORD_BYTES)
}

/// Whether a jump at `start` is fetched at once (see `tactics/held.rs`).
pub(crate) fn in_one_fetch(start: Address) -> bool {
    within_one(start, JUMP_BYTES, FETCH_BYTES)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quadword_wants_its_word_for_itself() {
        let quadword = Window::new(Address(0x1003), Tactic::Quadword);
        let trap = |at| Window::new(Address(at), Tactic::Trap);
        let held = |at| Window::new(Address(at), Tactic::Held);
        assert!(trap(0x1000).disturbs(quadword) && !trap(0x1000).overlaps(quadword));
        assert!(held(0x0ffc).disturbs(quadword) && !held(0x0ffb).disturbs(quadword));
        assert!(!held(0x1008).disturbs(quadword));
        assert!(!quadword.disturbs(trap(0x1000)), "a trap's byte is its own");
        assert!(held(0x1007).overlaps(quadword) && !held(0x1008).overlaps(quadword));
    }

    #[test]
    fn alignment() {
        assert!(in_one_word(Address(0x1003)) && !in_one_word(Address(0x1004)));
        assert!(
            in_one_fetch(Address(0x103b))
                && !in_one_fetch(Address(0x103c))
                && !in_one_fetch(Address(0x101c))
        );
    }
}
