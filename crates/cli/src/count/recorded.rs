//! What the counters of a run said, and what several runs say together.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context as _, Result, bail};
use tomo_export::{Counts, Extent, Located, counts, frequencies, merge_counts};
use tomo_program::Graphs;
use tomo_weave::Weights;
use tomo_wire::counting::{Counters, Row};
use tomo_wire::cuts;

use crate::earlier::{Kind, Show, Together};
use crate::session::{Session, bytes, summed};

/// What runs of `tomo count` have.
const KIND: Kind = Kind {
    command: "tomo count",
    file: "counters",
    build: |file| Ok(Counters::read(file)?.0.module),
};

/// What the counters of a module said in a run.
pub(super) struct Recorded {
    /// The file of the counters.
    pub(super) file: Vec<u8>,
    pub(super) values: Vec<u64>,
    /// By instruction: how often faults took threads out there, less how often they came back; and how often it is not known where.
    cuts: BTreeMap<u64, i64>,
    cuts_lost: u64,
    /// Threads that were not counted.
    lost: u64,
}

impl Recorded {
    /// Of the run in `folder` the module whose files are called `stem`.
    pub(super) fn read(folder: &Path, stem: &str) -> Result<Self> {
        let file = bytes(&folder.join(format!("{stem}.counters")))?;
        let (header, rows) = Counters::read(&file).context("the counters")?;
        let (values, summed) = summed(folder, header.at.get(), rows.len())?;
        let path = folder.join(format!("{stem}.record"));
        let record = bytes(&path)?;
        let (all, cuts_lost) = cuts::cuts(&record).with_context(|| path.display().to_string())?;
        let mut cuts: BTreeMap<u64, i64> = BTreeMap::new();
        for cut in all {
            let place = header.origin.get().wrapping_add(cut.place.into());
            *cuts.entry(place).or_default() += i64::from(cut.count);
        }
        Ok(Self {
            file,
            values,
            cuts,
            cuts_lost,
            lost: summed.lost,
        })
    }

    pub(super) fn rows(&self) -> Result<&[Row]> {
        Ok(Counters::read(&self.file).context("the counters")?.1)
    }

    fn counts(&self, graphs: &Graphs<'_>, extent: Extent) -> Result<Counts> {
        let recorded = tomo_export::Recorded {
            rows: self.rows()?,
            values: &self.values,
            cuts: &self.cuts,
        };
        Ok(counts(graphs, recorded, extent))
    }

    /// How often the arcs of the functions of this module ran; of a damaged model or file, nothing.
    pub(super) fn frequencies(&self, located: &Located) -> Weights {
        match (located.model.graphs(), self.rows()) {
            (Ok(graphs), Ok(rows)) => frequencies(&graphs, rows, &self.values),
            _ => Weights::default(),
        }
    }
}

/// How often things ran, and what is said beside it.
pub(super) struct Said {
    pub(super) located: Located,
    pub(super) counts: Counts,
    /// Threads that were not counted.
    pub(super) lost: u64,
    /// Faults of which it was not noted where they took a thread out of a block.
    pub(super) cuts_lost: u64,
    /// What was not observed, in words, for each run of which something was not.
    pub(super) not_observed: Vec<String>,
    /// The command line of the program, as it is shown.
    pub(super) shown: String,
}

impl Said {
    /// What the run of a session says.
    pub(super) fn of(session: &Session, shown: String, extent: Extent) -> Result<Self> {
        let recorded = Recorded::read(session.folder(), &session.module.stem)?;
        let located = session.located()?;
        Ok(Self {
            counts: recorded.counts(&located.model.graphs()?, extent)?,
            located,
            lost: recorded.lost,
            cuts_lost: recorded.cuts_lost,
            not_observed: session.not_observed(),
            shown,
        })
    }

    /// What these runs of one program say together.
    pub(super) fn together(asked: &Show, extent: Extent) -> Result<Self> {
        let mut runs = Together::of(asked, &KIND)?;
        let located = runs.located()?;
        let graphs = located.model.graphs()?;
        let recorded = runs.each(|run| {
            let recorded = Recorded::read(run.folder(), run.stem())?;
            Ok((recorded.counts(&graphs, extent)?, recorded))
        })?;
        let sum = |of: fn(&Recorded) -> u64| {
            let each = recorded.iter().map(|(_, recorded)| of(recorded));
            each.fold(0, u64::saturating_add)
        };
        let (lost, cuts_lost) = (sum(|one| one.lost), sum(|one| one.cuts_lost));
        let all: Vec<_> = recorded.into_iter().map(|(counts, _)| counts).collect();
        let counts = match merge_counts(all) {
            Ok(counts) => counts,
            Err(error) => {
                let function = graphs.function(error.0);
                let title = function.map_or_else(String::new, |function| function.title());
                bail!("the runs cannot be put together: of {title} {error}");
            }
        };
        Ok(Self {
            located,
            counts,
            lost,
            cuts_lost,
            not_observed: runs.not_observed(),
            shown: runs.first().shown.clone(),
        })
    }
}
