//! Appending a word to the track of the thread, changing nothing that anybody looks at.
//!
//! The cursor lies in the slab of the thread, to which its `gs` base points. One instruction takes the place of
//! the word and moves the cursor on (`xadd`), so a signal handler that comes before it or behind it and appends words
//! itself has places of its own: nothing is overwritten, and words stand in the order in which their places were
//! taken. A word whose writer never came back stays 0.
//!
//! The place itself tells when a unit of the track begins: its low sixteen bits are zero. Then the agent sees to
//! it that there is room for one unit more; until it has, there is room for all of this one.

use tomo_wire::tracing::{CURSOR, HAND_OVER};

use super::live::Set;
use crate::trampoline::Writer;

/// What is appended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Word {
    /// This one.
    Number(u32),
    /// This one, and the low half of the stack pointer behind it.
    WithStack(u32),
    /// This one, and what is in the register of this number behind it.
    WithValue(u32, u8),
}

impl Word {
    /// The register of which it tells what is in it.
    fn told(self) -> Option<u8> {
        match self {
            Self::Number(_) | Self::WithStack(_) => None,
            Self::WithValue(_, register) => Some(register),
        }
    }
}

/// `lahf`, `seto al`.
const SAVE_FLAGS: [u8; 4] = [0x9f, 0x0f, 0x90, 0xc0];
/// `add al, 127`, `sahf`.
const RESTORE_FLAGS: [u8; 3] = [0x04, 0x7f, 0x9e];
/// `lea rsp, [rsp - 128]`.
const BELOW_RED_ZONE: [u8; 5] = [0x48, 0x8d, 0x64, 0x24, 0x80];
/// `lea rsp, [rsp + 128]`.
const BACK: [u8; 8] = [0x48, 0x8d, 0xa4, 0x24, 0x80, 0, 0, 0];
const JB: u8 = 2;
const JZ: u8 = 4;
/// The stack pointer's number.
const STACK: u8 = 4;

/// Registers in which the place may be: not those whose codes say something else in an address.
const CANDIDATES: [u8; 14] = [0, 1, 2, 6, 7, 8, 9, 10, 11, 3, 5, 13, 14, 15];

/// Which registers it is done with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct With {
    /// That has the place.
    place: u8,
    /// Whether it is saved on the stack.
    saves_place: bool,
    /// Whether flags are saved in `rax`.
    flags: bool,
    /// Whether `rax` is saved on the stack before.
    saves_rax: bool,
}

impl With {
    /// Where `live` is looked at afterwards, and it is told what is in a register.
    fn of(live: Set, told: Option<u8>) -> Self {
        let live = live.with(told.map_or(Set::NONE, Set::numbered));
        let flags = live.has_any(Set::STATUS);
        let taken = match flags {
            true => live.with(Set::numbered(0)),
            false => live,
        };
        let free = |number: &&u8| !taken.has_any(Set::numbered(**number));
        let place = CANDIDATES.iter().find(free).copied();
        Self {
            place: place.unwrap_or(if told == Some(1) { 2 } else { 1 }),
            saves_place: place.is_none(),
            flags,
            saves_rax: flags && live.has_any(Set::numbered(0)),
        }
    }

    fn uses_stack(self) -> bool {
        self.saves_place || self.saves_rax
    }
}

/// Whether the register is still what it was when it is recorded, where `live` is looked at afterwards: flags are in `rax` then
/// if they are.
pub(crate) fn can_tell(register: u8, live: Set) -> bool {
    let with = With::of(live, Some(register));
    let has_flags = with.flags && register == 0;
    !has_flags && register != STACK
}

/// What it costs, in halves of what a plain increment does.
pub(crate) fn cost(word: Word, live: Set) -> u64 {
    let with = With::of(live, word.told());
    let more = match word {
        Word::Number(_) => 0,
        Word::WithStack(_) => 3,
        // As three words: they are taken along, packed and read as three.
        Word::WithValue(..) => 8,
    };
    4 + more
        + 2 * u64::from(with.flags)
        + 3 * u64::from(with.saves_place)
        + 3 * u64::from(with.saves_rax)
}

