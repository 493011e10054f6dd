//! A slab of counters for each thread, to which its `gs` base points.
//!
//! The base is the program's own to use, and hardly any does: the System V ABI gives `fs` to threads and
//! leaves `gs` alone. A new thread or process inherits it, so it always points at a slab; at *its own*
//! before it runs any code of the program: the first thread from the agent's start on, others since
//! `pthread_create` and `thrd_create` are stood before, children of `fork` since our handler was registered first. (A child of
//! `vfork` counts in the slab of the thread that waits for it.)
//!
//! Where paths are counted a slab is followed by a shadow of its thread's stacks, to which the base points (`shadow.rs`).
//!
//! A slab whose thread is gone is given to the next one as it is. Where there is none left, or no room
//! for it, the thread counts into memory that nobody reads, and is itself counted as lost.

use core::arch::naked_asm;
use core::ffi::{CStr, c_int, c_void};
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};

use tomo_wire::counting::{
    Contents, FORKS, LOST, MOST_SLABS, NAMESPACE_AT, OWNERS, Slabs, USED, process_of,
};
use tomo_wire::tracing::Origin;

use crate::system::{self, Access, FAULTS, File, How, Protection, SIGTRAP_BIT};
use crate::tables::tables;
use crate::{ahead, chains, closed, door, reserved, shadow, tracks};

tables! {
    /// Where in memory this process has mapped each slab; 0 where it has not.
    static PLACES: [AtomicUsize; MOST_SLABS as usize] =
        [const { AtomicUsize::new(0) }; MOST_SLABS as usize];
    /// What each new thread is to do: function, argument, and the signals that it blocks, by slab.
    static STARTS: [[AtomicUsize; 3]; MOST_SLABS as usize] =
        [const { [const { AtomicUsize::new(0) }; 3] }; MOST_SLABS as usize];
}
/// The head of the file, mapped; 0 as long as nothing counts.
static HEAD: AtomicUsize = AtomicUsize::new(0);
/// Bytes of a slab.
static SIZE: AtomicUsize = AtomicUsize::new(0);
/// What is in slabs: [`Contents`], as a number.
static CONTENTS: AtomicU64 = AtomicU64::new(Contents::Counters as u64);
/// Memory that nobody reads.
static NOWHERE: AtomicUsize = AtomicUsize::new(0);
/// Bytes from where a slab is to where the `gs` base points: 0 where there are no shadows.
static DISTANCE: AtomicUsize = AtomicUsize::new(0);
tables! {
    /// The file's path, for slabs to come: no file stays open, whose number the program could meet.
    static PATH: [AtomicU64; PATH_WORDS] = [const { AtomicU64::new(0) }; PATH_WORDS];
}
const PATH_WORDS: usize = 512;

/// The owner of a slab whose thread has not begun, in place of the thread.
const SOON: u32 = u32::MAX;

/// Bytes of a slab; 0 where nothing counts.
pub(crate) fn size() -> u64 {
    SIZE.load(Ordering::Relaxed) as u64
}

/// Whether this is in slabs.
pub(crate) fn have(contents: Contents) -> bool {
    CONTENTS.load(Ordering::Relaxed) == contents as u64
}

/// Lets the calling thread, the first one, count in the slabs of the file at `path`.
pub(crate) fn begin(path: &CStr) -> Option<()> {
    if has_early_threads() {
        return None;
    }
    system::look_for_bases();
    let (file, status) = door::open_private(path, Access::ReadWrite).ok()?;
    let mut bytes = [0; size_of::<Slabs>()];
    file.read_at(&mut bytes, 0).ok()?;
    let header = Slabs::read(&bytes, status.length.try_into().ok()?).ok()?;
    let size = header.size.get() as usize;
    remember(path)?;
    let head = system::map(Slabs::head() as usize, Protection::ReadWrite, &file, 0).ok()?;
    let contents = header.contents()?;
    let is_shadowed = contents == Contents::Paths;
    let nowhere = match is_shadowed {
        true => shadow::reserve()?,
        false => system::map_nothing(size).ok()?,
    };
    let distance = if is_shadowed { shadow::DISTANCE } else { 0 };
    DISTANCE.store(distance, Ordering::Relaxed);
    NOWHERE.store(nowhere, Ordering::Relaxed);
    SIZE.store(size, Ordering::Relaxed);
    CONTENTS.store(contents as u64, Ordering::Relaxed);
    if have(Contents::Chains) {
        chains::begin_nowhere(nowhere);
    }
    HEAD.store(head as usize, Ordering::Release);
    if tracks::are_kept() {
        tracks::prepare_nowhere(nowhere)?;
    }
    note_namespace();
    own(None);
    Some(())
}

