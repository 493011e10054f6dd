//! Instances on this host that share one pool: what one of them hits is gone for all of them at once, for
//! they map the same image. That is collective disposal without any server: what it saves, and nothing of
//! what it costs to spread the word.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::processes::{self, Deployed};
use super::{Deployer, Deployment, Instance, Outcome, Source, Technique};
use crate::disposal::armed::Armed;
use crate::disposal::inputs::Case;
use crate::disposal::measure::{Job, Meter, Told};
use crate::disposal::{Builds, Stay, StudyError, Units, way};

/// Processes of one program, and the pools that arm them.
pub(crate) struct Pools<'s> {
    meter: &'s Meter,
    builds: &'s Builds,
    configurations: &'s [Case],
    /// What each configuration prints and how it ends, without probes.
    expected: Vec<Told>,
    /// What all instances share.
    shared: Armed,
    /// The same with probes that stay.
    lasting: Armed,
    /// What each has of its own.
    own: Vec<Armed>,
    /// How long an instance runs at the peak.
    duration: Duration,
    pub(crate) faults: Vec<String>,
}

impl<'s> Pools<'s> {
    /// Pools for so many instances, in `folder`; an instance alone takes `seconds`.
    pub(crate) fn new(
        meter: &'s Meter,
        builds: &'s Builds,
        configurations: &'s [Case],
        expected: Vec<Told>,
        instances: usize,
        (folder, cache): (&Path, &Path),
        seconds: f64,
    ) -> Result<Self, StudyError> {
        let pool = |name: String, stays| {
            let path: PathBuf = folder.join(name);
            Armed::new(&builds.plain, Units::BlockDom.how(stays), &path, cache)
        };
        Ok(Self {
            meter,
            builds,
            configurations,
            expected,
            lasting: pool("lasting".into(), true)?,
            shared: pool("shared".into(), false)?,
            own: (0..instances)
                .map(|n| pool(format!("own-{n}"), false))
                .collect::<Result<_, _>>()?,
            duration: processes::at_the_peak(seconds),
            faults: Vec::new(),
        })
    }

    fn job(&self, technique: Technique, instance: usize, configuration: usize) -> Option<Job> {
        let (program, pool) = match technique {
            Technique::Bare => (self.builds.plain.as_path(), None),
            Technique::Lasting(Stay::Woven) => (self.builds.plain.as_path(), Some(&self.lasting)),
            Technique::Lasting(Stay::Built(mark)) => {
                (self.builds.marked(Units::BlockDom, mark)?, None)
            }
            Technique::Local => (self.builds.plain.as_path(), Some(&self.own[instance])),
            Technique::Collective => (self.builds.plain.as_path(), Some(&self.shared)),
        };
        let environment = pool.map(|pool| pool.environment.clone());
        Some(way::job(
            program,
            &self.configurations[configuration],
            environment.unwrap_or_default(),
        ))
    }

    /// What was seen, and whether all were armed.
    fn judge(&mut self, technique: Technique, outcome: &mut Outcome) -> Result<(), StudyError> {
        let pools = match technique {
            Technique::Local => &self.own[..outcome.instances.len()],
            Technique::Collective => std::slice::from_ref(&self.shared),
            Technique::Lasting(Stay::Woven) => std::slice::from_ref(&self.lasting),
            Technique::Bare | Technique::Lasting(_) => return Ok(()),
        };
        let mut armed = 0;
        for (number, pool) in pools.iter().enumerate() {
            let seen = pool.seen()?;
            armed += seen.armed;
            outcome.probes = Some(seen.probes);
            match technique {
                Technique::Local => outcome.instances[number].recorded = Some(seen.hit),
                _ => outcome.seen = Some(seen.hit),
            }
        }
        if armed != outcome.instances.len() as u64 {
            let program = self.builds.plain.display();
            let all = outcome.instances.len();
            self.faults
                .push(format!("{program}: {armed} of {all} instances were armed"));
        }
        Ok(())
    }
}

impl Deployer for Pools<'_> {
    fn source(&self) -> Source {
        Source::Pool
    }

    fn knows(&self, technique: Technique, deployment: Deployment) -> bool {
        match technique {
            // They do not mind each other; one deployment tells what they cost.
            Technique::Lasting(Stay::Woven) => deployment == Deployment::Sequential,
            Technique::Lasting(Stay::Built(mark)) => {
                deployment == Deployment::Sequential
                    && self.builds.marked(Units::BlockDom, mark).is_some()
            }
            _ => true,
        }
    }

    fn deploy(
        &mut self,
        technique: Technique,
        deployment: Deployment,
        picks: &[usize],
    ) -> Result<Outcome, StudyError> {
        for pool in self.own.iter().chain([&self.shared, &self.lasting]) {
            pool.renew()?;
        }
        let picked = picks.iter().enumerate();
        let jobs: Vec<Job> = picked
            .filter_map(|(n, &pick)| self.job(technique, n, pick))
            .collect();
        let mut totals = Vec::new();
        let mut after = |_| {
            totals.push(self.shared.seen()?.hit);
            Ok(())
        };
        let Deployed { ran, peak } =
            processes::deploy(self.meter, &jobs, deployment, self.duration, &mut after)?;
        let mut outcome = Outcome {
            peak,
            ..Outcome::default()
        };
        for (number, (&configuration, ran)) in picks.iter().zip(&ran).enumerate() {
            let fresh = |totals: &[u64]| {
                let before = number.checked_sub(1).map_or(0, |before| totals[before]);
                totals[number] - before
            };
            let known = technique == Technique::Collective && !totals.is_empty();
            outcome.instances.push(Instance {
                configuration,
                seconds: ran.measured.cpu,
                beside: None,
                operations: self.configurations[configuration].operations,
                recorded: known.then(|| fresh(&totals)),
                contacts: None,
            });
            if ran.told() != self.expected[configuration] {
                let program = self.builds.plain.display();
                self.faults.push(format!(
                    "{program}: an instance did not do what the program does"
                ));
            }
        }
        self.judge(technique, &mut outcome)?;
        Ok(outcome)
    }
}
