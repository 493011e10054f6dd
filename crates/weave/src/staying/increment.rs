//! Adding one to a counter, changing nothing that anybody looks at.
//!
//! The counter lies in the slab of the thread, to which its `gs` base points (Intel SDM vol. 3, §3.4.4.1): one
//! instruction, which no other thread and no signal handler can come in between, needs no `lock` and no
//! register. It changes all status flags but the carry flag; where somebody may look at one of these they are
//! saved in `rax`, which is saved too if need be: in a register that nobody looks at, else below the
//! red zone.

use iced_x86::Register;

use super::live::Set;
use crate::trampoline::Writer;

/// What saves the flags in `rax`: `lahf`, `seto al`.
const SAVE_FLAGS: [u8; 4] = [0x9f, 0x0f, 0x90, 0xc0];
/// What brings them back: `add al, 127` overflows if `al` is one, `sahf` leaves that flag alone.
const RESTORE_FLAGS: [u8; 3] = [0x04, 0x7f, 0x9e];

/// How the flags are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Keep {
    /// Not at all: nobody looks.
    Nothing,
    /// In `rax`, which nobody looks at.
    Rax,
    /// In `rax`, and that in the register with this number.
    Register(u8),
    /// In `rax`, and that on the stack.
    Stack,
}

impl Keep {
    fn of(live: Set) -> Self {
        if !live.has_any(Set::STATUS.without(Set::CARRY)) {
            return Self::Nothing;
        }
        if !live.has_any(Set::register(Register::RAX)) {
            return Self::Rax;
        }
        let free = |number: &u8| !live.has_any(Set::numbered(*number));
        match (0..16).find(free) {
            Some(number) => Self::Register(number),
            None => Self::Stack,
        }
    }
}

/// What it costs, in halves of what the plain increment does.
pub(crate) fn cost(live: Set) -> u64 {
    match Keep::of(live) {
        Keep::Nothing => 2,
        Keep::Rax => 4,
        Keep::Register(_) => 5,
        Keep::Stack => 8,
    }
}

/// Appends the increment of the counter `offset` bytes into the slab, where `live` is looked at afterwards.
pub(crate) fn write(writer: &mut Writer, offset: u32, live: Set) {
    let keep = Keep::of(live);
    match keep {
        Keep::Nothing => return increment(writer, offset),
        Keep::Rax => {}
        Keep::Register(number) => writer.copy(&[0x48 | number >> 3, 0x89, 0xc0 | number & 7]),
        Keep::Stack => {
            writer.copy(&[0x48, 0x8d, 0x64, 0x24, 0x80]); // lea rsp, [rsp - 128]
            writer.copy(&[0x50]); // push rax
        }
    }
    writer.copy(&SAVE_FLAGS);
    increment(writer, offset);
    writer.copy(&RESTORE_FLAGS);
    match keep {
        Keep::Register(number) => writer.copy(&[0x48 | number >> 3, 0x8b, 0xc0 | number & 7]),
        Keep::Stack => {
            writer.copy(&[0x58]); // pop rax
            writer.copy(&[0x48, 0x8d, 0xa4, 0x24, 0x80, 0, 0, 0]); // lea rsp, [rsp + 128]
        }
        Keep::Nothing | Keep::Rax => {}
    }
}

/// `inc qword ptr gs:[offset]`.
fn increment(writer: &mut Writer, offset: u32) {
    writer.copy(&[0x65, 0x48, 0xff, 0x04, 0x25]);
    writer.copy(&offset.to_le_bytes());
}
