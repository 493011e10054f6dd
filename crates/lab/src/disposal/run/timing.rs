//! Timing: every way to run a program, in turn.

use std::fs;
use std::path::{Path, PathBuf};

use tomo_launch::How;

use super::Laboratory;
use crate::disposal::armed::{self, Armed};
use crate::disposal::inputs::{Case, Task};
use crate::disposal::measure::{Job, Ran};
use crate::disposal::way::{Stay, Units, Way, job};
use crate::disposal::{StudyError, Timed};

impl Laboratory<'_> {
    /// Every way in turn, case by case, round by round.
    pub(super) fn time(&mut self, task: &Task, pools: &[(How, Armed)]) -> Result<(), StudyError> {
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
}

/// The only record below a folder of runs.
fn record_below(folder: &Path) -> Option<PathBuf> {
    let runs = fs::read_dir(folder).ok()?.flatten();
    let mut files = runs.flat_map(|run| fs::read_dir(run.path()).into_iter().flatten().flatten());
    let is_record = |path: &PathBuf| path.extension().is_some_and(|kind| kind == "record");
    files.find_map(|file| Some(file.path()).filter(is_record))
}
