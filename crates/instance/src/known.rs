//! The last assignment that was made into images: with it a run begins at once, whatever the network does.
//!
//! A folder may be used with one token after the other, each for a campaign of its own. So the file holds one assignment for
//! each of the last tokens; and what was recorded for a campaign is sent with a token of it (`spool.rs`).

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use tomo_launch::Carried;
use tomo_protocol::{CampaignId, Name, Policy, Units};
use tomo_weave::WEAVE_VERSION;

use crate::meaning::Look;
use crate::state::{State, StateError, replace};

const SCHEMA: &str = "tomo.known/6";
/// Tokens at most.
const MOST_TOKENS: usize = 8;

/// The file.
#[derive(Serialize, Deserialize)]
struct File {
    schema: String,
    /// Which tomo made the images.
    maker: String,
    /// What is known, the newest first.
    known: Vec<Known>,
}

/// What names a tomo by what it makes.
fn maker() -> String {
    format!("{} {WEAVE_VERSION}", env!("CARGO_PKG_VERSION"))
}

/// What is known.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Known {
    /// What names the token for which it was assigned.
    pub(crate) bearer: Name,
    pub(crate) campaign: CampaignId,
    pub(crate) plans: Name,
    pub(crate) variant: u32,
    /// The name of the units of the variant, which nobody else needs once there are images.
    pub(crate) units: Name,
    pub(crate) policy: Policy,
    pub(crate) interval_ms: u64,
    pub(crate) modules: Vec<KnownModule>,
}

/// A module of the campaign, in the order in which units are numbered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct KnownModule {
    pub(crate) stem: String,
    /// What its image observes, and with how many probes.
    pub(crate) plan: Name,
    pub(crate) probes: u32,
    /// Its image and how its probes are disposed of, in the folder of images.
    pub(crate) image: String,
    pub(crate) disposals: String,
    /// Where predicates are observed: the file there that says what marks mean.
    pub(crate) predicates: Option<String>,
    /// Where it is counted: the file there that says which unit each counter counts.
    pub(crate) tally: Option<String>,
    /// Where chains of calls are noted: bytes of a slab.
    pub(crate) memory: Option<u32>,
    /// Which of its predicates were assigned: at sites of which one was, others have marks, too.
    pub(crate) wanted: Option<Units>,
    /// Units of the campaign that are this module's.
    pub(crate) units: u32,
    /// Whether the program may load it after its start.
    #[serde(default)]
    pub(crate) late: bool,
}

/// What names these units.
pub(crate) fn units_name(units: &Units) -> Name {
    let ends = units
        .ranges()
        .iter()
        .flat_map(|(first, last)| [*first, *last]);
    let bytes: Vec<u8> = ends.flat_map(u32::to_le_bytes).collect();
    Name(tomo_wire::checksum(&bytes))
}

impl Known {
    /// What is known in this state for the token that is shown.
    pub(crate) fn read(state: &State) -> Option<Self> {
        let mut all = Self::all(state).into_iter();
        all.find(|known| known.bearer == state.bearer())
    }

    /// What is known for whatever token; nothing where the file is missing, damaged, or of another build of tomo.
    pub(crate) fn all(state: &State) -> Vec<Self> {
        let bytes = fs::read(state.file("known.json")).unwrap_or_default();
        let file = serde_json::from_slice(&bytes).ok();
        let of_us = |file: &File| {
            file.schema == SCHEMA && file.maker == maker() && file.known.iter().all(Self::is_sound)
        };
        file.filter(of_us).map_or_else(Vec::new, |file| file.known)
    }

    /// Whether something was prepared in this state of which nothing can be read.
    pub(crate) fn is_unreadable(state: &State) -> bool {
        state.file("known.json").exists() && Self::all(state).is_empty()
    }

