//! Predicates: which of them a module has, which mark or counter tells of each, and what is said of those that have none.
//!
//! A file beside the module's image: a header, then one [`Row`] a predicate. The predicates of one site follow each other,
//! and each time that the site is reached exactly one of them is true (ABI §2.1). Its checksum names it, in
//! images and records as that of a plan does.

use zerocopy::little_endian::{U32, U64};
use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes, KnownLayout};

use crate::door::{Header, Preamble, Refusal, promised, rows};
use crate::{ModuleId, checksum};

/// What is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Kind {
    /// Which way a conditional branch goes: taken, not taken.
    Branch = 1,
    /// The sign of what a call returns: negative, zero, positive.
    Result = 2,
}

impl Kind {
    /// The kind with this number.
    #[must_use]
    pub fn from_number(number: u8) -> Option<Self> {
        [Self::Branch, Self::Result]
            .into_iter()
            .find(|kind| *kind as u8 == number)
    }

    /// How many predicates such a site has.
    #[must_use]
    pub fn cases(self) -> u8 {
        match self {
            Self::Branch => 2,
            Self::Result => 3,
        }
    }
}

/// How a predicate is observed, or why not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Told {
    /// It has a mark or a counter: its own, or a case of a result that of the way of a branch that is that case.
    Itself = 1,
    /// It was true whenever, or as often as, any predicate of another site was.
    BySite = 2,
    /// Not at all: nobody asked.
    Unasked = 16,
    /// Not at all: too little is known of the function to touch it.
    Unknown = 32,
    /// Not at all: no probe fits.
    NoPlace = 33,
}

impl Told {
    /// All of them.
    pub const ALL: [Self; 5] = [
        Self::Itself,
        Self::BySite,
        Self::Unasked,
        Self::Unknown,
        Self::NoPlace,
    ];

    /// The one with this number.
    #[must_use]
    pub fn from_number(number: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|told| *told as u8 == number)
    }
}

/// How the width of a result is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Width {
    /// There is none: no result.
    None = 0,
    /// It is that at which the caller looks at it first.
    Used = 1,
    /// The caller only passes it on; it is that at which the result of the same function, or the
    /// caller's, is looked at elsewhere.
    Elsewhere = 2,
    /// Nobody who is known looks at it: all of the register.
    Whole = 3,
}

impl Width {
    /// The one with this number.
    #[must_use]
    pub fn from_number(number: u8) -> Option<Self> {
        [Self::None, Self::Used, Self::Elsewhere, Self::Whole]
            .into_iter()
            .find(|width| *width as u8 == number)
    }
}

/// A predicate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct Row {
    /// The site: the branch, or what is behind the call; as the module states it.
    pub site: U64,
    /// The block that ends in the branch or the call.
    pub block: U64,
    /// [`Told::Itself`]: its mark or counter. [`Told::BySite`]: the first row of that site.
    pub by: U32,
    /// What is looked at: a [`Kind`].
    pub kind: u8,
    /// Which of the site's predicates it is, in the order that [`Kind`] names.
    pub case: u8,
    /// Bits of the result that are looked at, and how that is known: a [`Width`] in the upper half.
    pub width: u8,
    /// How it is observed: a [`Told`].
    pub told: u8,
}

impl Row {
    /// What is looked at.
    #[must_use]
    pub fn kind(&self) -> Option<Kind> {
        Kind::from_number(self.kind)
    }

    /// How it is observed.
    #[must_use]
    pub fn told(&self) -> Option<Told> {
        Told::from_number(self.told)
    }

    /// Bits of the result: 8, 16, 32 or 64.
    #[must_use]
    pub fn bits(&self) -> u8 {
        8 << (self.width & 3)
    }

    /// How the width is known.
    #[must_use]
    pub fn known(&self) -> Option<Width> {
        Width::from_number(self.width >> 4)
    }
}

/// The width of so many bits in a [`Row`].
#[must_use]
pub fn width(bits: u8, known: Width) -> u8 {
    let size = match bits {
        8 => 0,
        16 => 1,
        32 => 2,
        _ => 3,
    };
    (known as u8) << 4 | size
}

/// What probes record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum Recorded {
    /// Whether it was ever true: marks in the record.
    Marks = 1,
    /// How often it was true: counters in slabs.
    Counts = 2,
}

/// Where probes record, and how many.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Sinks {
    /// In so many marks, the first ones by probes that vanish when they are hit.
    Marks {
        /// All marks.
        all: u32,
        /// Those of probes that vanish.
        vanish: u32,
    },
    /// In so many counters.
    Counters {
        /// All counters.
        all: u32,
        /// How many bytes into each slab they start.
        at: u32,
    },
}

/// The header of a file of predicates.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct Predicates {
    preamble: Preamble,
    /// The module.
    pub module: ModuleId,
    /// Version of the analysis that the sites come from.
    pub analysis: U32,
    /// How many predicates.
    pub count: U32,
    /// How many marks or counters.
    pub probes: U32,
    /// What those are: a [`Recorded`].
    recorded: U32,
    /// How many bytes into each slab counters start.
    pub at: U32,
    /// How many of the marks, the first ones, belong to probes that vanish when they are hit.
    pub vanish: U32,
    /// Checksum of the rows.
    pub rows_checksum: U64,
}

impl Header for Predicates {
    const MAGIC: [u8; 8] = *b"TOMOPRD\n";
    /// Before 2, all probes stayed.
    const VERSION: u32 = 2;