/// The slab at `place` is the calling thread's from now on.
fn become_own(slab: u32, place: usize) {
    if have(Contents::Chains) {
        chains::begin(place, room(slab));
    }
    point_to(place);
}

/// How many bytes of a slab are used.
fn room(slab: u32) -> usize {
    match ahead::has(slab) {
        true => ahead::room(),
        false => room_of(slab),
    }
}

/// How many of one with this number, if it is made when it is needed.
pub(crate) fn room_of(slab: u32) -> usize {
    let size = SIZE.load(Ordering::Relaxed);
    match have(Contents::Chains) {
        true => Slabs::room(size as u64, Contents::Chains, slab) as usize,
        false => size,
    }
}

fn remember(path: &CStr) -> Option<()> {
    let bytes = path.to_bytes_with_nul();
    if bytes.len() > PATH_WORDS * 8 {
        return None;
    }
    for (word, chunk) in PATH.iter().zip(bytes.chunks(8)) {
        let mut value = [0; 8];
        for (to, from) in value.iter_mut().zip(chunk) {
            *to = *from;
        }
        word.store(u64::from_ne_bytes(value), Ordering::Relaxed);
    }
    Some(())
}

/// The file; none in a sandbox that the program has closed.
pub(crate) fn open() -> Option<File> {
    if closed::is_closed() {
        return None;
    }
    let path = PATH.as_ptr().cast();
    // SAFETY: `remember` left a string there that ends with a zero byte, before `HEAD` was set.
    let path = unsafe { CStr::from_ptr(path) };
    Some(door::open_private(path, Access::ReadWrite).ok()?.0)
}

/// A number in the head of the file that all processes change.
pub(crate) fn shared(offset: u64) -> Option<&'static AtomicU64> {
    let head = HEAD.load(Ordering::Acquire);
    if head == 0 {
        return None;
    }
    // SAFETY: the head is mapped for as long as the process lives, and has these numbers in it.
    Some(unsafe { &*((head + offset as usize) as *const AtomicU64) })
}

pub(crate) fn owner(slab: u32) -> Option<&'static AtomicU64> {
    shared(OWNERS + 8 * u64::from(slab))
}

/// The owner of a slab: where this process's number means something, its number, and the thread's.
pub(crate) fn name(thread: u32) -> u64 {
    let namespace = u64::from(NAMESPACE.load(Ordering::Relaxed));
    namespace << NAMESPACE_AT | u64::from(closed::process()) << 32 | u64::from(thread)
}

/// That of the calling thread.
pub(crate) fn own_name() -> u64 {
    name(closed::thread().unwrap_or(SOON))
}

/// The process namespace in which this process is, as far as ten bits tell; 0 where nobody says.
static NAMESPACE: AtomicU32 = AtomicU32::new(0);

/// Asks for the namespace. That of a forked process may be another one than its parent's.
fn note_namespace() {
    let number = system::namespace().unwrap_or(0) % (1 << 10);
    NAMESPACE.store(number as u32, Ordering::Relaxed);
}

/// Gives the calling thread a slab of its own, and counts it as lost if there is none. `origin` is of which other one it is
/// the copy, if that has a track.
fn own(origin: Option<Origin>) {
    match take(closed::thread().unwrap_or(SOON)) {
        Some((slab, place)) => {
            reserved::note(slab);
            become_own(slab, place);
            if tracks::are_kept() {
                tracks::begin(place, origin);
            }
        }
        None => {
            lose();
            point_to(NOWHERE.load(Ordering::Relaxed));
        }
    }
}

/// Lets the calling thread count in the slab at `place`.
fn point_to(place: usize) {
    system::set_gs(place.wrapping_add(DISTANCE.load(Ordering::Relaxed)));
}

fn lose() {
    if let Some(lost) = shared(LOST) {
        lost.fetch_add(1, Ordering::Relaxed);
    }
}

/// A slab for a thread, and where it is.
pub(crate) fn take(thread: u32) -> Option<(u32, usize)> {
    let slab = claim(thread)?;
    match place(slab) {
        Some(place) => {
            if tracks::are_kept() {
                tracks::number_thread(slab);
            }
            Some((slab, place))
        }
        None => {
            owner(slab)?.store(0, Ordering::Relaxed);
            None
        }
    }
}

