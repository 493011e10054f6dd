//! The study itself: what is run, in which order.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use object::{Object as _, ObjectSection as _};
use tomo_launch::How;
use tomo_plan::disposal::Workload;
use tomo_program::Progress;

use super::armed::{self, Armed};
use super::fleet::collector::Collected;
use super::fleet::pool::Pools;
use super::fleet::processes;
use super::fleet::server::Server;
use super::fleet::simulated::Simulated;
use super::fleet::{self, Costs, Curves, Source, draw};
use super::inputs::{Case, Scale, Task, Work};
use super::measure::{Job, Meter, Ran, Told};
use super::numbers::median;
use super::way::{Mark, Stay, Units, Way, job};
use super::{Counts, Placed, Redundancy, Results, StudyError, Subject, Timed};

/// How much is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Effort {
    /// How much work a run does.
    pub scale: Scale,
    /// Rounds, of which each takes every way once. One more goes before them and is not counted.
    pub rounds: usize,
    /// Instances of a deployment.
    pub instances: usize,
}

impl Default for Effort {
    /// Five runs each (DIS §3.2), 37 instances (§4.2).
    fn default() -> Self {
        Self {
            scale: Scale(1000),
            rounds: 5,
            instances: fleet::INSTANCES,
        }
    }
}

/// A server that commits each request to a disk, on the same network: assumed, not measured.
const SERVICE: f64 = 200e-6;
const LATENCY: f64 = 300e-6;

/// Studies `subjects` with the command `tomo`. All files are kept in `folder`, which should lie in memory.
///
/// # Errors
/// Where something cannot be run or read at all. What was run and did not do what it should is in
/// [`Results::faults`].
pub fn run(
    subjects: &[Subject],
    effort: Effort,
    tomo: &Path,
    folder: &Path,
    progress: &dyn Progress,
) -> Result<Results, StudyError> {
    let begin = Instant::now();
    let mut results = Results {
        processors: std::thread::available_parallelism().map_or(1, usize::from),
        ..Results::default()
    };
    for subject in subjects {
        let own = folder.join(&subject.name);
        let inputs = own.join("inputs");
        let work = subject.inputs.write(&subject.name, &inputs, effort.scale);
        Laboratory {
            subject,
            work: &work.map_err(StudyError::io(inputs))?,
            effort,
            meter: Meter::new(tomo, &own),
            cache: folder.join("cache"),
            folder: own,
            progress,
            results: &mut results,
        }
        .study()?;
    }
    results.seconds = begin.elapsed().as_secs_f64();
    Ok(results)
}

/// One program under study.
struct Laboratory<'s> {
    subject: &'s Subject,
    work: &'s Work,
    effort: Effort,
    meter: Meter,
    cache: PathBuf,
    folder: PathBuf,
    progress: &'s dyn Progress,
    results: &'s mut Results,
}

