//! How a program is understood: from the bytes of an ELF file to its functions.
//!
//! 1. The file's tables state where code starts ([`fragment`]).
//! 2. Recursive traversal decodes from there, in parallel, and finds further starts ([`explore`],
//!    [`discover`]).
//! 3. Split-off parts are joined with their functions ([`parts`]); calls that never come back are
//!    told from those that do ([`returns`]).
//! 4. Backward slices say where indirect jumps lead ([`slice`](mod@slice), [`tables`]). That brings new code to
//!    light: back to 2, until nothing changes ([`settle`]).
//! 5. What may be code, though nothing leads to it, says who else may be entered ([`hidden`]).
//! 6. What is reached becomes blocks and edges; what could not be proven makes its function partial
//!    or opaque ([`build`]).
//!
//! The last round of 4 runs on the final graph, so that every bound of a jump table is proven over all paths
//! that the model has.

mod build;
mod code;
mod constants;
mod discover;
mod explore;
mod foreign;
mod fragment;
mod hidden;
mod landmarks;
mod moved;
mod names;
mod orphans;
mod padding;
mod parts;
mod restartable;
mod return_address;
mod returns;
mod settle;
mod slice;
mod state;
mod system;
mod tables;

use return_address::Unusual;
use std::path::Path;
use std::time::Instant;

use rayon::prelude::*;

use crate::debug_file::{self, DebugFile, Directories};
use crate::dwarf::{self, DebugInfo};
use crate::elf::{Binary, ElfError};
use crate::go;
use crate::unwind;
use crate::{Address, Facts, Function, Progress, Status};
use code::{Code, Pos};
use fragment::Tables;
use state::State;

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
    let sections = dwarf::Sections::read(data).or_of_go(data);
    analyse_with(data, &sections, None, progress)
}

/// The same for the program at `path`. Where it has no debug information itself, names and lines are taken from the
/// file that it was moved to, if there is one in its place or in one of `directories` (see [`debug_file`]), and nothing
/// else is: what was observed with or without that file is of the same functions and blocks. A debug file that is broken or
/// of another build costs what it would have given, with a warning.
///
/// # Errors
/// Where the file is no x86-64 program.
pub fn analyse_file(
    path: &Path,
    data: &[u8],
    directories: &Directories,
    progress: &dyn Progress,
) -> Result<(Vec<Function>, Facts), AnalyseError> {
    let own = dwarf::Sections::read_at(data, path);
    if !own.is_empty() {
        return analyse_with(data, &own, None, progress);
    }
    let found = debug_file::find(path, data, directories);
    let own = match found.file {
        Some(_) => own,
        None => own.or_of_go(data),
    };
    let (functions, mut facts) = analyse_with(data, &own, found.file.as_ref(), progress)?;
    facts
        .warnings
        .extend(found.warnings.iter().map(ToString::to_string));
    Ok((functions, facts))
}

fn analyse_with(
    data: &[u8],
    sections: &dwarf::Sections<'_>,
    moved: Option<&DebugFile>,
    progress: &dyn Progress,
) -> Result<(Vec<Function>, Facts), AnalyseError> {
    let begun = Instant::now();
    progress.stage("reading tables", 0);
    let binary = Binary::parse(data)?;
    let (mut unwind, debug) = rayon::join(|| unwind::read(&binary), || dwarf::functions(sections));
    let mut go = go::read(&binary);
    unwind.add(std::mem::take(&mut go.entries));
    let code = Code::new(&binary).ok_or(AnalyseError::TooMuchCode)?;
    let stated = Tables {
        code: &code,
        unwind: &unwind,
        debug: &debug,
        go: &go,
        has_foreign: foreign::is_in(&binary, &code, &unwind),
        restartable: restartable::ranges(&binary, &code),
    };
    let mut functions = functions(&stated, progress);
    let mut facts = facts(&stated, data, &functions);
    progress.stage("reading line tables", 0);
    facts.described = moved.is_some() || !sections.is_empty();
    match moved {
        Some(file) => moved::describe(file, &mut functions, &mut facts),
        None => facts.lines = lines(sections, &debug, &functions),
    }
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
    settle::settle(&mut state, progress);
    hidden::follow(&mut state, progress);
    let unusual = Unusual::of(&state);
    let open = orphans::open(&state);
    progress.stage("building graphs", state.fragments.len() as u64);
    (0..u32::try_from(state.fragments.len()).unwrap_or(u32::MAX))
        .into_par_iter()
        .with_min_len(64)
        .filter_map(|owner| build::function(&state, &unusual, &open, owner))
        .collect()
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
