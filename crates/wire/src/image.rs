//! The armed image: a plan made into machine code for one module.
//!
//! One file, position independent. Every part but the last starts at a page:
//!
//! | part | mapped | what |
//! |---|---|---|
//! | header | read | [`Image`] |
//! | trap table | read | one [`Window`] for each place at which an `int3` may be met, by offset |
//! | trampolines | read, execute | one for each detour |
//! | text of each region | read, execute over the program's text; read, write as its *alias* | patched |
//! | origins | read, where code is executed elsewhere | [from where in the module](crate::moved) |
//! | relocations | read, by who puts the trampolines elsewhere | [which displacements change](crate::relocations) |
//!
//! In the process, with *origin* the loaded address of the first region's first byte:
//!
//! ```text
//! origin + distance: [ trampolines | marks (of the record) | alias of region 0 | alias of region 1 … ]
//! ```
//!
//! So everything a trampoline needs lies at a fixed distance from it, and one file serves any load
//! address. The marks are a byte for each probe, and belong to the [record](crate::record).

use core::mem::size_of;

use zerocopy::little_endian::{I64, U32, U64};
use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes, KnownLayout};

use crate::door::{Header, Preamble, Refusal, part};
use crate::moved::Run;
use crate::{FileStamp, ModuleId, PAGE, pages};

/// Executable segments of a module at most.
pub const MOST_REGIONS: usize = 4;
/// Farthest that any two bytes of module, trampolines, marks and aliases may lie apart: what a
/// 32-bit displacement reaches, less a page of caution.
pub const REACH: u64 = (1 << 31) - PAGE;

/// An executable segment, in whole pages.
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct Region {
    /// Where it starts, as the module states it. A multiple of the page size.
    pub address: U64,
    /// Its bytes. A multiple of the page size.
    pub length: U64,
    /// Where its patched text is in the image file. A multiple of the page size.
    pub offset: U64,
    /// Checksum of the text as the module has it.
    pub original: U64,
}

/// The header of an image file.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct Image {
    preamble: Preamble,
    /// The module it arms.
    pub module: ModuleId,
    /// The module's file when the image was made.
    pub stamp: FileStamp,
    /// Names the plan: its checksum.
    pub plan: U64,
    /// Bytes of the image file.
    pub length: U64,
    /// Probes, and so marks.
    pub probes: U32,
    /// Where in the slab of a thread its counters end, in bytes; 0 if it has none.
    pub slab_end: U32,
    /// Whether its counters lie in front of a shadow of the stacks (`crate::paths`): 1 or 0.
    pub shadowed: U32,
    /// Whether it has probes that remove themselves: 1 or 0.
    pub vanishing: U32,
    /// Executable segments that are used of `regions`.
    pub region_count: U32,
    /// The module's executable segments, by address.
    pub regions: [Region; MOST_REGIONS],
    /// From the first region's start to the trampolines'. A multiple of the page size.
    pub distance: I64,
    /// Where the trampolines are in the file. A multiple of the page size.
    pub trampolines: U64,
    /// Bytes of trampolines. A multiple of the page size.
    pub trampolines_length: U64,
    /// Where the trap table is in the file.
    pub windows: U64,
    /// How many windows it has.
    pub window_count: U64,
    /// Checksum of the trap table.
    pub windows_checksum: U64,
    /// Where the table is in the file that says where what is executed in the trampolines comes from (`crate::moved`).
    pub moved: U64,
    /// How many runs it has; 0 where nothing of the module's is executed there.
    pub moved_count: U64,
    /// Its checksum.
    pub moved_checksum: U64,
    /// Where the table of displacements is in the file, behind all else (`crate::relocations`).
    pub relocations: U64,
    /// How many bytes it has; 0 where there are trampolines that cannot be put elsewhere.
    pub relocations_length: U64,
    /// Its checksum.
    pub relocations_checksum: U64,
}

