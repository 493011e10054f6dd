//! Recognises what appends a word to the track of a thread, whole, with what saves and restores what it changes.

use super::bytes::Bytes;
use crate::staying::live::Set;

/// What appends a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Found {
    /// The number of the witness.
    pub(super) number: u32,
    /// What follows it.
    pub(super) with: With,
    /// What it does not leave as it was.
    pub(super) changes: Set,
    /// Bytes of all of it.
    pub(super) length: usize,
    /// Where it leads when a unit of the track begins, and where that must lead back to: bytes from its start.
    pub(super) seldom: Option<(i64, i64)>,
}

/// What follows the number of a witness.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum With {
    Nothing,
    /// The low half of the stack pointer.
    Stack,
    /// What is in this register.
    Value(u8),
}

const BELOW_RED_ZONE: [u8; 5] = [0x48, 0x8d, 0x64, 0x24, 0x80];
const BACK: [u8; 8] = [0x48, 0x8d, 0xa4, 0x24, 0x80, 0, 0, 0];
/// The call of what the slab names, below the red zone.
const HAND_OVER: [u8; 21] = [
    0x48, 0x8d, 0x64, 0x24, 0x80, 0x65, 0xff, 0x14, 0x25, 8, 0, 0, 0, 0x48, 0x8d, 0xa4, 0x24, 0x80,
    0, 0, 0,
];

/// What is saved before, and where the place is.
#[derive(Clone, Copy)]
struct Saved {
    stack: bool,
    rax: bool,
    /// The register in which the place is, `rcx` or `rdx`.
    place: Option<u8>,
    flags: bool,
}

impl Bytes<'_> {
    fn saved(&mut self) -> Saved {
        let stack = self.skips(BELOW_RED_ZONE);
        let rax = stack && self.skips([0x50]);
        let place = [1, 2]
            .into_iter()
            .find(|place| stack && self.skips([0x50 | place]));
        Saved {
            stack,
            rax,
            place,
            flags: self.skips([0x9f, 0x0f, 0x90, 0xc0]),
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

    /// `mov [place - 4], register`: which.
    fn value(&mut self, high: u8, low: u8) -> Option<u8> {
        let [prefix, opcode, operand, offset] = self.take()?;
        let is_store = prefix & !4 == 0x48 | high && opcode == 0x89 && offset == 0xfc;
        let register = (prefix & 4) << 1 | operand >> 3 & 7;
        (is_store && operand & !0x38 == 0x40 | low).then_some(register)
    }

    fn restored(&mut self, saved: Saved) -> Option<()> {
        if saved.flags {
            self.expect([0x04, 0x7f, 0x9e])?;
        }
        if let Some(place) = saved.place {
            self.expect([0x58 | place])?;
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
        let wrong = self.flags && place == 0
            || self.place.is_some_and(|saved| saved != place)
            || self.rax && !self.flags;
        let changes = [
            (!self.flags, Set::STATUS),
            (self.flags && !self.rax, Set::numbered(0)),
            (self.place.is_none(), Set::numbered(place)),
        ];
        let changed = changes.into_iter().filter(|(is, _)| *is);
        (!wrong).then(|| changed.fold(Set::NONE, |all, (_, what)| all.with(what)))
    }
}

/// The appending that `code` begins with, if it does.
pub(super) fn read(code: &[u8]) -> Option<Found> {
    let reading = &mut Bytes::of(code);
    let saved = reading.saved();
    let (place, bytes) = reading.taken()?;
    let (high, low) = (place >> 3, place & 7);
    let mut seldom = None;
    let mut handed_over = |reading: &mut Bytes<'_>| {
        let way = i32::from_le_bytes(reading.take()?);
        let behind = reading.at as i64;
        seldom = Some((behind + i64::from(way), behind));
        Some(())
    };
    let (mut with, mut offset) = (With::Nothing, 0);
    match bytes {
        4 => {
            // test of the place's low half with itself, jz
            reading.expect([0x66, 0x40 | (high * 5), 0x85, 0xc0 | (low * 9), 0x0f, 0x84])?;
            handed_over(reading)?;
        }
        8 => {
            reading.expect(HAND_OVER)?;
            with = With::Stack;
        }
        12 => {
            // lea place, [place + 8]; cmp of its low half with 12, jb
            reading.expect([0x48 | (high * 5), 0x8d, 0x40 | (low * 9), 8])?;
            reading.expect([0x66, 0x40 | high, 0x83, 0xf8 | low, 12, 0x0f, 0x82])?;
            handed_over(reading)?;
            with = With::Value(reading.value(high, low)?);
            // shl qword ptr [place - 4], 1; or of its words' lowest and highest bits
            reading.expect([0x48 | high, 0xd1, 0x60 | low, 0xfc])?;
            reading.expect([0x40 | high, 0x83, 0x48 | low, 0xfc, 1])?;
            reading.expect([0x40 | high, 0x80, 0x48 | low, 3, 0x80])?;
            offset = 0xf8;
        }
        _ => return None,
    }
    // mov dword ptr [place + offset], number + 1
    reading.expect([0x40 | high, 0xc7, 0x40 | low, offset])?;
    let number = u32::from_le_bytes(reading.take()?).checked_sub(1)?;
    if with == With::Stack {
        reading.expect([0x40 | high, 0x89, 0x60 | low, 4])?;
    }
    reading.restored(saved)?;
    // What is recorded must still be there.
    let is_lost = |register| register == place || saved.flags && register == 0;
    if matches!(with, With::Value(register) if is_lost(register)) {
        return None;
    }
    Some(Found {
        number,
        with,
        changes: saved.changes(place)?,
        length: reading.at,
        seldom,
    })
}

/// Whether `code` calls the agent and then jumps; how far from its start to there.
pub(super) fn hands_over(code: &[u8]) -> Option<i64> {
    let reading = &mut Bytes::of(code);
    reading.expect(HAND_OVER)?;
    reading.expect([0xe9])?;
    let way = i32::from_le_bytes(reading.take()?);
    Some(reading.at as i64 + i64::from(way))
}

#[cfg(test)]
mod tests {
    use super::{With, hands_over, read};
    use crate::staying::live::Set;
    use crate::staying::witness::{Word, can_tell, write};
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
            let told = (0..16).filter(|register| can_tell(*register, live));
            let values =
                told.map(|register| (Word::WithValue(77, register), With::Value(register)));
            let others = [
                (Word::Number(77), With::Nothing),
                (Word::WithStack(77), With::Stack),
            ];
            for (word, with) in others.into_iter().chain(values) {
                let mut writer = Writer::new(Spot(0), 64);
                write(&mut writer, word, live);
                let length = writer.bytes.len();
                writer.write_seldom();
                let found = read(&writer.bytes).expect("a witness");
                assert_eq!((found.number, found.length), (77, length));
                assert_eq!(found.with, with);
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
