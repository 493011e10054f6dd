//! The marks of a module's plans read into what is known of each of its units, by the units' numbers
//! in the model.
//!
//! Functions are read by themselves, in parallel ([`tomo_profile::units`]). Inference needs a graph
//! that shows all ways in and all edges: an *exact* function that no other one jumps into the middle
//! of. In all others only the probes themselves are believed. A plan of functions is one of entry
//! blocks: a function was entered exactly if the first byte of its entry block ran.
//!
//! Of several runs' marks together first, then, where they leave something unknown, of those of each run ([`apart`]).
//!
//! Processes that were forked began in the midst of functions. Without those that they come from they are believed what
//! their probes say, and no more; so is what changed while it was read.
//!
//! Where control may stop is what plans are made for (`Ending::AtStops`): behind calls. Runs that are
//! known to have been cut are read as such. O(m log n) in the size of each function.

mod apart;
mod marks;
mod reader;

use rayon::prelude::*;
use tomo_profile::merge::Finding;
use tomo_profile::records::{Kind, RecordError};
use tomo_program::{ANALYSIS_VERSION, Address, Graphs, Model, ModelError};
use tomo_wire::plan::{Level, PlanView};

use marks::{Marks, Probes};
use reader::Reader;

use crate::{Group, Located};

/// What is known of all units of a module.
#[derive(Clone, Debug)]
pub struct Findings {
    /// By block.
    pub blocks: Vec<Finding>,
    /// By edge.
    pub edges: Vec<Finding>,
    /// By function: whether it was entered.
    pub functions: Vec<Finding>,
    /// The finest level that was asked for.
    pub level: Level,
    /// Functions whose marks no execution of the model leaves.
    pub contradictions: usize,
    /// Whether any process was observed. As long as none was, nothing is known.
    pub observed: bool,
    /// Whether runs carried a part of the probes each, so that what is unknown may be what none has carried yet.
    pub by_parts: bool,
    /// Whether nothing was inferred of some marks: see [`Kind::loose`].
    pub loose: bool,
    /// Where functions start that run before anything can be armed.
    early: Vec<Address>,
}

/// Why a group of records says nothing about a model.
#[derive(Debug, thiserror::Error)]
pub enum UnitError {
    /// The plan was made by another analysis.
    #[error(
        "observed by another version of tomo (analysis {found}, this is {ANALYSIS_VERSION}): observe it anew"
    )]
    Analysis {
        /// The version that the plan names.
        found: u32,
    },
    /// The plan names what the model does not have.
    #[error("its plan has a unit at {0} that the module has not")]
    Stranger(Address),
    /// The model is damaged.
    #[error("its model {0}")]
    Model(#[from] ModelError),
    /// The plan is damaged.
    #[error(transparent)]
    Record(#[from] RecordError),
}

impl Findings {
    /// What no run at all says about a module: nothing.
    #[must_use]
    pub fn none(located: &Located) -> Self {
        let of = |count: u64| vec![Finding::Unknown; usize::try_from(count).unwrap_or(0)];
        let summary = located.model.summary();
        Self {
            blocks: of(summary.blocks),
            edges: of(summary.edges),
            functions: of(summary.functions),
            level: Level::Function,
            contradictions: 0,
            observed: false,
            by_parts: false,
            loose: false,
            early: located.resolvers(),
        }
    }

    /// Adds what the records of a group say.
    ///
    /// # Errors
    /// Where the group's plan does not fit the model.
    pub fn add(&mut self, model: &Model, group: &Group) -> Result<(), UnitError> {
        let plan = PlanView::read(&group.plan).map_err(RecordError::Plan)?;
        let found = plan.header.analysis.get();
        if found != ANALYSIS_VERSION {
            return Err(UnitError::Analysis { found });
        }
        self.level = self.level.max(plan.level);
        self.by_parts |= group.by_parts;
        if group.is_unseen() {
            return Ok(());
        }
        self.loose |= group.kind.loose;
        self.begin();
        let graphs = model.graphs()?;
        let units = (self.blocks.len(), self.edges.len());
        let probes = Probes::of(&plan, &graphs, units)?;
        let mut marks = probes.marks(&group.marks.hits);
        marks.doubt(&graphs, &self.early);
        marks.doubt_what_may_be_entered_within(&graphs);
        match group.by_parts {
            false => {
                self.read(&graphs, &marks, group.kind, None);
                self.read_apart(&graphs, &probes, group);
            }
            true => {
                let cut = true;
                let kind = Kind { cut, ..group.kind };
                self.read(&graphs, &marks.hits(), kind, Some(&marks));
            }
        }
        Ok(())
    }

    /// Once a process was observed, what nobody saw run did not run.
    fn begin(&mut self) {
        if !std::mem::replace(&mut self.observed, true) {
            for findings in [&mut self.functions, &mut self.blocks, &mut self.edges] {
                findings.fill(Finding::default());
            }
        }
    }

    /// Infers from `marks`; units that are silent in `silence`, if that is given, and of which nothing
    /// follows, have not been seen to run.
    fn read(&mut self, graphs: &Graphs<'_>, marks: &Marks, kind: Kind, silence: Option<&Marks>) {
        let functions: Vec<_> = graphs.functions().collect();
        let entered = graphs.entered_within();
        let read: Vec<_> = functions
            .par_iter()
            .map(|function| {
                let entered_within = entered.contains(&function.id());
                let found = Reader::of(*function, marks, kind).read(entered_within);
                match silence {
                    Some(silence) => found.silenced(&Reader::of(*function, silence, kind)),
                    None => found,
                }
            })
            .collect();
        let (mut block, mut edge) = (0, 0);
        for (index, found) in read.into_iter().enumerate() {
            block += join(&mut self.blocks[block..], &found.blocks);
            edge += join(&mut self.edges[edge..], &found.edges);
            self.functions[index] = self.functions[index].or(found.entered);
            self.contradictions += usize::from(!found.fits);
        }
    }
}

/// Adds findings to the first ones of `all`; says how many there were.
fn join(all: &mut [Finding], more: &[Finding]) -> usize {
    for (mine, theirs) in all.iter_mut().zip(more) {
        *mine = mine.or(*theirs);
    }
    more.len().min(all.len())
}
