//! What the kernel hands to a program at its start (`getauxval(3)`).

use std::fs;
use std::io;

/// Where it begins (`AT_ENTRY`).
pub(crate) const ENTRY: u64 = 9;
/// Where the loader that it names is, and 0 if it names none (`AT_BASE`).
pub(crate) const BASE: u64 = 7;
/// The kernel's own library in its memory (`AT_SYSINFO_EHDR`).
pub(crate) const LIBRARY: u64 = 33;

/// What a process was handed by this name.
///
/// # Errors
/// Where it was not, or that cannot be read.
pub(crate) fn value(process: i32, name: u64) -> io::Result<u64> {
    let vector = fs::read(format!("/proc/{process}/auxv"))?;
    let words = vector.as_chunks::<8>().0.iter();
    let mut words = words.map(|word| u64::from_le_bytes(*word));
    while let (Some(tag), Some(value)) = (words.next(), words.next()) {
        if tag == name {
            return Ok(value);
        }
    }
    let missing = format!("the kernel hands over nothing under number {name}");
    Err(io::Error::other(missing))
}
