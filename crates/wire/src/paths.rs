//! Paths: what each counter of a module's paths counts.
//!
//! A file beside the image: a header, then a [`Function`] for each function whose paths are counted, the [`Mark`]s of all
//! of them, a [`Left`] for each function whose paths are not. Its checksum names it, in images and records as that of a
//! plan does.
//!
//! The counters of a function are consecutive: how often paths started otherwise than where another ended, then
//! one for each number of a path. Numbers are those of the function's path graph (`tomo_plan::paths`), which model
//! and marks determine.
//!
//! Where only some paths of a function are [asked](Asked) for, these are named by their numbers. What is counted then
//! are either all numbers all the same, or the sums that keep these paths apart from all others
//! (`tomo_plan::paths::selective`), which model, marks and the paths asked for determine; starts are not counted.
//!
//! **The register of a path** is a word of 32 bits in the *shadow* of the stack: each thread's `gs` base points
//! [`SHADOW`] bytes of memory, in which lies at the low 32 bits of an address what belongs to that address of the
//! thread's stack. An activation has the word at its return address. So it needs no saving and no restoring, whoever is
//! called, recursion and signals' handlers use other words, and what an exception or `longjmp` leaves behind is
//! never looked at. Counters lie below the `gs` base, [`BELOW`] bytes from their start.

use core::mem::size_of;

use zerocopy::little_endian::{U32, U64};
use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes, KnownLayout};

use crate::door::{Header, Preamble, Refusal, part};
use crate::{ModuleId, checksum};

/// Bytes of the shadow of a thread's stacks: what 32 bits address.
pub const SHADOW: u64 = 1 << 32;
/// From the start of a thread's counters to its `gs` base, where there is a shadow.
pub const BELOW: u32 = 1 << 28;

/// A function whose paths are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct Function {
    /// Its entry, as the module states it.
    pub entry: U64,
    /// Its first counter.
    pub first: U32,
    /// How many numbers of paths it has; so many counters follow the first.
    pub numbers: U32,
    /// Its first mark, and how many it has.
    pub mark: U32,
    /// How many marks it has.
    pub marks: U32,
    /// Which paths are [asked](Asked) for.
    pub asked: U32,
    /// 1 if only those are told apart, by sums of their own; 0 if counters are those of numbers.
    pub selective: U32,
    /// The first of the numbers that name paths.
    pub named: U32,
    /// How many numbers do.
    pub names: U32,
}

/// Which paths of a function are asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u32)]
pub enum Asked {
    /// All.
    All = 0,
    /// Those that are named.
    Named = 1,
    /// All but those that are named.
    Others = 2,
}

impl Asked {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::All, Self::Named, Self::Others];
}

impl Function {
    /// Which paths are asked for.
    #[must_use]
    pub fn asked(&self) -> Option<Asked> {
        let asked = self.asked.get();
        Asked::ALL.into_iter().find(|each| *each as u32 == asked)
    }

    /// Whether only the paths asked for are told apart.
    #[must_use]
    pub fn is_selective(&self) -> bool {
        self.selective.get() != 0
    }
}

/// What happens to paths at an edge or a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct Mark {
    /// The block that the edge leaves, as the module states it.
    pub from: U64,
    /// The block that it enters, and in the highest bit whether it is the way of a branch that is not taken; 0 for a block.
    pub to: U64,
    /// A [`MarkKind`].
    pub kind: U32,
    /// Nothing.
    pub reserved: U32,
}

/// A function whose paths are not counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct Left {
    /// Its entry, as the module states it.
    pub entry: U64,
    /// A [`Reason`].
    pub reason: U32,
    /// Nothing.
    pub reserved: U32,
}

/// What happens to paths.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u32)]
pub enum MarkKind {
    /// A path ends with the edge, beside those that lead back; another starts behind it.
    Broken = 1,
    /// A path ends in front of the edge; another is counted as started behind it, if it comes there.
    Ends = 2,
    /// A path ends in front of the edge, and another is certain to start behind it: it is not counted as started.
    GoesOn = 3,
    /// A path that comes along the edge is cut; another is counted as started behind it.
    Cuts = 4,
    /// No path ends in the block, though the graph ends there: control does not come back from it.
    Dead = 5,
    /// The block is not followed: paths end in front of it, and start behind it.
    Unfollowed = 6,
}

