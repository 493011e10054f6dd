//! What the system tells of a process, in files of a few lines (Linux, `proc(5)`).

use core::ffi::CStr;

use crate::system::{self, Access};

/// The first `N` bytes of the file at `path`, or all that there are.
pub(crate) fn read<'b, const N: usize>(path: &CStr, buffer: &'b mut [u8; N]) -> Option<&'b [u8]> {
    let file = system::open(path, Access::Read, true).ok()?;
    let length = file.read_at(buffer, 0).ok()?;
    buffer.get(..length)
}

/// The number that these decimal digits are.
pub(crate) fn number(digits: &[u8]) -> Option<u64> {
    digits.iter().try_fold(0, |number: u64, digit| {
        let digit = digit.checked_sub(b'0').filter(|digit| *digit < 10)?;
        number.checked_mul(10)?.checked_add(digit.into())
    })
}
