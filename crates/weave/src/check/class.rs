//! Recognises in machine code what tells a result by its sign, and what sets a mark, whole.

use super::bytes::Bytes;

/// Where one of the three ways records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sink {
    /// In the byte so far behind the first mark.
    Mark(i64),
    /// In the counter so many bytes into the slab.
    Counter(u32),
}

/// What was recognised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Class {
    /// Bits that are looked at.
    pub(super) bits: u8,
    /// Where negative values, zero, and positive ones are recorded.
    pub(super) sinks: [Sink; 3],
    /// Whether it leaves the flags as they were.
    pub(super) keeps: bool,
    /// Bytes of all of it.
    pub(super) length: usize,
}

/// Code that starts `from` bytes behind the first mark.
struct Reading<'c> {
    code: Bytes<'c>,
    from: i64,
}

impl<'c> Reading<'c> {
    fn of(code: &'c [u8], from: i64) -> Self {
        let code = Bytes::of(code);
        Self { code, from }
    }

    /// `mov byte ptr [rip + …], 1`.
    fn mark(&mut self) -> Option<Sink> {
        self.code.expect([0xc6, 0x05])?;
        let displacement = i32::from_le_bytes(self.code.take()?);
        self.code.expect([1])?;
        Some(Sink::Mark(
            self.from + self.code.at as i64 + i64::from(displacement),
        ))
    }

    /// `mov [rip + …], …` of this opcode: where, and what.
    fn store<const N: usize>(&mut self, opcode: [u8; 2]) -> Option<(i64, [u8; N])> {
        self.code.expect(opcode)?;
        let displacement = i32::from_le_bytes(self.code.take()?);
        let value = self.code.take()?;
        let to = self.from + self.code.at as i64 + i64::from(displacement);
        Some((to, value))
    }

    /// That, or `inc qword ptr gs:[…]`.
    fn sink(&mut self) -> Option<Sink> {
        if self.code.skips([0x65, 0x48, 0xff, 0x04, 0x25]) {
            return self.code.take().map(u32::from_le_bytes).map(Sink::Counter);
        }
        self.mark()
    }

    /// A branch of this opcode; where it leads.
    fn branch(&mut self, opcode: u8) -> Option<usize> {
        self.code.expect([opcode])?;
        let [way] = self.code.take()?;
        let way = usize::try_from(way.cast_signed()).ok()?;
        Some(self.code.at + way)
    }

    fn comparison(&mut self) -> Option<u8> {
        if self.code.skips([0x84, 0xc0]) {
            Some(8)
        } else if self.code.skips([0x66, 0x85, 0xc0]) {
            Some(16)
        } else if self.code.skips([0x85, 0xc0]) {
            Some(32)
        } else {
            self.code.expect([0x48, 0x85, 0xc0]).map(|()| 64)
        }
    }

    /// Sign first, then zero, then what is neither.
    fn class(&mut self) -> Option<Class> {
        let keeps = self.code.skips([0x48, 0x8d, 0x64, 0x24, 0x80, 0x9c]);
        let bits = self.comparison()?;
        let negative = self.branch(0x78)?;
        let zero = self.branch(0x74)?;
        let for_positive = self.sink()?;
        let end = self.branch(0xeb)?;
        if self.code.at != zero {
            return None;
        }
        let for_zero = self.sink()?;
        let same = self.branch(0xeb)? == end && self.code.at == negative;
        let for_negative = self.sink()?;
        if !same || self.code.at != end {
            return None;
        }
        if keeps {
            self.code
                .expect([0x9d, 0x48, 0x8d, 0xa4, 0x24, 0x80, 0, 0, 0])?;
        }
        Some(Class {
            bits,
            sinks: [for_negative, for_zero, for_positive],
            keeps,
            length: self.code.at,
        })
    }
}

/// What `code` begins with, if it tells a result. It starts `from` bytes behind the first mark.
pub(super) fn read(code: &[u8], from: i64) -> Option<Class> {
    Reading::of(code, from).class()
}

/// Two marks of which the flags say which is set, the second by a branch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Split {
    /// Whether it branches by the sign; else by zero.
    pub(super) by_sign: bool,
    /// The mark that is set if it branches, and the other one.
    pub(super) marks: [i64; 2],
    /// Bytes of all of it.
    pub(super) length: usize,
}

