//! Earlier runs put together, without running anything.

use anyhow::{Result, bail};
use tomo_export::{Extent, Followed, merge_paths};
use tomo_wire::paths::Paths;

use super::counted;
use crate::earlier::{Kind, Show, Together};

/// What runs of `tomo paths` have.
const KIND: Kind = Kind {
    command: "tomo paths",
    file: "paths",
    build: |file| Ok(Paths::read(file)?.0.module),
};

/// What these runs of one program say together, and what was not observed in them.
pub(super) fn together(asked: &Show) -> Result<(Followed, Vec<String>)> {
    let mut runs = Together::of(asked, &KIND)?;
    let located = runs.located()?;
    let graphs = located.model.graphs()?;
    let counted = runs.each(|run| counted(run.folder(), run.stem(), &graphs, Extent::All))?;
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
        module: runs.first().stem().to_owned(),
        lost,
        forks,
    };
    Ok((followed, runs.not_observed()))
}
