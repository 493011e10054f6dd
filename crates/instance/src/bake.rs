//! The variant's images are made from an assignment: each module found among those of the program, woven whole as
//! its plan asks (or taken from the cache), compared with the collector's plan, and written with the assigned
//! probes only, less those that the fleet has seen.

mod chains;
mod paths;

use std::fs;
use std::io;
use std::path::Path;

use tomo_launch::{Carried, ImageError, Images, Master, Observed, VariantError, masters};
use tomo_program::ModelError;
use tomo_protocol::{AssignedModule, Assignment, Name, Units};
use tomo_weave::Asked;
use tomo_wire::predicates::Predicates;
use tomo_wire::tally::Tally;
use zerocopy::IntoBytes as _;
use zerocopy::little_endian::U32;

use crate::assigned::{self, NotAccepted, What};
use crate::installed::Installed;
use crate::known::{Known, KnownModule, image_path, units_name};
use crate::state::{State, StateError, numbered, replace, replace_durably};
use crate::unmade;

/// Why there are no images of a variant.
#[derive(Debug, thiserror::Error)]
pub enum BakeError {
    /// The assignment is not for this program.
    #[error(transparent)]
    NotAccepted(#[from] NotAccepted),
    /// The model of a module is damaged.
    #[error(transparent)]
    Model(#[from] ModelError),
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

/// Sees to it that `state` has the images of this assignment for `program`; what was made is written down, for the runs
/// to come, or why nothing was.
///
/// # Errors
/// Where the assignment is not for this program, or an image cannot be made.
pub(crate) fn bake(
    state: &State,
    images: &Images,
    program: &Installed,
    assignment: &Assignment,
) -> Result<(), BakeError> {
    let made = bake_all(state, images, program, assignment);
    let noted = unmade::note(state, made.as_ref().err());
    made.and(noted.map_err(BakeError::from))
}

fn bake_all(
    state: &State,
    images: &Images,
    program: &Installed,
    assignment: &Assignment,
) -> Result<(), BakeError> {
    let sound = assigned::check(assignment)?;
    let _lock = state.lock("bake")?;
    if is_made(state, assignment)? {
        return Ok(());
    }
    let seen = assigned::units_of(&assignment.news, sound.units);
    let seen = seen.ok_or(NotAccepted::Hostile(
        "its news name units that there are not",
    ))?;
    let loaded = program.modules()?;
    let wanted = assignment.modules.iter();
    let wanted = wanted.map(|module| loaded.find(&module.stem));
    let wanted: Vec<&Observed> = wanted.collect::<Result<_, _>>()?;
    if program.is_static() && sound.what.iter().any(What::takes_agent) {
        return Err(NotAccepted::TakesAgent.into());
    }
    let pairs = wanted.iter().copied().zip(&sound.what);
    let probed = pairs.filter_map(|(module, what)| match what {
        What::Probes(how) => Some((module, *how)),
        What::Predicates | What::Paths | What::Chains => None,
    });
    let mut masters = masters(probed, images, &())?.into_iter();
    let mut baking = Baking {
        state,
        images,
        assignment,
        seen,
        first: 0,
        made: Vec::new(),
    };
    for ((module, asked), what) in wanted.iter().zip(&assignment.modules).zip(&sound.what) {
        match what {
            What::Predicates => baking.predicates(module, asked)?,
            What::Paths => baking.paths(module, asked)?,
            What::Chains => baking.chains(module, asked)?,
            What::Probes(_) => {
                let master = masters.next();
                let other = || NotAccepted::OtherVersion(asked.stem.clone());
                baking.probes(asked, &master.ok_or_else(other)?)?;
            }
        }
        if let Some(made) = baking.made.last_mut() {
            made.late = module.late;
        }
    }
    let known = baking.known();
    known.write(state)?;
    hear(state, &known, &assignment.news.since().to_string())?;
    Ok(())
}

/// Whether the images of just this assignment are there; for another token of its campaign they serve as well.
fn is_made(state: &State, assignment: &Assignment) -> Result<bool, StateError> {
    let units = units_name(&assignment.units);
    let is_made = |known: &Known| {
        known.campaign == assignment.campaign
            && known.plans == assignment.plans
            && known.variant == assignment.variant
            && known.units == units
            && known.is_whole_throughout(state)
    };
    let mut made = Known::all(state);
    made.retain(is_made);
    let bearer = state.bearer();
    if made.iter().any(|known| known.bearer == bearer) {
        return Ok(true);
    }
    let Some(known) = made.into_iter().next() else {
        return Ok(false);
    };
    Known { bearer, ..known }.write(state)?;
    Ok(true)
}

/// The images of an assignment in the making.
struct Baking<'b> {
    state: &'b State,
    images: &'b Images,
    assignment: &'b Assignment,
    seen: &'b Units,
    /// The unit of the next module's first probe.
    first: u32,
    made: Vec<KnownModule>,
}

impl Baking<'_> {
    fn wants(&self, probe: u32) -> bool {
        let unit = self.first + probe;
        self.assignment.units.has(unit) && !self.seen.has(unit)
    }

    /// Whether a unit of the module is assigned. What is counted is so whatever others have seen.
    fn is_assigned(&self, unit: u32) -> bool {
        self.assignment.units.has(self.first + unit)
    }

    /// A module whose functions, blocks or edges are observed: the master without the other probes.
    fn probes(&mut self, module: &AssignedModule, master: &Master) -> Result<(), BakeError> {
        if master.plan() != module.plan.0 || master.probes() != module.probes {
            return Err(NotAccepted::OtherVersion(module.stem.clone()).into());
        }
        let (campaign, variant) = (self.assignment.campaign, self.assignment.variant);
        let name = format!("{}-{campaign}-{variant}", module.stem);
        let known = KnownModule {
            stem: module.stem.clone(),
            plan: module.plan,
            probes: module.probes,
            image: format!("{name}.image"),
            disposals: format!("{name}.disposals"),
            predicates: None,
            tally: None,
            memory: None,
            wanted: None,
            units: module.probes,
            late: false,
        };
        let image = image_path(self.state, &known.image);
        let left = master.write(&image, |probe| self.wants(probe))?;
        let path = image_path(self.state, &known.disposals);
        let written = replace_durably(&path, &left);
        written.map_err(|error| StateError::Io(path, error))?;
        self.add(known);
        Ok(())
    }

    /// A module whose predicates are observed: an image is woven that has marks for the assigned ones alone, so that
    /// nothing else is paid for. What all of them are must be what the collector takes them for.
    fn predicates(
        &mut self,
        observed: &Observed,
        module: &AssignedModule,
    ) -> Result<(), BakeError> {
        let (_, all) = self.images.marking(observed, Asked::All, &())?;
        let all = read(&all)?;
        let other = || NotAccepted::OtherVersion(module.stem.clone());
        let (header, rows) = Predicates::read(&all).map_err(|_| other())?;
        if header.name() != module.plan.0 || rows.len() as u64 != u64::from(module.probes) {
            return Err(other().into());
        }
        let wanted = (0..).zip(rows).filter(|(row, _)| self.wants(*row));
        let asked = wanted.filter_map(|(_, row)| Some((row.kind()?, row.site.get(), row.case)));
        let apart = self.images.apart(self.state.folder())?;
        let (carried, file) = apart.marking(observed, Asked::Some(asked.collect()), &())?;
        let wanted = (0..module.probes).filter(|row| self.wants(*row));
        let known = KnownModule {
            predicates: Some(name(&file)),
            wanted: Some(Units::of(wanted)),
            ..woven(module, &carried)
        };
        self.add(known);
        Ok(())
    }

    /// A module that counts in its own image: which unit each counter, from the one at `first` on, counts lies beside `file`.
    fn counting(
        &mut self,
        known: KnownModule,
        file: &Path,
        (first, units): (u32, &[U32]),
    ) -> Result<(), BakeError> {
        let tally = file.with_extension("tally");
        let sealed = Tally::sealed(known.plan.0, first, units);
        // On the disk before it is known of, as its image is.
        let written = replace_durably(&tally, &[sealed.as_slice(), units.as_bytes()].concat());
        written.map_err(|error| StateError::Io(tally.clone(), error))?;
        let tally = Some(name(&tally));
        self.add(KnownModule { tally, ..known });
        Ok(())
    }

    fn add(&mut self, known: KnownModule) {
        self.first += known.units;
        self.made.push(known);
    }

    fn known(self) -> Known {
        let assignment = self.assignment;
        Known {
            bearer: self.state.bearer(),
            campaign: assignment.campaign,
            plans: assignment.plans,
            variant: assignment.variant,
            units: units_name(&assignment.units),
            policy: assignment.policy,
            interval_ms: assignment.interval_ms,
            modules: self.made,
        }
    }
}

/// A module whose image was woven for its variant alone.
fn woven(module: &AssignedModule, carried: &Carried) -> KnownModule {
    KnownModule {
        stem: module.stem.clone(),
        plan: Name(carried.plan),
        probes: carried.probes,
        image: name(&carried.image),
        disposals: format!("{}.none", module.stem),
        predicates: None,
        tally: None,
        memory: None,
        wanted: None,
        units: module.probes,
        late: false,
    }
}

fn read(path: &Path) -> Result<Vec<u8>, BakeError> {
    let failed = |error| BakeError::State(StateError::Io(path.into(), error));
    fs::read(path).map_err(failed)
}

/// What a file is called.
fn name(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default();
    name.to_string_lossy().into_owned()
}

/// Writes down up to where the images of `known` are without what the fleet has seen.
pub(crate) fn hear(state: &State, known: &Known, since: &str) -> Result<(), StateError> {
    let path = image_path(state, &known.heard());
    replace(&path, since.as_bytes()).map_err(|error| StateError::Io(path, error))
}

/// Up to where that is.
pub(crate) fn heard(state: &State, known: &Known) -> Option<tomo_protocol::Since> {
    let text = fs::read_to_string(image_path(state, &known.heard())).ok()?;
    text.trim().parse().ok()
}

/// Removes the images of earlier assignments, unless there are runs that may use them, or somebody makes images just
/// now, which nobody knows of before all of them are made. (A run that begins just now and knows of an earlier assignment
/// finds no image, and is not observed.)
pub(crate) fn remove_others(state: &State) {
    let Some(_lock) = state.try_lock("bake") else {
        return;
    };
    let known = Known::all(state);
    if known.is_empty() || !numbered(&state.file("runs")).is_empty() {
        return;
    }
    let used = |name: &str| known.iter().any(|known| known.uses(name));
    let entries = fs::read_dir(state.file("images")).into_iter().flatten();
    for entry in entries.flatten() {
        if entry.file_name().to_str().is_none_or(|name| !used(name)) {
            let _ = fs::remove_file(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tomo_protocol::{CampaignId, Policy};

    fn known_without_modules(state: &State) -> Known {
        Known {
            bearer: state.bearer(),
            campaign: CampaignId(Default::default()),
            plans: Name(1),
            variant: 0,
            units: units_name(&Units::default()),
            policy: Policy::default(),
            interval_ms: 1000,
            modules: Vec::new(),
        }
    }

    #[test]
    fn images_in_the_making_are_nobodys_to_remove() {
        let folder = tempfile::tempdir().unwrap();
        let state = State::open(folder.path()).unwrap();
        known_without_modules(&state).write(&state).unwrap();
        let image = image_path(&state, "program.image");
        fs::write(&image, "code").unwrap();
        let making = state.lock("bake").unwrap();
        remove_others(&state);
        assert!(image.exists(), "who makes it has the lock");
        drop(making);
        remove_others(&state);
        assert!(!image.exists(), "no assignment that is known has it");
    }
}
