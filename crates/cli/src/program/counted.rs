//! What campaigns need that count: over paths, and over chains of calls.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs;
use std::path::PathBuf;

use anyhow::{Context as _, Result, ensure};
use tomo_export::chains::Calls;
use tomo_launch::ChosenPaths;
use tomo_protocol::{CHAINS, Client, Name, NewModule, PATHS, Strategy, Units};
use tomo_wire::chains::Functions;
use tomo_wire::paths::Paths;

use super::{add_plan, executable, of_predicates};
use crate::bar::Bar;
use crate::observe::Store;
use crate::paths::{Select, units_of};
use crate::session::located;

/// Chains that are enumerated at most where none are named.
const MOST_CHAINS: u64 = 100_000;

/// Sees to it that the collector knows the executable and all its paths; gives what a campaign asks for that counts them, or
/// those of them that are selected.
pub(crate) fn add_paths(
    client: &Client,
    program: &OsString,
    clusters: bool,
    select: Option<(&Select, &[PathBuf])>,
) -> Result<NewModule> {
    let (store, bar) = (Store::open()?, Bar::new());
    let module = executable(program)?;
    let (carried, file) = store.images.following(&module, &ChosenPaths::All, &bar)?;
    let (name, bytes) = (Name(carried.plan), fs::read(file)?);
    add_plan(client, (&module, name, &bytes), (&store, &bar))?;
    let (_, rows) = Paths::read(&bytes).map_err(anyhow::Error::msg)?;
    let only = match select {
        Some(select) => {
            let located = located(&module, &store, &bar)?;
            Some(units_of(select, &module, &located, &rows, &store)?)
        }
        None => None,
    };
    let of_function = |at: usize| {
        let is_meant = |unit: &u32| only.as_ref().is_none_or(|only| only.has(*unit));
        Units::of(rows.units_of(at).filter(is_meant))
    };
    let each = 0..if clusters { rows.functions.len() } else { 0 };
    let clusters = each.map(of_function).filter(|one| !one.is_empty());
    let clusters = clusters.collect();
    bar.finish();
    Ok(NewModule {
        level: PATHS.into(),
        only,
        ..of_predicates(&module, name, clusters)
    })
}

/// The same for the functions whose chains of calls can be observed, with the clusters or events that the strategy needs.
pub(crate) fn add_chains(
    client: &Client,
    program: &OsString,
    strategy: Strategy,
    runs: &[PathBuf],
) -> Result<NewModule> {
    let (store, bar) = (Store::open()?, Bar::new());
    let module = executable(program)?;
    let (carried, file) = store.images.noting(&module, None, 0, &bar)?;
    let (name, bytes) = (Name(carried.plan), fs::read(file)?);
    let model = add_plan(client, (&module, name, &bytes), (&store, &bar))?;
    let (_, rows) = Functions::read(&bytes).map_err(anyhow::Error::msg)?;
    let units: BTreeMap<u64, u32> = rows.iter().map(|row| row.entry.get()).zip(0..).collect();
    let graphs = model.graphs()?;
    let calls = Calls::of(&graphs)?;
    let (mut clusters, mut chains) = (Vec::new(), Vec::new());
    if strategy.is_for_clusters() {
        let known = |set: Vec<u64>| {
            set.iter()
                .filter_map(|entry| units.get(entry).copied())
                .collect()
        };
        clusters = each_once(calls.clusters()?.into_iter().map(known));
    } else if strategy.is_for_events() {
        chains = whole(&events(&calls, runs)?, &units)?;
    }
    bar.finish();
    Ok(NewModule {
        level: CHAINS.into(),
        events: chains,
        ..of_predicates(&module, name, clusters)
    })
}

/// The chains of earlier runs that are complete, or if none are named, all that direct calls allow.
fn events(calls: &Calls<'_>, runs: &[PathBuf]) -> Result<Vec<Vec<u64>>> {
    if runs.is_empty() {
        let possible = calls.possible(MOST_CHAINS)?;
        return possible.with_context(|| {
            format!(
                "the program's direct calls allow more than {MOST_CHAINS} chains; name those of earlier runs with --events, or choose a --strategy for clusters"
            )
        });
    }
    let mut chains = Vec::new();
    for file in runs {
        let place = || file.display().to_string();
        let document = fs::read(file).with_context(place)?;
        chains.extend(calls.complete(&document).with_context(place)?);
    }
    Ok(chains)
}

/// Those of these sets of functions all of which can be observed, each once.
fn whole(sets: &[Vec<u64>], units: &BTreeMap<u64, u32>) -> Result<Vec<Units>> {
    let whole = sets.iter().filter_map(|set| {
        let units = set.iter().map(|entry| units.get(entry).copied());
        units.collect::<Option<BTreeSet<u32>>>()
    });
    let whole: Vec<BTreeSet<u32>> = whole.collect();
    let (count, left) = (sets.len(), sets.len() - whole.len());
    if left > 0 {
        say!(
            "tomo: {left} of {count} chains have a function that cannot be observed: they are left out"
        );
    }
    ensure!(
        !whole.is_empty(),
        "there are no chains that can be observed as a whole"
    );
    Ok(each_once(whole))
}

fn each_once(sets: impl IntoIterator<Item = BTreeSet<u32>>) -> Vec<Units> {
    let sets: BTreeSet<BTreeSet<u32>> = sets.into_iter().filter(|set| !set.is_empty()).collect();
    sets.into_iter().map(Units::of).collect()
}
