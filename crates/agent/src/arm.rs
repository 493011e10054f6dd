//! An image is mapped over a module: checked first, then four kinds of mappings, the text last.
//!
//! Nothing of the module is changed before everything else is in place, so that a refusal at any
//! step leaves it as it was. It happens while no thread runs in the module: before its own start,
//! be that the program's or that of a `dlopen`.

use core::ffi::CStr;
use core::slice;
use core::sync::atomic::{AtomicPtr, AtomicU64, Ordering};

use tomo_wire::counting::Contents;
use tomo_wire::image::{Image, Region, Window};
use tomo_wire::moved::Run;
use tomo_wire::record::{MARKS, Reason, Record};
use tomo_wire::roster::{Entry, MOST_ENTRIES, RosterView};
use tomo_wire::{FileStamp, PAGE, checksum};

use crate::armed::{self, Armed, Counters, FileOfText};
use crate::door::{self, Closed};
use crate::loader::Module;
use crate::relocated::{Reserved, Settled};
use crate::system::{self, Access, Errno, File, Protection};
use crate::{
    emulator, forked, late, maps, origins, own, parts, relocated, segment, slabs, symbols, tracer,
    trap,
};

/// Why a module was not armed.
pub(crate) struct Refused {
    reason: Reason,
    errno: u32,
}

impl From<Reason> for Refused {
    fn from(reason: Reason) -> Self {
        Self { reason, errno: 0 }
    }
}

/// A failed system call as a refusal for `reason`.
pub(crate) fn failed(reason: Reason) -> impl Fn(Errno) -> Refused {
    move |Errno(errno)| Refused { reason, errno }
}

/// Entries of the roster, a bit for each.
struct Bits([AtomicU64; Bits::WORDS]);

impl Bits {
    const WORDS: usize = MOST_ENTRIES as usize / 64;

    const fn new() -> Self {
        Self([const { AtomicU64::new(0) }; Self::WORDS])
    }

    fn has(&self, index: usize) -> bool {
        let word = self.0.get(index / 64);
        word.is_some_and(|word| word.load(Ordering::Relaxed) >> (index % 64) & 1 != 0)
    }

    fn add(&self, index: usize) {
        if let Some(word) = self.0.get(index / 64) {
            word.fetch_or(1 << (index % 64), Ordering::Relaxed);
        }
    }
}

/// What was refused once in this process is not tried again.
static REFUSED: Bits = Bits::new();
/// What was armed before, and unloaded, is not counted again.
static COUNTED: Bits = Bits::new();

/// Arms `module` if the roster has an image for it among the entries that are `wanted`; counts why not
/// if it has one that does not do.
pub(crate) fn arm(
    module: &Module<'_>,
    roster: &RosterView<'_>,
    roster_path: &CStr,
    wanted: fn(&Entry) -> bool,
) {
    let id = module.build_id();
    for (index, entry) in roster.entries.iter().enumerate() {
        let named = match entry.module.build_id() {
            Some(stated) => Some(stated) == id,
            None => id.is_none(),
        };
        if named && wanted(entry) && !REFUSED.has(index) {
            match arm_as(module, roster, roster_path, entry, COUNTED.has(index)) {
                Some(Outcome::Armed) => return COUNTED.add(index),
                Some(Outcome::OfAnother) => {}
                Some(Outcome::Refused) | None => REFUSED.add(index),
            }
        }
    }
}

/// What has come of a module and an entry of the roster.
enum Outcome {
    Armed,
    /// The entry is not for this module.
    OfAnother,
    /// That is noted in the record.
    Refused,
}

