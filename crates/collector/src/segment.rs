//! The form of what is logged: immutable objects of frames.
//!
//! | bytes | what |
//! |---|---|
//! | 8 | `TOMOSEG\n` |
//! | 4 | version of the form |
//! | 4 | reserved, 0 |
//! | 16 | the campaign |
//!
//! Then frames, each of them
//!
//! | bytes | what |
//! |---|---|
//! | 8 | checksum of all that follows in the frame |
//! | 4 | bytes of the payload |
//! | 4 | kind |
//! | 8 | when it was accepted, nanoseconds since 1970 by the collector's clock |
//! | … | payload |
//!
//! | kind | payload |
//! |---|---|
//! | 1 | a report (`tomo_wire::report`), as it was received |
//! | 2 | an assignment: instance (16), variant (4), reserved (4) |
//! | 3 | all that is known of one instance: its name (16), then the state in postcard's form |
//! | 5 | what a search decided: an edition in postcard's form |
//! | 4 | the end: how many frames there were before it (8) |
//!
//! An object that a crash has cut, or that a disk has damaged, is used as far as its frames are whole:
//! frames do not depend on each other. What comes after a frame that cannot be read is lost, and said
//! to be. All numbers are little-endian.

use std::mem::size_of;

use tomo_protocol::{CampaignId, InstanceId};
use tomo_wire::checksum;
use tomo_wire::report::ReportView;
use zerocopy::little_endian::{I64, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::hunt::Edition;
use crate::state::Instance;

const MAGIC: [u8; 8] = *b"TOMOSEG\n";
/// Version of the form. It changes with the form of [`Instance`], too.
const VERSION: u32 = 3;

#[derive(Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct Head {
    magic: [u8; 8],
    version: U32,
    reserved: U32,
    campaign: [u8; 16],
}

#[derive(Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct FrameHead {
    checksum: U64,
    length: U32,
    kind: U32,
    at: I64,
}

#[derive(Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct Assigned {
    instance: [u8; 16],
    variant: U32,
    reserved: U32,
}

const REPORT: u32 = 1;
const ASSIGNMENT: u32 = 2;
const INSTANCE: u32 = 3;
const END: u32 = 4;
const EDITION: u32 = 5;

/// Why an object, or the rest of one, is not used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Damage {
    /// It is none of ours.
    #[error("it is no segment")]
    Foreign,
    /// It was written by another version.
    #[error("it has format version {0}, and this program knows version {VERSION}")]
    Version(u32),
    /// It belongs to another campaign than its place says.
    #[error("it belongs to another campaign")]
    Misplaced,
    /// It ends too early.
    #[error("it is cut short after {0} frames")]
    CutShort(u64),
    /// A frame does not match its checksum, or holds what it should not.
    #[error("it is damaged behind {0} frames")]
    Damaged(u64),
}

/// One entry.
#[expect(
    clippy::large_enum_variant,
    reason = "nearly all are reports, and there is one at a time"
)]
#[derive(Debug)]
pub enum Entry<'b> {
    /// A report.
    Report(ReportView<'b>),
    /// An instance was assigned a variant.
    Assignment(InstanceId, u32),
    /// All that is known of an instance.
    Instance(InstanceId, Box<Instance>),
    /// What a search decided.
    Edition(Edition),
}

/// An object in the making.
#[derive(Debug)]
pub struct Writer {
    bytes: Vec<u8>,
    frames: u64,
}

impl Writer {
    /// An object for this campaign.
    #[must_use]
    pub fn new(campaign: CampaignId) -> Self {
        let head = Head {
            magic: MAGIC,
            version: VERSION.into(),
            reserved: 0.into(),
            campaign: campaign.0,
        };
        Self {
            bytes: head.as_bytes().to_vec(),
            frames: 0,
        }
    }

    /// Adds a report, its bytes as they were received.
    pub fn report(&mut self, bytes: &[u8], at: i64) {
        self.frame(REPORT, at, &[bytes]);
    }

    /// Adds an assignment.
    pub fn assignment(&mut self, instance: InstanceId, variant: u32, at: i64) {
        let assigned = Assigned {
            instance: instance.0,
            variant: variant.into(),
            reserved: 0.into(),
        };
        self.frame(ASSIGNMENT, at, &[assigned.as_bytes()]);
    }