    fn preamble(&mut self) -> &mut Preamble {
        &mut self.preamble
    }
}

impl Predicates {
    /// The header of these predicates, told by these marks or counters.
    #[must_use]
    pub fn of(module: ModuleId, analysis: u32, sinks: Sinks, rows: &[Row]) -> Self {
        let (recorded, probes, at, vanish) = match sinks {
            Sinks::Marks { all, vanish } => (Recorded::Marks, all, 0, vanish),
            Sinks::Counters { all, at } => (Recorded::Counts, all, at, 0),
        };
        let mut header = Self {
            module,
            analysis: analysis.into(),
            count: (rows.len() as u32).into(),
            probes: probes.into(),
            recorded: (recorded as u32).into(),
            at: at.into(),
            vanish: vanish.into(),
            rows_checksum: checksum(rows.as_bytes()).into(),
            ..Self::new_zeroed()
        };
        header.seal();
        header
    }

    /// What names them in images and records.
    #[must_use]
    pub fn name(&self) -> u64 {
        checksum(IntoBytes::as_bytes(self))
    }

    /// What is recorded.
    #[must_use]
    pub fn recorded(&self) -> Recorded {
        match self.recorded.get() == Recorded::Counts as u32 {
            true => Recorded::Counts,
            false => Recorded::Marks,
        }
    }

    /// Its bytes as they are written to a file, before those of the rows.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        IntoBytes::as_bytes(self)
    }

    /// The header of a file of `length` bytes that starts with `head`; what follows it is not looked at.
    ///
    /// # Errors
    /// Where it is no such file, of another version, cut short or damaged.
    pub fn head(head: &[u8], length: u64) -> Result<Self, Refusal> {
        let header = <Self as Header>::open(head)?;
        promised::<Self, Row>(header.count, length)?;
        Ok(header)
    }

    /// The predicates in `file`.
    ///
    /// # Errors
    /// Where they are none, of another version, cut short, damaged, or contradict themselves.
    pub fn read(file: &[u8]) -> Result<(Self, &[Row]), Refusal> {
        let header = <Self as Header>::open(file)?;
        let rows = rows::<Self, Row>(file, header.count, header.rows_checksum)?;
        let recorded = matches!(header.recorded.get(), 1 | 2);
        let vanish = header.vanish.get() <= header.probes.get();
        match recorded && vanish && are_sites(rows) && are_told(rows, header.probes.get()) {
            true => Ok((header, rows)),
            false => Err(Refusal::Inconsistent),
        }
    }
}

/// Whether these are whole sites, one behind the other.
fn are_sites(rows: &[Row]) -> bool {
    let mut rest = rows;
    while let Some(first) = rest.first() {
        let Some(kind) = first.kind() else {
            return false;
        };
        let Some((site, behind)) = rest.split_at_checked(kind.cases().into()) else {
            return false;
        };
        let alike = |(case, row): (u8, &Row)| {
            (row.site, row.block, row.kind) == (first.site, first.block, first.kind)
                && (row.case, row.width) == (case, first.width)
                && row.known().is_some()
        };
        if !(0..).zip(site).all(alike) {
            return false;
        }
        rest = behind;
    }
    true
}

/// Whether all that is said to tell of rows is there, and none tells of itself.
fn are_told(rows: &[Row], probes: u32) -> bool {
    let mut first = 0u32;
    (0u32..).zip(rows).all(|(at, row)| {
        if row.case == 0 {
            first = at;
        }
        match row.told() {
            Some(Told::Itself) => row.by.get() < probes,
            Some(Told::BySite) => {
                let site = rows.get(row.by.get() as usize);
                row.by.get() != first && site.is_some_and(|site| site.case == 0)
            }
            Some(_) => true,
            None => false,
        }
    })
}

/// How many sites one behind the other tell of each other at most.
const MOST_PASSES: usize = 1000;

/// How often each predicate was true, or that it was at least once, given the value of each mark or counter;
/// `None` for what nobody tells. Sums wrap, as counters do. `values` has room for all rows.
pub fn values(
    rows: &[Row],
    recorded: Recorded,
    probe: impl Fn(u32) -> u64,
    values: &mut [Option<u64>],
) {
    for (row, value) in rows.iter().zip(values.iter_mut()) {
        *value = (row.told() == Some(Told::Itself)).then(|| probe(row.by.get()));
    }
    // Each pass tells of at least one more, unless all that can be told is.
    for _ in 0..MOST_PASSES {
        let mut found = false;
        for (at, row) in rows.iter().enumerate() {
            let open = values.get(at).is_some_and(Option::is_none);
            if row.told() != Some(Told::BySite) || !open {
                continue;
            }
            let sum = sum(rows, recorded, row.by.get() as usize, values);
            found |= sum.is_some();
            if let Some(value) = values.get_mut(at) {
                *value = sum;
            }
        }
        if !found {
            return;
        }
    }
}

/// What the predicates of the site at row `first` come to.
fn sum(rows: &[Row], recorded: Recorded, first: usize, values: &[Option<u64>]) -> Option<u64> {
    let cases = rows.get(first)?.kind()?.cases().into();
    let values = values.get(first..first.checked_add(cases)?)?;
    let sum = values
        .iter()
        .try_fold(0u64, |sum, value| Some(sum.wrapping_add((*value)?)))?;
    Some(match recorded {
        Recorded::Marks => u64::from(sum > 0),
        Recorded::Counts => sum,
    })
}
