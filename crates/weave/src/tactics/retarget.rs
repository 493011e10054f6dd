//! Retarget: the displacement of a branch leads to the trampoline, until the branch is taken.
//!
//! Only the four bytes of a 32-bit displacement change, inside what is fetched at once, by one store. Where instructions
//! start and end remains the same at any moment, so that even in a function with unknown ways
//! in nobody can meet anything but the branch, with the one target or the other. That the four bytes are
//! fetched all old or all new is what AMD promises where they lie in an aligned word of eight (see
//! `quadword.rs`); elsewhere it rests on what a hold rests on too (see `held.rs`).
//!
//! The trampoline marks, restores the displacement, and goes where the branch goes; it does not
//! come back to the branch, whose condition has been decided.

use iced_x86::{Code, Instruction, OpKind};
use tomo_program::{Address, FETCH_BYTES};

use crate::trampoline::{Job, Writer};
use crate::window::within_one;

/// Bytes of a trampoline.
pub(crate) const LENGTH: usize = 7 + 10 + 5;
/// Bytes of a displacement.
pub(crate) const BYTES: u64 = 4;

/// Where the displacement of the branch is, if it has one of 32 bits.
pub(crate) fn displacement(branch: &Instruction) -> Option<Address> {
    let near = branch.op0_kind() == OpKind::NearBranch64;
    let conditional = branch.is_jcc_near();
    let fits = near && (conditional || branch.code() == Code::Jmp_rel32_64);
    fits.then(|| Address(branch.next_ip().wrapping_sub(BYTES)))
}

/// Whether it is fetched at once.
pub(crate) fn in_one_fetch(displacement: Address) -> bool {
    within_one(displacement, BYTES, FETCH_BYTES)
}

/// Marks, restores, goes on to the target. The job's window is the displacement.
pub(crate) fn write(writer: &mut Writer, job: &Job) {
    let [a, b, c, d, _] = job.original;
    let target = i64::from(i32::from_le_bytes([a, b, c, d]));
    writer.store_byte(job.mark, 1);
    writer.store_dword(job.alias, [a, b, c, d]);
    writer.jump(job.window.plus(BYTES as i64 + target));
}
