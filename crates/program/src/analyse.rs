//! How a program is understood: from the bytes of an ELF file to its functions.
//!
//! 1. The file's tables state where code starts ([`fragment`]).
//! 2. Recursive traversal decodes from there, in parallel, and finds further starts ([`explore`],
//!    [`discover`]).
//! 3. Split-off parts are joined with their functions ([`parts`]); calls that never come back are
//!    told from those that do ([`returns`]).
//! 4. Backward slices say where indirect jumps lead ([`slice`](mod@slice), [`tables`]). That brings new code to
//!    light: back to 2, until nothing changes.
//! 5. What is reached becomes blocks and edges; what could not be proven makes its function partial
//!    or opaque ([`build`]).
//!
//! The last round of 4 runs on the final graph, so that every bound of a jump table is proven over all paths
//! that the model has.

mod build;
mod code;
mod discover;
mod explore;
mod fragment;
mod names;
mod padding;
mod parts;
mod returns;
mod slice;
mod state;
mod tables;

use std::hash::{Hash as _, Hasher as _};
use std::time::Instant;

use rayon::prelude::*;
use rustc_hash::{FxHashMap, FxHashSet, FxHasher};

use crate::dwarf::{self, DebugInfo};
use crate::elf::{Binary, ElfError};
use crate::unwind;
use crate::{Address, Facts, Function, Progress, Resolution, Status};
use code::{Code, Pos};
use explore::Exit;
use fragment::Tables;
use state::{BlockRef, Resolved, State};
use tables::{Finding, Landmarks};

/// Rounds after which the jump tables that still change are given up.
const MOST_ROUNDS: usize = 16;

