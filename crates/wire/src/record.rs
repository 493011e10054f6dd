//! The record: what the probes of one image saw, in one run or in all runs of a pool.
//!
//! A header page, then a byte for each probe, in whole pages. The agent maps all of it shared, so
//! what is recorded is in the file at once and outlives the process, however it ends. The header
//! has a part that never changes, which its checksum covers, and a [`Live`] part of counters that
//! processes change while they run; no two of these need to agree, so none can be torn.

use core::mem::{offset_of, size_of};

use zerocopy::little_endian::{I64, U32, U64};
use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes, KnownLayout};

use crate::door::{Header, Preamble, Refusal, part};
use crate::{ModuleId, PAGE, pages};

/// What the name of a record ends with. That of a single process has the process before it: what
/// `STEM.record` is for all, `STEM.PROCESS.record` is for one of them, or `STEM.PROCESS-2.record` where an
/// earlier one had the same number.
pub const ENDING: &str = ".record";

/// The part of a record's name, without [`ENDING`], that names module and plan.
#[must_use]
pub fn stem_of(name: &str) -> &str {
    let is_process = |text: &str| {
        let mut numbers = text.splitn(2, '-');
        numbers.all(|number| !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit()))
    };
    match name.rsplit_once('.') {
        Some((stem, process)) if is_process(process) => stem,
        _ => name,
    }
}

/// Where the marks start in a record's file.
pub const MARKS: u64 = PAGE;

/// What of a record never changes.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct Record {
    preamble: Preamble,
    /// The module that is observed.
    pub module: ModuleId,
    /// Names the plan: its checksum.
    pub plan: U64,
    /// Which run it belongs to, a random number; 0 for the record of a pool.
    pub run: [u8; 16],
    /// When it was made, in nanoseconds since 1970.
    pub created: I64,
    /// Probes, and so marks.
    pub probes: U32,
    /// The process whose own record it is, or 0 where processes share it.
    pub process: U32,
}

/// Where the part that changes is in a record's file.
pub const LIVE: u64 = 1024;

/// What processes change while they run; each field by itself.
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct Live {
    /// Processes that were armed.
    pub armed: U64,
    /// Processes that were not, though they should have been.
    pub refused: U64,
    /// Why the last of these was not: a [`Reason`].
    pub reason: U32,
    /// The system's error number that goes with the reason, or 0.
    pub errno: U32,
    /// Traps of probes that were handled.
    pub traps: U64,
    /// Traps that were not of probes, and were passed on.
    pub foreign_traps: U64,
    /// Process that was armed last.
    pub process: U64,
    /// How the run ended: 0 not yet or unknown, 1 by itself, 2 by a signal. Written by the launcher.
    pub outcome: U32,
    /// The exit code or the signal.
    pub status: U32,
    /// In the record of a single process: when that was started, in the system's ticks since it runs, and in the upper half the number of
    /// its process namespace. Tells it from others that have its number, or had it before; 0 where the system does not say.
    pub identity: U64,
    /// The checksum of the trap table that a process found sound when it was armed, or 0: those who come later do
    /// not go through all of the table once more.
    pub sound: U64,
    /// Programs that were started in an environment in which the agent is not loaded.
    pub without: U64,
    /// The checksum of the [stamp](crate::FileStamp) of a file that is no longer as it was when the image was made, and that a
    /// process found to have the same text, or 0: those who come later do not read it once more.
    pub file: U64,
    /// Why any process was not armed: a bit for each [`Reason`], by its number.
    pub reasons: U64,
    /// In the record of a single process: 1 if it was forked, so that it began in the midst of functions; 0 if it began
    /// at its program's start.
    pub forked: U64,
}

/// Why a process was not armed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Reason {
    /// The image could not be opened.
    NoImage = 1,
    /// The image belongs to somebody else, or others may write it.
    ImageNotPrivate = 2,
    /// The image is not what this agent knows: damaged, cut short or of another version.
    ImageRefused = 3,
    /// The module in memory is not the one the image was made for.
    ModuleChanged = 4,
    /// The record could not be opened.
    NoRecord = 5,
    /// The record does not belong to the image.
    RecordRefused = 6,
    /// The memory that trampolines need at a fixed distance from the text is taken.
    NoRoom = 7,
    /// The system would not map the image.
    NotMapped = 8,
    /// The module is not loaded as the image expects: its text is not where its headers say.
    OtherLayout = 9,
    /// The program runs with raised privileges.
    Privileged = 10,
    /// Somebody traces the program who takes the traps of probes for his own.
    Traced = 11,
    /// A process that was forked could not have a record of its own, and adds to that of its parent.
    NotSeparate = 12,
    /// There are no slabs for its counters.
    NoSlab = 13,
    /// The program runs in an emulator that would not see its code change.
    Emulated = 14,
    /// The program's loader does not tell of modules that are loaded later.
    Unannounced = 15,
    /// The program makes its own text writable, to change it, or moves it to other memory.
    Patched = 16,
    /// Threads were there before the agent's start, which runs first unless another library asks for the same.
    Early = 17,
    /// The module's file was touched since its image was made, and it has no build id that would tell whether it is another one.
    Touched = 18,
    /// The module is an agent, this one or another: what observes.
    Agent = 19,
    /// The program is linked statically, and nobody could attend to its start.
    Unattended = 20,
    /// A module of the program sets the base of `gs`, by which probes that stay find what they write.
    Segment = 21,
    /// More modules were loaded, or more often at other places, than are remembered.
    TooMany = 22,
}

