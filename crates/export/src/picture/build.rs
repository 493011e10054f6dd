//! Putting the picture together: modules one after the other, their functions in parallel, then files
//! in parallel. Paths are compared once a file, not once a line.

use std::sync::Arc;

use rayon::prelude::*;
use rustc_hash::FxHashMap;
use tomo_profile::merge::Finding;
use tomo_program::{FunctionView, Model, ModelError, Progress, path_of};
use tomo_wire::plan::Level;

use super::copies::{Named, Within, together};
use super::function::{Read, Source, keep_greatest, read};
use super::inlined::{self, Bodies};
use super::sharing;
use super::unknown::unknown_bytes;
use super::{
    Branch, Copies, File, LeftOut, Line, Module, Observed, Picture, Tally, Totals, Unobserved,
};
use crate::lines::Lines;
use crate::marked::Marked;
use crate::source;
use crate::{Findings, Paths};

impl Picture {
    /// The picture of these modules, with the source files that `paths` chooses.
    ///
    /// # Errors
    /// Where a model is damaged.
    pub fn of(
        mut observed: Vec<Observed>,
        paths: &Paths,
        progress: &dyn Progress,
    ) -> Result<Self, ModelError> {
        observed.sort_by(|one, other| one.located.path.cmp(&other.located.path));
        progress.stage("reading lines", observed.len() as u64);
        let mut builder = Builder::new(paths);
        for module in observed {
            builder.add(module)?;
            progress.advance(1);
        }
        Ok(builder.finish())
    }
}

/// A file that is being put together.
#[derive(Default)]
struct Draft {
    file: File,
    functions: Vec<Named>,
    bodies: Vec<Bodies>,
    lines: Vec<(u32, Finding)>,
    /// Lines with code that the source leaves out.
    marked: Vec<u32>,
    /// The same of modules that no process was observed with, of which nothing is known.
    unobserved: Vec<(u32, Finding)>,
    /// Branches of these.
    unobserved_branches: Vec<Branch>,
    /// Sides of branches at lines at which no statement begins.
    astray: Tally,
}

struct Builder<'a> {
    paths: &'a Paths,
    picture: Picture,
    drafts: Vec<Draft>,
    /// For each module, for each of its files, the number of the draft.
    files: Vec<Vec<Option<u32>>>,
    /// By path.
    numbers: FxHashMap<String, u32>,
    /// For each draft, what its source leaves out; none at all if that is not asked for.
    marked: Vec<Marked>,
    left_out: LeftOut,
}

impl<'a> Builder<'a> {
    fn new(paths: &'a Paths) -> Self {
        Self {
            paths,
            picture: Picture::default(),
            drafts: Vec::new(),
            files: Vec::new(),
            numbers: FxHashMap::default(),
            marked: Vec::new(),
            left_out: LeftOut::default(),
        }
    }