/// A place at which an `int3` may be met: a trap probe, or a detour's window while it is restored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct Window {
    /// From the first region's start.
    pub offset: U32,
    /// Its probe.
    pub probe: U32,
    /// Bytes that were changed, 1 to 7.
    pub length: u8,
    /// What they were.
    pub original: [u8; 7],
}

impl Header for Image {
    const MAGIC: [u8; 8] = *b"TOMOIMG\n";
    /// Before 3, windows could be wider than what a processor fetches at once; before 4, it was not said whether probes stay; before 5,
    /// not when the module's file had changed in any way; before 6, not how it can be relocated; before 7, not where what is executed
    /// elsewhere comes from.
    const VERSION: u32 = 8;

    fn preamble(&mut self) -> &mut Preamble {
        &mut self.preamble
    }
}

impl Image {
    /// An empty image; what it has is filled in and then [sealed](Image::sealed).
    #[must_use]
    pub fn of(module: ModuleId, stamp: FileStamp) -> Self {
        Self {
            module,
            stamp,
            ..Self::new_zeroed()
        }
    }

    /// Its header as it is written to a file.
    #[must_use]
    pub fn sealed(mut self) -> [u8; size_of::<Self>()] {
        self.seal();
        zerocopy::transmute!(self)
    }

    /// The checksum of the header, as it was read.
    #[must_use]
    pub fn checksum(&self) -> u64 {
        u64::from_le_bytes(self.preamble.checksum())
    }

    /// The header of an image file that has `length` bytes and starts with `bytes`.
    ///
    /// # Errors
    /// Where it is no image, of another version, cut short, damaged, or contradicts itself.
    pub fn read(bytes: &[u8], length: u64) -> Result<Self, Refusal> {
        let image = <Self as Header>::open(bytes)?;
        let promised = image.length.get();
        if promised != length {
            return Err(Refusal::CutShort { length, promised });
        }
        if image.is_consistent() {
            Ok(image)
        } else {
            Err(Refusal::Inconsistent)
        }
    }

    /// The executable segments.
    #[must_use]
    pub fn regions(&self) -> &[Region] {
        let count = self.region_count.get() as usize;
        self.regions.get(..count).unwrap_or(&[])
    }

    /// Where the `length` bytes of text are in the file that lie `offset` behind the first region's
    /// start, all of them in one region.
    #[must_use]
    pub fn text_at(&self, offset: u32, length: u64) -> Option<u64> {
        let first = self.regions().first()?.address.get();
        let address = first.checked_add(offset.into())?;
        self.regions().iter().find_map(|region| {
            let within = address.checked_sub(region.address.get())?;
            let end = within.checked_add(length)?;
            (end <= region.length.get()).then(|| region.offset.get().checked_add(within))?
        })
    }

    /// Bytes that the marks take in memory.
    #[must_use]
    pub fn marks_length(&self) -> u64 {
        pages(u64::from(self.probes.get())).unwrap_or(u64::MAX)
    }

    /// From the first region's start to the marks.
    #[must_use]
    pub fn marks_distance(&self) -> i64 {
        let length = self.trampolines_length.get() as i64;
        self.distance.get().wrapping_add(length)
    }

    /// From the first region's start to the alias of region number `index`.
    #[must_use]
    pub fn alias_distance(&self, index: usize) -> i64 {
        let before = self.regions().iter().take(index);
        let before: u64 = before.map(|region| region.length.get()).sum();
        let marks = self.marks_length() as i64;
        self.marks_distance()
            .wrapping_add(marks)
            .wrapping_add(before as i64)
    }

    /// Bytes from the trampolines' start to the last alias' end.
    #[must_use]
    pub fn companion_length(&self) -> u64 {
        let text: u64 = self.regions().iter().map(|r| r.length.get()).sum();
        self.trampolines_length.get() + self.marks_length() + text
    }