/// Arms `module` as this entry says; `None` where there is no record in which anything could be noted. It counts as
/// a process more unless that was so before.
fn arm_as(
    module: &Module<'_>,
    roster: &RosterView<'_>,
    roster_path: &CStr,
    entry: &Entry,
    again: bool,
) -> Option<Outcome> {
    let mut buffer = [0; 4096];
    let path = door::beside(roster_path, roster.path(entry.record)?, &mut buffer)?;
    let (file, record, counters) = open_record(path)?;
    let wanted = Wanted {
        module,
        roster,
        roster_path,
        entry,
        record: &record,
        record_file: &file,
        counters,
    };
    let armed = wanted.arm(&mut buffer);
    if armed.is_ok() && !again {
        counters.note_armed(system::process());
    }
    let outcome = match armed {
        Ok(Armed::Anew) => return Some(Outcome::Armed),
        Ok(Armed::Again) => Outcome::Armed,
        // An image without a build id is for one file only; others are none of its business.
        Err(Refused {
            reason: Reason::ModuleChanged | Reason::OtherLayout,
            ..
        }) if entry.module.build_id().is_none() => Outcome::OfAnother,
        Err(Refused { reason, errno }) => {
            counters.note_refused(reason, errno);
            Outcome::Refused
        }
    };
    // SAFETY: nothing was armed that would know them.
    unsafe { counters.unmap() };
    Some(outcome)
}

/// Whether threads find what they count in, as this image has it.
fn find_slabs(image: &Image) -> Result<(), Reason> {
    if segment::is_taken() {
        return Err(Reason::Segment);
    }
    let has_place = u64::from(image.slab_end.get()) <= slabs::size()
        && (image.shadowed.get() != 0) == slabs::have(Contents::Paths);
    has_place.then_some(()).ok_or(Reason::NoSlab)
}

/// Notes in the records of the entries that are `wanted` and were not armed so far that they will not be, for
/// this reason.
pub(crate) fn refuse(
    roster: &RosterView<'_>,
    roster_path: &CStr,
    wanted: fn(&Entry) -> bool,
    reason: Reason,
) {
    for (index, entry) in roster.entries.iter().enumerate() {
        if !wanted(entry) || COUNTED.has(index) {
            continue;
        }
        let mut buffer = [0; 4096];
        let path = roster.path(entry.record);
        let path = path.and_then(|path| door::beside(roster_path, path, &mut buffer));
        if let Some((.., counters)) = path.and_then(open_record) {
            counters.note_refused(reason, 0);
        }
    }
}

/// The record at `path`, and its counters, which stay mapped.
fn open_record(path: &CStr) -> Option<(File, Record, Counters)> {
    let (file, status) = door::open_private(path, Access::ReadWrite).ok()?;
    let record = read_record(&file, status.length)?;
    let page = system::map(PAGE as usize, Protection::ReadWrite, &file, 0).ok()?;
    // SAFETY: mapped just now and never unmapped.
    let counters = unsafe { Counters::at(page) };
    Some((file, record, counters))
}

fn read_record(file: &File, length: i64) -> Option<Record> {
    let mut header = [0; size_of::<Record>()];
    file.read_at(&mut header, 0).ok()?;
    Record::read(&header, length.try_into().ok()?).ok()
}

/// A module and what the roster wants it to be.
struct Wanted<'w> {
    module: &'w Module<'w>,
    roster: &'w RosterView<'w>,
    roster_path: &'w CStr,
    entry: &'w Entry,
    record: &'w Record,
    record_file: &'w File,
    counters: Counters,
}

