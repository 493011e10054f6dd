//! Which chains of direct calls ran, from what `tomo chains` tells of each run (`tomo_export::chains::Calls`).

use std::collections::{BTreeSet, HashMap};

use tomo_export::chains::Calls;
use tomo_plan::chains::FunctionId;
use tomo_plan::distribution::UnitId;
use tomo_profile::award::{Events, Run};
use tomo_program::Graphs;

use crate::disposal::StudyError;

/// A chain: its root and the sites of its calls, as the program's call graph numbers their units.
type Units = Vec<UnitId>;

/// All that is known of the field, in units from 0 on.
#[derive(Debug)]
pub struct Field {
    /// How many units there are.
    pub units: usize,
    /// Chains that ran somewhere, in the field or in house.
    pub events: Events,
    /// Those that ran in house.
    pub house: Vec<Units>,
    /// For each root all that it reaches.
    pub clusters: Vec<Units>,
    /// What ran in the field: of each run the chains that nothing goes on from, one after the other.
    pub runs: Vec<Run>,
    /// How many chains ran in the field, in house, and in both.
    pub chains: [usize; 3],
}

/// Collects what runs did.
pub struct Walk<'g> {
    calls: Calls<'g>,
    /// Functions that nobody calls directly, and such as were entered otherwise in house.
    roots: BTreeSet<FunctionId>,
    /// Complete chains.
    house: BTreeSet<Units>,
    /// Per run its instance and all its chains, complete or not.
    field: Vec<(usize, BTreeSet<Units>)>,
    /// Those of them that are complete.
    complete: BTreeSet<Units>,
}

impl<'g> Walk<'g> {
    /// Of runs of this program.
    ///
    /// # Errors
    /// Where it has too many functions and calls.
    pub fn of(graphs: &'g Graphs<'g>) -> Result<Self, StudyError> {
        let calls = Calls::of(graphs)?;
        Ok(Self {
            roots: calls.uncalled().clone(),
            calls,
            house: BTreeSet::new(),
            field: Vec::new(),
            complete: BTreeSet::new(),
        })
    }

    /// Takes a run in house into account: what `tomo chains --json` tells of it.
    ///
    /// # Errors
    /// Where it is no such document.
    pub fn in_house(&mut self, document: &[u8]) -> Result<(), StudyError> {
        let (chains, roots) = self.calls.ran(document)?;
        self.roots.extend(roots);
        let complete = chains.into_iter().filter(|(_, ran)| ran.is_complete);
        self.house.extend(complete.map(|(units, _)| units));
        Ok(())
    }

    /// Takes a run of an instance into account.
    ///
    /// # Errors
    /// As [`Self::in_house`].
    pub fn in_field(&mut self, instance: usize, document: &[u8]) -> Result<(), StudyError> {
        let (chains, _) = self.calls.ran(document)?;
        let complete = chains.iter().filter(|(_, ran)| ran.is_complete);
        self.complete
            .extend(complete.map(|(units, _)| units.clone()));
        self.field.push((instance, chains.into_keys().collect()));
        Ok(())
    }

    /// All that is known, in units of which each can be of use.
    ///
    /// # Errors
    /// Where there are too many.
    pub fn finish(self) -> Result<Field, StudyError> {
        let clusters = self
            .roots
            .iter()
            .map(|root| self.calls.graph().cluster(*root));
        let clusters: Vec<Units> = clusters.collect::<Result<_, _>>()?;
        let in_field = self.field.iter().flat_map(|(_, chains)| chains);
        let chains = self.house.iter().chain(in_field);
        let used: BTreeSet<UnitId> = clusters.iter().chain(chains).flatten().copied().collect();
        let numbers: HashMap<UnitId, UnitId> = (0..)
            .zip(&used)
            .map(|(number, unit)| (*unit, UnitId(number)))
            .collect();
        let renamed = |units: &Units| units.iter().map(|unit| numbers[unit]).collect::<Units>();
        let both = self.house.intersection(&self.complete).count();
        let all = self.house.union(&self.complete).map(renamed);
        // A chain begins with the entry of its root, as events do, so none is found where one ends and another begins.
        let runs = self.field.iter().map(|(instance, chains)| Run {
            instance: *instance,
            trace: chains.iter().flat_map(&renamed).collect(),
        });
        Ok(Field {
            units: used.len(),
            chains: [self.complete.len(), self.house.len(), both],
            house: self.house.iter().map(renamed).collect(),
            clusters: clusters.iter().map(renamed).collect(),
            runs: runs.collect(),
            events: Events::new(used.len(), all)?,
        })
    }
}
