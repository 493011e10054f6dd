//! What is armed, as the handler needs it: a table that only grows, read without locks.
//!
//! What a module has in it stays when the module is unloaded, and is the module's again if that comes back to the same place, as it
//! mostly does where a program loads and unloads a library over and over: then nothing is added, what was mapped for it
//! once more is given back, and no reader ever sees an element change.

use core::ffi::c_char;
use core::ops::Range;
use core::slice;
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering};

use tomo_wire::FileStamp;
use tomo_wire::image::Window;
use tomo_wire::moved::Run;
use tomo_wire::record::{self, Field, Record};

use crate::tables::{Grown, tables};
use crate::{forked, loader, system};

/// The counters of a record, mapped for as long as the process lives.
#[derive(Clone, Copy)]
pub(crate) struct Counters(*mut u8);

impl Counters {
    /// The counters of the record whose first page is mapped at `page`.
    ///
    /// # Safety
    /// The page stays mapped, for reading and writing.
    pub(crate) unsafe fn at(page: *mut u8) -> Self {
        Self(page)
    }

    /// Unmaps the page in which they are.
    ///
    /// # Safety
    /// Nobody counts in it any more.
    pub(crate) unsafe fn unmap(self) {
        // SAFETY: the caller's.
        unsafe { system::unmap(self.0 as usize, tomo_wire::PAGE as usize) };
    }

    fn field(&self, field: Field) -> &AtomicU64 {
        self.word(record::live_offset(field))
    }

    /// The word at this offset of the page.
    pub(crate) fn word(&self, offset: u64) -> &AtomicU64 {
        // SAFETY: the offset is inside the page and a multiple of eight for what is
        // used (see the assertions below, and in `tomo_wire::cuts`); everybody changes these words atomically.
        unsafe { AtomicU64::from_ptr(self.0.add(offset as usize).cast()) }
    }

    /// Whether their record has the same header as the `other`'s.
    fn are_of_record_of(&self, other: Self) -> bool {
        // SAFETY: the header is at the start of a record's page, and never changes.
        let header = |page: Self| unsafe { slice::from_raw_parts(page.0, size_of::<Record>()) };
        header(*self) == header(other)
    }

    /// Whether these are the counters in the page at `page`.
    pub(crate) fn are_at(&self, page: *mut u8) -> bool {
        self.0 == page
    }

    /// Counts one more.
    pub(crate) fn count(&self, field: Field) {
        self.field(field).fetch_add(1, Ordering::Relaxed);
    }

    /// Notes that this process is armed.
    pub(crate) fn note_armed(&self, process: u32) {
        self.count(Field::Armed);
        self.field(Field::Process)
            .store(process.into(), Ordering::Relaxed);
    }

    /// Counts one less.
    pub(crate) fn take_back(&self, field: Field) {
        self.field(field).fetch_sub(1, Ordering::Relaxed);
    }

    /// Whether the trap table with this checksum was found sound by a process that has this record.
    pub(crate) fn has_sound(&self, checksum: u64) -> bool {
        checksum != 0 && self.field(Field::Sound).load(Ordering::Relaxed) == checksum
    }

    /// Notes that it was.
    pub(crate) fn note_sound(&self, checksum: u64) {
        self.field(Field::Sound).store(checksum, Ordering::Relaxed);
    }

    /// Whether a process that has this record found the file with a stamp of this checksum to have the text of the image.
    pub(crate) fn has_file(&self, stamp: u64) -> bool {
        stamp != 0 && self.field(Field::File).load(Ordering::Relaxed) == stamp
    }

    /// Notes that it did.
    pub(crate) fn note_file(&self, stamp: u64) {
        self.field(Field::File).store(stamp, Ordering::Relaxed);
    }

    /// Notes that this process is not armed, and why.
    pub(crate) fn note_refused(&self, reason: record::Reason, errno: u32) {
        self.count(Field::Refused);
        self.field(Field::Reasons)
            .fetch_or(reason.bit(), Ordering::Relaxed);
        // Reason and error number are neighbours, and so written at once.
        let both = u64::from(reason as u32) | u64::from(errno) << 32;
        self.field(Field::Reason).store(both, Ordering::Relaxed);
    }
}

