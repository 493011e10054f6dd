//! What is kept of a thread that gets a fatal signal: registers, the stack from its pointer up, the modules.
//!
//! Everything here is async-signal-safe. It may run on any thread, at any instruction, on a small stack: it stores into
//! a mapped file, and asks the kernel of each page whether it can be read before it is. The loader's list of modules is
//! read as debuggers read it, without its lock: one that is being changed may be kept wrongly, but nothing is
//! read that is not there.

use core::ffi::{CStr, c_char};
use core::ptr::null;
use core::slice;
use core::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering, fence};

use tomo_wire::PAGE;
use tomo_wire::crash::{
    Crashes, Head, LENGTH, Loaded, MODULES, MOST_MODULES, MOST_STACK, SLOT, SLOTS, STACK, STATE,
    TAKEN, register, state,
};

use crate::frame::{Context, Info};
use crate::listed::{Listed, headers_at};
use crate::loader::{self, Module, Segment};
use crate::system::{self, Access, FAULTS, How, Protection, Stack};
use crate::{closed, door, late, maps};

/// Where the file is mapped; 0 where nothing is kept.
static PLACE: AtomicUsize = AtomicUsize::new(0);
/// Which process took which slot: its number in the upper half, that of the slot in the lower.
static TAKEN_BY: AtomicU64 = AtomicU64::new(0);
/// The process of which a thread writes; 0 while none does.
static BUSY: AtomicU32 = AtomicU32::new(0);
/// How many were kept in this process.
static COUNT: AtomicU64 = AtomicU64::new(0);
/// What the loader tells debuggers, and the program's bias and headers.
static TOLD: AtomicUsize = AtomicUsize::new(0);
static PROGRAM: [AtomicUsize; 3] = [const { AtomicUsize::new(0) }; 3];

/// Maps the file at `path`.
pub(crate) fn begin(path: &CStr) -> Option<()> {
    let (file, status) = door::open_private(path, Access::ReadWrite).ok()?;
    let mut header = [0; size_of::<Crashes>()];
    file.read_at(&mut header, 0).ok()?;
    Crashes::read(&header, status.length.try_into().ok()?).ok()?;
    let place = system::map(LENGTH as usize, Protection::ReadWrite, &file, 0).ok()?;
    let mut first = true;
    loader::for_each(|module| {
        if core::mem::take(&mut first) {
            let (headers, count) = module.headers();
            for (word, value) in PROGRAM.iter().zip([module.bias, headers, count]) {
                word.store(value, Ordering::Relaxed);
            }
            if let Some(code) = module.executable().next() {
                // The loader names it by nothing, and it need not be the one that was started first.
                maps::find_program(module.bias.wrapping_add(code.address as usize));
            }
        }
        if let Some(told) = module.told(late::DEBUG).filter(|told| *told != 0) {
            let _ = TOLD.compare_exchange(0, told as usize, Ordering::Relaxed, Ordering::Relaxed);
        }
    });
    PLACE.store(place as usize, Ordering::Release);
    Some(())
}

/// Whether anything is kept.
pub(crate) fn is_kept() -> bool {
    PLACE.load(Ordering::Acquire) != 0
}

/// How often others are given way to who write just now.
const PATIENCE: u32 = 10_000;

/// Keeps what is known of the calling thread, which got a signal; `handled` where the program has a handler of its own.
///
/// # Safety
/// `info` and `context` are what the kernel hands to a handler that asked for them.
pub(crate) unsafe fn keep(info: *const Info, context: *const Context, handled: bool) {
    // SAFETY: the caller's.
    if COUNT.load(Ordering::Relaxed) > 0 && unsafe { is_in_handler(context) } {
        return;
    }
    let Some(slot) = own_slot() else {
        return;
    };
    // A handler that comes in between might never come back.
    let mask = (!closed::is_closed()).then(|| system::change_mask(How::Block, !FAULTS));
    if begin_alone() {
        // SAFETY: the caller's; nobody else writes now.
        unsafe { write(slot, &*info, context, handled) };
        BUSY.store(0, Ordering::Release);
    }
    if let Some(mask) = mask {
        system::change_mask(How::Set, mask);
    }
}

