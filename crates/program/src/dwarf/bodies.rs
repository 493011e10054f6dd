//! Functions whose bodies were put in place of calls, and the blocks of those.

use super::lines::Position;
use super::origin::{Declared, Found};
use super::paths::Files;
use super::sections::Sections;
use super::troubles::Troubles;
use gimli::SectionId;
use rustc_hash::FxHashMap;
use std::ops::Range;

/// A function whose body was put in place of calls.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Inlined {
    /// Its linkage name, else its name.
    pub name: String,
    /// Where it is declared.
    pub declared: Position,
}

/// Blocks of such a body: the one in which it is entered, or those that begin in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Body {
    /// Their indices.
    pub blocks: Range<u32>,
    /// Of which of the functions it is, by index.
    pub function: u32,
}

/// The bodies of one unit, whose functions have numbers of their own.
pub(super) struct OfOne {
    pub(super) called: Found,
    pub(super) bodies: Vec<Body>,
}

/// The bodies of all units.
pub(super) struct Bodies {
    inlined: Vec<Inlined>,
    numbers: FxHashMap<Inlined, u32>,
    bodies: Vec<Body>,
    /// Many entries may refer to one long name; what they may come to has a bound.
    budget: usize,
    left_out: usize,
}

impl Bodies {
    pub(super) fn new(sections: &Sections<'_>) -> Self {
        let ids = [SectionId::DebugInfo, SectionId::DebugStr];
        let room = ids.iter().map(|&id| sections.get(id).len());
        Self {
            inlined: Vec::new(),
            numbers: FxHashMap::default(),
            bodies: Vec::new(),
            budget: room.sum::<usize>().saturating_mul(4),
            left_out: 0,
        }
    }

    /// Adds those of a unit.
    pub(super) fn add(&mut self, unit: OfOne, files: &mut Files) {
        self.left_out += unit.called.left_out;
        let functions = unit.called.functions.into_iter();
        let numbers = functions.map(|Declared { name, file, line }| {
            let file = files.number(&file)?;
            let declared = Position { file, line };
            self.number(Inlined { name, declared })
        });
        let numbers: Vec<Option<u32>> = numbers.collect();
        let bodies = unit.bodies.into_iter().filter_map(|body| {
            let function = numbers.get(body.function as usize).copied().flatten()?;
            Some(Body { function, ..body })
        });
        self.bodies.extend(bodies);
    }

    fn number(&mut self, function: Inlined) -> Option<u32> {
        if let Some(known) = self.numbers.get(&function) {
            return Some(*known);
        }
        let Some(budget) = self.budget.checked_sub(function.name.len()) else {
            self.left_out += 1;
            return None;
        };
        self.budget = budget;
        let number = u32::try_from(self.inlined.len()).ok()?;
        self.inlined.push(function.clone());
        self.numbers.insert(function, number);
        Some(number)
    }

    pub(super) fn finish(self, troubles: &mut Troubles) -> (Vec<Inlined>, Vec<Body>) {
        if self.left_out > 0 {
            let what = "names of inlined functions are too long to be kept";
            troubles.add(".debug_info", 0, what, &self.left_out);
        }
        (self.inlined, self.bodies)
    }
}
