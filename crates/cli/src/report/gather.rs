//! From folders to a picture; what had to be left out is said on standard error, a line each and once.

use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Result, bail};
use tomo_export::words::counted;
use tomo_export::{Collected, Findings, Group, Located, Observed, Paths, Picture, collect, locate};
use tomo_program::{Cache, Progress as _, hexadecimal};
use tomo_wire::ModuleId;

use super::Source;
use crate::bar::Bar;
use crate::observe::models;
use crate::session::{failing, share, started_without, why};

/// Makes pictures. A module is loaded once, however many pictures it is in.
pub(super) struct Gatherer<'g> {
    source: &'g Source<'g>,
    paths: &'g Paths,
    bar: &'g Bar,
    cache: Option<Cache>,
    modules: HashMap<ModuleId, Arc<Located>>,
    said: BTreeSet<String>,
    /// Whether anything was left out.
    is_incomplete: bool,
}

impl<'g> Gatherer<'g> {
    /// For these programs, with the source files that `paths` chooses.
    pub(super) fn new(source: &'g Source<'g>, paths: &'g Paths, bar: &'g Bar) -> Self {
        Self {
            source,
            paths,
            bar,
            cache: models(),
            modules: HashMap::new(),
            said: BTreeSet::new(),
            is_incomplete: false,
        }
    }

    /// Whether something was left out where that is a failure.
    pub(super) fn fails(&self) -> bool {
        self.source.strict && self.is_incomplete
    }

    /// The picture of all records in `folders`.
    pub(super) fn gather(&mut self, folders: &[PathBuf]) -> Result<Picture> {
        let collected = collect(folders, self.bar);
        say_refused(&collected);
        self.is_incomplete |= !collected.refused.is_empty();
        let Some(picture) = self.picture(&collected)? else {
            bail!("there is nothing to report");
        };
        for (path, mut builds) in collected.conflicts() {
            // Whoever was left out was named, and is put together with nothing.
            builds.retain(|build| self.modules.contains_key(build));
            if builds.len() > 1 {
                say!(
                    "tomo: {}: records of {} builds of it; their lines are put together by file and number",
                    path.display(),
                    builds.len()
                );
            }
        }
        Ok(picture)
    }

    /// The picture of these records, if any of them can be used.
    pub(super) fn picture(&mut self, collected: &Collected) -> Result<Option<Picture>> {
        let mut observed = Vec::new();
        let mut used: Vec<&Group> = Vec::new();
        let (modules, unseen) = modules(collected);
        for module in modules {
            let groups: Vec<&Group> = of_module(collected, module);
            match self.read(module, &groups) {
                Ok((read, fitting)) => {
                    observed.push(read);
                    used.extend(fitting);
                }
                Err(error) => self.leave_out(format!("tomo: {error:#}")),
            }
        }
        if observed.is_empty() {
            return Ok(None);
        }
        for group in &used {
            let name = self.name_of(group);
            let remarks = [unarmed(&name, group), without(&name, group)];
            remarks
                .into_iter()
                .flatten()
                .for_each(|words| self.say(words));
        }
        let mut picture = Picture::of(observed, self.paths, self.bar)?;
        let name = |path: PathBuf| match path.file_name().filter(|_| self.source.passing) {
            Some(name) => name.into(),
            None => path,
        };
        picture.unseen = unseen.into_iter().map(name).collect();
        picture.records = used.iter().map(|group| group.records.len()).sum();
        let created = used.iter().map(|group| group.marks.created);
        picture.created = created.min().unwrap_or(0);
        Ok(Some(picture))
    }

    /// What the module of these records is called.
    fn name_of(&self, group: &Group) -> String {
        match self.modules.get(&group.module) {
            Some(located) => located.path.display().to_string(),
            None => hexadecimal(group.module.name()),
        }
    }

    /// The files that were named as programs, of which none is one of the modules that are shown.
    pub(super) fn unused_programs(&self) -> impl Iterator<Item = &Path> {
        let is_used = |path: &Path| self.modules.values().any(|located| located.path == path);
        let named = self.source.programs.iter().map(PathBuf::as_path);
        named.filter(move |path| !self.source.passing && !is_used(path))
    }

    /// Says what is left out.
    fn leave_out(&mut self, words: String) {
        self.is_incomplete = true;
        self.say(words);
    }

