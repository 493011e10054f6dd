//! What the kernel puts on a thread's stack before it calls a handler (Linux, `arch/x86/kernel/signal_64.c`, `struct
//! rt_sigframe`, and `asm/sigcontext.h`). The C libraries' `ucontext_t` and `siginfo_t` begin as its own do.

use core::ffi::c_int;
use core::mem::offset_of;

use tomo_wire::crash::register;

use crate::system::Stack;

/// The frame; the stack pointer is at its start when the handler begins.
#[repr(C)]
pub(crate) struct Frame {
    /// Where the handler returns to.
    back: usize,
    context: Context,
    info: Info,
}

/// What was interrupted, and what goes on when the handler has returned.
#[repr(C)]
pub(crate) struct Context {
    flags: u64,
    link: usize,
    /// The stack for handlers that the program had set.
    pub(crate) stack: Stack,
    /// Those of [`register`].
    pub(crate) registers: [usize; register::COUNT],
    /// `rflags`.
    pub(crate) processor_flags: u64,
    segments: u64,
    error: u64,
    trap: u64,
    /// `oldmask`, of no use to anybody: the kernel does not look at it when it goes back. Handlers that copy registers copy it.
    pub(crate) unused: usize,
    fault: usize,
    /// Where wide registers are saved, if they are.
    pub(crate) wide: *mut u8,
    reserved: [u64; 8],
    /// The signals that were blocked.
    pub(crate) mask: u64,
}

const _: () = assert!(offset_of!(Context, registers) == register::IN_CONTEXT);

/// Why, as far as it matters.
#[repr(C)]
pub(crate) struct Info {
    pub(crate) signal: c_int,
    error: c_int,
    pub(crate) code: c_int,
    padding: c_int,
    pub(crate) address: usize,
}

impl Frame {
    /// Where these parts of the interrupted context are, in bytes.
    pub(crate) const STACK: usize = offset_of!(Self, context.stack);
    pub(crate) const REGISTERS: usize = offset_of!(Self, context.registers);
    pub(crate) const UNUSED: usize = offset_of!(Self, context.unused);
    /// Where the cause is, from the context on.
    pub(crate) const CAUSE: usize = offset_of!(Self, info) - offset_of!(Self, context);
}
