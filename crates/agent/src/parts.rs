//! Tables of an image, mapped for as long as the process lives once a region refers to them.

use core::slice;

use tomo_wire::PAGE;
use tomo_wire::image::{Image, Window};
use tomo_wire::moved::Run;
use tomo_wire::record::Reason;

use crate::arm::{Refused, failed};
use crate::armed::Counters;
use crate::system::{self, File, Protection};

/// The trap table. All of it is checked by the first process of a record;
/// in a large program that would take others longer than everything else about being armed.
pub(crate) fn windows(
    image: &Image,
    file: &File,
    counters: Counters,
) -> Result<&'static [Window], Refused> {
    let (offset, count) = (image.windows.get(), image.window_count.get());
    let table = map(file, offset, count * size_of::<Window>() as u64)?;
    let refused = || Reason::ImageRefused.into();
    let checksum = image.windows_checksum.get();
    if table.is_empty() || counters.has_sound(checksum) {
        return image.unchecked_windows_in(table).map_err(|_| refused());
    }
    let checked = image.windows_in(table).ok();
    let windows = checked.filter(|windows| are_inside(image, windows));
    let windows = windows.ok_or_else(refused)?;
    counters.note_sound(checksum);
    Ok(windows)
}

/// Whether all windows lie in the text and have marks.
fn are_inside(image: &Image, windows: &[Window]) -> bool {
    let probes = image.probes.get();
    windows.iter().all(|window| {
        let place = image.text_at(window.offset.get(), window.length.into());
        window.probe.get() < probes && place.is_some()
    })
}

/// Where what is executed in the trampolines comes from. Nothing but what handlers are told hangs on it, so it is not checked.
pub(crate) fn moved(image: &Image, file: &File) -> Result<&'static [Run], Refused> {
    let length = image.moved_length().ok_or(Reason::ImageRefused)?;
    let table = map(file, image.moved.get(), length)?;
    let runs = image.unchecked_moved_in(table);
    runs.map_err(|_| Reason::ImageRefused.into())
}

/// So many bytes of the file, which a consistent image states: none of the sums overflows.
fn map(file: &File, offset: u64, length: u64) -> Result<&'static [u8], Refused> {
    if length == 0 {
        return Ok(&[]);
    }
    let before = offset % PAGE;
    let whole = (before + length) as usize;
    let mapped = system::map(whole, Protection::Read, file, offset - before);
    let start = mapped.map_err(failed(Reason::NotMapped))?;
    // SAFETY: mapped just now, not unmapped while anybody refers to it, and nobody writes this part of an image.
    let bytes = unsafe { slice::from_raw_parts(start, whole) };
    Ok(bytes.get(before as usize..).unwrap_or(&[]))
}

/// Unmaps a table, which is all that its pages were mapped for.
///
/// # Safety
/// Nothing refers to it any more.
pub(crate) unsafe fn unmap<T>(table: &'static [T]) {
    let (start, length) = (table.as_ptr() as usize, size_of_val(table));
    let before = start % PAGE as usize;
    if length > 0 {
        // SAFETY: the caller's; these are the pages that were mapped.
        unsafe { system::unmap(start - before, before + length) };
    }
}
