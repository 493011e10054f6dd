//! Functions that are there several times: in several modules that were built from one source, or in several units of one
//! that include it, or because a compiler made copies of it for some callers, or split parts off. A file has each once, as it has its lines.
//!
//! Copies are functions of one name in the source at one line of one file. Their blocks and branches are the same where the functions have the
//! same shape; those that were compiled otherwise have others.

use rayon::prelude::*;
use tomo_profile::merge::Finding;
use tomo_program::{
    FunctionId, FunctionView, Graphs, Target, demangle, source_name, without_marks,
};
use tomo_wire::checksum;

use super::function::{Source, SourceFile, branch, finding, keep_greatest, read};
use super::{Copies, Module, Totals};
use crate::marked::Marked;

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

/// A module that functions are in.
pub(super) struct Within<'m> {
    module: &'m Module,
    /// It was read before, when the module was added.
    graphs: Option<Graphs<'m>>,
    source: Source<'m>,
}

impl<'m> Within<'m> {
    /// This one, with its files, and what is marked in all, as in [`Source`].
    pub(super) fn of(module: &'m Module, files: &'m [SourceFile], marked: &'m [Marked]) -> Self {
        let lines = module.located.lines();
        Self {
            module,
            graphs: module.located.model.graphs().ok(),
            source: Source {
                lines,
                files,
                marked,
            },
        }
    }
}

/// The functions of each file, with their copies.
pub(super) fn together(functions: Vec<Named>, modules: &[Within<'_>]) -> Vec<Copies> {
    let with_names = functions.par_iter().map(|one| {
        let name = one.name.as_deref().map(source_name);
        ((name, one.line), one)
    });
    let mut functions: Vec<_> = with_names.collect();
    let place = |one: &Named| (one.module, one.function);
    functions
        .sort_by(|(one, first), (other, second)| (one, place(first)).cmp(&(other, place(second))));
    let groups: Vec<_> = functions
        .chunk_by(|(one, _), (other, _)| one.0.is_some() && one == other)
        .collect();
    let copies = groups.into_par_iter().map(|group| {
        let group: Vec<&Named> = group.iter().map(|it| it.1).collect();
        let module = |one: &Named| modules[one.module as usize].module;
        let is_observed = |one: &&&Named| module(one).findings.observed;
        let mut known: Vec<&Named> = group.iter().filter(is_observed).copied().collect();
        // Where nothing ran nothing is known, which takes nothing of what others tell.
        if known.is_empty() {
            known = group;
        }
        let of: Vec<_> = known.iter().map(|one| (one.module, one.function)).collect();
        let first = &module(known[0]).functions[known[0].function.index()];
        let (entered, totals) = match known[..] {
            [_] => (first.entered, first.totals),
            _ => merged(&of, modules),
        };
        // Of destructors not the one that also frees the object.
        let names = known.iter().filter_map(|one| one.name.as_deref());
        let name = names.map(without_marks).max();
        let title = name.map(|name| demangle(name).unwrap_or_else(|| name.to_owned()));
        Copies {
            of,
            name: name.map(Box::from),
            title: title.unwrap_or_else(|| first.title.clone()) + &first.also,
            line: first.line,
            entered,
            totals,
        }
    });
    copies.collect()
}

/// What ran in any of these.
fn merged(of: &[(u32, FunctionId)], modules: &[Within<'_>]) -> (Finding, Totals) {
    let (mut entered, mut lines) = (Finding::NotRun, Vec::new());
    let (mut blocks, mut branches) = (Vec::new(), Vec::new());
    for (number, id) in of {
        let Within {
            module,
            graphs,
            source,
        } = &modules[*number as usize];
        let function = graphs.as_ref().and_then(|graphs| graphs.function(*id));
        let Some(function) = function else {
            continue;
        };
        let shape = shape(function);
        let read = read(function, *number, &module.findings, source, false);
        entered = entered.or(read.function.entered);
        lines.extend(read.lines);
        for block in function.blocks() {
            let place = (shape, block.address().0.wrapping_sub(function.entry().0));
            blocks.push((place, finding(&module.findings.blocks, block.id().index())));
            let is_left_out = || source.leaves_out_branch_of(block);
            if let Some(branch) =
                branch(block, *number, &module.findings).filter(|_| !is_left_out())
            {
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