impl Wanted<'_> {
    /// A path that the roster names.
    fn path<'b>(&self, path: u32, buffer: &'b mut [u8; 4096]) -> Result<&'b CStr, Refused> {
        let path = self.roster.path(path.into());
        path.and_then(|path| door::beside(self.roster_path, path, buffer))
            .ok_or(Reason::NoImage.into())
    }

    /// Paths are put together in `buffer`: stacks of threads may be small.
    fn arm(&self, buffer: &mut [u8; 4096]) -> Result<Armed, Refused> {
        if system::is_raised() {
            return Err(Reason::Privileged.into());
        }
        if emulator::is_blind() {
            return Err(Reason::Emulated.into());
        }
        if tracer::is_debugger() {
            return Err(Reason::Traced.into());
        }
        if symbols::is_agent(self.module) {
            return Err(Reason::Agent.into());
        }
        let Self {
            module,
            entry,
            record,
            ..
        } = self;
        let separate = forked::is_separate(entry);
        let copied = entry.text != entry.image;
        let path = self.path(entry.image.get(), buffer)?;
        let (file, image) = open_image(path, separate || copied)?;
        let same = image.module == entry.module && image.module == record.module;
        if !same || image.plan != record.plan || image.probes != record.probes {
            return Err(Reason::RecordRefused.into());
        }
        let counts = image.slab_end.get() > 0;
        // Who started threads too early may have them run in any library that was there, but not yet in the program.
        let may_run = !module.path.is_empty() && !late::is_watching();
        let may_trap = slabs::has_deaf_threads() && image.window_count.get() > 0;
        if slabs::has_early_threads() && (counts || may_run || may_trap) {
            return Err(Reason::Early.into());
        }
        if counts {
            find_slabs(&image)?;
        }
        check_layout(module, &image)?;
        check_bytes(module, &image, self.counters)?;
        let settled = relocated::settle(module, file, image).map_err(failed(Reason::NoRoom))?;
        let Settled {
            file,
            image,
            reserved,
            is_relocated,
        } = settled;
        if separate {
            return self.arm_separately(&file, &image, reserved, buffer);
        }
        let own = match copied && !is_relocated {
            true => {
                let path = self.path(entry.text.get(), buffer)?;
                match open_text(path, &image, entry.inode.get())? {
                    Some(text) => Some(text),
                    None => Some(copy_text(&file, &image)?),
                }
            }
            false => None,
        };
        let files = Files {
            image: &file,
            text: own.as_ref().unwrap_or(&file),
            record: self.record_file,
        };
        map_all(module, &image, &files, self.counters, reserved)
    }

    /// Arms the module with a text and a record that are this process's own.
    fn arm_separately(
        &self,
        file: &File,
        image: &Image,
        reserved: Reserved,
        buffer: &mut [u8; 4096],
    ) -> Result<Armed, Refused> {
        let bytes = map_image(file, image)?;
        let text = own::text(image, bytes).map_err(failed(Reason::NotMapped))?;
        let path = self.path(self.entry.record.get(), buffer)?;
        let own = own::record(path, self.record, own::Began::AtItsStart)
            .map_err(failed(Reason::NoRecord))?;
        let page = system::map(PAGE as usize, Protection::ReadWrite, &own.file, 0);
        let page = page.map_err(failed(Reason::NoRecord))?;
        // SAFETY: mapped just now and never unmapped.
        let counters = unsafe { Counters::at(page) };
        let files = Files {
            image: file,
            text: &text,
            record: &own.file,
        };
        let region = armed::next();
        let armed = map_all(self.module, image, &files, counters, reserved)?;
        if !own.continued {
            counters.note_armed(system::process());
        }
        match armed {
            Armed::Anew => forked::remember(forked::Module {
                bias: self.module.bias,
                region,
                image: bytes,
                page,
                shared: self.counters,
                path: self.entry.record.get(),
            }),
            // SAFETY: mapped above, and not referred to.
            Armed::Again => unsafe {
                counters.unmap();
                unmap_image(bytes);
            },
        }
        Ok(armed)
    }
}

/// What is mapped.
pub(crate) struct Files<'f> {
    pub(crate) image: &'f File,
    /// Where the pages of the text come from.
    pub(crate) text: &'f File,
    pub(crate) record: &'f File,
}

fn open_code(path: &CStr, access: Access) -> Result<(File, system::Status), Refused> {
    door::open_private(path, access).map_err(|closed| match closed {
        Closed::Errno(Errno(errno)) => Refused {
            reason: Reason::NoImage,
            errno,
        },
        Closed::NotPrivate => Reason::ImageNotPrivate.into(),
    })
}

/// The bytes of an image that nobody writes, for good.
fn map_image(file: &File, image: &Image) -> Result<&'static [u8], Refused> {
    let length = image.length.get() as usize;
    let start = system::map(length, Protection::Read, file, 0);
    let start = start.map_err(failed(Reason::NotMapped))?;
    // SAFETY: mapped just now and never unmapped; where processes are separate, or runs have their own texts, nobody writes an image.
    Ok(unsafe { slice::from_raw_parts(start, length) })
}

/// Unmaps what [`map_image`] has mapped.
///
/// # Safety
/// Nothing refers to it any more.
unsafe fn unmap_image(bytes: &'static [u8]) {
    // SAFETY: the caller's.
    unsafe { system::unmap(bytes.as_ptr() as usize, bytes.len()) };
}

/// A copy of the text that is this process's own.
fn copy_text(file: &File, image: &Image) -> Result<File, Refused> {
    let bytes = map_image(file, image)?;
    let text = own::text(image, bytes);
    // SAFETY: mapped just now, and nothing refers to it any more.
    unsafe { unmap_image(bytes) };
    text.map_err(failed(Reason::NotMapped))
}

