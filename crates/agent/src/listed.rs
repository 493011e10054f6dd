//! The loader's list of modules as debuggers read it (System V ABI, "Dynamic Linking"; `struct link_map` of
//! `link.h`), for who may not ask the loader because it holds its lock.
//!
//! The list says where modules are, not how large. So their headers are read from memory, where loaders put them,
//! by way of the kernel: where something else is, or nothing, it says so.

use core::ffi::{CStr, c_char};

use crate::loader::{Module, Segment};
use crate::system;

/// `struct link_map`, as far as all C libraries have it.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct Listed {
    pub(crate) bias: usize,
    pub(crate) path: *const c_char,
    dynamic: usize,
    pub(crate) next: *const Self,
}

/// Program headers of a module at most; those of others are not read.
const MOST: usize = 24;
/// Bytes of an ELF header's start.
const MAGIC: u32 = u32::from_le_bytes(*b"\x7fELF");

/// Whether the kernel lets this process read its own memory in this way.
pub(crate) fn is_readable() -> bool {
    let word = 0_usize;
    system::peek((&raw const word) as usize, &mut [0]).is_ok()
}

/// Calls `visit` for each module of the list that starts at `first` and has its headers in memory.
///
/// # Safety
/// The list is the loader's, and does not change meanwhile.
pub(crate) unsafe fn for_each(first: usize, mut visit: impl FnMut(Module<'_>)) {
    let mut next = first as *const Listed;
    while !next.is_null() && next.is_aligned() {
        // SAFETY: the caller's: an element of the loader's list.
        let listed = unsafe { &*next };
        next = listed.next;
        if listed.path.is_null() {
            continue;
        }
        // SAFETY: the loader's names end with a zero byte.
        let path = unsafe { CStr::from_ptr(listed.path) };
        let mut segments = [Segment::default(); MOST];
        if let Some(count) = read(listed.bias, &mut segments) {
            let segments = segments.get(..count).unwrap_or(&[]);
            visit(Module::of(listed.bias, path, segments));
        }
    }
}

/// Reads the program headers of the module whose file starts at `start` in memory; gives how many.
fn read(start: usize, segments: &mut [Segment; MOST]) -> Option<usize> {
    let (mut at, count) = headers_at(start)?;
    (count <= MOST).then_some(())?;
    for segment in segments.iter_mut().take(count) {
        let mut words = [0; Segment::WORDS];
        (system::peek(at, &mut words).ok()? == words.len()).then_some(())?;
        *segment = Segment::of(words);
        at = at.wrapping_add(size_of::<Segment>());
    }
    Some(count)
}

/// Where the program headers are of the module whose file starts at `start` in memory, and how many.
pub(crate) fn headers_at(start: usize) -> Option<(usize, usize)> {
    let mut header = [0; 8];
    (system::peek(start, &mut header).ok()? == header.len()).then_some(())?;
    let size = header[6] >> 48;
    let known = header[0] as u32 == MAGIC && size == size_of::<Segment>();
    known.then_some((start.wrapping_add(header[4]), header[7] & 0xffff))
}
