//! Limits of memory that a program sets itself are meant for its own. What the agent has mapped counts, too, and is more than many
//! a program allows itself where there are shadows of stacks (`shadow.rs`). So the kernel is told of as much more, and
//! the program what it has set.
//!
//! What the kernel was told and what the program wanted are kept side by side: what is read that is neither was set by others, and
//! stays as it is. Programs that are started later find what the kernel was told.

use core::cmp::Ordering::{Equal, Greater, Less};
use core::ffi::c_int;
use core::sync::atomic::{AtomicU64, Ordering};

use crate::{pointed, system};

/// `struct rlimit` of the C libraries: the limit, and up to where it may be raised.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct Limit {
    soft: u64,
    hard: u64,
}

impl Limit {
    /// The limit that these words are.
    fn of([soft, hard]: [usize; 2]) -> Self {
        Self {
            soft: soft as u64,
            hard: hard as u64,
        }
    }
}

const NO_LIMIT: u64 = u64::MAX;
const DATA: c_int = 2;
const ADDRESSES: c_int = 9;

/// A limit as the program wanted it, and as the kernel was told.
struct Known {
    wanted: AtomicU64,
    told: AtomicU64,
}

impl Known {
    const fn new() -> Self {
        Self {
            wanted: AtomicU64::new(NO_LIMIT),
            told: AtomicU64::new(NO_LIMIT),
        }
    }

    /// What the program has set, if that is what the kernel was told.
    fn read(&self, told: u64) -> u64 {
        match told == self.told.load(Ordering::Relaxed) {
            true => self.wanted.load(Ordering::Relaxed),
            false => told,
        }
    }

    fn set(&self, wanted: u64, told: u64) {
        self.told.store(NO_LIMIT, Ordering::Relaxed);
        self.wanted.store(wanted, Ordering::Relaxed);
        self.told.store(told, Ordering::Relaxed);
    }
}

/// The soft and the hard limit of one kind of memory.
struct Both {
    soft: Known,
    hard: Known,
}

static OF_DATA: Both = Both::new();
static OF_ADDRESSES: Both = Both::new();

impl Both {
    const fn new() -> Self {
        Self {
            soft: Known::new(),
            hard: Known::new(),
        }
    }

    fn of(resource: c_int) -> Option<&'static Self> {
        match resource {
            DATA => Some(&OF_DATA),
            ADDRESSES => Some(&OF_ADDRESSES),
            _ => None,
        }
    }

    fn read(&self, told: &mut Limit) {
        told.soft = self.soft.read(told.soft);
        told.hard = self.hard.read(told.hard);
    }

    /// What the kernel is told of `wanted` where `ours` is mapped by us, and `highest` is its hard limit so far.
    fn told(&self, wanted: Limit, ours: u64, highest: u64) -> Limit {
        // What makes no sense is left to the kernel.
        if wanted.soft > wanted.hard {
            return wanted;
        }
        let more = |limit: u64| limit.saturating_add(ours);
        // Who may not raise the hard limit must not seem to.
        let known = self.hard.read(highest);
        let hard = match wanted.hard.cmp(&known) {
            Less => more(wanted.hard).min(highest),
            Equal => highest,
            Greater => more(wanted.hard),
        };
        let soft = more(wanted.soft).min(hard);
        Limit { soft, hard }
    }
}

/// Sets and asks for a limit of this process by way of `real`.
///
/// # Safety
/// Where `real` gives 0 it has filled what is at `old`, if that is not null.
pub(crate) unsafe fn change(
    resource: c_int,
    new: *const Limit,
    old: *mut Limit,
    real: impl FnOnce(*const Limit, *mut Limit) -> c_int,
) -> c_int {
    let Some(both) = Both::of(resource) else {
        return real(new, old);
    };
    // A copy, for both may point at the same limit.
    let wanted = pointed::words(new as usize).map(Limit::of);
    let told = wanted.map(|wanted| {
        let [_, highest] = system::limit(resource as usize).unwrap_or([NO_LIMIT; 2]);
        both.told(wanted, system::mapped(resource == DATA), highest)
    });
    let new = told.as_ref().map_or(new, |told| &raw const *told);
    let result = real(new, old);
    if result != 0 {
        return result;
    }
    // SAFETY: the caller's.
    if let Some(old) = unsafe { old.as_mut() } {
        both.read(old);
    }
    if let (Some(wanted), Some(told)) = (wanted, told) {
        both.soft.set(wanted.soft, told.soft);
        both.hard.set(wanted.hard, told.hard);
    }
    result
}

/// Whether this is the calling process.
pub(crate) fn is_mine(process: c_int) -> bool {
    process == 0 || process as u32 == system::process()
}

#[cfg(test)]
mod tests {
    use super::{Both, Limit, NO_LIMIT};

    /// What the kernel is told of these limits, and what the program reads afterwards.
    fn told(both: &Both, soft: u64, hard: u64, highest: u64) -> ([u64; 2], [u64; 2]) {
        let wanted = Limit { soft, hard };
        let told = both.told(wanted, 100, highest);
        both.soft.set(soft, told.soft);
        both.hard.set(hard, told.hard);
        let mut read = told;
        both.read(&mut read);
        ([told.soft, told.hard], [read.soft, read.hard])
    }

    #[test]
    fn a_program_finds_what_it_has_set_and_has_as_much_more_as_is_ours() {
        let both = Both::new();
        assert_eq!(
            told(&both, 5, NO_LIMIT, NO_LIMIT),
            ([105, NO_LIMIT], [5, NO_LIMIT])
        );
        assert_eq!(told(&both, 7, 50, NO_LIMIT), ([107, 150], [7, 50]));
        // What it has read it sets again, with another soft limit.
        assert_eq!(told(&both, 50, 50, 150), ([150, 150], [50, 50]));
        assert_eq!(told(&both, 20, 30, 150), ([120, 130], [20, 30]));
        // Who may not raise it is told so by the kernel.
        assert_eq!(both.told(Limit { soft: 1, hard: 60 }, 100, 130).hard, 160);
    }
}
