//! ABI Procedure 1, one iteration at a time.
//!
//! Invariants: a site is in at most one of *monitored*, *plan* and *pending*, and `known` is true of
//! exactly those; a candidate is a branch predicate of a monitored site that is not explored and may
//! have something in its vicinity.

use std::collections::{BTreeSet, HashSet};

use super::above::Above;
use super::doomed::Doomed;
use super::icdg::{NONE, Routine};
use super::vicinity::{self, Vicinity};
use super::{Direction, Icdg, PredicateId, SiteId, SiteKind, State, StateError};
use tomo_graph::NodeId;

/// What an iteration did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Step {
    /// It took this predicate, and the plan holds what was new in its vicinity.
    Explored(PredicateId),
    /// It went on with sites that were pending.
    Continued,
    /// Nothing led further; it turned to a routine that nothing had led to.
    Strayed,
    /// Every site has been watched.
    Done,
}

/// A search of a program.
#[derive(Debug)]
pub struct Search<'i> {
    icdg: &'i Icdg,
    state: State,
    /// Per site: monitored, in the plan or pending.
    known: Vec<bool>,
    /// Per predicate: explored, or found to have nothing new in its vicinity.
    explored: Vec<bool>,
    /// Per block: whether what decides about it has been added.
    climbed: Vec<bool>,
    /// Routines whose first sites are all known; found again when a search is resumed.
    entered: HashSet<u32>,
    candidates: Vec<PredicateId>,
}

impl<'i> Search<'i> {
    /// Begins with the sites that run whenever the program does.
    #[must_use]
    pub fn forward(icdg: &'i Icdg) -> Self {
        let mut vicinity = Vicinity::default();
        vicinity.roots(icdg);
        Self::starting(icdg, Direction::Forward, &vicinity.sites)
    }

    /// Begins with the branches that decide about the blocks in which runs crashed (routine and
    /// block; those that there are not are left out).
    #[must_use]
    pub fn backward(icdg: &'i Icdg, crashes: &[(u32, NodeId)]) -> Self {
        let mut vicinity = Vicinity::default();
        for &(routine, node) in crashes {
            if routine < icdg.routine_count() {
                let blocks = icdg.blocks_of(routine);
                let block = blocks.start.saturating_add(node.0);
                if blocks.contains(&block) {
                    vicinity.ancestors(icdg, block);
                }
            }
        }
        Self::starting(icdg, Direction::Backward, &vicinity.sites)
    }

    /// Begins with sites of one's own choice.
    #[must_use]
    pub fn starting(icdg: &'i Icdg, direction: Direction, sites: &[SiteId]) -> Self {
        let mut search = Self::of_state(icdg, State::new(icdg, direction));
        search.watch(sites);
        search
    }

    /// Goes on where `state` was saved.
    pub fn resume(icdg: &'i Icdg, state: State) -> Result<Self, StateError> {
        state.check(icdg)?;
        Ok(Self::of_state(icdg, state))
    }

    fn of_state(icdg: &'i Icdg, state: State) -> Self {
        let mut search = Self {
            icdg,
            known: vec![false; icdg.site_count()],
            explored: vec![false; icdg.predicate_count() + icdg.routine_count() as usize],
            climbed: vec![false; icdg.parent.len()],
            entered: HashSet::new(),
            candidates: Vec::new(),
            state,
        };
        let sites = [
            &search.state.monitored,
            &search.state.plan,
            &search.state.pending,
        ];
        for &site in sites.into_iter().flatten() {
            search.known[site as usize] = true;
        }
        for at in 0..search.state.explored.len() {
            search.mark(PredicateId(search.state.explored[at]));
        }
        search.add_entries();
        let monitored = search.state.monitored.clone();
        search.add_candidates(&monitored);
        search
    }

    /// The same search, which knows of these routines in which runs they are entered: that is a predicate of each
    /// ([`Icdg::entry`]) that may be explored from the beginning, and no vicinity spreads into them.
    #[must_use]
    pub fn surveyed(mut self, routines: impl IntoIterator<Item = u32>) -> Self {
        self.state.surveyed = self.ascending(routines);
        self.add_entries();
        self
    }

    /// The same search, which knows that only failing runs enter the `doomed` of the routines that were surveyed, and that
    /// none does the `idle`: an entry of the former leads to what decides whether it is come to.
    #[must_use]
    pub fn doomed(
        mut self,
        doomed: impl IntoIterator<Item = u32>,
        idle: impl IntoIterator<Item = u32>,
    ) -> Self {
        self.state.doomed = self.ascending(doomed);
        self.state.idle = self.ascending(idle);
        self
    }