/// Why a file cannot be analysed.
#[derive(Debug, thiserror::Error)]
pub enum AnalyseError {
    /// It is no program of the kind that is understood.
    #[error(transparent)]
    Elf(#[from] ElfError),
    /// Positions in its code do not fit 32 bits.
    #[error("its executable sections span more than 4 GiB, which is not supported")]
    TooMuchCode,
}

/// The functions of the program whose file's bytes are `data`, by entry, and facts about the whole.
///
/// # Errors
/// Where the file is no x86-64 program. Whatever else is wrong costs only itself and is told in
/// the facts' warnings.
pub fn analyse(
    data: &[u8],
    progress: &dyn Progress,
) -> Result<(Vec<Function>, Facts), AnalyseError> {
    let begun = Instant::now();
    progress.stage("reading tables", 0);
    let binary = Binary::parse(data)?;
    let sections = dwarf::Sections::read(data);
    let (unwind, debug) = rayon::join(|| unwind::read(&binary), || dwarf::functions(&sections));
    let code = Code::new(&binary).ok_or(AnalyseError::TooMuchCode)?;
    let stated = Tables {
        code: &code,
        unwind: &unwind,
        debug: &debug,
    };
    let functions = functions(&stated, progress);
    let mut facts = facts(&stated, data, &functions);
    progress.stage("reading line tables", 0);
    facts.lines = lines(&sections, &debug, &functions);
    facts
        .warnings
        .extend(facts.lines.warnings.iter().map(ToString::to_string));
    facts.seconds = begun.elapsed().as_secs_f64();
    facts.peak_memory_bytes = crate::peak_memory_bytes().unwrap_or(0);
    Ok((functions, facts))
}

fn functions(stated: &Tables<'_>, progress: &dyn Progress) -> Vec<Function> {
    let mut state = State::new(stated);
    progress.stage(
        "decoding",
        stated
            .code
            .regions()
            .map(|(start, end)| u64::from(end.since(start)))
            .sum(),
    );
    let roots: Vec<Pos> = fragment::landing_pads(stated).collect();
    for root in roots {
        if let Some(index) = state.find(root) {
            state.fragments[index].add_root(root);
        }
    }
    let all = state
        .fragments
        .iter()
        .map(|fragment| fragment.start)
        .collect();
    discover::explore(&mut state, all, progress);
    settle(&mut state, progress);
    progress.stage("building graphs", state.fragments.len() as u64);
    (0..u32::try_from(state.fragments.len()).unwrap_or(u32::MAX))
        .into_par_iter()
        .with_min_len(64)
        .filter_map(|owner| build::function(&state, owner))
        .collect()
}

/// Resolves indirect jumps until neither they nor the graph change any more.
fn settle(state: &mut State<'_>, progress: &dyn Progress) {
    let mut landmarks = Landmarks {
        tables: FxHashSet::default(),
        labels: Vec::new(),
    };
    let mut known = Known::default();
    for round in 0.. {
        parts::group(state);
        state.reach = returns::reach(state);
        landmarks.labels = labels(state);
        progress.stage("following indirect jumps", 0);
        let findings = examine(state, &landmarks, &mut known);
        let starts: FxHashSet<Address> = findings
            .iter()
            .flat_map(|finding| finding.tables.iter().copied())
            .collect();
        let same_starts = starts.is_subset(&landmarks.tables);
        landmarks.tables.extend(starts);
        let jumps: FxHashMap<Pos, Resolved> = findings
            .into_iter()
            .map(|finding| (finding.end, finding.resolved))
            .collect();
        if jumps == state.jumps && same_starts {
            return;
        }
        if round == MOST_ROUNDS {
            give_up_changed(state, jumps);
            parts::group(state);
            state.reach = returns::reach(state);
            return;
        }
        state.jumps = jumps;
        let dirty = retarget(state);
        discover::explore(state, dirty, progress);
    }
}

/// What was found for functions, by the start of their owner, with what it was found from.
type Known = FxHashMap<Pos, (u64, Vec<Finding>)>;

/// Examines the indirect jumps of all functions whose graph has changed since.
fn examine(state: &State<'_>, landmarks: &Landmarks, known: &mut Known) -> Vec<Finding> {
    let indirect = state
        .fragments
        .iter()
        .enumerate()
        .filter(|(_, fragment)| fragment.indirect);
    let mut owners: Vec<u32> = indirect.map(|(index, _)| state.owner[index]).collect();
    owners.sort_unstable();
    owners.dedup();
    let found: Vec<(Pos, u64, Option<Vec<Finding>>)> = owners
        .into_par_iter()
        .map(|owner| {
            let start = state.fragments[owner as usize].start;
            let signature = signature(state, owner, landmarks);
            let is_known = known
                .get(&start)
                .is_some_and(|(same, _)| *same == signature);
            (
                start,
                signature,
                (!is_known).then(|| tables::examine(state, owner, landmarks)),
            )
        })
        .collect();
    let current: FxHashSet<Pos> = found.iter().map(|(start, ..)| *start).collect();
    known.retain(|start, _| current.contains(start));
    for (start, signature, findings) in found {
        if let Some(findings) = findings {
            known.insert(start, (signature, findings));
        }
    }
    known
        .values()
        .flat_map(|(_, findings)| findings)
        .cloned()
        .collect()
}

/// A hash of all that the examination of a function's indirect jumps depends on.
fn signature(state: &State<'_>, owner: u32, landmarks: &Landmarks) -> u64 {
    let mut hasher = FxHasher::default();
    let mut measured = false;
    for part in state.fragments_of(owner) {
        let fragment = &state.fragments[part as usize];
        (fragment.start, fragment.end, &fragment.jumped_into).hash(&mut hasher);
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
                let jump = state.jumps.get(&block.end);
                measured |= jump.is_none_or(|jump| jump.resolution != Resolution::GuardedTable);
                jump.hash(&mut hasher);
            }
        }
    }
    if measured {
        (landmarks.tables.len(), landmarks.labels.len()).hash(&mut hasher);
    }
    hasher.finish()
}

/// Jumps whose targets never settled are unresolved.
fn give_up_changed(state: &mut State<'_>, last: FxHashMap<Pos, Resolved>) {
    for (end, resolved) in last {
        let settled = state.jumps.get(&end) == Some(&resolved);
        let resolution = if settled {
            resolved.resolution
        } else {
            Resolution::Unresolved
        };
        state.jumps.insert(
            end,
            Resolved {
                resolution,
                ..resolved
            },
        );
    }
}

