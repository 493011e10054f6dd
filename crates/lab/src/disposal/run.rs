//! The study itself: what is run, in which order.

mod deploying;
mod timing;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use object::{Object as _, ObjectSection as _};
use tomo_launch::How;
use tomo_program::Progress;

use super::armed::Armed;
use super::inputs::{Case, Scale, Task, Work};
use super::measure::Meter;
use super::way::{Mark, Units, job};
use super::{Counts, Placed, Redundancy, Results, StudyError, Subject, fleet};

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
    for (number, subject) in subjects.iter().enumerate() {
        let own = folder.join(number.to_string());
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
}

/// How many flags a build has: a byte each, in a section of their own.
fn flags(program: &Path) -> Result<u64, StudyError> {
    let bytes = fs::read(program).map_err(StudyError::io(program))?;
    let file = object::File::parse(&*bytes)
        .map_err(|error| StudyError::Io(program.into(), std::io::Error::other(error)))?;
    let section = file.section_by_name("__sancov_bools");
    Ok(section.map_or(0, |section| section.size()))
}