    /// Of these routines those that there are.
    fn ascending(&self, routines: impl IntoIterator<Item = u32>) -> Vec<u32> {
        let there = |routine: &u32| *routine < self.icdg.routine_count();
        let routines: BTreeSet<u32> = routines.into_iter().filter(there).collect();
        routines.into_iter().collect()
    }

    fn add_entries(&mut self) {
        let (icdg, surveyed) = (self.icdg, &self.state.surveyed);
        self.entered.extend(surveyed);
        self.candidates
            .extend(surveyed.iter().map(|&routine| icdg.entry(routine)));
    }

    /// The same search, which watches at most `most` sites at once; what is more waits its turn.
    #[must_use]
    pub fn limited(mut self, most: u32) -> Self {
        self.state.most = most.max(1);
        self.cut();
        self
    }

    /// What to save.
    #[must_use]
    pub fn state(&self) -> &State {
        &self.state
    }

    /// The sites to watch until the data suffice.
    pub fn plan(&self) -> impl ExactSizeIterator<Item = SiteId> {
        self.state.plan.iter().copied().map(SiteId)
    }

    /// The predicates of which one may be explored next, those of sites watched earlier first.
    pub fn candidates(&self) -> impl Iterator<Item = PredicateId> {
        let open = |&predicate: &PredicateId| self.is_open(predicate);
        self.candidates.iter().copied().filter(open)
    }

    fn is_open(&self, predicate: PredicateId) -> bool {
        !self.explored[predicate.0 as usize] && !self.is_barren(predicate)
    }

    /// Whether nothing can be in the vicinity. A predicate that decides nothing has only ancestors.
    fn is_barren(&self, predicate: PredicateId) -> bool {
        let icdg = self.icdg;
        if icdg.entered(predicate).is_some() {
            return false;
        }
        let path = icdg.decides[predicate.0 as usize];
        let block = icdg.site_block[icdg.site_of(predicate).0 as usize];
        let climbs = self.state.direction == Direction::Backward && !self.climbed[block as usize];
        (path.to == NONE || path.to == path.stop) && !climbs
    }

    /// The data of the plan suffice: takes the best of the candidates, as `choose` has it, and plans
    /// its vicinity. Asks again if a vicinity holds nothing new, without all that are such. `choose`
    /// must return one of the candidates; nothing stands for the first.
    pub fn step(
        &mut self,
        mut choose: impl FnMut(&mut dyn Iterator<Item = PredicateId>) -> Option<PredicateId>,
    ) -> Step {
        self.retire();
        if self.refill() {
            return Step::Continued;
        }
        loop {
            let chosen = choose(&mut self.candidates()).filter(|&p| self.is_candidate(p));
            let Some(best) = chosen.or_else(|| self.candidates().next()) else {
                return self.stray();
            };
            self.take(best);
            if !self.state.plan.is_empty() {
                self.state.explored.push(best.0);
                return Step::Explored(best);
            }
            self.sweep();
        }
    }

    /// Strikes out all candidates whose vicinity holds nothing new, now or ever after.
    fn sweep(&mut self) {
        let climbs = self.state.direction == Direction::Backward;
        let above = climbs.then(|| Above::of(self.icdg, &self.known, &self.state.surveyed));
        let led_to = Doomed::of(&self.state).has_news(self.icdg, &self.known);
        let mut candidates = std::mem::take(&mut self.candidates);
        candidates.retain(|&predicate| {
            let stays =
                self.is_open(predicate) && self.has_news(predicate, above.as_ref(), &led_to);
            self.explored[predicate.0 as usize] |= !stays;
            stays
        });
        self.candidates = candidates;
    }

    /// Whether something new is in the vicinity.
    fn has_news(&mut self, predicate: PredicateId, above: Option<&Above>, led_to: &[bool]) -> bool {
        let icdg = self.icdg;
        let known = |site: SiteId| self.known[site.0 as usize];
        if let Some(routine) = icdg.entered(predicate) {
            if Doomed::of(&self.state).has(routine) {
                return led_to[routine as usize];
            }
            let blocks = icdg.always_of(routine);
            return vicinity::has_news(icdg, blocks, &mut self.entered, known);
        }
        let blocks = vicinity::path(icdg, icdg.decides[predicate.0 as usize]);
        let block = icdg.site_block[icdg.site_of(predicate).0 as usize];
        above.is_some_and(|above| above.has_news(block))
            || vicinity::has_news(icdg, blocks, &mut self.entered, known)
    }

    /// A person's choice instead of [`step`](Self::step)'s: any branch predicate, watched or not.
    pub fn explore(&mut self, predicate: PredicateId) -> Step {
        if predicate.0 as usize >= self.explored.len() {
            return Step::Continued;
        }
        self.retire();
        if !self.explored[predicate.0 as usize] {
            self.state.explored.push(predicate.0);
        }
        self.take(predicate);
        Step::Explored(predicate)
    }

