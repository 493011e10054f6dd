//! Contexts that a program switches by itself (`setcontext`, `swapcontext`). The C library sets their masks by system calls of its
//! own, so SIGTRAP is taken out of a context's mask before it goes there. Where it goes may be off the stack for handlers, while a
//! handler is to go on there.

use core::arch::naked_asm;
use core::mem::offset_of;

use crate::arguments::keeping_arguments;
use crate::frame::Context;
use crate::signals::{Real, WATCHING, fail};
use crate::stacks;
use crate::system::SIGTRAP_BIT;

pub(crate) static SET: Real = Real::new(c"setcontext");
pub(crate) static SWAP: Real = Real::new(c"swapcontext");

/// Defines one of the two; the context to which it goes is in this register.
macro_rules! goes_to {
    ($name:ident => $real:ident, $context:literal) => {
        /// Stands before the C library's function of this name, and goes on there with everything as it was, stack and return
        /// address included, since these are what is kept of who calls.
        // SAFETY: called as the C library's function. What may be an argument is saved around the call, at which the stack is aligned. A mask is
        // only written where SIGTRAP is in it, and the context is the caller's.
        #[unsafe(naked)]
        #[cfg_attr(feature = "carried", unsafe(no_mangle))]
        unsafe extern "C" fn $name() {
            naked_asm!(
                "cmp byte ptr [rip + {watching}], 0",
                "je 2f",
                keeping_arguments!("mov rdi, rsp", "call {leaving}"),
                concat!("test byte ptr [", $context, " + {mask}], {bit}"),
                "jz 2f",
                concat!("and byte ptr [", $context, " + {mask}], {others}"),
                "2: mov r11, [rip + {real} + {address}]",
                "test r11, r11",
                "jz {fail}",
                "jmp r11",
                watching = sym WATCHING,
                leaving = sym leaving,
                mask = const offset_of!(Context, mask),
                bit = const SIGTRAP_BIT,
                others = const !(SIGTRAP_BIT as u8),
                real = sym $real,
                address = const offset_of!(Real, address),
                fail = sym fail,
            )
        }
    };
}

/// The program goes elsewhere from this place of a stack.
extern "C" fn leaving(place: usize) {
    stacks::before_leaving(place);
}

goes_to! { setcontext => SET, "rdi" }
goes_to! { swapcontext => SWAP, "rsi" }
