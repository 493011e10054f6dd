//! The outer fixpoint: indirect jumps are resolved, which brings code to light, which changes the
//! graph on which they were resolved.
//!
//! A round examines the functions whose graph has changed, explores what their jumps reach, and
//! brings reachability up to date. When nothing changes any more, everything is computed once more
//! over the whole program; only if that changes nothing either, it is done. So the result does not
//! depend on the order of the rounds, and every bound of a table is proven over all paths of the final
//! graph.
//!
//! That is done twice where the compiler's view ([`super::returns`]) of functions has waited for jumps that did not become known.

use std::collections::BTreeSet;
use std::hash::{Hash as _, Hasher as _};

use rayon::prelude::*;
use rustc_hash::{FxHashMap, FxHashSet, FxHasher};

use super::code::Pos;
use super::explore::Exit;
use super::landmarks::{Landmarks, takes_back};
use super::slice::search::Memory;
use super::state::{BlockRef, Resolved, State};
use super::tables::{self, Finding};
use super::{discover, parts, returns};
use crate::{Address, Progress, Resolution};

/// Rounds after which a jump that changes is given up at once. A round brings at least one table to light, and a
/// jump that takes it back again and again is given up before, so only programs made to be slow get here.
const MOST_ROUNDS: usize = 256;
/// Rounds in which what is left may settle then: nothing new comes to light any more.
const LAST_ROUNDS: usize = 64;

/// Resolves indirect jumps until neither they nor the graph change any more.
pub(crate) fn settle(state: &mut State<'_>, progress: &dyn Progress) {
    progress.stage("following indirect jumps", 0);
    let mut settling = Settling::default();
    settling.regard_everything(state);
    for round in 0..MOST_ROUNDS + LAST_ROUNDS {
        settling.is_late = round >= MOST_ROUNDS;
        state.has_settled |= settling.is_late;
        if settling.examine(state) {
            settling.explore(state, progress);
            continue;
        }
        if settling.whole {
            let is_final = std::mem::replace(&mut state.has_settled, true);
            if is_final || !state.reach.waits() {
                return settling.doubt(state);
            }
        }
        settling.regard_everything(state);
    }
    settling.give_up(state);
}

/// What was found for a function, and from what.
struct Found {
    signature: u64,
    findings: Vec<Finding>,
}

#[derive(Default)]
struct Settling {
    landmarks: Landmarks,
    /// By the start of the function's owner.
    known: FxHashMap<Pos, Found>,
    /// Slices, likewise.
    memories: FxHashMap<Pos, Memory>,
    /// Owners of the functions to examine.
    scope: Vec<u32>,
    /// Whether these are all that have indirect jumps, on a graph computed anew.
    whole: bool,
    /// Starts of the functions whose findings changed in this round.
    changed: Vec<Pos>,
    /// Whether jumps that change are given up.
    is_late: bool,
}

impl Settling {
    /// Computes everything anew and takes all functions into view.
    fn regard_everything(&mut self, state: &mut State<'_>) {
        parts::group(state);
        state.reach = returns::reach(state);
        self.landmarks.labels = labels(state);
        let indirect = state
            .fragments
            .iter()
            .enumerate()
            .filter(|(_, fragment)| fragment.indirect);
        self.scope = indirect.map(|(index, _)| state.owner[index]).collect();
        self.scope.sort_unstable();
        self.scope.dedup();
        let starts: FxHashSet<Pos> = self
            .scope
            .iter()
            .map(|&owner| start(state, owner))
            .collect();
        self.known.retain(|owner, _| starts.contains(owner));
        state.jumps = self
            .known
            .values()
            .flat_map(|found| &found.findings)
            .map(entry)
            .collect();
        self.whole = true;
    }

    /// Examines the functions in view whose graph has changed; whether that told anything new.
    ///
    /// A table that turns out to begin inside another one ends that, so those are read again before
    /// anything is done about what they say.
    fn examine(&mut self, state: &mut State<'_>) -> bool {
        self.changed.clear();
        loop {
            let mut new_tables = BTreeSet::new();
            for (start, new) in self.examine_once(state) {
                let begins = new.findings.iter().flat_map(|finding| &finding.begins);
                new_tables.extend(begins.filter(|begin| !self.landmarks.tables.contains(begin)));
                self.note(state, start, new);
            }
            if new_tables.is_empty() {
                break;
            }
            self.landmarks.tables.extend(&new_tables);
            self.whole = false;
            self.scope = self.with_tables_inside(state, &new_tables);
        }
        self.changed.sort_unstable();
        self.changed.dedup();
        !self.changed.is_empty()
    }

