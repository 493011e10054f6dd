//! Collective disposal: many instances, each one run of a configuration drawn at random (DIS §4.2).
//!
//! Where outcomes come from is exchangeable ([`Source`]): instances that are processes on this host and
//! share one pool; instances that talk to the collector; or a simulation of the paper's own algorithm and
//! policy, fed with what real runs did.

pub(crate) mod collector;
pub(crate) mod curves;
pub(crate) mod pool;
pub(crate) mod processes;
pub(crate) mod server;
pub(crate) mod simulated;

use serde::{Deserialize, Serialize};

use super::inputs::Numbers;
use super::{Mark, Stay, StudyError, Summary};

pub use curves::{Curve, Curves};
pub use simulated::Costs;

/// Instances (DIS §4.2).
pub const INSTANCES: usize = 37;
/// How often each deployment is repeated: "the simulation was performed twice" (DIS §5).
pub const REPETITIONS: usize = 2;

/// Where outcomes come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Source {
    /// Processes on this host that share a pool.
    Pool,
    /// Installations that talk to a collector.
    Collector,
    /// The paper's algorithm, simulated, on the runs as they are.
    Simulated,
    /// The same, on runs that go on for as long as the paper's did, doing what they did.
    SimulatedLong,
}

/// How probes are treated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Technique {
    /// No probes (No-I).
    Bare,
    /// Probes that stay, by dominators (Dom-I).
    Lasting(Stay),
    /// Probes that go at their first hit (LD-Dom-I).
    Local,
    /// And that go for all instances (CD).
    Collective,
}

/// How instances follow each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Deployment {
    /// All at once.
    Concurrent,
    /// Few, many, few: at most 15 at once.
    Distributed,
    /// One after the other.
    Sequential,
}

impl Deployment {
    /// All, in the order of the paper's table.
    pub const ALL: [Self; 3] = [Self::Concurrent, Self::Distributed, Self::Sequential];
}

/// What one instance did.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Instance {
    /// Which configuration it had.
    pub configuration: usize,
    /// Seconds of the processor; in a simulation, from start to end.
    pub seconds: f64,
    /// Seconds of the processor that were spent beside the program, by what launched it, where there is such a
    /// thing.
    pub beside: Option<f64>,
    /// How many operations it did.
    pub operations: u64,
    /// How many probes recorded something in it, where that is known.
    pub recorded: Option<u64>,
    /// How often it talked to the server, where there is one.
    pub contacts: Option<u64>,
}

/// What a deployment did, all repetitions together.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Deployed {
    /// The program.
    pub program: String,
    /// Where this comes from.
    pub source: Source,
    /// How probes were treated.
    pub technique: Technique,
    /// How instances followed each other.
    pub deployment: Deployment,
    /// Each instance.
    pub instances: Vec<Instance>,
    /// The most that ran at once.
    pub peak: usize,
    /// Probes that each instance started with, before anything was disposed of.
    pub probes: Option<u64>,
    /// Probes that recorded anything anywhere, by repetition.
    pub seen: Vec<u64>,
}

impl Deployed {
    /// The time of instances.
    #[must_use]
    pub fn time(&self) -> Option<Summary> {
        let seconds: Vec<f64> = self.instances.iter().map(|one| one.seconds).collect();
        Summary::of(&seconds)
    }

    /// Operations a second, by instance.
    #[must_use]
    pub fn throughput(&self) -> Option<Summary> {
        let rate = |one: &Instance| one.operations as f64 / one.seconds;
        let rates: Vec<f64> = self.instances.iter().map(rate).collect();
        Summary::of(&rates)
    }

    /// What was spent beside an instance, on average, in seconds of the processor.
    #[must_use]
    pub fn beside(&self) -> Option<f64> {
        let beside: Option<Vec<f64>> = self.instances.iter().map(|one| one.beside).collect();
        Some(Summary::of(&beside?)?.mean)
    }

    /// The share of its probes that an instance executed, on average.
    #[must_use]
    pub fn executed(&self) -> Option<f64> {
        let recorded: Option<Vec<u64>> = self.instances.iter().map(|one| one.recorded).collect();
        let recorded = recorded?;
        let mean = recorded.iter().sum::<u64>() as f64 / recorded.len() as f64;
        Some(mean / self.probes.filter(|probes| *probes > 0)? as f64)
    }
}

/// What one repetition did, before it is known what it belongs to.
#[derive(Clone, Debug, Default)]
pub(crate) struct Outcome {
    pub(crate) instances: Vec<Instance>,
    pub(crate) peak: usize,
    pub(crate) probes: Option<u64>,
    pub(crate) seen: Option<u64>,
}

/// Something that can deploy instances.
pub(crate) trait Deployer {
    /// What it is.
    fn source(&self) -> Source;
    /// Which techniques it knows, in which deployments.
    fn knows(&self, technique: Technique, deployment: Deployment) -> bool;
    /// Deploys one instance for each configuration in `picks`.
    fn deploy(
        &mut self,
        technique: Technique,
        deployment: Deployment,
        picks: &[usize],
    ) -> Result<Outcome, StudyError>;
}

/// How many deployments `deployer` makes, repetitions counted.
pub(crate) fn deployments(deployer: &dyn Deployer) -> usize {
    known(deployer).len() * REPETITIONS
}

fn known(deployer: &dyn Deployer) -> Vec<(Technique, Deployment)> {
    let pairs = Deployment::ALL
        .into_iter()
        .flat_map(|d| TECHNIQUES.map(|t| (t, d)));
    pairs.filter(|&(t, d)| deployer.knows(t, d)).collect()
}

/// All techniques in all deployments; each repetition draws its configurations anew, the same for all
/// techniques, and takes techniques in turn.
pub(crate) fn deploy(
    program: &str,
    deployer: &mut dyn Deployer,
    configurations: usize,
    instances: usize,
    each: &mut dyn FnMut(),
) -> Result<Vec<Deployed>, StudyError> {
    let empty = |(technique, deployment)| Deployed {
        program: program.into(),
        source: deployer.source(),
        technique,
        deployment,
        instances: Vec::new(),
        peak: 0,
        probes: None,
        seen: Vec::new(),
    };
    let mut all: Vec<Deployed> = known(deployer).into_iter().map(empty).collect();
    for repetition in 0..REPETITIONS {
        let picks = draw(configurations, instances, repetition);
        for one in &mut all {
            let outcome = deployer.deploy(one.technique, one.deployment, &picks)?;
            one.instances.extend(outcome.instances);
            one.peak = one.peak.max(outcome.peak);
            one.probes = outcome.probes;
            one.seen.extend(outcome.seen);
            each();
        }
    }
    Ok(all)
}

/// All techniques, in the order of the paper's table.
pub(crate) const TECHNIQUES: [Technique; 6] = [
    Technique::Bare,
    Technique::Lasting(Stay::Woven),
    Technique::Lasting(Stay::Built(Mark::Flag)),
    Technique::Lasting(Stay::Built(Mark::Call)),
    Technique::Local,
    Technique::Collective,
];

/// Which configuration each instance of a repetition has.
pub(crate) fn draw(configurations: usize, instances: usize, repetition: usize) -> Vec<usize> {
    let mut numbers = Numbers::new(1 + repetition as u64);
    (0..instances)
        .map(|_| numbers.below(configurations as u64) as usize)
        .collect()
}
