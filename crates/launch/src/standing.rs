//! Programs and libraries that are built while a command runs, as commands that test do before they test: what is observed is
//! chosen before, so nobody observes these.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use tomo_wire::{FileStamp, ModuleId};

use crate::modules::{Chosen, Observed, files_at, is_module, stamp_of};

/// What stood where it is observed before a command ran.
#[derive(Debug)]
pub struct Standing {
    places: Vec<PathBuf>,
    files: BTreeMap<PathBuf, FileStamp>,
    /// What those that are observed are called, whatever was stripped of them.
    observed: BTreeSet<Vec<u8>>,
}

impl Standing {
    /// What stands now at these places, files or folders, of which these modules are observed.
    #[must_use]
    pub fn at(places: impl IntoIterator<Item = PathBuf>, observed: &[Observed]) -> Self {
        let modules = observed.iter().map(|one| one.path.clone());
        let places = places.into_iter().chain(modules);
        let places: Vec<PathBuf> = places
            .map(|place| fs::canonicalize(&place).unwrap_or(place))
            .collect();
        let mut files: BTreeMap<PathBuf, FileStamp> = files_in(&places).collect();
        // As they were when they were chosen.
        files.extend(observed.iter().map(|one| (one.path.clone(), one.stamp)));
        Self {
            files,
            observed: observed.iter().map(|one| one.id.name().to_vec()).collect(),
            places,
        }
    }

    /// Modules that were built there since, each by one of its files; what is the same as an observed one was not.
    #[must_use]
    pub fn built_since(&self) -> Vec<PathBuf> {
        let is_new = |(path, stamp): &(PathBuf, FileStamp)| self.files.get(path) != Some(stamp);
        let mut known = self.observed.clone();
        let new = files_in(&self.places).filter(is_new);
        let mut paths: Vec<PathBuf> = new.map(|(path, _)| path).collect();
        paths.sort_by_key(|path| (path.components().count(), path.clone()));
        paths.retain(|path| {
            let id = identity_of(path);
            id.is_some_and(|id| known.insert(id.name().to_vec()))
        });
        paths
    }
}

fn files_in(places: &[PathBuf]) -> impl Iterator<Item = (PathBuf, FileStamp)> {
    let all = places.iter().flat_map(|place| files_at(place));
    all.filter_map(|path| {
        let found = fs::metadata(&path).ok().filter(fs::Metadata::is_file)?;
        Some((path, stamp_of(&found)))
    })
}

fn identity_of(path: &Path) -> Option<ModuleId> {
    let module = Chosen {
        path: path.into(),
        late: true,
        placed: None,
    };
    let found = is_module(path).then(|| Observed::of(&module).ok())?;
    found.map(|found| found.id)
}
