//! Words in a track that are no witness': a thread begins, it is the copy of another one, a signal came.

/// A word: a thread begins. Its process, its thread and its number, plus one, follow.
pub const BEGIN: u32 = u32::MAX;
/// How many words say that.
pub const BEGIN_WORDS: usize = 4;
/// A word: a signal came. The arrival at its handler follows behind the place.
pub const SIGNAL: u32 = u32::MAX - 1;
/// How many words say that.
pub const SIGNAL_WORDS: usize = 3;
/// A word: the thread that begins is the copy of another one, which forked.
pub const FORKED: u32 = u32::MAX - 2;
/// How many words say that.
pub const FORKED_WORDS: usize = 4;
/// Bits of a number in a word.
const BITS: u32 = 31;

/// A number of at most 62 bits in two words, of which none is 0 or a word of another kind.
const fn two_words(number: u64) -> [u32; 2] {
    let mask = (1 << BITS) - 1;
    [
        (number & mask) as u32 + 1,
        (number >> BITS & mask) as u32 + 1,
    ]
}

/// The number in such words.
const fn number_of([low, high]: [u32; 2]) -> u64 {
    (high.wrapping_sub(1) as u64) << BITS | low.wrapping_sub(1) as u64
}

/// Where a thread comes from that is the copy of another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Origin {
    /// The number of that thread.
    pub serial: u32,
    /// How many words there were in its track when it forked.
    pub words: u64,
}

impl Origin {
    /// The words that say so.
    #[must_use]
    pub const fn words(self) -> [u32; FORKED_WORDS] {
        let [low, high] = two_words(self.words);
        [FORKED, self.serial.wrapping_add(1), low, high]
    }

    /// What such words say.
    #[must_use]
    pub const fn read([_, serial, low, high]: [u32; FORKED_WORDS]) -> Self {
        Self {
            serial: serial.wrapping_sub(1),
            words: number_of([low, high]),
        }
    }
}

/// The words that say that a signal came where the instruction at this address, as the module states it, was to be
/// executed next. None of them is 0 or a word of another kind.
#[must_use]
pub const fn signal(address: u64) -> [u32; SIGNAL_WORDS] {
    let [low, high] = two_words(address);
    [SIGNAL, low, high]
}

/// The address in such words, less its upper bits.
#[must_use]
pub const fn signal_at([_, low, high]: [u32; SIGNAL_WORDS]) -> u64 {
    number_of([low, high])
}

#[cfg(test)]
mod tests {
    use super::{BEGIN, FORKED, Origin, SIGNAL, signal, signal_at};

    /// An address comes back, and none of the words that follow is one of another kind, or none.
    #[test]
    fn places_of_signals_are_told() {
        for address in [
            0,
            1,
            0x7fff_ffff,
            0x8000_0000,
            0xffff_ffff,
            0x40_1136,
            (1 << 62) - 1,
        ] {
            let words = signal(address);
            assert_eq!(signal_at(words), address);
            let origin = Origin {
                serial: 7,
                words: address,
            };
            assert_eq!(Origin::read(origin.words()), origin);
            let [_, rest @ ..] = words;
            for word in rest {
                let kinds = [0, BEGIN, SIGNAL, FORKED];
                assert!(!kinds.contains(&word), "{address:#x}");
            }
        }
    }
}