/// A slab that is the thread's from now on: one whose owner is gone, if there is one near where the last one was found, or
/// near a place at which other processes hardly look; a new one; or any whose owner is gone.
fn claim(thread: u32) -> Option<u32> {
    if closed::is_closed() {
        return reserved::one(thread);
    }
    const SPREAD: u32 = 0x9e37_79b1;
    let elsewhere = || system::process().wrapping_mul(SPREAD) >> 20;
    abandoned(thread, NEXT.load(Ordering::Relaxed), TRIES)
        .or_else(|| abandoned(thread, elsewhere(), TRIES))
        .or_else(|| unused(thread))
        .or_else(|| abandoned(thread, 0, MOST_SLABS))
}

/// A slab that nobody ever had.
fn unused(thread: u32) -> Option<u32> {
    let next = shared(USED)?.fetch_add(1, Ordering::Relaxed);
    let slab = u32::try_from(next).ok().filter(|slab| *slab < MOST_SLABS)?;
    owner(slab)?.store(name(thread), Ordering::Relaxed);
    Some(slab)
}

/// How many slabs are asked for their owners from one place on.
const TRIES: u32 = 64;
/// Behind the one that was found last.
static NEXT: AtomicU32 = AtomicU32::new(0);

/// A slab whose owner is gone, among so many from the first on.
fn abandoned(thread: u32, first: u32, tries: u32) -> Option<u32> {
    let used = shared(USED)?.load(Ordering::Relaxed).min(MOST_SLABS.into()) as u32;
    let all = (0..used).filter_map(|step| {
        let slab = first.wrapping_add(step).checked_rem(used)?;
        Some((slab, owner(slab)?))
    });
    // Where a track lies in memory only its own process knows: others' are passed over, however many they are.
    let own = name(0) >> 32;
    let is_ours = |slab: u32, owner: &AtomicU64| {
        is_mapped(slab) && owner.load(Ordering::Relaxed) >> 32 == own
    };
    let near = all.filter(|(slab, owner)| !tracks::are_kept() || is_ours(*slab, owner));
    near.take(tries as usize).find_map(|(slab, owner)| {
        let known = owner.load(Ordering::Relaxed);
        let is_there = || is_mapped(slab) || ahead::place_of(slab).is_some();
        let out_of_reach = ahead::are_there() && !is_there();
        if out_of_reach || !is_gone(known) {
            return None;
        }
        let ours = name(thread);
        let taken = owner.compare_exchange(known, ours, Ordering::Relaxed, Ordering::Relaxed);
        NEXT.store(slab.wrapping_add(1), Ordering::Relaxed);
        taken.is_ok().then_some(slab)
    })
}

/// Whether nobody has the slab any more. In another namespace numbers mean others, and nobody can ask.
fn is_gone(owner: u64) -> bool {
    let thread = owner as u32;
    // Where nobody says which one it is, it is 0.
    let process = process_of(owner, NAMESPACE.load(Ordering::Relaxed).into());
    let is_over = |process| !system::is_alive(process, thread & !reserved::MARK);
    owner == 0 || (thread != SOON && process.is_some_and(is_over))
}

/// Whether this process has mapped the slab.
pub(crate) fn is_mapped(slab: u32) -> bool {
    let place = PLACES.get(slab as usize);
    place.is_some_and(|place| place.load(Ordering::Relaxed) != 0)
}

/// Where this process has a slab; mapped if it is not, with room on the disk for all that is used of it.
fn place(slab: u32) -> Option<usize> {
    let known = PLACES.get(slab as usize)?;
    match known.load(Ordering::Relaxed) {
        0 => {
            let place = match DISTANCE.load(Ordering::Relaxed) {
                0 => ahead::place_of(slab).or_else(|| map(slab))?,
                _ => {
                    let place = shadow::reserve()?;
                    put_at(slab, place)?;
                    place
                }
            };
            if tracks::are_kept() {
                tracks::prepare(place, slab)?;
            }
            known.store(place, Ordering::Relaxed);
            Some(place)
        }
        place => Some(place),
    }
}

fn map(slab: u32) -> Option<usize> {
    let size = SIZE.load(Ordering::Relaxed);
    let file = with_room(slab)?;
    let place = system::map(size, Protection::ReadWrite, &file, offset(slab)).ok()?;
    system::bring_in_one_by_one(place as usize, size);
    Some(place as usize)
}

/// The file, with room on the disk for all that is used of a slab.
fn with_room(slab: u32) -> Option<File> {
    let file = open()?;
    file.allocate(offset(slab), room(slab) as u64).ok()?;
    Some(file)
}

/// Where in the file a slab starts.
pub(crate) fn offset(slab: u32) -> u64 {
    Slabs::head() + u64::from(slab) * size()
}

