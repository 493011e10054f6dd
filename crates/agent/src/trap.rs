//! The handler of SIGTRAP, and all that may run in it.
//!
//! Everything here is async-signal-safe: it reads what was published before, stores bytes, and makes
//! system calls. It may run on any thread, at any instruction, on any stack, several times at once.
//!
//! A trap is ours if the kernel raised it for an `int3` at a place of the trap table, whether or not that
//! byte is still an `int3`: another thread may have met the same one and restored it meanwhile.
//! Everything else goes where it would have gone without us.

use core::arch::naked_asm;
use core::ffi::c_int;
use core::mem::{offset_of, transmute};
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering, compiler_fence};

use tomo_wire::PAGE;
use tomo_wire::crash::register::{IN_CONTEXT, RIP, RSP};
use tomo_wire::image::Window;
use tomo_wire::record::Field;

use crate::armed::{self, Region};
use crate::forked;
use crate::frame::{Context, Info};
use crate::handlers;
use crate::label::label;
use crate::origins;
use crate::signals;
use crate::system::{self, Action, How, SIGTRAP, SIGTRAP_BIT};

/// The disposition that takes the default action.
pub(crate) const DEFAULT: usize = 0;
/// The disposition that ignores the signal.
pub(crate) const IGNORE: usize = 1;

pub(crate) const WITH_INFO: u64 = 4;
pub(crate) const ON_STACK: u64 = 0x0800_0000;
pub(crate) const NO_DEFER: u64 = 0x4000_0000;
pub(crate) const RESET: u64 = 0x8000_0000;
pub(crate) const RESTORER: u64 = 0x0400_0000;

/// Executes another program, which finds SIGTRAP ignored if this one ignores it. The kernel is told so as long as that takes: who
/// trapped meanwhile would end the program, so where there are other threads it is not told.
pub(crate) fn ignoring<R>(execute: impl FnOnce() -> R) -> R {
    let ignores = |wanted: &Wanted| wanted.handler.load(Ordering::Relaxed) == IGNORE;
    // Who this is is asked only where it matters.
    let may_ignore = ignores(&OWN) || GUEST.load(Ordering::Relaxed) != 0;
    let is_ignored = signals::is_watching() && may_ignore && ignores(wanted());
    if !is_ignored || !(forked::is_guest() || system::is_alone()) {
        return execute();
    }
    let ignored = Action {
        handler: IGNORE,
        flags: RESTORER,
        restorer: restorer(),
        mask: 0,
    };
    // SAFETY: to ignore a signal is no function.
    let _ = unsafe { system::set_action(SIGTRAP, &ignored) };
    let result = execute();
    stand();
    result
}

/// What a process wants done on SIGTRAP. The parts may be seen from two different calls of
/// `sigaction` if one happens just now on another thread, as little as that is defined anyway.
struct Wanted {
    handler: AtomicUsize,
    flags: AtomicU64,
    mask: AtomicU64,
}

impl Wanted {
    const fn new() -> Self {
        Self {
            handler: AtomicUsize::new(DEFAULT),
            flags: AtomicU64::new(0),
            mask: AtomicU64::new(0),
        }
    }
}

/// What the process wants whose memory this is.
static OWN: Wanted = Wanted::new();
/// What a child of `vfork` wants, which borrows that memory and has dispositions of its own; and which child.
static OF_GUEST: Wanted = Wanted::new();
static GUEST: AtomicU32 = AtomicU32::new(0);

/// What this process wants. A guest begins with what its parent wants.
fn wanted() -> &'static Wanted {
    if !forked::is_guest() {
        return &OWN;
    }
    let me = system::process();
    if GUEST.swap(me, Ordering::Relaxed) != me {
        Disposition::of(&OWN).set_to(&OF_GUEST);
    }
    &OF_GUEST
}

// Back from a handler. Debuggers and unwinders know a signal's frame by exactly these bytes.
core::arch::global_asm!(
    ".pushsection .text.tomo_agent_restore, \"ax\", @progbits",
    ".local tomo_agent_restore",
    "nop",
    "tomo_agent_restore:",
    ".byte 0x48, 0xc7, 0xc0, 0x0f, 0x00, 0x00, 0x00, 0x0f, 0x05",
    ".popsection",
);

pub(crate) fn restorer() -> usize {
    label!("tomo_agent_restore")
}

/// From now on traps may be met: SIGTRAP stays deliverable, and the handler is installed.
pub(crate) fn expect() {
    if signals::watch() {
        install();
    }
}

/// Whether the handler runs on the stack on which a trap comes, and not on those for handlers (`stacks.rs`).
static OFF_STACKS: AtomicBool = AtomicBool::new(false);

