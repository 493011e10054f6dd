//! The report: one run's word to the collector of the fleet.
//!
//! A header, then the units that the run has hit so far, as ascending numbers, then, where the campaign counts, how often
//! it has hit each, then the [chains](Link) of calls that it has noted, then the frames of a crash, if there was one. A report is
//! *cumulative*: a later one of the same run (its sequence is higher) says all that an earlier one
//! said, so that any of them may be lost, come twice, or come in another order. It says how long
//! it is, so a body of several is one after the other.
//!
//! It holds counters and places in the program, and nothing of the user: no arguments, no paths, no environment,
//! no part of the memory. The clock of
//! the instance is in it for people to read; nothing is computed with it.

use core::mem::size_of;

use zerocopy::little_endian::{I64, U32, U64};
use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes, KnownLayout};

use crate::chains::Way;
use crate::checksum;
use crate::door::{Header, Preamble, Refusal, part};

/// Units of one report at most: as many as one campaign may have.
pub const MOST_HITS: u32 = 1 << 24;

/// Frames of one report at most.
pub const MOST_FRAMES: u32 = 32;
/// Bytes of a build id that a frame holds.
pub const LONGEST_ID: usize = 32;

/// A frame of a crash: code of a module of the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct Frame {
    /// The instruction, as the module states it.
    pub address: U64,
    id_length: U32,
    reserved: U32,
    id: [u8; LONGEST_ID],
}

impl Frame {
    /// Code at this stated address of the module with this build id, as far as that is kept.
    #[must_use]
    pub fn of(build_id: &[u8], address: u64) -> Self {
        let mut id = [0; LONGEST_ID];
        let mut length = 0_u32;
        for (to, from) in id.iter_mut().zip(build_id) {
            *to = *from;
            length += 1;
        }
        Self {
            address: address.into(),
            id_length: length.into(),
            reserved: 0.into(),
            id,
        }
    }

    /// The build id of the module; empty where it is not known.
    #[must_use]
    pub fn build_id(&self) -> &[u8] {
        let length = self.id_length.get() as usize;
        self.id.get(..length).unwrap_or_default()
    }
}

/// Chains of one report at most.
pub const MOST_LINKS: u32 = 1 << 18;
/// The unit of a chain that stands for all those for which there was no room.
pub const NO_ROOM: u32 = u32::MAX;

/// A chain of calls: that of its parent, and one function more. What way and site are say the trees of threads
/// ([`crate::chains`]); nothing is concluded from them before somebody reads them who has the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct Link {
    /// The number of a chain before it, counted from 1; 0 if there is none above.
    pub parent: U32,
    /// How the function was entered: a [`Way`].
    pub way: U32,
    /// From where.
    pub site: U32,
    /// The function, as a unit of the campaign, or [`NO_ROOM`].
    pub unit: U32,
    /// How often.
    pub calls: U64,
}

impl Link {
    /// Whether it may be the one behind so many others.
    fn is_sound(&self, before: u32) -> bool {
        let is_lost = self.unit.get() == NO_ROOM;
        match Way::from_number(self.way.get()) {
            Some(_) => self.parent.get() <= before && !is_lost,
            None => is_lost && self.way.get() == 0 && self.parent.get() == 0,
        }
    }
}

/// What a program itself told of how a run went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Told {
    /// Nothing.
    Nothing = 0,
    /// It was a success.
    Success = 1,
    /// It was a failure.
    Failure = 2,
}

impl Told {
    /// The one with this number.
    #[must_use]
    pub fn from_number(number: u32) -> Option<Self> {
        [Self::Nothing, Self::Success, Self::Failure]
            .into_iter()
            .find(|told| *told as u32 == number)
    }
}

