//! The study itself: what is run, in which order.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use tomo_isolate::{
    Cases, IsolateError, Options, Session, Stage, StepMade, Success, Towards, Watch,
};
use tomo_launch::Agent;
use tomo_program::Progress;

use super::IsolationError;
use super::results::{Real, Refused, Results, Studied, Walked};
use super::sampled::sampled;
use super::several::several;
use super::subject::{Subject, Variant};
use super::ways::{RUNS, USUAL, all, curves};
use super::workshop::Workshop;

/// Where the study is made.
pub struct Laboratory<'l> {
    /// Where variants are built and searched.
    pub workshop: Workshop<'l>,
    /// What lives in the programs.
    pub agent: Agent,
    /// Where models are kept.
    pub cache: PathBuf,
    /// Who is told how far it is.
    pub progress: &'l dyn Progress,
}

/// Steps that a search on real runs makes at most.
const MOST_REAL: usize = 8;

/// Studies all variants of `subjects`.
///
/// # Errors
/// Where nothing can be written. What is wrong with a variant is in the results.
pub fn run(subjects: &[Subject], laboratory: &Laboratory<'_>) -> Result<Results, IsolationError> {
    let begin = Instant::now();
    let mut results = Results {
        processors: std::thread::available_parallelism().map_or(1, usize::from),
        ..Results::default()
    };
    for subject in subjects {
        for (number, variant) in subject.variants.iter().enumerate() {
            let name = format!("{}: {}", subject.name, variant.name);
            laboratory.progress.stage(&name, 0);
            match laboratory.study(subject, variant, number == 0) {
                Ok(studied) => results.studied.push(studied),
                Err(error) => results.refused.push(Refused {
                    subject: subject.name.clone(),
                    variant: variant.name.clone(),
                    why: error.to_string(),
                }),
            }
        }
        laboratory
            .progress
            .stage(&format!("{}: two faults", subject.name), 0);
        match several(laboratory, subject) {
            Ok(found) => results.several.extend(found),
            Err(error) => results.refused.push(Refused {
                subject: subject.name.clone(),
                variant: "two faults at once".into(),
                why: error.to_string(),
            }),
        }
    }
    results.seconds = begin.elapsed().as_secs_f64();
    Ok(results)
}

impl Laboratory<'_> {
    /// A search of the program with these faults, at its beginning.
    pub(super) fn session(
        &self,
        subject: &Subject,
        faults: &[&Variant],
    ) -> Result<Session, IsolationError> {
        let reference = self.workshop.program(subject, &[])?;
        let program = self.workshop.program(subject, faults)?;
        let cases = self.workshop.cases(subject, &reference)?;
        let options = Options {
            command: vec![program.clone().into()],
            cases: held_against(&cases, &reference)?,
            folder: program.with_file_name("search"),
            cache: self.cache.clone(),
            runs: RUNS,
            survey: false,
            jobs: std::thread::available_parallelism().map_or(1, usize::from),
            towards: Towards::Forward,
            score: USUAL.score,
            seed: 1,
            steps: MOST_REAL,
            most: u32::MAX,
            start: Vec::new(),
            focus: Vec::new(),
            exclude: Vec::new(),
            paths: false,
        };
        let _ = fs::remove_dir_all(&options.folder);
        Ok(Session::open(options, self.agent.clone(), &mut Silent)?)
    }

    /// Which cases of the program with these faults are successes.
    ///
    /// # Errors
    /// Where it does not build, or all of its cases end alike.
    pub fn labels(
        &self,
        subject: &Subject,
        faults: &[&Variant],
    ) -> Result<Vec<bool>, IsolationError> {
        let ends = self.session(subject, faults)?.ends();
        Ok(ends.into_iter().map(|end| end.1).collect())
    }

    fn study(
        &self,
        subject: &Subject,
        variant: &Variant,
        is_first: bool,
    ) -> Result<Studied, IsolationError> {
        let mut session = self.session(subject, &[variant])?;
        let complete = session.complete()?;
        let stage = session.stage(&complete)?;
        let (observable, sites) = stage.sites();
        let failures = failures(&session);
        let best = stage.best().first().map_or(0.0, |row| stage.scores()[*row]);
        let as_good = |row: &&usize| stage.scores()[**row] > best - 1e-9;
        let walk = stage.walk()?;
        let rehearsed = is_first.then(|| USUAL.rehearse(&stage, true));
        let studied = Studied {
            subject: subject.name.clone(),
            variant: variant.name.clone(),
            crashes: variant.crashes,
            is_far: variant.is_far,
            what: variant.what.clone(),
            lines: lines(&subject_source(self, subject, variant)?),
            sites,
            observable,
            entries: session.surveyed_functions().count(),
            failures,
            successes: session.ends().len() - failures,
            best,
            equals: stage.best().iter().filter(as_good).count(),
            slower: complete.slower,
            searched: all(&stage),
            sampled: sampled(&session, &complete, &stage)?,
            walked: Some(Walked {
                found: walk.found,
                seen: walk.seen,
                steps: walk.steps,
                stuck: walk.stuck,
            }),
            real: None,
            curves: match is_first {
                true => curves(&stage),
                false => Vec::new(),
            },
        };
        let real = match rehearsed {
            Some(rehearsed) => Some(real(&mut session, &rehearsed)?),
            None => None,
        };
        Ok(Studied { real, ..studied })
    }
}

