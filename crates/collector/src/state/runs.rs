//! The runs of an instance: the last word of each, and sums of those that have ended.
//!
//! An instance may have made millions of runs, so ended ones are folded. Sums alone could not be joined
//! (two collectors may know different runs, and some of the same), so runs are kept in *blocks* of
//! [`BLOCK`] consecutive numbers: once all runs of a block have ended there is nothing more to learn of
//! it, and it is replaced by its sums, which are the same for everybody. A few bytes a run remain.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use tomo_wire::report::{Outcome, ReportView};

/// Runs of one block.
const BLOCK: u64 = 64;

/// The last word of a run. The order is that of the join: a final word counts more than any other, then
/// the higher sequence; the rest makes the order total.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Run {
    is_final: bool,
    sequence: u32,
    variant: u32,
    is_cut: bool,
    is_observed: bool,
    duration: u64,
    cpu: u64,
}

impl Run {
    fn of(report: &ReportView<'_>) -> Self {
        let header = &report.header;
        Self {
            is_final: report.outcome.is_final(),
            sequence: header.sequence.get(),
            variant: header.variant.get(),
            is_cut: matches!(report.outcome, Outcome::Signal | Outcome::Unseen),
            is_observed: header.armed.get() > 0,
            duration: header.duration.get(),
            cpu: header.cpu.get(),
        }
    }
}

/// Runs, added up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Sums {
    /// Runs.
    pub runs: u64,
    /// Of these, those whose end is not known.
    pub running: u64,
    /// Those that ended by a signal, or unseen.
    pub cut: u64,
    /// Those in which nothing was armed.
    pub unobserved: u64,
    /// Nanoseconds of those in which something was.
    pub duration: u64,
    /// Nanoseconds of processor time of them.
    pub cpu: u64,
}

impl Sums {
    fn run(run: &Run) -> Self {
        let observed = |time: u64| if run.is_observed { time } else { 0 };
        Self {
            runs: 1,
            running: (!run.is_final).into(),
            cut: run.is_cut.into(),
            unobserved: (!run.is_observed).into(),
            duration: observed(run.duration),
            cpu: observed(run.cpu),
        }
    }

    /// Adds others. Hostile numbers saturate.
    pub fn add(&mut self, other: &Self) {
        let pairs = [
            (&mut self.runs, other.runs),
            (&mut self.running, other.running),
            (&mut self.cut, other.cut),
            (&mut self.unobserved, other.unobserved),
            (&mut self.duration, other.duration),
            (&mut self.cpu, other.cpu),
        ];
        for (sum, part) in pairs {
            *sum = sum.saturating_add(part);
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Block {
    /// Runs by their number within the block.
    Open(BTreeMap<u8, Run>),
    /// Sums by variant, of all runs of the block.
    Closed(BTreeMap<u32, Sums>),
}

impl Block {
    fn join(&mut self, other: Self) {
        match (&mut *self, other) {
            (Self::Open(runs), Self::Open(others)) => {
                for (number, run) in others {
                    let known = runs.entry(number).or_insert(run);
                    *known = (*known).max(run);
                }
                self.close();
            }
            (Self::Open(_), closed) => *self = closed,
            (Self::Closed(_), Self::Open(_)) => {}
            // Equal, as long as runs have one final report each.
            (Self::Closed(sums), Self::Closed(others)) => {
                if others > *sums {
                    *sums = others;
                }
            }
        }
    }

    fn close(&mut self) {
        if let Self::Open(runs) = self
            && is_over(runs)
        {
            *self = Self::Closed(sums(runs.values()));
        }
    }

    /// Whether it is as [`Self::close`] leaves it.
    fn is_sound(&self) -> bool {
        match self {
            Self::Open(runs) => {
                let last = runs.last_key_value();
                last.is_none_or(|(number, _)| u64::from(*number) < BLOCK) && !is_over(runs)
            }
            Self::Closed(_) => true,
        }
    }
}

/// Whether there is nothing more to learn of a block.
fn is_over(runs: &BTreeMap<u8, Run>) -> bool {
    runs.len() as u64 == BLOCK && runs.values().all(|run| run.is_final)
}

fn sums<'r>(runs: impl Iterator<Item = &'r Run>) -> BTreeMap<u32, Sums> {
    let mut sums: BTreeMap<u32, Sums> = BTreeMap::new();
    for run in runs {
        sums.entry(run.variant).or_default().add(&Sums::run(run));
    }
    sums
}

/// The runs of an instance.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Runs {
    blocks: BTreeMap<u64, Block>,
}

/// Which block a run is in, and where there. Runs are numbered from 1.
fn place(run: u64) -> (u64, u8) {
    let run = run.saturating_sub(1);
    (run / BLOCK, (run % BLOCK) as u8)
}

impl Runs {
    /// Whether blocks are as joins leave them, as they are unless somebody else wrote them.
    pub(super) fn are_sound(&self) -> bool {
        self.blocks.values().all(Block::is_sound)
    }