impl Reason {
    /// The reason with this number.
    #[must_use]
    pub fn from_number(number: u32) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|reason| *reason as u32 == number)
    }

    /// All reasons.
    pub const ALL: [Self; 22] = [
        Self::NoImage,
        Self::ImageNotPrivate,
        Self::ImageRefused,
        Self::ModuleChanged,
        Self::NoRecord,
        Self::RecordRefused,
        Self::NoRoom,
        Self::NotMapped,
        Self::OtherLayout,
        Self::Privileged,
        Self::NoSlab,
        Self::Traced,
        Self::NotSeparate,
        Self::Emulated,
        Self::Unannounced,
        Self::Patched,
        Self::Early,
        Self::Touched,
        Self::Agent,
        Self::Unattended,
        Self::Segment,
        Self::TooMany,
    ];

    /// Its bit in [`Live::reasons`].
    #[must_use]
    pub const fn bit(self) -> u64 {
        1 << self as u32
    }

    /// What happened, in words.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Self::NoImage => "its image could not be opened",
            Self::ImageNotPrivate => "its image belongs to somebody else, or others may write it",
            Self::ImageRefused => "its image is damaged or of another version",
            Self::ModuleChanged => "the module in memory is not the one its image was made for",
            Self::NoRecord => "its record could not be opened",
            Self::RecordRefused => "its record does not belong to its image",
            Self::NoRoom => "the memory that its trampolines need is taken",
            Self::NotMapped => "the system would not map its image",
            Self::OtherLayout => "the module is not loaded as its headers say",
            Self::Privileged => "the program runs with raised privileges",
            Self::NoSlab => "there is no memory for its counters",
            Self::Traced => {
                "it runs under a debugger or another tracer, which would take the probes' traps for its own"
            }
            Self::Unannounced => {
                "the program's loader does not tell of modules that are loaded later"
            }
            Self::Patched => "the program changed or moved its own text, and has had it back since",
            Self::Emulated => {
                "it runs in Valgrind or another emulator, which would not see its code change"
            }
            Self::Touched => {
                "its file was touched since its image was made, and it has no build id; observe it anew"
            }
            Self::Agent => "it is tomo's own agent, which observes",
            Self::Unattended => {
                "it is statically linked, so it is stopped at its start (ptrace), which the system did not allow"
            }
            Self::Segment => {
                "a module of the program sets the segment register gs, by which the probes of this command find what they write"
            }
            Self::TooMany => {
                "the program loads more libraries, or one at more places, than are remembered"
            }
            Self::Early => "another library starts threads before the agent can begin",
            Self::NotSeparate => "it could have no record of its own, and adds to its parent's",
        }
    }
}

/// What a record tells of processes that were not armed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Refusals {
    /// How many there were.
    pub count: u64,
    /// Why the last was not: a [`Reason`].
    pub last: u32,
    /// The system's error number that goes with that, or 0.
    pub errno: u32,
    /// Why any was not, as in [`Live::reasons`].
    pub reasons: u64,
}

impl Refusals {
    /// Those of a record.
    #[must_use]
    pub fn of(live: &Live) -> Self {
        Self {
            count: live.refused.get(),
            last: live.reason.get(),
            errno: live.errno.get(),
            reasons: live.reasons.get(),
        }
    }

    /// All reasons that are known; records of before know the last.
    pub fn reasons(self) -> impl Iterator<Item = Reason> {
        let last = Reason::from_number(self.last).map_or(0, Reason::bit);
        let all = Reason::ALL.into_iter();
        all.filter(move |reason| (self.reasons | last) & reason.bit() != 0)
    }

    /// How many processes there were, of which so many were armed, if that can be told: those that have their text back
    /// were armed before, as may those have been that loaded too much, and those that add to their parent's record were armed by another one.
    #[must_use]
    pub fn processes(self, armed: u64) -> Option<u64> {
        let is_only = |one| self.reasons().all(|reason| reason == one) && self.last != 0;
        let has = |one| self.reasons().any(|reason| reason == one);
        match is_only(Reason::Patched) {
            true => Some(armed.max(self.count)),
            false
                if [Reason::Patched, Reason::NotSeparate, Reason::TooMany]
                    .into_iter()
                    .any(has) =>
            {
                None
            }
            false => Some(armed.saturating_add(self.count)),
        }
    }
}

