//! What readers hear of a campaign: who took part, what was seen when and by how many, and how long
//! what was never seen has been watched for.

use serde::{Deserialize, Serialize};

use crate::{CampaignId, InstanceId, Units};

/// Numbers of runs, added up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Totals {
    /// Runs that are known of.
    pub runs: u64,
    /// Of these, those whose end is not known yet.
    pub running: u64,
    /// Those that ended by a signal, or unseen.
    pub cut: u64,
    /// Those in which no process was armed: they saw nothing, and count as no time.
    pub unobserved: u64,
    /// How long the observed ones ran, in nanoseconds.
    pub duration: u64,
    /// Processor time of them, in nanoseconds, as far as it is known.
    pub cpu: u64,
}

/// The runs of one variant.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct VariantTotals {
    /// Which variant.
    pub variant: u32,
    /// Instances that it was assigned to.
    pub instances: u64,
    /// Their runs.
    pub totals: Totals,
}

/// A unit that was seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Seen {
    /// The unit.
    pub unit: u32,
    /// When the collector first heard of it.
    pub first: i64,
    /// By how many instances. Where others were told not to look any more, more would have seen it.
    pub instances: u32,
    /// How often, in all runs together, where the campaign counts; nothing where that is more than 64 bits hold.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<u64>,
}

/// Units that were never seen, and how long they were looked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Unseen {
    /// The units.
    pub units: Units,
    /// Instances whose observed runs carried them.
    pub instances: u64,
    /// How long these runs were, together, in nanoseconds.
    pub duration: u64,
}

/// What all instances saw together.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Profile {
    /// The campaign.
    pub campaign: CampaignId,
    /// Units in all.
    pub units: u32,
    /// Instances with an assignment or a report.
    pub instances: u64,
    /// All runs.
    pub totals: Totals,
    /// The variants that were assigned, ascending.
    pub variants: Vec<VariantTotals>,
    /// What was seen, ascending.
    pub seen: Vec<Seen>,
    /// What was not, in groups that were watched equally.
    pub unseen: Vec<Unseen>,
    /// Where chains of calls are observed: those that each variant has shown.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub chains: Vec<VariantChains>,
}

/// The chains of calls that the runs of one variant have shown.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct VariantChains {
    /// Which variant.
    pub variant: u32,
    /// The chains, those above before those below.
    pub chains: Vec<Chain>,
}

/// A chain of calls: that of its parent, and one function more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Chain {
    /// The number of a chain before it in the variant, counted from 1; 0 if there is none above.
    pub parent: u32,
    /// How the function was entered, as the trees of threads have it.
    pub way: u32,
    /// From where, as they have it.
    pub site: u32,
    /// The function; nothing where it stands for all chains for which there was no room.
    pub unit: Option<u32>,
    /// How often; nothing where that is more than 64 bits hold.
    pub calls: Option<u64>,
    /// By how many instances it was seen.
    pub instances: u32,
}

/// An instance.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Instance {
    /// Which.
    pub instance: InstanceId,
    /// The variant that it was assigned, if it ever asked.
    pub variant: Option<u32>,
    /// When it was first heard of.
    pub first_heard: i64,
    /// When it was last heard of.
    pub last_heard: i64,
    /// The version of tomo that it last reported.
    pub version: String,
    /// Its runs.
    pub totals: Totals,
    /// Units that it has hit.
    pub hits: u32,
    /// Processes of its last reports that were not observed, though they should have been.
    pub refused: u64,
    /// Why not, in words.
    pub reason: Option<String>,
    /// Reports that it had to drop since its spool was full.
    pub dropped: u64,
    /// Reports that it dropped as they were damaged on its disk, or refused for good.
    #[serde(default)]
    pub unfit: u64,
}

/// How a campaign stands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Numbers {
    /// The campaign.
    pub campaign: CampaignId,
    /// Whether it takes no reports any more.
    pub retired: bool,
    /// Units in all.
    pub units: u32,
    /// Units that are in some variant.
    pub carried: u32,
    /// Units that were seen.
    pub seen: u32,
    /// When the last unit that was new was heard of.
    pub last_new: Option<i64>,
    /// All runs.
    pub totals: Totals,
    /// The instances.
    pub instances: Vec<Instance>,
}

/// How coverage grew.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Growth {
    /// The campaign.
    pub campaign: CampaignId,
    /// When it was made.
    pub created: i64,
    /// Units in all.
    pub units: u32,
    /// Of all instances together.
    pub all: Vec<(i64, u32)>,
    /// What each reported by itself.
    pub instances: Vec<Curve>,
}

/// How what one instance reported grew: DIS, Fig. 5. It covered more where others had reported first, and it was told not to look.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Curve {
    /// The instance.
    pub instance: InstanceId,
    /// At which times it had how many units: one point for each change, ascending.
    pub points: Vec<(i64, u32)>,
}
