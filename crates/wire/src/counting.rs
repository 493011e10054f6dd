//! Counting: which counter counts what, and the slabs that hold them.
//!
//! The *counters* of a module are a file beside its image: a header, then one [`Row`] a counter. Its checksum
//! names it, in images and records as that of a plan does.
//!
//! The *slabs* of a run are one file for all its threads and modules. Each thread has a slab of its own, to
//! which its `gs` base points, so that nobody else changes its counters and no increment is lost; what a thread
//! counted stays when it ends, however it ends. What all counted is the sum over all slabs.
//!
//! | part | where | what |
//! |---|---|---|
//! | header | 0 | [`Slabs`] |
//! | used | [`USED`] | how many slabs were handed out ever |
//! | forks | [`FORKS`] | how many forked processes went on along paths of their parents |
//! | lost | [`LOST`] | how many threads got none, and were not counted |
//! | owners | [`OWNERS`] | for each slab its thread, its process, and ten bits of the number of the namespace of that, or 0; with the thread's topmost bit set it is one of the process, which keeps it for a thread to come |
//! | slabs | [`Slabs::start`] of each | counters of 64 bits |
//!
//! A slab whose owner is gone is handed out again as it is: sums do not mind.

use core::mem::size_of;

use zerocopy::little_endian::{U32, U64};
use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes, KnownLayout};

use crate::door::{Header, Preamble, Refusal, part, rows};
use crate::{ModuleId, PAGE, checksum, pages};

/// What a counter counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct Row {
    /// The block that is reached, or that the edge leaves; as the module states it.
    pub from: U64,
    /// The block that the edge enters, and in the highest bit whether it is the way of a branch that is not taken; 0 for a block.
    pub to: U64,
}

/// The header of a file of counters.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct Counters {
    preamble: Preamble,
    /// The module that is counted.
    pub module: ModuleId,
    /// Where its first executable segment starts, as it states it.
    pub origin: U64,
    /// Version of the analysis that the blocks come from.
    pub analysis: U32,
    /// How many counters.
    pub count: U32,
    /// How many bytes into each slab they start.
    pub at: U32,
    reserved: U32,
    /// Checksum of the rows.
    pub rows_checksum: U64,
}

impl Header for Counters {
    const MAGIC: [u8; 8] = *b"TOMOCTR\n";
    /// Before 2, it was not said where the module's code starts.
    const VERSION: u32 = 2;

    fn preamble(&mut self) -> &mut Preamble {
        &mut self.preamble
    }
}

impl Counters {
    /// The header of these counters, of a module whose code starts at `origin`.
    #[must_use]
    pub fn of((module, origin): (ModuleId, u64), analysis: u32, at: u32, rows: &[Row]) -> Self {
        let mut header = Self {
            module,
            origin: origin.into(),
            analysis: analysis.into(),
            count: (rows.len() as u32).into(),
            at: at.into(),
            rows_checksum: checksum(rows.as_bytes()).into(),
            ..Self::new_zeroed()
        };
        header.seal();
        header
    }

    /// What names the counters in images and records.
    #[must_use]
    pub fn name(&self) -> u64 {
        checksum(IntoBytes::as_bytes(self))
    }

    /// Its bytes as they are written to a file, before those of the rows.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        IntoBytes::as_bytes(self)
    }

    /// The counters in `file`, and what each counts.
    ///
    /// # Errors
    /// Where they are none, of another version, cut short or damaged.
    pub fn read(file: &[u8]) -> Result<(Self, &[Row]), Refusal> {
        let header = <Self as Header>::open(file)?;
        let rows = rows::<Self, Row>(file, header.count, header.rows_checksum)?;
        Ok((header, rows))
    }
}

/// Slabs of a file at most.
pub const MOST_SLABS: u32 = 4096;
/// Where in a file of slabs it says how many were handed out.
pub const USED: u64 = 1024;
/// Where it says how many threads got none.
pub const LOST: u64 = 1032;
/// Where it says how many children of `fork` went on in what their parents had begun; only in [`Contents::Paths`].
pub const FORKS: u64 = 1040;
/// Where the owners start.
pub const OWNERS: u64 = PAGE;
/// Where in an owner the namespace of its process stands: numbers of processes are below 2^22 (Linux, `include/linux/threads.h`,
/// `PID_MAX_LIMIT`).
pub const NAMESPACE_AT: u32 = 32 + 22;

/// The process of an owner, as far as ten bits of its namespace's number, which are not 0, tell that it is one of that.
#[must_use]
pub fn process_of(owner: u64, namespace: u64) -> Option<u32> {
    let is_known = namespace != 0 && owner >> NAMESPACE_AT == namespace;
    is_known.then_some((owner >> 32) as u32 & ((1 << (NAMESPACE_AT - 32)) - 1))
}

/// The header of a file of slabs.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct Slabs {
    preamble: Preamble,
    /// Bytes of a slab, in whole pages.
    pub size: U64,
    /// What is in them: a [`Contents`].
    contents: U64,
}

impl Header for Slabs {
    const MAGIC: [u8; 8] = *b"TOMOSLB\n";
    const VERSION: u32 = 3;

    fn preamble(&mut self) -> &mut Preamble {
        &mut self.preamble
    }
}

