//! Slabs that a process has mapped before it may no longer open their file: because it becomes another user or gets another root.
//! Threads that it makes afterwards, and children of its own, count in these.

use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};

use tomo_wire::counting::{Contents, MOST_SLABS, USED};

use crate::closed;
use crate::slabs::{self, have, shared, size};
use crate::system::{self, Protection};

/// Slabs at most, and bytes of the disk that all but the first one of them may take.
const MOST: u32 = 64;
const MOST_BYTES: u64 = 128 << 20;

/// Whether somebody has looked, or does so now: it is tried once.
static LOOKED: AtomicBool = AtomicBool::new(false);
/// The first of them, where it is mapped, and how many there are; none as long as that is 0.
static FIRST: AtomicU32 = AtomicU32::new(0);
static PLACE: AtomicUsize = AtomicUsize::new(0);
static COUNT: AtomicU32 = AtomicU32::new(0);
/// Those that are not there any more, because they were moved to where they are used: bit by bit.
static MOVED: AtomicU64 = AtomicU64::new(0);

/// The calling process is about to have this effective user, or the one that it has where it is none.
pub(crate) fn before_becoming(user: u32) {
    const UNCHANGED: u32 = u32::MAX;
    if user != UNCHANGED && user != system::effective_user() {
        look();
    }
}

/// Maps the next slabs that somebody is going to be given, with room on the disk for all of them. (Tracks need the file itself
/// when they grow.)
pub(crate) fn look() {
    let is_wanted = size() > 0 && !have(Contents::Tracks) && !closed::is_closed();
    if is_wanted && !LOOKED.swap(true, Ordering::Relaxed) {
        let _ = look_at_next();
    }
}

fn look_at_next() -> Option<()> {
    let used = shared(USED)?.load(Ordering::Relaxed);
    let first = u32::try_from(used).ok()?.min(MOST_SLABS);
    let affordable = MOST_BYTES.checked_div(room() as u64)?.max(1) as u32;
    let count = affordable.min(MOST).min(MOST_SLABS - first);
    let file = slabs::open()?;
    for slab in first..first + count {
        file.allocate(slabs::offset(slab), room() as u64).ok()?;
    }
    let length = size() as usize * count as usize;
    let place = system::map(length, Protection::ReadWrite, &file, slabs::offset(first)).ok()?;
    system::bring_in_one_by_one(place as usize, length);
    FIRST.store(first, Ordering::Relaxed);
    PLACE.store(place as usize, Ordering::Relaxed);
    COUNT.store(count, Ordering::Release);
    Some(())
}

/// How many bytes of each are used.
pub(crate) fn room() -> usize {
    /// There may be many, which few are going to be given.
    const AS_MANY: u32 = 64;
    slabs::room_of(AS_MANY)
}

/// Whether there are some, and the file may be out of reach.
pub(crate) fn are_there() -> bool {
    COUNT.load(Ordering::Acquire) > 0
}

/// Which of them a slab is, if it is one.
fn index(slab: u32) -> Option<u32> {
    let count = COUNT.load(Ordering::Acquire);
    let index = slab.checked_sub(FIRST.load(Ordering::Relaxed))?;
    (index < count).then_some(index)
}

/// Whether a slab is one of them.
pub(crate) fn has(slab: u32) -> bool {
    index(slab).is_some()
}

/// Where a slab is mapped, if it is one of them.
pub(crate) fn place_of(slab: u32) -> Option<usize> {
    let index = index(slab)?;
    let is_there = MOVED.load(Ordering::Relaxed) & 1 << index == 0;
    is_there.then(|| PLACE.load(Ordering::Relaxed) + index as usize * size() as usize)
}

/// The slab is about to be moved by who was given it.
pub(crate) fn is_moved(slab: u32) {
    if let Some(index) = index(slab) {
        MOVED.fetch_or(1 << index, Ordering::Relaxed);
    }
}
