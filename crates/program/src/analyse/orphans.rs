//! Parts that were split off from functions, of which it is not known from which.
//!
//! Such an *orphan* is a function of its own. It is exact, as far as it goes, where whoever may have it is known to the last
//! jump: who jumps to it, and into the middle of whom it jumps. Where nobody is known to jump to it, or some
//! jump of theirs or of its own leads who knows where, its function may enter it anywhere and be entered from there. Then neither
//! it nor its neighbours are exact.

use rustc_hash::FxHashSet;

use super::explore::{Exit, RawBlock};
use super::parts::crossings;
use super::state::State;
use crate::Resolution;

/// The functions, by their owners, that may be entered anywhere since an orphan is theirs or they are one.
pub(crate) fn open(state: &State<'_>) -> FxHashSet<u32> {
    let orphans: FxHashSet<u32> = (0..state.fragments.len() as u32)
        .filter(|&fragment| state.owner_of(fragment) == fragment)
        .filter(|&fragment| state.fragments[fragment as usize].evidence.is_part())
        .collect();
    if orphans.is_empty() {
        return orphans;
    }
    let (mut beside, mut jumped) = (Vec::new(), FxHashSet::default());
    for crossing in crossings(state) {
        let [from, to] = [crossing.from, crossing.to].map(|end| state.owner_of(end));
        if from == to {
            continue;
        }
        if orphans.contains(&to) {
            jumped.insert(to);
            beside.push((to, from));
        }
        if orphans.contains(&from) && (crossing.inside || to != crossing.to) {
            beside.push((from, to));
        }
    }
    let has_unknown: FxHashSet<u32> = beside
        .iter()
        .flat_map(|&(orphan, other)| [orphan, other])
        .filter(|&owner| leads_who_knows_where(state, owner))
        .collect();
    let is_open = |orphan: &u32| !jumped.contains(orphan) || has_unknown.contains(orphan);
    let mut open: FxHashSet<u32> = orphans.iter().copied().filter(is_open).collect();
    let mut before = usize::MAX;
    while before != open.len() {
        before = open.len();
        for &(orphan, other) in &beside {
            if open.contains(&orphan) {
                open.insert(other);
            } else if open.contains(&other) || has_unknown.contains(&other) {
                open.insert(orphan);
            }
        }
    }
    open
}

/// Whether some way out of the function is not known.
fn leads_who_knows_where(state: &State<'_>, owner: u32) -> bool {
    let mut parts = state.fragments_of(owner);
    parts.any(|part| {
        let fragment = &state.fragments[part as usize];
        let is_unresolved = |block: RawBlock| {
            let found = state.jumps.get(&block.end);
            block.exit == Exit::JumpIndirect
                && found.is_none_or(|found| found.resolution == Resolution::Unresolved)
        };
        let is_flawed = fragment.fault.is_some() || fragment.has_broken_exceptions;
        is_flawed
            || state
                .reached_in(part)
                .any(|(_, block)| is_unresolved(block))
    })
}
