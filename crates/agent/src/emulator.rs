//! Whether this process runs in an emulator that would not see its code change.
//!
//! Emulators of programs (Valgrind, QEMU's where a program was built for another processor) translate code once. They notice
//! who writes where code was translated, but not who writes to the same page through another mapping: a probe that was hit
//! would be met for ever. Valgrind says who it is. Of the others it is tried out: a page is mapped twice, and what it holds
//! is changed between two calls. That takes some microseconds, so it is not done where a hypervisor that is known
//! says that it is there, which runs code as it is.

use core::arch::asm;
use core::arch::x86_64::__cpuid;
use core::sync::atomic::{AtomicU8, Ordering};

use tomo_wire::PAGE;

use crate::system::{self, Protection};

/// Whether it does, once it was asked; 0 before.
static KNOWN: AtomicU8 = AtomicU8::new(0);
const NO: u8 = 1;
const YES: u8 = 2;

/// Whether code that is changed through another mapping may go on as it was.
pub(crate) fn is_blind() -> bool {
    let known = match KNOWN.load(Ordering::Relaxed) {
        0 if is_valgrind() => YES,
        0 if is_virtual() || sees_changes() => NO,
        0 => YES,
        known => known,
    };
    KNOWN.store(known, Ordering::Relaxed);
    known == YES
}

/// Hypervisors, as they answer to `cpuid`.
const HYPERVISORS: [&[u8; 12]; 4] = [
    b"KVMKVMKVM\0\0\0",
    b"Microsoft Hv",
    b"VMwareVMware",
    b"XenVMMXenVMM",
];

/// Whether one of these is there. A processor without any answers with something else.
fn is_virtual() -> bool {
    const WHO: u32 = 0x4000_0000;
    let answer = __cpuid(WHO);
    let parts = [answer.ebx, answer.ecx, answer.edx].map(u32::to_le_bytes);
    HYPERVISORS.iter().any(|name| *name == parts.as_flattened())
}

/// Whether a function returns something else once it was changed through another mapping; or that could not be tried,
/// which is to say that no code can be mapped here.
fn sees_changes() -> bool {
    /// `mov eax, 1; ret`.
    const ONE: [u8; 6] = [0xb8, 1, 0, 0, 0, 0xc3];
    let tried = || {
        let file = system::memory_file(c"tomo:changes").ok()?;
        file.write_at(&ONE, 0).ok()?;
        let code = system::map(PAGE as usize, Protection::ReadExecute, &file, 0).ok()?;
        let data = system::map(PAGE as usize, Protection::ReadWrite, &file, 0).ok()?;
        // SAFETY: both are mapped just now, and nobody knows of them. What is called returns a number, before and after
        // another one was put into its second byte; both are unmapped when nobody is there any more.
        unsafe {
            let number = core::mem::transmute::<*mut u8, extern "C" fn() -> u32>(code);
            let before = number();
            data.add(1).write_volatile(2);
            // Intel asks for a serializing instruction before changed code runs (SDM vol. 3, §8.1.3).
            let _ = __cpuid(0);
            let after = number();
            system::unmap(code as usize, PAGE as usize);
            system::unmap(data as usize, PAGE as usize);
            Some((before, after))
        }
    };
    tried().is_none_or(|returned| returned == (1, 2))
}

/// Whether this is Valgrind. It tells whoever asks in the way that its interface defines (`valgrind.h`, "client requests"):
/// rotations that together change nothing, then an exchange of a register with itself. On a processor that does nothing.
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