    /// Whether all its files are in the folder of images.
    fn is_sound(&self) -> bool {
        let plain = |name: &String| {
            let mut parts = Path::new(name).components();
            matches!(parts.next(), Some(std::path::Component::Normal(_))) && parts.next().is_none()
        };
        self.modules.iter().all(|module| {
            let files = [&module.image, &module.disposals].into_iter();
            let files = files.chain(&module.predicates);
            files.chain(&module.tally).all(plain)
        })
    }

    /// Writes it down, in place of what was known for its token, and of what is oldest where that is too much. The caller
    /// holds the lock of those who make images.
    pub(crate) fn write(&self, state: &State) -> Result<(), StateError> {
        let path = state.file("known.json");
        let mut known = Self::all(state);
        known.retain(|other| other.bearer != self.bearer);
        known.insert(0, self.clone());
        known.truncate(MOST_TOKENS);
        let file = File {
            schema: SCHEMA.into(),
            maker: maker(),
            known,
        };
        let bytes = serde_json::to_vec_pretty(&file)
            .map_err(|error| StateError::Io(path.clone(), error.into()))?;
        replace(&path, &bytes).map_err(|error| StateError::Io(path, error))
    }

    /// The campaigns of which it is known that they have other tokens than the one that is shown, and not that they have
    /// this one.
    pub(crate) fn of_others(state: &State) -> BTreeSet<CampaignId> {
        let (ours, others): (Vec<_>, Vec<_>) = Self::all(state)
            .into_iter()
            .partition(|known| known.bearer == state.bearer());
        let is_ours = |id: &CampaignId| ours.iter().any(|known| known.campaign == *id);
        let campaigns = others.into_iter().map(|known| known.campaign);
        campaigns.filter(|id| !is_ours(id)).collect()
    }

    /// The file in the folder of images that says up to where they are without what the fleet has seen.
    pub(crate) fn heard(&self) -> String {
        format!("{}-{}.heard", self.campaign, self.variant)
    }

    /// Whether this file in the folder of images belongs to it.
    pub(crate) fn uses(&self, name: &str) -> bool {
        let mut modules = self.modules.iter();
        let is_of_module = modules.any(|module| {
            let moved = Path::new(&module.image).with_extension("moved");
            let others = [module.predicates.as_deref(), module.tally.as_deref()];
            let files = [module.image.as_str(), module.disposals.as_str()];
            files.contains(&name) || others.contains(&Some(name)) || moved == Path::new(name)
        });
        is_of_module || name == self.heard()
    }

    /// Units of the campaign.
    pub(crate) fn total(&self) -> u32 {
        let probes = self.modules.iter().map(|module| module.units);
        probes.fold(0, u32::saturating_add)
    }

    /// Whether all its images can be used, as far as a start can tell.
    pub(crate) fn is_whole(&self, state: &State) -> bool {
        self.carried(state).len() == self.modules.len()
    }

    /// The same, after a look that a start has not the time for.
    pub(crate) fn is_whole_throughout(&self, state: &State) -> bool {
        let mut modules = self.modules.iter();
        self.is_whole(state) && modules.all(|module| module.is_meant(state, Look::Through))
    }

    /// The images that a run carries, those that can be used and of which it is known what they tell.
    pub(crate) fn carried(&self, state: &State) -> Vec<Carried> {
        let each = self.modules.iter();
        let meant = each.filter(|module| module.is_meant(state, Look::Heads));
        meant
            .filter_map(|module| {
                let image = image_path(state, &module.image);
                let carried = Carried::of(&image, &module.stem, module.plan.0, module.probes)?;
                let carried = Carried {
                    alone: module.predicates.is_some(),
                    late: module.late,
                    ..carried
                };
                Some(match module.memory {
                    Some(memory) => carried.with_chains(memory),
                    None => carried,
                })
            })
            .collect()
    }
}

/// Where an image or its disposals are.
pub(crate) fn image_path(state: &State, name: &str) -> PathBuf {
    state.file("images").join(name)
}
