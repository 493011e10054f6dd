//! The variant's images are made from an assignment: each module found among those of the program, woven whole as
//! its plan asks (or taken from the cache), compared with the collector's plan, and written with the assigned
//! probes only, less those that the fleet has seen.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::Path;

use tomo_launch::{
    Choice, ImageError, Images, Master, Observed, Target, VariantError, masters, modules,
};
use tomo_protocol::{Assignment, Units};

use crate::assigned::{self, NotAccepted};
use crate::known::{Common, Known, KnownModule, image_path, units_name};
use crate::state::{State, StateError, numbered};

/// Why there are no images of a variant.
#[derive(Debug, thiserror::Error)]
pub enum BakeError {
    /// The assignment is not for this program.
    #[error(transparent)]
    NotAccepted(#[from] NotAccepted),
    /// The loader cannot be asked for the program's modules.
    #[error("asking the loader: {0}")]
    Loader(io::Error),
    /// A module cannot be woven.
    #[error(transparent)]
    Image(#[from] ImageError),
    /// An image cannot be written.
    #[error(transparent)]
    Variant(#[from] VariantError),
    /// The state cannot be written.
    #[error(transparent)]
    State(#[from] StateError),
}

/// Sees to it that `state` has the images of this assignment for `target`; what was made is written down, for the runs
/// to come.
///
/// # Errors
/// Where the assignment is not for this program, or an image cannot be made.
pub(crate) fn bake(
    state: &State,
    images: &Images,
    target: &Target,
    assignment: &Assignment,
) -> Result<Known, BakeError> {
    let sound = assigned::check(assignment)?;
    let _lock = state.lock("bake")?;
    if let Some(known) = Known::read(state)
        && is_made(state, &known, assignment)
    {
        return Ok(known);
    }
    let seen = assigned::units_of(&assignment.news, sound.units);
    let seen = seen.ok_or(NotAccepted::Hostile(
        "its news name units that there are not",
    ))?;
    let found = modules(target, &Choice::All).map_err(BakeError::Loader)?;
    let observed = found.chosen.iter().filter_map(|one| Observed::of(one).ok());
    let by_stem: BTreeMap<String, Observed> = observed.map(|one| (one.stem.clone(), one)).collect();
    let wanted = assignment.modules.iter().map(|module| {
        let found = by_stem.get(&module.stem);
        found.ok_or_else(|| NotAccepted::OtherBuild(module.stem.clone()))
    });
    let wanted: Vec<&Observed> = wanted.collect::<Result<_, _>>()?;
    let pairs = wanted.iter().copied().zip(sound.how.iter().copied());
    let masters = masters(pairs, images, &())?;
    for (module, master) in assignment.modules.iter().zip(&masters) {
        if master.plan() != module.plan.0 || master.probes() != module.probes {
            return Err(NotAccepted::OtherVersion(module.stem.clone()).into());
        }
    }
    let known = write(state, assignment, &masters, seen, found.sanitized)?;
    known.write(state)?;
    hear(state, &known, &assignment.news.since().to_string())?;
    Ok(known)
}

/// Whether the images of just this assignment are there.
fn is_made(state: &State, known: &Known, assignment: &Assignment) -> bool {
    let same = known.campaign == assignment.campaign
        && known.plans == assignment.plans
        && known.variant == assignment.variant
        && known.units == units_name(&assignment.units);
    same && known.carried(state).len() == assignment.modules.len()
}

fn write(
    state: &State,
    assignment: &Assignment,
    masters: &[Master],
    seen: &Units,
    sanitized: bool,
) -> Result<Known, BakeError> {
    let mut first = 0u32;
    let mut made = Vec::new();
    for (module, master) in assignment.modules.iter().zip(masters) {
        let (campaign, variant) = (assignment.campaign, assignment.variant);
        let name = format!("{}-{campaign}-{variant}", module.stem);
        let known = KnownModule {
            stem: module.stem.clone(),
            plan: module.plan,
            probes: module.probes,
            image: format!("{name}.image"),
            disposals: format!("{name}.disposals"),
        };
        let wanted = |probe: u32| {
            let unit = first + probe;
            assignment.units.has(unit) && !seen.has(unit)
        };
        copy(
            master.disposals_path(),
            &image_path(state, &known.disposals),
        )?;
        master.write(&image_path(state, &known.image), wanted)?;
        made.push(known);
        first += module.probes;
    }
    let common = Common {
        campaign: assignment.campaign,
        plans: assignment.plans,
        variant: assignment.variant,
        units: units_name(&assignment.units),
        policy: assignment.policy,
        interval_ms: assignment.interval_ms,
    };
    Ok(Known::new(common, made, sanitized))
}

/// The cache may be emptied at any time, so what is needed while programs run is kept beside their images: by
/// another name of the same file, which nobody ever writes to, where that can be.
fn copy(from: &Path, to: &Path) -> Result<(), BakeError> {
    let failed = |error| BakeError::State(StateError::Io(to.into(), error));
    if fs::hard_link(from, to).is_ok() {
        return Ok(());
    }
    let bytes = fs::read(from).map_err(failed)?;
    crate::state::replace(to, &bytes).map_err(failed)
}

/// Writes down up to where the images of `known` are without what the fleet has seen.
pub(crate) fn hear(state: &State, known: &Known, since: &str) -> Result<(), StateError> {
    let path = state.file("heard");
    let text = format!("{} {} {since}", known.campaign, known.variant);
    crate::state::replace(&path, text.as_bytes()).map_err(|error| StateError::Io(path, error))
}

/// Up to where that is; nothing where it was written of other images.
pub(crate) fn heard(state: &State, known: &Known) -> Option<tomo_protocol::Since> {
    let text = fs::read_to_string(state.file("heard")).ok()?;
    let whose = format!("{} {} ", known.campaign, known.variant);
    text.strip_prefix(&whose)?.trim().parse().ok()
}

/// Removes the images of earlier assignments, unless there are runs that may use them. (One that begins just now and
/// knows of an earlier assignment finds no image, and is not observed.)
pub(crate) fn remove_others(state: &State) {
    let Some(known) = Known::read(state).filter(|_| numbered(&state.file("runs")).is_empty())
    else {
        return;
    };
    let used = |name: &str| {
        let mut modules = known.modules.iter();
        modules.any(|module| module.image == name || module.disposals == name)
    };
    let entries = fs::read_dir(state.file("images")).into_iter().flatten();
    for entry in entries.flatten() {
        if entry.file_name().to_str().is_none_or(|name| !used(name)) {
            let _ = fs::remove_file(entry.path());
        }
    }
}
