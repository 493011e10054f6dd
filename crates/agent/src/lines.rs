//! Text that other processes may be restoring, read line by line.

/// Bytes of a line; no probe covers bytes of two.
pub(crate) const LINE: usize = 64;

/// The line at `address`, which other processes may be restoring: as it was at one moment. They only ever
/// restore, so what is read twice alike was there in between.
///
/// # Safety
/// The address is a multiple of a line's length, and what is there is mapped.
pub(crate) unsafe fn steady(address: usize) -> [u8; LINE] {
    let read = || {
        let mut words = [0_u64; LINE / 8];
        for (number, word) in words.iter_mut().enumerate() {
            // SAFETY: the caller's; aligned as lines are.
            *word = unsafe { (address as *const u64).add(number).read_volatile() };
        }
        words
    };
    let mut before = read();
    loop {
        let now = read();
        if now == before {
            break;
        }
        before = now;
    }
    let mut bytes = [0; LINE];
    for (to, word) in bytes.chunks_exact_mut(8).zip(before) {
        to.copy_from_slice(&word.to_le_bytes());
    }
    bytes
}
