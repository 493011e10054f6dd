//! Processes that are forked, where each is to have a record of its own.
//!
//! A forked process inherits the mappings of its parent: text without the probes that were hit, a record
//! that both write. Before it goes on from `fork`, it gets a text with all probes and an empty record, at the
//! same places; so its record has all that it does itself, from the fork on. The C library calls
//! [`in_child`] in it, whoever has called `fork`. It does not where a program calls `_Fork`, `clone` or `syscall`, so these are
//! stood before. Those that a program makes by system calls of its own, and those that `vfork` makes, go on in their parent's
//! record.
//!
//! **Why no one notices.** There is one thread, and it is here, with all signals blocked. It will go on in the
//! program's text where calls return, at which blocks start and no probe has begun, and where signals have
//! interrupted it, which may be in the middle of what a probe covers. So the lines around those places
//! keep the text as the parent had it ([`crate::interrupted`]); a probe never reaches beyond its line. What
//! was there of probes is gone in this process. Trampolines are not touched, so one that was interrupted
//! goes on; where it has one store left of several, the line that it restores is kept, too.
//!
//! Where anything fails before the text is mapped, the process stays in its parent's record, which is said
//! in the record of the run. After that nothing can fail that would not fail before: mappings are replaced
//! by others of the same size, from a file of which one was made a moment ago.

use core::arch::naked_asm;
use core::ffi::{c_int, c_void};
use core::mem::transmute;
use core::slice;
use core::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

use tomo_wire::image::{Image, Region};
use tomo_wire::record::{Field, Reason, Record};
use tomo_wire::roster::Entry;
use tomo_wire::{PAGE, held};

use crate::arm::{Files, Place};
use crate::armed::{self, Counters};
use crate::interrupted::Interrupted;
use crate::lines::{LINE, steady};
use crate::loader::weak;
use crate::own::{self, Began, Own};
use crate::pointed::words;
use crate::symbols::OfGlibc;
use crate::system::{self, Errno, How, Protection};
use crate::tables::{Grown, tables};
use crate::{closed, door, kept, slabs, stacks};

/// A module of which this process has a text and a record of its own.
#[derive(Clone, Copy)]
pub(crate) struct Module {
    /// From stated to loaded addresses.
    pub(crate) bias: usize,
    /// The number of its first region among those that are armed.
    pub(crate) region: usize,
    /// The image's file, mapped: text with all probes.
    pub(crate) image: &'static [u8],
    /// Where the first page of the process's own record is mapped.
    pub(crate) page: *mut u8,
    /// The record of the run.
    pub(crate) shared: Counters,
    /// Where in the roster its path is.
    pub(crate) path: u32,
}

/// Modules at most: each has a region at least.
const MOST: usize = armed::MOST;

// SAFETY: its page is mapped for as long as the process lives, and all threads may change what is there.
unsafe impl Sync for Module {}

tables! {
    static MODULES: Grown<Module, MOST> = Grown::new();
}

/// What [`system::sandbox`] said at the start.
static SANDBOX: AtomicUsize = AtomicUsize::new(0);

/// Whether each process is to have its own of this module.
pub(crate) fn is_separate(entry: &Entry) -> bool {
    entry.separate.get() != 0
}

/// Remembers a module that was armed.
pub(crate) fn remember(module: Module) {
    // SAFETY: the loader's lock is held while modules are armed, or there is one thread.
    unsafe { MODULES.add(module) };
}

/// A function that the C library calls.
type Handler = extern "C" fn();
/// What registers functions for before a fork, after it, and after it in the child.
type Register =
    unsafe extern "C" fn(Option<Handler>, Option<Handler>, Option<Handler>, *const c_void) -> c_int;

/// The process whose memory this is; 0 before the agent's start.
static OWNER: AtomicU32 = AtomicU32::new(0);

/// Whether this is a child of `vfork`, which borrows its parent's memory. A process that nobody has told of is taken for one.
pub(crate) fn is_guest() -> bool {
    let owner = OWNER.load(Ordering::Relaxed);
    owner != 0 && !closed::is_closed() && system::process() != owner
}

