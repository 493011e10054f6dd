//! Witnesses with values: loops whose rounds are counted by a register.

use zerocopy::little_endian::{I64, U32};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// Bits of a value that are recorded.
const KEPT: u64 = (1 << 62) - 1;

/// What is recorded of a value, in two words of which none is 0: a word that is 0 is one that is still to be written.
#[must_use]
pub const fn words_of(value: u64) -> [u32; 2] {
    [(value << 1) as u32 | 1, (value >> 31) as u32 | 1 << 31]
}

/// The value in two such words, but for its two upper bits.
#[must_use]
pub const fn value_of([low, high]: [u32; 2]) -> u64 {
    (low >> 1) as u64 | ((high & !(1 << 31)) as u64) << 31
}

/// A witness with a value: what is in a register when control comes into a loop that it counts, or leaves it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct Value {
    /// The witness.
    pub witness: U32,
    /// The block where the loop's rounds begin.
    pub head: U32,
    /// The register's number, and [`Value::LEAVES`].
    flags: U32,
    reserved: U32,
    /// By how much the register changes in each round.
    pub step: I64,
    /// By how much it has changed there since the round began.
    pub ahead: I64,
}

impl Value {
    /// Set where control leaves the loop.
    const LEAVES: u32 = 16;

    /// That of coming into a loop, in which a register changes by `step` in each round, where a round begins.
    #[must_use]
    pub fn coming(witness: u32, head: u32, register: u8, step: i64) -> Self {
        Self {
            witness: witness.into(),
            head: head.into(),
            flags: u32::from(register & 15).into(),
            reserved: U32::ZERO,
            step: step.into(),
            ahead: I64::ZERO,
        }
    }

    /// That of leaving it.
    #[must_use]
    pub fn leaving(self) -> Self {
        Self {
            flags: (self.flags.get() | Self::LEAVES).into(),
            ..self
        }
    }

    /// That of a place where the register has changed so much since the round began.
    #[must_use]
    pub fn ahead_by(self, ahead: i64) -> Self {
        Self {
            ahead: ahead.into(),
            ..self
        }
    }

    /// The register's number.
    #[must_use]
    pub fn register(&self) -> u8 {
        self.flags.get() as u8 & 15
    }

    /// Whether control leaves the loop here.
    #[must_use]
    pub fn leaves(&self) -> bool {
        self.flags.get() & Self::LEAVES != 0
    }

    /// How many rounds began between coming in and leaving here, by what the register was; `None` where these are not those of one
    /// loop.
    #[must_use]
    pub fn rounds(&self, came: (&Self, u64), left: u64) -> Option<u64> {
        let (from, came) = came;
        let is_one = self.leaves() && !from.leaves() && from.head == self.head;
        let began = |at: &Self, value: u64| value.wrapping_sub(at.ahead.get() as u64);
        let way = began(self, left).wrapping_sub(began(from, came));
        let step = self.step.get();
        let way = if step < 0 { way.wrapping_neg() } else { way } & KEPT;
        let step = step.unsigned_abs();
        let is_whole = step != 0 && way.is_multiple_of(step);
        (is_one && is_whole).then(|| way / step)
    }
}

#[cfg(test)]
mod tests {
    use super::{KEPT, Value, value_of, words_of};

    #[test]
    fn rounds_are_told_by_what_the_register_was() {
        for (step, before, ahead) in [
            (1, 0, 0),
            (1, 1, 0),
            (1, 0, 1),
            (-1, 0, -1),
            (8, 4, 8),
            (-3, -3, 0),
            (24, 16, 16),
            (4096, 5, -7),
        ] {
            let came = Value::coming(3, 7, 13, step).ahead_by(before);
            let left = came.leaving().ahead_by(ahead);
            assert_eq!(
                (left.register(), left.leaves(), came.leaves()),
                (13, true, false)
            );
            for rounds in [0, 1, 2, 1000, 1 << 40] {
                for first in [0, 5, u64::MAX, 1 << 63, (1 << 63) - 1] {
                    let last = first
                        .wrapping_sub(before as u64)
                        .wrapping_add((step as u64).wrapping_mul(rounds))
                        .wrapping_add(ahead as u64);
                    assert_eq!(left.rounds((&came, first), last), Some(rounds));
                    let [first, last] = [first, last].map(|value| value_of(words_of(value)));
                    assert_eq!(left.rounds((&came, first), last), Some(rounds));
                }
            }
        }
    }

    #[test]
    fn values_come_back_from_words_that_are_not_0() {
        for value in [
            0,
            1,
            (1 << 31) - 1,
            1 << 31,
            0x7fff_1234_5678_9abc,
            u64::MAX,
        ] {
            let words = words_of(value);
            assert_eq!(value_of(words), value & KEPT);
            assert!(!words.contains(&0), "{value:#x}");
        }
    }

    #[test]
    fn what_does_not_belong_together_tells_nothing() {
        let came = Value::coming(3, 7, 13, 8);
        let left = came.leaving();
        assert_eq!(left.rounds((&came, 0), 7), None);
        assert_eq!(came.rounds((&came, 0), 8), None);
        assert_eq!(left.rounds((&left, 0), 8), None);
        assert_eq!(left.rounds((&Value::coming(3, 6, 13, 8), 0), 8), None);
        let still = Value::coming(3, 7, 13, 0);
        assert_eq!(still.leaving().rounds((&still, 0), 0), None);
    }
}