    /// Says what was not said before.
    fn say(&mut self, words: String) {
        if !self.said.contains(&words) {
            say!("{words}");
            self.said.insert(words);
        }
    }

    /// Reads a module's records; gives those of them that fit.
    fn read<'c>(
        &mut self,
        module: ModuleId,
        groups: &[&'c Group],
    ) -> Result<(Observed, Vec<&'c Group>)> {
        let located = self.locate(module, groups)?;
        self.bar.stage("inferring", groups.len() as u64);
        let mut findings = Findings::none(&located);
        let mut fitting = Vec::new();
        for &group in groups {
            match findings.add(&located.model, group) {
                Ok(()) => fitting.push(group),
                Err(error) => self.leave_out(format!(
                    "tomo: {}: {} left out: {error}",
                    located.path.display(),
                    counted(group.records.len() as u64, "record", "records")
                )),
            }
            self.bar.advance(1);
        }
        if fitting.is_empty() {
            bail!(
                "{}: none of its records can be used",
                located.path.display()
            );
        }
        Ok((Observed { located, findings }, fitting))
    }

    /// The module, loaded.
    fn locate(&mut self, module: ModuleId, groups: &[&Group]) -> Result<Arc<Located>> {
        if let Some(known) = self.modules.get(&module) {
            return Ok(Arc::clone(known));
        }
        let paths = groups.iter().flat_map(|group| &group.paths);
        let stated: BTreeSet<&Path> = paths.map(PathBuf::as_path).collect();
        let programs = self.source.programs.iter().map(PathBuf::as_path);
        let candidates = programs.chain(stated);
        let mut located = locate(module, candidates, self.cache.as_ref(), self.bar)?;
        if let Some(name) = located.path.file_name().filter(|_| self.source.passing) {
            located.pass_for(name.into());
        }
        let located = Arc::new(located);
        for warning in &located.warnings {
            self.say(format!("tomo: warning: {warning}"));
        }
        self.modules.insert(module, Arc::clone(&located));
        Ok(located)
    }
}

/// Names what was left out.
pub(crate) fn say_refused(collected: &Collected) {
    for refused in &collected.refused {
        say!("tomo: {}: {}", refused.path.display(), refused.why);
    }
}

/// The modules that were to be observed, each once; and the files of those of which there is nothing to be said but that no process
/// was, as of most in a folder of plugins or of builds, unless it is so of all.
fn modules(collected: &Collected) -> (Vec<ModuleId>, Vec<PathBuf>) {
    let (mut modules, mut seen) = (Vec::new(), Vec::new());
    for group in &collected.groups {
        if !modules.contains(&group.module) {
            modules.push(group.module);
        }
        if !(group.is_unseen() && group.marks.live.refused.count == 0) {
            seen.push(group.module);
        }
    }
    if seen.is_empty() {
        return (modules, Vec::new());
    }
    let unseen = collected.groups.iter();
    let unseen = unseen.filter(|group| !seen.contains(&group.module));
    let files: BTreeSet<PathBuf> = unseen.map(file_of).collect();
    modules.retain(|module| seen.contains(module));
    (modules, files.into_iter().collect())
}

fn of_module(collected: &Collected, module: ModuleId) -> Vec<&Group> {
    let groups = collected.groups.iter();
    groups.filter(|group| group.module == module).collect()
}

/// What is to be said of records that not all processes contributed to.
fn unarmed(name: &str, group: &Group) -> Option<String> {
    let live = &group.marks.live;
    let refusals = live.refused;
    if refusals.count > 0 {
        return Some(format!(
            "tomo: {name}: {} in {} of a run: {}",
            failing(refusals),
            share(refusals, live.armed),
            why(refusals)
        ));
    }
    (live.armed == 0).then(|| format!("tomo: {name}: no process has been observed so far"))
}

/// What is to be said of records of runs in which programs were started without the agent.
fn without(name: &str, group: &Group) -> Option<String> {
    let words = started_without(group.marks.live.without)?;
    Some(format!("tomo: {name}: in a run, {words}"))
}

/// Its file, or its build id where no manifest names it.
fn file_of(group: &Group) -> PathBuf {
    let path = group.paths.first().cloned();
    path.unwrap_or_else(|| hexadecimal(group.module.name()).into())
}
