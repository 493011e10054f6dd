//! What decides whether a routine is come to that only failing runs enter.
//!
//! Not the papers'. Of a site in such a routine, a *doomed* one, Context is 1, for no successful run comes to it; so Increase, and
//! with it Importance, is never above 0 (ABI §4.3, after Liblit et al.). What can be important is what leads there: the
//! branches that decide about the calls of the routine, near and far; of a call in another doomed routine, or in what a routine
//! always runs, those that decide about that one's calls, and so on. A routine that no failing run enters, an *idle* one,
//! leads nowhere in them. Upward of one routine ([`Doomed::above`]), or downward from all that is not known
//! ([`Doomed::has_news`]), which takes as long as the program is large, for all routines together.

use std::collections::{BTreeMap, BTreeSet};

use super::icdg::{Block, Icdg, Path};
use super::vicinity::path;
use super::{SiteId, State};

/// Which routines are doomed, and which are idle.
pub(super) struct Doomed<'s> {
    doomed: &'s [u32],
    idle: &'s [u32],
}

impl<'s> Doomed<'s> {
    pub(super) fn of(state: &'s State) -> Self {
        Self {
            doomed: &state.doomed,
            idle: &state.idle,
        }
    }

    /// Whether only failing runs enter the routine.
    pub(super) fn has(&self, routine: u32) -> bool {
        self.doomed.binary_search(&routine).is_ok()
    }

    fn is_idle(&self, routine: u32) -> bool {
        self.idle.binary_search(&routine).is_ok()
    }

    /// The branches that decide whether `routine` is come to: of each routine those behind come first.
    pub(super) fn above(&self, icdg: &Icdg, routine: u32) -> Vec<SiteId> {
        let (mut open, mut climbed) = (vec![routine], BTreeSet::new());
        let mut calls: BTreeMap<u32, BTreeSet<Block>> = BTreeMap::new();
        while let Some(routine) = open.pop() {
            if !climbed.insert(routine) {
                continue;
            }
            for &block in icdg.callers.of(routine) {
                let caller = icdg.routine_of(block);
                if self.is_idle(caller) {
                    continue;
                }
                if self.passes(icdg, block) {
                    open.push(caller);
                }
                if !self.has(caller) {
                    calls.entry(caller).or_default().insert(block);
                }
            }
        }
        let each = calls.into_iter();
        each.flat_map(|(routine, blocks)| deciders(icdg, routine, blocks))
            .collect()
    }

    /// Whether what decides about a block's routine decides about the block.
    fn passes(&self, icdg: &Icdg, block: Block) -> bool {
        icdg.always[block as usize] || self.has(icdg.routine_of(block))
    }

    /// By routine: whether a branch is not `known` that decides whether it is come to.
    pub(super) fn has_news(&self, icdg: &Icdg, known: &[bool]) -> Vec<bool> {
        let mut news = vec![false; icdg.routine_count() as usize];
        let mut open = Vec::new();
        for block in self.decided_anew(icdg, known) {
            meet(icdg.callees.of(block), &mut news, &mut open);
        }
        while let Some(routine) = open.pop() {
            if self.is_idle(routine) {
                continue;
            }
            for block in icdg.blocks_of(routine) {
                if self.passes(icdg, block) {
                    meet(icdg.callees.of(block), &mut news, &mut open);
                }
            }
        }
        news
    }

    /// The blocks of routines that are neither doomed nor idle about which a branch decides, near or far, that is not known.
    fn decided_anew(&self, icdg: &Icdg, known: &[bool]) -> BTreeSet<Block> {
        let new = (0..known.len() as u32).filter(|&site| !known[site as usize]);
        let counts = |site: &SiteId| {
            let routine = icdg.place(*site).0;
            !self.has(routine) && !self.is_idle(routine)
        };
        let mut open: Vec<Path> = Vec::new();
        for site in new.map(SiteId).filter(counts) {
            open.extend(ways(icdg, site));
        }
        let mut decided = BTreeSet::new();
        while let Some(ends) = open.pop() {
            for block in path(icdg, ends) {
                if decided.insert(block) {
                    open.extend(icdg.endless.get(&block));
                    open.extend(icdg.sites_of(block).flat_map(|site| ways(icdg, site)));
                }
            }
        }
        decided
    }
}

/// What the predicates of a site decide about.
fn ways(icdg: &Icdg, site: SiteId) -> impl Iterator<Item = Path> {
    let predicates = icdg.predicates(site);
    predicates.map(|predicate| icdg.decides[predicate.0 as usize])
}

fn meet(callees: &[u32], news: &mut [bool], open: &mut Vec<u32>) {
    for &callee in callees {
        if !std::mem::replace(&mut news[callee as usize], true) {
            open.push(callee);
        }
    }
}

/// The branches of `routine` that decide about these of its blocks, or about a branch that does.
fn deciders(icdg: &Icdg, routine: u32, mut blocks: BTreeSet<Block>) -> Vec<SiteId> {
    let (mut sites, mut found) = (Vec::new(), BTreeSet::new());
    loop {
        let before = (blocks.len(), sites.len());
        for block in icdg.blocks_of(routine).rev() {
            let decides = |ends| path(icdg, ends).any(|at| blocks.contains(&at));
            let follows = icdg.endless.get(&block).copied().is_some_and(decides);
            let branch = icdg
                .sites_of(block)
                .find(|&site| ways(icdg, site).any(decides));
            if branch.is_some() || follows {
                blocks.insert(block);
            }
            sites.extend(branch.filter(|site| found.insert(*site)));
        }
        if (blocks.len(), sites.len()) == before {
            return sites;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;
    use crate::search::Direction;
    use crate::search::above::tests::partly_known;

    /// Random programs, and random sites known: of each routine the same downward as upward.
    #[test]
    fn news_are_what_is_not_known_above() {
        let mut random = Random::new(11);
        let mut found = [0, 0];
        for round in 0..3000 {
            let (icdg, known) = partly_known(&mut random, round);
            let mut state = State::new(&icdg, Direction::Forward);
            for routine in 0..icdg.routine_count() {
                match random.below(4) {
                    0 | 1 => state.doomed.push(routine),
                    2 => state.idle.push(routine),
                    _ => {}
                }
            }
            let doomed = Doomed::of(&state);
            let news = doomed.has_news(&icdg, &known);
            for routine in 0..icdg.routine_count() {
                let above = doomed.above(&icdg, routine);
                let new = above.iter().any(|site| !known[site.0 as usize]);
                assert_eq!(news[routine as usize], new, "round {round}, {routine}");
                found[usize::from(new)] += 1;
            }
        }
        assert!(found.iter().all(|&count| count > 500), "{found:?}");
    }
}