/// The run's own copy of the text, which has this inode; none where it is gone with who made it, or out of reach.
fn open_text(path: &CStr, image: &Image, inode: u64) -> Result<Option<File>, Refused> {
    let (file, status) = match open_code(path, Access::ReadWrite) {
        Ok((file, status)) if status.inode == inode => (file, status),
        // The process whose number is in the path may be another one by now.
        Ok(_) => return Ok(None),
        Err(refused) if refused.reason == Reason::NoImage => return Ok(None),
        Err(refused) => return Err(refused),
    };
    let ends = image.regions().iter();
    let mut ends = ends.map(|region| region.offset.get() + region.length.get());
    if ends.any(|end| end > status.length as u64) {
        return Err(Reason::ImageRefused.into());
    }
    Ok(Some(file))
}

fn open_image(path: &CStr, only_read: bool) -> Result<(File, Image), Refused> {
    let access = match only_read {
        true => Access::Read,
        false => Access::ReadWrite,
    };
    let (file, status) = open_code(path, access)?;
    let mut header = [0; size_of::<Image>()];
    file.read_at(&mut header, 0)
        .map_err(failed(Reason::NoImage))?;
    let image = Image::read(&header, status.length as u64);
    Ok((file, image.map_err(|_| Reason::ImageRefused)?))
}

/// The module's executable segments are where the image has them, in whole pages.
fn check_layout(module: &Module<'_>, image: &Image) -> Result<(), Refused> {
    let mut regions = image.regions().iter();
    let pages = PAGE - 1;
    let same = module.executable().all(|segment| {
        regions.next().is_some_and(|region| {
            let start = segment.address & !pages;
            let end = segment
                .address
                .wrapping_add(segment.size)
                .wrapping_add(pages)
                & !pages;
            region.address.get() == start && region.length.get() == end.wrapping_sub(start)
        })
    });
    if same && regions.next().is_none() {
        Ok(())
    } else {
        Err(Reason::OtherLayout.into())
    }
}

/// The module is the one that the image was made of: its file has not been touched since, or else it has a build id, and the text in
/// memory is the same. That a file that was touched is the same is noted in the record, for those who come later: it takes
/// longer than all else, and files are touched by who links or keeps them as by who writes.
fn check_bytes(module: &Module<'_>, image: &Image, counters: Counters) -> Result<(), Refused> {
    let known = |stamp: &FileStamp| *stamp == image.stamp || counters.has_file(stamp.checksum());
    if stamp_of_file(module).as_ref().is_some_and(known) {
        return Ok(());
    }
    if let Some(first) = image.regions().first()
        && module.path.is_empty()
    {
        maps::find_program(text_at(module.bias, first));
    }
    // Before the text is looked at: who writes to the file after that changes what this says.
    let stamp = stamp_of_file(module);
    if stamp.as_ref().is_some_and(known) {
        return Ok(());
    }
    if image.module.build_id().is_none() {
        return Err(match is_its_file(module, image) {
            true => Reason::Touched.into(),
            false => Reason::ModuleChanged.into(),
        });
    }
    let same = image.regions().iter().all(|region| {
        let start = text_at(module.bias, region) as *const u8;
        // SAFETY: the layout was checked: these pages are the module's loaded text.
        let text = unsafe { slice::from_raw_parts(start, region.length.get() as usize) };
        checksum(text) == region.original.get()
    });
    if !same {
        return Err(Reason::ModuleChanged.into());
    }
    if let Some(stamp) = stamp.filter(|stamp| is_mapped(stamp, module, image)) {
        counters.note_file(stamp.checksum());
    }
    Ok(())
}

/// Whether the module's text is that of the file with this stamp, and not of one that was there before it.
fn is_mapped(stamp: &FileStamp, module: &Module<'_>, image: &Image) -> bool {
    let place = (stamp.device.get(), stamp.inode.get());
    let mut regions = image.regions().iter();
    regions.all(|region| maps::file_at(text_at(module.bias, region)) == Some(place))
}