/// Puts a slab in front of a shadow. Where the file is out of reach it is moved there from where it is mapped.
fn put_at(slab: u32, place: usize) -> Option<()> {
    let size = SIZE.load(Ordering::Relaxed);
    let known = PLACES.get(slab as usize)?.load(Ordering::Relaxed);
    let mapped = ahead::place_of(slab).or((known != 0).then_some(known));
    match mapped.filter(|_| ahead::are_there()) {
        Some(from) => {
            ahead::is_moved(slab);
            shadow::move_counters(place, size, from)
        }
        None => shadow::put_counters(place, size, &with_room(slab)?, offset(slab)),
    }
}

/// Where the calling thread counts.
fn here() -> usize {
    system::gs().wrapping_sub(DISTANCE.load(Ordering::Relaxed))
}

/// The slab in which the calling thread counts, and where that is; `None` in a sandbox that the program has closed, if the
/// system would have to be asked. O(slabs).
pub(crate) fn mine() -> Option<(usize, usize)> {
    if closed::is_closed() && !system::has_bases() {
        return None;
    }
    let place = here();
    let is_here = |known: &AtomicUsize| known.load(Ordering::Relaxed) == place;
    let slab = PLACES.iter().position(is_here)?;
    (place != 0).then_some((slab, place))
}

/// Called by who is about to fork.
pub(crate) extern "C" fn before_fork() {
    note_fork(true);
}

/// Called when that is done, in who has forked.
pub(crate) extern "C" fn after_fork() {
    note_fork(false);
}

fn note_fork(is_about_to: bool) {
    if HEAD.load(Ordering::Relaxed) == 0 || !tracks::are_kept() {
        return;
    }
    if let Some((slab, place)) = mine() {
        tracks::note_fork(slab, place, is_about_to);
    }
}

/// Called in the child of a `fork`, before any handler of the program.
pub(crate) fn in_child() {
    if HEAD.load(Ordering::Relaxed) == 0 {
        return;
    }
    reserved::in_child();
    if !closed::is_closed() {
        note_namespace();
    }
    if DISTANCE.load(Ordering::Relaxed) == 0 {
        let parent = if tracks::are_kept() { mine() } else { None };
        return own(parent.and_then(|(slab, _)| tracks::origin(slab)));
    }
    if go_on().is_none() {
        lose();
        point_to(NOWHERE.load(Ordering::Relaxed));
    }
}

/// The one thread of a child keeps the shadow that it has a copy of, and gets a slab of its own in front of it.
fn go_on() -> Option<()> {
    if let Some(forks) = shared(FORKS) {
        forks.fetch_add(1, Ordering::Relaxed);
    }
    // In a sandbox that the program has closed nobody can move counters there.
    let place = (!closed::is_closed()).then(here)?;
    if place == NOWHERE.load(Ordering::Relaxed) {
        return None;
    }
    let slab = claim(system::thread())?;
    for known in PLACES
        .iter()
        .filter(|known| known.load(Ordering::Relaxed) == place)
    {
        known.store(0, Ordering::Relaxed);
    }
    if put_at(slab, place).is_none() {
        owner(slab)?.store(0, Ordering::Relaxed);
        return None;
    }
    PLACES.get(slab as usize)?.store(place, Ordering::Relaxed);
    reserved::note(slab);
    Some(())
}

/// Whether the agent has started.
static STARTED: AtomicBool = AtomicBool::new(false);
/// Whether threads are there that were created before.
static EARLY: AtomicBool = AtomicBool::new(false);

/// Whether some of these began with SIGTRAP blocked.
static DEAF: AtomicBool = AtomicBool::new(false);

/// The agent starts: it knows from now on whom it was not before.
pub(crate) fn start() {
    STARTED.store(true, Ordering::Relaxed);
    if EARLY.load(Ordering::Relaxed) && system::is_alone() {
        EARLY.store(false, Ordering::Relaxed);
    }
}

/// Whether there are threads that were created before the agent's start. None of them has a slab, nor memory that nobody reads.
pub(crate) fn has_early_threads() -> bool {
    EARLY.load(Ordering::Relaxed)
}

/// Whether some of them end the program where they trap.
pub(crate) fn has_deaf_threads() -> bool {
    DEAF.load(Ordering::Relaxed)
}

/// Signals that are blocked where a thread starts: but for SIGKILL, SIGSTOP and the C library's own, all that others send.
const ASYNCHRONOUS: u64 = !(FAULTS | 1 << 8 | 1 << 18 | 1 << 31 | 1 << 32);
/// In place of a mask: no signal was blocked.
const OPEN: u64 = u64::MAX;

