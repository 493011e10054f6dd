//! Whether this process runs in an emulator that would not see its code change.
//!
//! Valgrind translates code once and does not look again at what was mapped from a file, so a probe that
//! restores its text through another mapping would be met for ever. It tells whoever asks in the way that its
//! interface defines (`valgrind.h`, "client requests"): rotations that together change nothing, then an exchange of a register
//! with itself. On a processor that does nothing.

use core::arch::asm;

/// Whether this is Valgrind.
pub(crate) fn is_valgrind() -> bool {
    const RUNNING_ON_VALGRIND: u64 = 0x1001;
    let request = [RUNNING_ON_VALGRIND, 0, 0, 0, 0, 0];
    let answer: u64;
    // SAFETY: on a processor rdi is rotated by 128 bits, which is what it was, and rbx keeps its value. Valgrind
    // reads the request and puts its answer into rdx.
    unsafe {
        asm!(
            "rol rdi, 3",
            "rol rdi, 13",
            "rol rdi, 61",
            "rol rdi, 51",
            "xchg rbx, rbx",
            in("rax") request.as_ptr(),
            inout("rdx") 0_u64 => answer,
            options(nostack),
        );
    }
    answer != 0
}