    fn examine_once(&mut self, state: &State<'_>) -> Vec<(Pos, Found)> {
        let stale = |&owner: &u32| {
            let start = start(state, owner);
            let old = self.known.get(&start);
            let signature = signature(state, owner, old, &self.landmarks);
            old.is_none_or(|old| old.signature != signature)
                .then_some((owner, start, signature))
        };
        let stale: Vec<(u32, Pos, u64)> = self.scope.par_iter().filter_map(stale).collect();
        let memories: Vec<Memory> = stale
            .iter()
            .map(|(_, start, _)| self.memories.remove(start).unwrap_or_default())
            .collect();
        let examine = |((owner, start, signature), memory): ((u32, Pos, u64), Memory)| {
            let (findings, memory) = tables::examine(state, owner, &self.landmarks, memory);
            (
                start,
                Found {
                    signature,
                    findings,
                },
                memory,
            )
        };
        let found: Vec<_> = stale.into_par_iter().zip(memories).map(examine).collect();
        let note = |(start, found, memory)| {
            self.memories.insert(start, memory);
            (start, found)
        };
        found.into_iter().map(note).collect()
    }

    /// Enters what was found for a function into the state. What a table has too much may have led
    /// into code that is none, on which everything else was then found: such a function starts afresh.
    fn note(&mut self, state: &mut State<'_>, start: Pos, new: Found) {
        let old = self.known.remove(&start);
        let old_findings = old.map(|old| old.findings).unwrap_or_default();
        let mut shrunk = self.landmarks.note_shrinking(&old_findings, &new.findings);
        let old: FxHashMap<Pos, Resolved> = old_findings.iter().map(entry).collect();
        let latest: FxHashMap<Pos, Resolved> = new.findings.iter().map(entry).collect();
        let has_changed = old != latest;
        if self.is_late {
            let said = latest.iter().filter(|said| *said.1 != Resolved::not());
            let new = said.filter(|(end, said)| old.get(end) != Some(said));
            new.for_each(|(end, _)| shrunk |= self.landmarks.give_up(*end));
        }
        if has_changed {
            self.changed.push(start);
            old.keys().for_each(|end| {
                state.jumps.remove(end);
            });
        }
        if !shrunk {
            if has_changed {
                state.jumps.extend(latest);
            }
            self.known.insert(start, new);
        }
    }

    /// Explores what the changed jumps reach and brings the graph up to date.
    fn explore(&mut self, state: &mut State<'_>, progress: &dyn Progress) {
        let dirty = self.retarget(state);
        let before = (
            state.fragments.len(),
            crossings(state, &dirty),
            self.crossing_targets(state),
        );
        let mut explored = dirty.clone();
        explored.extend(discover::explore(state, dirty.clone(), progress));
        self.whole = false;
        if state.fragments.len() != before.0 {
            return self.regard_everything(state);
        }
        let owners = state.owner.clone();
        if before.2 || explored.len() != 2 * dirty.len() || crossings(state, &dirty) != before.1 {
            parts::group(state);
        }
        let moved = (0..owners.len()).filter(|&index| state.owner[index] != owners[index]);
        let mut touched: Vec<u32> = moved
            .flat_map(|index| [state.owner[index], owners[index]])
            .collect();
        let fragments = explored
            .iter()
            .chain(&self.changed)
            .filter_map(|&start| state.find(start));
        touched.extend(fragments.map(|index| state.owner[index]));
        touched.sort_unstable();
        touched.dedup();
        touched.retain(|&owner| state.owner[owner as usize] == owner);
        let reach = std::mem::take(&mut state.reach);
        state.reach = returns::update(state, reach, &touched);
        self.scope = touched;
    }