    /// Adds sites to the plan, whatever the procedure thinks of them. Those that are known already, or
    /// that there are not, are left out.
    pub fn watch(&mut self, sites: &[SiteId]) {
        for site in sites {
            if let Some(known) = self.known.get_mut(site.0 as usize)
                && !std::mem::replace(known, true)
            {
                self.state.plan.push(site.0);
            }
        }
        self.cut();
    }

    /// Takes sites out of the plan; their turn comes after all that is pending.
    pub fn put_off(&mut self, sites: &[SiteId]) {
        let (off, on) = self
            .state
            .plan
            .iter()
            .partition(|&&site| sites.contains(&SiteId(site)));
        self.state.plan = on;
        self.state.pending.extend::<Vec<u32>>(off);
    }

    fn is_candidate(&self, predicate: PredicateId) -> bool {
        if let Some(routine) = self.icdg.entered(predicate) {
            let surveyed = self.state.surveyed.binary_search(&routine).is_ok();
            return surveyed && self.is_open(predicate);
        }
        let Some(&site) = self.icdg.predicate_site.get(predicate.0 as usize) else {
            return false;
        };
        let branch = self.icdg.kind(SiteId(site)) == SiteKind::Branch;
        branch && self.known[site as usize] && self.is_open(predicate)
    }

    /// There are data of the plan now.
    fn retire(&mut self) {
        let plan = std::mem::take(&mut self.state.plan);
        self.add_candidates(&plan);
        self.state.monitored.extend(plan);
    }

    fn add_candidates(&mut self, sites: &[u32]) {
        let icdg = self.icdg;
        let (explored, candidates) = (&self.explored, &mut self.candidates);
        candidates.retain(|predicate| !explored[predicate.0 as usize]);
        for &site in sites {
            if icdg.kind(SiteId(site)) == SiteKind::Branch {
                candidates.extend(icdg.predicates(SiteId(site)));
            }
        }
    }

    fn mark(&mut self, predicate: PredicateId) {
        self.explored[predicate.0 as usize] = true;
        if self.icdg.entered(predicate).is_some() {
            return;
        }
        let site = self.icdg.site_of(predicate);
        self.climbed[self.icdg.site_block[site.0 as usize] as usize] = true;
    }

    fn take(&mut self, best: PredicateId) {
        let mut vicinity = Vicinity::default();
        vicinity.entered = std::mem::take(&mut self.entered);
        let doomed = Doomed::of(&self.state);
        match self.icdg.entered(best) {
            Some(routine) if doomed.has(routine) => {
                vicinity.sites(doomed.above(self.icdg, routine))
            }
            Some(routine) => vicinity.within(self.icdg, routine),
            None => {
                vicinity.forward(self.icdg, best);
                let site = self.icdg.site_of(best);
                let block = self.icdg.site_block[site.0 as usize];
                if self.state.direction == Direction::Backward && !self.climbed[block as usize] {
                    vicinity.ancestors(self.icdg, block);
                }
            }
        }
        self.mark(best);
        self.watch(&vicinity.sites);
        self.entered = vicinity.entered;
    }

    /// Fills the plan with what waits. Whether there was any.
    fn refill(&mut self) -> bool {
        let most = self.state.most as usize;
        let waiting = &mut self.state.pending;
        self.state.plan = waiting.drain(..most.min(waiting.len())).collect();
        !self.state.plan.is_empty()
    }

    /// Moves what exceeds the plan's bound to what waits.
    fn cut(&mut self) {
        let most = self.state.most as usize;
        if self.state.plan.len() > most {
            let rest = self.state.plan.split_off(most);
            self.state.pending.extend(rest);
        }
    }

    /// Turns to the next routine with sites that nothing has led to: first to what it always runs,
    /// later to the rest.
    fn stray(&mut self) -> Step {
        let icdg = self.icdg;
        while self.state.next_routine < icdg.routine_count() {
            let routine = self.state.next_routine;
            let mut vicinity = Vicinity::default();
            vicinity.enter(icdg, routine);
            self.watch(&vicinity.sites);
            if self.state.plan.is_empty() {
                let rest: Vec<SiteId> = icdg
                    .blocks_of(routine)
                    .flat_map(|b| icdg.sites_of(b))
                    .collect();
                self.state.next_routine += 1;
                self.watch(&rest);
            }
            if !self.state.plan.is_empty() {
                return Step::Strayed;
            }
        }
        Step::Done
    }
}

impl Routine {
    /// A routine that nobody calls and in which no value is looked at.
    #[must_use]
    pub fn new(graph: tomo_graph::FlowGraph) -> Self {
        Self {
            graph,
            calls: Vec::new(),
            values: Vec::new(),
            root: false,
        }
    }
}
