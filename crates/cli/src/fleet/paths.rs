//! What a fleet has seen of paths: how often each ran, in how many instances, and how long the rest was watched.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use tomo_export::{
    Extent, Followed, PathName, path_counts, path_names, paths_document, write_paths_table,
};
use tomo_program::FunctionView;
use tomo_protocol::{Campaign, Client, ModuleOf, Profile, Seen as SeenUnit};
use tomo_wire::paths::Paths;

use super::records::{Planned, planned, watched};

/// Hottest paths that are shown.
const TOP: usize = 20;

/// The paths of a fleet.
pub(super) struct Seen<'p> {
    profile: &'p Profile,
    followed: Followed,
    /// The file of all paths.
    plan: Vec<u8>,
    /// By function, where its units end.
    ends: Vec<u32>,
    /// By entry of a function, how many of its paths were watched.
    watched: BTreeMap<u64, u64>,
}

/// The paths of this module, with the counts of all instances. What no observed run carried is left out.
pub(super) fn seen<'p>(
    client: &Client,
    campaign: &Campaign,
    profile: &'p Profile,
    module: &ModuleOf,
    folder: &Path,
) -> Result<Seen<'p>> {
    let Planned { plan, located, .. } = planned(client, module, folder, |plan| {
        Ok(Paths::read(plan)?.0.module)
    })?;
    let (header, rows) = Paths::read(&plan).map_err(anyhow::Error::msg)?;
    let functions = 0..rows.functions.len();
    let ends: Vec<u32> = functions.map(|at| rows.units_of(at).end).collect();
    let values = values(&ends, header.counters.get(), &profile.seen)?;
    let mut counts = path_counts(&located.model.graphs()?, &rows, &values, Extent::All);
    let carried = watched(campaign, profile);
    let of_function = |at: usize| {
        let units = rows.units_of(at);
        let carried = units.filter(|unit| carried.get(*unit as usize) == Some(&true));
        (rows.functions[at].entry.get(), carried.count() as u64)
    };
    let watched: BTreeMap<u64, u64> = (0..rows.functions.len())
        .map(of_function)
        .filter(|(_, count)| *count > 0)
        .collect();
    let graphs = located.model.graphs()?;
    counts.functions.retain_mut(|function| {
        // Instances do not tell how many paths they started.
        function.started = None;
        let view = graphs.function(function.function);
        view.is_some_and(|view| watched.contains_key(&view.entry().0))
    });
    Ok(Seen {
        profile,
        followed: Followed {
            counts,
            located,
            module: module.stem.clone(),
            lost: 0,
            forks: 0,
        },
        plan,
        ends,
        watched,
    })
}

/// The value of each counter. Before that of a unit are those of all units before, and one for each function up to its own
/// that counts starts.
fn values(ends: &[u32], counters: u32, seen: &[SeenUnit]) -> Result<Vec<u64>> {
    let mut values = vec![0; counters as usize];
    let mut too_many = 0;
    for one in seen {
        let at = function_of(ends, one.unit).map(|function| one.unit as usize + function + 1);
        let place = at.and_then(|at| values.get_mut(at));
        match (place, one.count) {
            (Some(place), Some(count)) => *place = count,
            _ => too_many += 1,
        }
    }
    ensure!(
        too_many == 0,
        "the counts of {too_many} paths add up to more than 64 bits hold: some instance reports numbers that cannot be"
    );
    Ok(values)
}

/// Which function a unit belongs to, by where the units of each end.
fn function_of(ends: &[u32], unit: u32) -> Option<usize> {
    let at = ends.partition_point(|end| *end <= unit);
    (at < ends.len()).then_some(at)
}

