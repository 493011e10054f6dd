//! Earlier runs: those of the same build, in the folder in which a command puts its runs, and those that are named to be
//! shown.

use std::cmp::Reverse;
use std::collections::{BTreeSet, HashSet};
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail, ensure};
use clap::Args;
use serde::Deserialize;
use tomo_export::{Located, locate};
use tomo_launch::Observed;
use tomo_program::path_of;
use tomo_wire::{ModuleId, Refusal, of_schema};

use crate::bar::Bar;
use crate::observe::models;
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

/// Earlier runs that are to be shown.
#[derive(Args)]
pub(crate) struct Show {
    /// Run nothing, and show what these earlier runs, whose folders RUN are, say together.
    #[arg(
        long,
        value_name = "RUN",
        num_args = 1..,
        conflicts_with_all = ["command", "module"]
    )]
    show: Vec<PathBuf>,

    /// With --show: where the module is now, if it has moved since.
    #[arg(long, value_name = "PATH", requires = "show")]
    program: Option<PathBuf>,
}

impl Show {
    /// Whether any are.
    pub(crate) fn is_asked(&self) -> bool {
        !self.show.is_empty()
    }
}

/// What is read of the description of a run (schema tomo.run/1).
#[derive(Deserialize)]
struct Description {
    #[serde(default)]
    schema: String,
    id: Option<String>,
    #[serde(default)]
    command: Vec<String>,
    modules: Vec<Module>,
}

#[derive(Deserialize)]
struct Module {
    path: String,
    stem: String,
}

/// What runs of a command have of their one module.
pub(crate) struct Kind {
    /// The command.
    pub(crate) command: &'static str,
    /// Which kind of file.
    pub(crate) file: &'static str,
    /// Which build of the module the file is about.
    pub(crate) build: fn(&[u8]) -> Result<ModuleId, Refusal>,
}

/// A run of a command that observes one module.
pub(crate) struct Told<'a> {
    folder: &'a Path,
    id: Option<String>,
    /// The command line of the program, as it is shown.
    pub(crate) shown: String,
    module: Module,
    build: ModuleId,
    /// The file that it has of its module.
    pub(crate) file: Vec<u8>,
}

impl<'a> Told<'a> {
    fn of(folder: &'a Path, kind: &Kind) -> Result<Self> {
        let foreign = || format!("{} is no run of `{}`", folder.display(), kind.command);
        let description = folder.join("run.json");
        if folder.is_dir() && !description.exists() {
            bail!("{}; a run's folder is called run-…", foreign());
        }
        let text = bytes(&description)?;
        let place = || description.display().to_string();
        let description: Description = serde_json::from_slice(&text).with_context(place)?;
        of_schema(&description.schema, "tomo.run/1").with_context(place)?;
        let file = |module: &Module| folder.join(format!("{}.{}", module.stem, kind.file));
        let mut modules = description.modules.into_iter();
        let module = modules.find(|module| file(module).is_file());
        let module = module.with_context(foreign)?;
        let path = file(&module);
        let file = bytes(&path)?;
        Ok(Self {
            folder,
            id: description.id,
            shown: description.command.join(" "),
            build: (kind.build)(&file).with_context(|| path.display().to_string())?,
            module,
            file,
        })
    }

    fn record(&self) -> PathBuf {
        self.path("record")
    }

    /// Its file of this kind.
    pub(crate) fn path(&self, kind: &str) -> PathBuf {
        self.folder.join(format!("{}.{kind}", self.stem()))
    }

    pub(crate) fn folder(&self) -> &'a Path {
        self.folder
    }

    /// What the files of its module are called.
    pub(crate) fn stem(&self) -> &str {
        &self.module.stem
    }
}

/// Runs of one build that are shown together, at least one.
pub(crate) struct Together<'a> {
    runs: Vec<Told<'a>>,
    program: Option<&'a Path>,
}

impl<'a> Together<'a> {
    /// Those that are asked for, of each of which there is a file of this kind; one that is named twice is there once. Of several
    /// those that have none, as where they were killed in their first moments, and those that are damaged are named and left out.
    pub(crate) fn of(asked: &'a Show, kind: &Kind) -> Result<Self> {
        let mut runs = sound(&asked.show, |folder| Told::of(folder, kind))?;
        let mut known = HashSet::new();
        runs.retain(|run| run.id.clone().is_none_or(|id| known.insert(id)));
        let together = Self {
            runs,
            program: asked.program.as_deref(),
        };
        for other in together.others() {
            ensure!(
                other.stem() == together.first().stem(),
                "{} is a run of another build than {}",
                other.folder.display(),
                together.first().folder.display()
            );
        }
        Ok(together)
    }

    /// The first.
    pub(crate) fn first(&self) -> &Told<'a> {
        &self.runs[0]
    }

    /// The others.
    pub(crate) fn others(&self) -> &[Told<'a>] {
        &self.runs[1..]
    }

    /// What `read` has of each of them. Those that are damaged are named and left out, unless it is one alone.
    pub(crate) fn each<T>(&mut self, read: impl Fn(&Told<'a>) -> Result<T>) -> Result<Vec<T>> {
        let all = sound(std::mem::take(&mut self.runs), |run| {
            let read = read(&run)?;
            Ok((run, read))
        })?;
        let (runs, read): (Vec<_>, Vec<T>) = all.into_iter().unzip();
        for run in &runs {
            tell_not_observed(run.folder, &run.record(), &path_of(&run.module.path));
        }
        self.runs = runs;
        Ok(read)
    }

    /// What of them was not observed, for each of which something was not.
    pub(crate) fn not_observed(&self) -> Vec<String> {
        let records = self.runs.iter().map(Told::record);
        records.filter_map(|record| not_observed(&record)).collect()
    }

    /// Their module with its model: where it is said to be, or where one of them was of it.
    pub(crate) fn located(&self) -> Result<Located> {
        let stated = self.runs.iter().map(|run| path_of(&run.module.path));
        let stated: BTreeSet<PathBuf> = stated.collect();
        let places = self.program.into_iter();
        let places = places.chain(stated.iter().map(PathBuf::as_path));
        let located = locate(self.first().build, places, models().as_ref(), &Bar::new())?;
        for warning in &located.warnings {
            say!("tomo: warning: {warning}");
        }
        Ok(located)
    }
}

/// What is made of all these, at least of one. Of several those of which it cannot be made are named and left out.
fn sound<A, B>(
    all: impl IntoIterator<Item = A, IntoIter: ExactSizeIterator>,
    make: impl Fn(A) -> Result<B>,
) -> Result<Vec<B>> {
    let all = all.into_iter();
    let is_one = all.len() == 1;
    let mut made = Vec::with_capacity(all.len());
    for one in all {
        match make(one) {
            Ok(one) => made.push(one),
            Err(error) if is_one => return Err(error),
            Err(error) => say!("tomo: left out: {error:#}"),
        }
    }
    ensure!(!made.is_empty(), "none of these is a run that can be shown");
    Ok(made)
}
