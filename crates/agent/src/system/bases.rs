//! Where `fs` and `gs` lead to.

use core::arch::asm;
use core::mem::transmute;
use core::sync::atomic::{AtomicBool, Ordering};

use super::call;
use crate::loader::weak;

const ARCHITECTURE: usize = 158;

/// Whether the processor's own instructions for the bases of segments may be used, of which the system says so to each program
/// (Linux, `Documentation/arch/x86/x86_64/fsgs.rst`).
static HAS_BASES: AtomicBool = AtomicBool::new(false);

/// Finds that out.
pub(crate) fn look_for_bases() {
    const HARDWARE_2: usize = 26;
    const BASES: usize = 1 << 1;
    let address = weak!("getauxval");
    if address != 0 {
        // SAFETY: the C library's function of this name has this type, and only looks into a list.
        let value = unsafe {
            transmute::<usize, unsafe extern "C" fn(usize) -> usize>(address)(HARDWARE_2)
        };
        HAS_BASES.store(value & BASES != 0, Ordering::Relaxed);
    }
}

/// Whether the `gs` base is read and set without a system call.
pub(crate) fn has_bases() -> bool {
    HAS_BASES.load(Ordering::Relaxed)
}

/// Lets the `gs` base of the calling thread be `address`, which is one of a program.
pub(crate) fn set_gs(address: usize) {
    const SET_GS: usize = 0x1001;
    if has_bases() {
        // SAFETY: nothing in memory changes. Whoever uses `gs` next means this address (see `slabs.rs`).
        unsafe { asm!("wrgsbase {}", in(reg) address, options(nostack, preserves_flags)) };
        return;
    }
    // SAFETY: nothing in memory changes. Whoever uses `gs` next means this address (see `slabs.rs`).
    let _ = unsafe { call(ARCHITECTURE, [SET_GS, address, 0, 0, 0, 0]) };
}

/// The `gs` base of the calling thread.
pub(crate) fn gs() -> usize {
    const GET_GS: usize = 0x1004;
    let mut address = 0_usize;
    if has_bases() {
        // SAFETY: reads a register.
        unsafe { asm!("rdgsbase {}", out(reg) address, options(nomem, nostack, preserves_flags)) };
        return address;
    }
    let to = (&raw mut address) as usize;
    // SAFETY: the kernel writes eight bytes, on this stack.
    let _ = unsafe { call(ARCHITECTURE, [GET_GS, to, 0, 0, 0, 0]) };
    address
}

/// Where the C library keeps what it knows of the calling thread: what `fs` leads to, whose first word is its own address (ELF
/// Handling For Thread-Local Storage, §3.4.2, variant II).
pub(crate) fn control_block() -> usize {
    let address: usize;
    // SAFETY: reads a word that every thread of a C library has; nothing runs before there is one.
    unsafe {
        asm!(
            "mov {}, fs:[0]",
            out(reg) address,
            options(nostack, readonly, preserves_flags)
        );
    }
    address
}