/// The process whose memory this is, as far as was told.
pub(crate) fn owner() -> u32 {
    OWNER.load(Ordering::Relaxed)
}

/// Whether it certainly is one.
pub(crate) fn is_surely_guest() -> bool {
    is_guest() && system::shares_memory_with(OWNER.load(Ordering::Relaxed))
}

/// From now on forked processes are known. Called at the start, while there is one thread.
pub(crate) fn watch() {
    OWNER.store(system::process(), Ordering::Relaxed);
    tell(slabs::before_fork, slabs::after_fork, in_child);
}

/// From now on each is to have records of its own.
pub(crate) fn separate() {
    SANDBOX.store(system::sandbox(), Ordering::Relaxed);
}

/// Called in a forked process, before other libraries' handlers: ours is the first to be known.
extern "C" fn in_child() {
    if closed::is_closed() {
        // The one thread of a process has its number.
        if let Some(thread) = closed::thread() {
            OWNER.store(thread, Ordering::Relaxed);
        }
    } else {
        OWNER.store(system::process(), Ordering::Relaxed);
        stacks::in_child();
    }
    slabs::in_child();
    if !MODULES.all().is_empty() {
        child();
    }
}

/// Makes a call that forks, of which nobody else tells; what comes back is 0 in the child.
pub(crate) fn forking(make: impl FnOnce() -> isize) -> isize {
    slabs::before_fork();
    let process = make();
    match process {
        0 if OWNER.load(Ordering::Relaxed) != 0 => in_child(),
        0 => {}
        _ => slabs::after_fork(),
    }
    process
}

/// The flag of `clone` by which the child borrows or shares its parent's memory.
const SHARES_MEMORY: usize = 0x100;

/// The numbers of the calls that make processes.
pub(crate) const CLONE: usize = 56;
pub(crate) const FORK: usize = 57;
pub(crate) const CLONE_3: usize = 435;

/// Whether this system call makes a process that has memory of its own and comes back on a copy of the stack.
pub(crate) fn forks(number: usize, first: usize, second: usize) -> bool {
    let is_one = |flags: usize, stack: usize| flags & SHARES_MEMORY == 0 && stack == 0;
    match number {
        FORK => true,
        CLONE => is_one(first, second),
        // The first words of `struct clone_args`: the flags, and where the stack is, among others.
        CLONE_3 if second >= size_of::<[usize; 6]>() => {
            words(first).is_some_and(|[flags, _, _, _, _, stack]: [usize; 6]| is_one(flags, stack))
        }
        _ => false,
    }
}

/// Whether the process that this system call makes, which takes these flags from memory, has the default action for all signals
/// that were handled.
pub(crate) fn clears_handlers(number: usize, first: usize) -> bool {
    const CLEARS: usize = 0x1_0000_0000;
    number == CLONE_3 && words(first).is_some_and(|[flags]: [usize; 1]| flags & CLEARS != 0)
}

/// What a process that `clone` makes is to do.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct Begin {
    pub(crate) function: usize,
    pub(crate) argument: usize,
    pub(crate) stack: usize,
}

/// What `clone` is to be told so that a process with memory of its own begins with [`in_child`].
///
/// # Safety
/// The child may use what is below the end of its stack, as `clone` asks of its callers.
pub(crate) unsafe fn before_cloning(told: Begin, flags: usize) -> Begin {
    let shares = flags & SHARES_MEMORY != 0;
    if shares || told.function == 0 || told.stack == 0 || OWNER.load(Ordering::Relaxed) == 0 {
        return told;
    }
    let here = 0_usize;
    let all = [
        told.function,
        told.argument,
        (&raw const here) as usize & !15,
    ];
    let place = (told.stack & !15).wrapping_sub(2 * size_of::<[usize; 2]>());
    // SAFETY: the caller's, and the C library puts words there itself; the address is aligned.
    unsafe { *(place as *mut [usize; 3]) = all };
    Begin {
        function: clone_begins as *const () as usize,
        argument: place,
        stack: place,
    }
}

