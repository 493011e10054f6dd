//! Hop: a short jump to a jump in filling, which leads to the trampoline.
//!
//! For places where five bytes do not fit and two do. The short jump reaches 128 bytes; there, in filling
//! behind a block that control leaves for good, stands a jump of five bytes, put there when the image is
//! made and never taken away, since nothing but short jumps ever leads to it. So only two bytes change while
//! the program runs, inside one naturally aligned word, by one store: what AMD promises of quadwords covers
//! it (see `quadword.rs`). A thread that has taken the short jump already finds the long one,
//! marks and restores once more, and harms nobody.
//!
//! Where such filling is too far away, the short jump leads to another short jump in filling that has room for no more, and that
//! on towards it: a *relay*, put there once as well.
//!
//! At the seam of two words that are fetched at once, the two bytes are restored behind a hold (see `held.rs`).
//!
//! The same jump in filling serves a short branch: then one byte changes, its displacement (see
//! `retarget.rs`).
//!
//! Kin to the tactics of Duck, Gao, Roychoudhury, PLDI 2020, §3, which jump by way of places that are free or made
//! free; ours take only what never runs.

use iced_x86::{Code, Instruction};
use tomo_program::{Address, FETCH_BYTES};
use tomo_wire::plan::Tactic;

use super::held::HOLD;
use crate::trampoline::{Job, Writer};
use crate::window::{WORD_BYTES, within_one};

/// Bytes of a trampoline.
pub(crate) const LENGTH: usize = 7 + 9 + 5;
/// Bytes of a trampoline for a hop that is held.
pub(crate) const HELD_LENGTH: usize = 7 + 7 + 7 + 7 + 5;
/// Bytes of a trampoline for a branch.
pub(crate) const BRANCH_LENGTH: usize = 7 + 7 + 5;
/// Opcode of a short jump.
pub(crate) const SHORT_JUMP: u8 = 0xeb;
/// Bytes of a short jump.
pub(crate) const BYTES: u64 = 2;
/// Where the other short jumps are by way of which one leads to its place; 0 for those that it does not need.
pub(crate) type Relays = [Address; 2];

/// Where the displacement of the branch is, if it has one of 8 bits.
pub(crate) fn short_displacement(branch: &Instruction) -> Option<Address> {
    let short = branch.is_jcc_short() || branch.code() == Code::Jmp_rel8_64;
    short.then(|| Address(branch.next_ip().wrapping_sub(1)))
}

/// Whether a short jump is fetched at once.
pub(crate) fn in_one_fetch(start: Address) -> bool {
    within_one(start, BYTES, FETCH_BYTES)
}

/// How a short jump at `start` is restored: by one store, if its bytes lie in one word.
pub(crate) fn tactic(start: Address) -> Tactic {
    if within_one(start, BYTES, WORD_BYTES) {
        Tactic::Hop
    } else {
        Tactic::HeldHop
    }
}

/// The displacement from the end of a short jump or branch to `slot`, if it is that near.
pub(crate) fn displacement(end: Address, slot: Address) -> Option<i8> {
    i8::try_from(slot.0.wrapping_sub(end.0) as i64).ok()
}

/// Marks, restores, goes back to where it came from.
pub(crate) fn write(writer: &mut Writer, job: &Job) {
    let [first, second, ..] = job.original;
    writer.store_byte(job.mark, 1);
    writer.store_word(job.alias, [first, second]);
    writer.jump(job.window);
}

/// Marks, restores behind a hold, goes back to where it came from.
pub(crate) fn write_held(writer: &mut Writer, job: &Job) {
    let [first, second, ..] = job.original;
    writer.store_byte(job.mark, 1);
    writer.store_byte(job.alias, HOLD);
    writer.store_byte(job.alias.plus(1), second);
    writer.store_byte(job.alias, first);
    writer.jump(job.window);
}

/// Marks, restores the displacement, goes on to the branch's target. The job's window is the
/// displacement.
pub(crate) fn write_branch(writer: &mut Writer, job: &Job) {
    let [byte, ..] = job.original;
    writer.store_byte(job.mark, 1);
    writer.store_byte(job.alias, byte);
    writer.jump(job.window.plus(1 + i64::from(byte as i8)));
}