/// From now on the handler does so. Called once traps are expected.
pub(crate) fn leave_stacks() {
    if !OFF_STACKS.swap(true, Ordering::Relaxed) {
        stand();
    }
}

/// The program is about to close a sandbox, in which nobody is asked any more which stacks are whose.
pub(crate) fn before_closing() {
    if signals::is_watching() {
        leave_stacks();
    }
}

/// Installs the handler, and makes SIGTRAP deliverable to this thread. What was to be done so far is what the program wants:
/// whoever has started it may ignore the signal.
fn install() {
    if let Ok(before) = system::action_of(SIGTRAP) {
        let before = handlers::theirs(SIGTRAP, before);
        let wanted = Disposition {
            handler: before.handler,
            flags: before.flags & !RESTORER,
            mask: before.mask,
        };
        wanted.set();
    }
    stand();
    system::change_mask(How::Unblock, SIGTRAP_BIT);
}

/// This process began with the default action for all signals that its parent handled.
pub(crate) fn stand_again() {
    if !signals::is_watching() {
        return;
    }
    if wanted().handler.load(Ordering::Relaxed) != IGNORE {
        let default = Disposition {
            handler: DEFAULT,
            flags: 0,
            mask: 0,
        };
        default.set();
    }
    stand();
}

/// Has the kernel call the handler.
fn stand() {
    let on_stack = match OFF_STACKS.load(Ordering::Relaxed) {
        true => 0,
        false => ON_STACK,
    };
    let action = Action {
        handler: handle as *const () as usize,
        flags: WITH_INFO | on_stack | NO_DEFER | RESTORER,
        restorer: restorer(),
        mask: 0,
    };
    // SAFETY: `handle` takes what WITH_INFO hands over, and may run at any time.
    unsafe {
        let _ = system::set_action(SIGTRAP, &action);
    }
}

/// What the program's `sigaction` asks for SIGTRAP, and what it had asked before.
pub(crate) struct Disposition {
    pub(crate) handler: usize,
    pub(crate) flags: u64,
    pub(crate) mask: u64,
}

impl Disposition {
    pub(crate) fn get() -> Self {
        Self::of(wanted())
    }

    pub(crate) fn set(&self) {
        self.set_to(wanted());
    }

    fn of(wanted: &Wanted) -> Self {
        Self {
            handler: wanted.handler.load(Ordering::Relaxed),
            flags: wanted.flags.load(Ordering::Relaxed),
            mask: wanted.mask.load(Ordering::Relaxed),
        }
    }

    fn set_to(&self, wanted: &Wanted) {
        wanted.flags.store(self.flags, Ordering::Relaxed);
        wanted.mask.store(self.mask, Ordering::Relaxed);
        wanted.handler.store(self.handler, Ordering::Relaxed);
    }
}

/// The kernel's cause of a signal that an `int3` raised.
const BY_KERNEL: c_int = 0x80;

/// The instruction of one byte that traps.
const BREAKPOINT: u8 = 0xcc;

/// Called by the kernel.
///
/// # Safety
/// `info` and `context` are what the kernel hands to a handler that asked for them.
unsafe extern "C" fn handle(signal: c_int, info: *mut Info, context: *mut Context) {
    // SAFETY: the kernel hands over a full `ucontext_t`, on this stack and aligned.
    let (pointer, cause) = unsafe { (&mut (*context).registers[RIP], &*info) };
    let at = pointer.wrapping_sub(1);
    let ours = if cause.code == BY_KERNEL {
        find(at)
    } else {
        None
    };
    if let Some((region, window)) = ours {
        restore(region, window, at);
        region.counters.count(Field::Traps);
        *pointer = at;
        // SAFETY: the kernel's frame, of which nothing but the instruction pointer was changed.
        return unsafe { resume(context) };
    }
    if let Some(region) = armed::regions().next() {
        region.counters.count(Field::ForeignTraps);
    }
    pass_on(signal, info, context);
}

/// What says whether and how a thread can go on.
mod state {
    /// Of the stack for handlers: the kernel takes it away while a handler runs on it.
    pub(super) const AUTODISARM: i32 = 1 << 31;
    /// Of the processor: a task is nested. There is no going back by `iret` then.
    pub(super) const NESTED: u64 = 1 << 14;
    /// Where in the saved state of wide registers the kernel says that it was saved by `xsave`, and of which registers.
    pub(super) const MAGIC: usize = 464;
    pub(super) const SAVED: u32 = 0x4650_5853;
    pub(super) const FEATURES: usize = 472;
}

