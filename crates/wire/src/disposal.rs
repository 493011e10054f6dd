//! The disposals of an image: for each probe, how somebody outside of the program takes it away.
//!
//! A program's own trampolines know how to restore their windows, and the trap table of the
//! [image](crate::image) says it of those at which an `int3` may be met. What has been seen elsewhere is
//! disposed of by somebody who does not run into the probes: in an image that nobody has mapped, or in one
//! that programs are running just now. A file of its own and no part of the image, because whoever
//! only arms an image never reads it, and images are copied for each run.
//!
//! A header, then one [`Disposal`] a probe, in the order of their marks. Where there is not one for each probe of the
//! plan, because the image is a variant with fewer, the marks follow.

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
    /// Checksum of all that follows.
    pub checksum: U64,
    /// Probes of the plan.
    pub probes: U32,
    /// Disposals: as many, or those of a variant.
    pub count: U32,
}

impl Header for Disposals {
    const MAGIC: [u8; 8] = *b"TOMODSP\n";
    const VERSION: u32 = 2;

    fn preamble(&mut self) -> &mut Preamble {
        &mut self.preamble
    }
}

impl Disposals {
    /// The header over the disposals of the probes of a plan, all of them in the order of their marks.
    #[must_use]
    pub fn sealed(module: ModuleId, plan: u64, rows: &[Disposal]) -> [u8; size_of::<Self>()] {
        let count = rows.len() as u32;
        Self::sealed_over(module, plan, (count, count), rows.as_bytes())
    }

    /// The header over so many disposals of a plan with so many probes; `body` is the disposals, and behind them the
    /// marks that they are of if these are not all.
    #[must_use]
    pub fn sealed_over(
        module: ModuleId,
        plan: u64,
        (probes, count): (u32, u32),
        body: &[u8],
    ) -> [u8; size_of::<Self>()] {
        let mut header = Self {
            module,
            plan: plan.into(),
            checksum: checksum(body).into(),
            probes: probes.into(),
            count: count.into(),
            ..Self::new_zeroed()
        };
        header.seal();
        zerocopy::transmute!(header)
    }
}

/// Disposals that belong to an image.
#[derive(Clone, Copy, Debug)]
pub struct DisposalsView<'f> {
    /// In the order of their marks.
    rows: &'f [Disposal],
    /// Their marks, if there is not one for each probe.
    marks: Option<&'f [U32]>,
}

impl<'f> DisposalsView<'f> {
    /// The disposals of `image` in `file`. All of them store within one region of the image.
    ///
    /// # Errors
    /// Where it is no such file, of another version, cut short, damaged, or of another image.
    pub fn read(file: &'f [u8], image: &Image) -> Result<Self, Refusal> {
        let header = <Disposals as Header>::open(file)?;
        let (probes, count) = (header.probes.get(), header.count.get());
        let has_marks = count != probes;
        let each = size_of::<Disposal>() + if has_marks { size_of::<U32>() } else { 0 };
        let size = u64::from(count) * each as u64;
        let bytes = part(file, size_of::<Disposals>() as u64, size)?;
        if checksum(bytes) != header.checksum.get() {
            return Err(Refusal::Damaged);
        }
        let split = <[Disposal]>::ref_from_prefix_with_elems(bytes, count as usize);
        let (rows, rest) = split.map_err(|_| Refusal::Inconsistent)?;
        let marks = <[U32]>::ref_from_bytes(rest).map_err(|_| Refusal::Inconsistent)?;
        let same = header.module == image.module
            && header.plan == image.plan
            && header.probes == image.probes;
        let ascending = marks.windows(2).all(|two| two[0].get() < two[1].get());
        let known = marks.last().is_none_or(|last| last.get() < probes);
        let inside = |row: &Disposal| image.text_at(row.offset.get(), row.length.into()).is_some();
        let sound = rows.iter().all(|row| row.is_whole() && inside(row));
        let marks = has_marks.then_some(marks);
        (same && ascending && known && sound)
            .then_some(Self { rows, marks })
            .ok_or(Refusal::Inconsistent)
    }

    /// The disposals of all probes, in the order of their marks, if it has them.
    #[must_use]
    pub fn all(&self) -> Option<&'f [Disposal]> {
        self.marks.is_none().then_some(self.rows)
    }

    /// Each disposal, with its mark.
    pub fn iter(&self) -> impl Iterator<Item = (u32, &'f Disposal)> {
        let (rows, marks) = (self.rows, self.marks);
        let mark = move |at: usize| marks.map_or(at as u32, |marks| marks[at].get());
        (0..).zip(rows).map(move |(at, row)| (mark(at), row))
    }
}
