//! The tracks of threads: what their witnesses append words to, and how it grows.
//!
//! A track is a stretch of addresses, reserved whole and mapped bit by bit to units of the run's file, so that words lie
//! one behind the other and no place of a word is ever another's: who was interrupted between taking a place
//! and writing to it may write later. What is written stays, however the program ends.
//!
//! Witnesses call [`hand_over`] where a unit begins; by then there is room for all of it, and afterwards for the
//! next one too. Where there is no more room on the disk what follows goes to memory that nobody reads, and the track says
//! where it ends.

use core::arch::naked_asm;
use core::mem::offset_of;
use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use tomo_wire::counting::Contents;
use tomo_wire::tracing::{
    BEGIN, BEGIN_WORDS, FULL_AT, HANDLERS_AT, MOST_HANDLERS, MOST_UNITS, SERIAL_AT, State, UNIT,
    UNITS_AT, entry, table, units,
};

use crate::armed::{self, Region};
use crate::slabs;
use crate::system::{self, How};

/// Addresses of a track.
const AREA: usize = 1 << 36;
/// Units that a track grows by at most.
const MOST: u64 = 64;
/// Units of memory that nobody reads.
const NOWHERE: usize = 4;
const BYTES: usize = UNIT as usize;

/// The serial numbers of threads to come, by slab.
static SERIALS: [AtomicUsize; tomo_wire::counting::MOST_SLABS as usize] =
    [const { AtomicUsize::new(0) }; tomo_wire::counting::MOST_SLABS as usize];

/// Whether slabs are those of tracks.
pub(crate) fn are_kept() -> bool {
    slabs::have(Contents::Tracks)
}

/// A number in the slab at `place`.
fn number(place: usize, offset: usize) -> &'static AtomicU64 {
    // SAFETY: a slab is mapped for as long as the process lives, and has these numbers in its first page.
    unsafe { &*((place + offset) as *const AtomicU64) }
}

fn get(place: usize, offset: usize) -> usize {
    number(place, offset).load(Ordering::Relaxed) as usize
}

fn set(place: usize, offset: usize, value: usize) {
    number(place, offset).store(value as u64, Ordering::Relaxed);
}

/// Makes a new slab that is mapped at `place` the start of a track.
pub(crate) fn prepare(place: usize, slab: u32) -> Option<()> {
    let base = system::reserve_anywhere(AREA).ok()?;
    start(place, base);
    set(place, offset_of!(State, slab), slab as usize);
    set(place, offset_of!(State, ready), base);
    grow(place, 2)
}

fn start(place: usize, base: usize) {
    set(place, offset_of!(State, base), base);
    set(place, offset_of!(State, place), place);
    set(
        place,
        offset_of!(State, hand_over),
        hand_over as *const () as usize,
    );
    set(place, offset_of!(State, cursor), base);
}

/// Makes a slab of one that nobody reads.
pub(crate) fn prepare_nowhere(place: usize) -> Option<()> {
    let base = system::map_nothing(NOWHERE * BYTES).ok()?;
    start(place, base);
    set(place, offset_of!(State, full), 1);
    set(place, offset_of!(State, ready), base + NOWHERE * BYTES);
    Some(())
}

/// Gives the thread that is to have a slab its number.
pub(crate) fn number_thread(slab: u32) {
    let Some((known, serial)) = SERIALS.get(slab as usize).zip(slabs::shared(SERIAL_AT)) else {
        return;
    };
    let number = serial.fetch_add(1, Ordering::Relaxed);
    known.store(number as usize, Ordering::Relaxed);
}

/// Notes that the function at `address` is a signal handler from now on, if it is one of a module that is traced.
pub(crate) fn note_handler(address: usize) {
    if !are_kept() {
        return;
    }
    let inside = |region: &&Region| address.wrapping_sub(region.start) < region.length;
    let Some(region) = armed::regions().find(inside) else {
        return;
    };
    let stated = address.wrapping_sub(region.origin) as u64 + 1;
    for slot in 0..MOST_HANDLERS {
        let Some(slot) = slabs::shared(HANDLERS_AT + 8 * slot) else {
            return;
        };
        match slot.compare_exchange(0, stated, Ordering::Relaxed, Ordering::Relaxed) {
            Err(known) if known != stated => {}
            _ => return,
        }
    }
}