    /// Takes the word of a report.
    pub(super) fn report(&mut self, report: &ReportView<'_>) {
        let (block, number) = place(report.header.run.get());
        let word = Block::Open([(number, Run::of(report))].into());
        self.join_block(block, word);
    }

    /// Whether a report's word on its run adds nothing.
    pub(super) fn knows(&self, report: &ReportView<'_>) -> bool {
        let (block, number) = place(report.header.run.get());
        match self.blocks.get(&block) {
            Some(Block::Open(runs)) => runs.get(&number).is_some_and(|run| *run >= Run::of(report)),
            Some(Block::Closed(_)) => true,
            None => false,
        }
    }

    /// Whether a run of this number is known to have ended, and not as this report says: it was another run. Of a block that is
    /// over nothing is known of each.
    pub(crate) fn contradict(&self, report: &ReportView<'_>) -> bool {
        let (block, number) = place(report.header.run.get());
        let Some(Block::Open(runs)) = self.blocks.get(&block) else {
            return false;
        };
        let said = Run::of(report);
        let known = runs.get(&number).filter(|known| known.is_final);
        said.is_final && known.is_some_and(|known| *known != said)
    }

    /// Takes what another knows.
    pub(super) fn join(&mut self, other: Self) {
        for (number, block) in other.blocks {
            self.join_block(number, block);
        }
    }

    fn join_block(&mut self, number: u64, block: Block) {
        match self.blocks.entry(number) {
            std::collections::btree_map::Entry::Vacant(free) => {
                free.insert(block);
            }
            std::collections::btree_map::Entry::Occupied(mut known) => known.get_mut().join(block),
        }
    }

    /// Sums of all runs, by variant.
    pub(crate) fn by_variant(&self) -> BTreeMap<u32, Sums> {
        let mut all: BTreeMap<u32, Sums> = BTreeMap::new();
        for block in self.blocks.values() {
            match block {
                Block::Open(runs) => {
                    for run in runs.values() {
                        all.entry(run.variant).or_default().add(&Sums::run(run));
                    }
                }
                Block::Closed(sums) => {
                    for (variant, sums) in sums {
                        all.entry(*variant).or_default().add(sums);
                    }
                }
            }
        }
        all
    }

    /// Sums of all runs.
    #[must_use]
    pub fn sums(&self) -> Sums {
        let mut all = Sums::default();
        self.by_variant().values().for_each(|sums| all.add(sums));
        all
    }

    /// How many blocks are kept: what an instance costs beside its hits.
    #[must_use]
    pub fn blocks(&self) -> usize {
        self.blocks.len()
    }

    /// Whether a run is in a block that is kept already.
    pub(crate) fn has_block_of(&self, run: u64) -> bool {
        self.blocks.contains_key(&place(run).0)
    }
}
