//! Which fragments make one function.
//!
//! Compilers and post-link optimizers split cold code off (`f.cold`, BOLT's fragments): a part has
//! bytes, and often a symbol and an unwind entry, of its own, but it is entered by jumps from its
//! function only, and jumps back into the middle of it. A fragment is taken for a part where
//! nothing but jumps lead to it and either a table says so (its symbol's name, an unwind entry that
//! starts in the middle of a frame) or it jumps back into the middle of the one function that jumps
//! to it. What several functions share stays a function of its own, unless its name says whose it is.

use rustc_hash::{FxHashMap, FxHashSet};

use super::code::Pos;
use super::names;
use super::state::State;

/// A jump from one fragment to another.
#[derive(Clone, Copy)]
pub(crate) struct Crossing {
    pub(crate) from: u32,
    pub(crate) to: u32,
    /// Whether it leads into the middle.
    pub(crate) inside: bool,
    target: Pos,
}

/// Decides for every fragment which function it belongs to, and notes where functions jump into
/// the middle of others.
pub(crate) fn group(state: &mut State<'_>) {
    let crossings = crossings(state);
    let count = u32::try_from(state.fragments.len()).unwrap_or(u32::MAX);
    let mut owner: Vec<u32> = (0..count).collect();
    let neighbours = neighbours(state, &crossings);
    let named = named_parents(state);
    let mut candidates: Vec<u32> = neighbours.keys().chain(named.keys()).copied().collect();
    candidates.sort_unstable();
    candidates.dedup();
    // A part may hang on another part, so that its function is known only after that one's.
    for _ in 0..3 {
        for &part in &candidates {
            if owner[part as usize] != part {
                continue;
            }
            let beside = neighbours.get(&part);
            let parent = beside.and_then(|beside| parent_of(state, part, beside, &owner));
            let named = || named.get(&part).copied();
            if let Some(parent) = parent.or_else(named) {
                owner[part as usize] = parent;
            }
        }
    }
    for part in 0..count {
        owner[part as usize] = root(&owner, part);
    }
    state.parts.clear();
    for part in 0..count {
        if owner[part as usize] != part {
            state
                .parts
                .entry(owner[part as usize])
                .or_default()
                .push(part);
        }
    }
    state.owner = owner;
    note_entries_inside(state, &crossings);
}

/// All jumps from one fragment to another, those of exceptions with them.
pub(crate) fn crossings(state: &State<'_>) -> Vec<Crossing> {
    let mut found = Vec::new();
    for (index, fragment) in state.fragments.iter().enumerate() {
        let from = u32::try_from(index).unwrap_or(u32::MAX);
        for &target in &fragment.leaving {
            note_crossing(state, from, target, &mut found);
        }
        for pad in state.pads_of_crossing(from) {
            note_crossing(state, from, pad, &mut found);
        }
    }
    for (&end, resolved) in &state.jumps {
        let Some(from) = state
            .find(Pos(end.0 - 1))
            .and_then(|index| u32::try_from(index).ok())
        else {
            continue;
        };
        for &target in &resolved.targets {
            note_crossing(state, from, target, &mut found);
        }
    }
    found
}

fn note_crossing(state: &State<'_>, from: u32, target: Pos, found: &mut Vec<Crossing>) {
    let home = &state.fragments[from as usize];
    if home.start <= target && target < home.end {
        return;
    }
    if let Some(to) = state.find(target) {
        let inside = state.fragments[to].start != target;
        found.push(Crossing {
            from,
            to: u32::try_from(to).unwrap_or(u32::MAX),
            inside,
            target,
        });
    }
}

/// The fragments that a candidate shares jumps with.
#[derive(Default)]
struct Neighbours {
    /// They jump to it.
    jump_here: Vec<u32>,
    /// It jumps into the middle of them.
    jumped_into: Vec<u32>,
}

fn neighbours(state: &State<'_>, crossings: &[Crossing]) -> FxHashMap<u32, Neighbours> {
    let mut neighbours: FxHashMap<u32, Neighbours> = FxHashMap::default();
    for crossing in crossings {
        if state.fragments[crossing.to as usize].evidence.may_be_part() {
            neighbours
                .entry(crossing.to)
                .or_default()
                .jump_here
                .push(crossing.from);
        }
        if crossing.inside
            && state.fragments[crossing.from as usize]
                .evidence
                .may_be_part()
        {
            neighbours
                .entry(crossing.from)
                .or_default()
                .jumped_into
                .push(crossing.to);
        }
    }
    neighbours
}

