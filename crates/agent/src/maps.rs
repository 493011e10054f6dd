//! The files that are mapped, as the system tells: a line for each mapping (Linux, `proc_pid_maps(5)`).
//!
//! Asked where the loader names none: a program that was started by the loader's name has no path there, and
//! `/proc/self/exe` is the loader. And where a file is no longer as it was, whether it is the one that is mapped; and where
//! there is room.

use core::cell::UnsafeCell;
use core::ffi::CStr;
use core::ops::Range;
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

impl Told {
    fn all() -> Option<Self> {
        let file = system::open(c"/proc/self/maps", Access::Read, true).ok()?;
        Some(Self {
            file,
            buffer: [0; 512],
            at: 0,
            length: 0,
            offset: 0,
        })
    }

    /// The addresses with which a line begins.
    fn mapping(&mut self) -> Option<Range<u64>> {
        let start = number(self, 16, b'-')?;
        let end = number(self, 16, b' ')?;
        Some(start..end)
    }
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

/// Device and inode of a file.
pub(crate) type Place = (u64, u64);

/// Of which file the memory at `address` is a copy.
pub(crate) fn file_at(address: usize) -> Option<Place> {
    find(address, &mut [])
}

/// Where the widest gap between mappings begins, of those `within` these addresses, if it has `length` bytes.
pub(crate) fn gap(within: Range<u64>, length: u64) -> Option<u64> {
    let mut told = Told::all()?;
    let (mut at, mut widest) = (within.start, None);
    let mut most = length;
    loop {
        let mapped = told.mapping();
        let end = mapped.as_ref().map_or(within.end, |mapped| mapped.start);
        let free = end.min(within.end).saturating_sub(at);
        if free >= most {
            most = free;
            widest = Some(at);
        }
        match mapped {
            Some(mapped) if mapped.start < within.end => at = at.max(mapped.end),
            _ => return widest,
        }
        told.by_ref().find(|byte| *byte == b'\n')?;
    }
}

/// Which file is mapped at `address`; puts its path into `path`, with a zero at its end, unless that has no room at all.
fn find(address: usize, path: &mut [u8]) -> Option<Place> {
    let mut told = Told::all()?;
    loop {
        let is_it = told.mapping()?.contains(&(address as u64));
        // The rights, which are no number.
        told.by_ref().find(|byte| *byte == b' ')?;
        let _offset = number(&mut told, 16, b' ')?;
        let (major, minor) = (number(&mut told, 16, b':')?, number(&mut told, 16, b' ')?);
        let inode = number(&mut told, 10, b' ')?;
        let mut rest = told.by_ref().take_while(|byte| *byte != b'\n');
        let from = rest.by_ref().find(|byte| *byte == b'/');
        if !is_it {
            rest.for_each(drop);
            continue;
        }
        from?;
        let name = from.into_iter().chain(rest).chain([0]);
        if !path.is_empty() {
            let mut places = path.iter_mut();
            for byte in name {
                *places.next()? = byte;
            }
        }
        return Some((device(major, minor), inode));
    }
}

/// A device as `stat` numbers it (Linux, `new_encode_dev`).
fn device(major: u64, minor: u64) -> u64 {
    minor & 0xff | major << 8 | (minor & !0xff) << 12
}

/// The number to this base that ends with this byte.
fn number(told: &mut Told, base: u64, end: u8) -> Option<u64> {
    let mut number = 0u64;
    loop {
        let digit = match told.next()? {
            byte if byte == end => return Some(number),
            byte @ b'0'..=b'9' => byte - b'0',
            byte @ b'a'..=b'f' if base == 16 => byte - b'a' + 10,
            _ => return None,
        };
        number = number.wrapping_mul(base).wrapping_add(digit.into());
    }
}
