//! Staying: a detour that is never taken away.
//!
//! The jump displaces whole instructions, which the trampoline executes in its own place behind the mark
//! (`staying/moved.rs`), and goes back behind them. A branch among them, which can only be the last one, goes where
//! it went. No register, no flag and no return address is another one than without.
//!
//! Its bytes are the same from the image's making on, so that it does not matter which lines or words they lie in, and
//! it costs what it costs whenever it is met: this is what instrumentation without disposal pays.

use tomo_program::Address;

use crate::origins::Said;
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

/// Bytes of the trampoline for these displaced bytes.
pub(crate) fn length(start: Address, bytes: &[u8]) -> usize {
    let mut writer = Writer::new(Spot(0), 64);
    write(&mut writer, Spot(0), start, bytes, |_| Spot(0));
    writer.bytes.len()
}

/// Marks, executes what was displaced from `start`, goes on behind it. `spot` tells where addresses lie.
pub(crate) fn write(
    writer: &mut Writer,
    mark: Spot,
    start: Address,
    bytes: &[u8],
    spot: impl Fn(Address) -> Spot,
) {
    writer.note(Said::Before(start));
    writer.store_byte(mark, 1);
    let mut way = Way::On;
    for movable in Reader::new(start, bytes).filter_map(Result::ok) {
        way = movable.way;
        writer.note(Said::Own(movable.from, movable.bytes.len() as u32));
        match way {
            Way::On | Way::Away => movable.write(writer, spot(movable.from)),
            Way::Branch(condition, target) => writer.go(Some(condition), spot(target)),
            Way::Jump(target) => writer.jump(spot(target)),
        }
    }
    if matches!(way, Way::On | Way::Branch(..)) {
        let end = start.wrapping_add(bytes.len() as u64);
        writer.note(Said::Before(end));
        writer.jump(spot(end));
    }
    writer.note(Said::Nothing);
}
