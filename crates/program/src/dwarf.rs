//! Debug information: what functions there are, what they return, and which source line an address
//! belongs to.
//!
//! Source: *DWARF Debugging Information Format*, version 5 (2017): §2.17 and §2.18 (addresses, entry),
//! §3.3 (subprograms), §3.3.8 (out-of-line instances of inlined ones), §6.2 (line numbers); versions 2
//! to 4 are read too. `gimli` decodes; what is asked of it, and in which order, is here.
//!
//! Everything but [`frames()`] is read in parallel over units and costs time and memory linear in the size of the
//! sections, whatever they contain. That is a promise against hostile files, and it needs care, since
//! DWARF can refer to one long thing from many short ones:
//!
//! - an abbreviation table ends where the next one that is referred to starts (in `unit`);
//! - a name is cut off after 64 KiB, and all names together have a budget (in `resolve`);
//! - the range lists of one unit have a budget (in `subprogram`);
//! - chains of references are followed for a fixed number of steps;
//! - line programs that overlap are run once ([`lines()`]).
//!
//! What cannot be read costs what it would have told, and a warning: a unit of `.debug_info`, a line
//! program, a function's ranges. Of split DWARF (`.dwo` files) the line tables are in the program; of what is in
//! those files it is read where calls were inlined (in `apart`), not which functions there are. Of the second file
//! that `dwz` shares between programs texts are read (in `shared`), not entries: names of what these tell are missing, which reports say.

mod apart;
mod block_lines;
mod bodies;
mod copies;
mod frames;
mod inlined;
mod line_program;
mod lines;
mod origin;
mod paths;
mod resolve;
mod results;
mod sections;
mod shared;
mod statements;
mod subprogram;
mod troubles;
mod unit;

use crate::{Address, Range, Warning};
use rustc_hash::FxHashMap;

pub use apart::Apart;
pub use block_lines::{BlockLines, block_lines, block_lines_with};
pub use bodies::{Body, Inlined};
pub use frames::{Frame, frames};
pub use lines::{Lines, Position, lines};
pub use sections::Sections;
pub use statements::Told;

/// What debug information says about functions.
#[derive(Clone, Debug, Default)]
pub struct DebugInfo {
    /// The functions that have code, by entry, one for each entry.
    pub functions: Vec<DebugFunction>,
    /// What is said about functions that are visible to other files, declared or defined here, by
    /// linkage name, or by name where that is the linkage name.
    pub external: FxHashMap<String, Prototype>,
    /// Whether there are line tables.
    pub has_lines: bool,
    /// What could not be read.
    pub warnings: Vec<Warning>,
}

/// A function that has code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DebugFunction {
    /// Where it is entered.
    pub entry: Address,
    /// Its bytes, as stated: usually the part with the entry first, then split-off parts.
    pub ranges: Vec<Range>,
    /// Linkage name, else name.
    pub name: Option<String>,
    /// What is known of its result.
    pub prototype: Prototype,
}

/// What a function's declaration tells its callers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct Prototype {
    /// Whether it has a result.
    pub result: ResultKind,
    /// Whether it is promised not to return (`DW_AT_noreturn`, or Rust's `!`).
    pub noreturn: bool,
}

/// Whether a function has a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum ResultKind {
    /// It returns nothing.
    Void,
    /// It returns a value.
    Value,
    /// Debug information does not say, as when it holds line tables only.
    #[default]
    Unknown,
}

impl Prototype {
    /// What holds if both are said of the same function: promises add up, contradictions are
    /// forgotten.
    #[must_use]
    pub(crate) fn and(self, other: Self) -> Self {
        Self {
            result: self.result.and(other.result),
            noreturn: self.noreturn || other.noreturn,
        }
    }

    /// What holds of code that is both functions, as after identical code folding.
    #[must_use]
    pub(crate) fn or(self, other: Self) -> Self {
        let result = if self.result == other.result {
            self.result
        } else {
            ResultKind::Unknown
        };
        Self {
            result,
            noreturn: self.noreturn && other.noreturn,
        }
    }
}

impl ResultKind {
    fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::Unknown, known) | (known, Self::Unknown) => known,
            (one, another) if one == another => one,
            _ => Self::Unknown,
        }
    }
}

/// Reads what the debug sections say about functions. See [`DebugInfo`].
///
/// Never fails: what cannot be read is missing, with a warning.
#[must_use]
pub fn functions(sections: &Sections<'_>) -> DebugInfo {
    let mut troubles = troubles::Troubles::default();
    let context = unit::Context::new(sections, &mut troubles);
    let units = subprogram::read_units(&context, &mut troubles);
    let mut info = resolve::resolve(&context, &units, &mut troubles);
    info.has_lines = sections.has_lines();
    info.warnings = sections
        .warnings()
        .iter()
        .cloned()
        .chain(troubles.into_warnings())
        .collect();
    info
}