/// Lets the thread go on from `context` as the kernel would, but without a system call: a sandbox may allow a program
/// none from a signal's handler, and end it. Only registers are put back, for that is all that our handler's frame
/// changes. Comes back, with nothing done, where it would not be; then the kernel does it.
///
/// Sources: `struct sigcontext` and `struct _fpx_sw_bytes` of Linux's `asm/sigcontext.h`; Intel SDM vol. 2, `XRSTOR`, `IRET`.
///
/// # Safety
/// `context` is what the kernel handed to the handler that runs, which holds nothing that has to be given back.
unsafe fn resume(context: *mut Context) {
    let shadowed: u64;
    // SAFETY: the kernel's frame has these fields, and the state of wide registers, if there is one, is behind it. The
    // instruction says where a shadow stack is; processors without one take it for a `nop`.
    let (can, wide) = unsafe {
        core::arch::asm!(
            "xor eax, eax",
            ".byte 0xf3, 0x48, 0x0f, 0x1e, 0xc8",
            out("rax") shadowed,
            options(nomem, nostack),
        );
        let disarms = (*context).stack.flags & state::AUTODISARM;
        let nested = (*context).processor_flags & state::NESTED;
        (
            shadowed == 0 && disarms == 0 && nested == 0,
            (*context).wide,
        )
    };
    // SAFETY: as above.
    let is_saved = || unsafe { *wide.add(state::MAGIC).cast::<u32>() } == state::SAVED;
    if !can || wide.is_null() || !is_saved() {
        return;
    }
    // SAFETY: as above; the caller's for the rest.
    unsafe { go_on(wide, context, *wide.add(state::FEATURES).cast::<u64>()) };
}

/// Puts all registers back, the wide ones of these features from `wide`, and never returns.
///
/// What `iret` takes is put into the frame's first forty bytes, which say where the stack for handlers is and are for the
/// kernel alone; all of the frame lies above the stack pointer until then, so that signals leave it alone.
// SAFETY: called by `resume` alone, which has asked for all that it needs.
#[unsafe(naked)]
unsafe extern "C" fn go_on(wide: *mut u8, context: *mut Context, features: u64) {
    naked_asm!(
        "mov eax, edx",
        "shr rdx, 32",
        "xrstor64 [rdi]",
        "mov r11, [rsi + {pointer}]",
        "mov [rsi], r11",
        "mov r11d, cs",
        "mov [rsi + 8], r11",
        "mov r11, [rsi + {flags}]",
        "mov [rsi + 16], r11",
        "mov r11, [rsi + {stack}]",
        "mov [rsi + 24], r11",
        "mov r11d, ss",
        "mov [rsi + 32], r11",
        "mov rsp, rsi",
        "mov r8, [rsp + {registers} + 8 * 0]",
        "mov r9, [rsp + {registers} + 8 * 1]",
        "mov r10, [rsp + {registers} + 8 * 2]",
        "mov r11, [rsp + {registers} + 8 * 3]",
        "mov r12, [rsp + {registers} + 8 * 4]",
        "mov r13, [rsp + {registers} + 8 * 5]",
        "mov r14, [rsp + {registers} + 8 * 6]",
        "mov r15, [rsp + {registers} + 8 * 7]",
        "mov rdi, [rsp + {registers} + 8 * 8]",
        "mov rsi, [rsp + {registers} + 8 * 9]",
        "mov rbp, [rsp + {registers} + 8 * 10]",
        "mov rbx, [rsp + {registers} + 8 * 11]",
        "mov rdx, [rsp + {registers} + 8 * 12]",
        "mov rax, [rsp + {registers} + 8 * 13]",
        "mov rcx, [rsp + {registers} + 8 * 14]",
        "iretq",
        registers = const IN_CONTEXT,
        pointer = const IN_CONTEXT + 8 * RIP,
        stack = const IN_CONTEXT + 8 * RSP,
        flags = const offset_of!(Context, processor_flags),
    )
}

/// The window that starts at `address`.
fn find(address: usize) -> Option<(&'static Region, &'static Window)> {
    let inside = |r: &&Region| address.wrapping_sub(r.start) < r.length;
    let region = armed::regions().find(inside)?;
    let offset = u32::try_from(address.wrapping_sub(region.origin)).ok()?;
    let found = region
        .windows
        .binary_search_by_key(&offset, |window| window.offset.get());
    let window = region.windows.get(found.ok()?)?;
    let within = address.wrapping_sub(region.start);
    let fits = usize::from(window.length) <= region.length.wrapping_sub(within);
    let is_sound = fits && window.probe.get() < region.probes;
    // Where the program has a breakpoint of its own no probe is put; if one were, to restore it and
    // go there again would never end.
    (is_sound && window.original[0] != BREAKPOINT).then_some((region, window))
}