const _: () = {
    use record::live_offset;
    assert!(live_offset(Field::Errno) == live_offset(Field::Reason) + 4);
    assert!(
        live_offset(Field::Armed).is_multiple_of(8)
            && live_offset(Field::Reasons).is_multiple_of(8)
            && live_offset(Field::Refused).is_multiple_of(8)
    );
    assert!(
        live_offset(Field::Reason).is_multiple_of(8)
            && live_offset(Field::Process).is_multiple_of(8)
    );
    assert!(
        live_offset(Field::Traps).is_multiple_of(8)
            && live_offset(Field::ForeignTraps).is_multiple_of(8)
    );
    assert!(
        live_offset(Field::Sound).is_multiple_of(8)
            && live_offset(Field::Without).is_multiple_of(8)
            && live_offset(Field::File).is_multiple_of(8)
    );
};

/// A region of an armed module: text, its writable alias, and what was there before.
pub(crate) struct Region {
    /// The checksum of the header of the image that it was armed with.
    pub(crate) image: u64,
    /// Where its text is.
    pub(crate) start: usize,
    /// Bytes of it.
    pub(crate) length: usize,
    /// The same bytes, writable.
    pub(crate) alias: *mut u8,
    /// Whether the system maps pages around one that is read there, and lets all of them be written.
    pub(crate) read_first: bool,
    /// The module's first region, from which windows are counted.
    pub(crate) origin: usize,
    /// The module's windows, by offset.
    pub(crate) windows: &'static [Window],
    /// The module's marks, and how many there are.
    pub(crate) marks: *mut u8,
    pub(crate) probes: u32,
    /// Whether some of the module's probes remove themselves.
    pub(crate) vanishing: bool,
    /// The module's counters.
    pub(crate) counters: Counters,
    /// Where trampolines, marks and aliases of the module start.
    pub(crate) companions: usize,
    /// Bytes of them; 0 in all but the first region of a module.
    pub(crate) companions_length: usize,
    /// Where what is executed in the trampolines comes from.
    pub(crate) moved: &'static [Run],
    /// The module's file, as it was when the region was armed, and where in it the region's text is.
    pub(crate) file: FileOfText,
}

impl Region {
    /// The counters of the record that all processes have in common.
    pub(crate) fn common(&self) -> Counters {
        forked::shared(self.counters).unwrap_or(self.counters)
    }

    /// Whether this is the region as it would be armed now, by another mapping of the same record and tables.
    fn is_same(&self, other: &Self) -> bool {
        let places = |r: &Self| (r.origin, r.start, r.length, r.alias, r.marks, r.companions);
        places(self) == places(other)
            && self.image == other.image
            && self.read_first == other.read_first
            && self.file.stamp == other.file.stamp
            && self.counters.are_of_record_of(other.counters)
    }
}

/// Where a region's own text can be had again.
pub(crate) struct FileOfText {
    /// Its path, which is there as long as the module.
    pub(crate) path: AtomicPtr<c_char>,
    /// What tells that it is the file of which the image was made, if that was so;
    pub(crate) stamp: Option<FileStamp>,
    /// the checksum of the region's text does otherwise.
    pub(crate) original: u64,
    pub(crate) offset: u64,
}

/// Regions that are armed at most; further modules stay as they are.
pub(crate) const MOST: usize = 1024;

// SAFETY: its addresses are of what is mapped for as long as the module is, and which all threads may change.
unsafe impl Sync for Region {}

tables! {
    static REGIONS: Grown<Region, MOST> = Grown::new();
}

/// By region: whether its module was unloaded.
static GONE: [AtomicBool; MOST] = [const { AtomicBool::new(false) }; MOST];
/// By region: whether its text is the module's own again.
static GIVEN_BACK: [AtomicBool; MOST] = [const { AtomicBool::new(false) }; MOST];

/// Whether `more` regions fit.
pub(crate) fn has_room(more: usize) -> bool {
    REGIONS.has_room(more)
}

