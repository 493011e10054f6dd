//! What is known of one instance.

use serde::{Deserialize, Serialize};
use tomo_wire::report::ReportView;

use super::{Chained, Counts, Evidences, Hits, Keeps, Runs, counts};

/// The last report's particulars, by run and sequence. The order is that of the join.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Latest {
    run: u64,
    sequence: u32,
    /// The version of tomo.
    pub version: String,
    /// Processes that were not observed.
    pub refused: u64,
    /// Why not: a [`Reason`](tomo_wire::record::Reason), or 0.
    pub reason: u32,
    /// Reports that the instance had to drop: in the lower half those for which there was no room, in the upper one those that
    /// were damaged or refused.
    lost: u64,
}

impl Latest {
    fn of(report: &ReportView<'_>) -> Self {
        let header = &report.header;
        Self {
            run: header.run.get(),
            sequence: header.sequence.get(),
            version: header.version().to_owned(),
            refused: header.refused.get(),
            reason: header.reason.get(),
            lost: u64::from(header.unfit.get()) << 32 | u64::from(header.dropped.get()),
        }
    }
}

impl Latest {
    /// Reports that it had to drop since its spool was full.
    #[must_use]
    pub fn dropped(&self) -> u32 {
        self.lost as u32
    }

    /// Reports that were damaged on its disk, or refused for good.
    #[must_use]
    pub fn unfit(&self) -> u32 {
        (self.lost >> 32) as u32
    }
}

/// One instance.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Instance {
    /// When it was assigned which variant; the join takes the earliest.
    assigned: Option<(i64, u32)>,
    /// When it was first heard of.
    pub first_heard: i64,
    /// When it was last heard of.
    pub last_heard: i64,
    /// The last report's particulars.
    pub latest: Option<Latest>,
    /// Its runs.
    pub runs: Runs,
    /// What it hit.
    pub hits: Hits,
    /// How often, where that is counted.
    pub counts: Counts<u32>,
    /// By which chains of calls, where they are observed.
    pub chained: Chained,
    /// Of a search: what its runs say, one by one.
    pub evidence: Evidences,
}

/// Of nothing, neutral in the join.
impl Default for Instance {
    fn default() -> Self {
        Self {
            assigned: None,
            first_heard: i64::MAX,
            last_heard: i64::MIN,
            latest: None,
            runs: Runs::default(),
            hits: Hits::default(),
            counts: Counts::default(),
            chained: Chained::default(),
            evidence: Evidences::default(),
        }
    }
}

impl Instance {
    /// The variant that it was assigned.
    #[must_use]
    pub fn variant(&self) -> Option<u32> {
        self.assigned.map(|(_, variant)| variant)
    }

    /// Whether it is as joins leave it. What is read from a file is asked this before it is joined: of
    /// states in another form joins promise nothing.
    pub(crate) fn is_sound(&self) -> bool {
        self.hits.are_sound()
            && self.counts.are_sound()
            && self.chained.are_sound()
            && self.runs.are_sound()
            && self.evidence.are_sound()
    }

    pub(super) fn assign(&mut self, variant: u32, at: i64) {
        self.heard(at, at);
        self.join_assigned(Some((at, variant)));
    }

    pub(super) fn report(&mut self, report: &ReportView<'_>, at: i64, keeps: Keeps) -> Vec<u32> {
        if keeps.evidence {
            self.evidence.report(report, at);
        }
        self.heard(at, at);
        self.latest = self.latest.take().max(Some(Latest::of(report)));
        self.runs.report(report);
        if keeps.counts {
            self.counts.report(report, counts::of_units(report));
        }
        if keeps.chains {
            self.chained.report(report);
        }
        self.hits.add(report.hits, at)
    }

    pub(super) fn knows(&self, report: &ReportView<'_>, keeps: Keeps) -> bool {
        self.runs.knows(report)
            && self.hits.have(report.hits)
            && (!keeps.counts || self.counts.knows(report, counts::of_units(report)))
            && (!keeps.chains || self.chained.knows(report))
    }

    pub(super) fn join(&mut self, other: Self) -> Vec<u32> {
        self.heard(other.first_heard, other.last_heard);
        self.join_assigned(other.assigned);
        self.latest = self.latest.take().max(other.latest);
        self.runs.join(other.runs);
        self.evidence.join(other.evidence);
        self.counts.join(other.counts);
        self.chained.join(other.chained);
        self.hits.join(&other.hits)
    }

    fn heard(&mut self, first: i64, last: i64) {
        self.first_heard = self.first_heard.min(first);
        self.last_heard = self.last_heard.max(last);
    }

    fn join_assigned(&mut self, other: Option<(i64, u32)>) {
        self.assigned = match (self.assigned, other) {
            (Some(one), Some(other)) => Some(one.min(other)),
            (one, other) => one.or(other),
        };
    }
}