/// Notes in the track of the calling thread that it begins.
pub(crate) fn begin(place: usize) {
    let slab = get(place, offset_of!(State, slab));
    let serial = SERIALS
        .get(slab)
        .map_or(0, |known| known.load(Ordering::Relaxed));
    let words: [u32; BEGIN_WORDS] = [BEGIN, system::process(), system::thread(), serial as u32];
    let cursor = number(place, offset_of!(State, cursor));
    let at = cursor.fetch_add(size_of_val(&words) as u64, Ordering::Relaxed) as usize;
    more(place);
    for (step, word) in words.into_iter().enumerate() {
        // SAFETY: these places were just taken, and there is room behind every cursor.
        unsafe { ((at + 4 * step) as *mut u32).write_volatile(word) };
    }
}

/// Sees to it that there is room for the unit in which the cursor is and for another one.
extern "C" fn more(place: usize) {
    if has_room(place) {
        return;
    }
    let before = system::change_mask(How::Block, u64::MAX);
    if !has_room(place) {
        if get(place, offset_of!(State, full)) == 0 {
            let count = get(place, offset_of!(State, units)) as u64;
            if grow(place, count.clamp(2, MOST)).is_none() {
                end(place);
            }
        } else {
            let ready = get(place, offset_of!(State, ready));
            set(place, offset_of!(State, cursor), ready - NOWHERE * BYTES);
        }
    }
    system::change_mask(How::Set, before);
}

fn has_room(place: usize) -> bool {
    let cursor = get(place, offset_of!(State, cursor));
    let ready = get(place, offset_of!(State, ready));
    ready.wrapping_sub(cursor) > BYTES && ready > cursor
}

/// Maps so many units more.
fn grow(place: usize, count: u64) -> Option<()> {
    let (base, ready) = (
        get(place, offset_of!(State, base)),
        get(place, offset_of!(State, ready)),
    );
    let length = count as usize * BYTES;
    if ready - base + length + NOWHERE * BYTES > AREA {
        return None;
    }
    let first = slabs::shared(UNITS_AT)?.fetch_add(count, Ordering::Relaxed);
    if first + count > MOST_UNITS {
        return None;
    }
    let slab = get(place, offset_of!(State, slab)) as u32;
    let known = get(place, offset_of!(State, units)) as u32;
    let file = slabs::open()?;
    file.allocate(units() + first * UNIT, length as u64).ok()?;
    for step in 0..count {
        let row = entry(slab, known + step as u32).to_le_bytes();
        file.write_at(&row, table() + 8 * (first + step)).ok()?;
    }
    // SAFETY: the area is the track's own, and what is mapped before `ready` stays.
    unsafe {
        system::map_filled_over(ready, length, &file, units() + first * UNIT).ok()?;
    }
    set(
        place,
        offset_of!(State, units),
        known as usize + count as usize,
    );
    set(place, offset_of!(State, ready), ready + length);
    Some(())
}

/// There is no more room: what follows is not recorded.
fn end(place: usize) {
    let (base, ready) = (
        get(place, offset_of!(State, base)),
        get(place, offset_of!(State, ready)),
    );
    if let Some(full) = slabs::shared(FULL_AT) {
        full.fetch_add(1, Ordering::Relaxed);
    }
    set(place, offset_of!(State, full), ready - base);
    // SAFETY: the area is the track's own, and nothing is mapped from `ready` on.
    let mapped = unsafe { system::map_nothing_over(ready, NOWHERE * BYTES) };
    if mapped.is_ok() {
        set(place, offset_of!(State, ready), ready + NOWHERE * BYTES);
    } else {
        // The last unit again: what it held is lost, which is said.
        set(
            place,
            offset_of!(State, full),
            (ready - base).saturating_sub(BYTES).max(1),
        );
        set(place, offset_of!(State, cursor), ready - BYTES);
    }
}

/// Called by witnesses where a unit begins, below the red zone. Changes no register, and no flag but those that
/// nobody looks at.
// SAFETY: everything that the function it calls may change is saved on the stack first (the upper halves of vector registers
// it does not touch), which is aligned for it, and put back.
#[unsafe(naked)]
extern "C" fn hand_over() {
    naked_asm!(
        "pushfq",
        "cld",
        "push rax",
        "push rcx",
        "push rdx",
        "push rsi",
        "push rdi",
        "push r8",
        "push r9",
        "push r10",
        "push r11",
        "push rbp",
        "mov rbp, rsp",
        "sub rsp, 512",
        "and rsp, -16",
        "fxsave64 [rsp]",
        "mov rdi, gs:[{place}]",
        "call {more}",
        "fxrstor64 [rsp]",
        "mov rsp, rbp",
        "pop rbp",
        "pop r11",
        "pop r10",
        "pop r9",
        "pop r8",
        "pop rdi",
        "pop rsi",
        "pop rdx",
        "pop rcx",
        "pop rax",
        "popfq",
        "ret",
        place = const offset_of!(State, place),
        more = sym more,
    )
}