impl Header for Record {
    const MAGIC: [u8; 8] = *b"TOMOREC\n";
    const VERSION: u32 = 1;

    fn preamble(&mut self) -> &mut Preamble {
        &mut self.preamble
    }
}

const _: () = assert!(size_of::<Record>() as u64 <= LIVE);
const _: () = assert!(LIVE + size_of::<Live>() as u64 <= MARKS);

/// A record whose header and length agree.
#[derive(Clone, Copy, Debug)]
pub struct RecordView<'f> {
    /// What never changes.
    pub header: Record,
    /// What changed until now.
    pub live: Live,
    /// For each probe: 0, or not 0 if it was hit.
    pub marks: &'f [u8],
}

impl Record {
    /// The record of one run (or of a pool: 0) of `module` under the plan with this checksum.
    #[must_use]
    pub fn of(module: ModuleId, plan: u64, probes: u32, run: [u8; 16], created: i64) -> Self {
        Self {
            module,
            plan: plan.into(),
            run,
            created: created.into(),
            probes: probes.into(),
            ..Self::new_zeroed()
        }
    }

    /// The same for what one process alone adds.
    #[must_use]
    pub fn of_process(self, process: u32) -> Self {
        Self {
            process: process.into(),
            ..self
        }
    }

    /// Its header as it is written to a file.
    #[must_use]
    pub fn sealed(mut self) -> [u8; size_of::<Self>()] {
        self.seal();
        zerocopy::transmute!(self)
    }

    /// Bytes of its file.
    #[must_use]
    pub fn length(&self) -> u64 {
        MARKS + pages(u64::from(self.probes.get())).unwrap_or(0)
    }

    /// The header of a record's file that has `length` bytes and starts with `bytes`.
    ///
    /// # Errors
    /// Where it is no record, of another version, cut short or damaged.
    pub fn read(bytes: &[u8], length: u64) -> Result<Self, Refusal> {
        let record = <Self as Header>::open(bytes)?;
        let promised = record.length();
        if length < promised {
            return Err(Refusal::CutShort { length, promised });
        }
        Ok(record)
    }
}

impl Live {
    /// What changes, of a record's file that starts with `bytes`.
    ///
    /// # Errors
    /// Where it is cut short.
    pub fn read(bytes: &[u8]) -> Result<Self, Refusal> {
        let live = part(bytes, LIVE, size_of::<Self>() as u64)?;
        Self::read_from_bytes(live).map_err(|_| Refusal::Inconsistent)
    }
}

impl<'f> RecordView<'f> {
    /// The record in `file`.
    ///
    /// # Errors
    /// As for [`Record::read`].
    pub fn read(file: &'f [u8]) -> Result<Self, Refusal> {
        let header = Record::read(file, file.len() as u64)?;
        Ok(Self {
            header,
            live: Live::read(file)?,
            marks: part(file, MARKS, header.probes.get().into())?,
        })
    }
}

/// Where a field of [`Live`] is in a record's file.
#[must_use]
pub const fn live_offset(field: Field) -> u64 {
    let within = match field {
        Field::Armed => offset_of!(Live, armed),
        Field::Refused => offset_of!(Live, refused),
        Field::Reason => offset_of!(Live, reason),
        Field::Errno => offset_of!(Live, errno),
        Field::Traps => offset_of!(Live, traps),
        Field::ForeignTraps => offset_of!(Live, foreign_traps),
        Field::Process => offset_of!(Live, process),
        Field::Identity => offset_of!(Live, identity),
        Field::Sound => offset_of!(Live, sound),
        Field::Without => offset_of!(Live, without),
        Field::File => offset_of!(Live, file),
        Field::Reasons => offset_of!(Live, reasons),
        Field::Forked => offset_of!(Live, forked),
    };
    LIVE + within as u64
}

/// The fields of [`Live`] that the agent changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Field {
    /// [`Live::armed`].
    Armed,
    /// [`Live::refused`].
    Refused,
    /// [`Live::reason`].
    Reason,
    /// [`Live::errno`].
    Errno,
    /// [`Live::traps`].
    Traps,
    /// [`Live::foreign_traps`].
    ForeignTraps,
    /// [`Live::process`].
    Process,
    /// [`Live::identity`].
    Identity,
    /// [`Live::sound`].
    Sound,
    /// [`Live::without`].
    Without,
    /// [`Live::file`].
    File,
    /// [`Live::reasons`].
    Reasons,
    /// [`Live::forked`].
    Forked,
}