/// Whether the module's file is the one of which the image was made, whatever has become of it.
fn is_its_file(module: &Module<'_>, image: &Image) -> bool {
    let place = |stamp: FileStamp| (stamp.device, stamp.inode);
    system::status(path_of(module))
        .is_ok_and(|status| place(stamp_of(&status)) == place(image.stamp))
}

/// Where the module's file is; a path that is there as long as the module.
fn path_of<'m>(module: &Module<'m>) -> &'m CStr {
    match module.path.is_empty() {
        true => maps::program().unwrap_or(c"/proc/self/exe"),
        false => module.path,
    }
}

/// The stamp of the file that is where the module's was.
fn stamp_of_file(module: &Module<'_>) -> Option<FileStamp> {
    let status = system::status(path_of(module)).ok()?;
    Some(stamp_of(&status))
}

/// What tells of a file that it is still the one that was looked at.
pub(crate) fn stamp_of(status: &system::Status) -> FileStamp {
    let nanoseconds =
        |[seconds, more]: [i64; 2]| seconds.wrapping_mul(1_000_000_000).wrapping_add(more);
    FileStamp {
        device: status.device.into(),
        inode: status.inode.into(),
        length: (status.length as u64).into(),
        modified: nanoseconds(status.modified).into(),
        changed: nanoseconds(status.changed).into(),
    }
}

/// Maps trampolines, marks and aliases at their distance from the text, where memory is `reserved`, then the text itself.
fn map_all(
    module: &Module<'_>,
    image: &Image,
    files: &Files<'_>,
    counters: Counters,
    reserved: Reserved,
) -> Result<Armed, Refused> {
    let Some(first) = image.regions().first() else {
        return Err(Reason::ImageRefused.into());
    };
    let origin = module.bias.wrapping_add(first.address.get() as usize);
    let place = Place {
        origin,
        image,
        files,
    };
    let regions = |tables| place.regions(module, tables, counters);
    if !armed::has_room(image.regions().len()) && !armed::are_former(regions((&[], &[]))) {
        return Err(Reason::TooMany.into());
    }
    let windows = parts::windows(image, files.image, counters)?;
    let moved = parts::moved(image, files.image)?;
    if !windows.is_empty() {
        // Before the text: what prepares for traps must not meet them.
        trap::expect();
    }
    if !moved.is_empty() {
        origins::tell();
    }
    let mapped = place
        .map_companions()
        .and_then(|()| place.map_texts(module.bias, |region| module.offset_of(region) == 0));
    mapped.map_err(failed(Reason::NotMapped))?;
    reserved.keep();
    let armed = armed::add(regions((windows, moved)));
    if armed == Armed::Again {
        // SAFETY: mapped above, and not referred to.
        unsafe {
            parts::unmap(windows);
            parts::unmap(moved);
        }
    }
    Ok(armed)
}

/// Windows, and where what is executed in the trampolines comes from.
type Tables = (&'static [Window], &'static [Run]);

/// Where a region is in a module with this bias.
pub(crate) fn text_at(bias: usize, region: &Region) -> usize {
    bias.wrapping_add(region.address.get() as usize)
}

/// Where an image goes.
pub(crate) struct Place<'i> {
    /// Where the first region starts.
    pub(crate) origin: usize,
    pub(crate) image: &'i Image,
    pub(crate) files: &'i Files<'i>,
}

