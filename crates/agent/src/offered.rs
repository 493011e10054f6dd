//! Which modules have been looked at: each is once, for as long as it is loaded. An image that could not be mapped before the
//! module's own start must not be tried again when the next one is loaded, for threads may run in its text by then.

use core::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

use crate::loader::Module;
use crate::tables::tables;

/// Modules that are loaded at once, at most; more are not looked at.
const MOST: usize = 4096;

/// A module that is loaded, and the round in which that was seen last.
struct Seen {
    /// Where its code begins; 0 for none.
    place: AtomicUsize,
    round: AtomicU32,
}

tables! {
    static SEEN: [Seen; MOST] = [const {
        Seen {
            place: AtomicUsize::new(0),
            round: AtomicU32::new(0),
        }
    }; MOST];
}
/// How many of them were ever used.
static USED: AtomicUsize = AtomicUsize::new(0);
static ROUND: AtomicU32 = AtomicU32::new(0);

/// Calls `visit` for those modules that `for_each` calls its argument for and that were not there in the round before. There is one round
/// at a time: it is the first thread's, before the program's own start, or the loader's lock is held.
pub(crate) fn new_ones(
    for_each: impl FnOnce(&mut dyn FnMut(Module<'_>)),
    mut visit: impl FnMut(&Module<'_>),
) {
    let round = ROUND.fetch_add(1, Ordering::Relaxed).wrapping_add(1);
    for_each(&mut |module| {
        if is_new(&module, round) {
            visit(&module);
        }
    });
    let gone = used()
        .iter()
        .filter(|seen| seen.round.load(Ordering::Relaxed) != round);
    gone.for_each(|seen| seen.place.store(0, Ordering::Relaxed));
}

/// Whether the module is seen for the first time; from then on it is known.
fn is_new(module: &Module<'_>, round: u32) -> bool {
    let Some(code) = module.executable().next() else {
        return false;
    };
    let place = module.bias.wrapping_add(code.address as usize);
    let at = |wanted| {
        let mut used = used().iter();
        used.find(|seen| seen.place.load(Ordering::Relaxed) == wanted)
    };
    if let Some(known) = at(place) {
        known.round.store(round, Ordering::Relaxed);
        return false;
    }
    let free = at(0).or_else(|| {
        let next = SEEN.get(USED.load(Ordering::Relaxed))?;
        USED.fetch_add(1, Ordering::Relaxed);
        Some(next)
    });
    if let Some(free) = free {
        free.place.store(place, Ordering::Relaxed);
        free.round.store(round, Ordering::Relaxed);
    }
    free.is_some()
}

fn used() -> &'static [Seen] {
    SEEN.get(..USED.load(Ordering::Relaxed)).unwrap_or(&[])
}
