//! The modules that the dynamic loader has loaded.

use core::ffi::{CStr, c_char, c_int, c_void};
use core::mem::transmute;
use core::ops::Range;
use core::slice;

use tomo_wire::PAGE;

use crate::symbols;

/// The address of a symbol of the program, 0 where nobody defines it.
macro_rules! weak {
    ($name:literal) => {{
        let address: usize;
        // SAFETY: reads a slot that the loader filled before any of our code ran.
        unsafe {
            core::arch::asm!(
                concat!(".weak ", $name),
                concat!("mov {}, qword ptr [rip + ", $name, "@GOTPCREL]"),
                out(reg) address,
                options(nostack, pure, readonly, preserves_flags),
            );
        }
        address
    }};
}
pub(crate) use weak;

/// A program header of a 64-bit ELF file.
#[derive(Clone, Copy, Default)]
#[repr(C)]
pub(crate) struct Segment {
    kind: u32,
    flags: u32,
    offset: u64,
    pub(crate) address: u64,
    physical: u64,
    file_size: u64,
    pub(crate) size: u64,
    alignment: u64,
}

impl Segment {
    /// How many words a header has.
    pub(crate) const WORDS: usize = size_of::<Self>() / size_of::<usize>();

    /// The header that is these words.
    pub(crate) fn of(words: [usize; Self::WORDS]) -> Self {
        let [both, offset, address, physical, file_size, size, alignment] = words.map(|w| w as u64);
        Self {
            kind: both as u32,
            flags: (both >> 32) as u32,
            offset,
            address,
            physical,
            file_size,
            size,
            alignment,
        }
    }
}

const LOAD: u32 = 1;
const DYNAMIC: u32 = 2;
const NOTE: u32 = 4;
const EXECUTABLE: u32 = 1;

/// A loaded module.
#[derive(Clone, Copy)]
pub(crate) struct Module<'m> {
    /// From stated to loaded addresses.
    pub(crate) bias: usize,
    /// Its path; empty for the program itself.
    pub(crate) path: &'m CStr,
    segments: &'m [Segment],
}

impl<'m> Module<'m> {
    /// The module with these headers.
    pub(crate) fn of(bias: usize, path: &'m CStr, segments: &'m [Segment]) -> Self {
        Self {
            bias,
            path,
            segments,
        }
    }

    /// Its segments that hold code.
    pub(crate) fn executable(&self) -> impl Iterator<Item = &'m Segment> + use<'m> {
        let segments = self.segments.iter();
        segments.filter(|s| s.kind == LOAD && s.flags & EXECUTABLE != 0)
    }

    /// Its code, as far as that may be read.
    pub(crate) fn texts(&self) -> impl Iterator<Item = &'m [u8]> + use<'m, '_> {
        const READABLE: u32 = 4;
        let readable = |s: &&Segment| s.flags & READABLE != 0 && self.is_loaded(s);
        self.executable().filter(readable).map(|code| {
            let start = self.bias.wrapping_add(code.address as usize) as *const u8;
            // SAFETY: the loader has mapped the segment, to be read, for as long as the module is loaded, which is at least as long as
            // this borrow; nothing of it is armed yet, so nobody writes it.
            unsafe { slice::from_raw_parts(start, code.size as usize) }
        })
    }

    /// Where in its file the page is that is stated to be at `address`, as the loader has mapped it.
    pub(crate) fn offset_of(&self, address: u64) -> u64 {
        let pages = |segment: &&Segment| segment.address & !(PAGE - 1) == address;
        let segment = self.executable().find(pages);
        segment.map_or(u64::MAX, |segment| segment.offset & !(PAGE - 1))
    }

    /// Where its headers are in memory, and how many.
    pub(crate) fn headers(&self) -> (usize, usize) {
        (self.segments.as_ptr() as usize, self.segments.len())
    }

    /// Its parts with notes.
    pub(crate) fn notes(&self) -> impl Iterator<Item = &'m Segment> + use<'m> {
        self.segments.iter().filter(|s| s.kind == NOTE)
    }

    /// What the linker wrote to tell this build from others.
    pub(crate) fn build_id(&self) -> Option<&'m [u8]> {
        self.notes().find_map(|note| {
            self.is_loaded(note).then_some(())?;
            let start = self.bias.wrapping_add(note.address as usize) as *const u8;
            // SAFETY: the bytes lie in a segment that the loader has mapped for as long as the
            // module is loaded, which is at least as long as this borrow.
            let bytes = unsafe { slice::from_raw_parts(start, note.size as usize) };
            build_id_in(bytes)
        })
    }

    /// Whether `address` is in its pages. Segments need not begin with one: lld's do not.
    pub(crate) fn holds(&self, address: usize) -> bool {
        let stated = address.wrapping_sub(self.bias) as u64;
        let inside = |s: &Segment| {
            let first = s.address & !(PAGE - 1);
            s.kind == LOAD && stated.wrapping_sub(first) < s.size.saturating_add(s.address - first)
        };
        self.segments.iter().any(inside)
    }

    /// From its first page to behind its last byte, in memory.
    pub(crate) fn extent(&self) -> Option<Range<u64>> {
        let loaded = || self.segments.iter().filter(|s| s.kind == LOAD);
        let bias = self.bias as u64;
        let start = loaded().map(|s| s.address & !(PAGE - 1)).min()?;
        let end = loaded().map(|s| s.address.wrapping_add(s.size)).max()?;
        Some(bias.wrapping_add(start)..bias.wrapping_add(end))
    }

    /// Whether the `length` bytes from `address` are code of it.
    pub(crate) fn runs(&self, address: usize, length: usize) -> bool {
        let stated = address.wrapping_sub(self.bias) as u64;
        let inside = |s: &Segment| {
            let offset = stated.wrapping_sub(s.address);
            offset < s.size && s.size - offset >= length as u64
        };
        self.executable().any(inside)
    }

    /// What the loader is told about it: tags and their values.
    pub(crate) fn dynamic(&self) -> &'m [(u64, u64)] {
        let Some(table) = self.segments.iter().find(|s| s.kind == DYNAMIC) else {
            return &[];
        };
        let start = self.bias.wrapping_add(table.address as usize) as *const (u64, u64);
        let count = table.size as usize / size_of::<(u64, u64)>();
        if !start.is_aligned() || !self.is_loaded(table) {
            return &[];
        }
        // SAFETY: the bytes lie in a segment that is mapped as long as the module, are aligned, and
        // are pairs of words whatever they hold.
        unsafe { slice::from_raw_parts(start, count) }
    }

    /// The value of `tag`, unless the table ends before it.
    pub(crate) fn told(&self, tag: u64) -> Option<u64> {
        let table = self.dynamic().iter().take_while(|(tag, _)| *tag != 0);
        table.into_iter().find(|(t, _)| *t == tag).map(|(_, v)| *v)
    }

    /// The address that `tag` holds; some loaders have added the bias to it already.
    pub(crate) fn told_address(&self, tag: u64) -> Option<usize> {
        let value = self.told(tag)? as usize;
        Some(match value < self.bias {
            true => self.bias.wrapping_add(value),
            false => value,
        })
    }

    /// Whether memory holds all of what `part` states.
    fn is_loaded(&self, part: &Segment) -> bool {
        let end = part.address.checked_add(part.size);
        self.segments.iter().any(|s| {
            let last = s.address.checked_add(s.file_size);
            s.kind == LOAD && s.address <= part.address && end.is_some() && end <= last
        })
    }
}

