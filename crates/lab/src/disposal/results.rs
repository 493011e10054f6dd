//! Everything that was measured; `results.json` is this.

use serde::{Deserialize, Serialize};

use super::fleet::{Costs, Curves, Deployed};
use super::{Redundancy, Timed, Units};

/// What a study measured.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Results {
    /// Probes of each program (Table 1).
    pub placed: Vec<Placed>,
    /// Times (Tables 2 to 4 and 6).
    pub timed: Vec<Timed>,
    /// Redundant probe executions (Figure 2).
    pub redundancy: Vec<Redundancy>,
    /// Instances (Table 5, Figures 3 to 5).
    pub fleets: Vec<Deployed>,
    /// What the simulation was told that things cost, by program.
    pub costs: Vec<(String, Costs)>,
    /// Coverage over time, by program.
    pub curves: Vec<Curves>,
    /// What did not go as it should have, in words.
    pub faults: Vec<String>,
    /// How long all of it took, in seconds.
    pub seconds: f64,
    /// Processors of the machine.
    pub processors: usize,
}

/// How many probes a program has.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Placed {
    /// The program.
    pub program: String,
    /// What carries them.
    pub units: Units,
    /// Ours.
    pub ours: u64,
    /// How many of them can stay when they are asked to; the others go all the same.
    pub staying: u64,
    /// The marks of the build that stay; none without such a build.
    pub marks: Option<u64>,
}
