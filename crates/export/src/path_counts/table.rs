//! Which path each counter of a function counts.

use std::collections::BTreeSet;

use tomo_plan::paths::selective::Sums;
use tomo_plan::paths::{ArcId, Interest};
use tomo_profile::paths::Decoder;
use tomo_wire::paths::{Asked, Function};

use super::Followed;

/// What the counters of a function count.
pub(super) struct Table<'f, 'g> {
    followed: &'f Followed<'g>,
    decoder: Decoder<'f>,
    pub(super) asked: Asked,
    /// Numbers of paths that are named.
    pub(super) named: BTreeSet<u64>,
    /// If counters are of sums that tell only some paths apart.
    sums: Option<Sums>,
}

impl<'f, 'g> Table<'f, 'g> {
    pub(super) fn of(followed: &'f Followed<'g>, row: &Function, named: &[u64]) -> Option<Self> {
        let mut table = Self {
            decoder: Decoder::new(&followed.dag, &followed.numbering),
            asked: row.asked()?,
            named: named.iter().copied().collect(),
            followed,
            sums: None,
        };
        if row.is_selective() {
            let along = table.named.iter().map(|number| table.along(*number));
            let along: Vec<_> = along.collect::<Option<_>>()?;
            let interest = match table.asked {
                Asked::Others => Interest::unseen(&followed.dag, along),
                Asked::All | Asked::Named => Interest::of(&followed.dag, along),
            };
            table.sums = Some(Sums::of(&followed.dag, interest.ok()?).ok()?);
        }
        Some(table)
    }

    /// How many counters there are.
    pub(super) fn numbers(&self) -> u64 {
        let sums = self.sums.as_ref().map(Sums::numbers);
        sums.unwrap_or(self.followed.numbering.total())
    }

    /// The path with this number.
    pub(super) fn along(&self, number: u64) -> Option<Vec<ArcId>> {
        let mut arcs = Vec::new();
        self.decoder.decode(number, &mut arcs).then_some(arcs)
    }

    /// The path that a counter counts, unless it is that of others: no path at all is a contradiction.
    pub(super) fn counted(&self, counter: u64) -> Option<Option<Vec<ArcId>>> {
        let Some(sums) = &self.sums else {
            return self.along(counter).map(Some);
        };
        Some(sums.path(&self.followed.dag, counter))
    }

    pub(super) fn is_asked(&self, arcs: &[ArcId]) -> bool {
        let is_named = || self.named.contains(&self.followed.numbering.number(arcs));
        match self.asked {
            Asked::All => true,
            Asked::Named => is_named(),
            Asked::Others => !is_named(),
        }
    }

    /// How often each path ran that was asked for, by its name.
    pub(super) fn ran(&self, counts: &[u64]) -> Option<Vec<(Vec<ArcId>, u64)>> {
        let mut ran = Vec::new();
        for (counter, &count) in (0..).zip(counts).filter(|(_, count)| **count > 0) {
            let arcs = self.counted(counter)?;
            ran.extend(
                arcs.filter(|arcs| self.is_asked(arcs))
                    .map(|arcs| (arcs, count)),
            );
        }
        Some(ran)
    }
}