/// Marks the probe and puts its bytes back, the first one last: until then whoever comes traps, and
/// does the same. Doing it twice, or finishing what another thread began, changes nothing: these are plain stores of bytes, and
/// all threads store the same.
fn restore(region: &Region, window: &Window, address: usize) {
    let within = address.wrapping_sub(region.start);
    let length = usize::from(window.length).clamp(1, window.original.len());
    // SAFETY: who found the window asked whether its probe has a mark, and whether all of it lies in the region, so that these
    // bytes are its alias'; marks and alias are mapped as long as the text.
    unsafe {
        region
            .marks
            .add(window.probe.get() as usize)
            .write_volatile(1);
        let alias = region.alias.add(within);
        if region.read_first {
            read_around(region, within);
        }
        for (at, byte) in window.original.iter().enumerate().take(length).skip(1) {
            alias.add(at).write_volatile(*byte);
        }
        compiler_fence(Ordering::SeqCst);
        alias.write_volatile(window.original[0]);
    }
}

/// Reads a byte of each page around this one, unless that was done before.
///
/// A page that is stored to for the first time costs a fault. Of a file in memory one that is *read* for the first time costs
/// one for the sixteen around it, which all may be stored to from then on: by the trampolines, too, which do so far
/// more often than anything traps.
fn read_around(region: &Region, within: usize) {
    /// Pages are mapped in groups of so many bytes, which start at a multiple of that.
    const GROUP: usize = 1 << 16;
    const BITS: usize = 1 << 12;
    /// By group: whether it was read, or another one with which it shares the bit.
    static READ: [AtomicU64; BITS / 64] = [const { AtomicU64::new(0) }; BITS / 64];
    let alias = region.alias as usize;
    let start = (alias + within) & !(GROUP - 1);
    let bit = start / GROUP % BITS;
    let was = READ[bit / 64].fetch_or(1 << (bit % 64), Ordering::Relaxed);
    if was >> (bit % 64) & 1 != 0 {
        return;
    }
    let end = (start + GROUP).min(alias + region.length);
    for page in (start.max(alias)..end).step_by(PAGE as usize) {
        // SAFETY: inside the alias, which is mapped as long as the text.
        unsafe { (page as *const u8).read_volatile() };
    }
}

type WithInfo = unsafe extern "C" fn(c_int, *mut Info, *mut Context);

/// Does what the program wants done on a SIGTRAP that is none of ours.
fn pass_on(signal: c_int, info: *mut Info, context: *mut Context) {
    // Nobody is asked who this is as long as there was no guest.
    let place = match GUEST.load(Ordering::Relaxed) {
        0 => &OWN,
        _ => wanted(),
    };
    let wanted = Disposition::of(place);
    // SAFETY: the kernel hands over a full `siginfo_t`.
    let forced = unsafe { (*info).code } > 0;
    match wanted.handler {
        IGNORE if !forced => {}
        // SAFETY: the kernel's, as the caller was given them.
        DEFAULT | IGNORE => unsafe {
            origins::show(info, context);
            end(SIGTRAP, info, context);
        },
        handler => {
            if wanted.flags & RESET != 0 {
                place.handler.store(DEFAULT, Ordering::Relaxed);
            }
            let before = system::change_mask(How::Block, wanted.mask & !SIGTRAP_BIT);
            // SAFETY: the program gave this handler for this signal. One that takes fewer
            // arguments does not look at the others. The context is the kernel's, and gone back to behind this alone.
            unsafe {
                origins::show(info, context);
                transmute::<usize, WithInfo>(handler)(signal, info, context);
                origins::forget(context);
            }
            system::change_mask(How::Set, before);
        }
    }
}

/// Takes the default action, once the program's own registers are back: this very signal once more.
///
/// # Safety
/// `info` and `context` are what the kernel hands to a handler, and were shown the program's own place.
pub(crate) unsafe fn end(signal: c_int, info: *const Info, context: *mut Context) {
    let default = Action {
        handler: DEFAULT,
        flags: RESTORER,
        restorer: restorer(),
        mask: 0,
    };
    system::change_mask(How::Block, 1 << (signal - 1));
    // SAFETY: the default action is no function. Where the signal cannot be sent, what got it is done once more; that it ends the program
    // then hangs on the action, which a sandbox may not let be changed.
    unsafe {
        if system::set_action(signal, &default).is_err() {
            system::exit(128 + signal);
        }
        if !system::send_again(signal, info.cast()) {
            origins::forget(context);
        }
    }
}
