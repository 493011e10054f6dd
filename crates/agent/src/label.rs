//! Addresses of places in the agent's own assembly, found without a relocation.

/// The address of the label with this name, as a `usize`.
macro_rules! label {
    ($name:literal) => {{
        let address: usize;
        // SAFETY: computes an address.
        unsafe {
            core::arch::asm!(
                concat!("lea {}, [rip + ", $name, "]"),
                out(reg) address,
                options(nomem, nostack, preserves_flags),
            );
        }
        address
    }};
}

pub(crate) use label;
