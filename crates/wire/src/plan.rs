//! The plan as reports need it: what each probe observes, and which units have none.
//!
//! A header, then one [`Entry`] a unit: first those with a probe, in the order of their marks, then
//! those that are inferred or cannot be observed. Its checksum names the plan: it stands in image
//! and record.

use core::mem::size_of;

use zerocopy::little_endian::{U32, U64};
use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes, KnownLayout};

use crate::door::{Header, Preamble, Refusal, rows};
use crate::{ModuleId, checksum};

/// What is observed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u32)]
pub enum Level {
    /// Functions that were entered.
    Function = 1,
    /// Blocks that ran.
    Block = 2,
    /// Blocks and the edges between them.
    Edge = 3,
}

impl Level {
    /// All levels.
    pub const ALL: [Self; 3] = [Self::Function, Self::Block, Self::Edge];

    /// The level with this number.
    #[must_use]
    pub fn from_number(number: u32) -> Option<Self> {
        Self::ALL.into_iter().find(|level| *level as u32 == number)
    }

    /// What people call it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Function => "function",
            Self::Block => "block",
            Self::Edge => "edge",
        }
    }
}

/// How a unit is observed, or why not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u32)]
pub enum Tactic {
    /// A detour that one aligned store restores.
    Quadword = 1,
    /// A detour that is held by an `int3` while it is restored.
    Held = 2,
    /// An `int3`.
    Trap = 3,
    /// A branch whose displacement leads to a trampoline.
    Retarget = 4,
    /// A short jump to a jump in filling, which leads to the trampoline.
    Hop = 5,
    /// A branch whose short displacement leads to a jump in filling, and that to the trampoline.
    ShortRetarget = 6,
    /// A hop that is held by an `int3` while it is restored.
    HeldHop = 7,
    /// A detour behind a prefix that stays, which one aligned store restores.
    Prefixed = 8,
    /// A detour that stays, and executes elsewhere what it displaces.
    Staying = 9,
    /// None: what other probes see says whether it ran.
    Inferred = 16,
    /// None: too little is known of the function to touch it.
    Unknown = 32,
    /// None: no tactic fits.
    NoPlace = 33,
}

impl Tactic {
    /// All tactics.
    pub const ALL: [Self; 12] = [
        Self::Quadword,
        Self::Held,
        Self::Trap,
        Self::Retarget,
        Self::Hop,
        Self::ShortRetarget,
        Self::HeldHop,
        Self::Prefixed,
        Self::Staying,
        Self::Inferred,
        Self::Unknown,
        Self::NoPlace,
    ];

    /// The tactic with this number.
    #[must_use]
    pub fn from_number(number: u32) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|tactic| *tactic as u32 == number)
    }

    /// Whether the unit has a probe.
    #[must_use]
    pub fn is_probe(self) -> bool {
        (self as u32) < Self::Inferred as u32
    }
}

/// A unit of the plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct Entry {
    /// The block, the function's entry, or the block the edge leaves; as the module states it.
    pub from: U64,
    /// The block the edge enters; 0 for other units.
    pub to: U64,
    /// How it is observed: a [`Tactic`].
    pub tactic: U32,
    /// 1 for an edge, 0 for a block or a function.
    pub is_edge: U32,
}

/// The header of a plan.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct Plan {
    preamble: Preamble,
    /// The module it is for.
    pub module: ModuleId,
    /// What it observes: a [`Level`].
    pub level: U32,
    /// Version of the analysis that the units come from.
    pub analysis: U32,
    /// Units with a probe.
    pub probes: U32,
    /// Units in all.
    pub units: U32,
    /// Checksum of the units.
    pub units_checksum: U64,
}

impl Header for Plan {
    const MAGIC: [u8; 8] = *b"TOMOPLN\n";
    const VERSION: u32 = 1;

    fn preamble(&mut self) -> &mut Preamble {
        &mut self.preamble
    }
}

/// A plan whose parts agree.
#[derive(Clone, Copy, Debug)]
pub struct PlanView<'f> {
    /// Its header.
    pub header: Plan,
    /// What it observes.
    pub level: Level,
    /// Its units: those with a probe first, in the order of their marks.
    pub units: &'f [Entry],
    /// Names it in images and records.
    pub name: u64,
}

impl Plan {
    /// The header of a plan of `units`, of which those with probes come first.
    #[must_use]
    pub fn of(module: ModuleId, level: Level, analysis: u32, units: &[Entry]) -> Self {
        let probes = units.iter().take_while(|unit| is_probe(unit)).count();
        let mut plan = Self {
            module,
            level: (level as u32).into(),
            analysis: analysis.into(),
            probes: (probes as u32).into(),
            units: (units.len() as u32).into(),
            units_checksum: checksum(units.as_bytes()).into(),
            ..Self::new_zeroed()
        };
        plan.seal();
        plan
    }

    /// Its bytes as they are written to a file, before those of the units.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        IntoBytes::as_bytes(self)
    }

    /// Bytes of its file.
    #[must_use]
    pub fn length(&self) -> u64 {
        let units = u64::from(self.units.get()) * size_of::<Entry>() as u64;
        size_of::<Self>() as u64 + units
    }

    /// The header of a plan's file that has `length` bytes and starts with `bytes`.
    ///
    /// # Errors
    /// Where it is no plan, of another version, cut short or damaged.
    pub fn read(bytes: &[u8], length: u64) -> Result<Self, Refusal> {
        let plan = <Self as Header>::open(bytes)?;
        let promised = plan.length();
        if length < promised {
            return Err(Refusal::CutShort { length, promised });
        }
        Ok(plan)
    }

    /// What names it in images and records: the checksum of its header, which holds that of the units.
    #[must_use]
    pub fn name(&self) -> u64 {
        checksum(IntoBytes::as_bytes(self))
    }
}

fn is_probe(unit: &Entry) -> bool {
    Tactic::from_number(unit.tactic.get()).is_some_and(Tactic::is_probe)
}

impl<'f> PlanView<'f> {
    /// The plan in `file`.
    ///
    /// # Errors
    /// Where it is no plan, of another version, cut short, damaged, or contradicts itself.
    pub fn read(file: &'f [u8]) -> Result<Self, Refusal> {
        let header = <Plan as Header>::open(file)?;
        let units: &[Entry] = rows::<Plan, _>(file, header.units, header.units_checksum)?;
        let probes = header.probes.get() as usize;
        let (with, without) = units
            .split_at_checked(probes)
            .ok_or(Refusal::Inconsistent)?;
        let known = |unit: &Entry| Tactic::from_number(unit.tactic.get()).is_some();
        if !with.iter().all(is_probe) || without.iter().any(|u| is_probe(u) || !known(u)) {
            return Err(Refusal::Inconsistent);
        }
        let level = Level::from_number(header.level.get()).ok_or(Refusal::Inconsistent)?;
        Ok(Self {
            header,
            level,
            units,
            name: header.name(),
        })
    }
}