/// Why paths are not counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u32)]
pub enum Reason {
    /// Too little is known of the function.
    NotExact = 1,
    /// Another function jumps into its middle.
    Entered = 2,
    /// A place where something must be done cannot be moved, nor has it room for a jump.
    NoPlace = 3,
    /// It is not known where on the stack its frame is.
    NoFrame = 4,
    /// Too many paths start at one block.
    TooMany = 5,
    /// Nobody asked for it.
    NotChosen = 6,
    /// Of what was asked for nothing is left: earlier runs have seen all its paths.
    AllSeen = 7,
}

impl MarkKind {
    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::Broken,
        Self::Ends,
        Self::GoesOn,
        Self::Cuts,
        Self::Dead,
        Self::Unfollowed,
    ];
}

impl Reason {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::NotExact,
        Self::Entered,
        Self::NoPlace,
        Self::NoFrame,
        Self::TooMany,
        Self::NotChosen,
        Self::AllSeen,
    ];

    /// In words.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Self::NotExact => "too little is known of them",
            Self::Entered => "others jump into their middle",
            Self::NoPlace => "there is no room where something must be done",
            Self::NoFrame => "it is not known where on the stack their frames are",
            Self::TooMany => "too many paths start at one block",
            Self::NotChosen => "nobody asked for them",
            Self::AllSeen => "earlier runs have seen all their paths",
        }
    }
}

impl Mark {
    /// A mark.
    #[must_use]
    pub fn of(kind: MarkKind, from: u64, to: u64) -> Self {
        Self {
            from: from.into(),
            to: to.into(),
            kind: (kind as u32).into(),
            ..Self::new_zeroed()
        }
    }

    /// What happens.
    #[must_use]
    pub fn kind(&self) -> Option<MarkKind> {
        let kind = self.kind.get();
        MarkKind::ALL.into_iter().find(|each| *each as u32 == kind)
    }
}

impl Left {
    /// A function that is left out.
    #[must_use]
    pub fn of(entry: u64, reason: Reason) -> Self {
        Self {
            entry: entry.into(),
            reason: (reason as u32).into(),
            ..Self::new_zeroed()
        }
    }

    /// Why.
    #[must_use]
    pub fn reason(&self) -> Option<Reason> {
        let reason = self.reason.get();
        Reason::ALL.into_iter().find(|each| *each as u32 == reason)
    }
}

/// The header of a file of paths.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct Paths {
    preamble: Preamble,
    /// The module whose paths are counted.
    pub module: ModuleId,
    /// Version of the analysis that the blocks come from.
    pub analysis: U32,
    /// How many functions.
    pub functions: U32,
    /// How many marks.
    pub marks: U32,
    /// How many functions are left out.
    pub left: U32,
    /// How many numbers that name paths.
    pub named: U32,
    /// How many counters.
    pub counters: U32,
    /// How many bytes into each slab they start.
    pub at: U32,
    /// Checksum of all that follows.
    pub rows_checksum: U64,
}

impl Header for Paths {
    const MAGIC: [u8; 8] = *b"TOMOPTH\n";
    const VERSION: u32 = 2;

    fn preamble(&mut self) -> &mut Preamble {
        &mut self.preamble
    }
}

/// What a file of paths says.
#[derive(Clone, Copy, Debug, Default)]
pub struct Rows<'f> {
    /// Functions whose paths are counted, by entry.
    pub functions: &'f [Function],
    /// The marks of all, by function.
    pub marks: &'f [Mark],
    /// Functions whose paths are not.
    pub left: &'f [Left],
    /// The numbers that name paths, by function; those of each ascend.
    pub named: &'f [U32],
}

impl<'f> Rows<'f> {
    fn checksum(&self) -> u64 {
        let parts = [
            checksum(self.functions.as_bytes()),
            checksum(self.marks.as_bytes()),
            checksum(self.left.as_bytes()),
            checksum(self.named.as_bytes()),
        ];
        checksum(parts.map(U64::new).as_bytes())
    }

