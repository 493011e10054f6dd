//! From the bytes of a plan and of a record to what each unit's probe saw.
//!
//! A record is believed only beside the plan that it names; both are checked at the door
//! (`tomo-wire`), then against each other. What is merged are [`Marks`]: see [`crate::merge`].

use tomo_wire::plan::PlanView;
use tomo_wire::record::RecordView;
use tomo_wire::{ModuleId, Refusal};

use crate::merge::Marks;

/// Why a record is left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RecordError {
    /// The record itself cannot be read.
    #[error("{0}")]
    Record(Refusal),
    /// Its plan cannot be read.
    #[error("its plan is not used: {0}")]
    Plan(Refusal),
    /// The plan beside it is another one.
    #[error("it was made under another plan than the one beside it")]
    OtherPlan,
    /// The plan has the name that the record states, and yet is for something else.
    #[error("it contradicts its plan")]
    Contradiction,
}

/// Which records may be merged mark by mark: those of one plan that say as much.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Kind {
    /// Names the plan.
    pub plan: u64,
    /// Whether the run is known to have been cut by a signal. Of such runs less can be inferred.
    pub cut: bool,
    /// Whether the marks are not all those of walks that began where functions are entered, so that nothing can be inferred:
    /// of processes that were forked, without those that they come from, or read while they changed.
    pub loose: bool,
}

/// What [`tomo_wire::record::Live::outcome`] says of a run that a signal ended.
const BY_SIGNAL: u32 = 2;

/// A record whose header and length agree.
#[derive(Clone, Debug)]
pub struct Sighting {
    /// What it may be merged with.
    pub kind: Kind,
    /// The module that was observed.
    pub module: ModuleId,
    /// What its probes saw.
    pub marks: Marks,
}

/// Reads a record.
///
/// # Errors
/// Where it is no record, of another version, cut short or damaged.
pub fn read_record(bytes: &[u8]) -> Result<Sighting, RecordError> {
    let view = RecordView::read(bytes).map_err(RecordError::Record)?;
    let kind = Kind {
        plan: view.header.plan.get(),
        cut: view.live.outcome.get() == BY_SIGNAL,
        loose: view.live.forked.get() != 0,
    };
    Ok(Sighting {
        kind,
        module: view.header.module,
        marks: Marks::of(&view),
    })
}

/// Reads the plan of a record.
///
/// # Errors
/// Where it is no plan, damaged, or not that of the record.
pub fn read_plan<'f>(bytes: &'f [u8], record: &Sighting) -> Result<PlanView<'f>, RecordError> {
    let plan = PlanView::read(bytes).map_err(RecordError::Plan)?;
    if plan.name != record.kind.plan {
        return Err(RecordError::OtherPlan);
    }
    let probes = plan.header.probes.get() as usize;
    if plan.header.module != record.module || probes != record.marks.hits.len() {
        return Err(RecordError::Contradiction);
    }
    Ok(plan)
}
