//! The search for what predicts failure, over all instances (ABI §4, Procedure 1).
//!
//! What instances carry is an *edition*: the sites of the plans of all causes that are searched side by side; under a
//! bound, in parts, each instance one after the other. Which edition follows which is decided here, from the evidence that is durable, and each decision is
//! itself written to the log before anybody carries it: so a collector that starts anew, or another one on the same
//! store, comes to the same plans, whatever was decided by whom.
//!
//! **Enough data** is decided by the sequential test alone (`tomo_profile::scores::Sufficiency`), looked at whenever
//! there is more evidence; never by waiting.
//!
//! **Causes.** Runs that fail are grouped by where they crashed, or how else they failed; each group has its own
//! search, in which the runs of other groups count neither as failures nor as successes. So many go on at once; other causes
//! wait until one is over, those with most failures the shortest.
//!
//! **No instance counts for more than its share** (`share.rs`), and none can begin a search alone where there are others.
//!
//! | file | what |
//! |---|---|
//! | `hunt/share.rs` | which runs count |
//! | `hunt/tally.rs` | what they say of predicates |
//! | `hunt/decide.rs` | what is watched next |
//! | `hunt/found.rs` | what readers hear |

mod decide;
mod found;
mod share;
mod tally;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use tomo_graph::{FlowGraph, NodeId};
use tomo_plan::search::{self, Icdg, Routine, SiteId, Step};
use tomo_protocol::{Bound, InstanceId, Search, SearchStep, Terrain, Units};

use crate::state::State;

/// Causes that are searched at once at most, and in all: each takes memory for good.
const MOST_GROUPS: usize = 16;
const MOST_SEARCHED: usize = 1024;
/// Editions of a campaign at most, and parts of one.
const MOST_EDITIONS: u32 = 1 << 20;
const MOST_PARTS: usize = 256;

/// In place of a predicate: there was none to choose.
const NONE: u32 = u32::MAX;

/// What changes from one edition to the next.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Change {
    /// The search for this cause begins.
    Open {
        /// Names it.
        cause: u64,
        /// The routine and the block in which runs crashed, if that is known and the search is to begin there.
        place: Option<(u32, u32)>,
    },
    /// It goes on.
    Step {
        /// Names the cause.
        cause: u64,
        /// The predicates of the graph that were chosen, one after the other as they were asked for; [`NONE`] where there
        /// was none.
        chosen: Vec<u32>,
        /// Runs that counted.
        runs: u64,
        /// The bits of the best Importance, and its row.
        best: u64,
        /// The row that has it.
        predictor: Option<u32>,
        /// Whether the search is over with it.
        over: bool,
    },
}

/// What was decided at once.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Edition {
    /// Counted from 1; before the first one, what always runs is watched.
    pub number: u32,
    /// What changed.
    pub changes: Vec<Change>,
}

/// The search for one cause.
#[derive(Debug)]
struct Group {
    cause: u64,
    search: search::State,
    steps: Vec<SearchStep>,
    /// By site: the step that watched it first.
    watched: BTreeMap<u32, u32>,
    done: bool,
}

/// A search, as far as it has come.
#[derive(Debug)]
pub(crate) struct Hunt {
    spec: Search,
    bound: Bound,
    terrain: Terrain,
    icdg: Icdg,
    /// The build id of the program.
    build_id: Vec<u8>,
    /// Blocks by address: where each starts and may end, its routine, and its number there.
    blocks: Vec<(u64, u64, u32, u32)>,
    /// By edition, by part: the units.
    editions: Vec<Vec<Units>>,
    groups: Vec<Group>,
    first: search::State,
}

/// A site that is observed: its first row, and how many it has.
#[derive(Clone, Copy, Debug)]
struct Watched {
    first: u32,
    cases: u32,
}

impl Hunt {
    /// A search on this terrain that has not begun; nothing where the terrain contradicts itself.
    pub(crate) fn new(
        (spec, bound): (&Search, Bound),
        terrain: Terrain,
        (build_id, rows): (Vec<u8>, u32),
    ) -> Option<Self> {
        let routines: Option<Vec<Routine>> = terrain.routines.iter().map(routine).collect();
        let icdg = Icdg::of(&routines?).ok()?;
        let fits = terrain.sites.len() == icdg.site_count()
            && terrain.rows.len() == icdg.predicate_count()
            && terrain.rows.iter().flatten().all(|row| *row < rows);
        fits.then_some(())?;
        let search = search::Search::forward(&icdg).limited(spec.most_sites);
        let first = search.state().clone();
        let mut hunt = Self {
            spec: spec.clone(),
            bound,
            blocks: blocks(&terrain),
            build_id,
            terrain,
            icdg,
            editions: Vec::new(),
            groups: Vec::new(),
            first,
        };
        let sound = (0..hunt.terrain.sites.len() as u32).all(|site| match hunt.watched(site) {
            Some(one) => one
                .first
                .checked_add(one.cases)
                .is_some_and(|end| end <= rows),
            None => true,
        });
        sound.then_some(())?;
        hunt.editions.push(hunt.parts());
        Some(hunt)
    }