impl Place<'_> {
    fn at(&self, distance: i64) -> usize {
        self.origin.wrapping_add_signed(distance as isize)
    }

    /// Everything but the text, over the reservation.
    fn map_companions(&self) -> Result<(), Errno> {
        let image = self.image;
        let trampolines = image.trampolines_length.get() as usize;
        if trampolines > 0 {
            let (to, from) = (self.at(image.distance.get()), image.trampolines.get());
            let file = self.files.image;
            // SAFETY: inside the reservation, of which nobody else knows.
            unsafe { system::map_over(to, trampolines, Protection::ReadExecute, file, from)? };
        }
        self.map_marks()?;
        self.map_aliases()
    }

    /// The marks of the record, over the reservation or over those of another record.
    pub(crate) fn map_marks(&self) -> Result<(), Errno> {
        let length = self.image.marks_length() as usize;
        if length == 0 {
            return Ok(());
        }
        let to = self.at(self.image.marks_distance());
        let file = self.files.record;
        // SAFETY: only trampolines and the handler know these bytes, and they write them only.
        unsafe { system::map_over(to, length, Protection::ReadWrite, file, MARKS) }
    }

    /// The text once more to be written, over the reservation or over that of another text.
    pub(crate) fn map_aliases(&self) -> Result<(), Errno> {
        for (index, region) in self.image.regions().iter().enumerate() {
            let to = self.at(self.image.alias_distance(index));
            let (length, from) = (region.length.get() as usize, region.offset.get());
            let file = self.files.text;
            // SAFETY: as for the marks.
            unsafe { system::map_over(to, length, Protection::ReadWrite, file, from)? };
        }
        Ok(())
    }

    /// The patched text over the module's own. Fails only if nothing was changed: a region that
    /// the system will not map after another one was just stays as it is. The header of the module's file is only
    /// where it `may_begin`, by stated address; elsewhere nothing is read, which for the first time costs as much as a tenth of arming.
    pub(crate) fn map_texts(
        &self,
        bias: usize,
        may_begin: impl Fn(u64) -> bool,
    ) -> Result<(), Errno> {
        let mut result = Ok(());
        for (index, region) in self.image.regions().iter().enumerate() {
            let access = Protection::ReadExecute;
            let kept = match may_begin(region.address.get()) {
                true => self.kept_of(text_at(bias, region), region),
                false => 0,
            };
            let (length, from) = (region.length.get() - kept, region.offset.get() + kept);
            let (length, to) = (length as usize, text_at(bias, region) + kept as usize);
            if length == 0 {
                continue;
            }
            // SAFETY: there is the text of which the image was made, in which no thread runs; the patched one does the same, and
            // where that leads is mapped already, or will be before anybody runs in it.
            let mapped = unsafe { system::map_over(to, length, access, self.files.text, from) };
            if index == 0 && mapped.is_err() {
                result = mapped;
                break;
            }
        }
        result
    }

    /// How many bytes of the region, which is at `start`, stay the module's own: the page with the header of the file, if the image
    /// changes nothing in it. Where a process has mapped that page others look for the file (who tells of a program's stack, for
    /// its symbols), and a text that is a file of ours would lead them astray. Elsewhere it makes no difference.
    fn kept_of(&self, start: usize, region: &Region) -> u64 {
        const HEADER: [u8; 4] = *b"\x7fELF";
        // SAFETY: the module's text, a page at least, which is mapped.
        let own = unsafe { slice::from_raw_parts(start as *const u8, PAGE as usize) };
        if !own.starts_with(&HEADER) {
            return 0;
        }
        // Piece by piece: a stack may be small.
        let mut at = region.offset.get();
        let same = own.chunks(256).all(|own| {
            let mut piece = [0; 256];
            let read = self.files.text.read_at(&mut piece, at);
            at = at.wrapping_add(piece.len() as u64);
            read == Ok(piece.len()) && piece == *own
        });
        if same { PAGE } else { 0 }
    }

    /// The regions of the module, as they are armed with these tables.
    fn regions(
        &self,
        module: &Module<'_>,
        (windows, moved): Tables,
        counters: Counters,
    ) -> impl ExactSizeIterator<Item = armed::Region> + Clone {
        let read_first = self.files.text.is_in_memory();
        let path = path_of(module);
        let stamp = stamp_of_file(module).filter(|stamp| *stamp == self.image.stamp);
        let all = self.image.regions().iter().enumerate();
        all.map(move |(index, region)| armed::Region {
            image: self.image.checksum(),
            start: text_at(module.bias, region),
            length: region.length.get() as usize,
            alias: self.at(self.image.alias_distance(index)) as *mut u8,
            read_first,
            origin: self.origin,
            windows,
            marks: self.at(self.image.marks_distance()) as *mut u8,
            probes: self.image.probes.get(),
            vanishing: self.image.vanishing.get() != 0,
            counters,
            companions: self.at(self.image.distance.get()),
            companions_length: match index {
                0 => self.image.companion_length() as usize,
                _ => 0,
            },
            moved: if index == 0 { moved } else { &[] },
            file: FileOfText {
                path: AtomicPtr::new(path.as_ptr().cast_mut()),
                stamp,
                original: region.original.get(),
                offset: module.offset_of(region.address.get()),
            },
        })
    }
}
