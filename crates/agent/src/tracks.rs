//! The tracks of threads: what their witnesses append words to, and how it grows.
//!
//! A track is a stretch of addresses, reserved whole and mapped bit by bit to units of the run's file, so that words lie
//! one behind the other and no place of a word is ever another's: who was interrupted between taking a place
//! and writing to it may write later. What is written stays, however the program ends.
//!
//! Where somebody takes what is recorded while the program runs, a track goes round in a ring of units, mapped twice, one
//! copy behind the other: whoever is interrupted in taking a place at its end finds the places behind to be those at its start. A
//! unit is used again when it was taken, which is not before all its words are written. Where nobody takes anything for
//! [`PATIENCE`], the track grows from there on.
//!
//! Witnesses call [`hand_over`] where a unit begins; by then there is room for all of it, and afterwards for the
//! next one too. Where there is no more room on the disk what follows goes to memory that nobody reads, and the track says
//! where it ends.

use core::arch::naked_asm;
use core::mem::offset_of;
use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use tomo_wire::counting::Contents;
use tomo_wire::tracing::{
    BEGIN, BEGIN_WORDS, FULL_AT, HANDLERS_AT, MOST_HANDLERS, MOST_UNITS, Origin, SERIAL_AT,
    SLOTS_AT, State, UNIT, UNITS_AT, entry, in_ring, table, units,
};

use crate::armed::{self, Region};
use crate::system::{self, How, Protection};
use crate::tables::tables;
use crate::{closed, slabs};

/// Addresses of a track that grows.
const AREA: usize = 1 << 36;
/// Units that a track grows by at most.
const MOST: u64 = 64;
/// Units of memory that nobody reads.
const NOWHERE: usize = 4;
const BYTES: usize = UNIT as usize;
/// How long a track waits for a unit to be taken, in steps of so many nanoseconds.
const PATIENCE: u32 = 20_000;
const STEP: u64 = 50_000;

tables! {
    /// The serial numbers of threads to come, by slab.
    static SERIALS: [AtomicUsize; tomo_wire::counting::MOST_SLABS as usize] =
        [const { AtomicUsize::new(0) }; tomo_wire::counting::MOST_SLABS as usize];
    /// How many words there are in a thread's track while it forks, plus one, by slab; else 0. A copy of it is all that a child knows
    /// of its parent, which goes on meanwhile.
    static FORKING: [AtomicUsize; tomo_wire::counting::MOST_SLABS as usize] =
        [const { AtomicUsize::new(0) }; tomo_wire::counting::MOST_SLABS as usize];
}

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
    if closed::is_closed() {
        return None;
    }
    set(place, offset_of!(State, slab), slab as usize);
    let slots = slabs::shared(SLOTS_AT).map_or(0, |slots| slots.load(Ordering::Relaxed));
    if slots > 1 && make_ring(place, slots).is_some() {
        return Some(());
    }
    let base = system::reserve_anywhere(AREA).ok()?;
    start(place, base);
    set(place, offset_of!(State, area), base);
    set(place, offset_of!(State, ready), base);
    grow(place, 2)
}

