//! The roster: which image arms which module, and where its record is.
//!
//! A header, the entries, then the paths, each ended by a zero byte so that it can be handed to the
//! system as it is. A path that does not start with `/` is relative to the roster's folder.

use core::ffi::CStr;
use core::mem::size_of;

use zerocopy::little_endian::{U32, U64};
use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes, KnownLayout};

use crate::door::{Header, Preamble, Refusal, part};
use crate::{ModuleId, checksum};

/// Modules of one roster at most.
pub const MOST_ENTRIES: u32 = 4096;

/// The header of a roster.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct Roster {
    preamble: Preamble,
    /// Modules.
    pub entries: U32,
    /// Bytes of paths.
    pub paths: U32,
    /// Where in the paths that of the file of slabs starts, plus one; 0 where nothing counts.
    pub slabs: U32,
    /// The same for the file of crashes; 0 where none are kept.
    pub crashes: U32,
    /// Checksum of entries and paths.
    pub checksum: U64,
}

/// One module of a roster.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct Entry {
    /// The module.
    pub module: ModuleId,
    /// Where in the paths its image's starts.
    pub image: U32,
    /// Where in the paths that of the file starts whose pages become the text: the image itself, so that
    /// all who map it share what they dispose of; or a run's own copy of its text, at the same places.
    pub text: U32,
    /// Where in the paths its record's starts.
    pub record: U32,
    /// 1 where programs may load it after their start (`dlopen`), 0 where they load it at the start or
    /// not at all.
    pub late: U32,
    /// 1 where each process has a record and a copy of the text of its own; see [`crate::record::ENDING`].
    pub separate: U32,
    /// The inode of a run's own copy of the text, 0 where there is none. Who finds no file under its name, or another one (the
    /// run's launcher has ended), makes a copy from the image.
    pub inode: U64,
}

impl Header for Roster {
    const MAGIC: [u8; 8] = *b"TOMORST\n";
    const VERSION: u32 = 8;

    fn preamble(&mut self) -> &mut Preamble {
        &mut self.preamble
    }
}

impl Roster {
    /// The header over `entries` and `paths`; where the paths of the files of slabs and of crashes start.
    #[must_use]
    pub fn sealed(
        entries: &[Entry],
        paths: &[u8],
        (slabs, crashes): (Option<u32>, Option<u32>),
        sum: u64,
    ) -> [u8; size_of::<Self>()] {
        let mut roster = Self {
            slabs: slabs.map_or(0, |start| start + 1).into(),
            crashes: crashes.map_or(0, |start| start + 1).into(),
            entries: (entries.len() as u32).into(),
            paths: (paths.len() as u32).into(),
            checksum: sum.into(),
            ..Self::new_zeroed()
        };
        roster.seal();
        zerocopy::transmute!(roster)
    }
}

/// A roster whose parts agree.
#[derive(Clone, Copy, Debug)]
pub struct RosterView<'f> {
    /// The modules.
    pub entries: &'f [Entry],
    paths: &'f [u8],
    slabs: u32,
    crashes: u32,
}

impl<'f> RosterView<'f> {
    /// The roster in `file`.
    ///
    /// # Errors
    /// Where it is no roster, of another version, cut short or damaged.
    pub fn read(file: &'f [u8]) -> Result<Self, Refusal> {
        let header = <Roster as Header>::open(file)?;
        if header.entries.get() > MOST_ENTRIES {
            return Err(Refusal::Inconsistent);
        }
        let start = size_of::<Roster>() as u64;
        let size = u64::from(header.entries.get()) * size_of::<Entry>() as u64;
        let entries = part(file, start, size)?;
        let paths = part(file, start + size, header.paths.get().into())?;
        let body = part(file, start, size + u64::from(header.paths.get()))?;
        if checksum(body) != header.checksum.get() {
            return Err(Refusal::Damaged);
        }
        let entries = <[Entry]>::ref_from_bytes(entries).map_err(|_| Refusal::Inconsistent)?;
        Ok(Self {
            entries,
            paths,
            slabs: header.slabs.get(),
            crashes: header.crashes.get(),
        })
    }

    /// The path of the file of slabs, if anything counts.
    #[must_use]
    pub fn slabs(&self) -> Option<&'f CStr> {
        self.path(self.slabs.checked_sub(1)?.into())
    }

    /// The path of the file of crashes, if they are kept.
    #[must_use]
    pub fn crashes(&self) -> Option<&'f CStr> {
        self.path(self.crashes.checked_sub(1)?.into())
    }

    /// The path that starts at `offset`.
    #[must_use]
    pub fn path(&self, offset: U32) -> Option<&'f CStr> {
        let bytes = self.paths.get(offset.get() as usize..)?;
        CStr::from_bytes_until_nul(bytes).ok()
    }
}
