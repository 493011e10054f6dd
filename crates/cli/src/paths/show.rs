//! Earlier runs put together, without running anything.

use std::path::PathBuf;

use anyhow::{Context as _, Result, bail};
use tomo_export::{Extent, Followed, merge_paths};
use tomo_wire::paths::Paths;

use super::counted;
use crate::earlier::Told;
use crate::observe::Store;

/// What these runs of one program say together, and what was not observed in them.
pub(super) fn together(folders: &[PathBuf]) -> Result<(Followed, Vec<String>)> {
    let store = Store::open()?;
    let runs = Told::all(folders, "paths", "tomo paths")?;
    let first = runs
        .first()
        .context("none of these is a run that can be shown")?;
    let file = first.file()?;
    let (header, _) = Paths::read(&file).with_context(|| first.folder().display().to_string())?;
    let located = first.located(header.module, &store)?;
    let graphs = located.model.graphs()?;
    let (mut all, mut lost, mut forks) = (Vec::new(), 0, 0);
    for run in &runs {
        let counted = counted(run.folder(), run.stem(), &graphs, Extent::All);
        let counted = counted.with_context(|| run.folder().display().to_string())?;
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
    let missed = runs.iter().filter_map(Told::not_observed).collect();
    let followed = Followed {
        counts,
        located,
        module: first.stem().to_owned(),
        lost,
        forks,
    };
    Ok((followed, missed))
}