/// The function that `part` belongs to, if there is exactly one.
fn parent_of(state: &State<'_>, part: u32, neighbours: &Neighbours, owner: &[u32]) -> Option<u32> {
    let evidence = state.fragments[part as usize].evidence;
    let here = roots(&neighbours.jump_here, part, owner);
    let into = roots(&neighbours.jumped_into, part, owner);
    let stated = evidence.part_symbol || evidence.inner_frame;
    let mut parents = if stated {
        here.clone()
    } else {
        here.iter()
            .copied()
            .filter(|root| into.contains(root))
            .collect()
    };
    if stated && parents.is_empty() {
        parents = into;
    }
    match parents[..] {
        [one] if stated || here.len() == 1 => Some(one),
        [_, _, ..] => by_name(state, part, &parents),
        _ => None,
    }
}

fn roots(fragments: &[u32], part: u32, owner: &[u32]) -> Vec<u32> {
    let mut roots: Vec<u32> = fragments
        .iter()
        .map(|&fragment| root(owner, fragment))
        .filter(|&root| root != part)
        .collect();
    roots.sort_unstable();
    roots.dedup();
    roots
}

fn root(owner: &[u32], mut fragment: u32) -> u32 {
    // Parents are never their own descendants: a parent is looked up as a root when it is set.
    while owner[fragment as usize] != fragment {
        fragment = owner[fragment as usize];
    }
    fragment
}

/// The name of a fragment.
fn name<'a>(state: &State<'a>, fragment: u32) -> Option<&'a str> {
    let symbol = state.fragments[fragment as usize].symbol?;
    let symbols = state.tables.code.binary.symbols();
    symbols.get(symbol as usize).map(|symbol| symbol.name)
}

/// Among several functions the one whose name the part's name extends.
fn by_name(state: &State<'_>, part: u32, parents: &[u32]) -> Option<u32> {
    let wanted = names::parent_name(name(state, part)?)?;
    let mut parents = parents.iter().copied();
    parents.find(|&parent| name(state, parent) == Some(wanted))
}

/// The functions whose names the names of parts extend, where just one has that name.
fn named_parents(state: &State<'_>) -> FxHashMap<u32, u32> {
    let all = || (0..).zip(&state.fragments);
    let parts = all().filter(|(_, part)| part.evidence.part_symbol && part.evidence.may_be_part());
    let wanted =
        parts.filter_map(|(part, _)| Some((part, names::parent_name(name(state, part)?)?)));
    let wanted: Vec<(u32, &str)> = wanted.collect();
    let mut found: FxHashMap<&str, Option<u32>> =
        wanted.iter().map(|&(_, name)| (name, None)).collect();
    let mut again: FxHashSet<&str> = FxHashSet::default();
    if !found.is_empty() {
        for (home, _) in all().filter(|(_, home)| home.evidence.symbol) {
            let name = name(state, home).unwrap_or_default();
            if let Some(found) = found.get_mut(name)
                && found.replace(home).is_some()
            {
                again.insert(name);
            }
        }
    }
    let only = |name: &str| {
        found
            .get(name)
            .copied()
            .flatten()
            .filter(|_| !again.contains(name))
    };
    let parents = wanted
        .iter()
        .filter_map(|&(part, name)| Some((part, only(name)?)));
    parents.collect()
}

fn note_entries_inside(state: &mut State<'_>, crossings: &[Crossing]) {
    for fragment in &mut state.fragments {
        fragment.jumped_into.clear();
    }
    for crossing in crossings {
        let foreign = state.owner[crossing.from as usize] != state.owner[crossing.to as usize];
        if foreign && (crossing.inside || state.owner[crossing.to as usize] != crossing.to) {
            state.fragments[crossing.to as usize]
                .jumped_into
                .push(crossing.target);
        }
    }
    for fragment in &mut state.fragments {
        fragment.jumped_into.sort_unstable();
        fragment.jumped_into.dedup();
    }
}
