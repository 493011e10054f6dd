//! From folders to a picture; what had to be left out is said on standard error, a line each.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use tomo_export::{Collected, Findings, Group, Observed, Paths, Picture, collect, locate};
use tomo_program::{Cache, Progress, hexadecimal};
use tomo_wire::ModuleId;
use tomo_wire::record::Reason;

use crate::bar::Bar;

/// The picture of all records in `folders`.
pub(super) fn gather(
    folders: &[PathBuf],
    programs: &[PathBuf],
    paths: &Paths,
    bar: &Bar,
) -> Result<Picture> {
    let collected = collect(folders, bar);
    say_refused(&collected);
    for (path, builds) in collected.conflicts() {
        say!(
            "tomo: {}: records of {} builds of it; each is shown by itself",
            path.display(),
            builds.len()
        );
    }
    let cache = Cache::from_environment(|name| std::env::var_os(name));
    let mut observed = Vec::new();
    let mut used: Vec<&Group> = Vec::new();
    for module in modules(&collected) {
        let groups: Vec<&Group> = of_module(&collected, module);
        match read(module, &groups, programs, cache.as_ref(), bar) {
            Ok((read, fitting)) => {
                observed.push(read);
                used.extend(fitting);
            }
            Err(error) => say!("tomo: {error:#}"),
        }
    }
    if observed.is_empty() {
        bail!("there is nothing to report");
    }
    used.iter().for_each(|group| say_unarmed(group));
    let mut picture = Picture::of(observed, paths, bar)?;
    picture.records = used.iter().map(|group| group.records.len()).sum();
    picture.created = used
        .iter()
        .map(|group| group.marks.created)
        .min()
        .unwrap_or(0);
    Ok(picture)
}

/// Names what was left out.
pub(crate) fn say_refused(collected: &Collected) {
    for refused in &collected.refused {
        say!("tomo: {}: {}", refused.path.display(), refused.why);
    }
}

/// The modules that were observed, each once.
fn modules(collected: &Collected) -> Vec<ModuleId> {
    let mut modules = Vec::new();
    for group in &collected.groups {
        if !modules.contains(&group.module) {
            modules.push(group.module);
        }
    }
    modules
}

fn of_module(collected: &Collected, module: ModuleId) -> Vec<&Group> {
    let groups = collected.groups.iter();
    groups.filter(|group| group.module == module).collect()
}

/// Loads a module and reads its records; gives those of them that fit.
fn read<'g>(
    module: ModuleId,
    groups: &[&'g Group],
    programs: &[PathBuf],
    cache: Option<&Cache>,
    progress: &dyn Progress,
) -> Result<(Observed, Vec<&'g Group>)> {
    let stated: BTreeSet<&Path> = groups
        .iter()
        .flat_map(|group| group.paths.iter().map(PathBuf::as_path))
        .collect();
    let candidates = programs.iter().map(PathBuf::as_path).chain(stated);
    let located = locate(module, candidates, cache, progress)?;
    for warning in &located.warnings {
        say!("tomo: warning: {warning}");
    }
    progress.stage("inferring", groups.len() as u64);
    let mut findings = Findings::none(&located);
    let mut fitting = Vec::new();
    for &group in groups {
        match findings.add(&located.model, group) {
            Ok(()) => fitting.push(group),
            Err(error) => say!(
                "tomo: {}: {} records left out: {error}",
                located.path.display(),
                group.records.len()
            ),
        }
        progress.advance(1);
    }
    if fitting.is_empty() {
        bail!(
            "{}: none of its records can be used",
            located.path.display()
        );
    }
    Ok((Observed { located, findings }, fitting))
}

/// Says of records that not all processes contributed to them.
fn say_unarmed(group: &Group) {
    let live = &group.marks.live;
    let (refused, reason, errno) = live.refused;
    let name = match group.paths.first() {
        Some(path) => path.display().to_string(),
        None => hexadecimal(group.module.name()),
    };
    if refused > 0 {
        let reason = Reason::from_number(reason);
        let all = Reason::processes(reason, live.armed, refused);
        let reason = reason.map_or("unknown reason", Reason::words);
        let system = match i32::try_from(errno) {
            Ok(number) if number > 0 => format!(" ({})", std::io::Error::from_raw_os_error(number)),
            _ => String::new(),
        };
        say!(
            "tomo: {name}: not observed in {refused} of {all} processes of a run: {reason}{system}"
        );
    } else if live.armed == 0 {
        say!("tomo: {name}: no process has been observed so far");
    }
}
