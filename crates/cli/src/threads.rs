//! Threads where the system lets few be made (`ulimit -u`, `pids.max`), so that the program has room for its own, or has little memory
//! for their stacks (`ulimit -d`, `-v`).

use std::sync::Mutex;
use std::thread::{self, Builder};

/// Where a part of the threads that may be made, or what there is memory for, is less than one for each processor, has what is done side by
/// side use no more, or this thread alone. Else nothing is done: threads are made when they are needed first.
pub(crate) fn leave_some() {
    /// The part that is used.
    const PART: u64 = 8;
    /// More than there are processors: these are not counted at each start.
    const MANY: u64 = 1024;
    let part = tomo_launch::processes_allowed().map_or(MANY, |most| most / PART);
    let part = part.min(tomo_launch::threads_affordable());
    let processors = || thread::available_parallelism().map_or(1, usize::from) as u64;
    if part >= MANY || part >= processors() {
        return;
    }
    let can = can_make(part as usize);
    let pool = rayon::ThreadPoolBuilder::new().num_threads(can.max(1));
    let pool = match can {
        0 => pool.use_current_thread(),
        _ => pool,
    };
    // Where it fails all the same, who needs it says so.
    let _ = pool.build_global();
}

/// How many threads, of so many, can be there at once just now.
fn can_make(wanted: usize) -> usize {
    let gate = Mutex::new(());
    let closed = gate.lock();
    thread::scope(|scope| {
        let wait = || drop(gate.lock());
        let made = (0..wanted).map_while(|_| Builder::new().spawn_scoped(scope, wait).ok());
        let made = made.count();
        drop(closed);
        made
    })
}
