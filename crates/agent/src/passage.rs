//! The way from woven code into the agent and back, on which nothing of the program changes.
//!
//! Woven code goes below the red zone (System V ABI, AMD64 supplement, §3.2.2), pushes what it has to say, and calls
//! a routine whose address the head of the slab names. The routine saves flags and all registers that a function may
//! change, asks the agent, restores everything and returns. No stack is used but the program's own: less of it
//! than the frame of a signal takes, which may come at any time.

use core::arch::naked_asm;

use tomo_wire::chains::SELF;

use crate::chains;

/// Bytes from where a routine finds the stack pointer to where it was in the program: the return address, one word,
/// the red zone.
const BELOW: usize = 8 + 8 + 128;

/// Defines a routine that calls a function with the `words` that were pushed (the last one first), the program's
/// stack pointer, and the slab.
macro_rules! routine {
    ($(#[$doc:meta])* $name:ident => $function:path, $second:literal, $below:expr) => {
        $(#[$doc])*
        // SAFETY: called by woven code alone, with that on the stack which it pushes; everything is as it was when
        // it returns. The direction flag is cleared and the stack aligned, as functions expect; the function
        // gets three numbers in the registers for arguments.
        #[unsafe(naked)]
        pub(crate) extern "C" fn $name() {
            naked_asm!(
                "pushfq",
                "cld",
                "push rax", "push rcx", "push rdx", "push rsi", "push rdi",
                "push r8", "push r9", "push r10", "push r11", "push rbx",
                "mov rbx, rsp",
                "sub rsp, 256",
                "and rsp, -16",
                "movups [rsp], xmm0", "movups [rsp + 16], xmm1",
                "movups [rsp + 32], xmm2", "movups [rsp + 48], xmm3",
                "movups [rsp + 64], xmm4", "movups [rsp + 80], xmm5",
                "movups [rsp + 96], xmm6", "movups [rsp + 112], xmm7",
                "movups [rsp + 128], xmm8", "movups [rsp + 144], xmm9",
                "movups [rsp + 160], xmm10", "movups [rsp + 176], xmm11",
                "movups [rsp + 192], xmm12", "movups [rsp + 208], xmm13",
                "movups [rsp + 224], xmm14", "movups [rsp + 240], xmm15",
                "mov rdi, [rbx + 96]",
                "lea rsi, [rbx + {below}]",
                "mov rdx, gs:[{own}]",
                $second,
                "call {function}",
                "movups xmm0, [rsp]", "movups xmm1, [rsp + 16]",
                "movups xmm2, [rsp + 32]", "movups xmm3, [rsp + 48]",
                "movups xmm4, [rsp + 64]", "movups xmm5, [rsp + 80]",
                "movups xmm6, [rsp + 96]", "movups xmm7, [rsp + 112]",
                "movups xmm8, [rsp + 128]", "movups xmm9, [rsp + 144]",
                "movups xmm10, [rsp + 160]", "movups xmm11, [rsp + 176]",
                "movups xmm12, [rsp + 192]", "movups xmm13, [rsp + 208]",
                "movups xmm14, [rsp + 224]", "movups xmm15, [rsp + 240]",
                "mov rsp, rbx",
                "pop rbx", "pop r11", "pop r10", "pop r9", "pop r8",
                "pop rdi", "pop rsi", "pop rdx", "pop rcx", "pop rax",
                "popfq",
                "ret",
                below = const 88 + $below,
                own = const SELF,
                function = sym $function,
            )
        }
    };
}

routine! {
    /// A function is entered; said is which, and how deep its calls are.
    enter => chains::enter, "mov rcx, [rbx + 104]", BELOW + 8
}
routine! {
    /// A function is left; nothing is said.
    leave => chains::leave, "", BELOW
}
routine! {
    /// Control arrives in a function by no return; said is in which.
    land => chains::land, "", BELOW
}
routine! {
    /// A function jumps to who knows where; said is from where, and where to.
    jump => chains::jump, "mov rcx, [rbx + 104]", BELOW + 8
}

/// Does nothing.
// SAFETY: returns.
#[unsafe(naked)]
pub(crate) extern "C" fn pass() {
    naked_asm!("ret")
}