/// The build id in a segment of notes.
fn build_id_in(mut notes: &[u8]) -> Option<&[u8]> {
    const BUILD_ID: u32 = 3;
    let word = |bytes: &[u8], at: usize| {
        let bytes = bytes.get(at..at.checked_add(4)?)?;
        Some(u32::from_le_bytes(bytes.try_into().ok()?))
    };
    loop {
        let name_size = word(notes, 0)? as usize;
        let size = word(notes, 4)? as usize;
        let kind = word(notes, 8)?;
        let name_end = 12_usize.checked_add(name_size)?;
        let start = name_end.checked_next_multiple_of(4)?;
        let end = start.checked_add(size)?;
        if kind == BUILD_ID && notes.get(12..name_end)? == b"GNU\0" {
            return notes.get(start..end);
        }
        notes = notes.get(end.checked_next_multiple_of(4)?..)?;
    }
}

/// `struct dl_phdr_info`, as far as all C libraries have it.
#[repr(C)]
struct Info {
    bias: usize,
    path: *const c_char,
    segments: *const Segment,
    count: u16,
}

// SAFETY: (of their callers) the callback gets what it is called with, and the description lives during
// the call.
type Callback = unsafe extern "C" fn(*const Info, usize, *mut c_void) -> c_int;
type Iterate = unsafe extern "C" fn(Callback, *mut c_void) -> c_int;

/// The C library's function that goes from one module to the next; 0 where there is none.
fn iterate() -> usize {
    static ITERATE: symbols::OfGlibc = symbols::OfGlibc::new(c"dl_iterate_phdr");
    ITERATE.address(weak!("dl_iterate_phdr"))
}

/// Calls `visit` for each loaded module, but for the C library only once that is left by who goes from one to the next: what is armed
/// while some of its code is under way would see the rest of that alone.
pub(crate) fn for_each_at_rest(mut visit: impl FnMut(Module<'_>)) {
    let mut last = None;
    for_each(|module| match module.holds(iterate()) {
        true => {
            last = Some((
                module.bias,
                module.path.as_ptr(),
                module.segments as *const _,
            ))
        }
        false => visit(module),
    });
    if let Some((bias, path, segments)) = last {
        // SAFETY: the loader keeps both for as long as the module is loaded, and nobody unloads the C library.
        let (path, segments) = unsafe { (CStr::from_ptr(path), &*segments) };
        visit(Module::of(bias, path, segments));
    }
}

/// Calls `visit` for each loaded module, the program first.
pub(crate) fn for_each<V: FnMut(Module<'_>)>(mut visit: V) {
    /// # Safety
    /// The description is valid, and `data` points at a `V` that nobody else uses.
    unsafe extern "C" fn one<V: FnMut(Module<'_>)>(
        info: *const Info,
        _: usize,
        data: *mut c_void,
    ) -> c_int {
        // SAFETY: the loader hands over a valid description that lives during this call, and the
        // pointer that was given to it below, which nobody else uses meanwhile.
        let (info, visit) = unsafe { (&*info, &mut *data.cast::<V>()) };
        if info.segments.is_null() {
            return 0;
        }
        let path = if info.path.is_null() {
            c""
        } else {
            // SAFETY: the loader's names end with a zero byte.
            unsafe { CStr::from_ptr(info.path) }
        };
        // SAFETY: the loader states where the headers are and how many.
        let segments = unsafe { slice::from_raw_parts(info.segments, info.count.into()) };
        visit(Module::of(info.bias, path, segments));
        0
    }
    let iterate = iterate();
    if iterate == 0 {
        return;
    }
    // SAFETY: the symbol of this name has this type in every C library.
    let iterate = unsafe { transmute::<usize, Iterate>(iterate) };
    let data = (&raw mut visit).cast();
    // SAFETY: `one` takes what it is given here.
    unsafe { iterate(one::<V>, data) };
}