    /// Adds all that is known of an instance.
    ///
    /// # Errors
    /// Where it cannot be put into bytes, which does not happen.
    pub fn instance(&mut self, id: InstanceId, instance: &Instance) -> Result<(), postcard::Error> {
        let state = postcard::to_stdvec(instance)?;
        self.frame(INSTANCE, 0, &[&id.0, &state]);
        Ok(())
    }

    /// Adds what a search decided.
    ///
    /// # Errors
    /// As [`Self::instance`].
    pub fn edition(&mut self, edition: &Edition, at: i64) -> Result<(), postcard::Error> {
        let bytes = postcard::to_stdvec(edition)?;
        self.frame(EDITION, at, &[&bytes]);
        Ok(())
    }

    fn frame(&mut self, kind: u32, at: i64, parts: &[&[u8]]) {
        let length: usize = parts.iter().map(|part| part.len()).sum();
        let start = self.bytes.len();
        let head = FrameHead {
            checksum: 0.into(),
            length: (length as u32).into(),
            kind: kind.into(),
            at: at.into(),
        };
        self.bytes.extend(head.as_bytes());
        parts.iter().for_each(|part| self.bytes.extend(*part));
        let covered = start + size_of::<U64>();
        let sum = checksum(&self.bytes[covered..]).to_le_bytes();
        self.bytes[start..covered].copy_from_slice(&sum);
        self.frames += 1;
    }

    /// The object.
    #[must_use]
    pub fn finish(mut self) -> Vec<u8> {
        let frames = self.frames.to_le_bytes();
        self.frame(END, 0, &[&frames]);
        self.bytes
    }

    /// How many bytes there are so far.
    #[must_use]
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Whether there is no entry so far.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.frames == 0
    }
}

/// Gives every entry of an object and when it was accepted, in order, to `take`.
///
/// # Errors
/// Where the object, or the rest of it, cannot be used; what came before has been taken.
pub fn read(
    bytes: &[u8],
    campaign: CampaignId,
    mut take: impl FnMut(Entry<'_>, i64),
) -> Result<(), Damage> {
    let (head, mut rest) = Head::read_from_prefix(bytes).map_err(|_| Damage::Foreign)?;
    if head.magic != MAGIC {
        return Err(Damage::Foreign);
    }
    if head.version.get() != VERSION {
        return Err(Damage::Version(head.version.get()));
    }
    if head.campaign != campaign.0 {
        return Err(Damage::Misplaced);
    }
    for frames in 0.. {
        let (head, payload, behind) = frame(rest, frames)?;
        rest = behind;
        if head.kind.get() == END {
            let counted = U64::read_from_bytes(payload).is_ok_and(|count| count.get() == frames);
            return counted.then_some(()).ok_or(Damage::Damaged(frames));
        }
        let entry = entry(head.kind.get(), payload).ok_or(Damage::Damaged(frames))?;
        take(entry, head.at.get());
    }
    Ok(())
}

/// The first frame of `bytes`, its payload, and what is behind it.
fn frame(bytes: &[u8], frames: u64) -> Result<(FrameHead, &[u8], &[u8]), Damage> {
    let cut = Damage::CutShort(frames);
    let (head, rest) = FrameHead::read_from_prefix(bytes).map_err(|_| cut.clone())?;
    let (payload, behind) = rest
        .split_at_checked(head.length.get() as usize)
        .ok_or(cut)?;
    let covered = &bytes[size_of::<U64>()..size_of::<FrameHead>() + payload.len()];
    if checksum(covered) != head.checksum.get() {
        return Err(Damage::Damaged(frames));
    }
    Ok((head, payload, behind))
}

fn entry(kind: u32, payload: &[u8]) -> Option<Entry<'_>> {
    match kind {
        REPORT => {
            let (report, rest) = ReportView::read(payload).ok()?;
            rest.is_empty().then_some(Entry::Report(report))
        }
        ASSIGNMENT => {
            let assigned = Assigned::read_from_bytes(payload).ok()?;
            let instance = InstanceId(assigned.instance);
            Some(Entry::Assignment(instance, assigned.variant.get()))
        }
        EDITION => Some(Entry::Edition(postcard::from_bytes(payload).ok()?)),
        INSTANCE => {
            let (id, state) = payload.split_first_chunk()?;
            let state: Instance = postcard::from_bytes(state).ok()?;
            let sound = state.is_sound();
            sound.then(|| Entry::Instance(InstanceId(*id), Box::new(state)))
        }
        _ => None,
    }
}
