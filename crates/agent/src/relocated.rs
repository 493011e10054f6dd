//! An image whose place is taken is armed at another: a copy that is this process's own, relocated.
//!
//! An image has its trampolines at one distance from the text, and who launches the program chooses it so that nothing is
//! there. But the loader may put modules otherwise than it did then, and a program that loads a module later has mapped what it likes.
//! Then the image is copied into a file in memory, with its displacements changed
//! ([`tomo_wire::relocations`]), for where there is room. Marks go to the record that all have in common; but probes that vanish
//! from the copy do so for this process and those that it forks alone. That takes some milliseconds a megabyte.
//!
//! The text of the image may be changed at the same time by others, who only ever put back what the module has. So it is read
//! line by line as it was at one moment, and what the module has there stays.

use core::ptr::copy_nonoverlapping;
use core::{mem, slice};

use tomo_wire::PAGE;
use tomo_wire::image::{Image, REACH};
use tomo_wire::relocations::FIELD;

use crate::arm::text_at;
use crate::lines::{LINE, steady};
use crate::loader::Module;
use crate::system::{self, EXISTS, Errno, File, Protection};
use crate::{closed, maps};

/// Memory of nobody else for what belongs to an image; given back unless it is [kept](Reserved::keep).
pub(crate) struct Reserved {
    start: usize,
    length: usize,
}

impl Reserved {
    fn at(start: usize, length: usize) -> Result<Self, Errno> {
        system::reserve(start, length)?;
        Ok(Self { start, length })
    }

    /// It stays reserved, because text leads there.
    pub(crate) fn keep(self) {
        mem::forget(self);
    }
}

impl Drop for Reserved {
    fn drop(&mut self) {
        // SAFETY: reserved by us, and no text leads there.
        unsafe { system::unmap(self.start, self.length) };
    }
}

/// An image that has found room.
pub(crate) struct Settled {
    pub(crate) file: File,
    pub(crate) image: Image,
    pub(crate) reserved: Reserved,
    /// Whether the file is a copy of this process's own.
    pub(crate) is_relocated: bool,
}

/// Reserves what belongs to `image`, which `file` holds and whose layout is that of `module`: at its own distance, or else where
/// there is room for a copy of it.
pub(crate) fn settle(module: &Module<'_>, file: File, image: Image) -> Result<Settled, Errno> {
    let start = origin(module, &image).wrapping_add_signed(image.distance.get() as isize);
    match Reserved::at(start, image.companion_length() as usize) {
        Ok(reserved) => Ok(Settled {
            file,
            image,
            reserved,
            is_relocated: false,
        }),
        Err(EXISTS) => relocated(module, &file, &image).ok_or(EXISTS),
        Err(errno) => Err(errno),
    }
}

/// Where the first region is in memory.
fn origin(module: &Module<'_>, image: &Image) -> usize {
    let first = image.regions().first();
    first.map_or(0, |first| text_at(module.bias, first))
}

/// A copy of the image at another distance. None in a sandbox that the program has closed: who loads a module there may map
/// files, but perhaps not make any.
fn relocated(module: &Module<'_>, file: &File, image: &Image) -> Option<Settled> {
    (!closed::is_closed()).then_some(())?;
    let extent = module.extent()?;
    // Below the module, whose own heap may be above it.
    let lowest = extent.end.checked_sub(REACH)?.next_multiple_of(PAGE);
    let within = lowest..extent.start.checked_sub(PAGE)?;
    let length = image.companion_length();
    let start = maps::gap(within, length)? as usize;
    let reserved = Reserved::at(start, length as usize).ok()?;
    let distance = start.wrapping_sub(origin(module, image)) as isize as i64;

    let end = image.relocations.get();
    let copy = system::memory_file(c"tomo:relocated").ok()?;
    copy.allocate(0, end).ok()?;
    let from = Mapped::of(file, image.length.get() as usize, Protection::Read)?;
    let mut to = Mapped::of(&copy, end as usize, Protection::ReadWrite)?;
    copy_parts(image, &from, &mut to);
    // SAFETY: behind all that is ever changed in an image.
    let table = unsafe { from.bytes(end as usize) };
    let table = image.relocations_in(table).ok()?;
    let original = |address: u64| {
        let place = module.bias.wrapping_add(address as usize) as *const [u8; FIELD];
        // SAFETY: the layout was checked: this is in the module's loaded text.
        unsafe { place.read_unaligned() }
    };
    // SAFETY: mapped for us alone.
    let bytes = unsafe { to.bytes_mut() };
    let header = image.relocate(table, bytes, distance, original).ok()?;
    let sealed = header.sealed();
    bytes.get_mut(..sealed.len())?.copy_from_slice(&sealed);
    Some(Settled {
        file: copy,
        image: header,
        reserved,
        is_relocated: true,
    })
}

/// Copies all but the table of displacements, of a file that lies at `from` whole.
fn copy_parts(image: &Image, from: &Mapped, to: &mut Mapped) {
    let texts = image
        .regions()
        .iter()
        .map(|region| region.offset.get() as usize);
    let first = texts.min().unwrap_or(to.length).min(to.length);
    // SAFETY: inside both; nobody changes what comes before the texts.
    unsafe { copy_nonoverlapping(from.start as *const u8, to.start as *mut u8, first) };
    for at in (first..to.length).step_by(LINE) {
        // SAFETY: inside both, since parts are whole pages, and so at a multiple of a line's length.
        unsafe { ((to.start + at) as *mut [u8; LINE]).write(steady(from.start + at)) };
    }
}

/// A file that is mapped for a while.
struct Mapped {
    start: usize,
    length: usize,
}

impl Mapped {
    fn of(file: &File, length: usize, protection: Protection) -> Option<Self> {
        let start = system::map(length, protection, file, 0).ok()? as usize;
        Some(Self { start, length })
    }

    /// The bytes from this one on.
    ///
    /// # Safety
    /// Nobody writes them.
    unsafe fn bytes(&self, from: usize) -> &[u8] {
        let length = self.length.saturating_sub(from);
        // SAFETY: mapped as long as this is there; the caller's.
        unsafe { slice::from_raw_parts((self.start + self.length - length) as *const u8, length) }
    }

    /// All of it.
    ///
    /// # Safety
    /// Nobody else has mapped the file.
    unsafe fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: mapped for reading and writing as long as this is there; the caller's.
        unsafe { slice::from_raw_parts_mut(self.start as *mut u8, self.length) }
    }
}

impl Drop for Mapped {
    fn drop(&mut self) {
        // SAFETY: mapped by us, and nothing refers to it any more.
        unsafe { system::unmap(self.start, self.length) };
    }
}
