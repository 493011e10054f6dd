//! Names that are put together from parts, without allocating.

use core::ffi::CStr;

/// A name that grows at its end; at most `N` bytes with the zero byte that ends it.
pub(crate) struct Name<const N: usize> {
    bytes: [u8; N],
    length: usize,
}

impl<const N: usize> Name<N> {
    pub(crate) fn new() -> Self {
        Self {
            bytes: [0; N],
            length: 0,
        }
    }

    /// Appends `part`; `None` where there is no room for it.
    pub(crate) fn push(&mut self, part: &[u8]) -> Option<()> {
        let end = self.length.checked_add(part.len())?;
        let room = self.bytes.get_mut(self.length..end)?;
        for (to, from) in room.iter_mut().zip(part) {
            *to = *from;
        }
        self.length = end;
        Some(())
    }

    /// Appends `number` in decimal digits.
    pub(crate) fn push_number(&mut self, number: u32) -> Option<()> {
        let mut divisor = 1_000_000_000;
        while divisor > 1 && number / divisor == 0 {
            divisor /= 10;
        }
        while divisor > 0 {
            self.push(&[b'0' + (number / divisor % 10) as u8])?;
            divisor /= 10;
        }
        Some(())
    }

    /// The name as the system takes it.
    pub(crate) fn ended(&mut self) -> Option<&CStr> {
        *self.bytes.get_mut(self.length)? = 0;
        CStr::from_bytes_with_nul(self.bytes.get(..=self.length)?).ok()
    }
}