/// Where such a process begins, with the address of function, argument, and where its parent's stack was: on its copy of that,
/// as a child of `fork` would, and not on its own, which may be small, it gets what is to be its own. It leaves no frame behind.
// SAFETY: called with the stack as the ABI has it at a function's start. Nobody is on the copy of the parent's stack, below
// the frame of who called `clone`; it is aligned for the call. All is as it was when this leaves by a jump to the function that
// the program gave, with its argument in place.
#[unsafe(naked)]
extern "C" fn clone_begins(told: usize) -> c_int {
    naked_asm!(
        "push rbx",
        "mov rbx, rdi",
        "mov rax, rsp",
        "mov rsp, [rdi + 16]",
        "push rax",
        "push rax",
        "call {in_child}",
        "pop rsp",
        "mov rdi, rbx",
        "pop rbx",
        "mov rax, [rdi]",
        "mov rdi, [rdi + 8]",
        "jmp rax",
        in_child = sym in_child,
    )
}

/// Has the C library call these before a fork, after it, and after it in the child.
fn tell(before: Handler, after: Handler, child: Handler) {
    // glibc has the one, others the other; the fourth argument, the module that asks, is glibc's.
    static REGISTER: OfGlibc = OfGlibc::new(c"__register_atfork");
    let address = match REGISTER.address(weak!("__register_atfork")) {
        0 => weak!("pthread_atfork"),
        address => address,
    };
    if address == 0 {
        return;
    }
    // SAFETY: the functions of these names have this type, but for the last argument, at which who does not
    // know it does not look. The handler is never unloaded.
    unsafe {
        let register = transmute::<usize, Register>(address);
        let module = (&raw const MODULES).cast();
        register(Some(before), Some(after), Some(child), module);
    }
}

/// Gives a forked process what is to be its own. Not part of [`in_child`], since it takes much of the stack, which may be small.
#[inline(never)]
fn child() {
    if closed::is_closed() {
        // What a program that has locked itself in may still do, nobody knows; to try might end it.
        for module in MODULES.all() {
            refuse(module, NOT_PERMITTED);
        }
        return;
    }
    let before = system::change_mask(How::Block, u64::MAX);
    let is_same = system::sandbox() == SANDBOX.load(Ordering::Relaxed);
    let interrupted = match is_same {
        true => Interrupted::find(),
        // As above: it did so by calls of its own.
        false => Err(NOT_PERMITTED),
    };
    for module in MODULES.all() {
        let renewed = renew(module, interrupted.as_ref());
        // SAFETY: the page stays mapped, and is that of the record in which this process is.
        let counters = unsafe { Counters::at(module.page) };
        let process = system::process();
        match renewed {
            Ok(false) => {}
            Ok(true) => {
                counters.note_armed(process);
                module.shared.note_armed(process);
            }
            Err(errno) => refuse(module, errno),
        }
    }
    system::change_mask(How::Set, before);
}

/// Notes that this process stays in its parent's record.
fn refuse(module: &Module, Errno(errno): Errno) {
    // SAFETY: the page stays mapped, and is that of the record in which this process is.
    let counters = unsafe { Counters::at(module.page) };
    counters.count(Field::Armed);
    module.shared.note_refused(Reason::NotSeparate, errno);
}

/// The counters of the record that all processes have in common, where this process has `own` ones.
pub(crate) fn shared(own: Counters) -> Option<Counters> {
    let mut modules = MODULES.all().iter();
    modules
        .find(|module| own.are_at(module.page))
        .map(|module| module.shared)
}

const NOT_PERMITTED: Errno = Errno(1);
/// The kernel's word for what makes no sense.
const INVALID: Errno = Errno(22);

