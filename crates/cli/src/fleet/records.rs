//! What a fleet has seen, as a folder of records that reports read like any other.
//!
//! Two things are different from records of runs. What no variant has carried yet, in a run that was
//! observed, has no probe in the plan that is written here: nothing is known of it. And each instance
//! carried a part of the probes only, so that a probe was not hit in one run while what it observes ran in
//! another; the folder says so (`by_parts`), and then nothing is inferred from silence.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use serde_json::json;
use tomo_export::{Located, locate};
use tomo_program::{Headers, Model};
use tomo_protocol::{Campaign, Client, ModuleOf, Profile, Program, paths};
use tomo_wire::plan::{Entry, Plan, PlanView, Tactic};
use tomo_wire::record::{LIVE, Live, MARKS, Record};
use tomo_wire::{ModuleId, Refusal};
use zerocopy::IntoBytes as _;

use crate::observe::models;

/// A folder of records, and where the files of the modules are.
pub(super) struct Records {
    pub(super) folder: PathBuf,
    pub(super) programs: Vec<PathBuf>,
}

/// Downloads what belongs to the modules and writes the records.
pub(super) fn write(
    client: &Client,
    campaign: &Campaign,
    profile: &Profile,
    folder: &Path,
) -> Result<Records> {
    let records = folder.join("records");
    fs::create_dir(&records)?;
    let seen: BTreeMap<u32, ()> = profile.seen.iter().map(|seen| (seen.unit, ())).collect();
    let watched = watched(campaign, profile);
    let (mut first, mut programs, mut modules) = (0, Vec::new(), Vec::new());
    for module in &campaign.modules {
        let path = download(client, module, folder).with_context(|| module.stem.clone())?;
        let plan = client.get_bytes(&paths::of_plan(module.plan))?;
        let units = Units {
            seen: &|probe| seen.contains_key(&(first + probe)),
            watched: &|probe| watched.get((first + probe) as usize) == Some(&true),
        };
        let written = of_module(&plan, &units, profile, campaign.created)?;
        fs::write(records.join(format!("{}.plan", module.stem)), written.plan)?;
        fs::write(
            records.join(format!("{}.record", module.stem)),
            written.record,
        )?;
        modules.push(json!({ "path": path, "stem": module.stem }));
        programs.push(path);
        first += module.probes;
    }
    // Where all variants carry everything, every run saw all that it could.
    let by_parts = campaign
        .variants
        .iter()
        .any(|variant| variant.units.len() < u64::from(campaign.units));
    let document = json!({ "schema": "tomo.pool/1", "by_parts": by_parts, "modules": modules });
    fs::write(records.join("pool.json"), format!("{document:#}\n"))?;
    Ok(Records {
        folder: records,
        programs,
    })
}

/// Per unit, whether it was carried in a run that was observed.
pub(super) fn watched(campaign: &Campaign, profile: &Profile) -> Vec<bool> {
    let mut watched = vec![false; campaign.units as usize];
    for of in &profile.variants {
        let observed = of.totals.runs > of.totals.unobserved;
        let Some(variant) = campaign
            .variants
            .get(of.variant as usize)
            .filter(|_| observed)
        else {
            continue;
        };
        for unit in variant.units.iter() {
            if let Some(watched) = watched.get_mut(unit as usize) {
                *watched = true;
            }
        }
    }
    watched
}

/// The module's file, with its model in the cache so that it need not be analysed again.
fn download(client: &Client, module: &ModuleOf, folder: &Path) -> Result<PathBuf> {
    let part = |path| paths::of_program(path, &module.stem);
    let program: Program = client.get(&part(paths::PROGRAM))?;
    let bytes = client.get_bytes(&part(paths::FILE))?;
    let own = folder.join(&module.stem);
    fs::create_dir(&own)?;
    // The name is for people to see, and must not lead anywhere else.
    let name = Path::new(&program.name).file_name();
    let path = own.join(name.unwrap_or("module".as_ref()));
    fs::write(&path, &bytes)?;
    let file = fs::File::open(&path)?;
    let identity = Headers::read(&file, bytes.len() as u64)?.and_then(|headers| headers.identity());
    let cache = models();
    if let (Some(identity), Some(cache)) = (identity, cache)
        && !matches!(cache.find(&identity), Ok(Some(_)))
    {
        let model = Model::from_bytes(client.get_bytes(&part(paths::MODEL))?);
        // One of another version is not used; then the file is analysed.
        if let Some(model) = model.ok().filter(|model| model.verify().is_ok()) {
            cache.keep(&identity, &model)?;
        }
    }
    Ok(path)
}

/// A module as an observer of it needs it, downloaded.
pub(super) struct Planned {
    /// Its plan.
    pub(super) plan: Vec<u8>,
    /// Its file.
    pub(super) path: PathBuf,
    /// The file with its model.
    pub(super) located: Located,
}

/// Downloads the module and its plan, which says by `is_for` what module it is for.
pub(super) fn planned(
    client: &Client,
    module: &ModuleOf,
    folder: &Path,
    is_for: impl FnOnce(&[u8]) -> Result<ModuleId, Refusal>,
) -> Result<Planned> {
    let path = download(client, module, folder)?;
    let plan = client.get_bytes(&paths::of_plan(module.plan))?;
    let id = is_for(&plan).map_err(anyhow::Error::msg)?;
    let cache = models();
    let located = locate(id, [path.as_path()], cache.as_ref(), &())?;
    Ok(Planned {
        plan,
        path,
        located,
    })
}

/// What is known of the probes of one module.
struct Units<'u> {
    seen: &'u dyn Fn(u32) -> bool,
    watched: &'u dyn Fn(u32) -> bool,
}

struct Written {
    plan: Vec<u8>,
    record: Vec<u8>,
}

fn of_module(plan: &[u8], units: &Units<'_>, profile: &Profile, created: i64) -> Result<Written> {
    let view = PlanView::read(plan).map_err(anyhow::Error::msg)?;
    let (mut with, mut without, mut marks) = (Vec::new(), Vec::new(), Vec::new());
    for (probe, unit) in (0..).zip(view.units) {
        let is_probe = probe < view.header.probes.get();
        let seen = is_probe && (units.seen)(probe);
        if is_probe && (seen || (units.watched)(probe)) {
            with.push(*unit);
            marks.push(u8::from(seen));
        } else {
            without.push(Entry {
                tactic: if is_probe {
                    (Tactic::NoPlace as u32).into()
                } else {
                    unit.tactic
                },
                ..*unit
            });
        }
    }
    let all = [with, without].concat();
    let header = Plan::of(
        view.header.module,
        view.level,
        view.header.analysis.get(),
        &all,
    );
    let plan = [header.as_bytes(), all.as_bytes()].concat();
    let probes = header.probes.get();
    let record = Record::of(view.header.module, header.name(), probes, [0; 16], created);
    let mut bytes = record.sealed().to_vec();
    bytes.resize(record.length() as usize, 0);
    let totals = &profile.totals;
    let whole = totals.cut == 0 && totals.running == 0;
    let live = Live {
        armed: (totals.runs - totals.unobserved).into(),
        outcome: (if whole { 1 } else { 2 }).into(),
        ..Live::default()
    };
    bytes[LIVE as usize..][..size_of::<Live>()].copy_from_slice(live.as_bytes());
    bytes[MARKS as usize..][..marks.len()].copy_from_slice(&marks);
    Ok(Written {
        plan,
        record: bytes,
    })
}
