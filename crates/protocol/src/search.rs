//! Adaptive search in a fleet (ABI §4): what is asked for, the program as the search sees it, and what came of it.

use serde::{Deserialize, Serialize};

use crate::CampaignId;

/// By what the next predicate is chosen (ABI §4.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Choice {
    /// Student's t test.
    Ttest,
    /// Importance.
    Importance,
    /// The highest importance of what could be found behind it.
    Maximp,
    /// How often it was true in failures.
    Failcount,
    /// The first.
    Bfs,
}

/// Which way the search goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Towards {
    /// From what always runs.
    Forward,
    /// From where runs crash, where that is known; else forward.
    Backward,
}

/// A search that is asked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct Search {
    /// By what the next predicate is chosen.
    pub choice: Choice,
    /// Which way it goes.
    pub towards: Towards,
    /// Sites of one cause's plan at most.
    pub most_sites: u32,
    /// Runs of a plan after which the search goes on in any case.
    pub most_runs: u64,
    /// Runs of one instance that count in a plan, as long as most others have fewer.
    pub instance_runs: u64,
    /// Exit codes that are successes.
    pub success: Vec<i32>,
}

/// A function of the program, as the search sees it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Routine {
    /// Where its blocks start, by number; as the module states it.
    pub blocks: Vec<u64>,
    /// Where the last block in memory ends.
    pub end: u64,
    /// The block that is entered.
    pub entry: u32,
    /// From block to block, in the order in which a site has its predicates.
    pub edges: Vec<(u32, u32)>,
    /// Blocks at which control may leave the function.
    pub exits: Vec<u32>,
    /// Blocks that call routines.
    pub calls: Vec<(u32, u32)>,
    /// Blocks in which a value is looked at, and into how many predicates that is split.
    pub values: Vec<(u32, u32)>,
    /// Whether it is run from outside.
    pub root: bool,
}

/// The program as the search sees it: made by whoever has the model, so that the collector needs none.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Terrain {
    /// The functions.
    pub routines: Vec<Routine>,
    /// By site of the graph of these (routine by routine, block by block): its first row in the file of predicates,
    /// if it can be observed.
    pub sites: Vec<Option<u32>>,
    /// By predicate of that graph: its row.
    pub rows: Vec<Option<u32>>,
}

impl Terrain {
    /// As it is sent and stored.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        postcard::to_stdvec(self).unwrap_or_default()
    }

    /// The terrain in `bytes`, if it is one.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        postcard::from_bytes(bytes).ok()
    }
}

/// A frame of a crash.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct CrashFrame {
    /// The build id of the module, in hexadecimal digits; empty where it is not known.
    pub build_id: String,
    /// The instruction, as the module states it.
    pub address: u64,
}

/// Why runs failed: what their group has in common.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(tag = "cause", rename_all = "kebab-case")]
pub enum Cause {
    /// A signal came at this place.
    Crash {
        /// The signal.
        signal: i32,
        /// The innermost frame first.
        frames: Vec<CrashFrame>,
    },
    /// A signal ended the program, and where is not known.
    Signal {
        /// The signal.
        signal: i32,
    },
    /// The program ended with this exit code.
    Exit {
        /// The code.
        code: i32,
    },
    /// The program, or its output, told so; a checksum of its words.
    Told {
        /// Sixteen hexadecimal digits.
        words: String,
    },
}

/// In how many runs a predicate was observed, and true.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Known {
    /// Its row in the file of predicates.
    pub row: u32,
    /// Failed runs in which it was true.
    pub failed_true: u64,
    /// Successful runs in which it was true.
    pub passed_true: u64,
    /// Failed runs in which its site was reached.
    pub failed_seen: u64,
    /// Successful runs in which its site was reached.
    pub passed_seen: u64,
    /// Failed runs in all that carried it.
    pub failed: u64,
    /// Successful ones.
    pub passed: u64,
    /// The step that watched it first.
    pub step: u32,
}

/// A step that was made.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct SearchStep {
    /// Sites that were watched.
    pub sites: u32,
    /// Runs that counted.
    pub runs: u64,
    /// The row of the predicate whose vicinity came next; nothing where the plan went on, or strayed.
    pub chosen: Option<u32>,
    /// The best Importance that was known.
    pub best: f64,
    /// The row that has it.
    pub predictor: Option<u32>,
}

/// What came of the search for one cause.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Group {
    /// The cause.
    pub cause: Cause,
    /// Runs that failed so and counted.
    pub failures: u64,
    /// Runs that did not fail and counted.
    pub successes: u64,
    /// Instances on which it failed so.
    pub instances: u64,
    /// The steps so far.
    pub steps: Vec<SearchStep>,
    /// Sites that were watched.
    pub seen: u32,
    /// Whether the search is over.
    pub done: bool,
    /// Whether it has not begun, since as many others go on as may.
    #[serde(default)]
    pub waits: bool,
    /// Predicates that were watched, the best predictors first; not all of them.
    pub known: Vec<Known>,
}

/// How a search stands.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Found {
    /// The campaign.
    pub campaign: CampaignId,
    /// How often what instances carry has changed.
    pub edition: u32,
    /// Sites that can be observed.
    pub sites: u32,
    /// Runs that count neither as failures nor as successes: somebody ended them from outside, or nobody saw their
    /// end.
    pub unlabelled: u64,
    /// Runs that did not count, since their instance had its share.
    pub beyond_share: u64,
    /// Failures by cause, the most frequent first.
    pub groups: Vec<Group>,
}
