//! Large memory: far from all modules, given by the system as it is touched, and left alone by who walks through all there is. And
//! how much there is of ours in all.

use core::ffi::CStr;
use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use tomo_wire::PAGE;

use super::{
    ADVISE, ANONYMOUS, Access, CONTROL, Errno, File, MAP, NO_RESERVE, PRIVATE, Protection, call,
    map_as, open,
};

/// Takes `length` bytes wherever there is room, so that nothing else gets them.
pub(crate) fn reserve_anywhere(length: usize) -> Result<usize, Errno> {
    let flags = PRIVATE | ANONYMOUS | NO_RESERVE;
    let none = Protection::None as usize;
    // SAFETY: the kernel chooses a place where nothing is.
    let place = unsafe { call(MAP, [0, length, none, flags, usize::MAX, 0]) }?;
    note_mapped(length);
    Ok(place)
}

/// How far below this library large memory is taken, in bytes: the places right below it are those that images of
/// libraries need.
const FAR: usize = 64 << 30;

/// Where such memory was taken last.
static LARGE: AtomicUsize = AtomicUsize::new(0);

/// New memory of zeros, never unmapped, far from all modules if there is room.
pub(crate) fn map_nothing(length: usize) -> Result<usize, Errno> {
    let flags = PRIVATE | ANONYMOUS | NO_RESERVE;
    let access = Protection::ReadWrite as usize;
    let here = map_nothing as fn(usize) -> Result<usize, Errno> as usize;
    let above = match LARGE.load(Ordering::Relaxed) {
        0 => here.saturating_sub(FAR),
        last => last,
    };
    let hint = above.saturating_sub(length) & !(PAGE as usize - 1);
    // SAFETY: the kernel chooses a place where nothing is.
    let place = unsafe { call(MAP, [hint, length, access, flags, usize::MAX, 0]) }?;
    LARGE.store(place, Ordering::Relaxed);
    note_mapped(length);
    MAPPED[1].fetch_add(length as u64, Ordering::Relaxed);
    Ok(place)
}

/// The system's file of zeros, if that can be opened.
pub(crate) fn zeros() -> Option<File> {
    const TYPE: u32 = 0o170_000;
    const DEVICE: u32 = 0o020_000;
    const ZEROS: u64 = 1 << 8 | 5;
    let file = open(c"/dev/zero", Access::Read, true).ok()?;
    let status = file.status().ok()?;
    (status.mode & TYPE == DEVICE && status.special == ZEROS).then_some(file)
}

/// Has what [`map_nothing`] has just mapped listed as a part of that file. It is memory like any other for all that, which the file
/// has nothing to do with. (The kernel does not put files where it is asked to.)
///
/// # Errors
/// Where it cannot be; then nobody may use the memory.
///
/// # Safety
/// Nobody has used the memory yet.
pub(crate) unsafe fn list_as(zeros: &File, place: usize, length: usize) -> Result<(), Errno> {
    let kind = PRIVATE | NO_RESERVE;
    // SAFETY: the caller's.
    unsafe { map_as(kind, place, length, Protection::ReadWrite, zeros, 0) }
}

/// Has memory given in pages of the usual size, where the system would give large ones.
pub(crate) fn prefer_small_pages(address: usize, length: usize) {
    const SMALL: usize = 15;
    // SAFETY: what is in the memory stays as it is.
    let _ = unsafe { call(ADVISE, [address, length, SMALL, 0, 0, 0]) };
}

/// Has the pages of a mapped file brought in as they are touched, and no others with them: those around are not wanted as a rule, and
/// each is filled with zeros.
pub(crate) fn bring_in_one_by_one(address: usize, length: usize) {
    const RANDOM: usize = 1;
    // SAFETY: what is in the memory stays as it is.
    let _ = unsafe { call(ADVISE, [address, length, RANDOM, 0, 0, 0]) };
}

/// Has memory left out of the files that the system writes of processes that crash.
pub(crate) fn leave_out_of_dumps(address: usize, length: usize) {
    const LEAVE_OUT: usize = 16;
    // SAFETY: what is in the memory stays as it is.
    let _ = unsafe { call(ADVISE, [address, length, LEAVE_OUT, 0, 0, 0]) };
}

/// Names memory that is no file's, where the system keeps such names.
pub(crate) fn name_memory(address: usize, length: usize, name: &CStr) {
    const MEMORY: usize = 0x5356_4d41;
    const NAME: usize = 0;
    let name = name.as_ptr() as usize;
    // SAFETY: the name ends with a zero byte; what is in the memory stays as it is.
    let _ = unsafe { call(CONTROL, [MEMORY, NAME, address, length, name, 0]) };
}

/// Bytes that were mapped where there was nothing before, and how many of them are this process's alone to write.
static MAPPED: [AtomicU64; 2] = [const { AtomicU64::new(0) }; 2];

/// How many bytes are mapped; or of those that are this process's alone to write.
pub(crate) fn mapped(alone: bool) -> u64 {
    MAPPED[usize::from(alone)].load(Ordering::Relaxed)
}

/// Notes that as many bytes more are mapped.
pub(super) fn note_mapped(length: usize) {
    MAPPED[0].fetch_add(length as u64, Ordering::Relaxed);
}

/// Notes that as many bytes less are.
pub(super) fn note_unmapped(length: usize) {
    MAPPED[0].fetch_sub(length as u64, Ordering::Relaxed);
}
