//! Functions that are there several times: in several modules that were built from one source, or in several units of one
//! that include it. A file has each once, as it has its lines.
//!
//! Copies are functions of one name at one line of one file. Their blocks and branches are the same where the functions have the
//! same shape; those that were compiled otherwise have others.

use rayon::prelude::*;
use tomo_profile::merge::Finding;
use tomo_program::{FunctionId, FunctionView, Target};
use tomo_wire::checksum;

use super::function::{Source, branch, finding, keep_greatest, read};
use super::{Copies, Module, Totals};

/// A function of a file.
pub(super) struct Named {
    pub(super) line: u32,
    /// As linkers know it; those without are nobody's copies.
    pub(super) name: Option<Box<str>>,
    pub(super) module: u32,
    pub(super) function: FunctionId,
}

/// A checksum of where a function's blocks are in it, and where they lead.
pub(super) fn shape(function: FunctionView<'_>) -> u64 {
    let entry = function.entry().0;
    let mut numbers: Vec<u64> = Vec::new();
    for block in function.blocks() {
        numbers.extend([block.address().0.wrapping_sub(entry), block.size().into()]);
        for edge in block.successors() {
            let inner = matches!(edge.target, Target::Block(_));
            let to = edge.address.0.wrapping_sub(entry);
            numbers.extend([edge.kind as u64, if inner { to } else { u64::MAX }]);
        }
    }
    checksum(
        &numbers
            .iter()
            .flat_map(|it| it.to_le_bytes())
            .collect::<Vec<u8>>(),
    )
}

/// The functions of each file, with their copies; `files` as in [`Source`], by module.
pub(super) fn together(
    mut functions: Vec<Named>,
    modules: &[Module],
    files: &[Vec<Option<u32>>],
) -> Vec<Copies> {
    let place = |one: &Named| (one.line, one.module, one.function);
    functions.sort_by(|one, other| (&one.name, place(one)).cmp(&(&other.name, place(other))));
    let are_copies = |one: &Named, next: &Named| {
        one.name.is_some() && (one.line, &one.name) == (next.line, &next.name)
    };
    let groups: Vec<&[Named]> = functions.chunk_by(are_copies).collect();
    let copies = groups.into_par_iter().map(|group| {
        let is_observed = |one: &&Named| modules[one.module as usize].findings.observed;
        let mut known: Vec<&Named> = group.iter().filter(is_observed).collect();
        // Where nothing ran nothing is known, which takes nothing of what others tell.
        if known.is_empty() {
            known = group.iter().collect();
        }
        let of: Vec<_> = known.iter().map(|one| (one.module, one.function)).collect();
        let first = &modules[known[0].module as usize].functions[known[0].function.index()];
        let (entered, totals) = match known[..] {
            [_] => (first.entered, first.totals),
            _ => merged(&of, modules, files),
        };
        Copies {
            of,
            name: known[0].name.clone(),
            title: first.title.clone(),
            line: first.line,
            entered,
            totals,
        }
    });
    copies.collect()
}

/// What ran in any of these.
fn merged(
    of: &[(u32, FunctionId)],
    modules: &[Module],
    files: &[Vec<Option<u32>>],
) -> (Finding, Totals) {
    let (mut entered, mut lines) = (Finding::NotRun, Vec::new());
    let (mut blocks, mut branches) = (Vec::new(), Vec::new());
    for (number, id) in of {
        let module = &modules[*number as usize];
        let source = Source {
            lines: module.located.lines(),
            files: &files[*number as usize],
        };
        // It was read before, when the module was added.
        let Ok(graphs) = module.located.model.graphs() else {
            continue;
        };
        let Some(function) = graphs.function(*id) else {
            continue;
        };
        let shape = shape(function);
        let read = read(function, *number, &module.findings, &source, false);
        entered = entered.or(read.function.entered);
        lines.extend(read.lines);
        for block in function.blocks() {
            let place = (shape, block.address().0.wrapping_sub(function.entry().0));
            blocks.push((place, finding(&module.findings.blocks, block.id().index())));
            if let Some(branch) = branch(block, *number, &module.findings) {
                let sides = (0..).zip(branch.sides());
                branches.extend(sides.map(|(side, found): (u8, _)| ((place, side), found)));
            }
        }
    }
    keep_greatest(&mut lines);
    keep_greatest(&mut blocks);
    keep_greatest(&mut branches);
    let totals = Totals {
        lines: lines.iter().map(|(_, found)| *found).collect(),
        branches: branches.iter().map(|(_, found)| *found).collect(),
        functions: [entered].into_iter().collect(),
        blocks: blocks.iter().map(|(_, found)| *found).collect(),
    };
    (entered, totals)
}
