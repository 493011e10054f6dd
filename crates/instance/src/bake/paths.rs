//! The image of a variant that counts paths, and which unit each of its counters counts.
//!
//! The master is the file of all paths of the module, and the units are their numbers. Only functions are woven of which
//! a path is assigned: those of which all are count all, others what tells the assigned ones from the rest (SPP). Either way they
//! are drawn as in the master, so that their paths have its numbers.

use std::collections::BTreeMap;

use tomo_export::{numbers_counted, path_names};
use tomo_launch::{ChosenPaths, Observed};
use tomo_program::Graphs;
use tomo_protocol::AssignedModule;
use tomo_weave::{NamedPath, PathEnds, PathsOf};
use tomo_wire::paths::{Paths, Rows};
use tomo_wire::tally::NONE;
use zerocopy::little_endian::U32;

use super::{BakeError, Baking, read, woven};
use crate::assigned::NotAccepted;

impl Baking<'_> {
    /// A module whose paths are counted.
    pub(super) fn paths(
        &mut self,
        observed: &Observed,
        module: &AssignedModule,
    ) -> Result<(), BakeError> {
        let other = || NotAccepted::OtherVersion(module.stem.clone());
        let (_, all) = self.images.following(observed, &ChosenPaths::All, &())?;
        let all = read(&all)?;
        let (header, master) = Paths::read(&all).map_err(|_| other())?;
        if header.name() != module.plan.0 || header.paths() != module.probes {
            return Err(other().into());
        }
        let model = self.images.model(observed, &())?;
        let graphs = model.graphs()?;
        let chosen = self.chosen(&graphs, &master).ok_or_else(other)?;
        let apart = self.images.apart(self.state.folder())?;
        let (carried, file) = apart.following(observed, &chosen, &())?;
        let bytes = read(&file)?;
        let (header, rows) = Paths::read(&bytes).map_err(|_| other())?;
        let units = self.units(&graphs, &master, &rows).ok_or_else(other)?;
        let counters = (header.at.get(), units.as_slice());
        self.counting(woven(module, &carried), &file, counters)
    }

    /// The assigned paths, as they are woven.
    fn chosen(&self, graphs: &Graphs<'_>, master: &Rows<'_>) -> Option<ChosenPaths> {
        let (mut whole, mut some) = (BTreeMap::new(), BTreeMap::new());
        for (at, row) in master.functions.iter().enumerate() {
            let units = master.units_of(at);
            let first = units.start;
            let numbers: Vec<u32> = units
                .filter(|unit| self.is_assigned(*unit))
                .map(|unit| unit - first)
                .collect();
            let (entry, ends) = (row.entry.get(), PathEnds::of(master.marks_of(row)));
            if numbers.len() as u64 == u64::from(row.numbers.get()) {
                whole.insert(entry, ends);
            } else if !numbers.is_empty() {
                let names = path_names(graphs, master, row, numbers)?.into_iter();
                let paths = names.map(|one| NamedPath {
                    blocks: one.blocks,
                    end: one.end,
                });
                let paths = PathsOf {
                    others: false,
                    paths: paths.collect(),
                    ends: Some(ends),
                };
                some.insert(entry, paths);
            }
        }
        Some(ChosenPaths::Drawn(whole, some))
    }

    /// Which unit each counter of the variant counts. `None` where a function was not drawn as in the master, or is missing.
    fn units(&self, graphs: &Graphs<'_>, master: &Rows<'_>, rows: &Rows<'_>) -> Option<Vec<U32>> {
        let mut units = Vec::new();
        let mut missing = 0_usize;
        let mut variant = rows.functions.iter().peekable();
        for (at, whole) in master.functions.iter().enumerate() {
            let Some(row) = variant.next_if(|row| row.entry == whole.entry) else {
                missing += usize::from(master.units_of(at).any(|unit| self.is_assigned(unit)));
                continue;
            };
            if master.marks_of(whole) != rows.marks_of(row) {
                return None;
            }
            let own = master.units_of(at);
            units.push(NONE.into());
            units.extend(
                numbers_counted(graphs, rows, row)?
                    .into_iter()
                    .map(|number| {
                        let unit = number.and_then(|number| own.start.checked_add(number));
                        let unit =
                            unit.filter(|unit| own.contains(unit) && self.is_assigned(*unit));
                        U32::new(unit.unwrap_or(NONE))
                    }),
            );
        }
        (missing == 0 && variant.next().is_none()).then_some(units)
    }
}
