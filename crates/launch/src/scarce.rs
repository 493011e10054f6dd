//! Where the system gives this process too little (`ulimit -d`, `-v`, `-s`, a container's limit), the program runs all the same.
//!
//! Three things are done, each for what the one before does not reach:
//!
//! - limits that this process may raise are raised before anything else happens, and put back in the programs that it starts;
//! - where little memory may be had it comes from the system's allocator, which takes it bit by bit; ours takes
//!   32 MB at once;
//! - who finds none at all is of no use any more but for the program (`stand_in.rs`); nor is who has taken half of what a container has left,
//!   of which the system would end some process if all were taken, and by no error.

use std::alloc::{GlobalAlloc, Layout, System};
use std::os::unix::process::CommandExt as _;
use std::process::Command;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

use nix::libc::{self, rlimit};

use crate::{container, stand_in};

/// A limit that was raised, and what it was.
struct Raised {
    resource: libc::__rlimit_resource_t,
    /// Up to which value it is too low; from there on nobody minds.
    low: u64,
    before: AtomicU64,
}

/// What stands for a limit that was not raised; no limit is.
const NOT: u64 = libc::RLIM_INFINITY;

static RAISED: [Raised; 3] = [
    Raised::of(libc::RLIMIT_AS, NOT),
    Raised::of(libc::RLIMIT_DATA, NOT),
    Raised::of(libc::RLIMIT_STACK, 8 << 20),
];

impl Raised {
    const fn of(resource: libc::__rlimit_resource_t, low: u64) -> Self {
        Self {
            resource,
            low,
            before: AtomicU64::new(NOT),
        }
    }

    fn raise(&self) {
        let limit = limit_of(self.resource);
        if limit.rlim_cur >= self.low || limit.rlim_cur >= limit.rlim_max {
            return;
        }
        let before = limit.rlim_cur;
        let raised = rlimit {
            rlim_cur: limit.rlim_max.min(self.low),
            ..limit
        };
        if set(self.resource, &raised) {
            self.before.store(before, Ordering::Relaxed);
        }
    }

    fn put_back(&self) {
        let before = self.before.load(Ordering::Relaxed);
        if before != NOT {
            let limit = rlimit {
                rlim_cur: before,
                ..limit_of(self.resource)
            };
            set(self.resource, &limit);
        }
    }
}

fn limit_of(resource: libc::__rlimit_resource_t) -> rlimit {
    let mut limit = rlimit {
        rlim_cur: NOT,
        rlim_max: NOT,
    };
    // SAFETY: the kernel writes one limit.
    unsafe { libc::getrlimit(resource, &raw mut limit) };
    limit
}

fn set(resource: libc::__rlimit_resource_t, limit: &rlimit) -> bool {
    // SAFETY: the kernel reads one limit.
    unsafe { libc::setrlimit(resource, limit) == 0 }
}

// SAFETY: the C library calls what stands in this section before `main`, once, with arguments that a function of this type
// does not look at.
#[used]
#[unsafe(link_section = ".init_array")]
static BEGIN: extern "C" fn() = begin;

extern "C" fn begin() {
    RAISED.iter().for_each(Raised::raise);
}

/// Has the program that `command` starts find the limits that were before.
pub(crate) fn hand_on(command: &mut Command) {
    let is_raised = |raised: &Raised| raised.before.load(Ordering::Relaxed) != NOT;
    if RAISED.iter().any(is_raised) {
        // SAFETY: between fork and exec the closure only makes system calls, which are async-signal-safe.
        unsafe {
            command.pre_exec(|| {
                put_back();
                Ok(())
            });
        }
    }
}

/// Has a program that is executed in the place of this process find them.
pub(crate) fn put_back() {
    RAISED.iter().for_each(Raised::put_back);
}

/// Whether the first thread may have a stack that is too small for what is done on it.
#[must_use]
pub fn is_stack_small() -> bool {
    limit_of(libc::RLIMIT_STACK).rlim_cur < 1 << 20
}

/// How many processes and threads there may be, where there is a limit: of this user (`ulimit -u`), or in this container (`pids.max`).
#[must_use]
pub fn processes_allowed() -> Option<u64> {
    let of_user = limit_of(libc::RLIMIT_NPROC).rlim_cur;
    let most = container::processes().unwrap_or(of_user).min(of_user);
    (most != libc::RLIM_INFINITY).then_some(most)
}

