//! Slabs that are taken before the program closes a sandbox (`closed.rs`), for who will need one there, where the system is not asked
//! for any, nor who lives.
//!
//! They are mapped. Each is had by who exchanges its owner first, of all processes that were forked since. A thread
//! whose control block is that of an earlier one has the slab of that, which is gone, if nobody else has found out before.

use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use tomo_wire::counting::{MOST_SLABS, USED};

use crate::slabs::{is_mapped, name, own_name, owner, room_of, shared, size, take};
use crate::tables::tables;
use crate::{system, tracks};

tables! {
    /// The control block of the thread of this process that had a slab last, and what its owner was then; 0 where none had.
    static HAD: [[AtomicUsize; 2]; MOST_SLABS as usize] =
        [const { [const { AtomicUsize::new(0) }; 2] }; MOST_SLABS as usize];
}
/// What is added to the thread in the owner of a slab that was taken ahead, and that nobody has yet: this is one of the process.
pub(crate) const MARK: u32 = 1 << 31;
/// What such an owner is; 0 where none was taken.
static RESERVED: AtomicU64 = AtomicU64::new(0);

/// Slabs that are taken ahead at most, and bytes of the disk that all but the first one of them may take.
const MOST: u32 = 64;
const MOST_BYTES: u64 = 128 << 20;
/// As many as are taken in any case, if they are there.
const FEW: u64 = 4;

/// The program is about to close a sandbox: slabs are taken and mapped for who will need one. (A track would need the file, too, when
/// it grows.)
pub(crate) fn before_closing() {
    if size() == 0 || tracks::are_kept() {
        return;
    }
    let room = room_of(MOST) as u64;
    let affordable = MOST_BYTES.checked_div(room).unwrap_or(0).max(1);
    // Of those that nobody ever had others are to find some, too.
    let used = shared(USED).map_or(0, |used| used.load(Ordering::Relaxed));
    let fair = (u64::from(MOST_SLABS).saturating_sub(used) / 8).max(FEW);
    let process = MARK | system::process();
    let ours = name(process);
    RESERVED.store(ours, Ordering::Relaxed);
    // Who has only tried to close one before has some.
    let is_ours = |owner: &AtomicU64| owner.load(Ordering::Relaxed) == ours;
    let there = mapped().filter(|slab| owner(*slab).is_some_and(is_ours));
    for _ in there.count() as u64..affordable.min(fair).min(MOST.into()) {
        if take(process).is_none() {
            break;
        }
    }
}

fn mapped() -> impl Iterator<Item = u32> {
    (0..MOST_SLABS).filter(|slab| is_mapped(*slab))
}

/// One of these that is the thread's from now on.
pub(crate) fn one(thread: u32) -> Option<u32> {
    let (ahead, ours) = (RESERVED.load(Ordering::Relaxed), name(thread));
    let exchange = |owner: &AtomicU64| {
        owner.compare_exchange(ahead, ours, Ordering::Relaxed, Ordering::Relaxed)
    };
    mapped().find(|slab| ahead != 0 && owner(*slab).is_some_and(|owner| exchange(owner).is_ok()))
}

/// The slab for a thread that was given this one when it was created: that of an earlier thread of which it has the control block, if
/// there is one and nobody else has got it.
pub(crate) fn inherited(given: u32) -> u32 {
    let (mine, ours) = (system::control_block(), own_name());
    let is_free = |slab: &u32| {
        let Some(([block, known], owner)) = HAD.get(*slab as usize).zip(owner(*slab)) else {
            return false;
        };
        let known = known.load(Ordering::Relaxed) as u64;
        let take = || owner.compare_exchange(known, ours, Ordering::Relaxed, Ordering::Relaxed);
        *slab != given && block.load(Ordering::Relaxed) == mine && take().is_ok()
    };
    let Some(former) = (0..MOST_SLABS).find(is_free) else {
        return given;
    };
    if let Some(owner) = owner(given) {
        owner.store(RESERVED.load(Ordering::Relaxed), Ordering::Relaxed);
    }
    former
}

/// Notes that the calling thread has the slab, whose owner it is.
pub(crate) fn note(slab: u32) {
    if let Some(([block, known], owner)) = HAD.get(slab as usize).zip(owner(slab)) {
        block.store(system::control_block(), Ordering::Relaxed);
        known.store(owner.load(Ordering::Relaxed) as usize, Ordering::Relaxed);
    }
}

/// Called in the child of a `fork`: what its parent's threads had is other memory now.
pub(crate) fn in_child() {
    let used = shared(USED).map_or(0, |used| used.load(Ordering::Relaxed));
    for [block, _] in HAD.iter().take(used as usize) {
        block.store(0, Ordering::Relaxed);
    }
}
