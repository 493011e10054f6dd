//! How many units each tactic got, and why others did not get a better one.

use std::collections::BTreeMap;

use tomo_wire::plan::Tactic;

/// Why a unit got no detour.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Refusal {
    /// Too few bytes that nothing else enters.
    TooShort,
    /// There are enough bytes, but everywhere they are fetched in two parts.
    CrossesFetch,
    /// There are enough bytes, but something may enter their middle.
    Entered,
    /// Too little is known of the function, and no single instruction is long enough.
    Partial,
    /// Nothing is known of the function, or its instructions overlap.
    Opaque,
    /// The bytes are no whole instructions, or not in the text.
    Undecodable,
    /// Another probe has the bytes.
    Taken,
    /// Nothing that could be patched lies on the edge alone.
    NoOwnCode,
    /// No filling is left within reach of its short branch.
    NoFilling,
    /// It would need an `int3` in a module that blocks signals.
    NoSignals,
}

impl Refusal {
    /// In words.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Self::TooShort => "too short",
            Self::CrossesFetch => "fetched in two parts",
            Self::Entered => "entered in the middle",
            Self::Partial => "in a function of which too little is known",
            Self::Opaque => "in a function of which nothing is known",
            Self::Undecodable => "not the instructions that were expected",
            Self::Taken => "another probe is in the way",
            Self::NoOwnCode => "no code of its own",
            Self::NoFilling => "no filling within reach",
            Self::NoSignals => "would trap where signals are blocked",
        }
    }
}

/// Units by tactic, and those without a detour by what stood against it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Units by tactic.
    pub tactics: BTreeMap<Tactic, u32>,
    /// Units with that tactic (a trap or none) because of that.
    pub refusals: BTreeMap<(Tactic, Refusal), u32>,
}

impl Counts {
    /// Units with `tactic`.
    #[must_use]
    pub fn of(&self, tactic: Tactic) -> u32 {
        self.tactics.get(&tactic).copied().unwrap_or(0)
    }

    /// All units.
    #[must_use]
    pub fn units(&self) -> u32 {
        self.tactics.values().sum()
    }

    pub(crate) fn add(&mut self, tactic: Tactic, refusal: Option<Refusal>) {
        *self.tactics.entry(tactic).or_default() += 1;
        if let Some(refusal) = refusal {
            *self.refusals.entry((tactic, refusal)).or_default() += 1;
        }
    }
}
