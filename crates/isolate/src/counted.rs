//! Cases run with counters instead of marks: how often each predicate was true. What sampling is simulated from.

use tomo_launch::{FolderError, RunFolder};
use tomo_profile::scores::Outcome;
use tomo_weave::{Asked, Wanted};
use tomo_wire::counting::sums;
use tomo_wire::predicates::{Predicates, Recorded};

use crate::asked::IsolateError;
use crate::many::each;
use crate::session::Session;

/// What the counters of a run came to.
pub(crate) struct Counted {
    pub(crate) outcome: Outcome,
    /// The file that says what they count.
    pub(crate) file: Vec<u8>,
    /// The counters.
    pub(crate) slabs: Vec<u8>,
}

impl Session {
    /// Runs a case with counters: `observe` adds the module to the run's folder, where the file of this kind then says what
    /// they count.
    pub(crate) fn counted(
        &self,
        case: usize,
        kind: &str,
        observe: impl Fn(&mut RunFolder) -> Result<(), FolderError>,
    ) -> Result<Counted, IsolateError> {
        let kept = self.kept(case, |folder| {
            observe(folder)?;
            folder.make_slabs()
        })?;
        let read = |name: &str| {
            let path = kept.folder.path().join(name);
            std::fs::read(&path).map_err(|error| IsolateError::Io(path, error))
        };
        Ok(Counted {
            outcome: kept.outcome,
            file: read(&format!("{}.{kind}", self.module.stem))?,
            slabs: read("slabs")?,
        })
    }

    /// How often each predicate was true in each of these cases: by case, then by row.
    ///
    /// # Errors
    /// Where a case cannot be run, or nothing was recorded.
    pub fn counts(&self, cases: &[usize]) -> Result<Vec<Vec<u64>>, IsolateError> {
        self.same()?;
        let wanted = Wanted {
            asked: Asked::All,
            recorded: Recorded::Counts,
        };
        let observe = |folder: &mut RunFolder| {
            folder.observe_predicates(&self.module, &self.images, &wanted, &())
        };
        let made = each(cases.len(), self.options.jobs, |number| {
            let counted = self.counted(cases[number], "predicates", observe)?;
            self.predicate_counts(&counted)
        });
        made.into_iter().collect()
    }

    fn predicate_counts(&self, counted: &Counted) -> Result<Vec<u64>, IsolateError> {
        let refused = |refusal| {
            IsolateError::Predicates(tomo_export::predicates::PredicateError::Refused(refusal))
        };
        let (header, rows) = Predicates::read(&counted.file).map_err(refused)?;
        let mut values = vec![0; header.probes.get() as usize];
        sums(&counted.slabs, header.at.get(), &mut values).map_err(refused)?;
        let mut told = vec![None; rows.len()];
        let probe = |probe: u32| values.get(probe as usize).copied().unwrap_or(0);
        tomo_wire::predicates::values(rows, Recorded::Counts, probe, &mut told);
        Ok(told.into_iter().map(Option::unwrap_or_default).collect())
    }
}