impl Seen<'_> {
    /// The hottest paths, with the source of their functions.
    pub(super) fn text(&self) -> Result<String> {
        let mut text = Vec::new();
        let all = |_: &FunctionView<'_>| true;
        write_paths_table(&mut text, &self.followed, &all, TOP, &crate::saying::name)?;
        Ok(String::from_utf8(text)?)
    }

    /// The document of paths (schema tomo.paths/1), with what a fleet knows besides: of each path how many instances have
    /// seen it and since when; of each function how many of its paths were watched, and for how long those that never
    /// ran.
    pub(super) fn json(&self) -> Result<String> {
        let mut document = paths_document(&self.followed, &|_| true)?;
        let (by_name, unseen) = (self.by_name()?, self.unseen()?);
        let functions = document["functions"].as_array_mut();
        for function in functions.into_iter().flatten() {
            let entry = address(&function["address"]).context("an address")?;
            function["watched"] = json!(self.watched.get(&entry));
            function["never_seen"] = json!(unseen.get(&entry).unwrap_or(&Vec::new()));
            let paths = function["paths"].as_array_mut();
            for path in paths.into_iter().flatten() {
                let blocks = path["blocks"].as_array().into_iter().flatten();
                let name = PathName {
                    blocks: blocks.filter_map(address).collect(),
                    end: address(&path["end"]),
                };
                if let Some((instances, first)) = by_name.get(&(entry, name)) {
                    path["instances"] = json!(instances);
                    path["first"] = json!(first);
                }
            }
        }
        let totals = &self.profile.totals;
        document["fleet"] = json!({
            "campaign": self.profile.campaign,
            "instances": self.profile.instances,
            "runs": totals.runs,
            "duration": totals.duration,
            "paths": self.profile.units,
            "seen": self.profile.seen.len(),
        });
        Ok(format!("{document:#}\n"))
    }

    /// For each path that was seen, by how many instances it was, and when first. Where several units have one name, at
    /// least by as many as saw one of them.
    fn by_name(&self) -> Result<HashMap<(u64, PathName), (u32, i64)>> {
        let (_, rows) = Paths::read(&self.plan).map_err(anyhow::Error::msg)?;
        let graphs = self.followed.located.model.graphs()?;
        let mut of_function: BTreeMap<usize, Vec<&SeenUnit>> = BTreeMap::new();
        for one in &self.profile.seen {
            if let Some(at) = function_of(&self.ends, one.unit) {
                of_function.entry(at).or_default().push(one);
            }
        }
        let mut all: HashMap<(u64, PathName), (u32, i64)> = HashMap::new();
        for (at, seen) in of_function {
            let (row, first) = (&rows.functions[at], rows.units_of(at).start);
            let numbers = seen.iter().map(|one| one.unit - first);
            let names = path_names(&graphs, &rows, row, numbers).unwrap_or_default();
            for (name, one) in names.into_iter().zip(seen) {
                let known = all.entry((row.entry.get(), name));
                let known = known.or_insert((one.instances, one.first));
                *known = (known.0.max(one.instances), known.1.min(one.first));
            }
        }
        Ok(all)
    }

    /// For each function the paths that were watched and never seen, in groups that were watched equally.
    fn unseen(&self) -> Result<BTreeMap<u64, Vec<Value>>> {
        let (_, rows) = Paths::read(&self.plan).map_err(anyhow::Error::msg)?;
        let mut all: BTreeMap<u64, Vec<Value>> = BTreeMap::new();
        for group in self
            .profile
            .unseen
            .iter()
            .filter(|group| group.instances > 0)
        {
            let mut counts: BTreeMap<usize, u64> = BTreeMap::new();
            for &(first, last) in group.units.ranges() {
                let mut unit = first;
                while let Some(at) = function_of(&self.ends, unit).filter(|_| unit <= last) {
                    let end = self.ends[at].min(last.saturating_add(1));
                    *counts.entry(at).or_default() += u64::from(end - unit);
                    unit = end;
                }
            }
            for (at, paths) in counts {
                let function = all.entry(rows.functions[at].entry.get()).or_default();
                let (instances, duration) = (group.instances, group.duration);
                function
                    .push(json!({ "paths": paths, "instances": instances, "duration": duration }));
            }
        }
        Ok(all)
    }
}

fn address(text: &Value) -> Option<u64> {
    u64::from_str_radix(text.as_str()?.strip_prefix("0x")?, 16).ok()
}
