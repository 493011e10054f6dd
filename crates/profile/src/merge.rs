//! Merging: what several runs saw together. Both merges here are commutative, associative and
//! idempotent, so records may be merged anywhere, in any order, and more than once.
//!
//! - [`Marks`] of one plan: bit OR of the hits. That a block ran distributes over it: it ran in some run
//!   exactly if a probe that implies it was hit in some run (Agrawal, POPL 1994, §3; see
//!   [`tomo_plan::coverage`]). What follows from probes that a run did *not* hit does not: that an `if` was
//!   passed by ran in the runs that left its body out, and their marks together with those of others do not tell
//!   it. So marks are merged and read once, which tells all that ran in none, and where that leaves
//!   something unknown, each run is read by itself. Runs that are known to have been cut are kept
//!   apart ([`crate::records::Kind`]), since they are read with less trust. O(probes).
//! - [`Finding`]s of one unit, from several plans or runs: the maximum of a total order.

use fixedbitset::FixedBitSet;
use tomo_wire::record::{Live, MARKS, Record, RecordView, Refusals};
use tomo_wire::{ModuleId, pages};
use zerocopy::IntoBytes as _;

use crate::coverage::{Basis, Verdict};
use crate::records::Kind;

/// What is known of a unit over all runs, from the least to the most: it ran in none, that cannot
/// be told, it ran in one. Of two that say the same, not having run is as weak as the weaker, having
/// run is as strong as the stronger.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Finding {
    /// It did not run: its own probe says so. What no run at all says.
    #[default]
    NotRun,
    /// It did not run: other probes say so.
    NotRunInferred,
    /// It did not run: other probes say so, if no run ended otherwise than promised.
    NotRunIfWhole,
    /// It may have run.
    Unknown,
    /// It ran: other probes say so, if the run ended as promised.
    RanIfWhole,
    /// It ran: other probes say so.
    RanInferred,
    /// It ran: its own probe says so.
    Ran,
}

impl Finding {
    /// All of them, ascending.
    pub const ALL: [Self; 7] = [
        Self::NotRun,
        Self::NotRunInferred,
        Self::NotRunIfWhole,
        Self::Unknown,
        Self::RanIfWhole,
        Self::RanInferred,
        Self::Ran,
    ];

    /// What is known from the runs of both.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        self.max(other)
    }

    /// Whether it ran; `None` where that is unknown.
    #[must_use]
    pub fn ran(self) -> Option<bool> {
        match self.cmp(&Self::Unknown) {
            std::cmp::Ordering::Less => Some(false),
            std::cmp::Ordering::Equal => None,
            std::cmp::Ordering::Greater => Some(true),
        }
    }

    /// Whether it is known from other units' probes.
    #[must_use]
    pub fn is_inferred(self) -> bool {
        !matches!(self, Self::NotRun | Self::Unknown | Self::Ran)
    }
}

impl From<Verdict> for Finding {
    fn from(verdict: Verdict) -> Self {
        match verdict {
            Verdict::NotRun(Basis::Observed) => Self::NotRun,
            Verdict::NotRun(Basis::Inferred) => Self::NotRunInferred,
            Verdict::NotRun(Basis::InferredIfWhole) => Self::NotRunIfWhole,
            Verdict::Unknown => Self::Unknown,
            Verdict::Ran(Basis::InferredIfWhole) => Self::RanIfWhole,
            Verdict::Ran(Basis::Inferred) => Self::RanInferred,
            Verdict::Ran(Basis::Observed) => Self::Ran,
        }
    }
}

/// The name of what several runs saw: pools, and runs that were merged.
pub const SEVERAL: [u8; 16] = [0; 16];

/// What the probes of one plan saw in any number of runs.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Marks {
    /// For each probe, whether it was hit.
    pub hits: FixedBitSet,
    /// The run, if it is one, as records name it; else [`SEVERAL`].
    pub run: [u8; 16],
    /// When the first of the records was made, in nanoseconds since 1970.
    pub created: i64,
    /// Of each counter the largest.
    pub live: Counters,
}