    /// Whether a jump of a changed function leads into another fragment.
    fn crossing_targets(&self, state: &State<'_>) -> bool {
        self.changed.iter().any(|start| {
            let home = state.find(*start).map(|index| &state.fragments[index]);
            let findings = self
                .known
                .get(start)
                .into_iter()
                .flat_map(|found| &found.findings);
            let mut targets = findings.flat_map(|finding| &finding.resolved.targets);
            targets.any(|&target| home.is_none_or(|home| target < home.start || target >= home.end))
        })
    }

    /// Functions in whose measured tables one of `tables` begins.
    fn with_tables_inside(&self, state: &State<'_>, tables: &BTreeSet<Address>) -> Vec<u32> {
        let cut = self.known.iter().filter(|(_, found)| {
            found.findings.iter().any(|finding| {
                finding.resolved.resolution == Resolution::MeasuredTable
                    && finding
                        .resolved
                        .tables
                        .iter()
                        .any(|&table| tables_inside(tables, table) > 0)
            })
        });
        cut.filter_map(|(&start, _)| u32::try_from(state.find(start)?).ok())
            .collect()
    }

    /// Tells the fragments where the changed functions' jumps lead in them; the starts of those for
    /// which that is new.
    fn retarget(&self, state: &mut State<'_>) -> Vec<Pos> {
        let mut targets: FxHashMap<usize, Vec<Pos>> = FxHashMap::default();
        for start in &self.changed {
            if let Some(owner) = state
                .find(*start)
                .and_then(|index| u32::try_from(index).ok())
            {
                for part in state.fragments_of(owner) {
                    targets.entry(part as usize).or_default();
                }
            }
            let findings = self
                .known
                .get(start)
                .into_iter()
                .flat_map(|found| &found.findings);
            for &target in findings.flat_map(|finding| &finding.resolved.targets) {
                if let Some(index) = state.find(target) {
                    targets.entry(index).or_default().push(target);
                }
            }
        }
        let mut dirty = Vec::new();
        for (index, mut new) in targets {
            let mut seen = FxHashSet::default();
            new.retain(|target| seen.insert(*target));
            let fragment = &mut state.fragments[index];
            if fragment.targets != new {
                fragment.targets = new;
                dirty.push(fragment.start);
            }
        }
        dirty
    }

    /// A table that was found to end somewhere stays as short, even where what ended it has turned out to be no code or no table
    /// since; or its guard is not believed any more. Those that would be read to other places now are unresolved.
    fn doubt(&mut self, state: &mut State<'_>) {
        let findings = self.known.values().flat_map(|found| &found.findings);
        let begins = findings.flat_map(|finding| &finding.begins).copied();
        let landmarks = &mut self.landmarks;
        let tables = std::mem::replace(&mut landmarks.tables, begins.collect());
        let has_fewer = tables != landmarks.tables;
        let caps = std::mem::take(&mut landmarks.caps);
        let loose = std::mem::take(&mut landmarks.loose);
        let is_doubtful = |finding: &&Finding| {
            let mut firsts = finding.first_entries();
            let is_measured = finding.resolved.resolution == Resolution::MeasuredTable;
            is_measured && has_fewer
                || loose.contains(&finding.end)
                || firsts.any(|first| caps.contains_key(&first))
        };
        let mut doubted = Vec::new();
        for (&start, found) in &self.known {
            let doubtful: Vec<&Finding> = found.findings.iter().filter(is_doubtful).collect();
            let owner = state
                .find(start)
                .and_then(|owner| u32::try_from(owner).ok());
            let Some(owner) = owner.filter(|_| !doubtful.is_empty()) else {
                continue;
            };
            let (now, _) = tables::examine(state, owner, &self.landmarks, Memory::default());
            let leads_on = |old: &&Finding| {
                let now = now.iter().find(|now| now.end == old.end);
                now.is_none_or(|now| takes_back(&now.resolved, &old.resolved))
            };
            doubted.extend(doubtful.into_iter().filter(leads_on).map(|old| old.end));
        }
        for end in &doubted {
            state.jumps.insert(*end, Resolved::not());
        }
        if !doubted.is_empty() {
            parts::group(state);
            state.reach = returns::reach(state);
        }
    }