/// Waits until nobody else writes, unless that takes too long. Who had begun when a process was forked does not go on there.
fn begin_alone() -> bool {
    let me = system::process();
    for _ in 0..PATIENCE {
        let taken = BUSY.fetch_update(Ordering::Acquire, Ordering::Relaxed, |writes| {
            (writes != me).then_some(me)
        });
        if taken.is_ok() {
            return true;
        }
        system::give_way();
    }
    false
}

/// Whether the thread was in a handler that runs on a stack of its own.
///
/// # Safety
/// The context is the kernel's.
unsafe fn is_in_handler(context: *const Context) -> bool {
    // SAFETY: the caller's.
    let pointer = unsafe { (*context).registers[register::RSP] };
    let stack = system::handlers_stack();
    stack.is_some_and(|stack| {
        stack.flags & Stack::NONE == 0 && pointer.wrapping_sub(stack.start) < stack.length
    })
}

/// Where this process's slot is.
fn own_slot() -> Option<*mut u8> {
    let place = PLACE.load(Ordering::Acquire);
    if place == 0 {
        return None;
    }
    let me = system::process();
    let known = TAKEN_BY.load(Ordering::Relaxed);
    let number = match (known >> 32) as u32 == me {
        true => known as u32,
        false => {
            // SAFETY: aligned, in the mapped header page, and changed atomically by everybody.
            let taken = unsafe { AtomicU32::from_ptr((place + TAKEN as usize) as *mut u32) };
            let number = taken.fetch_add(1, Ordering::Relaxed);
            TAKEN_BY.store(u64::from(me) << 32 | u64::from(number), Ordering::Relaxed);
            number
        }
    };
    let offset = (PAGE + u64::from(number) * SLOT) as usize;
    (number < SLOTS).then_some((place + offset) as *mut u8)
}

/// Fills a slot.
///
/// # Safety
/// The slot is mapped and nobody else writes it; the context is the kernel's.
unsafe fn write(slot: *mut u8, info: &Info, context: *const Context, handled: bool) {
    let mut head = Head::empty();
    // SAFETY: the caller's.
    head.registers = unsafe { (*context).registers }.map(|word| (word as u64).into());
    head.state = state::BEGUN.into();
    head.process = system::process().into();
    head.thread = system::thread().into();
    head.signal = (info.signal as u32).into();
    head.code = info.code.into();
    head.address = (info.address as u64).into();
    head.handled = u32::from(handled).into();
    head.count = (COUNT.fetch_add(1, Ordering::Relaxed) + 1).into();
    // SAFETY: the head is at the slot's start and smaller than what is there for it.
    unsafe { slot.cast::<Head>().write_unaligned(head) };
    let pointer = head.registers.get(register::RSP);
    let pointer = pointer.map_or(0, |word| word.get()) as usize;
    // SAFETY: there is so much room in a slot.
    let (start, length) = unsafe { copy_stack(pointer, slot.add(STACK as usize)) };
    head.stack_start = (start as u64).into();
    head.stack_length = (length as u32).into();
    // SAFETY: as above.
    head.modules = unsafe { copy_modules(slot.add(MODULES as usize).cast()) }.into();
    // SAFETY: as above.
    unsafe { slot.cast::<Head>().write_unaligned(head) };
    fence(Ordering::Release);
    // SAFETY: inside the head.
    unsafe {
        slot.add(STATE)
            .cast::<u32>()
            .write_volatile(state::WHOLE.to_le());
    }
}

/// Bytes below the stack pointer that belong to the function, too (System V ABI, AMD64 supplement, §3.2.2).
const RED_ZONE: usize = 128;
/// Pages above a stack pointer that are looked at for the stack, where it points behind its end.
const FARTHEST: usize = 4096;

/// Copies the stack from its pointer up; gives where what was copied starts, and how much it is.
///
/// # Safety
/// There is room for `MOST_STACK` bytes.
unsafe fn copy_stack(pointer: usize, to: *mut u8) -> (usize, usize) {
    let page = PAGE as usize;
    let mut start = pointer.wrapping_sub(RED_ZONE) & !7;
    let mut tried = 0;
    while !system::is_readable(start) {
        if tried == FARTHEST {
            return (pointer, 0);
        }
        tried += 1;
        start = (start & !(page - 1)).wrapping_add(page);
    }
    let mut length = 0;
    while length < MOST_STACK {
        let from = start.wrapping_add(length);
        let more = (page - from % page).min(MOST_STACK - length);
        if !system::is_readable(from) {
            break;
        }
        // SAFETY: these bytes lie in one page, which can be read; there is room for them.
        unsafe { core::ptr::copy_nonoverlapping(from as *const u8, to.add(length), more) };
        length += more;
    }
    (start, length)
}