/// The header of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct Report {
    preamble: Preamble,
    /// The campaign it is for.
    pub campaign: [u8; 16],
    /// The installation that ran the program: a random number, drawn once.
    pub instance: [u8; 16],
    /// Names the plans of the campaign: see [`name_of_plans`].
    pub plans: U64,
    /// Number of the run within the instance, from 1; never given twice.
    pub run: U64,
    /// Grows with each report of the run.
    pub sequence: U32,
    /// The variant that the run carried.
    pub variant: U32,
    /// When the run began, in nanoseconds since 1970 by the instance's clock. Information only.
    pub started: I64,
    /// How long it has run so far, in nanoseconds.
    pub duration: U64,
    /// Processor time of the program so far, in nanoseconds; 0 where it is not known.
    pub cpu: U64,
    /// Processes that were armed, of all modules.
    pub armed: U64,
    /// Processes that were not, though they should have been.
    pub refused: U64,
    /// Why the last of these was not: a [`Reason`](crate::record::Reason), or 0.
    pub reason: U32,
    /// The system's error number that goes with the reason, or 0.
    pub errno: U32,
    /// How the run ended: an [`Outcome`].
    pub outcome: U32,
    /// The exit code or the signal.
    pub status: U32,
    /// Reports of earlier runs that this instance had to drop because its spool was full, in all.
    pub dropped: U32,
    /// Those that it dropped as they were damaged on its disk, or refused for good.
    pub unfit: U32,
    /// The version of tomo, as text, filled up with zeros.
    pub version: [u8; 16],
    /// What the program itself told of how it went: a [`Told`].
    pub told: U32,
    /// The signal of the crash, or 0.
    pub signal: U32,
    /// Names the cause of a failure that the program told, or 0: a checksum of its words, which stay where they
    /// are.
    pub cause: U64,
    /// Units that were hit.
    pub hits: U32,
    /// Frames of the crash.
    pub frames: U32,
    /// Counts: as many as units, or none.
    pub counts: U32,
    /// Chains.
    pub links: U32,
    /// Checksum of units, counts, chains and frames.
    pub body_checksum: U64,
}

/// How many rows of each kind follow the header of a report.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Follows {
    /// Units, ascending without repetition.
    pub hits: u32,
    /// How often each was hit, at least once: for all of them, or for none.
    pub counts: u32,
    /// Chains.
    pub links: u32,
    /// Frames.
    pub frames: u32,
}

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Outcome {
    /// It has not ended.
    Running = 0,
    /// By itself, with an exit code.
    Exited = 1,
    /// By a signal.
    Signal = 2,
    /// Nobody saw it: it was found to have ended.
    Unseen = 3,
}

impl Outcome {
    /// All outcomes.
    pub const ALL: [Self; 4] = [Self::Running, Self::Exited, Self::Signal, Self::Unseen];

    /// The outcome with this number.
    #[must_use]
    pub fn from_number(number: u32) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|outcome| *outcome as u32 == number)
    }

    /// Whether no more is to come of the run.
    #[must_use]
    pub fn is_final(self) -> bool {
        self != Self::Running
    }
}

/// Names the plans of a campaign, in their order: the checksum over their names.
#[must_use]
pub fn name_of_plans(names: &[U64]) -> u64 {
    checksum(names.as_bytes())
}

impl Header for Report {
    const MAGIC: [u8; 8] = *b"TOMORPT\n";
    /// Before 2, nothing was said of outcomes and crashes; before 3, nothing was counted.
    const VERSION: u32 = 3;

    fn preamble(&mut self) -> &mut Preamble {
        &mut self.preamble
    }
}

impl Report {
    /// A report that says nothing yet.
    #[must_use]
    pub fn empty() -> Self {
        Self::new_zeroed()
    }

    /// Its header as it is sent, before `hits`, which ascend without repetition.
    #[must_use]
    pub fn sealed(self, hits: &[U32]) -> [u8; size_of::<Self>()] {
        let follows = Follows {
            hits: hits.len() as u32,
            ..Follows::default()
        };
        self.sealed_over(follows, hits.as_bytes())
    }

    /// Its header before `body`, which is what follows, kind by kind.
    #[must_use]
    pub fn sealed_over(mut self, follows: Follows, body: &[u8]) -> [u8; size_of::<Self>()] {
        self.hits = follows.hits.into();
        self.counts = follows.counts.into();
        self.links = follows.links.into();
        self.frames = follows.frames.into();
        self.body_checksum = checksum(body).into();
        self.seal();
        zerocopy::transmute!(self)
    }