    fn add(&mut self, observed: Observed) -> Result<(), ModelError> {
        let Observed { located, findings } = observed;
        let graphs = located.model.graphs()?;
        let lines = located.lines();
        let files = self.number(lines);
        self.read_marks();
        let source = Source {
            lines,
            files: &files,
            marked: &self.marked,
        };
        let number = self.picture.modules.len() as u32;
        let unknown = self.paths.takes_unknown();
        let functions: Vec<_> = graphs.functions().collect();
        let shared = sharing::shared(&located);
        let read = |function: FunctionView<'_>| {
            let mut read = read(function, number, &findings, &source, unknown);
            let names = shared.get(&function.entry());
            if let (Some(names), Some(own)) = (names, function.name()) {
                read.function.also = sharing::also(names, own);
                read.function.title += &read.function.also;
            }
            read
        };
        let read: Vec<Read> = functions.into_par_iter().map(read).collect();
        let (base, end) = extent(&located.bytes);
        let mut module = Module {
            functions: Vec::with_capacity(read.len()),
            base,
            end,
            has_lines: !lines.is_empty(),
            unobserved: unobserved(&located.model, &findings),
            totals: Totals::default(),
            located: Arc::clone(&located),
            findings,
        };
        // A line that several functions have code of is one line.
        let mut lines: Vec<_> = read.iter().flat_map(|it| &it.lines).copied().collect();
        keep_greatest(&mut lines);
        self.take_bodies(&module, &files);
        for read in read {
            self.take(&mut module, number, read);
        }
        module.totals.lines = lines.iter().map(|(_, finding)| *finding).collect();
        self.picture.modules.push(module);
        self.files.push(files);
        Ok(())
    }

    /// For each file of a module, its number here; nothing if it is not shown.
    fn number(&mut self, lines: &Lines) -> Vec<Option<u32>> {
        let mut number = |path: &String| {
            let path = self.paths.renamed(path);
            if !self.paths.takes(&path) {
                return None;
            }
            let next = u32::try_from(self.drafts.len()).ok()?;
            let number = *self.numbers.entry(path.clone()).or_insert(next);
            if number == next {
                self.drafts.push(Draft::default());
                let file = &mut self.drafts[number as usize].file;
                file.place = path_of(&path);
                file.path = path;
            }
            Some(number)
        };
        lines.files().iter().map(&mut number).collect()
    }

    /// Reads what the sources of new files leave out.
    fn read_marks(&mut self) {
        if !self.paths.leaves_out_marked() {
            return;
        }
        let new = self.drafts[self.marked.len()..].par_iter();
        let read: Vec<_> = new.map(|draft| source::read(&draft.file.place)).collect();
        for source in read {
            let marked = source.map(|source| Marked::of(&source));
            self.left_out.unread += u64::from(marked.is_err());
            self.marked.push(marked.unwrap_or_default());
        }
    }

    /// Where only functions were asked for, nothing is known of what is in them.
    fn take_bodies(&mut self, module: &Module, files: &[Option<u32>]) {
        if module.findings.level == Level::Function {
            return;
        }
        let lines = module.located.lines();
        for (function, entered) in lines.inlined(&module.findings.blocks) {
            let file = files
                .get(function.declared.file as usize)
                .copied()
                .flatten();
            let line = function.declared.line;
            let is_marked = |file: &u32| {
                let marked = self.marked.get(*file as usize);
                marked.is_some_and(|marked| marked.has_line(line))
            };
            let file = file.filter(|file| !is_marked(file));
            if let Some(draft) = file.and_then(|file| self.drafts.get_mut(file as usize)) {
                draft.bodies.push(Bodies {
                    name: function.name.as_str().into(),
                    line,
                    entered,
                    observed: module.findings.observed,
                });
            }
        }
    }

    fn take(&mut self, module: &mut Module, number: u32, read: Read) {
        let function = read.function;
        if function.shown {
            module.totals = module.totals + function.totals;
            let draft = function
                .file
                .and_then(|file| self.drafts.get_mut(file as usize));
            match draft {
                Some(draft) => draft.functions.push(Named {
                    line: function.line,
                    name: read.name,
                    module: number,
                    function: function.id,
                }),
                None => {
                    let totals = &mut self.picture.elsewhere;
                    totals.functions = totals.functions + function.totals.functions;
                    totals.blocks = totals.blocks + function.totals.blocks;
                }
            }
            if self.paths.takes_unknown() {
                let elsewhere = &mut self.picture.elsewhere;
                elsewhere.branches = elsewhere.branches + read.nowhere;
            }
        }
        for (position, finding) in read.lines {
            if let Some(draft) = self.drafts.get_mut(position.file as usize) {
                let lines = match module.findings.observed {
                    true => &mut draft.lines,
                    false => &mut draft.unobserved,
                };
                lines.push((position.line, finding));
            }
        }
        for position in read.marked {
            if let Some(draft) = self.drafts.get_mut(position.file as usize) {
                draft.marked.push(position.line);
            }
        }
        for (file, branch) in read.branches {
            if let Some(draft) = self.drafts.get_mut(file as usize) {
                let branches = match module.findings.observed {
                    true => &mut draft.file.branches,
                    false => &mut draft.unobserved_branches,
                };
                branches.push(branch);
            }
        }
        module.functions.push(function);
    }

    /// Files get their final numbers, by path; those without any code are left out.
    fn finish(mut self) -> Picture {
        let by_function_only = self.picture.level() == Level::Function;
        let modules = self.picture.modules.iter().zip(&self.files);
        let modules: Vec<Within<'_>> = modules
            .map(|(one, files)| Within::of(one, files, &self.marked))
            .collect();
        self.drafts.par_iter_mut().for_each(|draft| {
            draft.take_functions(&modules);
            draft.finish(by_function_only);
        });
        if by_function_only {
            let elsewhere = &mut self.picture.elsewhere;
            *elsewhere = elsewhere.of_functions();
            for module in &mut self.picture.modules {
                module.totals = module.totals.of_functions();
                for function in &mut module.functions {
                    function.totals = function.totals.of_functions();
                }
            }
        }
        for draft in &self.drafts {
            let elsewhere = &mut self.picture.elsewhere;
            elsewhere.branches = elsewhere.branches + draft.astray;
        }
        let marked = self.drafts.iter().map(|draft| draft.marked.len() as u64);
        for lines in marked.filter(|lines| *lines > 0) {
            self.left_out.lines += lines;
            self.left_out.files += 1;
        }
        self.picture.left_out = self.paths.leaves_out_marked().then_some(self.left_out);
        let modules = &mut self.picture.modules;
        let mut order: Vec<usize> = (0..self.drafts.len()).collect();
        order.retain(|&index| !self.drafts[index].file.is_empty());
        order.sort_by(|&one, &other| key(&self.drafts[one]).cmp(&key(&self.drafts[other])));
        let mut new = vec![None; self.drafts.len()];
        for (number, &old) in order.iter().enumerate() {
            new[old] = Some(number as u32);
            let file = std::mem::take(&mut self.drafts[old].file);
            self.picture.files.push(file);
        }
        for function in modules.iter_mut().flat_map(|module| &mut module.functions) {
            function.file = function.file.and_then(|file| new[file as usize]);
        }
        let place = |copies: &Copies| {
            let place = copies.of.first().map(|(module, function)| {
                let function = &modules[*module as usize].functions[function.index()];
                (function.entry, *module)
            });
            // Of one line those with code of their own first.
            (copies.line, place.is_none(), place)
        };
        for file in &mut self.picture.files {
            file.functions.sort_by_key(place);
        }
        self.picture
    }
}