/// Whether the program's own stack has room for what the agent does before the program begins.
pub(crate) fn has_room_for_agent() -> bool {
    /// A few times what it needs.
    const ENOUGH: u64 = 64 << 10;
    let [.., stack] = &RAISED;
    let before = stack.before.load(Ordering::Relaxed);
    limit_of(libc::RLIMIT_STACK).rlim_cur.min(before) >= ENOUGH
}

/// An allocator for programs that start others: where little memory may be had it is the system's, and where there is none this
/// process ends for the program.
#[derive(Debug)]
pub struct Sparing<A>(pub A);

/// Whether little memory may be had, which does not change: 0 as long as nobody has asked.
static LITTLE: AtomicU8 = AtomicU8::new(UNKNOWN);
const UNKNOWN: u8 = 0;
const PLENTY: u8 = 1;
const SCARCE: u8 = 2;

/// How many threads there is memory for, with what they take besides their stacks.
#[must_use]
pub fn threads_affordable() -> u64 {
    const EACH: u64 = 16 << 20;
    let limits = [libc::RLIMIT_AS, libc::RLIMIT_DATA].map(limit_of);
    let least = limits.iter().map(|limit| limit.rlim_max).min();
    least.unwrap_or(NOT) / EACH
}

fn is_little() -> bool {
    /// What is more than ever was needed.
    const ENOUGH: u64 = 4 << 30;
    let known = LITTLE.load(Ordering::Relaxed);
    if known != UNKNOWN {
        return known == SCARCE;
    }
    let limits = [libc::RLIMIT_AS, libc::RLIMIT_DATA].map(limit_of);
    let left = container::memory_left().filter(|left| *left < ENOUGH);
    if let Some(left) = left {
        ROOM.store(left / 2, Ordering::Relaxed);
    }
    let is_little = left.is_some() || limits.iter().any(|limit| limit.rlim_max < ENOUGH);
    let asked = if is_little { SCARCE } else { PLENTY };
    // Who asks first decides: what was taken from one is not to be given back to the other.
    let decided = LITTLE.compare_exchange(UNKNOWN, asked, Ordering::Relaxed, Ordering::Relaxed);
    decided.map_or_else(|decided| decided, |_| asked) == SCARCE
}

/// Bytes that may be taken, if little may be had and that is known, and those that are.
static ROOM: AtomicU64 = AtomicU64::new(u64::MAX);
static TAKEN: AtomicU64 = AtomicU64::new(0);

/// So many bytes more are asked for. Who has no program to stand for goes on as long as it can.
fn take(bytes: usize) {
    let taken = TAKEN.fetch_add(bytes as u64, Ordering::Relaxed);
    if taken.saturating_add(bytes as u64) > ROOM.load(Ordering::Relaxed) {
        stand_in::end_for_the_program("there is too little memory (a container's limit)");
    }
}

fn give_back(bytes: usize) {
    TAKEN.fetch_sub(bytes as u64, Ordering::Relaxed);
}

/// What was found; where that is nothing it was the last that was looked for here, if there is a program.
fn found(memory: *mut u8) -> *mut u8 {
    if memory.is_null() {
        stand_in::end_for_the_program("there is too little memory (ulimit -d, -v)");
    }
    memory
}

// SAFETY: all that is asked for is asked of one of two allocators, which is the same for as long as the process lives.
unsafe impl<A: GlobalAlloc> GlobalAlloc for Sparing<A> {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's.
        found(unsafe {
            match is_little() {
                true => {
                    take(layout.size());
                    System.alloc(layout)
                }
                false => self.0.alloc(layout),
            }
        })
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's.
        found(unsafe {
            match is_little() {
                true => {
                    take(layout.size());
                    System.alloc_zeroed(layout)
                }
                false => self.0.alloc_zeroed(layout),
            }
        })
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: the caller's.
        found(unsafe {
            match is_little() {
                true => {
                    take(size);
                    give_back(layout.size());
                    System.realloc(memory, layout, size)
                }
                false => self.0.realloc(memory, layout, size),
            }
        })
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: the caller's.
        unsafe {
            match is_little() {
                true => {
                    give_back(layout.size());
                    System.dealloc(memory, layout);
                }
                false => self.0.dealloc(memory, layout),
            }
        }
    }
}
