//! The image of a variant that notes chains of calls, of the assigned functions alone.
//!
//! The master is the file of all functions that can be observed, and these are the units.

use std::collections::BTreeSet;

use tomo_launch::Observed;
use tomo_protocol::AssignedModule;
use tomo_wire::chains::{Functions, Row};
use zerocopy::little_endian::U32;

use super::{BakeError, Baking, read, woven};
use crate::assigned::NotAccepted;
use crate::known::KnownModule;

/// Room for the chains of a thread, in bytes. Calls by chains that find none are counted, and told.
const MEMORY: u32 = 8 << 20;

impl Baking<'_> {
    /// A module whose chains of calls are noted.
    pub(super) fn chains(
        &mut self,
        observed: &Observed,
        module: &AssignedModule,
    ) -> Result<(), BakeError> {
        let other = || NotAccepted::OtherVersion(module.stem.clone());
        let (_, all) = self.images.noting(observed, None, MEMORY, &())?;
        let all = read(&all)?;
        let (header, master) = Functions::read(&all).map_err(|_| other())?;
        if header.name() != module.plan.0 || master.len() as u64 != u64::from(module.probes) {
            return Err(other().into());
        }
        let assigned: Vec<(u32, &Row)> = (0..)
            .zip(master)
            .filter(|(unit, _)| self.is_assigned(*unit))
            .collect();
        let entries: BTreeSet<u64> = assigned.iter().map(|(_, row)| row.entry.get()).collect();
        let apart = self.images.apart(self.state.folder())?;
        let (carried, file) = apart.noting(observed, Some(&entries), MEMORY, &())?;
        let bytes = read(&file)?;
        let (_, rows) = Functions::read(&bytes).map_err(|_| other())?;
        let same = rows.iter().map(|row| row.entry);
        if !same.eq(assigned.iter().map(|(_, row)| row.entry)) {
            return Err(other().into());
        }
        let units: Vec<U32> = assigned.iter().map(|(unit, _)| U32::new(*unit)).collect();
        let known = KnownModule {
            memory: carried.slab.map(|(bytes, _)| bytes),
            ..woven(module, &carried)
        };
        self.counting(known, &file, (0, &units))
    }
}
