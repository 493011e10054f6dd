//! The ways to run a program under study.

use std::ffi::OsString;
use std::path::Path;

use serde::{Deserialize, Serialize};
use tomo_launch::How;
use tomo_weave::Placement;
use tomo_wire::plan::Level;

use super::inputs::Case;
use super::measure::Job;

/// What carries probes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Units {
    /// Every block.
    Block,
    /// The blocks from which all others follow by domination (Dom-I).
    BlockDom,
    /// Every function's entry.
    Function,
}

impl Units {
    /// All of them, in the order of the paper's tables.
    pub const ALL: [Self; 3] = [Self::Block, Self::BlockDom, Self::Function];

    /// What `tomo cover` is told; `stays` if probes are not to go.
    #[must_use]
    pub fn how(self, stays: bool) -> How {
        let (level, placement) = match self {
            Self::Block => (Level::Block, Placement::All),
            Self::BlockDom => (Level::Block, Placement::Reduced),
            Self::Function => (Level::Function, Placement::All),
        };
        How {
            level,
            placement,
            stays,
        }
    }

    /// The options of `tomo cover` that mean it.
    #[must_use]
    pub fn options(self) -> [&'static str; 4] {
        match self {
            Self::Block => ["--level", "block", "--placement", "all"],
            Self::BlockDom => ["--level", "block", "--placement", "reduced"],
            Self::Function => ["--level", "function", "--placement", "all"],
        }
    }

    /// What people call it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Block => "blocks",
            Self::BlockDom => "blocks, by dominators",
            Self::Function => "functions",
        }
    }
}

/// A mark that a compiler puts in and that stays.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mark {
    /// In the code itself: a byte is looked at, and set if it is not yet (clang's `inline-bool-flag`).
    /// The cheapest there is.
    Flag,
    /// A call of a collector that sets the mark of a number, as in the paper (clang's `trace-pc-guard`).
    Call,
}

/// A probe that stays.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Stay {
    /// The very probes that else would go (`tomo cover --disposal none`).
    Woven,
    /// A compiler's.
    Built(Mark),
}

impl Stay {
    /// All of them.
    pub const ALL: [Self; 3] = [
        Self::Woven,
        Self::Built(Mark::Flag),
        Self::Built(Mark::Call),
    ];

    /// What people call it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Woven => "woven",
            Self::Built(Mark::Flag) => "flag",
            Self::Built(Mark::Call) => "call",
        }
    }
}

/// A way to run a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Way {
    /// As it is (No-I).
    Bare,
    /// The same once more: how far two equal ways come out apart is the noise.
    Again,
    /// With probes that stay (Basic-I, Dom-I); ours without the launcher.
    Lasting(Units, Stay),
    /// Under `tomo cover`, with all that this starts (LD-Basic-I, LD-Dom-I).
    Covered(Units),
    /// The same probes without the launcher: armed by the environment, with a fresh image each time.
    Armed(Units),
}

impl Way {
    /// All ways, in the order in which each round takes them.
    pub fn all() -> impl Iterator<Item = Self> {
        let of = |units| {
            let lasting = Stay::ALL.map(|stay| Self::Lasting(units, stay));
            let ours = [Self::Covered(units), Self::Armed(units)];
            lasting.into_iter().chain(ours)
        };
        [Self::Bare, Self::Again]
            .into_iter()
            .chain(Units::ALL.into_iter().flat_map(of))
    }
}

/// The job that runs `program` on `case`.
pub(crate) fn job(program: &Path, case: &Case, environment: Vec<(OsString, OsString)>) -> Job {
    Job {
        program: program.into(),
        arguments: case.arguments.iter().map(OsString::from).collect(),
        environment,
        stdin: case.stdin.clone(),
    }
}