/// The counters of a record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Counters {
    /// Processes that were armed.
    pub armed: u64,
    /// Processes that were not, and why.
    pub refused: Refusals,
    /// Traps that were handled.
    pub traps: u64,
    /// Traps that were passed on.
    pub foreign_traps: u64,
    /// Programs that were started without the agent.
    pub without: u64,
    /// The process that was armed last.
    pub process: u64,
    /// How the run ended, and its status.
    pub outcome: (u32, u32),
}

impl Marks {
    /// What a record says.
    #[must_use]
    pub fn of(record: &RecordView<'_>) -> Self {
        let mut hits = FixedBitSet::with_capacity(record.marks.len());
        let marks = record.marks.iter().enumerate();
        hits.extend(
            marks
                .filter(|(_, mark)| **mark != 0)
                .map(|(probe, _)| probe),
        );
        Self {
            hits,
            run: record.header.run,
            created: record.header.created.get(),
            live: Counters::of(&record.live),
        }
    }

    /// Adds what other runs under the same plan saw. Marks of another number of probes are of another
    /// plan; then nothing is added, and the answer is no.
    #[must_use]
    pub fn join(&mut self, other: &Self) -> bool {
        if self.hits.len() != other.hits.len() {
            return false;
        }
        self.hits.union_with(&other.hits);
        if self.run != other.run {
            self.run = SEVERAL;
        }
        self.created = self.created.min(other.created);
        self.live.join(&other.live);
        true
    }

    /// The file of a record of `module`, of this kind.
    #[must_use]
    pub fn to_record(&self, module: ModuleId, kind: Kind) -> Vec<u8> {
        let probes = self.hits.len();
        let count = u32::try_from(probes).unwrap_or(u32::MAX);
        let header = Record::of(module, kind.plan, count, self.run, self.created).sealed();
        let marks = pages(probes as u64).unwrap_or(0) + MARKS;
        let mut bytes = vec![0; usize::try_from(marks).unwrap_or(usize::MAX)];
        let live = Live {
            forked: u64::from(kind.loose).into(),
            ..self.live.to_live()
        };
        let at = tomo_wire::record::LIVE as usize;
        bytes[..header.len()].copy_from_slice(&header);
        bytes[at..at + size_of::<Live>()].copy_from_slice(live.as_bytes());
        self.hits
            .ones()
            .for_each(|probe| bytes[MARKS as usize + probe] = 1);
        bytes
    }
}

impl Counters {
    fn of(live: &Live) -> Self {
        Self {
            armed: live.armed.get(),
            refused: Refusals::of(live),
            traps: live.traps.get(),
            foreign_traps: live.foreign_traps.get(),
            without: live.without.get(),
            process: live.process.get(),
            outcome: (live.outcome.get(), live.status.get()),
        }
    }

    /// Sums would count a run twice that is merged twice; the largest does not.
    fn join(&mut self, other: &Self) {
        self.armed = self.armed.max(other.armed);
        let reasons = self.refused.reasons | other.refused.reasons;
        self.refused = self.refused.max(other.refused);
        self.refused.reasons = reasons;
        self.traps = self.traps.max(other.traps);
        self.foreign_traps = self.foreign_traps.max(other.foreign_traps);
        self.without = self.without.max(other.without);
        self.process = self.process.max(other.process);
        self.outcome = self.outcome.max(other.outcome);
    }

    fn to_live(self) -> Live {
        Live {
            armed: self.armed.into(),
            refused: self.refused.count.into(),
            reason: self.refused.last.into(),
            errno: self.refused.errno.into(),
            traps: self.traps.into(),
            foreign_traps: self.foreign_traps.into(),
            process: self.process.into(),
            outcome: self.outcome.0.into(),
            status: self.outcome.1.into(),
            identity: 0.into(),
            sound: 0.into(),
            without: self.without.into(),
            file: 0.into(),
            reasons: self.refused.reasons.into(),
            forked: 0.into(),
        }
    }
}