/// Creates a thread that has a slab of its own. `real` is the C library's `pthread_create`, given function and
/// argument.
pub(crate) fn create(
    real: impl FnOnce(usize, *mut c_void) -> c_int,
    start: usize,
    argument: *mut c_void,
) -> c_int {
    if HEAD.load(Ordering::Relaxed) == 0 {
        if !STARTED.load(Ordering::Relaxed) {
            EARLY.store(true, Ordering::Relaxed);
            let mask = system::change_mask(How::Block, 0);
            DEAF.fetch_or(mask & SIGTRAP_BIT != 0, Ordering::Relaxed);
        }
        return real(start, argument);
    }
    let taken = take(SOON).and_then(|(slab, _)| Some((slab, STARTS.get(slab as usize)?)));
    let Some((slab, [function, first, mask])) = taken else {
        lose();
        return unnoted(|| real(start, argument));
    };
    function.store(start, Ordering::Relaxed);
    // Until then its base points where that of its creator does, and handlers would count there, without a lock.
    let before = match closed::is_closed() {
        true => OPEN,
        false => system::change_mask(How::Block, !FAULTS),
    };
    mask.store(before as usize, Ordering::Relaxed);
    first.store(argument as usize, Ordering::Release);
    let begins = thread_begins as *const () as usize;
    let result = real(begins, slab as usize as *mut c_void);
    if before != OPEN {
        system::change_mask(How::Set, before);
    }
    if result != 0
        && let Some(owner) = owner(slab)
    {
        owner.store(0, Ordering::Relaxed);
    }
    result
}

/// What `mlockall` is to be told: shadows of stacks are far larger than what is ever touched of them.
pub(crate) fn locked(flags: c_int) -> c_int {
    /// What is locked gets its memory only when it is touched.
    const ON_FAULT: c_int = 4;
    match have(Contents::Paths) {
        true => flags | ON_FAULT,
        false => flags,
    }
}

/// Creates a thread that has no slab. It inherits where the base points, and so begins in memory that nobody reads; what it did in
/// its creator's would be counted there, without a lock.
fn unnoted(real: impl FnOnce() -> c_int) -> c_int {
    let own = system::gs();
    // A track can have one thread only.
    let apart = if tracks::are_kept() {
        nowhere_apart()
    } else {
        None
    };
    point_to(apart.unwrap_or_else(|| NOWHERE.load(Ordering::Relaxed)));
    let result = real();
    system::set_gs(own);
    result
}

/// Memory for the track of one thread, which nobody reads.
fn nowhere_apart() -> Option<usize> {
    let place = system::map_nothing(SIZE.load(Ordering::Relaxed)).ok()?;
    tracks::prepare_nowhere(place)?;
    Some(place)
}

/// What a thread is to do.
#[repr(C)]
struct Begin {
    function: usize,
    argument: usize,
}

/// Takes possession of the slab; gives what the thread is to do.
extern "C" fn possess(given: usize) -> Begin {
    let [function, first, mask] = STARTS.get(given).unwrap_or(&STARTS[0]);
    let argument = first.load(Ordering::Acquire);
    let mask = mask.load(Ordering::Relaxed) as u64;
    let function = function.load(Ordering::Relaxed);
    let slab = match closed::is_closed() {
        true => reserved::inherited(given as u32) as usize,
        false => given,
    };
    let place = PLACES
        .get(slab)
        .map_or(0, |place| place.load(Ordering::Relaxed));
    become_own(slab as u32, place);
    if let Some(owner) = owner(slab as u32) {
        owner.store(own_name(), Ordering::Relaxed);
    }
    reserved::note(slab as u32);
    if tracks::are_kept() {
        tracks::begin(place, None);
    }
    if mask != OPEN {
        let inherited = system::change_mask(How::Set, mask);
        // Its attributes may have named other ones (`pthread_attr_setsigmask_np`).
        if inherited & ASYNCHRONOUS != ASYNCHRONOUS {
            system::change_mask(How::Set, inherited);
        }
    }
    Begin { function, argument }
}

/// Where a thread begins. It leaves no frame behind, so that whoever unwinds the thread's stack (an
/// exception, `pthread_exit`, a debugger) finds what would be there without us.
// SAFETY: called with the stack as the ABI has it at a function's start; keeps it aligned for the call, puts it
// back, and leaves by a jump to the function that the program gave, with its argument in place.
#[unsafe(naked)]
extern "C" fn thread_begins(slab: *mut c_void) -> *mut c_void {
    naked_asm!(
        "sub rsp, 8",
        "call {possess}",
        "add rsp, 8",
        "mov rdi, rdx",
        "jmp rax",
        possess = sym possess,
    )
}