    /// The site, if it can be observed.
    fn watched(&self, site: u32) -> Option<Watched> {
        let first = (*self.terrain.sites.get(site as usize)?)?;
        let cases = self.icdg.predicates(SiteId(site)).count() as u32;
        Some(Watched { first, cases })
    }

    /// Begins anew, and applies all of these.
    pub(crate) fn replay<'e>(&mut self, editions: impl Iterator<Item = &'e Edition>) {
        self.groups.clear();
        self.editions.truncate(1);
        for edition in editions {
            self.apply(edition);
        }
    }

    /// The number of the last edition.
    pub(crate) fn edition(&self) -> u32 {
        self.editions.len() as u32 - 1
    }

    /// The variant of an instance in the last edition. It goes on to the next part whenever it has had its share of runs in one, so
    /// that each part is carried in time, be there ever so few instances; nothing but its runs need be known for that.
    pub(crate) fn variant_of(&self, instance: InstanceId, state: &State) -> u32 {
        let parts = self.editions.last().map_or(1, Vec::len).max(1) as u64;
        let first = tomo_wire::checksum(&instance.0) % parts;
        let known = state.instance(instance).filter(|_| parts > 1);
        let runs = known.map(|known| known.runs.by_variant());
        let shares = |variant: &u32| {
            let sums = runs.as_ref().and_then(|runs| runs.get(variant));
            sums.map_or(0, |sums| sums.runs / self.spec.instance_runs.max(1))
        };
        let part = |at: u64| variant(self.edition(), ((first + at) % parts) as u32);
        let fewest = (0..parts).map(part).min_by_key(shares);
        fewest.unwrap_or_default()
    }

    /// The units of a variant, if there is one of this number.
    pub(crate) fn units(&self, variant: u32) -> Option<&Units> {
        let parts = self.editions.get((variant >> 8) as usize)?;
        parts.get((variant & 0xff) as usize)
    }

    /// All variants, by their numbers.
    pub(crate) fn variants(&self) -> BTreeMap<u32, Units> {
        let editions = (0..).zip(&self.editions);
        let parts = editions.flat_map(|(edition, parts)| {
            let numbered = (0..).zip(parts);
            numbered.map(move |(part, units)| (variant(edition, part), units.clone()))
        });
        parts.collect()
    }

    /// How many units have been in some variant.
    pub(crate) fn carried(&self) -> u32 {
        let variants = self.editions.iter().flatten();
        let units: BTreeSet<u32> = variants.flat_map(Units::iter).collect();
        units.len() as u32
    }

    /// Applies what was decided, if it is what comes next.
    pub(crate) fn apply(&mut self, edition: &Edition) -> bool {
        if edition.number != self.edition() + 1 || edition.number >= MOST_EDITIONS {
            return false;
        }
        for change in &edition.changes {
            match change {
                Change::Open { cause, place } => self.open(*cause, *place),
                Change::Step {
                    cause,
                    chosen,
                    runs,
                    best,
                    predictor,
                    over,
                } => {
                    let best = (f64::from_bits(*best), *predictor);
                    self.step(*cause, chosen, (*runs, best, *over));
                }
            }
        }
        let parts = self.parts();
        self.editions.push(parts);
        true
    }

    /// Searches that may begin.
    fn room(&self) -> usize {
        let going_on = self.groups.iter().filter(|group| !group.done).count();
        let at_once = MOST_GROUPS.saturating_sub(going_on);
        at_once.min(MOST_SEARCHED.saturating_sub(self.groups.len()))
    }

    fn open(&mut self, cause: u64, place: Option<(u32, u32)>) {
        if self.groups.iter().any(|group| group.cause == cause) {
            return;
        }
        let crash = place.map(|(routine, node)| (routine, NodeId(node)));
        let backward = crash.map(|crash| search::Search::backward(&self.icdg, &[crash]));
        let backward = backward.map(|search| search.limited(self.spec.most_sites));
        let search = backward.filter(|search| search.plan().len() > 0);
        let mut group = Group {
            cause,
            search: search.map_or_else(|| self.first.clone(), |search| search.state().clone()),
            steps: Vec::new(),
            watched: BTreeMap::new(),
            done: false,
        };
        group.note_plan();
        self.groups.push(group);
    }

    fn step(
        &mut self,
        cause: u64,
        chosen: &[u32],
        (runs, (best, predictor), over): (u64, (f64, Option<u32>), bool),
    ) {
        let Some(group) = self.groups.iter_mut().find(|group| group.cause == cause) else {
            return;
        };
        let sites = group.search.plan.len() as u32;
        let Ok(mut search) = search::Search::resume(&self.icdg, group.search.clone()) else {
            return;
        };
        let mut answers = chosen.iter();
        let step = advance(&mut search, &self.terrain, |_| {
            let answer = answers.next().filter(|one| **one != NONE);
            answer.map(|one| search::PredicateId(*one))
        });
        group.search = search.state().clone();
        let explored = match step {
            Step::Explored(predicate) => self.terrain.rows[predicate.0 as usize],
            _ => None,
        };
        group.steps.push(SearchStep {
            sites,
            runs,
            chosen: explored,
            best,
            predictor,
        });
        group.done = over || step == Step::Done;
        if !group.done {
            group.note_plan();
        }
    }

    /// What the searches that go on want to be watched, in parts that keep the bound. Where none does, it is what always
    /// runs: a new cause begins there.
    fn parts(&self) -> Vec<Units> {
        let plans = self.groups.iter().filter(|group| !group.done);
        let mut sites: Vec<u32> = plans.flat_map(|group| group.search.plan.clone()).collect();
        if sites.is_empty() {
            sites.clone_from(&self.first.plan);
        }
        sites.sort_unstable();
        sites.dedup();
        let most = match self.bound {
            Bound::Probes(most) => most.max(1),
            Bound::None => u64::MAX,
        };
        let sites: Vec<Watched> = sites
            .into_iter()
            .filter_map(|one| self.watched(one))
            .collect();
        let rows: u64 = sites.iter().map(|one| u64::from(one.cases)).sum();
        let wanted = usize::try_from(rows.div_ceil(most)).unwrap_or(MOST_PARTS);
        // A site is in one part, however many predicates it has.
        let wanted = wanted.min(sites.len()).clamp(1, MOST_PARTS);
        let units = |part: usize| {
            let mine = sites.iter().skip(part).step_by(wanted);
            Units::of(mine.flat_map(|one| one.first..one.first + one.cases))
        };
        (0..wanted).map(units).collect()
    }
}