/// Tells every fragment where jump tables lead in it; the starts of those for which that is new.
fn retarget(state: &mut State<'_>) -> Vec<Pos> {
    let mut targets: FxHashMap<usize, Vec<Pos>> = FxHashMap::default();
    for resolved in state.jumps.values() {
        for &target in &resolved.targets {
            if let Some(index) = state.find(target) {
                targets.entry(index).or_default().push(target);
            }
        }
    }
    let mut dirty = Vec::new();
    for (index, fragment) in state.fragments.iter_mut().enumerate() {
        let mut new = targets.remove(&index).unwrap_or_default();
        new.sort_unstable();
        new.dedup();
        if fragment.targets != new {
            fragment.targets = new;
            dirty.push(fragment.start);
        }
    }
    dirty
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
            let skip = region.range.start().0.wrapping_neg() % 8;
            let words = region
                .bytes
                .get(usize::try_from(skip).unwrap_or(0)..)
                .unwrap_or_default()
                .chunks_exact(8);
            for (index, word) in words.enumerate() {
                let slot = region.range.start().wrapping_add(skip + 8 * index as u64);
                let target = word
                    .iter()
                    .rev()
                    .fold(0, |number, &byte| number << 8 | u64::from(byte));
                labels.extend(inner(Address(target)).map(|pos| (pos, slot)));
            }
        }
    }
    labels.sort_unstable();
    labels.dedup();
    labels
}

fn facts(stated: &Tables<'_>, data: &[u8], functions: &[Function]) -> Facts {
    let binary = stated.code.binary;
    let bytes = |function: &Function| {
        function
            .ranges
            .iter()
            .map(|range| range.size())
            .sum::<u64>()
    };
    let exact = functions
        .iter()
        .filter(|function| function.status == Status::Exact)
        .map(bytes)
        .sum();
    let text: u64 = binary.code().iter().map(|region| region.range.size()).sum();
    let warnings = binary
        .warnings()
        .iter()
        .chain(&stated.unwind.warnings)
        .chain(&stated.debug.warnings);
    let padding = unclaimed_padding(stated.code, functions);
    Facts {
        build_id: binary.build_id().map(<[u8]>::to_vec),
        kind: binary.kind(),
        file_size: data.len() as u64,
        text_bytes: text - padding - stated.code.stub_bytes(),
        text_bytes_exact: exact,
        padding_bytes: padding,
        imports: binary
            .imports()
            .iter()
            .map(|import| import.name.to_owned())
            .collect(),
        warnings: warnings.map(ToString::to_string).collect(),
        first_instructions: crate::first_instruction_sizes(functions, |at| binary.code_at(at)),
        ..Facts::default()
    }
}

/// Bytes of code that no function claims and that are filling.
fn unclaimed_padding(code: &Code<'_>, functions: &[Function]) -> u64 {
    let mut claimed: Vec<(Pos, Pos)> = functions
        .iter()
        .flat_map(|function| &function.ranges)
        .filter_map(|range| {
            let start = code.pos(range.start())?;
            Some((start, start.plus(u32::try_from(range.size()).ok()?)))
        })
        .chain(code.stub_ranges())
        .collect();
    claimed.sort_unstable();
    let mut padding = 0;
    for (mut at, end) in code.regions() {
        let first = claimed.partition_point(|range| range.1 <= at);
        let inside = claimed[first..].iter().take_while(|range| range.0 < end);
        for &(from, to) in inside.chain(&[(end, end)]) {
            if from > at {
                padding += padding::padding_length(code.bytes(at, from)) as u64;
            }
            at = at.max(to);
        }
    }
    padding
}

fn lines(
    sections: &dwarf::Sections<'_>,
    debug: &DebugInfo,
    functions: &[Function],
) -> dwarf::Lines {
    if !debug.has_lines {
        return dwarf::Lines::default();
    }
    let mut starts: Vec<Address> = functions
        .iter()
        .flat_map(|function| &function.blocks)
        .map(|block| block.range.start())
        .collect();
    starts.sort_unstable();
    dwarf::lines(sections, &starts)
}