/// Whether all of these bytes can be read.
fn can_read(start: usize, length: usize) -> bool {
    let page = PAGE as usize;
    let last = start.wrapping_add(length.max(8)).wrapping_sub(8);
    let mut at = start;
    while at < last {
        if !system::is_readable(at) {
            return false;
        }
        at = (at & !(page - 1)).wrapping_add(page);
    }
    system::is_readable(last)
}

/// Copies the list of modules; gives how many.
///
/// # Safety
/// There is room for `MOST_MODULES` of them.
unsafe fn copy_modules(to: *mut Loaded) -> u32 {
    /// Where the list is in `struct r_debug`.
    const LIST: usize = 8;
    let told = TOLD.load(Ordering::Relaxed);
    let mut next: *const Listed = null();
    if told != 0 && can_read(told, LIST + 8) {
        // SAFETY: it can be read.
        next = unsafe { ((told + LIST) as *const *const Listed).read_unaligned() };
    }
    let mut count = 0;
    while !next.is_null() && count < MOST_MODULES && can_read(next as usize, size_of::<Listed>()) {
        // SAFETY: it can be read, and is plain numbers.
        let listed = unsafe { next.read_unaligned() };
        next = listed.next;
        if let Some(loaded) = described(&listed) {
            // SAFETY: there is room for it.
            unsafe { to.add(count).write_unaligned(loaded) };
            count += 1;
        }
    }
    count as u32
}

/// Program headers of a module at most; others are not kept.
const MOST_HEADERS: usize = 64;

/// A module of the list.
fn described(listed: &Listed) -> Option<Loaded> {
    let [bias, headers, count] = [0, 1, 2].map(|at| {
        let word = PROGRAM.get(at);
        word.map_or(0, |word| word.load(Ordering::Relaxed))
    });
    let (headers, count) = match listed.bias == bias {
        true => (headers, count),
        false => headers_at(listed.bias)?,
    };
    let known = count <= MOST_HEADERS && can_read(headers, count * size_of::<Segment>());
    (known && headers % align_of::<Segment>() == 0).then_some(())?;
    // SAFETY: they can be read, are aligned and plain numbers.
    let segments = unsafe { slice::from_raw_parts(headers as *const Segment, count) };
    let module = Module::of(listed.bias, c"", segments);
    let (mut start, mut end) = (usize::MAX, 0);
    for segment in module.executable() {
        let first = listed.bias.wrapping_add(segment.address as usize);
        start = start.min(first);
        end = end.max(first.wrapping_add(segment.size as usize));
    }
    let mut loaded = Loaded::of(listed.bias as u64, start as u64, end as u64);
    let can_be_named = module.notes().all(|note| {
        let first = listed.bias.wrapping_add(note.address as usize);
        can_read(first, note.size as usize)
    });
    if let Some(id) = module.build_id().filter(|_| can_be_named) {
        loaded.set_id(id);
    }
    let known = maps::program().filter(|_| listed.bias == bias);
    set_path(&mut loaded, known.map_or(listed.path, CStr::as_ptr));
    Some(loaded)
}

/// Copies a name of the loader's, as far as it can be read and is kept.
fn set_path(loaded: &mut Loaded, path: *const c_char) {
    let start = path as usize;
    let mut length = 0;
    let mut bytes = [0; tomo_wire::crash::LONGEST_PATH];
    for byte in &mut bytes {
        let at = start.wrapping_add(length);
        let new_page = length == 0 || at % PAGE as usize == 0;
        if new_page && !system::is_readable(at & !7) {
            break;
        }
        // SAFETY: it can be read: its page was asked for.
        *byte = unsafe { (at as *const u8).read() };
        if *byte == 0 {
            break;
        }
        length += 1;
    }
    loaded.set_path(bytes.get(..length).unwrap_or(&[]));
}
