//! Which paths of a program a fleet observes: a selection as `tomo paths --select` takes it, in the numbers of the file of all
//! paths.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::{Result, ensure};
use tomo_export::{Extent, Located, path_names};
use tomo_launch::{ChosenPaths, Observed};
use tomo_protocol::Units;
use tomo_weave::{NamedPath, PathsOf};
use tomo_wire::paths::{Function, Rows};

use super::select::{self, Earlier, Select};
use super::{OUTPUT, read};
use crate::earlier;
use crate::observe::Store;

/// The units that are selected, by these runs if any are named.
pub(crate) fn units_of(
    (select, of): (&Select, &[PathBuf]),
    module: &Observed,
    located: &Located,
    rows: &Rows<'_>,
    store: &Store,
) -> Result<Units> {
    let graphs = located.model.graphs()?;
    let output = Path::new(OUTPUT);
    let earlier = Earlier {
        module,
        named: of,
        found: earlier::runs(output, module, "paths"),
        output,
    };
    let read = |run: &Path| read(run, module, store, Extent::All);
    let chosen = select::chosen(select, None, &graphs, &earlier, &read)?;
    let mut units = Vec::new();
    let mut left = match &chosen {
        ChosenPaths::Some(paths) => paths.keys().copied().collect(),
        _ => BTreeSet::new(),
    };
    for (at, row) in rows.functions.iter().enumerate() {
        let of_function = rows.units_of(at);
        left.remove(&row.entry.get());
        let Some(paths) = asked(&chosen, row) else {
            continue;
        };
        let names = path_names(&graphs, rows, row, 0..row.numbers.get()).unwrap_or_default();
        let names = names.into_iter().map(|one| NamedPath {
            blocks: one.blocks,
            end: one.end,
        });
        let mut found = BTreeSet::new();
        for (unit, name) in of_function.zip(names) {
            let is_named = paths.paths.contains(&name);
            if is_named != paths.others {
                units.push(unit);
            }
            if is_named {
                found.insert(name);
            }
        }
        ensure!(
            paths.others || found.len() == paths.paths.len(),
            "{} of the selected paths of the function at {:#x} are none where all its paths are counted, as a fleet does",
            paths.paths.len() - found.len(),
            row.entry.get()
        );
    }
    if let Some(entry) = left.first() {
        anyhow::bail!("the paths of the function at {entry:#x} cannot be counted");
    }
    Ok(Units::of(units))
}

/// The paths that are meant of a function, if any are.
fn asked(chosen: &ChosenPaths, row: &Function) -> Option<PathsOf> {
    let entry = row.entry.get();
    let all = PathsOf {
        others: true,
        ..PathsOf::default()
    };
    match chosen {
        ChosenPaths::All => Some(all),
        ChosenPaths::Of(entries) => entries.contains(&entry).then_some(all),
        ChosenPaths::Some(paths) => paths.get(&entry).cloned(),
        ChosenPaths::AllBut(paths) => Some(paths.get(&entry).cloned().unwrap_or(all)),
        ChosenPaths::Drawn(..) => None,
    }
}