impl Laboratory<'_> {
    fn study(&mut self) -> Result<(), StudyError> {
        let pools = self.pools()?;
        for task in &self.work.tasks {
            self.count(task)?;
            self.time(task, &pools)?;
        }
        if !self.work.configurations.is_empty() {
            self.deploy()?;
        }
        Ok(())
    }

    fn stage(&self, what: &str, total: usize) {
        let text = format!("{}: {what}", self.subject.name);
        self.progress.stage(&text, total as u64);
    }

    /// One pool for each kind of units, with probes that go and with such that stay; Table 1 by the way.
    fn pools(&mut self) -> Result<Vec<(How, Armed)>, StudyError> {
        self.stage("weaving", 2 * Units::ALL.len());
        let mut pools = Vec::new();
        for (number, units) in Units::ALL.into_iter().enumerate() {
            let make = |stays: bool| {
                let folder = self.folder.join(format!("pool-{number}-{stays}"));
                let how = units.how(stays);
                let pool = Armed::new(&self.subject.builds.plain, how, &folder, &self.cache);
                self.progress.advance(1);
                pool.map(|pool| (how, pool))
            };
            let (goes, stays) = (make(false)?, make(true)?);
            let marks = self.subject.builds.marked(units, Mark::Flag);
            self.results.placed.push(Placed {
                program: self.subject.name.clone(),
                units,
                ours: goes.1.seen()?.probes,
                staying: stays.1.staying()?,
                marks: marks.map(flags).transpose()?,
            });
            pools.extend([goes, stays]);
        }
        Ok(pools)
    }

    /// Redundant probe executions of a row's runs.
    fn count(&mut self, task: &Task) -> Result<(), StudyError> {
        self.stage("counting executions of probes", Units::ALL.len());
        for units in Units::ALL {
            let runs = task.cases.iter().map(|case| self.counted(units, case));
            let runs: Vec<Option<Counts>> = runs.collect::<Result<_, _>>()?;
            if let Some(runs) = runs.iter().map(Option::as_ref).collect::<Option<Vec<_>>>() {
                let sum = Redundancy::of(&task.name, units, runs);
                self.results.redundancy.push(sum);
            }
            self.progress.advance(1);
        }
        Ok(())
    }

    /// What a run executes; none without a build that says it.
    fn counted(&self, units: Units, case: &Case) -> Result<Option<Counts>, StudyError> {
        let Some(program) = self.subject.builds.marked(units, Mark::Call) else {
            return Ok(None);
        };
        let path = self.folder.join("counts");
        // What an earlier run left must not be taken for this one's.
        let _ = fs::remove_file(&path);
        let variable = ("TOMO_STUDY_COUNTS".into(), path.clone().into());
        self.meter.run(&job(program, case, vec![variable]))?;
        Counts::read(&path).map(Some)
    }

    /// Every way in turn, case by case, round by round.
    fn time(&mut self, task: &Task, pools: &[(How, Armed)]) -> Result<(), StudyError> {
        let ways: Vec<Way> = Way::all().filter(|way| self.can(*way)).collect();
        let what = format!("timing {}, in {} ways", task.name, ways.len());
        self.stage(&what, (self.effort.rounds + 1) * task.cases.len());
        let mut sums = vec![vec![0.0; self.effort.rounds]; ways.len()];
        let mut wrong: Vec<u64> = vec![0; ways.len()];
        for case in &task.cases {
            let mut expected = None;
            for round in 0..=self.effort.rounds {
                // Whoever comes first in a round finds caches colder than the next: take turns.
                for turn in 0..ways.len() {
                    let which = (turn + round) % ways.len();
                    let ran = self.once(ways[which], case, pools)?;
                    wrong[which] += u64::from(*expected.get_or_insert(ran.told()) != ran.told());
                    // The first round fills caches, and bakes what is missing.
                    if let Some(round) = round.checked_sub(1) {
                        sums[which][round] += ran.measured.cpu;
                    }
                }
                self.progress.advance(1);
            }
        }
        for (way, wrong) in ways.iter().zip(wrong).filter(|(_, wrong)| *wrong > 0) {
            let fault = format!(
                "{}: {wrong} runs of {way:?} did not do what the program does",
                task.name
            );
            self.results.faults.push(fault);
        }
        self.results.timed.push(Timed {
            task: task.name.clone(),
            runs: task.cases.len(),
            samples: ways.into_iter().zip(sums).collect(),
        });
        Ok(())
    }

    fn can(&self, way: Way) -> bool {
        match way {
            Way::Lasting(units, Stay::Built(mark)) => {
                self.subject.builds.marked(units, mark).is_some()
            }
            _ => true,
        }
    }

    /// One run, one way. Whether it was observed where it should be is looked at afterwards.
    fn once(&mut self, way: Way, case: &Case, pools: &[(How, Armed)]) -> Result<Ran, StudyError> {
        let plain = &self.subject.builds.plain;
        match way {
            Way::Bare | Way::Again => self.meter.run(&job(plain, case, Vec::new())),
            Way::Lasting(units, Stay::Built(mark)) => {
                let program = self.subject.builds.marked(units, mark).unwrap_or(plain);
                self.meter.run(&job(program, case, Vec::new()))
            }
            Way::Covered(units) => self.covered(units, case),
            Way::Armed(units) => self.armed(way, units.how(false), case, pools),
            Way::Lasting(units, Stay::Woven) => self.armed(way, units.how(true), case, pools),
        }
    }

    fn armed(
        &mut self,
        way: Way,
        how: How,
        case: &Case,
        pools: &[(How, Armed)],
    ) -> Result<Ran, StudyError> {
        let plain = &self.subject.builds.plain;
        let pool = pools.iter().find(|(one, _)| *one == how);
        let Some((_, pool)) = pool else {
            return Err(StudyError::NotArmed(plain.clone(), "no pool".into()));
        };
        pool.renew()?;
        let ran = self
            .meter
            .run(&job(plain, case, pool.environment.clone()))?;
        self.judge(way, pool.seen()?);
        Ok(ran)
    }

    fn covered(&mut self, units: Units, case: &Case) -> Result<Ran, StudyError> {
        let plain = &self.subject.builds.plain;
        let output = self.folder.join("out");
        let mut job: Job = job(plain, case, Vec::new());
        let options = ["cover", "--output"].map(Into::into);
        let more = units.options().map(Into::into);
        let rest = ["--".into(), plain.clone().into_os_string()];
        let mut arguments: Vec<_> = options.into_iter().chain([output.clone().into()]).collect();
        arguments.extend(more.into_iter().chain(rest));
        arguments.append(&mut job.arguments);
        job.arguments = arguments;
        job.program = self.meter.tomo().into();
        job.environment = vec![("TOMO_CACHE_DIR".into(), self.cache.clone().into())];
        let ran = self.meter.run(&job)?;
        let seen = record_below(&output)
            .map(|record| armed::read(&record))
            .transpose()?;
        let way = Way::Covered(units);
        match seen {
            Some(seen) => self.judge(way, seen),
            None => self.fault(way, "left no record"),
        }
        fs::remove_dir_all(&output).map_err(StudyError::io(&output))?;
        Ok(ran)
    }

    fn judge(&mut self, way: Way, seen: armed::Seen) {
        if seen.armed == 0 || seen.refused > 0 || seen.hit == 0 {
            self.fault(way, "was not observed");
        }
    }

    fn fault(&mut self, way: Way, what: &str) {
        let fault = format!("{}: a run of {way:?} {what}", self.subject.name);
        self.results.faults.push(fault);
    }

    /// Instances: in a pool, and simulated.
    fn deploy(&mut self) -> Result<(), StudyError> {
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

/// The only record below a folder of runs.
fn record_below(folder: &Path) -> Option<PathBuf> {
    let runs = fs::read_dir(folder).ok()?.flatten();
    let mut files = runs.flat_map(|run| fs::read_dir(run.path()).into_iter().flatten().flatten());
    let is_record = |path: &PathBuf| path.extension().is_some_and(|kind| kind == "record");
    files.find_map(|file| Some(file.path()).filter(is_record))
}

/// How many flags a build has: a byte each, in a section of their own.
fn flags(program: &Path) -> Result<u64, StudyError> {
    let bytes = fs::read(program).map_err(StudyError::io(program))?;
    let file = object::File::parse(&*bytes)
        .map_err(|error| StudyError::Io(program.into(), std::io::Error::other(error)))?;
    let section = file.section_by_name("__sancov_bools");
    Ok(section.map_or(0, |section| section.size()))
}