/// Folder by folder, and in each by name.
fn key(draft: &Draft) -> (&str, &str) {
    let path = draft.file.path.as_str();
    path.rsplit_once('/').unwrap_or(("", path))
}

impl Draft {
    fn take_functions(&mut self, modules: &[Within<'_>]) {
        let functions = std::mem::take(&mut self.functions);
        self.file.functions = together(functions, modules);
        inlined::add(&mut self.file.functions, std::mem::take(&mut self.bodies));
        let totals = &mut self.file.totals;
        for copies in &self.file.functions {
            totals.functions = totals.functions + copies.totals.functions;
            totals.blocks = totals.blocks + copies.totals.blocks;
        }
    }

    fn finish(&mut self, by_function_only: bool) {
        if by_function_only {
            self.lines.clear();
            self.unobserved.clear();
            self.unobserved_branches.clear();
            self.file.branches.clear();
            self.file.totals = self.file.totals.of_functions();
            for copies in &mut self.file.functions {
                copies.totals = copies.totals.of_functions();
            }
        }
        self.marked.sort_unstable();
        self.marked.dedup();
        keep_greatest(&mut self.lines);
        self.add_unobserved();
        let lines = std::mem::take(&mut self.lines);
        self.file.totals.lines = lines.iter().map(|(_, finding)| *finding).collect();
        let line = |(number, finding)| Line { number, finding };
        self.file.lines = lines.into_iter().map(line).collect();
        inlined::place(&mut self.file.functions, &self.file.lines);
        // Optimised code branches at lines that have no code of their own: those have no place in any format.
        let branches = std::mem::take(&mut self.file.branches).into_iter();
        let (mut here, astray): (Vec<_>, Vec<_>) =
            branches.partition(|branch| self.file.line(branch.line).is_some());
        keep_once(&mut here);
        let place = |branch: &Branch| (branch.line, branch.module, branch.address);
        here.sort_unstable_by_key(place);
        self.astray = astray.iter().flat_map(Branch::sides).collect();
        self.file.totals.branches = here.iter().flat_map(|it| self.file.sides(it)).collect();
        self.file.branches = here;
    }
}

impl Draft {
    /// Lines that only modules have of which nothing is known, and their branches: what is known of a line from another module is not
    /// lost by them.
    fn add_unobserved(&mut self) {
        let known = self.lines.len();
        let is_known = |number: u32| {
            let lines = &self.lines[..known];
            lines.binary_search_by_key(&number, |line| line.0).is_ok()
        };
        let mut lines = std::mem::take(&mut self.unobserved);
        lines.retain(|line| !is_known(line.0));
        let mut branches = std::mem::take(&mut self.unobserved_branches);
        branches.retain(|branch| !is_known(branch.line));
        self.lines.extend(lines);
        keep_greatest(&mut self.lines);
        self.file.branches.extend(branches);
    }
}

/// Of copies of a branch, what holds of all together, at the place of the first.
fn keep_once(branches: &mut Vec<Branch>) {
    branches.sort_unstable_by_key(|it| (it.line, it.copy, it.module, it.address));
    branches.dedup_by(|next, kept| {
        let same = (next.line, next.copy) == (kept.line, kept.copy);
        if same {
            kept.block = kept.block.or(next.block);
            kept.taken = kept.taken.or(next.taken);
            kept.not_taken = kept.not_taken.or(next.not_taken);
        }
        same
    });
}

impl Branch {
    /// Taken, and not.
    #[must_use]
    pub fn sides(&self) -> [Finding; 2] {
        [self.taken, self.not_taken]
    }
}

impl File {
    /// The line with this number, if it has code.
    #[must_use]
    pub fn line(&self, number: u32) -> Option<&Line> {
        let at = self.lines.binary_search_by_key(&number, |line| line.number);
        self.lines.get(at.ok()?)
    }

