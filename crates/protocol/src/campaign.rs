//! Programs and campaigns: what is observed, by which strategy, and in which variants.

use serde::{Deserialize, Serialize};

use crate::{CampaignId, Name, Search, Units};

/// Whether a letter steers a terminal, or turns the text around it: none that is part of a name.
#[must_use]
pub fn steers(letter: char) -> bool {
    letter.is_control() || matches!(letter, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// A build of a program that the collector knows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct Program {
    /// Names the build: build id and fingerprint, as the cache of models does.
    pub stem: String,
    /// What its file was called.
    pub name: String,
    /// Its build id in hexadecimal digits, unless it has none.
    pub build_id: Option<String>,
    /// Bytes of its file.
    pub size: u64,
    /// Functions of its model.
    pub functions: u64,
    /// The version of tomo that made the model.
    pub version: String,
}

/// What [`Plan`]s are known by the collector: one master plan of a build.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Plan {
    /// Its name.
    pub name: Name,
    /// What it observes: `function`, `block`, `edge`, `predicate`, `path` or `chain`.
    pub level: String,
    /// Its probes; of predicates all of them, whether they can be observed or not; of paths all numbers of paths; of chains all
    /// functions that can be observed.
    pub probes: u32,
}

/// A module of a campaign that is asked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct NewModule {
    /// The build.
    pub stem: String,
    /// What is observed: `function`, `block`, `edge`, `predicate`, `path` or `chain`.
    pub level: String,
    /// Where probes go: `all` or `reduced`.
    pub placement: String,
    /// The master plan, which must have been put.
    pub plan: Name,
    /// Sets of this plan's probes that belong together, such as those of one function (PDT's
    /// clusters). Needed by the strategies for clusters only; probes in none of them are left out.
    #[serde(default)]
    pub clusters: Vec<Units>,
    /// Sets of this plan's probes that observe one event each (PDT's events), such as the functions of a chain of calls. Without
    /// them the strategies for events take each probe for one.
    #[serde(default)]
    pub events: Vec<Units>,
    /// Which of this plan's probes are to be observed at all; all that can be, if it is not said.
    #[serde(default)]
    pub only: Option<Units>,
}

/// How probes are shared out over variants: the techniques of PDT, under its names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Strategy {
    /// Each variant gets random probes.
    RandomProbes,
    /// Each variant gets random probes among those that fewest variants have.
    BalancedProbes,
    /// Random events.
    RandomEvents,
    /// Events in as equally many variants as can be.
    BalancedEvents,
    /// Events that share probes together.
    PackedEvents,
    /// Both.
    BalancedPackedEvents,
    /// Random clusters.
    RandomClusters,
    /// Clusters in as equally many variants as can be.
    BalancedClusters,
    /// Clusters that share probes together.
    PackedClusters,
    /// Both.
    BalancedPackedClusters,
}

impl Strategy {
    /// All of them.
    pub const ALL: [Self; 10] = [
        Self::RandomProbes,
        Self::BalancedProbes,
        Self::RandomEvents,
        Self::BalancedEvents,
        Self::PackedEvents,
        Self::BalancedPackedEvents,
        Self::RandomClusters,
        Self::BalancedClusters,
        Self::PackedClusters,
        Self::BalancedPackedClusters,
    ];

    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::RandomProbes => "random-probes",
            Self::BalancedProbes => "balanced-probes",
            Self::RandomEvents => "random-events",
            Self::BalancedEvents => "balanced-events",
            Self::PackedEvents => "packed-events",
            Self::BalancedPackedEvents => "balanced-packed-events",
            Self::RandomClusters => "random-clusters",
            Self::BalancedClusters => "balanced-clusters",
            Self::PackedClusters => "packed-clusters",
            Self::BalancedPackedClusters => "balanced-packed-clusters",
        }
    }

    /// Whether it is for events.
    #[must_use]
    pub fn is_for_events(self) -> bool {
        self.name().ends_with("events")
    }

    /// Whether it needs clusters.
    #[must_use]
    pub fn is_for_clusters(self) -> bool {
        self.name().ends_with("clusters")
    }
}

