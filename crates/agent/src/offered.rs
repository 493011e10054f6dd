//! Which modules have been looked at: each is once, for as long as it is loaded. An image that could not be mapped before the
//! module's own start must not be tried again when the next one is loaded, for threads may run in its text by then.

use core::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

use crate::loader::Module;
use crate::tables::tables;

/// Modules that are loaded at once, at most: more than the system lets a process have mappings (`vm.max_map_count`, unless somebody has
/// raised it), of which each module has one at least.
const MOST: usize = 1 << 16;

/// A module that is loaded, and the round in which that was seen last.
struct Seen {
    /// Where its code begins.
    place: AtomicUsize,
    round: AtomicU32,
}

tables! {
    /// In the order in which they came.
    static SEEN: [Seen; MOST] = [const {
        Seen {
            place: AtomicUsize::new(0),
            round: AtomicU32::new(0),
        }
    }; MOST];
}
/// How many there are.
static COUNT: AtomicUsize = AtomicUsize::new(0);
static ROUND: AtomicU32 = AtomicU32::new(0);

/// Calls `visit` for those modules that `for_each` calls its argument for and that were not there in the round before. There is one round
/// at a time: it is the first thread's, before the program's own start, or the loader's lock is held.
pub(crate) fn new_ones(
    for_each: impl FnOnce(&mut dyn FnMut(Module<'_>)),
    mut visit: impl FnMut(&Module<'_>),
) {
    let mut round = Round {
        number: ROUND.fetch_add(1, Ordering::Relaxed).wrapping_add(1),
        known: seen(),
        next: 0,
    };
    for_each(&mut |module| {
        if round.is_new(&module) {
            visit(&module);
        }
    });
    round.forget_others();
}

/// What is seen once more is looked for where it is next in the order in which all came, for loaders keep to that: a round takes as many
/// steps as there are modules, and as many for each that is new.
struct Round {
    number: u32,
    /// Those that were there in the round before.
    known: &'static [Seen],
    /// Behind the last one of them that was seen again.
    next: usize,
}

impl Round {
    /// Whether the module is seen for the first time; from then on it is known.
    fn is_new(&mut self, module: &Module<'_>) -> bool {
        let Some(code) = module.executable().next() else {
            return false;
        };
        let place = module.bias.wrapping_add(code.address as usize);
        let is_at = |at: &usize| {
            let known = self.known.get(*at);
            known.is_some_and(|seen| seen.place.load(Ordering::Relaxed) == place)
        };
        let mut all = (self.next..self.known.len()).chain(0..self.next);
        let found = all.find(is_at);
        let count = COUNT.load(Ordering::Relaxed);
        let Some(seen) = SEEN.get(found.unwrap_or(count)) else {
            return false;
        };
        seen.place.store(place, Ordering::Relaxed);
        seen.round.store(self.number, Ordering::Relaxed);
        match found {
            Some(at) => self.next = at + 1,
            None => COUNT.store(count + 1, Ordering::Relaxed),
        }
        found.is_none()
    }

    /// Forgets those that were not seen; the others keep their order.
    fn forget_others(self) {
        let is_there = |seen: &&Seen| seen.round.load(Ordering::Relaxed) == self.number;
        let mut left = 0;
        for (seen, to) in seen().iter().filter(is_there).zip(&SEEN) {
            to.place
                .store(seen.place.load(Ordering::Relaxed), Ordering::Relaxed);
            to.round.store(self.number, Ordering::Relaxed);
            left += 1;
        }
        COUNT.store(left, Ordering::Relaxed);
    }
}

fn seen() -> &'static [Seen] {
    SEEN.get(..COUNT.load(Ordering::Relaxed)).unwrap_or(&[])
}