/// Whose regions a module has that was armed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Armed {
    /// New ones.
    Anew,
    /// Those that it had before it was unloaded: what was mapped for new ones is not referred to.
    Again,
}

/// Adds the regions of a module, for which there is room, or which are former ones. From now on the handler sees them.
pub(crate) fn add(regions: impl ExactSizeIterator<Item = Region> + Clone) -> Armed {
    if let Some(former) = former(regions.clone()) {
        for (number, now) in former.zip(regions) {
            come_back(number, now);
        }
        return Armed::Again;
    }
    for region in regions {
        // SAFETY: the loader's lock is held while modules are armed, or there is one thread.
        unsafe { REGIONS.add(region) };
    }
    Armed::Anew
}

/// Whether these are the regions that a module had when it was unloaded, which has come back to the same place.
pub(crate) fn are_former(regions: impl ExactSizeIterator<Item = Region> + Clone) -> bool {
    former(regions).is_some()
}

/// The numbers of these regions, if a module had them when it was unloaded.
fn former(regions: impl ExactSizeIterator<Item = Region> + Clone) -> Option<Range<usize>> {
    let is_gone = |number: usize| {
        let gone = GONE.get(number);
        gone.is_some_and(|gone| gone.load(Ordering::Relaxed))
    };
    let is_former = |(number, now): (usize, Region)| {
        let before = REGIONS.all().get(number);
        is_gone(number) && before.is_some_and(|before| before.is_same(&now))
    };
    let all = (0..REGIONS.count()).filter(|first| is_gone(*first));
    let mut all = all.map(|first| first..first + regions.len());
    all.find(|numbers| numbers.clone().zip(regions.clone()).all(is_former))
}

/// The region with this number is the module's once more, which is what it is `now`.
fn come_back(number: usize, now: Region) {
    if let Some(before) = REGIONS.all().get(number) {
        let path = now.file.path.into_inner();
        before.file.path.store(path, Ordering::Relaxed);
    }
    for (lost, order) in [(&GIVEN_BACK, Ordering::Relaxed), (&GONE, Ordering::Release)] {
        if let Some(lost) = lost.get(number) {
            lost.store(false, order);
        }
    }
}

/// The regions that are armed.
pub(crate) fn regions() -> impl Iterator<Item = &'static Region> {
    let all = REGIONS.all().iter().zip(&GONE);
    all.filter(|(_, gone)| !gone.load(Ordering::Acquire))
        .map(|(region, _)| region)
}

/// Gives back the text of those regions that are `wanted` and that are still ours; whether that worked says `give`.
pub(crate) fn give_back(wanted: impl Fn(&Region) -> bool, give: impl Fn(&Region) -> bool) {
    for ((region, gone), given) in REGIONS.all().iter().zip(&GONE).zip(&GIVEN_BACK) {
        let is_there = !gone.load(Ordering::Relaxed);
        if is_there && wanted(region) && !given.swap(true, Ordering::Relaxed) && !give(region) {
            given.store(false, Ordering::Relaxed);
        }
    }
}

/// The number of the region that is added next.
pub(crate) fn next() -> usize {
    REGIONS.count()
}

/// Whether the region with this number is still ours: its module is loaded, and its text was not given back.
pub(crate) fn is_ours(number: usize) -> bool {
    let lost = |table: &[AtomicBool; MOST]| {
        let lost = table.get(number);
        lost.is_none_or(|lost| lost.load(Ordering::Relaxed))
    };
    !lost(&GONE) && !lost(&GIVEN_BACK)
}

/// Forgets the regions whose modules are loaded no more, and gives their companions back. Called
/// with the loader's lock held.
pub(crate) fn forget_unloaded() {
    for (region, gone) in REGIONS.all().iter().zip(&GONE) {
        if gone.load(Ordering::Relaxed) {
            continue;
        }
        let mut loaded = false;
        loader::for_each(|module| loaded |= module.holds(region.start));
        if !loaded {
            gone.store(true, Ordering::Relaxed);
            // SAFETY: only the module's own code leads there, and the loader has unmapped it; a handler
            // that still worked for it would have been called by code that is gone.
            unsafe { system::unmap(region.companions, region.companions_length) };
        }
    }
}
