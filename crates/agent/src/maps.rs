//! The files that are mapped, as the system tells: a line for each mapping (Linux, `proc_pid_maps(5)`).
//!
//! Asked only where the loader names none: a program that was started by the loader's name has no path there, and
//! `/proc/self/exe` is the loader.

use core::cell::UnsafeCell;
use core::ffi::CStr;
use core::sync::atomic::{AtomicBool, Ordering};

use crate::system::{self, Access, File};
use crate::tables::tables;

tables! {
    /// The path of the program's file, which is there as long as the process.
    static PATH: Path = Path(UnsafeCell::new([0; LONGEST]));
}
/// Whether it is there.
static IS_KNOWN: AtomicBool = AtomicBool::new(false);
const LONGEST: usize = 4096;

struct Path(UnsafeCell<[u8; LONGEST]>);

// SAFETY: written once, by `find_program`, before the flag is set; read only after.
unsafe impl Sync for Path {}

/// Looks for the path of the program's file, which is mapped at `address`. Called while there is one thread, or with the loader's
/// lock held.
pub(crate) fn find_program(address: usize) {
    if IS_KNOWN.load(Ordering::Acquire) {
        return;
    }
    // SAFETY: nobody reads it before the flag is set, and there is one writer.
    let path = unsafe { &mut *PATH.0.get() };
    let is_there = |path: &[u8]| {
        let path = CStr::from_bytes_until_nul(path);
        path.is_ok_and(|path| system::status(path).is_ok())
    };
    if find(address, path).is_some() && is_there(path) {
        IS_KNOWN.store(true, Ordering::Release);
    }
}

/// The path of the program's file, if somebody has looked for it and it was there.
pub(crate) fn program() -> Option<&'static CStr> {
    IS_KNOWN.load(Ordering::Acquire).then_some(())?;
    // SAFETY: written before the flag was set, and never again.
    let path = unsafe { &*PATH.0.get() };
    CStr::from_bytes_until_nul(path).ok()
}

/// Bytes of what the system tells, one after the other.
struct Told {
    file: File,
    buffer: [u8; 512],
    at: usize,
    length: usize,
    offset: u64,
}

impl Iterator for Told {
    type Item = u8;

    fn next(&mut self) -> Option<u8> {
        if self.at == self.length {
            self.length = self.file.read_at(&mut self.buffer, self.offset).ok()?;
            self.offset += self.length as u64;
            self.at = 0;
        }
        let byte = self.buffer.get(..self.length)?.get(self.at)?;
        self.at += 1;
        Some(*byte)
    }
}

/// Puts the path of what is mapped at `address` into `path`, with a zero at its end.
fn find(address: usize, path: &mut [u8; LONGEST]) -> Option<()> {
    let file = system::open(c"/proc/self/maps", Access::Read, true).ok()?;
    let mut told = Told {
        file,
        buffer: [0; 512],
        at: 0,
        length: 0,
        offset: 0,
    };
    loop {
        let start = number(&mut told, b'-')?;
        let end = number(&mut told, b' ')?;
        let is_it = (start..end).contains(&address);
        // Rights, offset, device and inode have no slash.
        let mut rest = told.by_ref().take_while(|byte| *byte != b'\n');
        let from = rest.by_ref().find(|byte| *byte == b'/');
        let mut places = path.iter_mut();
        for byte in from.into_iter().chain(rest) {
            if is_it {
                *places.next()? = byte;
            }
        }
        if is_it {
            *places.next()? = 0;
            return from.map(|_| ());
        }
    }
}

/// The number that ends with this byte.
fn number(told: &mut Told, end: u8) -> Option<usize> {
    let mut number = 0;
    loop {
        let digit = match told.next()? {
            byte if byte == end => return Some(number),
            byte @ b'0'..=b'9' => byte - b'0',
            byte @ b'a'..=b'f' => byte - b'a' + 10,
            _ => return None,
        };
        number = number << 4 | usize::from(digit);
    }
}
