//! Held: a jump inside sixteen aligned bytes, held by an `int3` while its tail is restored.
//!
//! Three stores, each to bytes that are fetched at once, seen in this order (stores of one processor are not
//! reordered, Intel SDM vol. 3, §8.2.2): `int3` over the first byte, the four bytes behind it, the
//! first byte. Whoever fetches the window meets the jump as a whole, or the `int3`, or the
//! module's bytes: never the first byte of one with the tail of the other. Who meets the `int3` traps
//! into the agent, which finds the window in the trap table, and does what is left to do; all of it
//! may be done any number of times.
//!
//! Holding with `int3` is how Linux changes its own code under way (`text_poke_bp`), there with an
//! interrupt of all processors between the steps. We cannot interrupt anybody. In place of it stands
//! that a processor fetches the whole window in one access, which sees one state of the line. Processors
//! fetch 16, 32 or 64 aligned bytes at a time, so the window lies in 16. To lie in one line is not
//! enough, although Chamith et al., *Living on the Edge*, PLDI 2016, measured it so: on an AMD EPYC
//! threads were met, about one in a hundred thousand starts of the program of `tests/tests/racing.rs`, that had
//! fetched the jump's first four bytes, up to a boundary of 32, before the hold, and the fifth after the
//! tail was stored.
//!
//! A forked process that gets its text anew tells by the two last instructions that the tail was restored
//! already (`crates/wire/src/held.rs`).

use crate::trampoline::{Job, Spot, Writer};

/// Bytes of a trampoline.
pub(crate) const LENGTH: usize = 7 + 7 + 10 + 7 + 5;

/// `int3`.
pub(crate) const HOLD: u8 = 0xcc;

/// Marks, restores behind a hold, goes back to where it came from.
pub(crate) fn write(writer: &mut Writer, job: &Job) {
    writer.store_byte(job.mark, 1);
    restore(writer, job.alias, job.original);
    writer.jump(job.window);
}

/// Restores the window that can be written at `alias`.
pub(crate) fn restore(writer: &mut Writer, alias: Spot, original: [u8; 5]) {
    let [first, tail @ ..] = original;
    writer.store_byte(alias, HOLD);
    writer.store_dword(alias.plus(1), tail);
    writer.store_byte(alias, first);
}

#[cfg(test)]
mod tests {
    use tomo_wire::held::{END, window_from};

    use super::{LENGTH, write};
    use crate::trampoline::{Job, Spot, Writer};

    #[test]
    fn who_is_about_to_store_the_last_byte_is_told_by_the_end() {
        let job = Job {
            mark: Spot(70_000),
            window: Spot(48),
            alias: Spot(90_048),
            word: [0x90; 8],
            original: [1, 2, 3, 4, 5],
        };
        let start = 4096;
        let mut writer = Writer::new(Spot(start), LENGTH);
        write(&mut writer, &job);
        let behind = start + writer.bytes.len() as i64;
        let told = |end: &[u8; END]| Some(behind + i64::from(window_from(end)?));
        assert_eq!(writer.bytes.last_chunk().and_then(told), Some(job.window.0));
        let mut earlier = writer.bytes.windows(END).rev().skip(1);
        assert!(!earlier.any(|end| end.first_chunk().and_then(window_from).is_some()));
    }
}
