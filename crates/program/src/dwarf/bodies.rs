//! Functions whose bodies were put in place of calls, and the blocks of those; and where those with code of their own are declared.

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
    /// Whether one of these blocks runs only if the body is entered. GCC, which says where it is entered, also gives to a body the blocks that it
    /// made common to this and other code.
    pub is_sure: bool,
}

/// The bodies of one unit, whose functions have numbers of their own.
pub(super) struct OfOne {
    pub(super) called: Found,
    pub(super) bodies: Vec<Body>,
    /// Blocks that functions with code of their own begin with, and which these are.
    pub(super) own: Vec<(u32, u32)>,
}

/// The bodies of all units.
pub(super) struct Bodies {
    inlined: Vec<Inlined>,
    numbers: FxHashMap<Inlined, u32>,
    bodies: Vec<Body>,
    /// For blocks that functions begin with, where these are declared.
    own: Vec<(u32, Position)>,
    /// Many entries may refer to one long name; what they may come to has a bound.
    budget: usize,
    left_out: usize,
}

/// What came of them.
pub(super) struct AllBodies {
    /// Each once.
    pub(super) inlined: Vec<Inlined>,
    pub(super) bodies: Vec<Body>,
    /// For blocks that functions begin with, where these are declared; in no order.
    pub(super) own: Vec<(u32, Position)>,
}

impl Bodies {
    pub(super) fn new(sections: &Sections<'_>) -> Self {
        let names = sections.get(SectionId::DebugStr).len();
        Self {
            inlined: Vec::new(),
            numbers: FxHashMap::default(),
            bodies: Vec::new(),
            own: Vec::new(),
            budget: names.saturating_mul(4),
            left_out: 0,
        }
    }

    /// Adds those of units.
    pub(super) fn add(&mut self, units: Vec<OfOne>, files: &mut Files) {
        for unit in units {
            self.add_one(unit, files);
        }
    }

    fn add_one(&mut self, unit: OfOne, files: &mut Files) {
        /// Bytes of names for each byte of a unit, wherever that is: their text may be in another section, or file.
        const ROOM: usize = 16;
        self.left_out += unit.called.left_out;
        let room = unit.called.size.saturating_mul(ROOM);
        self.budget = self.budget.saturating_add(room);
        let functions = unit.called.functions.into_iter();
        let functions = functions.map(|Declared { name, file, line }| {
            let file = files.number(&file)?;
            let declared = Position { file, line };
            Some(Inlined { name, declared })
        });
        let mut functions: Vec<Option<Inlined>> = functions.collect();
        let own = unit.own.into_iter().filter_map(|(block, function)| {
            let function = functions.get(function as usize)?.as_ref()?;
            Some((block, function.declared))
        });
        self.own.extend(own);
        let mut has_bodies = vec![false; functions.len()];
        for body in &unit.bodies {
            has_bodies[body.function as usize] = true;
        }
        let inlined = functions.iter_mut().zip(has_bodies);
        let numbers = inlined.map(|(function, has_bodies)| {
            let function = function.take().filter(|_| has_bodies)?;
            self.number(function)
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

    pub(super) fn finish(self, troubles: &mut Troubles) -> AllBodies {
        if self.left_out > 0 {
            let what = "names of inlined functions are too long to be kept";
            troubles.add(".debug_info", 0, what, &self.left_out);
        }
        AllBodies {
            inlined: self.inlined,
            bodies: self.bodies,
            own: self.own,
        }
    }
}