    /// Jumps that still change after all rounds are unresolved: nothing is said of where they lead.
    fn give_up(&self, state: &mut State<'_>) {
        for start in &self.changed {
            for finding in self
                .known
                .get(start)
                .into_iter()
                .flat_map(|found| &found.findings)
            {
                if let Some(jump) = state.jumps.get_mut(&finding.end) {
                    *jump = Resolved::not();
                }
            }
        }
        parts::group(state);
        state.reach = returns::reach(state);
    }
}

/// Where the fragments with these starts lead outside of themselves.
fn crossings(state: &State<'_>, starts: &[Pos]) -> Vec<Pos> {
    let fragments = starts.iter().filter_map(|&start| state.find(start));
    fragments
        .flat_map(|index| &state.fragments[index].leaving)
        .copied()
        .collect()
}

fn start(state: &State<'_>, owner: u32) -> Pos {
    state.fragments[owner as usize].start
}

fn entry(finding: &Finding) -> (Pos, Resolved) {
    (finding.end, finding.resolved.clone())
}

/// A hash of all that the examination of a function's indirect jumps depends on.
fn signature(state: &State<'_>, owner: u32, old: Option<&Found>, landmarks: &Landmarks) -> u64 {
    let mut hasher = FxHasher::default();
    for part in state.fragments_of(owner) {
        let fragment = &state.fragments[part as usize];
        (fragment.start, fragment.end, &fragment.jumped_into).hash(&mut hasher);
        landmarks
            .labels_in(fragment.start, fragment.end)
            .len()
            .hash(&mut hasher);
        for (index, block) in fragment.blocks.iter().enumerate() {
            let at = BlockRef {
                fragment: part,
                block: u32::try_from(index).unwrap_or(u32::MAX),
            };
            if state.reach.reaches(at) {
                let falls = block.exit.is_call() && returns::call_falls_through(state, at);
                (block.start, block.end, falls).hash(&mut hasher);
            }
            if block.exit == Exit::JumpIndirect {
                state.jumps.get(&block.end).hash(&mut hasher);
            }
        }
    }
    for finding in old.into_iter().flat_map(|old| &old.findings) {
        if finding.resolved.resolution == Resolution::MeasuredTable {
            finding
                .resolved
                .tables
                .iter()
                .for_each(|&table| tables_inside(&landmarks.tables, table).hash(&mut hasher));
        }
    }
    hasher.finish()
}

/// How many tables begin behind the first and up to the last entry of a table.
fn tables_inside(tables: &BTreeSet<Address>, (first, last): (Address, Address)) -> usize {
    if first < last {
        tables.range(first.wrapping_add(1)..=last).count()
    } else {
        0
    }
}

/// Words of data that hold inner addresses of fragments.
fn labels(state: &State<'_>) -> Vec<(Pos, Address)> {
    let code = state.tables.code;
    let inner = |target: Address| {
        let pos = code.pos(target)?;
        let fragment = state.find(pos)?;
        (state.fragments[fragment].start != pos).then_some(pos)
    };
    let slots = code.binary.pointer_slots().iter();
    let mut labels: Vec<(Pos, Address)> = slots
        .filter_map(|&(slot, target)| Some((inner(target)?, slot)))
        .collect();
    if !code.binary.is_position_independent() {
        for region in code.binary.data_regions() {
            for (slot, target) in words(region.range.start(), region.bytes) {
                labels.extend(inner(target).map(|pos| (pos, slot)));
            }
        }
    }
    labels.sort_unstable();
    labels.dedup();
    labels
}

/// The aligned 8-byte words of some bytes, with their addresses.
fn words(start: Address, bytes: &[u8]) -> impl Iterator<Item = (Address, Address)> {
    let skip = start.0.wrapping_neg() % 8;
    let rest = bytes
        .get(usize::try_from(skip).unwrap_or(usize::MAX)..)
        .unwrap_or_default();
    rest.chunks_exact(8).enumerate().map(move |(index, word)| {
        let target = word
            .iter()
            .rev()
            .fold(0, |number, &byte| number << 8 | u64::from(byte));
        (start.wrapping_add(skip + 8 * index as u64), Address(target))
    })
}