/// Lets a track go round in a ring.
fn make_ring(place: usize, slots: u64) -> Option<()> {
    let length = slots as usize * BYTES;
    let first = slabs::shared(UNITS_AT)?.fetch_add(slots, Ordering::Relaxed);
    if first + slots > MOST_UNITS {
        return None;
    }
    let file = slabs::open()?;
    let at = units() + first * UNIT;
    file.allocate(at, slots * UNIT).ok()?;
    let ring = system::reserve_anywhere(2 * length).ok()?;
    for copy in [ring, ring + length] {
        // SAFETY: the addresses were just reserved for this.
        unsafe { system::map_over(copy, length, Protection::ReadWrite, &file, at).ok()? };
    }
    system::bring_in_one_by_one(ring, 2 * length);
    set(place, offset_of!(State, first), first as usize);
    set(place, offset_of!(State, slots), slots as usize);
    set(place, offset_of!(State, units), slots as usize);
    set(place, offset_of!(State, ring), ring);
    start(place, ring);
    Some(())
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
    set(place, offset_of!(State, area), base);
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

/// Notes how far the track of the calling thread is, which is about to fork, or forgets that.
pub(crate) fn note_fork(slab: usize, place: usize, is_about_to: bool) {
    let Some(known) = FORKING.get(slab) else {
        return;
    };
    let is_kept = is_about_to && get(place, offset_of!(State, full)) == 0;
    // SAFETY: a slab is mapped for as long as the process lives, and starts with this; nobody but this thread and who takes
    // its units writes there, and what the latter writes is not asked for.
    let length = || unsafe { (place as *const State).read_volatile() }.length();
    let words = if is_kept { length() / 4 + 1 } else { 0 };
    known.store(words as usize, Ordering::Relaxed);
}

/// Where the thread of this slab was when it forked and so made the calling one.
pub(crate) fn origin(slab: usize) -> Option<Origin> {
    let words = FORKING.get(slab)?.swap(0, Ordering::Relaxed);
    Some(Origin {
        serial: SERIALS.get(slab)?.load(Ordering::Relaxed) as u32,
        words: words.checked_sub(1)? as u64,
    })
}

/// Notes in the track of the calling thread that it begins, and of which other one it is the copy.
pub(crate) fn begin(place: usize, origin: Option<Origin>) {
    let slab = get(place, offset_of!(State, slab));
    let serial = SERIALS
        .get(slab)
        .map_or(0, |known| known.load(Ordering::Relaxed));
    // No word is 0, which would be one that is still to be written.
    let serial = (serial as u32).wrapping_add(1);
    let words: [u32; BEGIN_WORDS] = [
        BEGIN,
        closed::process(),
        closed::thread().unwrap_or(0),
        serial,
    ];
    append(place, &words);
    if let Some(origin) = origin {
        append(place, &origin.words());
    }
}

/// The program is about to close a sandbox, in which no track grows: that of the calling thread does so now. In a ring it might
/// have to wait, for which the system is asked.
pub(crate) fn before_closing() {
    if !are_kept() {
        return;
    }
    let Some((_, place)) = slabs::mine() else {
        return;
    };
    let before = system::change_mask(How::Block, u64::MAX);
    if is_ring(place) {
        leave_ring(place);
    }
    let is_full = get(place, offset_of!(State, full)) != 0;
    let (ready, cursor) = (offset_of!(State, ready), offset_of!(State, cursor));
    let room = get(place, ready).wrapping_sub(get(place, cursor));
    if !is_full && room < MOST as usize * BYTES && grow(place, MOST).is_none() {
        end(place);
    }
    system::change_mask(How::Set, before);
}

/// Appends words to the track of the calling thread.
fn append(place: usize, words: &[u32]) {
    let cursor = number(place, offset_of!(State, cursor));
    let at = cursor.fetch_add(size_of_val(words) as u64, Ordering::Relaxed) as usize;
    more(place);
    for (step, word) in words.iter().enumerate() {
        // SAFETY: these places were just taken, and there is room behind every cursor.
        unsafe { ((at + 4 * step) as *mut u32).write_volatile(*word) };
    }
}

/// Sees to it that there is room for the unit in which the cursor is and for another one.
extern "C" fn more(place: usize) {
    if has_room(place) {
        return;
    }
    // In a sandbox that the program has closed a handler may come in between, and do the same.
    let before = (!closed::is_closed()).then(|| system::change_mask(How::Block, u64::MAX));
    if is_ring(place) {
        go_round(place);
    }
    if !has_room(place) {
        if get(place, offset_of!(State, full)) == 0 {
            let count = get(place, offset_of!(State, units)) as u64;
            if grow(place, count.clamp(2, MOST)).is_none() {
                end(place);
            }
        } else {
            go_back(place);
        }
    }
    if let Some(before) = before {
        system::change_mask(How::Set, before);
    }
}

/// Leads the cursor of a track in which nothing is recorded any more back over what nobody reads.
fn go_back(place: usize) {
    let ready = get(place, offset_of!(State, ready));
    set(place, offset_of!(State, cursor), ready - unread(place));
}

/// How many bytes those are, in front of where there is no more room.
fn unread(place: usize) -> usize {
    let ready = get(place, offset_of!(State, ready));
    let area = get(place, offset_of!(State, area));
    (NOWHERE * BYTES).min(ready - area)
}

/// Where in its ring the cursor is, counted from the first copy's start, if it is in one, and how many bytes that has.
fn in_copies(place: usize) -> Option<(usize, usize)> {
    let ring = get(place, offset_of!(State, ring));
    let bytes = get(place, offset_of!(State, slots)) * BYTES;
    let offset = get(place, offset_of!(State, cursor)).wrapping_sub(ring);
    (ring != 0 && offset < 2 * bytes).then_some((offset, bytes))
}

fn is_ring(place: usize) -> bool {
    in_copies(place).is_some()
}

/// The position of the unit of a ring in which the cursor is, and how many of them may be used.
fn position(place: usize) -> Option<(u64, u64)> {
    let (offset, bytes) = in_copies(place)?;
    let slots = (bytes / BYTES) as u64;
    let slot = ((offset / BYTES) as u64).checked_rem(slots)?;
    let units = get(place, offset_of!(State, units)) as u64;
    Some((in_ring(units, slot, slots), units))
}

fn has_room(place: usize) -> bool {
    if let Some((offset, bytes)) = in_copies(place) {
        // Where nothing is recorded any more all places do.
        let is_lost = get(place, offset_of!(State, full)) != 0;
        let has_more = |(position, units): (u64, u64)| units.wrapping_sub(position) >= 2;
        return offset < bytes && (is_lost || position(place).is_some_and(has_more));
    }
    let cursor = get(place, offset_of!(State, cursor));
    let ready = get(place, offset_of!(State, ready));
    ready.wrapping_sub(cursor) > BYTES && ready > cursor
}

/// Leads the cursor back to the ring's first copy, and waits until its next unit was taken; leaves the ring if that does not
/// happen.
fn go_round(place: usize) {
    let Some((_, bytes)) = in_copies(place) else {
        return;
    };
    let second = (get(place, offset_of!(State, ring)) + bytes) as u64;
    let lead_back = |at: u64| (at >= second).then(|| at - bytes as u64);
    let cursor = number(place, offset_of!(State, cursor));
    let _ = cursor.fetch_update(Ordering::Relaxed, Ordering::Relaxed, lead_back);
    let slots = bytes / BYTES;
    let (mut known, mut steps) = (get(place, offset_of!(State, taken)), 0);
    while !has_room(place) {
        let taken = number(place, offset_of!(State, taken)).load(Ordering::Acquire) as usize;
        set(place, offset_of!(State, units), taken + slots);
        if has_room(place) {
            return;
        }
        if taken != known {
            (known, steps) = (taken, 0);
        }
        if steps == PATIENCE {
            leave_ring(place);
            return;
        }
        steps += 1;
        wait();
    }
}

/// Lets a step of the time pass.
fn wait() {
    /// About as long, on processors of these years.
    const TURNS: u32 = 1000;
    match closed::is_closed() {
        false => system::pause(STEP),
        true => (0..TURNS).for_each(|_| core::hint::spin_loop()),
    }
}

/// Lets a track grow from the unit on in which the cursor is. Where there is no room for it the track ends.
fn leave_ring(place: usize) {
    let (Some((offset, bytes)), Some((at, _))) = (in_copies(place), position(place)) else {
        return;
    };
    let Some(within) = offset.checked_rem(bytes) else {
        return;
    };
    let slot = within / BYTES;
    let first = get(place, offset_of!(State, first));
    let unit = units() + (first + slot) as u64 * UNIT;
    let Some(file) = slabs::open() else {
        return lose_track(place);
    };
    let Ok(area) = system::reserve_anywhere(AREA) else {
        return lose_track(place);
    };
    // SAFETY: the addresses were just reserved for this.
    if unsafe { system::map_filled_over(area, BYTES, &file, unit) }.is_err() {
        return lose_track(place);
    }
    set(place, offset_of!(State, area), area);
    let base = area.wrapping_sub(at as usize * BYTES);
    set(place, offset_of!(State, base), base);
    set(place, offset_of!(State, ready), area + BYTES);
    set(place, offset_of!(State, units), at as usize + 1);
    set(place, offset_of!(State, grown), at as usize + 1);
    set(place, offset_of!(State, cursor), area + offset % BYTES);
    // There must be room for the next unit, too, when this returns: the caller sees to it.
}

/// What follows is not recorded, for want of addresses to grow to: the ring is left for memory that nobody reads.
fn lose_track(place: usize) {
    let Some((at, _)) = position(place) else {
        return;
    };
    let is_open = !closed::is_closed();
    let nowhere = is_open.then(|| system::map_nothing(NOWHERE * BYTES));
    count_as_full();
    let Some(Ok(area)) = nowhere else {
        // Over what nobody has taken, which is lost too.
        let taken = get(place, offset_of!(State, taken));
        set(place, offset_of!(State, full), (taken * BYTES).max(1));
        return;
    };
    set(place, offset_of!(State, full), (at as usize * BYTES).max(1));
    set(place, offset_of!(State, ready), area + NOWHERE * BYTES);
    set(place, offset_of!(State, cursor), area);
}

/// Maps so many units more.
fn grow(place: usize, count: u64) -> Option<()> {
    if closed::is_closed() {
        return None;
    }
    let ready = get(place, offset_of!(State, ready));
    let length = count as usize * BYTES;
    let area = get(place, offset_of!(State, area));
    if ready - area + length + NOWHERE * BYTES > AREA {
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

/// Counts a track more in which there was no more room.
fn count_as_full() {
    if let Some(full) = slabs::shared(FULL_AT) {
        full.fetch_add(1, Ordering::Relaxed);
    }
}

/// There is no more room: what follows is not recorded.
fn end(place: usize) {
    let (base, ready) = (
        get(place, offset_of!(State, base)),
        get(place, offset_of!(State, ready)),
    );
    count_as_full();
    let is_open = !closed::is_closed();
    // SAFETY: the area is the track's own, and nothing is mapped from `ready` on.
    let mapped = is_open.then(|| unsafe { system::map_nothing_over(ready, NOWHERE * BYTES) });
    let recorded = ready.wrapping_sub(base);
    if mapped.is_some_and(|mapped| mapped.is_ok()) {
        set(place, offset_of!(State, full), recorded);
        set(place, offset_of!(State, ready), ready + NOWHERE * BYTES);
    } else {
        // The last units again: what they held is lost, which is said.
        let kept = recorded.saturating_sub(unread(place)).max(1);
        set(place, offset_of!(State, full), kept);
        go_back(place);
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