    /// The sides of a branch as they count: at a line of which nothing is known nothing is known of them.
    #[must_use]
    pub fn sides(&self, branch: &Branch) -> [Finding; 2] {
        let line = self.line(branch.line).and_then(|line| line.finding.ran());
        line.map_or([Finding::Unknown; 2], |_| branch.sides())
    }

    fn is_empty(&self) -> bool {
        self.lines.is_empty() && self.branches.is_empty() && self.functions.is_empty()
    }
}

fn unobserved(model: &Model, findings: &Findings) -> Unobserved {
    let unknown = |all: &[Finding]| {
        let count = all.iter().filter(|it| **it == Finding::Unknown).count();
        (count as u64, all.len() as u64)
    };
    let asked = match findings.level {
        Level::Function => &findings.functions,
        _ => &findings.blocks,
    };
    let inferred = asked.iter().filter(|it| it.is_inferred()).count() as u64;
    let code = model.summary().text_bytes;
    Unobserved {
        functions: unknown(&findings.functions),
        blocks: unknown(&findings.blocks),
        bytes: (unknown_bytes(model, findings, code), code),
        inferred,
    }
}

/// From where to where the module's loaded segments go; pages of 4096 bytes.
fn extent(bytes: &[u8]) -> (u64, u64) {
    let field = |at: usize, size: usize| -> Option<u64> {
        let mut number = [0; 8];
        number[..size].copy_from_slice(bytes.get(at..at.checked_add(size)?)?);
        Some(u64::from_le_bytes(number))
    };
    let header = || Some((field(32, 8)?, field(54, 2)?, field(56, 2)?));
    let (offset, size, count) = header().unwrap_or_default();
    let segment = |index: u64| {
        let at = usize::try_from(offset.checked_add(index * size)?).ok()?;
        let loaded = field(at, 4)? == 1;
        let (start, length) = (field(at + 16, 8)?, field(at + 40, 8)?);
        loaded.then_some((start, start.saturating_add(length)))
    };
    let segments = (0..count).filter_map(segment);
    let whole = segments.reduce(|one, other| (one.0.min(other.0), one.1.max(other.1)));
    whole.map_or((0, 0), |(start, end)| (start & !0xfff, end))
}
