//! What a program's arguments point at. Of a wrong address the system tells the program; who read there before would end it. So the
//! system is asked of each page first, by a call that sandboxes allow. In one that the program has closed it is not asked for
//! what the program does not ask for; there the program is taken at its word.
//!
//! What the C library itself reads before the system does, as the masks of `sigprocmask`, needs none of that.

use core::slice;

use tomo_wire::PAGE;

use crate::{closed, emulator, system};

const BYTES: usize = PAGE as usize;

/// Whether there is memory at `address`, as far as can be asked.
fn can_be_read(address: usize) -> bool {
    match closed::is_closed() {
        true => address >= BYTES,
        // It would say on standard error that the usual call makes no sense.
        false if emulator::is_valgrind() => system::is_copied(address & !7),
        false => system::is_readable(address & !7),
    }
}

/// The words at `address`, if all of them can be read.
pub(crate) fn words<const COUNT: usize>(address: usize) -> Option<[usize; COUNT]> {
    let mut words = [0; COUNT];
    let mut reader = Reader::new();
    for (number, word) in words.iter_mut().enumerate() {
        *word = reader.word(address.wrapping_add(number * size_of::<usize>()))?;
    }
    Some(words)
}

/// Reads one thing after the other; of a page the system is asked once, until another one is read.
pub(crate) struct Reader {
    /// The number of that page.
    page: usize,
}

impl Reader {
    pub(crate) fn new() -> Self {
        Self { page: usize::MAX }
    }

    fn has(&mut self, address: usize) -> bool {
        let page = address / BYTES;
        if page != self.page && can_be_read(address) {
            self.page = page;
        }
        page == self.page
    }

    /// The word at `address`.
    pub(crate) fn word(&mut self, address: usize) -> Option<usize> {
        let last = address.wrapping_add(size_of::<usize>() - 1);
        let is_there = self.has(address) && self.has(last);
        // SAFETY: there is memory, or the program says so.
        is_there.then(|| unsafe { (address as *const usize).read_unaligned() })
    }

    /// The string that starts at `address`, without the zero byte at its end.
    ///
    /// # Safety
    /// It stays as it is.
    pub(crate) unsafe fn string<'s>(&mut self, address: usize) -> Option<&'s [u8]> {
        let mut end = address;
        loop {
            let is_new = end == address || end.is_multiple_of(BYTES);
            (!is_new || self.has(end)).then_some(())?;
            // SAFETY: there is memory, or the program says so.
            if unsafe { (end as *const u8).read() } == 0 {
                // SAFETY: as above, and the caller's.
                return Some(unsafe { slice::from_raw_parts(address as *const u8, end - address) });
            }
            end = end.wrapping_add(1);
        }
    }
}
