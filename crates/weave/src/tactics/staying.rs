//! Staying: a detour that is never taken away.
//!
//! The jump displaces whole instructions, which the trampoline executes in its own place behind the mark
//! (`staying/moved.rs`), and goes back behind them. A branch among them, which can only be the last one, goes where
//! it went. No register, no flag and no return address is another one than without.
//!
//! Its bytes are the same from the image's making on, so that it does not matter which lines or words they lie in, and
//! it costs what it costs whenever it is met: this is what instrumentation without disposal pays.

use tomo_program::Address;

use crate::staying::increment;
use crate::staying::live::Set;
use crate::staying::moved::{Reader, Way};
use crate::trampoline::{Spot, Writer};
use crate::window::JUMP_BYTES;

/// How many bytes of whole instructions a jump at `start` displaces, given those from there to the end of the
/// block, and `room` from there to the end of what only this block can run into. `None` where one of them
/// cannot be moved, or there is too little room.
pub(crate) fn displaced(start: Address, bytes: &[u8], room: u64) -> Option<u64> {
    let mut length = 0;
    for movable in Reader::new(start, bytes) {
        let movable = movable.ok()?;
        length += movable.bytes.len() as u64;
        let ends = matches!(movable.way, Way::Jump(_) | Way::Away);
        if length >= JUMP_BYTES || (ends && room >= JUMP_BYTES) {
            return Some(length);
        }
        if movable.way != Way::On {
            return None;
        }
    }
    None
}

/// Whether all instructions in these bytes can be moved.
pub(crate) fn all_movable(start: Address, bytes: &[u8]) -> bool {
    Reader::new(start, bytes).all(|movable| movable.is_ok())
}

/// A counter that is incremented, and what is looked at afterwards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Increment {
    /// The counter, by number.
    pub(crate) counter: u32,
    pub(crate) live: Set,
}

/// The counters of a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Increments {
    /// Before what is displaced.
    pub(crate) before: Option<Increment>,
    /// On the two ways of the branch at its end.
    pub(crate) taken: Option<Increment>,
    pub(crate) not_taken: Option<Increment>,
}

impl Increments {
    /// Makes all numbers so much higher.
    pub(crate) fn renumber(&mut self, by: u32) {
        let each = [&mut self.before, &mut self.taken, &mut self.not_taken];
        for increment in each.into_iter().flatten() {
            increment.counter += by;
        }
    }
}

/// What a probe that stays does.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Deed {
    /// Sets a mark.
    Mark(Spot),
    /// Counts; the first counter is so many bytes into the slab.
    Count(Increments, u32),
}

impl Deed {
    fn count(self, writer: &mut Writer, which: impl Fn(&Increments) -> Option<Increment>) {
        if let Self::Count(increments, slab) = self
            && let Some(Increment { counter, live }) = which(&increments)
        {
            increment::write(writer, slab + 8 * counter, live);
        }
    }
}

/// Bytes of the trampoline for these displaced bytes.
pub(crate) fn length(deed: Deed, start: Address, bytes: &[u8]) -> usize {
    let mut writer = Writer::new(Spot(0), 64);
    write(&mut writer, deed, start, bytes, |_| Spot(0));
    writer.bytes.len()
}

/// Does its deed, executes what was displaced from `start`, goes on behind it. `spot` tells where addresses lie.
pub(crate) fn write(
    writer: &mut Writer,
    deed: Deed,
    start: Address,
    bytes: &[u8],
    spot: impl Fn(Address) -> Spot,
) {
    match deed {
        Deed::Mark(mark) => writer.store_byte(mark, 1),
        Deed::Count(..) => deed.count(writer, |each| each.before),
    }
    let counts_taken = matches!(deed, Deed::Count(each, _) if each.taken.is_some());
    let mut way = Way::On;
    let mut ahead = None;
    for movable in Reader::new(start, bytes).filter_map(Result::ok) {
        way = movable.way;
        match way {
            Way::On | Way::Away => movable.write(writer, spot(movable.from)),
            Way::Branch(condition, target) if counts_taken => {
                ahead = Some((writer.branch_ahead(condition.0), target));
            }
            Way::Branch(condition, target) => writer.branch(condition.0, spot(target)),
            Way::Jump(target) => writer.jump(spot(target)),
        }
    }
    if matches!(way, Way::Branch(..)) {
        deed.count(writer, |each| each.not_taken);
    }
    if matches!(way, Way::On | Way::Branch(..)) {
        writer.jump(spot(start.wrapping_add(bytes.len() as u64)));
    }
    if let Some((branch, target)) = ahead {
        writer.land(branch);
        deed.count(writer, |each| each.taken);
        writer.jump(spot(target));
    }
}