/// The same search on real runs.
fn real(session: &mut Session, rehearsed: &tomo_isolate::Rehearsal) -> Result<Real, IsolateError> {
    let answer = session.search(&mut Silent)?;
    let made = answer.steps.iter().map(|step| step.sites);
    let rehearsed = rehearsed.steps.iter().map(|step| step.sites);
    let slower: Vec<f64> = answer.steps.iter().filter_map(|step| step.slower).collect();
    let sum: f64 = slower.iter().sum();
    Ok(Real {
        steps: answer.steps.len(),
        as_rehearsed: made
            .zip(rehearsed)
            .all(|(made, rehearsed)| made == rehearsed),
        best: answer
            .findings
            .first()
            .map_or(0.0, |one| one.importance.value),
        complete: answer.complete,
        slower: (!slower.is_empty()).then(|| sum / slower.len() as f64),
        verdict: answer.verdict(),
    })
}

pub(super) fn failures(session: &Session) -> usize {
    let ends = session.ends();
    ends.iter().filter(|(_, passed)| !passed).count()
}

/// The cases in this file; where they do not say how success is told, it is what the reference does.
fn held_against(path: &Path, reference: &Path) -> Result<Cases, IsolationError> {
    let mut cases = Cases::read(path)?;
    let text = fs::read_to_string(path).map_err(IsolationError::io(path))?;
    if !text.contains("%success") && !text.contains("=>") {
        for case in &mut cases.cases {
            case.success = Success::Like(vec![reference.into()]);
        }
    }
    Ok(cases)
}

fn subject_source(
    laboratory: &Laboratory<'_>,
    subject: &Subject,
    variant: &Variant,
) -> Result<PathBuf, IsolationError> {
    let program = laboratory.workshop.program(subject, &[variant])?;
    Ok(program.with_file_name("source"))
}

/// Lines of C in a folder.
fn lines(folder: &Path) -> usize {
    let Ok(entries) = fs::read_dir(folder) else {
        return 0;
    };
    let each = entries.flatten().map(|entry| entry.path());
    each.map(
        |path| match path.extension().and_then(|kind| kind.to_str()) {
            _ if path.is_dir() => lines(&path),
            Some("c" | "h") => {
                fs::read(&path).map_or(0, |text| text.iter().filter(|byte| **byte == b'\n').count())
            }
            _ => 0,
        },
    )
    .sum()
}

/// Nobody is told how single searches go.
pub(super) struct Silent;

impl Watch for Silent {
    fn note(&mut self, _: &str) {}

    fn step(&mut self, _: usize, _: &StepMade, _: usize, _: usize) {}
}

/// The rows that are as good as the best.
pub(super) fn goal(stage: &Stage<'_>) -> Vec<usize> {
    let best = stage.best().first().map_or(0.0, |row| stage.scores()[*row]);
    let rows = stage.best().iter().copied();
    rows.filter(|row| stage.scores()[*row] > best - 1e-9)
        .collect()
}