/// What is in slabs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub enum Contents {
    /// Counters.
    Counters = 0,
    /// Trees of calls ([`crate::chains`]).
    Chains = 1,
    /// Counters, with a shadow of its stacks for each thread ([`crate::paths`]).
    Paths = 2,
    /// The state of tracks ([`crate::tracing`]).
    Tracks = 3,
}

impl Contents {
    const ALL: [Self; 4] = [Self::Counters, Self::Chains, Self::Paths, Self::Tracks];

    /// Bytes of a slab at most.
    fn most(self) -> u64 {
        match self {
            Self::Paths => crate::paths::BELOW.into(),
            Self::Counters | Self::Chains | Self::Tracks => 1 << 31,
        }
    }
}

/// Bytes before the first slab.
const BEFORE: u64 = OWNERS + MOST_SLABS as u64 * size_of::<u64>() as u64;

impl Slabs {
    /// Slabs of so many bytes at least, with this in them; `None` where that is too much.
    #[must_use]
    pub fn of(bytes: u64, contents: Contents) -> Option<Self> {
        let size = pages(bytes).filter(|size| *size <= contents.most())?;
        let mut header = Self {
            size: size.into(),
            contents: (contents as u64).into(),
            ..Self::new_zeroed()
        };
        header.seal();
        Some(header)
    }

    /// What is in them; [`Self::read`] gives none that do not say.
    #[must_use]
    pub fn contents(&self) -> Option<Contents> {
        let number = self.contents.get();
        (Contents::ALL.into_iter()).find(|each| *each as u64 == number)
    }

    /// Its bytes as they are written to a file.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        IntoBytes::as_bytes(self)
    }

    /// Bytes of the file before any slab is handed out.
    #[must_use]
    pub fn head() -> u64 {
        BEFORE
    }

    /// Where a slab is in the file.
    #[must_use]
    pub fn start(&self, slab: u32) -> u64 {
        BEFORE + u64::from(slab) * self.size.get()
    }

    /// How many bytes of a slab of `size` bytes with this in it there is room for on the disk. In trees nothing has its place
    /// before it is needed, and most stay small: those beyond the first ones have less, so that thousands of processes at once do
    /// not fill a disk.
    #[must_use]
    pub fn room(size: u64, contents: Contents, slab: u32) -> u64 {
        let share = match (contents, slab) {
            (Contents::Chains, 64..512) => 16,
            (Contents::Chains, 512..) => 64,
            _ => 1,
        };
        (size / share).next_multiple_of(PAGE).min(size)
    }

    /// The header of a file of slabs that has `length` bytes and starts with `bytes`.
    ///
    /// # Errors
    /// Where it is none, of another version, cut short or damaged.
    pub fn read(bytes: &[u8], length: u64) -> Result<Self, Refusal> {
        let header = <Self as Header>::open(bytes)?;
        let size = header.size.get();
        if length < BEFORE {
            let promised = BEFORE;
            return Err(Refusal::CutShort { length, promised });
        }
        let contents = header.contents().ok_or(Refusal::Inconsistent)?;
        match size.is_multiple_of(PAGE) && size <= contents.most() {
            true => Ok(header),
            false => Err(Refusal::Inconsistent),
        }
    }
}

/// What is to be known of sums beside themselves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Summed {
    /// How many threads are not in them.
    pub lost: u64,
    /// Whether one would be more than 64 bits hold; it is the most that they do.
    pub overflows: bool,
}

/// Adds each counter of all slabs in `file` to its sum; they start at the byte `at` of each slab.
///
/// # Errors
/// As for [`Slabs::read`].
pub fn sums(file: &[u8], at: u32, sums: &mut [u64]) -> Result<Summed, Refusal> {
    let header = Slabs::read(file, file.len() as u64)?;
    let number = |offset: u64| -> Result<u64, Refusal> {
        let bytes = part(file, offset, 8)?;
        let value = U64::read_from_bytes(bytes).map_err(|_| Refusal::Inconsistent)?;
        Ok(value.get())
    };
    let Some(Contents::Counters | Contents::Paths) = header.contents() else {
        return Err(Refusal::Inconsistent);
    };
    let used = number(USED)?.min(MOST_SLABS.into()) as u32;
    let mut overflows = false;
    for slab in 0..used {
        let start = header.start(slab) + u64::from(at);
        // A slab that was promised and never had room in the file counted nothing.
        let Ok(bytes) = part(file, start, sums.len() as u64 * 8) else {
            continue;
        };
        for (sum, value) in sums.iter_mut().zip(bytes.chunks_exact(8)) {
            let value = U64::read_from_bytes(value).map_or(0, U64::get);
            overflows |= sum.checked_add(value).is_none();
            *sum = sum.saturating_add(value);
        }
    }
    let lost = number(LOST)?;
    Ok(Summed { lost, overflows })
}

/// How many forked processes went on along paths of their parents, by a file of slabs.
///
/// # Errors
/// As for [`sums`].
pub fn forks(file: &[u8]) -> Result<u64, Refusal> {
    if Slabs::read(file, file.len() as u64)?.contents() != Some(Contents::Paths) {
        return Err(Refusal::Inconsistent);
    }
    let bytes = part(file, FORKS, 8)?;
    let value = U64::read_from_bytes(bytes).map_err(|_| Refusal::Inconsistent)?;
    Ok(value.get())
}
