//! What is done between the module's instructions: whether it may be done there.

use tomo_program::{Address, EdgeView};

use super::{Observes, Walk};
use crate::check::increment::{self, Keep};
use crate::check::path::Done;
use crate::check::paths::PathPlan;
use crate::check::{Flaw, at, path, witness};
use crate::staying::live::Set;

impl Walk<'_> {
    /// What is done at `spot` that the module does not do, before what is at `address`: bytes of it, if there is anything.
    pub(super) fn act(
        &mut self,
        spot: i64,
        code: &[u8],
        address: Address,
    ) -> Result<Option<usize>, Flaw> {
        if let Some(length) = self.record(spot, address)? {
            return Ok(Some(length));
        }
        if let Some(found) = increment::read(code) {
            self.count(&found, address)?;
            if matches!(self.what, Observes::Paths(_)) {
                let start = self.trampolines.offset(spot) + found.at;
                self.sums.push(start..start + 4);
            }
            return Ok(Some(found.length));
        }
        if !self.records.is_empty()
            && let Some(found) = witness::read(code)
        {
            self.witness(&found, spot, address)?;
            return Ok(Some(found.length));
        }
        let Observes::Paths(plan) = self.what else {
            return Ok(None);
        };
        let Some(found) = path::read(code) else {
            return Ok(None);
        };
        self.follow(&plan, &found, address)?;
        let start = self.trampolines.offset(spot);
        let sums = found.sums.iter();
        self.sums
            .extend(sums.map(|sum| start + sum.start..start + sum.end));
        Ok(Some(found.length))
    }

    /// Something is done to a path before what is at `address`.
    fn follow(
        &mut self,
        plan: &PathPlan<'_>,
        found: &path::Found,
        address: Address,
    ) -> Result<(), Flaw> {
        let wrong = |what| at(address, what);
        let permits = |function: &usize| plan.permits(*function, &found.done);
        let function = self.functions_at(plan, address).find(permits);
        let function = function.ok_or_else(|| wrong("it counts paths of something else"))?;
        if matches!(found.done, Done::End { .. }) {
            self.counted[function] = true;
        }
        if found.changes != Set::NONE && self.is_looked_at(address, found.changes) {
            return Err(wrong("somebody looks at what is changed for a path"));
        }
        self.increments += 1;
        Ok(())
    }

    /// Which counter is that so many bytes from the `gs` base, if one of them may be incremented at `address`.
    fn counter(&self, offset: u32, address: Address) -> Result<usize, &'static str> {
        let none = "it counts what is no counter";
        match self.what {
            Observes::Counters { slab, rows } => {
                let bytes = offset
                    .checked_sub(slab)
                    .filter(|bytes| bytes.is_multiple_of(8));
                let number = bytes.ok_or(none)? as usize / 8;
                let row = rows.get(number).ok_or(none)?;
                let from = Address(row.from.get());
                let to = EdgeView::address_of(row.to.get());
                // Where the module jumps to, the trampolines may be already.
                let counted = self.jumps(address).any(|address| {
                    self.is_in_block(from, address) || (row.to.get() != 0 && to == address)
                });
                counted.then_some(number).ok_or("it counts something else")
            }
            Observes::Paths(plan) => {
                let mut functions = self.functions_at(&plan, address);
                let function = functions.find(|function| plan.has_counter(*function, offset));
                function.ok_or(none)
            }
            Observes::Noted | Observes::Chains(_) => Err(none),
        }
    }

    /// Functions whose paths are followed and that have what is at `address`, or where its jumps lead, or what control came
    /// from.
    fn functions_at(&self, plan: &PathPlan<'_>, address: Address) -> impl Iterator<Item = usize> {
        let here = self.jumps(address).chain([self.from]);
        here.filter_map(|here| plan.function_at(self.graphs, here))
    }

    /// A counter is incremented before what is at `address`.
    fn count(&mut self, found: &increment::Found, address: Address) -> Result<(), Flaw> {
        let wrong = |what| at(address, what);
        let number = self.counter(found.offset, address).map_err(wrong)?;
        let changes = match found.keep {
            Keep::Nothing => Set::STATUS.without(Set::CARRY),
            Keep::Rax => Set::numbered(0),
            Keep::Register(number) => Set::numbered(number),
            Keep::Stack => Set::NONE,
        };
        // Signals look at the stack pointer at any moment.
        let is_looked_at = found.keep == Keep::Register(4)
            || changes != Set::NONE && self.is_looked_at(address, changes);
        if is_looked_at {
            return Err(wrong("somebody looks at what an increment changes"));
        }
        self.counted[number] = true;
        self.increments += 1;
        Ok(())
    }
}
