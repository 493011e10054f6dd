//! The disposals of an image: for each probe, how somebody outside of the program takes it away.
//!
//! A program's own trampolines know how to restore their windows, and the trap table of the
//! [image](crate::image) says it of those at which an `int3` may be met. What has been seen elsewhere is
//! disposed of by somebody who does not run into the probes: in an image that nobody has mapped, or in one
//! that programs are running just now. A file of its own and no part of the image, because whoever
//! only arms an image never reads it, and images are copied for each run.
//!
//! A header, then one [`Disposal`] a probe, in the order of their marks.

use core::mem::size_of;

use zerocopy::little_endian::{U32, U64};
use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes, KnownLayout};

use crate::door::{Header, Preamble, Refusal, part};
use crate::image::Image;
use crate::{ModuleId, checksum};

/// In which steps the bytes are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Manner {
    /// All by one store of 1, 2, 4 or 8 bytes.
    Once = 1,
    /// An `int3` over the first byte, then the bytes behind it, then the first byte.
    Held = 2,
    /// All, somehow, and only where nobody runs: the probe was made to stay.
    Still = 3,
}

impl Manner {
    /// The manner with this number.
    #[must_use]
    pub fn from_number(number: u8) -> Option<Self> {
        [Self::Once, Self::Held, Self::Still]
            .into_iter()
            .find(|manner| *manner as u8 == number)
    }
}

/// How one probe is disposed of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct Disposal {
    /// Where bytes are stored, from the first region's start.
    pub offset: U32,
    /// Where the jump in filling is by way of which the probe leads to its trampoline, from the first
    /// region's start, or 0 if there is none. It stays: whoever took the way to it already is not seen,
    /// and after the probe nothing else leads there.
    pub slot: U32,
    /// In which steps: a [`Manner`].
    pub manner: u8,
    /// How many bytes, 1 to 8.
    pub length: u8,
    reserved: [u8; 2],
    /// The module's bytes there, zeros behind them.
    pub original: [u8; 8],
}

/// What any processor fetches at once, where it is aligned.
const FETCH: u64 = 16;
/// What is stored at once without doubt, where it is aligned.
const WORD: u64 = 8;

impl Disposal {
    /// The disposal that stores `bytes` (at most 8) at `offset`.
    #[must_use]
    pub fn of(manner: Manner, offset: u32, slot: u32, bytes: &[u8]) -> Self {
        let mut original = [0; 8];
        for (to, from) in original.iter_mut().zip(bytes) {
            *to = *from;
        }
        Self {
            offset: offset.into(),
            slot: slot.into(),
            manner: manner as u8,
            length: bytes.len().min(original.len()) as u8,
            reserved: [0; 2],
            original,
        }
    }

    /// In which steps.
    #[must_use]
    pub fn steps(&self) -> Option<Manner> {
        Manner::from_number(self.manner)
    }

    /// The bytes that are stored.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        self.original
            .get(..usize::from(self.length))
            .unwrap_or(&self.original)
    }

    /// Whether what is stored in these steps, there, is never met half: all of it in one word, or in
    /// what is fetched at once. Regions start at pages, so offsets are aligned as addresses are.
    fn is_whole(&self) -> bool {
        let (offset, length) = (u64::from(self.offset.get()), u64::from(self.length));
        let within = |unit: u64| offset % unit + length <= unit;
        match (self.steps(), self.length) {
            (Some(Manner::Once), 1) => true,
            (Some(Manner::Once), 2 | 8) => within(WORD),
            (Some(Manner::Once), 4) => within(FETCH),
            (Some(Manner::Held), 2..=8) => within(FETCH),
            (Some(Manner::Still), 1..=8) => true,
            _ => false,
        }
    }
}

/// The header of a file of disposals.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct Disposals {
    preamble: Preamble,
    /// The module whose image it is about.
    pub module: ModuleId,
    /// Names the image's plan.
    pub plan: U64,
    /// Checksum of the disposals.
    pub checksum: U64,
    /// Probes, and so disposals.
    pub probes: U32,
    reserved: U32,
}

impl Header for Disposals {
    const MAGIC: [u8; 8] = *b"TOMODSP\n";
    const VERSION: u32 = 1;

    fn preamble(&mut self) -> &mut Preamble {
        &mut self.preamble
    }
}

impl Disposals {
    /// The header over the disposals of the probes of a plan, all of them in the order of their marks.
    #[must_use]
    pub fn sealed(module: ModuleId, plan: u64, rows: &[Disposal]) -> [u8; size_of::<Self>()] {
        let mut header = Self {
            module,
            plan: plan.into(),
            checksum: checksum(rows.as_bytes()).into(),
            probes: (rows.len() as u32).into(),
            ..Self::new_zeroed()
        };
        header.seal();
        zerocopy::transmute!(header)
    }
}

/// Disposals that belong to an image.
#[derive(Clone, Copy, Debug)]
pub struct DisposalsView<'f> {
    /// One a probe, in the order of their marks.
    pub rows: &'f [Disposal],
}

impl<'f> DisposalsView<'f> {
    /// The disposals of `image` in `file`. All of them store within one region of the image.
    ///
    /// # Errors
    /// Where it is no such file, of another version, cut short, damaged, or of another image.
    pub fn read(file: &'f [u8], image: &Image) -> Result<Self, Refusal> {
        let header = <Disposals as Header>::open(file)?;
        let size = u64::from(header.probes.get()) * size_of::<Disposal>() as u64;
        let bytes = part(file, size_of::<Disposals>() as u64, size)?;
        if checksum(bytes) != header.checksum.get() {
            return Err(Refusal::Damaged);
        }
        let rows = <[Disposal]>::ref_from_bytes(bytes).map_err(|_| Refusal::Inconsistent)?;
        let same = header.module == image.module
            && header.plan == image.plan
            && header.probes == image.probes;
        let inside = |row: &Disposal| image.text_at(row.offset.get(), row.length.into()).is_some();
        if same && rows.iter().all(|row| row.is_whole() && inside(row)) {
            Ok(Self { rows })
        } else {
            Err(Refusal::Inconsistent)
        }
    }
}