impl Group {
    fn note_plan(&mut self) {
        let step = self.steps.len() as u32 + 1;
        for site in &self.search.plan {
            self.watched.entry(*site).or_insert(step);
        }
    }
}

/// Makes steps until there is something in the plan that can be observed, or nothing is left.
fn advance(
    search: &mut search::Search<'_>,
    terrain: &Terrain,
    mut choose: impl FnMut(&mut dyn Iterator<Item = search::PredicateId>) -> Option<search::PredicateId>,
) -> Step {
    loop {
        let step = search.step(&mut choose);
        let mut plan = search.plan();
        let observed = plan.any(|site| terrain.sites[site.0 as usize].is_some());
        if observed || step == Step::Done {
            return step;
        }
    }
}

/// The number of a part of an edition.
fn variant(edition: u32, part: u32) -> u32 {
    edition << 8 | part
}

/// All blocks, by address. Each ends where the next one begins, or its function does.
fn blocks(terrain: &Terrain) -> Vec<(u64, u64, u32, u32)> {
    let mut all = Vec::new();
    for (number, routine) in (0..).zip(&terrain.routines) {
        let each = (0..).zip(&routine.blocks);
        all.extend(each.map(|(node, start)| (*start, routine.end, number, node)));
    }
    all.sort_unstable();
    for at in 1..all.len() {
        let next = all[at].0;
        let one = &mut all[at - 1];
        if one.1 > next || one.1 <= one.0 {
            one.1 = next;
        }
    }
    all
}

fn routine(one: &tomo_protocol::Routine) -> Option<Routine> {
    let edges = one
        .edges
        .iter()
        .map(|(from, to)| (NodeId(*from), NodeId(*to)));
    let graph = FlowGraph::new(one.blocks.len(), NodeId(one.entry), edges).ok()?;
    let graph = graph
        .with_exits(one.exits.iter().map(|exit| NodeId(*exit)))
        .ok()?;
    Some(Routine {
        graph,
        calls: one
            .calls
            .iter()
            .map(|(at, callee)| (NodeId(*at), *callee))
            .collect(),
        values: one
            .values
            .iter()
            .map(|(at, count)| (NodeId(*at), *count))
            .collect(),
        root: one.root,
    })
}
