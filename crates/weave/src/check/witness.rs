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

/// The appending that `code` begins with, if it does.
pub(super) fn read(code: &[u8]) -> Option<Found> {
    let reading = &mut Reading { code, at: 0 };
    let stack = reading.has(BELOW_RED_ZONE);
    let saves_rax = stack && reading.has([0x50]);
    let saves_rcx = stack && reading.has([0x51]);
    let flags = reading.has([0x9f, 0x0f, 0x90, 0xc0]);
    // mov place, 4 or 8
    let [prefix, opcode] = reading.take()?;
    let (high, low) = (prefix & 1, opcode & 7);
    let place = high << 3 | low;
    let [bytes] = reading.take()?;
    reading.expect([0, 0, 0])?;
    if prefix & 0xfe != 0x40 || opcode & 0xf8 != 0xb8 || low == 4 {
        return None;
    }
    // xadd gs:[0], place
    reading.expect([
        0x65,
        0x48 | high << 2,
        0x0f,
        0xc1,
        0x04 | low << 3,
        0x25,
        0,
        0,
        0,
        0,
    ])?;
    let mut seldom = None;
    let with_stack = match bytes {
        4 => {
            // test of the place's low half with itself
            reading.expect([0x66, 0x40 | high * 5, 0x85, 0xc0 | low * 9, 0x0f, 0x84])?;
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
    if flags {
        reading.expect([0x04, 0x7f, 0x9e])?;
    }
    if saves_rcx {
        reading.expect([0x59])?;
    }
    if saves_rax {
        reading.expect([0x58])?;
    }
    if stack {
        reading.expect(BACK)?;
    }
    let (keeps_place, uses_rax) = (saves_rcx && place == 1, flags && !saves_rax);
    // The flags are in `rax` meanwhile, and what is saved must be what is changed.
    if flags && place == 0 || saves_rcx && place != 1 || saves_rax && !flags {
        return None;
    }
    let mut changes = Set::NONE;
    for (is, what) in [
        (!flags, Set::STATUS),
        (uses_rax, Set::numbered(0)),
        (!keeps_place, Set::numbered(place)),
    ] {
        if is {
            changes = changes.with(what);
        }
    }
    Some(Found {
        number,
        with_stack,
        changes,
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