/// Appends the code that appends `word`, where `live` is looked at afterwards.
pub(crate) fn write(writer: &mut Writer, word: Word, live: Set) {
    let with = With::of(live, word.told());
    if with.uses_stack() {
        writer.copy(&BELOW_RED_ZONE);
    }
    if with.saves_rax {
        writer.copy(&[0x50]); // push rax
    }
    if with.saves_place {
        writer.copy(&[0x50 | with.place]); // push rcx, or rdx
    }
    if with.flags {
        writer.copy(&SAVE_FLAGS);
    }
    match word {
        Word::Number(number) => {
            take(writer, with.place, 4);
            let (high, low) = (with.place >> 3, with.place & 7);
            // test, sixteen bits of the place with themselves
            writer.copy(&[0x66, 0x40 | (high * 5), 0x85, 0xc0 | (low * 9)]);
            let begins = writer.branch_ahead(JZ);
            writer.later(begins, hand_over);
            store(writer, with.place, 0, number);
        }
        Word::WithValue(number, register) => with_value(writer, with.place, number, register),
        Word::WithStack(number) => {
            take(writer, with.place, 8);
            hand_over(writer);
            store(writer, with.place, 0, number);
            let (high, low) = (with.place >> 3, with.place & 7);
            writer.copy(&[0x40 | high, 0x89, 0x60 | low, 4]); // mov [place + 4], esp
        }
    }
    if with.flags {
        writer.copy(&RESTORE_FLAGS);
    }
    if with.saves_place {
        writer.copy(&[0x58 | with.place]);
    }
    if with.saves_rax {
        writer.copy(&[0x58]);
    }
    if with.uses_stack() {
        writer.copy(&BACK);
    }
}

/// `mov place, bytes; xadd gs:[CURSOR], place`.
fn take(writer: &mut Writer, place: u8, bytes: u8) {
    let (high, low) = (place >> 3, place & 7);
    writer.copy(&[0x40 | high, 0xb8 | low, bytes, 0, 0, 0]);
    writer.copy(&[0x65, 0x48 | high << 2, 0x0f, 0xc1, 0x04 | low << 3, 0x25]);
    writer.copy(&CURSOR.to_le_bytes());
}

/// `mov dword ptr [place + offset], number + 1`.
fn store(writer: &mut Writer, place: u8, offset: i8, number: u32) {
    let (high, low) = (place >> 3, place & 7);
    writer.copy(&[0x40 | high, 0xc7, 0x40 | low, offset as u8]);
    writer.copy(&number.wrapping_add(1).to_le_bytes());
}

/// Three words: the number, which is written last, so that where it is the value is too, and that, in two words of which none is 0
/// ([`tomo_wire::tracing::value_of`]). A unit begins at one of them if the third is among the first three of a unit.
fn with_value(writer: &mut Writer, place: u8, number: u32, register: u8) {
    take(writer, place, 12);
    let (high, low) = (place >> 3, place & 7);
    writer.copy(&[0x48 | (high * 5), 0x8d, 0x40 | (low * 9), 8]); // lea place, [place + 8]
    writer.copy(&[0x66, 0x40 | high, 0x83, 0xf8 | low, 12]); // cmp, sixteen bits of the place
    let begins = writer.branch_ahead(JB);
    writer.later(begins, hand_over);
    let (above, below) = (register >> 3, register & 7);
    writer.copy(&[
        0x48 | above << 2 | high,
        0x89,
        0x40 | below << 3 | low,
        0xfc,
    ]); // mov [place - 4], register
    writer.copy(&[0x48 | high, 0xd1, 0x60 | low, 0xfc]); // shl qword ptr [place - 4], 1
    writer.copy(&[0x40 | high, 0x83, 0x48 | low, 0xfc, 1]); // or dword ptr [place - 4], 1
    writer.copy(&[0x40 | high, 0x80, 0x48 | low, 3, 0x80]); // or byte ptr [place + 3], 128
    store(writer, place, -8, number);
}

/// Calls the agent, which changes no register and nothing above the red zone.
fn hand_over(writer: &mut Writer) {
    writer.copy(&BELOW_RED_ZONE);
    writer.copy(&[0x65, 0xff, 0x14, 0x25]); // call gs:[HAND_OVER]
    writer.copy(&HAND_OVER.to_le_bytes());
    writer.copy(&BACK);
}
