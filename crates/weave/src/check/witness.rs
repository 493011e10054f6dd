//! Recognises what appends a word to the track of a thread, whole, with what saves and restores what it changes.

use crate::staying::live::Set;

/// What appends a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Found {
    /// The number of the witness.
    pub(super) number: u32,
    /// Whether the low half of the stack pointer follows.
    pub(super) with_stack: bool,
    /// What it does not leave as it was.
    pub(super) changes: Set,
    /// Bytes of all of it.
    pub(super) length: usize,
    /// Where it leads when a unit of the track begins, and where that must lead back to: bytes from its start.
    pub(super) seldom: Option<(i64, i64)>,
}

const BELOW_RED_ZONE: [u8; 5] = [0x48, 0x8d, 0x64, 0x24, 0x80];
const BACK: [u8; 8] = [0x48, 0x8d, 0xa4, 0x24, 0x80, 0, 0, 0];
/// The call of what the slab names, below the red zone.
const HAND_OVER: [u8; 21] = [
    0x48, 0x8d, 0x64, 0x24, 0x80, 0x65, 0xff, 0x14, 0x25, 8, 0, 0, 0, 0x48, 0x8d, 0xa4, 0x24, 0x80,
    0, 0, 0,
];

/// Code that is read piece by piece.
struct Reading<'c> {
    code: &'c [u8],
    at: usize,
}

impl Reading<'_> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let bytes = self.code.get(self.at..)?.first_chunk()?;
        self.at += N;
        Some(*bytes)
    }

    fn expect<const N: usize>(&mut self, wanted: [u8; N]) -> Option<()> {
        (self.take()? == wanted).then_some(())
    }

    /// Whether these bytes come next; then they are passed.
    fn has<const N: usize>(&mut self, wanted: [u8; N]) -> bool {
        let rest = self.code.get(self.at..).unwrap_or_default();
        let has = rest.starts_with(&wanted);
        if has {
            self.at += N;
        }
        has
    }
}

/// What is saved before, and where the place is.
#[derive(Clone, Copy)]
struct Saved {
    stack: bool,
    rax: bool,
    rcx: bool,
    flags: bool,
}

impl Reading<'_> {
    fn saved(&mut self) -> Saved {
        let stack = self.has(BELOW_RED_ZONE);
        Saved {
            stack,
            rax: stack && self.has([0x50]),
            rcx: stack && self.has([0x51]),
            flags: self.has([0x9f, 0x0f, 0x90, 0xc0]),
        }
    }

    /// `mov place, bytes; xadd gs:[0], place`: the place and how many bytes.
    fn taken(&mut self) -> Option<(u8, u8)> {
        let [prefix, opcode, bytes] = self.take()?;
        let (high, low) = (prefix & 1, opcode & 7);
        self.expect([0, 0, 0])?;
        if prefix & 0xfe != 0x40 || opcode & 0xf8 != 0xb8 || low == 4 {
            return None;
        }
        let (prefix, operand) = (0x48 | high << 2, 0x04 | low << 3);
        self.expect([0x65, prefix, 0x0f, 0xc1, operand, 0x25, 0, 0, 0, 0])?;
        Some((high << 3 | low, bytes))
    }

    fn restored(&mut self, saved: Saved) -> Option<()> {
        if saved.flags {
            self.expect([0x04, 0x7f, 0x9e])?;
        }
        if saved.rcx {
            self.expect([0x59])?;
        }
        if saved.rax {
            self.expect([0x58])?;
        }
        match saved.stack {
            true => self.expect(BACK),
            false => Some(()),
        }
    }
}

impl Saved {
    /// What is not left as it was when the word's place is in this register; `None` where what is saved is not what is
    /// changed: the flags are in `rax` meanwhile.
    fn changes(self, place: u8) -> Option<Set> {
        let wrong = self.flags && place == 0 || self.rcx && place != 1 || self.rax && !self.flags;
        let changes = [
            (!self.flags, Set::STATUS),
            (self.flags && !self.rax, Set::numbered(0)),
            (!self.rcx, Set::numbered(place)),
        ];
        let changed = changes.into_iter().filter(|(is, _)| *is);
        (!wrong).then(|| changed.fold(Set::NONE, |all, (_, what)| all.with(what)))
    }
}

/// The appending that `code` begins with, if it does.
pub(super) fn read(code: &[u8]) -> Option<Found> {
    let reading = &mut Reading { code, at: 0 };
    let saved = reading.saved();
    let (place, bytes) = reading.taken()?;
    let (high, low) = (place >> 3, place & 7);
    let mut seldom = None;
    let with_stack = match bytes {
        4 => {
            // test of the place's low half with itself
            reading.expect([0x66, 0x40 | (high * 5), 0x85, 0xc0 | (low * 9), 0x0f, 0x84])?;
            let way = i32::from_le_bytes(reading.take()?);
            let behind = reading.at as i64;
            seldom = Some((behind + i64::from(way), behind));
            false
        }
        8 => {
            reading.expect(HAND_OVER)?;
            true
        }
        _ => return None,
    };
    // mov dword ptr [place], number + 1
    reading.expect([0x40 | high, 0xc7, 0x40 | low, 0])?;
    let number = u32::from_le_bytes(reading.take()?).checked_sub(1)?;
    if with_stack {
        reading.expect([0x40 | high, 0x89, 0x60 | low, 4])?;
    }
    reading.restored(saved)?;
    Some(Found {
        number,
        with_stack,
        changes: saved.changes(place)?,
        length: reading.at,
        seldom,
    })
}

/// Whether `code` calls the agent and then jumps; how far from its start to there.
pub(super) fn hands_over(code: &[u8]) -> Option<i64> {
    let reading = &mut Reading { code, at: 0 };
    reading.expect(HAND_OVER)?;
    reading.expect([0xe9])?;
    let way = i32::from_le_bytes(reading.take()?);
    Some(reading.at as i64 + i64::from(way))
}

#[cfg(test)]
mod tests {
    use super::{hands_over, read};
    use crate::staying::live::Set;
    use crate::staying::witness::{Word, write};
    use crate::trampoline::{Spot, Writer};

    #[test]
    fn what_is_written_is_recognised_whatever_is_live() {
        for seed in 0..4096u64 {
            // All sets of a few registers, and flags or none.
            let mut live = Set::ALL;
            for (bit, number) in [0, 1, 2, 5, 8, 12, 13, 15].into_iter().enumerate() {
                if seed >> bit & 1 != 0 {
                    live = live.without(Set::numbered(number));
                }
            }
            if seed >> 8 & 1 != 0 {
                live = live.without(Set::STATUS);
            }
            for word in [Word::Number(77), Word::WithStack(77)] {
                let mut writer = Writer::new(Spot(0), 64);
                write(&mut writer, word, live);
                let length = writer.bytes.len();
                writer.write_seldom();
                let found = read(&writer.bytes).expect("a witness");
                assert_eq!((found.number, found.length), (77, length));
                assert_eq!(found.with_stack, word == Word::WithStack(77));
                assert!(!live.has_any(found.changes), "{live:?} {found:?}");
                if let Some((seldom, back)) = found.seldom {
                    let code = &writer.bytes[seldom as usize..];
                    assert_eq!(hands_over(code), Some(back - seldom));
                }
                for cut in 0..length {
                    assert_eq!(read(&writer.bytes[..cut]), None, "{cut} bytes");
                }
            }
        }
    }
}
