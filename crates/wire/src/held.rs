//! How a trampoline ends that restores a window behind a hold: the last byte to be restored is stored, and a jump goes back to the
//! window. A thread that was interrupted in front of these two instructions has restored all but that byte.

/// Bytes of the two: `mov byte ptr [rip + …], …`, and `jmp` with 32 bits.
pub const END: usize = 7 + 5;

/// How far from the end of these bytes the window starts, if they are such an end. Those of other trampolines may look the same.
#[must_use]
pub fn window_from(end: &[u8; END]) -> Option<i32> {
    let [0xc6, 0x05, _, _, _, _, _, 0xe9, a, b, c, d] = *end else {
        return None;
    };
    Some(i32::from_le_bytes([a, b, c, d]))
}
