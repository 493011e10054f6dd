//! The fixpoint of traversal and discovery: explored code names further code.

use rayon::prelude::*;
use rustc_hash::FxHashMap;

use super::code::{Code, Pos};
use super::explore::{Exit, Explorer};
use super::fragment::{self, Evidence, Fragment};
use super::state::State;
use super::{padding, return_address};
use crate::Progress;

/// Explores the fragments that start at `dirty`, and whatever that brings to light, until nothing
/// new is found; the starts of all that were explored.
pub(crate) fn explore(
    state: &mut State<'_>,
    mut dirty: Vec<Pos>,
    progress: &dyn Progress,
) -> Vec<Pos> {
    let mut explored = Vec::new();
    while !dirty.is_empty() {
        dirty.sort_unstable();
        dirty.dedup();
        explore_once(state, &dirty, progress);
        explored.extend_from_slice(&dirty);
        dirty = follow(state, &dirty);
    }
    explored
}

fn explore_once(state: &mut State<'_>, dirty: &[Pos], progress: &dyn Progress) {
    let code = state.tables.code;
    state
        .fragments
        .par_iter_mut()
        .with_min_len(16)
        .filter(|fragment| dirty.binary_search(&fragment.start).is_ok())
        .for_each_init(
            || Explorer::new(code),
            |explorer, fragment| {
                let roots = [fragment.start].into_iter();
                let roots = roots
                    .chain(fragment.roots.iter().copied())
                    .chain(fragment.targets.iter().copied());
                let explored = explorer.explore(fragment.start, fragment.end, roots);
                fragment.absorb(explored);
                fragment.pops_caller = return_address::would_be_taken(code, fragment);
                progress.advance(u64::from(fragment.end.since(fragment.start)));
            },
        );
}

/// What the code of some fragments says of others.
#[derive(Default)]
struct News {
    /// Starts of fragments that are reached in a new way, with that way.
    reached: Vec<(Pos, Evidence)>,
    /// Jumps into the middle of other fragments.
    inside: Vec<Pos>,
    /// Addresses inside of other fragments that are materialised.
    held: Vec<Pos>,
}

/// Acts on what the freshly explored fragments say; the starts of those to explore (again).
fn follow(state: &mut State<'_>, explored: &[Pos]) -> Vec<Pos> {
    let found: Vec<News> = explored
        .par_iter()
        .with_min_len(64)
        .filter_map(|&start| Some(news(state, state.find(start)?)))
        .collect();
    let mut dirty = Vec::new();
    let mut starts: FxHashMap<Pos, Evidence> = FxHashMap::default();
    for news in &found {
        for &(at, evidence) in &news.reached {
            match state.find(at) {
                Some(index) if state.fragments[index].start == at => {
                    let known = &mut state.fragments[index].evidence;
                    let was_proven = known.is_proven();
                    known.merge(evidence);
                    if known.is_proven() && !was_proven {
                        dirty.push(at);
                    }
                }
                _ => starts.entry(at).or_default().merge(evidence),
            }
        }
    }
    if !starts.is_empty() {
        let mut starts: Vec<(Pos, Evidence)> = starts.into_iter().collect();
        starts.sort_unstable_by_key(|start| start.0);
        dirty.extend(fragment::insert(
            state.tables,
            &mut state.fragments,
            &starts,
        ));
        state.note_starts();
    }
    dirty.extend(run_on(state, explored));
    for &at in found.iter().flat_map(|news| &news.inside) {
        if let Some(index) = state.find(at)
            && state.fragments[index].start != at
            && state.fragments[index].add_root(at)
        {
            dirty.push(state.fragments[index].start);
        }
    }
    for &at in found.iter().flat_map(|news| &news.held) {
        if let Some(index) = state.find(at)
            && state.fragments[index].start != at
            && state.fragments[index].add_held(at)
        {
            dirty.push(state.fragments[index].start);
        }
    }
    dirty
}

/// Lengthens fragments over whose end control runs into nothing but `nop` up to the next one, which
/// is how one function of hand-written code falls into another; their starts.
fn run_on(state: &mut State<'_>, explored: &[Pos]) -> Vec<Pos> {
    let code = state.tables.code;
    let mut longer = Vec::new();
    for &start in explored {
        let Some(index) = state.find(start) else {
            continue;
        };
        let next = state.fragments.get(index + 1).map(|next| next.start);
        let fragment = &mut state.fragments[index];
        let Some(next) = next.filter(|&next| next > fragment.end) else {
            continue;
        };
        let between = code.bytes(fragment.end, next);
        let runs = fragment.leaving.binary_search(&fragment.end).is_ok();
        if runs && between.len() == next.since(fragment.end) as usize && padding::is_nops(between) {
            fragment.end = next;
            longer.push(start);
        }
    }
    longer
}

fn news(state: &State<'_>, index: usize) -> News {
    let mut news = News::default();
    let fragment = &state.fragments[index];
    let is_proven = fragment.evidence.is_proven();
    let called = Evidence {
        called: is_proven,
        guessed: !is_proven,
        ..Evidence::default()
    };
    let jumped = Evidence {
        jumped: is_proven,
        guessed: !is_proven,
        ..Evidence::default()
    };
    for block in &fragment.blocks {
        if let Exit::Call(target) = block.exit {
            note(state, target, called, is_proven, &mut news);
        }
    }
    for &target in fragment
        .leaving
        .iter()
        .filter(|&&target| target != fragment.end)
    {
        note(state, target, jumped, false, &mut news);
    }
    let initial = starts_the_program(state.tables.code, fragment);
    for &target in &fragment.taken {
        match state.find(target) {
            // What an instruction points to inside a known fragment is a label there, not a start, unless the C library is told of it.
            Some(other) if state.fragments[other].start != target && !initial => {
                news.held.extend((other != index).then_some(target));
            }
            _ => {
                let pointed = Evidence {
                    initial,
                    pointed: true,
                    ..Evidence::default()
                };
                note(state, target, pointed, initial, &mut news);
            }
        }
    }
    news
}

/// Whether the kernel enters the fragment, and it calls the function of the C library by which programs start: addresses that it
/// holds are those of functions, `main` first of all.
fn starts_the_program(code: &Code<'_>, fragment: &Fragment) -> bool {
    const STARTS: &str = "__libc_start_main";
    let imports = code.binary.imports();
    let mut exits = fragment.blocks.iter().map(|block| block.exit);
    code.binary.entry() == Some(code.address(fragment.start))
        && exits.any(|exit| match exit {
            Exit::CallImport(import) => imports
                .get(import as usize)
                .is_some_and(|import| import.name == STARTS),
            _ => false,
        })
}

/// Notes that `target` is reached; whether it `starts` something there even in the middle of a fragment, as calls in proven code do.
fn note(state: &State<'_>, target: Pos, evidence: Evidence, starts: bool, news: &mut News) {
    if state.tables.code.is_stub(target) {
        return;
    }
    match state.find(target) {
        Some(index) if state.fragments[index].start == target => {
            if !state.fragments[index].evidence.has(evidence) {
                news.reached.push((target, evidence));
            }
        }
        Some(_) if !starts => news.inside.push(target),
        Some(_) | None => news.reached.push((target, evidence)),
    }
}
