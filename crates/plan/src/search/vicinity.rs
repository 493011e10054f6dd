//! The vicinity of a predicate, forward and backward.
//!
//! Source: ABI §4.1 and §4.2. Forward: the sites in the blocks that depend on the predicate; where
//! such a block calls, also those in the blocks that the callee always runs, and so on. Backward:
//! besides these, the branch sites that decide about the predicate's own block; where none in its
//! routine does, those that decide about the calls of the routine, and so on up to a root, whose own
//! first sites count as decided by the entry.
//!
//! Each routine is entered once a query, so recursion ends. Forward takes as long as its answer and
//! the blocks passed; backward, for each routine that is climbed through, as long as its relation.

use std::collections::HashSet;

use super::icdg::{Block, Icdg, NONE, Path, PredicateId, SiteId};

/// What a vicinity is collected into: sites in the order in which they are met, each once.
#[derive(Default)]
pub(super) struct Vicinity {
    pub(super) sites: Vec<SiteId>,
    seen: HashSet<SiteId>,
    /// Routines whose first sites are in already.
    pub(super) entered: HashSet<u32>,
    climbed: HashSet<Block>,
}

impl Vicinity {
    /// What depends on `predicate`.
    pub(super) fn forward(&mut self, icdg: &Icdg, predicate: PredicateId) {
        let mut calls = Vec::new();
        self.blocks(
            icdg,
            path(icdg, icdg.decides[predicate.0 as usize]),
            &mut calls,
        );
        self.enter_all(icdg, calls);
    }

    /// What `routine` always runs, and the routines that it always calls.
    pub(super) fn enter(&mut self, icdg: &Icdg, routine: u32) {
        self.enter_all(icdg, vec![routine]);
    }

    /// What `routine` itself always runs, without the routines that are in already.
    pub(super) fn within(&mut self, icdg: &Icdg, routine: u32) {
        let mut calls = Vec::new();
        self.blocks(icdg, icdg.always_of(routine), &mut calls);
        self.enter_all(icdg, calls);
    }

    fn enter_all(&mut self, icdg: &Icdg, mut open: Vec<u32>) {
        while let Some(routine) = open.pop() {
            if self.entered.insert(routine) {
                self.blocks(icdg, icdg.always_of(routine), &mut open);
            }
        }
    }

    /// The sites of blocks that run together, and what they call.
    fn blocks(&mut self, icdg: &Icdg, blocks: impl Iterator<Item = Block>, calls: &mut Vec<u32>) {
        let mut open: Vec<Block> = blocks.collect();
        let mut passed: HashSet<Block> = HashSet::new();
        while let Some(block) = open.pop() {
            self.sites(icdg.sites_of(block));
            calls.extend(icdg.callees.of(block));
            if let Some(&endless) = icdg.endless.get(&block)
                && passed.insert(block)
            {
                open.extend(path(icdg, endless));
            }
        }
    }

    /// What the entry of the program decides about.
    pub(super) fn roots(&mut self, icdg: &Icdg) {
        for &root in &icdg.roots {
            self.enter(icdg, root);
        }
    }

    /// The branches that decide about `block`.
    pub(super) fn ancestors(&mut self, icdg: &Icdg, block: Block) {
        let mut open = vec![block];
        while let Some(block) = open.pop() {
            if !self.climbed.insert(block) {
                continue;
            }
            let routine = icdg.routine_of(block);
            self.controllers(icdg, routine, block, &mut open);
            if icdg.always[block as usize] {
                open.extend(icdg.callers.of(routine));
                if icdg.roots.contains(&routine) {
                    self.roots(icdg);
                }
            }
        }
    }

    /// The branches of `routine` that decide about its `block`; what it only follows is put on the
    /// list.
    fn controllers(&mut self, icdg: &Icdg, routine: u32, block: Block, open: &mut Vec<Block>) {
        let holds = |ends| path(icdg, ends).any(|at| at == block);
        for source in icdg.blocks_of(routine) {
            if icdg.endless.get(&source).copied().is_some_and(holds) {
                open.push(source);
            }
            for site in icdg.sites_of(source) {
                let mut predicates = icdg.predicates(site);
                if predicates.any(|p| holds(icdg.decides[p.0 as usize])) {
                    self.sites([site]);
                }
            }
        }
    }

    pub(super) fn sites(&mut self, sites: impl IntoIterator<Item = SiteId>) {
        for site in sites {
            if self.seen.insert(site) {
                self.sites.push(site);
            }
        }
    }
}

/// Whether a site that is not `known` is in these `blocks`, or in what they call. `entered` are routines from which
/// nothing new is reached by what they always run; those that are found to be such are added.
pub(super) fn has_news(
    icdg: &Icdg,
    blocks: impl Iterator<Item = Block> + Clone,
    entered: &mut HashSet<u32>,
    known: impl Fn(SiteId) -> bool,
) -> bool {
    let mut leads_on = false;
    for block in blocks.clone() {
        if !icdg.sites_of(block).all(&known) {
            return true;
        }
        leads_on |= icdg.leads_on[block as usize];
    }
    leads_on && has_news_beyond(icdg, blocks.collect(), entered, known)
}

/// The same with what the blocks call, if their own sites are known.
fn has_news_beyond(
    icdg: &Icdg,
    mut open: Vec<Block>,
    entered: &mut HashSet<u32>,
    known: impl Fn(SiteId) -> bool,
) -> bool {
    let (mut followed, mut fresh) = (HashSet::new(), HashSet::new());
    while let Some(block) = open.pop() {
        if !icdg.sites_of(block).all(&known) {
            return true;
        }
        if let Some(&endless) = icdg.endless.get(&block)
            && followed.insert(block)
        {
            open.extend(path(icdg, endless));
        }
        for &callee in icdg.callees.of(block) {
            if !entered.contains(&callee) && fresh.insert(callee) {
                open.extend(icdg.always_of(callee));
            }
        }
    }
    entered.extend(fresh);
    false
}

/// The blocks between the ends of a path of the post-dominator tree, without its stop.
pub(super) fn path(icdg: &Icdg, ends: Path) -> impl Iterator<Item = Block> + Clone {
    let on = move |&at: &Block| at != NONE && at != ends.stop;
    let up = move |&at: &Block| Some(icdg.parent[at as usize]).filter(on);
    std::iter::successors(Some(ends.to).filter(on), up)
}