/// What `code` begins with, if it sets one of two marks.
pub(super) fn read_split(code: &[u8], from: i64) -> Option<Split> {
    let mut reading = Reading::of(code, from);
    let by_sign = code.first() == Some(&0x78);
    let branched = reading.branch(if by_sign { 0x78 } else { 0x74 })?;
    let Sink::Mark(other) = reading.mark()? else {
        return None;
    };
    let end = reading.branch(0xeb)?;
    if reading.code.at != branched {
        return None;
    }
    let Sink::Mark(one) = reading.mark()? else {
        return None;
    };
    (reading.code.at == end).then_some(Split {
        by_sign,
        marks: [one, other],
        length: end,
    })
}

/// Which byte behind the first mark `code` begins by setting, if it does, in how many bytes.
pub(super) fn read_mark(code: &[u8], from: i64) -> Option<(i64, usize)> {
    let mut reading = Reading::of(code, from);
    match reading.mark()? {
        Sink::Mark(mark) => Some((mark, reading.code.at)),
        Sink::Counter(_) => None,
    }
}

/// A mark that is set, and bytes that are restored then behind a hold, all at places behind the first mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Once {
    pub(super) mark: i64,
    /// The mark that must be set already, if there is one.
    pub(super) other: Option<i64>,
    pub(super) window: i64,
    pub(super) bytes: [u8; 5],
    /// Bytes of all of it.
    pub(super) length: usize,
}

/// What `code` begins with, if it sets a mark once.
pub(super) fn read_once(code: &[u8], from: i64) -> Option<Once> {
    let mut reading = Reading::of(code, from);
    let Sink::Mark(mark) = reading.mark()? else {
        return None;
    };
    let compares = code.get(reading.code.at..)?.starts_with(&[0x80, 0x3d]);
    let (other, open) = match compares {
        true => {
            let (other, [0]) = reading.store([0x80, 0x3d])? else {
                return None;
            };
            (Some(other), Some(reading.branch(0x74)?))
        }
        false => (None, None),
    };
    let (hold, [0xcc]) = reading.store([0xc6, 0x05])? else {
        return None;
    };
    let (tail, [b, c, d, e]) = reading.store([0xc7, 0x05])?;
    let (first, [a]) = reading.store([0xc6, 0x05])?;
    let ends = open.is_none_or(|open| open == reading.code.at);
    (first == hold && tail == hold + 1 && ends).then_some(Once {
        mark,
        other,
        window: hold,
        bytes: [a, b, c, d, e],
        length: reading.code.at,
    })
}

#[cfg(test)]
mod tests {
    use super::{Sink, read};
    use crate::staying::action::Sinks;
    use crate::staying::class::Class;
    use crate::staying::live::Set;
    use crate::trampoline::{Spot, Writer};

    #[test]
    fn what_is_written_is_recognised_and_no_byte_may_be_another() {
        let sinks = Sinks {
            slab: 64,
            marks: Spot(1000),
            ..Sinks::NOWHERE
        };
        for bits in [8, 16, 32, 64] {
            for live in [Set::NONE, Set::ALL] {
                for counts in [false, true] {
                    let class = Class {
                        bits,
                        first: 5,
                        counts,
                    };
                    let mut writer = Writer::new(Spot(0), 64);
                    class.write(&mut writer, sinks, live);
                    let code = writer.bytes;
                    let found = read(&code, -1000).expect("a class");
                    let sink = |case: u32| match counts {
                        true => Sink::Counter(64 + 8 * (5 + case)),
                        false => Sink::Mark(i64::from(5 + case)),
                    };
                    assert_eq!(found.sinks, [sink(0), sink(1), sink(2)]);
                    assert_eq!((found.bits, found.length), (bits, code.len()));
                    assert_eq!(found.keeps, live == Set::ALL);
                    for at in 0..code.len() {
                        let mut other = code.clone();
                        other[at] ^= 0x11;
                        assert_ne!(read(&other, -1000), Some(found), "byte {at}");
                    }
                }
            }
        }
    }
}
