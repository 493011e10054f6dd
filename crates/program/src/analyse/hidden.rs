//! Code of which nothing is known but its address, which an instruction holds.
//!
//! In a stripped file without unwind entries nobody says where a function ends. Behind its code there may be functions whose
//! addresses are taken and that nobody calls, nested ones of GNU C among them; or data. So what is there is no function, and no code of the one
//! in front of it. But where it leads into the middle of functions, or holds an address there, who comes is not known: that is held by it,
//! as if an instruction of a function held it ([`Fragment::held`]). Linear in the bytes that are decoded.
//!
//! [`Fragment::held`]: super::fragment::Fragment::held

use rustc_hash::FxHashSet;

use super::code::Pos;
use super::explore::{Exit, Explorer};
use super::state::State;
use super::{discover, parts, returns};
use crate::Progress;

/// Has what such code leads to held by it. No jump becomes known by that, and none unknown: blocks are cut, and no way
/// between them is new.
pub(crate) fn follow(state: &mut State<'_>, progress: &dyn Progress) {
    let mut explorer = Explorer::new(state.tables.code);
    let (mut seen, mut cut) = (FxHashSet::default(), Vec::new());
    let mut work = held_and_hidden(state);
    while let Some(at) = work.pop() {
        if !seen.insert(at) {
            continue;
        }
        for target in leads_to(state, &mut explorer, at) {
            let Some(index) = state.find(target) else {
                work.push(target);
                continue;
            };
            let fragment = &mut state.fragments[index];
            if fragment.start == target {
                continue;
            }
            if fragment.hides(target) {
                work.push(target);
            } else if fragment.add_held(target) {
                cut.push(fragment.start);
            }
        }
    }
    if !cut.is_empty() {
        discover::explore(state, cut, progress);
        parts::group(state);
        state.reach = returns::reach(state);
    }
}

/// Where such code may begin.
fn held_and_hidden(state: &State<'_>) -> Vec<Pos> {
    let open = state.fragments.iter().filter(|fragment| !fragment.sized);
    open.flat_map(|fragment| {
        let held = fragment.held.iter().copied();
        held.filter(|&held| fragment.hides(held))
    })
    .collect()
}

/// Where code at `at` leads, or what it holds the address of, if it is code: as far as nothing is known of what is there.
fn leads_to(state: &State<'_>, explorer: &mut Explorer<'_>, at: Pos) -> Vec<Pos> {
    let explored = explorer.explore(at, next_known(state, at), [at]);
    let calls = explored.blocks.iter().filter_map(|block| match block.exit {
        Exit::Call(target) => Some(target),
        _ => None,
    });
    let mut targets: Vec<Pos> = calls.collect();
    targets.extend(explored.leaving);
    targets.extend(explored.taken);
    targets.retain(|&target| !state.tables.code.is_stub(target));
    targets
}

/// The first byte behind `at` of which something is known.
fn next_known(state: &State<'_>, at: Pos) -> Pos {
    let code = state.tables.code;
    let next = state.fragments.partition_point(|other| other.start <= at);
    let next = state.fragments.get(next).map(|next| next.start);
    let blocks = state.find(at).map(|home| &state.fragments[home].blocks);
    let block = blocks.and_then(|blocks| {
        let next = blocks.partition_point(|block| block.start <= at);
        blocks.get(next).map(|next| next.start)
    });
    let limit = code.region_end(at).min(code.next_stub(at));
    next.into_iter().chain(block).fold(limit, Pos::min)
}
