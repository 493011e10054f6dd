//! Quadword: a jump inside one naturally aligned word of eight bytes, which one store restores.
//!
//! AMD promises that other processors fetch the bytes of such a store all or none (APM vol. 2,
//! §7.6.1, cross-modifying code without synchronization). Intel promises less: its SDM (vol. 3, §8.1.3) asks
//! every processor for a serializing instruction. What processors do was measured by Chamith,
//! Svensson, Dalessandro, Newton, *Living on the Edge: Rapid-Toggling Probes with Cross-Modification
//! on x86*, PLDI 2016, who derive a policy from it in which instructions that straddle two lines are the
//! problem; the same authors build on it in *Instruction Punning*, PLDI 2017. A word lies in one line.
//!
//! The store writes the module's bytes over the *whole* word, at any time later, by any thread that
//! had entered the trampoline before. So no other probe may have changed a byte of this word.

use crate::trampoline::{Job, Writer};

/// Bytes of a trampoline.
pub(crate) const LENGTH: usize = 7 + 32 + 5;

/// Marks, restores, goes back to where it came from.
pub(crate) fn write(writer: &mut Writer, job: &Job) {
    let into_word = job.window.0.rem_euclid(8);
    writer.store_byte(job.mark, 1);
    writer.store_quadword(job.alias.plus(-into_word), job.word);
    writer.jump(job.window);
}
