//! What a handler is told of where its signal came: the program's own place, though that is executed elsewhere.
//!
//! Where probes stay, instructions of a module are executed in trampolines, in no file that anybody knows: a handler that asks
//! where the thread was could neither name nor unwind nor throw from there. So before the program's handler is called, the
//! interrupted context is given the place in the module and the stack pointer that belongs to it (`tomo_wire::moved`). Where
//! the thread was in truth is kept in a word among its registers that is of no use there; when the handler has
//! returned, it goes on there. A handler that lets it go on elsewhere has its way, at the copy of that place if it has one.
//!
//! Between handler and kernel stands a few instructions' way back, to which the handler returns as it would to the C library's
//! (`sa_restorer`), so that it finds the stack as ever. Unwinders know what lies above by its table of unwinding,
//! as they do that of glibc.

use core::ffi::c_int;
use core::sync::atomic::{AtomicBool, Ordering};

use tomo_wire::crash::register::{RIP, RSP};
use tomo_wire::moved;

use crate::armed::{self, Counters, Region};
use crate::cuts;
use crate::frame::{Context, Info};
use crate::handlers;
use crate::label::label;

/// Whether something is executed elsewhere, now or later.
static TOLD: AtomicBool = AtomicBool::new(false);

/// Signals of the system whose cause names an instruction: SIGILL, SIGTRAP, SIGFPE, SIGSYS (`sigaction(2)`).
const NAMING: [c_int; 4] = [4, 5, 8, 31];

/// A thread's place: its instruction, and how much lower than the program's its stack pointer is.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Place {
    pointer: usize,
    lower: usize,
    is_own: bool,
}

/// From now on handlers are told.
pub(crate) fn tell() {
    if !TOLD.swap(true, Ordering::Relaxed) {
        handlers::stand_before_all();
    }
}

/// Whether handlers are told.
pub(crate) fn are_told() -> bool {
    TOLD.load(Ordering::Relaxed)
}

// The way back from a handler. As in glibc a byte before it belongs to it, where unwinders look; they are told that a signal's context
// lies at the stack pointer (DWARF 5, §6.4.2; System V ABI, AMD64 supplement, figure 3.36): the frame's address is the interrupted
// stack pointer, and so many bytes into the context each register.
core::arch::global_asm!(
    ".pushsection .text.tomo_agent_way_back, \"ax\", @progbits",
    ".local tomo_agent_way_back",
    ".cfi_startproc simple",
    ".cfi_signal_frame",
    ".cfi_escape 0x0f, 4, 0x77, 0xa0, 0x01, 0x06",
    ".cfi_escape 0x10, 8, 2, 0x77, 0x28",
    ".cfi_escape 0x10, 9, 2, 0x77, 0x30",
    ".cfi_escape 0x10, 10, 2, 0x77, 0x38",
    ".cfi_escape 0x10, 11, 3, 0x77, 0xc0, 0x00",
    ".cfi_escape 0x10, 12, 3, 0x77, 0xc8, 0x00",
    ".cfi_escape 0x10, 13, 3, 0x77, 0xd0, 0x00",
    ".cfi_escape 0x10, 14, 3, 0x77, 0xd8, 0x00",
    ".cfi_escape 0x10, 15, 3, 0x77, 0xe0, 0x00",
    ".cfi_escape 0x10, 5, 3, 0x77, 0xe8, 0x00",
    ".cfi_escape 0x10, 4, 3, 0x77, 0xf0, 0x00",
    ".cfi_escape 0x10, 6, 3, 0x77, 0xf8, 0x00",
    ".cfi_escape 0x10, 3, 3, 0x77, 0x80, 0x01",
    ".cfi_escape 0x10, 1, 3, 0x77, 0x88, 0x01",
    ".cfi_escape 0x10, 0, 3, 0x77, 0x90, 0x01",
    ".cfi_escape 0x10, 2, 3, 0x77, 0x98, 0x01",
    ".cfi_escape 0x10, 7, 3, 0x77, 0xa0, 0x01",
    ".cfi_escape 0x10, 16, 3, 0x77, 0xa8, 0x01",
    "nop",
    "tomo_agent_way_back:",
    "mov rdi, rsp",
    "call {go_back}",
    "mov eax, 15",
    "syscall",
    ".cfi_endproc",
    ".popsection",
    go_back = sym go_back,
);

/// Where handlers return to that are told.
pub(crate) fn way_back() -> usize {
    label!("tomo_agent_way_back")
}

/// A handler begins: `context` is given the program's own place, and the handler returns by [`way_back`], whatever the kernel was told.
///
/// # Safety
/// `info` and `context` are what the kernel hands to it, and `back` is where its address of return is. The kernel puts that in front of the
/// context: who calls the handler otherwise, as somebody who has handled the signal first, returns otherwise.
pub(crate) unsafe fn begin(info: *mut Info, context: *mut Context, back: *mut usize) {
    if !are_told() || back.wrapping_add(1).cast() != context {
        return;
    }
    // SAFETY: the caller's.
    unsafe {
        back.write(way_back());
        cuts::take_out(info, context);
        show(info, context);
    }
}

/// Where a thread is whose context this is; nothing where nothing of the module is executed elsewhere.
///
/// # Safety
/// It is a whole context.
pub(crate) unsafe fn place_of(context: *const Context) -> Option<Within> {
    // SAFETY: the caller's.
    let pointer = unsafe { (*context).registers[RIP] };
    let is_entrance = entered_from(pointer).is_some();
    let origin = origin_of(pointer);
    let is_own = origin.is_none_or(|origin| origin.is_own) && !is_entrance;
    let place = origin.map_or(pointer, |origin| origin.pointer);
    let region = companions_of(text_of(place)?)?;
    let offset = u32::try_from(place.wrapping_sub(region.origin)).ok()?;
    (!region.moved.is_empty()).then_some(Within {
        counters: region.counters,
        offset,
        is_entrance,
        is_own,
    })
}