    /// The marks of a function.
    #[must_use]
    pub fn marks_of(&self, function: &Function) -> &'f [Mark] {
        let start = function.mark.get() as usize;
        let end = start.saturating_add(function.marks.get() as usize);
        self.marks.get(start..end).unwrap_or_default()
    }

    /// The numbers of the paths that are named in a function.
    #[must_use]
    pub fn named_of(&self, function: &Function) -> &'f [U32] {
        let start = function.named.get() as usize;
        let end = start.saturating_add(function.names.get() as usize);
        self.named.get(start..end).unwrap_or_default()
    }

    /// The units of the paths of the function at this place among all: its counters, less those that count starts.
    #[must_use]
    pub fn units_of(&self, at: usize) -> core::ops::Range<u32> {
        let Some(function) = self.functions.get(at) else {
            return 0..0;
        };
        let first = function.first.get().saturating_sub(at as u32);
        first..first.saturating_add(function.numbers.get())
    }

    /// Whether each function's row says what may be said of paths asked for.
    fn ask_well(&self) -> bool {
        let mut named = 0u64;
        self.functions.iter().all(|function| {
            let fits = u64::from(function.named.get()) == named;
            named += u64::from(function.names.get());
            let names = self.named_of(function);
            let ascend = names.windows(2).all(|two| two[0].get() < two[1].get());
            let are_all = function.asked() == Some(Asked::All);
            let sound = !are_all || (names.is_empty() && !function.is_selective());
            fits && ascend && sound && function.asked().is_some() && function.selective.get() < 2
        }) && named == self.named.len() as u64
    }
}

impl Paths {
    /// The header of these, the counters of which start `at` bytes into each slab.
    #[must_use]
    pub fn of(module: ModuleId, analysis: u32, at: u32, counters: u32, rows: &Rows<'_>) -> Self {
        let mut header = Self {
            module,
            analysis: analysis.into(),
            functions: (rows.functions.len() as u32).into(),
            marks: (rows.marks.len() as u32).into(),
            left: (rows.left.len() as u32).into(),
            named: (rows.named.len() as u32).into(),
            counters: counters.into(),
            at: at.into(),
            rows_checksum: rows.checksum().into(),
            ..Self::new_zeroed()
        };
        header.seal();
        header
    }

    /// What names the paths in images and records.
    #[must_use]
    pub fn name(&self) -> u64 {
        checksum(IntoBytes::as_bytes(self))
    }

    /// How many numbers of paths all functions have together. In a fleet these are the units: the numbers of the functions
    /// before, then the path's number in its own; see [`Rows::units_of`].
    #[must_use]
    pub fn paths(&self) -> u32 {
        let starts = self.functions.get();
        self.counters.get().saturating_sub(starts)
    }

    /// Its bytes as they are written to a file, before those of the rows.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        IntoBytes::as_bytes(self)
    }

    /// The paths in `file`.
    ///
    /// # Errors
    /// Where it is none, of another version, cut short or damaged, or contradicts itself.
    pub fn read(file: &[u8]) -> Result<(Self, Rows<'_>), Refusal> {
        let header = <Self as Header>::open(file)?;
        let mut start = size_of::<Self>() as u64;
        let mut next = |count: U32, size: usize| {
            let length = u64::from(count.get()) * size as u64;
            let bytes = part(file, start, length)?;
            start += length;
            Ok(bytes)
        };
        let functions = next(header.functions, size_of::<Function>())?;
        let marks = next(header.marks, size_of::<Mark>())?;
        let left = next(header.left, size_of::<Left>())?;
        let named = next(header.named, size_of::<U32>())?;
        let rows = Rows {
            functions: <[Function]>::ref_from_bytes(functions)
                .map_err(|_| Refusal::Inconsistent)?,
            marks: <[Mark]>::ref_from_bytes(marks).map_err(|_| Refusal::Inconsistent)?,
            left: <[Left]>::ref_from_bytes(left).map_err(|_| Refusal::Inconsistent)?,
            named: <[U32]>::ref_from_bytes(named).map_err(|_| Refusal::Inconsistent)?,
        };
        if rows.checksum() != header.rows_checksum.get() {
            return Err(Refusal::Damaged);
        }
        match header.is_consistent(&rows) {
            true => Ok((header, rows)),
            false => Err(Refusal::Inconsistent),
        }
    }

    /// Whether counters and marks are where they are said to be, and no two functions share any.
    fn is_consistent(&self, rows: &Rows<'_>) -> bool {
        let (mut counter, mut mark) = (0u64, 0u64);
        let follows = rows.functions.iter().all(|function| {
            let fits = u64::from(function.first.get()) == counter
                && u64::from(function.mark.get()) == mark;
            counter += 1 + u64::from(function.numbers.get());
            mark += u64::from(function.marks.get());
            fits
        });
        follows
            && counter == u64::from(self.counters.get())
            && mark == rows.marks.len() as u64
            && rows
                .functions
                .is_sorted_by_key(|function| function.entry.get())
            && rows.marks.iter().all(|mark| mark.kind().is_some())
            && rows.left.iter().all(|left| left.reason().is_some())
            && rows.ask_well()
    }
}
