//! Deploying: instances in a pool, with a collector, and simulated.

use std::fs;

use tomo_plan::disposal::Workload;

use super::Laboratory;
use crate::disposal::fleet::collector::Collected;
use crate::disposal::fleet::pool::Pools;
use crate::disposal::fleet::server::Server;
use crate::disposal::fleet::simulated::Simulated;
use crate::disposal::fleet::{self, Costs, Curves, Source, draw, processes};
use crate::disposal::inputs::{Case, Task};
use crate::disposal::measure::Told;
use crate::disposal::numbers::median;
use crate::disposal::way::{Mark, Stay, Units, Way, job};
use crate::disposal::{Counts, Redundancy, StudyError, Timed};

/// A server that commits each request to a disk, on the same network: assumed, not measured.
const SERVICE: f64 = 200e-6;
const LATENCY: f64 = 300e-6;

impl Laboratory<'_> {
    /// Instances, from all sources.
    pub(super) fn deploy(&mut self) -> Result<(), StudyError> {
        let work = self.work;
        let known = self.looked_at(&work.configurations)?;
        self.in_a_pool(&known)?;
        self.with_a_collector(&known)?;
        let counted = known
            .into_iter()
            .map(|one| Some((one.counts?, one.seconds)));
        // Without builds that count there is nothing to simulate with.
        if let (Some(costs), Some(counted)) = (self.costs(), counted.collect::<Option<Vec<_>>>()) {
            self.simulated(costs, &counted)?;
        }
        Ok(())
    }

    fn in_a_pool(&mut self, known: &[Known]) -> Result<(), StudyError> {
        let folder = self.folder.join("fleet");
        fs::create_dir_all(&folder).map_err(StudyError::io(&folder))?;
        let (cases, instances) = (&self.work.configurations, self.effort.instances);
        let mut pools = Pools::new(
            &self.meter,
            &self.subject.builds,
            cases,
            known.iter().map(|one| one.told).collect(),
            instances,
            (&folder, &self.cache),
            seconds(known),
        )?;
        self.stage(
            "deploying instances that share a pool",
            fleet::deployments(&pools),
        );
        let name = &self.subject.name;
        let mut advance = || self.progress.advance(1);
        let deployed = fleet::deploy(name, &mut pools, cases.len(), instances, &mut advance)?;
        self.results.fleets.extend(deployed);
        self.results.faults.append(&mut pools.faults);
        Ok(())
    }

    fn with_a_collector(&mut self, known: &[Known]) -> Result<(), StudyError> {
        let folder = self.folder.join("collector");
        let (cases, instances) = (&self.work.configurations, self.effort.instances);
        let mut collected = Collected {
            meter: &self.meter,
            server: Server::start(self.meter.tomo(), &folder)?,
            name: &self.subject.name,
            program: &self.subject.builds.plain,
            configurations: cases,
            expected: known.iter().map(|one| one.told).collect(),
            folder: self.folder.join("installations"),
            cache: self.cache.clone(),
            duration: processes::at_the_peak(seconds(known)),
            campaigns: 0,
            curves: None,
            faults: Vec::new(),
        };
        let total = fleet::deployments(&collected);
        self.stage("deploying instances that talk to a collector", total);
        let name = &self.subject.name;
        let mut advance = || self.progress.advance(1);
        let deployed = fleet::deploy(name, &mut collected, cases.len(), instances, &mut advance)?;
        self.results.fleets.extend(deployed);
        self.results.curves.extend(collected.curves);
        self.results.faults.extend(collected.faults);
        Ok(())
    }

    fn simulated(&mut self, costs: Costs, counted: &[(Counts, f64)]) -> Result<(), StudyError> {
        let (cases, instances) = (&self.work.configurations, self.effort.instances);
        let name = &self.subject.name;
        for source in [Source::Simulated, Source::SimulatedLong] {
            let mut simulated = Simulated::new(counted, cases, costs, source);
            let deployed = fleet::deploy(name, &mut simulated, cases.len(), instances, &mut || ())?;
            self.results.fleets.extend(deployed);
        }
        let nanoseconds = |seconds: &f64| (seconds * 1e9) as u64;
        let runs = counted
            .iter()
            .map(|(counts, seconds)| counts.workload(nanoseconds(seconds)));
        let runs: Vec<Workload> = runs.collect();
        let picks = draw(cases.len(), instances, 0);
        let picked: Vec<&Workload> = picks.iter().map(|&pick| &runs[pick]).collect();
        self.results.curves.push(Curves::of(name, &picked, 1e9));
        self.results.costs.push((name.clone(), costs));
        Ok(())
    }

    /// What each configuration does, and how long it takes without probes.
    fn looked_at(&self, cases: &[Case]) -> Result<Vec<Known>, StudyError> {
        self.stage("looking at what instances do", cases.len());
        let one = |case: &Case| {
            let job = job(&self.subject.builds.plain, case, Vec::new());
            let ran = [
                self.meter.run(&job)?,
                self.meter.run(&job)?,
                self.meter.run(&job)?,
            ];
            self.progress.advance(1);
            Ok(Known {
                counts: self.counted(Units::BlockDom, case)?,
                seconds: median(ran.map(|ran| ran.measured.cpu)).unwrap_or_default(),
                told: ran[0].told(),
            })
        };
        cases.iter().map(one).collect()
    }

    /// What probes cost in this program, from the tables: marks from its longest row, disposal from the row
    /// with most processes.
    fn costs(&self) -> Option<Costs> {
        let of = |task: &Task| {
            let timed = self
                .results
                .timed
                .iter()
                .find(|one| one.task == task.name)?;
            let same = |one: &&Redundancy| one.task == task.name && one.units == Units::BlockDom;
            Some((timed, self.results.redundancy.iter().find(same)?))
        };
        let more = |timed: &Timed, way| Some(timed.overhead(way)? * timed.summary(Way::Bare)?.mean);
        let (long, executed) = of(self.work.tasks.first()?)?;
        let (suite, unique) = of(self.work.tasks.last()?)?;
        let mark = more(long, Way::Lasting(Units::BlockDom, Stay::Built(Mark::Call)))?
            / executed.executed as f64;
        let disposal = more(suite, Way::Armed(Units::BlockDom))? / unique.unique as f64;
        Some(Costs {
            mark: mark.max(0.0),
            disposal: disposal.max(0.0),
            service: SERVICE,
            latency: LATENCY,
        })
    }
}

/// What is known of a configuration.
struct Known {
    /// What it executes, if a build says so.
    counts: Option<Counts>,
    /// Seconds of the processor that it takes without probes.
    seconds: f64,
    told: Told,
}

/// How long configurations take, on average.
fn seconds(known: &[Known]) -> f64 {
    known.iter().map(|one| one.seconds).sum::<f64>() / known.len().max(1) as f64
}