    /// The version of tomo, as far as it is text.
    #[must_use]
    pub fn version(&self) -> &str {
        let end = self.version.iter().position(|byte| *byte == 0);
        let bytes = self.version.get(..end.unwrap_or(self.version.len()));
        core::str::from_utf8(bytes.unwrap_or_default()).unwrap_or("?")
    }

    /// `version` as reports hold it, cut off where it is too long.
    #[must_use]
    pub fn version_of(version: &str) -> [u8; 16] {
        let mut bytes = [0; 16];
        for (to, from) in bytes.iter_mut().zip(version.bytes()) {
            *to = from;
        }
        bytes
    }
}

/// A report whose parts agree.
#[derive(Clone, Copy, Debug)]
pub struct ReportView<'f> {
    /// Its header.
    pub header: Report,
    /// How the run ended.
    pub outcome: Outcome,
    /// What the program itself told.
    pub told: Told,
    /// The units that were hit, ascending.
    pub hits: &'f [U32],
    /// How often each was hit, where that is counted.
    pub counts: &'f [U64],
    /// The chains of calls that it has noted, those above before those below.
    pub links: &'f [Link],
    /// Where it crashed, the innermost frame first.
    pub frames: &'f [Frame],
    /// All its bytes.
    pub bytes: &'f [u8],
}

impl<'f> ReportView<'f> {
    /// The report at the start of `bytes`, and the bytes behind it.
    ///
    /// # Errors
    /// Where there is no report, or one of another version, cut short, damaged, or that contradicts
    /// itself.
    pub fn read(bytes: &'f [u8]) -> Result<(Self, &'f [u8]), Refusal> {
        let header = <Report as Header>::open(bytes)?;
        if header.hits.get() > MOST_HITS
            || header.frames.get() > MOST_FRAMES
            || header.links.get() > MOST_LINKS
            || ![0, header.hits.get()].contains(&header.counts.get())
        {
            return Err(Refusal::Inconsistent);
        }
        let start = size_of::<Report>() as u64;
        let mut size = 0;
        let mut next = |count: U32, row: usize| {
            let length = u64::from(count.get()) * row as u64;
            size += length;
            part(bytes, start + size - length, length)
        };
        let hits = next(header.hits, size_of::<U32>())?;
        let counts = next(header.counts, size_of::<U64>())?;
        let links = next(header.links, size_of::<Link>())?;
        let frames = next(header.frames, size_of::<Frame>())?;
        if checksum(part(bytes, start, size)?) != header.body_checksum.get() {
            return Err(Refusal::Damaged);
        }
        let frames = <[Frame]>::ref_from_bytes(frames).map_err(|_| Refusal::Inconsistent)?;
        let links = <[Link]>::ref_from_bytes(links).map_err(|_| Refusal::Inconsistent)?;
        let counts = <[U64]>::ref_from_bytes(counts).map_err(|_| Refusal::Inconsistent)?;
        let hits = <[U32]>::ref_from_bytes(hits).map_err(|_| Refusal::Inconsistent)?;
        let outcome = Outcome::from_number(header.outcome.get()).ok_or(Refusal::Inconsistent)?;
        let told = Told::from_number(header.told.get()).ok_or(Refusal::Inconsistent)?;
        let ascend = hits.is_sorted_by(|a, b| a.get() < b.get());
        let counted = counts.iter().all(|count| count.get() > 0);
        if !ascend || !counted || !links.iter().zip(0..).all(|(link, at)| link.is_sound(at)) {
            return Err(Refusal::Inconsistent);
        }
        let (bytes, rest) = bytes
            .split_at_checked((start + size) as usize)
            .ok_or(Refusal::Inconsistent)?;
        let view = Self {
            header,
            outcome,
            told,
            hits,
            counts,
            links,
            frames,
            bytes,
        };
        Ok((view, rest))
    }

    /// The reports in `bytes`, one after the other. What cannot be read ends them, for nothing tells
    /// where the next one would begin.
    pub fn all(bytes: &'f [u8]) -> impl Iterator<Item = Result<Self, Refusal>> {
        let mut rest = bytes;
        core::iter::from_fn(move || {
            if rest.is_empty() {
                return None;
            }
            let read = Self::read(rest);
            rest = read.as_ref().map_or(&[], |(_, behind)| *behind);
            Some(read.map(|(report, _)| report))
        })
    }
}