/// What one instance may carry at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Bound {
    /// So many probes.
    Probes(u64),
    /// All of them: every variant is the whole plan.
    None,
}

/// When instances send what they have seen, and when they hear what others have (DIS §4.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct Policy {
    /// Send when so many newly hit probes have gathered; `None`: their number does not matter.
    pub buffer: Option<u32>,
    /// Send after so many milliseconds since the last time; `None`: as often as the collector's
    /// answers say.
    pub interval_ms: Option<u64>,
    /// Whether a run asks at its start for what others have seen.
    pub update_at_start: bool,
    /// Whether answers to reports say what others have seen.
    pub piggyback: bool,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            buffer: None,
            interval_ms: None,
            update_at_start: true,
            piggyback: true,
        }
    }
}

/// A campaign that is asked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct NewCampaign {
    /// What people call it.
    pub name: String,
    /// What is observed, in the order in which units are numbered.
    pub modules: Vec<NewModule>,
    /// How probes are shared out.
    pub strategy: Strategy,
    /// Over how many variants; 0 for as many as hold once whatever one can carry.
    pub variants: u32,
    /// What one variant may carry.
    pub bound: Bound,
    /// Where the drawing of random numbers starts; the same gives the same variants.
    pub seed: u64,
    /// When instances send and hear.
    #[serde(default)]
    pub policy: Policy,
    /// A search for what predicts failure, instead of variants that stay: then there is one module, of the level
    /// `predicate`, whose terrain has been put.
    #[serde(default)]
    pub search: Option<Search>,
}

/// Whether it is counted how often units of this level are hit, rather than whether they are.
#[must_use]
pub fn is_counted(level: &str) -> bool {
    level == PATHS || level == CHAINS
}

/// The level of acyclic paths.
pub const PATHS: &str = "path";
/// The level of chains of calls: the units are functions, and reports say by which chains they were called.
pub const CHAINS: &str = "chain";

/// A module of a campaign.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ModuleOf {
    /// The build.
    pub stem: String,
    /// What is observed.
    pub level: String,
    /// Where probes go.
    pub placement: String,
    /// The master plan.
    pub plan: Name,
    /// Probes of the plan, and so units of the campaign.
    pub probes: u32,
}

/// One variant: the units that it carries.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Variant {
    /// Its units.
    pub units: Units,
}

/// A campaign. It never changes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Campaign {
    /// Names it.
    pub id: CampaignId,
    /// What people call it.
    pub name: String,
    /// When it was made.
    pub created: i64,
    /// What is observed, in the order in which units are numbered.
    pub modules: Vec<ModuleOf>,
    /// Names all plans: [`tomo_wire::report::name_of_plans`].
    pub plans: Name,
    /// Units in all.
    pub units: u32,
    /// How probes were shared out.
    pub strategy: Strategy,
    /// What one variant may carry.
    pub bound: Bound,
    /// Where the drawing of random numbers started.
    pub seed: u64,
    /// When instances send and hear.
    pub policy: Policy,
    /// The variants; none where there is a search.
    pub variants: Vec<Variant>,
    /// How many units a variant could carry that none does.
    #[serde(default)]
    pub left_out: u32,
    /// The search, if it is one.
    #[serde(default)]
    pub search: Option<Search>,
}

impl Campaign {
    /// Whether its reports say how often units were hit.
    #[must_use]
    pub fn is_counted(&self) -> bool {
        self.modules.iter().any(|module| is_counted(&module.level))
    }

    /// Whether its reports say by which chains of calls functions were called.
    #[must_use]
    pub fn has_chains(&self) -> bool {
        self.modules.iter().any(|module| module.level == CHAINS)
    }
}

/// A campaign among others.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Summary {
    /// Names it.
    pub id: CampaignId,
    /// What people call it.
    pub name: String,
    /// When it was made.
    pub created: i64,
    /// Whether it takes no reports any more.
    pub retired: bool,
    /// Units in all.
    pub units: u32,
    /// Units that some instance has hit.
    pub seen: u32,
    /// Variants.
    pub variants: u32,
    /// Instances with an assignment.
    pub instances: u64,
    /// Runs that are known of.
    pub runs: u64,
}
