//! Heuristics that need no data.
//!
//! Source: ABI §4.3 (BFS, Random) and §5.2 (Oracle: it "has perfect knowledge of program behavior" and
//! "always selects the branch predicate that reaches the target predicate by monitoring the fewest
//! instrumentation sites"). The oracle's distances are shortest paths (Dijkstra, 1959) over forward
//! vicinities, where taking a predicate costs the sites in its vicinity; that sites may be known
//! already is left out, so it is a lower bound of the effort only where vicinities do not overlap.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::icdg::{NONE, PredicateId};
use super::vicinity::Vicinity;
use super::{Icdg, SiteId};
use crate::random::Random;

/// The first candidate: breadth-first search.
pub fn breadth_first(candidates: &mut dyn Iterator<Item = PredicateId>) -> Option<PredicateId> {
    candidates.next()
}

/// Any candidate, each equally likely (reservoir sampling; Knuth, TAOCP 2, §3.4.2).
pub fn at_random(
    random: &mut Random,
    candidates: &mut dyn Iterator<Item = PredicateId>,
) -> Option<PredicateId> {
    let mut chosen = None;
    for (before, candidate) in candidates.enumerate() {
        if random.below(before + 1) == 0 {
            chosen = Some(candidate);
        }
    }
    chosen
}

/// How many sites must be watched to get from each predicate to the target.
#[derive(Clone, Debug)]
pub struct Oracle {
    distance: Vec<Option<u64>>,
}

impl Oracle {
    /// The distances to `target`'s site. Writes all vicinities down: for studies, not for large
    /// programs.
    #[must_use]
    pub fn of(icdg: &Icdg, target: PredicateId) -> Self {
        let vicinities: Vec<Vec<SiteId>> = (0..icdg.predicate_count() as u32)
            .map(|predicate| vicinity(icdg, PredicateId(predicate)))
            .collect();
        let mut led_by: Vec<Vec<u32>> = vec![Vec::new(); icdg.site_count()];
        for (predicate, sites) in (0..).zip(&vicinities) {
            for site in sites {
                led_by[site.0 as usize].push(predicate);
            }
        }
        let mut distance = vec![None; vicinities.len()];
        let mut reached = vec![false; icdg.site_count()];
        let mut open = BinaryHeap::from([Reverse((0u64, icdg.site_of(target).0))]);
        while let Some(Reverse((far, site))) = open.pop() {
            if std::mem::replace(&mut reached[site as usize], true) {
                continue;
            }
            for &predicate in &led_by[site as usize] {
                if distance[predicate as usize].is_none() {
                    let farther = far + vicinities[predicate as usize].len() as u64;
                    distance[predicate as usize] = Some(farther);
                    let source = icdg.site_of(PredicateId(predicate));
                    open.push(Reverse((farther, source.0)));
                }
            }
        }
        Self { distance }
    }

    /// The number of sites to be watched from `predicate` on, if it leads to the target.
    #[must_use]
    pub fn distance(&self, predicate: PredicateId) -> Option<u64> {
        self.distance.get(predicate.0 as usize).copied().flatten()
    }

    /// The candidate nearest to the target, the first of several; the first of all if none leads there.
    pub fn choose(&self, candidates: &mut dyn Iterator<Item = PredicateId>) -> Option<PredicateId> {
        candidates.min_by_key(|&candidate| self.distance(candidate).unwrap_or(u64::MAX))
    }
}

fn vicinity(icdg: &Icdg, predicate: PredicateId) -> Vec<SiteId> {
    let mut vicinity = Vicinity::default();
    if icdg.decides[predicate.0 as usize].to != NONE {
        vicinity.forward(icdg, predicate);
    }
    vicinity.sites
}
