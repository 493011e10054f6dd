//! Earlier runs put together, without running anything.

use std::path::PathBuf;

use anyhow::{Result, bail};
use tomo_export::{Extent, Followed, merge_paths};
use tomo_wire::paths::Paths;

use super::counted;
use crate::earlier::{Kind, Told};
use crate::observe::Store;

/// What runs of `tomo paths` have.
const KIND: Kind = Kind {
    command: "tomo paths",
    file: "paths",
    build: |file| Ok(Paths::read(file)?.0.module),
};

/// What these runs of one program say together, and what was not observed in them.
pub(super) fn together(folders: &[PathBuf]) -> Result<(Followed, Vec<String>)> {
    let store = Store::open()?;
    let mut runs = Told::all(folders, &KIND)?;
    let located = runs[0].located(&store)?;
    let graphs = located.model.graphs()?;
    let counted = Told::each(&mut runs, |run| {
        counted(run.folder(), run.stem(), &graphs, Extent::All)
    })?;
    let lost = counted.iter().map(|run| run.lost).sum();
    let forks = counted.iter().map(|run| run.forks).sum();
    let all: Vec<_> = counted.into_iter().map(|run| run.counts).collect();
    let counts = match merge_paths(all) {
        Ok(counts) => counts,
        Err(error) => {
            let function = graphs.function(error.function());
            let title = function.map_or_else(String::new, |function| function.title());
            bail!("the runs cannot be put together: of {title} {error}");
        }
    };
    let followed = Followed {
        counts,
        located,
        module: runs[0].stem().to_owned(),
        lost,
        forks,
    };
    Ok((followed, Told::not_observed(&runs)))
}