    /// The trap table of this image in `file`.
    ///
    /// # Errors
    /// Where it is cut short or damaged.
    pub fn window_table<'f>(&self, file: &'f [u8]) -> Result<&'f [Window], Refusal> {
        let start = self.windows.get().min(file.len() as u64);
        self.windows_in(part(file, start, file.len() as u64 - start)?)
    }

    /// The trap table of this image in the bytes of its file from where the table starts.
    ///
    /// # Errors
    /// Where it is cut short or damaged.
    pub fn windows_in<'f>(&self, bytes: &'f [u8]) -> Result<&'f [Window], Refusal> {
        let windows = self.unchecked_windows_in(bytes)?;
        if crate::checksum(windows.as_bytes()) != self.windows_checksum.get() {
            return Err(Refusal::Damaged);
        }
        Ok(windows)
    }

    /// The same for who knows that it is not damaged, and so need not read all of it.
    ///
    /// # Errors
    /// Where it is cut short.
    pub fn unchecked_windows_in<'f>(&self, bytes: &'f [u8]) -> Result<&'f [Window], Refusal> {
        let size = self
            .window_count
            .get()
            .checked_mul(size_of::<Window>() as u64);
        let bytes = part(bytes, 0, size.ok_or(Refusal::Inconsistent)?)?;
        <[Window]>::ref_from_bytes(bytes).map_err(|_| Refusal::Inconsistent)
    }

    /// Whether all parts but the last are whole pages inside the file, regions ascend without overlap, and
    /// everything is within reach of everything.
    pub(crate) fn is_consistent(&self) -> bool {
        let length = self.length.get();
        let inside = |offset: u64, size: u64| {
            offset.is_multiple_of(PAGE)
                && size.is_multiple_of(PAGE)
                && offset.checked_add(size).is_some_and(|end| end <= length)
        };
        let regions = self.regions();
        let count = self.region_count.get() as usize;
        let texts = regions.iter().all(|r| {
            let (address, size) = (r.address.get(), r.length.get());
            let ends = address.checked_add(size).is_some();
            ends && size > 0 && address.is_multiple_of(PAGE) && inside(r.offset.get(), size)
        });
        let ascend = regions.is_sorted_by(|a, b| {
            let end = a.address.get().checked_add(a.length.get());
            end.is_some_and(|end| end <= b.address.get())
        });
        // Both are part of a copy that is relocated, which ends before the last part.
        let table = |start: U64, count: U64, each: usize| {
            let size = count.get().checked_mul(each as u64);
            let end = size.and_then(|size| start.get().checked_add(size));
            end.is_some_and(|end| end <= self.relocations.get())
        };
        count > 0
            && count == regions.len()
            && texts
            && ascend
            && table(self.windows, self.window_count, size_of::<Window>())
            && table(self.moved, self.moved_count, size_of::<Run>())
            && inside(self.trampolines.get(), self.trampolines_length.get())
            && self.relocations.get().is_multiple_of(PAGE)
            && self
                .relocations
                .get()
                .checked_add(self.relocations_length.get())
                == Some(length)
            && self.is_within_reach()
    }

    fn is_within_reach(&self) -> bool {
        let regions = self.regions();
        let (Some(first), Some(last)) = (regions.first(), regions.last()) else {
            return false;
        };
        let span = last.address.get() + last.length.get() - first.address.get();
        let distance = self.distance.get();
        // All of these are below 2^31 once each is compared, so that none of the sums wraps.
        let small = |size: u64| size < REACH;
        let parts = small(span)
            && small(distance.unsigned_abs())
            && small(self.trampolines_length.get())
            && regions.iter().all(|r| small(r.length.get()));
        if !parts || distance % PAGE as i64 != 0 {
            return false;
        }
        let start = distance.min(0);
        let end = (distance + self.companion_length() as i64).max(span as i64);
        let apart = distance >= span as i64 || distance + self.companion_length() as i64 <= 0;
        apart && ((end - start) as u64) < REACH
    }
}
