//! The paper's algorithm and policy (a buffer of one; the instance waits for the server), simulated by
//! [`tomo_plan::disposal`], on what real runs did: which probes, when first, how often.
//!
//! What a probe costs is taken from the measured tables of the same program. What the server takes is
//! assumed, and said on the page.

use serde::{Deserialize, Serialize};
use tomo_plan::disposal::{self, Policy, Workload, simulate};

use super::processes::scenario;
use super::{Deployer, Deployment, Instance, Outcome, Source, Technique};
use crate::disposal::inputs::Case;
use crate::disposal::{Counts, Mark, Stay, StudyError};

/// The simulation's unit of time: picoseconds, since a mark that stays costs less than a nanosecond.
const SECOND: f64 = 1e12;
/// How long a run of the paper's study takes without probes, in seconds (DIS Table 5).
const LONG: f64 = 1897.0;

/// What things cost, in seconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Costs {
    /// A mark that stays, each time.
    pub mark: f64,
    /// A probe that goes, once: mark, restore, execute again, and its share of arming.
    pub disposal: f64,
    /// The server's work on a request.
    pub service: f64,
    /// The way there and back.
    pub latency: f64,
}

/// A program's configurations, as workloads.
pub(crate) struct Simulated {
    workloads: Vec<Workload>,
    /// Of each.
    operations: Vec<u64>,
    costs: Costs,
    source: Source,
    probes: u64,
}

impl Simulated {
    /// Of runs that take so many seconds each without probes; `counts` say what they do.
    pub(crate) fn new(
        counts: &[(Counts, f64)],
        configurations: &[Case],
        costs: Costs,
        source: Source,
    ) -> Self {
        let (mut workloads, mut operations) = (Vec::new(), Vec::new());
        for ((counts, seconds), configuration) in counts.iter().zip(configurations) {
            let times = match source {
                Source::SimulatedLong => (LONG / seconds.max(1e-3)).max(1.0) as u64,
                _ => 1,
            };
            let work = counts.workload((seconds * SECOND) as u64);
            workloads.push(prolonged(work, times));
            operations.push(configuration.operations * times);
        }
        let probes = counts.first().map(|(counts, _)| counts.probes.len() as u64);
        Self {
            workloads,
            operations,
            costs,
            source,
            probes: probes.unwrap_or(0),
        }
    }
}

/// A run that does so many times over what it did: first hits stay where they are, all else happens more
/// often.
fn prolonged(work: Workload, times: u64) -> Workload {
    let longer = |mut hit: disposal::Hit| {
        hit.times = hit.times.saturating_mul(times);
        hit
    };
    Workload {
        length: work.length.saturating_mul(times),
        hits: work.hits.into_iter().map(longer).collect(),
    }
}

impl Deployer for Simulated {
    fn source(&self) -> Source {
        self.source
    }

    fn knows(&self, technique: Technique, deployment: Deployment) -> bool {
        match technique {
            Technique::Collective => true,
            // Who talks to nobody takes the same time in every deployment.
            Technique::Bare | Technique::Lasting(Stay::Built(Mark::Call)) | Technique::Local => {
                deployment == Deployment::Sequential
            }
            Technique::Lasting(_) => false,
        }
    }

    fn deploy(
        &mut self,
        technique: Technique,
        deployment: Deployment,
        picks: &[usize],
    ) -> Result<Outcome, StudyError> {
        let works: Vec<Workload> = picks
            .iter()
            .map(|&pick| self.workloads[pick].clone())
            .collect();
        let mean = works.iter().map(|work| work.length).sum::<u64>() / works.len().max(1) as u64;
        let whole = |seconds: f64| (seconds * SECOND).round() as u64;
        let costs = disposal::Costs {
            probe: whole(match technique {
                Technique::Lasting(_) => self.costs.mark,
                _ => self.costs.disposal,
            }),
            removal: 0,
            // What others have hit is restored beside the program, which never comes to it.
            skip: 0,
            service: whole(self.costs.service),
            latency: whole(self.costs.latency),
        };
        let how = match technique {
            Technique::Bare => disposal::Technique::Bare,
            Technique::Lasting(_) => disposal::Technique::Lasting,
            Technique::Local => disposal::Technique::Local,
            Technique::Collective => disposal::Technique::Collective(Policy::STUDY),
        };
        let curve = scenario(deployment, works.len(), mean);
        let outcome = simulate(&works, how, curve, costs)?;
        let disposing = matches!(technique, Technique::Local | Technique::Collective);
        let instances = outcome
            .runs
            .iter()
            .zip(picks)
            .map(|(run, &configuration)| Instance {
                configuration,
                seconds: (run.end - run.start) as f64 / SECOND,
                beside: None,
                operations: self.operations[configuration],
                recorded: disposing.then_some(run.recorded),
                contacts: (technique == Technique::Collective).then_some(run.contacts),
            });
        Ok(Outcome {
            instances: instances.collect(),
            peak: outcome.peak(),
            probes: disposing.then_some(self.probes),
            seen: outcome.coverage.last().map(|&(_, seen)| seen),
        })
    }
}
