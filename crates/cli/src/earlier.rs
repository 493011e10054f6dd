//! Earlier runs: those of the same build, in the folder in which a command puts its runs, and those that are named to be
//! shown.

use std::cmp::Reverse;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail, ensure};
use serde::Deserialize;
use tomo_export::{Located, locate};
use tomo_launch::Observed;
use tomo_program::{Cache, path_of};
use tomo_wire::{ModuleId, of_schema};

use crate::observe::Store;
use crate::session::{bytes, not_observed, tell_not_observed};

/// The runs in `output` that have a file of this kind of `module`, the newest first. Runs that are made at the same
/// second are in the order of their names.
pub(crate) fn runs(output: &Path, module: &Observed, kind: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(output).into_iter().flatten().flatten();
    let mut runs: Vec<(Reverse<u64>, PathBuf)> = entries
        .filter_map(|entry| {
            let name = entry.file_name();
            let seconds = name.to_str()?.strip_prefix("run-")?.split('-').next()?;
            let path = entry.path();
            let has_it = path.join(format!("{}.{kind}", module.stem)).is_file();
            (has_it && path.join("slabs").is_file())
                .then_some((Reverse(seconds.parse().ok()?), path))
        })
        .collect();
    runs.sort();
    runs.into_iter().map(|(_, path)| path).collect()
}

/// What is read of the description of a run (schema tomo.run/1).
#[derive(Deserialize)]
struct Description {
    #[serde(default)]
    schema: String,
    #[serde(default)]
    command: Vec<String>,
    modules: Vec<Module>,
}

#[derive(Deserialize)]
struct Module {
    path: String,
    stem: String,
}

/// A run of a command that observes one module.
pub(crate) struct Told<'a> {
    folder: &'a Path,
    /// The command line of the program, as it is shown.
    pub(crate) shown: String,
    module: Module,
    /// Which kind of file it has of its module.
    kind: &'static str,
}

impl<'a> Told<'a> {
    /// These runs of one build, of each of which `command` has left a file of this kind. Of several those that have none, as
    /// where they were killed in their first moments, are named and left out.
    pub(crate) fn all(
        folders: &'a [PathBuf],
        kind: &'static str,
        command: &str,
    ) -> Result<Vec<Self>> {
        let mut runs = Vec::with_capacity(folders.len());
        for folder in folders {
            match Self::of(folder, kind, command) {
                Ok(run) => {
                    tell_not_observed(folder, &run.record(), &path_of(&run.module.path));
                    runs.push(run);
                }
                Err(error) if folders.len() > 1 => say!("tomo: left out: {error:#}"),
                Err(error) => return Err(error),
            }
        }
        if let [first, others @ ..] = runs.as_slice() {
            for other in others {
                ensure!(
                    other.stem() == first.stem(),
                    "{} is a run of another build than {}",
                    other.folder.display(),
                    first.folder.display()
                );
            }
        }
        Ok(runs)
    }

    fn of(folder: &'a Path, kind: &'static str, command: &str) -> Result<Self> {
        let foreign = || format!("{} is no run of `{command}`", folder.display());
        let description = folder.join("run.json");
        if folder.is_dir() && !description.exists() {
            bail!("{}; a run's folder is called run-…", foreign());
        }
        let text = bytes(&description)?;
        let place = || description.display().to_string();
        let description: Description = serde_json::from_slice(&text).with_context(place)?;
        of_schema(&description.schema, "tomo.run/1").with_context(place)?;
        let mut modules = description.modules.into_iter();
        let is_there = |module: &Module| folder.join(format!("{}.{kind}", module.stem)).is_file();
        Ok(Self {
            folder,
            shown: description.command.join(" "),
            module: modules.find(is_there).with_context(foreign)?,
            kind,
        })
    }

    fn record(&self) -> PathBuf {
        self.folder.join(format!("{}.record", self.stem()))
    }

    /// What of it was not observed.
    pub(crate) fn not_observed(&self) -> Option<String> {
        not_observed(&self.record())
    }

    pub(crate) fn folder(&self) -> &'a Path {
        self.folder
    }

    /// What the files of its module are called.
    pub(crate) fn stem(&self) -> &str {
        &self.module.stem
    }

    /// The file that it has of its module.
    pub(crate) fn file(&self) -> Result<Vec<u8>> {
        bytes(&self.folder.join(format!("{}.{}", self.stem(), self.kind)))
    }

    /// Its module, as the file says that it is called; with its model from the store.
    pub(crate) fn located(&self, id: ModuleId, store: &Store) -> Result<Located> {
        let cache = Cache::at(&store.folder);
        let path = path_of(&self.module.path);
        Ok(locate(id, [path.as_path()], Some(&cache), &())?)
    }
}
