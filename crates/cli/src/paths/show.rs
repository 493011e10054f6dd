//! Earlier runs put together, without running anything.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail, ensure};
use serde::Deserialize;
use tomo_export::{Extent, Followed, Located, locate, merge_paths};
use tomo_program::Cache;
use tomo_wire::paths::Paths;

use super::counted;
use crate::observe::Store;
use crate::session::bytes;

/// What is read of the description of a run (schema tomo.run/1).
#[derive(Deserialize)]
struct Description {
    modules: Vec<Module>,
}

#[derive(Deserialize)]
struct Module {
    path: PathBuf,
    stem: String,
}

/// What these runs of one program say together.
pub(super) fn together(runs: &[PathBuf]) -> Result<Followed> {
    let store = Store::open()?;
    let first = runs.first().context("no run")?;
    let module = module_of(first)?;
    let located = located(first, &module, &store)?;
    let graphs = located.model.graphs()?;
    let (mut all, mut lost, mut forks) = (Vec::new(), 0, 0);
    for run in runs {
        let other = module_of(run)?;
        ensure!(
            other.stem == module.stem,
            "{} is a run of another build than {}",
            run.display(),
            first.display()
        );
        let counted = counted(run, &module.stem, &graphs, Extent::All);
        let counted = counted.with_context(|| run.display().to_string())?;
        all.push(counted.counts);
        lost += counted.lost;
        forks += counted.forks;
    }
    let counts = match merge_paths(all) {
        Ok(counts) => counts,
        Err(error) => {
            let function = graphs.function(error.function());
            let title = function.map_or_else(String::new, |function| function.title());
            bail!("the runs cannot be put together: of {title} {error}");
        }
    };
    Ok(Followed {
        counts,
        located,
        module: module.stem,
        lost,
        forks,
    })
}

/// The module that a run followed.
fn module_of(run: &Path) -> Result<Module> {
    let text = bytes(&run.join("run.json"))?;
    let description: Description =
        serde_json::from_slice(&text).with_context(|| run.display().to_string())?;
    let mut modules = description.modules.into_iter();
    let is_followed = |module: &Module| run.join(format!("{}.paths", module.stem)).is_file();
    let found = modules.find(is_followed);
    found.with_context(|| format!("{} is no run of `tomo paths`", run.display()))
}

fn located(run: &Path, module: &Module, store: &Store) -> Result<Located> {
    let paths = bytes(&run.join(format!("{}.paths", module.stem)))?;
    let (header, _) = Paths::read(&paths).with_context(|| run.display().to_string())?;
    let cache = Cache::at(&store.folder);
    let place = [module.path.as_path()];
    Ok(locate(header.module, place, Some(&cache), &())?)
}
