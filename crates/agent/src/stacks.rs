//! The stacks that a program gives its threads for handlers, and whether ours may run there.
//!
//! It does where there is one: a program that has one may have stacks on which there is no room for a signal's frame. But
//! traps come at any time, and to several threads at once. Two kinds of stacks are good enough for the handler of a crash,
//! for which the program has them, and not for that:
//!
//! - those on which a frame has no room, with all the wide registers that the processor has, and what our handler needs;
//! - those that several threads name, since the program ends by whatever is handled there.
//!
//! Once a program names such a stack, or unmaps one without taking it back, or switches contexts on one, its traps are handled on
//! the stacks on which they come; so are they once it has closed a sandbox, in which nobody asks.
//! What a thread names is known as long as it lives and the program asks by the C library's function; of more threads than fit
//! it is not known.

use core::arch::x86_64::{__cpuid, __cpuid_count};
use core::sync::atomic::{AtomicU32, AtomicUsize, Ordering::SeqCst};

use crate::system::{self, Stack};
use crate::tables::tables;
use crate::{closed, forked, trap};

/// What a thread has named.
struct Named {
    /// 0 where nobody has this place.
    thread: AtomicU32,
    start: AtomicUsize,
    end: AtomicUsize,
}

/// Threads at most.
const MOST: usize = 512;
/// Behind the last place that anybody ever had.
static USED: AtomicUsize = AtomicUsize::new(0);
tables! {
    static NAMED: [Named; MOST] = [const {
        Named {
            thread: AtomicU32::new(0),
            start: AtomicUsize::new(0),
            end: AtomicUsize::new(0),
        }
    }; MOST];
}

/// Whether nobody looks at who has which stack: in a child of `vfork`, which has one thread, and this memory is its parent's; and in
/// a sandbox that the program has closed.
fn is_unasked() -> bool {
    closed::is_closed() || forked::is_guest()
}

/// The calling thread is about to name this stack, or says that it has none.
pub(crate) fn before_naming(stack: &Stack) {
    if is_unasked() {
        return;
    }
    if stack.flags & Stack::NONE == 0 && (stack.length < needed() || is_shared(stack)) {
        trap::leave_stacks();
    }
}

/// The calling thread has no stack for handlers any more.
pub(crate) fn forget() {
    if is_unasked() {
        return;
    }
    if let Some(own) = place_of(system::thread()) {
        own.end.store(0, SeqCst);
        own.thread.store(0, SeqCst);
    }
}

/// In a forked process the thread that has forked goes on by another number, with the same stack for handlers.
pub(crate) fn in_child() {
    if USED.load(SeqCst) == 0 {
        return;
    }
    let named = system::handlers_stack().filter(|stack| stack.flags & Stack::NONE == 0);
    let mut all = NAMED.iter();
    let own = named.and_then(|stack| all.find(|own| own.start.load(SeqCst) == stack.start));
    if let Some(own) = own {
        own.thread.store(system::thread(), SeqCst);
    }
}

/// The program is about to unmap this memory. What it does with a stack for handlers that lies there matters to nobody as long as no
/// signal comes; but traps do.
pub(crate) fn before_unmapping(start: usize, length: usize) {
    let end = start.wrapping_add(length);
    let meets = |named: &Named| {
        let meets = named.start.load(SeqCst) < end && start < named.end.load(SeqCst);
        meets && is_alive(named.thread.load(SeqCst))
    };
    let used = USED.load(SeqCst);
    if used != 0 && !is_unasked() && NAMED.iter().take(used).any(meets) {
        trap::leave_stacks();
    }
}

/// The calling thread goes from this place to another stack, and may come back. Who traps on the other one would be handled from the
/// top of the stack for handlers on, over what is there, if that is where it comes from.
pub(crate) fn before_leaving(place: usize) {
    let used = USED.load(SeqCst);
    let holds = |named: &Named| {
        let start = named.start.load(SeqCst);
        (start..named.end.load(SeqCst)).contains(&place)
    };
    if used != 0 && !is_unasked() && NAMED.iter().take(used).any(holds) {
        trap::leave_stacks();
    }
}

/// Bytes that a trap takes of a stack: what the processor saves of wide registers as the system has them (Intel SDM vol. 2, `CPUID`,
/// leaf 0DH), the rest of the kernel's frame and its alignment, which is half of what is added, and our handler.
fn needed() -> usize {
    const STATES: u32 = 0xd;
    const REST: usize = 1024;
    let wide = match __cpuid(0).eax >= STATES {
        true => __cpuid_count(STATES, 0).ebx,
        false => 512,
    };
    wide as usize + REST
}

/// Whether another thread that lives has named a part of this stack, which is the calling thread's from now on.
///
/// Of two who ask at once one at least sees what the other has named.
fn is_shared(stack: &Stack) -> bool {
    let me = system::thread();
    let end = stack.start.wrapping_add(stack.length);
    let Some(own) = place_of(me).or_else(|| take_place(me)) else {
        return false;
    };
    own.end.store(0, SeqCst);
    own.start.store(stack.start, SeqCst);
    own.end.store(end, SeqCst);
    NAMED.iter().any(|other| {
        let thread = other.thread.load(SeqCst);
        let meets = other.start.load(SeqCst) < end && stack.start < other.end.load(SeqCst);
        meets && thread != me && is_alive(thread)
    })
}

fn place_of(thread: u32) -> Option<&'static Named> {
    let mut all = NAMED.iter();
    all.find(|named| named.thread.load(SeqCst) == thread)
}

/// A place that nobody has, or somebody who is gone.
fn take_place(thread: u32) -> Option<&'static Named> {
    let take = |named: &&Named, free: fn(u32) -> bool| {
        let known = named.thread.load(SeqCst);
        let taken = || named.thread.compare_exchange(known, thread, SeqCst, SeqCst);
        free(known) && taken().is_ok()
    };
    let mut empty = NAMED.iter();
    let mut left = NAMED.iter();
    let empty = empty.find(|named| take(named, |known| known == 0));
    let taken = empty.or_else(|| left.find(|named| take(named, |known| !is_alive(known))))?;
    let mut all = NAMED.iter();
    let at = all.position(|named| core::ptr::eq(named, taken))?;
    USED.fetch_max(at + 1, SeqCst);
    Some(taken)
}

/// Whether it is a thread of this process.
fn is_alive(thread: u32) -> bool {
    thread != 0 && system::is_alive(system::process(), thread)
}