/// Where in a module a thread is.
pub(crate) struct Within {
    pub(crate) counters: Counters,
    /// The instruction in front of which it is, from the first region of the module on.
    pub(crate) offset: u32,
    /// Whether it is about to pass what is done where code is come to.
    pub(crate) is_entrance: bool,
    /// Whether that instruction is the next that it executes, and nothing that was added.
    pub(crate) is_own: bool,
}

/// Gives `context` the program's own place, and the cause too where it names the instruction.
///
/// # Safety
/// Both are the kernel's, and [`forget`] is called with the context before it is gone back to.
pub(crate) unsafe fn show(info: *mut Info, context: *mut Context) {
    // SAFETY: the caller's.
    let (info, context) = unsafe { (&mut *info, &mut *context) };
    let truth = context.registers[RIP];
    context.unused = truth;
    let Some(origin) = origin_of(truth).filter(|origin| origin.pointer != truth) else {
        return;
    };
    context.registers[RIP] = origin.pointer;
    context.registers[RSP] = context.registers[RSP].wrapping_add(origin.lower);
    if NAMING.contains(&info.signal) && info.code > 0 && info.address == truth {
        info.address = origin.pointer;
    }
}

/// The handler has returned.
///
/// # Safety
/// The context is that of the kernel's frame of a signal, which is gone back to.
unsafe extern "C" fn go_back(context: *mut Context) {
    // SAFETY: the caller's.
    unsafe {
        forget(context);
        cuts::bring_back(context);
    }
}

/// Gives `context` the place where its thread was in truth, or is to go on.
///
/// # Safety
/// It is a whole context, and nobody else's.
pub(crate) unsafe fn forget(context: *mut Context) {
    // SAFETY: the caller's.
    let context = unsafe { &mut *context };
    let (pointer, link) = (context.registers[RIP], context.unused);
    if let Some(lower) = lower_at(pointer, link) {
        context.registers[RSP] = context.registers[RSP].wrapping_sub(lower);
    }
    context.registers[RIP] = truly(pointer, link);
}

/// How much lower its stack pointer is, of a thread that was at `link`, if a handler has left it where it was told that it is.
fn lower_at(pointer: usize, link: usize) -> Option<usize> {
    let origin = origin_of(link).filter(|origin| origin.pointer == pointer && link != pointer)?;
    Some(origin.lower)
}

/// Where a thread goes on whose context has these two words: where it was, or where a handler sends it, at the copy of that place if it
/// has one.
pub(crate) fn truly(pointer: usize, link: usize) -> usize {
    match pointer == link || lower_at(pointer, link).is_some() {
        true => link,
        false => copy_of(pointer).unwrap_or(pointer),
    }
}

/// The program's own place, if something else is executed in its stead at `place`: in the trampolines, or in the text, where a jump
/// leads to them from filling.
fn origin_of(place: usize) -> Option<Place> {
    let there = entered_from(place).unwrap_or(place);
    let inside =
        |region: &&Region| there.wrapping_sub(region.companions) < region.companions_length;
    let region = armed::regions().find(inside)?;
    let offset = u32::try_from(there.wrapping_sub(region.companions)).ok()?;
    let origin = moved::origin(region.moved, offset)?;
    Some(Place {
        pointer: region.origin.wrapping_add(origin.from as usize),
        lower: origin.lower as usize,
        is_own: origin.is_own,
    })
}

/// Where the program's `place` is executed, if that is elsewhere, and the text does not lead there itself.
fn copy_of(place: usize) -> Option<usize> {
    const SHORT: u8 = 0xeb;
    let text = text_of(place)?;
    let near = byte(text, place.wrapping_add(1))?.cast_signed();
    let relay = place.wrapping_add(2).wrapping_add_signed(near.into());
    let by_relay = byte(text, place) == Some(SHORT) && entered_from(relay).is_some();
    if by_relay || entered_from(place).is_some() {
        return None;
    }
    let region = companions_of(text)?;
    let from = u32::try_from(place.wrapping_sub(region.origin)).ok()?;
    let offset = moved::copy_of(region.moved, from)?;
    Some(region.companions.wrapping_add(offset as usize))
}

/// Where a jump in the text at `place` leads, if that is into the trampolines of this region's module.
fn entered_from(place: usize) -> Option<usize> {
    const JUMP: u8 = 0xe9;
    let text = text_of(place)?;
    let region = companions_of(text).filter(|region| !region.moved.is_empty())?;
    let mut field = [0; 4];
    for (to, at) in field.iter_mut().zip(1..) {
        *to = byte(text, place.wrapping_add(at))?;
    }
    let way = i32::from_le_bytes(field) as isize;
    let to = place.wrapping_add(1 + field.len()).wrapping_add_signed(way);
    let inside = to.wrapping_sub(region.companions) < region.companions_length;
    (byte(text, place) == Some(JUMP) && inside).then_some(to)
}

/// The region with this place in its text.
fn text_of(place: usize) -> Option<&'static Region> {
    armed::regions().find(|region| place.wrapping_sub(region.start) < region.length)
}

/// The region of the same module that has its trampolines.
fn companions_of(text: &Region) -> Option<&'static Region> {
    let mut regions = armed::regions();
    regions.find(|one| one.origin == text.origin && one.companions_length > 0)
}

fn byte(text: &Region, at: usize) -> Option<u8> {
    let inside = at.wrapping_sub(text.start) < text.length;
    // SAFETY: inside the module's text, which is mapped.
    inside.then(|| unsafe { (at as *const u8).read_volatile() })
}
