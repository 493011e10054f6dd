//! Putting the picture together: modules one after the other, their functions in parallel, then files
//! in parallel. Paths are compared once a file, not once a line.

use std::sync::Arc;

use rayon::prelude::*;
use rustc_hash::FxHashMap;
use tomo_profile::merge::Finding;
use tomo_program::{FunctionView, Model, ModelError, Progress, path_of};
use tomo_wire::checksum;
use tomo_wire::plan::Level;

use super::copies::{Named, Within, together};
use super::function::{Read, Source, SourceFile, keep_greatest, read};
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
    /// Whether the source was to be read, and could not be.
    is_unread: bool,
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
    files: Vec<Vec<SourceFile>>,
    /// By path.
    numbers: FxHashMap<String, u32>,
    /// For each draft, what its source leaves out; none at all if that is not asked for.
    marked: Vec<Marked>,
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
        let newest = &mut self.picture.newest;
        *newest = source::written(module.path()).max(*newest);
        self.picture.modules.push(module);
        self.files.push(files);
        Ok(())
    }

    /// The files of a module, with their numbers here.
    fn number(&mut self, lines: &Lines) -> Vec<SourceFile> {
        let mut named = |path: &String| {
            let path = self.paths.renamed(path);
            SourceFile {
                identity: checksum(path.as_bytes()),
                shown: self.number_of(path),
            }
        };
        lines.files().iter().map(&mut named).collect()
    }

    /// The number of the file of this name; nothing if it is not shown.
    fn number_of(&mut self, path: String) -> Option<u32> {
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
    }

    /// Reads what the sources of new files leave out.
    fn read_marks(&mut self) {
        if !self.paths.leaves_out_marked() {
            return;
        }
        let new = self.drafts[self.marked.len()..].par_iter_mut();
        let read = new.map(|draft| {
            let source = source::read(&draft.file.place);
            draft.is_unread = source.is_err();
            source.map_or_else(|_| Marked::default(), |source| Marked::of(&source))
        });
        self.marked.par_extend(read);
    }

    /// Where only functions were asked for, nothing is known of what is in them.
    fn take_bodies(&mut self, module: &Module, files: &[SourceFile]) {
        if module.findings.level == Level::Function {
            return;
        }
        let lines = module.located.lines();
        for (function, entered) in lines.inlined(&module.findings.blocks) {
            let file = files.get(function.declared.file as usize);
            let file = file.and_then(|file| file.shown);
            let line = function.declared.line;
            let marked = |file: &u32| self.marked.get(*file as usize);
            let is_marked = |file: &u32| marked(file).is_some_and(|it| it.has_line(line));
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
        self.picture.left_out = self.left_out();
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

impl Builder<'_> {
    /// What was left out as sources mark it.
    fn left_out(&self) -> Option<LeftOut> {
        let mut all = LeftOut::default();
        for (draft, marked) in self.drafts.iter().zip(&self.marked) {
            let has_some = !draft.marked.is_empty();
            all.lines += draft.marked.len() as u64;
            all.files += u64::from(has_some);
            all.open += u64::from(has_some && marked.is_open());
            all.newer += u64::from(has_some && self.picture.is_newer(&draft.file.place));
            all.unread += u64::from(draft.is_unread && !draft.file.is_empty());
        }
        self.paths.leaves_out_marked().then_some(all)
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
            self.marked.clear();
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
        let (mut here, mut astray): (Vec<_>, Vec<_>) =
            branches.partition(|branch| self.file.line(branch.line).is_some());
        keep_once(&mut here);
        keep_once(&mut astray);
        // At a line of which nothing is known nothing is known of them.
        let is_unknown = |branch: &&mut Branch| {
            let line = self.file.line(branch.line);
            line.is_none_or(|line| line.finding.ran().is_none())
        };
        for branch in here.iter_mut().filter(is_unknown) {
            (branch.taken, branch.not_taken) = (Finding::Unknown, Finding::Unknown);
        }
        let place = |branch: &Branch| (branch.line, branch.module, branch.address);
        here.sort_unstable_by_key(place);
        self.astray = astray.iter().flat_map(Branch::sides).collect();
        self.file.totals.branches = here.iter().flat_map(Branch::sides).collect();
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

    /// The lines that did not run, as first and last of such as no other line with code is in between.
    #[must_use]
    pub fn missed(&self) -> Vec<(u32, u32)> {
        let mut missed: Vec<(u32, u32)> = Vec::new();
        let mut goes_on = false;
        for line in &self.lines {
            let is_missed = line.finding.ran() == Some(false);
            match missed.last_mut().filter(|_| goes_on) {
                Some(last) if is_missed => last.1 = line.number,
                _ if is_missed => missed.push((line.number, line.number)),
                _ => {}
            }
            goes_on = is_missed;
        }
        missed
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

#[cfg(test)]
mod tests {
    use super::{File, Finding, Line};

    #[test]
    fn missed_lines_are_ranges_without_others_in_between() {
        let lines = [
            (1, Finding::Ran),
            (3, Finding::NotRun),
            (5, Finding::NotRunInferred),
            (6, Finding::Unknown),
            (9, Finding::NotRun),
            (10, Finding::RanInferred),
            (12, Finding::NotRunIfWhole),
        ];
        let lines = lines.map(|(number, finding)| Line { number, finding });
        let file = File {
            lines: lines.to_vec(),
            ..File::default()
        };
        assert_eq!(file.missed(), [(3, 5), (9, 9), (12, 12)]);
        assert_eq!(File::default().missed(), []);
    }
}