/// Gives this process a text and a record of its own; whether it had none. It may have one for a module that
/// was loaded several times; one that is loaded no more gets none.
fn renew(module: &Module, interrupted: Result<&Interrupted, &Errno>) -> Result<bool, Errno> {
    if !armed::is_ours(module.region) {
        return Ok(false);
    }
    let image = Image::read(module.image, module.image.len() as u64).map_err(|_| INVALID)?;
    let first = image.regions().first().ok_or(INVALID)?;
    let origin = start_of(module, first);
    let interrupted = interrupted.map_err(|errno| *errno)?;
    let text = own::text(&image, module.image)?;
    for place in interrupted.places() {
        keep_line(module, &image, &text, *place)?;
        if let Some(window) = half_restored(origin, &image, *place) {
            keep_line(module, &image, &text, window)?;
        }
    }
    // One mapping of the kind that cannot be undone below.
    let trial = system::map(
        PAGE as usize,
        Protection::ReadExecute,
        &text,
        first.offset.get(),
    )?;
    // SAFETY: mapped just now, and nobody knows it.
    unsafe { system::unmap(trial as usize, PAGE as usize) };
    let own = own_record(module)?;
    let files = Files {
        image: &text,
        text: &text,
        record: &own.file,
    };
    let place = Place {
        origin,
        image: &image,
        files: &files,
    };
    place.map_texts(module.bias, |_| true)?;
    place.map_aliases()?;
    place.map_marks()?;
    // SAFETY: the page is that of the parent's record, which nobody here reads any more.
    unsafe {
        system::map_over(
            module.page as usize,
            PAGE as usize,
            Protection::ReadWrite,
            &own.file,
            0,
        )?;
    }
    Ok(!own.continued)
}

fn start_of(module: &Module, region: &Region) -> usize {
    module.bias.wrapping_add(region.address.get() as usize)
}

/// This process's own record, made from that of its parent.
fn own_record(module: &Module) -> Result<Own, Errno> {
    let (roster, roster_path) = kept::roster().ok_or(INVALID)?;
    let mut header = [0; size_of::<Record>()];
    // SAFETY: the header is at the start of the page, and never changes.
    let page = unsafe { slice::from_raw_parts(module.page, header.len()) };
    header.copy_from_slice(page);
    let header = Record::read(&header, u64::MAX).map_err(|_| INVALID)?;
    let mut buffer = [0; 4096];
    let path = roster.path(module.path.into()).ok_or(INVALID)?;
    let path = door::beside(roster_path, path, &mut buffer).ok_or(INVALID)?;
    own::record(path, &header, Began::Forked)
}

/// The window of which the trampoline at `place` has the first byte still to restore, and nothing else. Of other
/// trampolines that end so the line may be kept as well.
fn half_restored(origin: usize, image: &Image, place: usize) -> Option<usize> {
    let start = origin.wrapping_add_signed(image.distance.get() as isize);
    let length = image.trampolines_length.get() as usize;
    let room = length.checked_sub(place.checked_sub(start)?)?;
    (room >= held::END).then_some(())?;
    // SAFETY: inside the trampolines, which stay mapped as they are.
    let end = unsafe { &*(place as *const [u8; held::END]) };
    let distance = held::window_from(end)? as isize;
    Some(place.wrapping_add(held::END).wrapping_add_signed(distance))
}

/// Has `text` keep the line around `address`, if that is the module's, as it is in memory.
fn keep_line(
    module: &Module,
    image: &Image,
    text: &system::File,
    address: usize,
) -> Result<(), Errno> {
    let inside = |region: &&Region| {
        address.wrapping_sub(start_of(module, region)) < region.length.get() as usize
    };
    let Some(region) = image.regions().iter().find(inside) else {
        return Ok(());
    };
    let line = address / LINE * LINE;
    let offset = line.wrapping_sub(start_of(module, region)) as u64;
    // SAFETY: a line of the module's text, which is mapped.
    let kept = unsafe { steady(line) };
    text.write_at(&kept, region.offset.get() + offset)
}
