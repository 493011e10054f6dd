//! Probes distributed over the instances of a program, to see which chains of calls run in the field.
//!
//! Source: Diep, Cohen, Elbaum, *Probe Distribution Techniques to Profile Events in Deployed Software*, ISSRE 2006 (PDT),
//! §5 and §6: ten techniques at four bounds, ten times each, on what 36 instances did; how many of the chains that could
//! have been seen were (Figure 2), how many were reported falsely (Figure 3), and whether that is chance (Table 3).
//!
//! | PDT | here |
//! |---|---|
//! | MyIE, 36 sites, 378 sessions | programs of the study, 36 instances with three runs each, each run with a configuration of its own |
//! | complete traces of blocks, in which chains are found where all their units follow each other | exact chains of calls (`tomo chains`), and marks: a chain is reported of a run in which all its probes were hit |
//! | chains of the call graph from roots to leaves, by hand | direct calls; roots are functions that nobody calls directly, or that were seen to be called otherwise |
//! | the list of events, from a walk of the call graph | chains that twelve runs in house have shown: a native program's call graph has too many to list |
//! | clusters: a root and all that it reaches | the same |
//! | bounds: random probes added until the overhead is met | the share of all probes that costs so much on the average, from the measured overhead of all |
//!
//! | file | what |
//! |---|---|
//! | `chains.rs` | which chains ran |
//! | `trial.rs` | what each technique would have shown |
//! | `anova.rs` | whether differences are chance |
//! | `page.rs` | tables, figures, the paper's numbers beside ours |

pub mod anova;
mod chains;
mod page;
mod trial;

pub use chains::{Field, Walk};
pub use page::render;
pub use trial::{BOUNDS, Bounded, Kind, Technique, Trial};

use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::time::Instant;

use serde::Serialize;
use tomo_program::{LoadError, Progress, Request, load};

use crate::disposal::inputs::{Case, Scale};
use crate::disposal::measure::{Job, Meter};
use crate::disposal::numbers::median;
use crate::disposal::way::job;
use crate::disposal::{StudyError, Subject};

/// How much is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Effort {
    /// How much work the run does whose overhead is measured.
    pub scale: Scale,
    /// How often the overhead is measured.
    pub rounds: usize,
    /// How many instances there are.
    pub instances: usize,
    /// How often each technique is tried at each bound.
    pub repetitions: usize,
    /// Bad moves in succession that end a climb.
    pub frozen: u64,
}

/// A program's part of the results.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Studied {
    /// The program.
    pub program: String,
    /// How many units can have probes.
    pub units: usize,
    /// How many chains ran in the field, in house, and in both.
    pub chains: [usize; 3],
    /// How many clusters there are, and how many units the largest has.
    pub clusters: [usize; 2],
    /// What all probes cost, as a ratio of the processor's time.
    pub overhead: f64,
    /// The bounds.
    pub bounds: Vec<Bounded>,
    /// All that was tried.
    pub trials: Vec<Trial>,
}

/// All that was found.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Results {
    /// Per program.
    pub studied: Vec<Studied>,
    /// How many instances there were.
    pub instances: usize,
    /// How often each technique was tried at each bound.
    pub repetitions: usize,
    /// Bad moves in succession that ended a climb.
    pub frozen: u64,
    /// How long the study took.
    pub seconds: f64,
}

/// How many runs there are in house.
const IN_HOUSE: usize = 12;

/// Studies those of `subjects` that serve requests, with the command `tomo`. Files are kept in `folder`.
///
/// # Errors
/// Where something cannot be run or read.
pub fn run(
    subjects: &[Subject],
    effort: Effort,
    tomo: &Path,
    folder: &Path,
    progress: &dyn Progress,
) -> Result<Results, StudyError> {
    let begin = Instant::now();
    let mut results = Results {
        instances: effort.instances,
        repetitions: effort.repetitions,
        frozen: effort.frozen,
        ..Results::default()
    };
    for (number, subject) in subjects.iter().enumerate() {
        let own = folder.join(number.to_string());
        let inputs = own.join("inputs");
        // A full suite, however much work the long run does.
        let work = subject.inputs.write(&subject.name, &inputs, Scale(1000));
        let work = work.map_err(StudyError::io(&inputs))?;
        let long = subject
            .inputs
            .write(&subject.name, &own.join("long"), effort.scale);
        let long = long.map_err(StudyError::io(&inputs))?;
        let (Some(suite), Some(long)) = (work.tasks.get(1), long.tasks.first()) else {
            continue;
        };
        let site = Site {
            subject,
            meter: Meter::new(tomo, &own),
            folder: &own,
            progress,
        };
        results
            .studied
            .push(site.study(&suite.cases, &long.cases, effort)?);
    }
    results.seconds = begin.elapsed().as_secs_f64();
    Ok(results)
}

/// A program under study.
struct Site<'s> {
    subject: &'s Subject,
    meter: Meter,
    folder: &'s Path,
    progress: &'s dyn Progress,
}

impl Site<'_> {
    fn study(&self, suite: &[Case], long: &[Case], effort: Effort) -> Result<Studied, StudyError> {
        let name = &self.subject.name;
        self.progress
            .stage(&format!("{name}: chains of calls"), suite.len() as u64);
        let (field_runs, house_runs) = suite.split_at(suite.len().saturating_sub(IN_HOUSE));
        let path = &self.subject.builds.plain;
        let request = Request {
            path,
            cache: None,
            refresh: false,
            whole: true,
        };
        let model = |error| StudyError::Model(path.clone(), error);
        let loaded = load(&request, &()).map_err(model)?;
        let graphs = loaded.model.graphs();
        let graphs = graphs.map_err(|error| model(LoadError::Analysis(Box::new(error))))?;
        let mut walk = Walk::of(&graphs)?;
        for case in house_runs {
            walk.in_house(&self.chains(case)?)?;
        }
        for (at, case) in field_runs.iter().enumerate() {
            walk.in_field(at % effort.instances, &self.chains(case)?)?;
            self.progress.advance(1);
        }
        let field = walk.finish()?;
        let overhead = self.overhead(long, effort.rounds)?;
        let mut studied = Studied {
            program: name.clone(),
            units: field.units,
            chains: field.chains,
            clusters: [
                field.clusters.len(),
                field.clusters.iter().map(Vec::len).max().unwrap_or(0),
            ],
            overhead,
            ..Studied::default()
        };
        self.progress
            .stage(&format!("{name}: distributing probes"), BOUNDS.len() as u64);
        for share in BOUNDS {
            let (bounded, trials) = trial::at(&field, share, overhead, effort)?;
            studied.bounds.push(bounded);
            studied.trials.extend(trials);
            self.progress.advance(1);
        }
        Ok(studied)
    }

    /// The program under `tomo chains`, which writes what it saw to `file`, if there is one.
    fn observed(&self, case: &Case, file: Option<&Path>) -> Job {
        let own = job(&self.subject.builds.plain, case, Vec::new());
        let mut arguments: Vec<OsString> = vec!["chains".into(), "-o".into()];
        arguments.push(self.folder.join("runs").into());
        if let Some(file) = file {
            arguments.extend(["--json".into(), file.into()]);
        }
        arguments.extend(["--".into(), self.subject.builds.plain.clone().into()]);
        arguments.extend(own.arguments);
        Job {
            program: self.meter.tomo().into(),
            arguments,
            environment: vec![("TOMO_CACHE_DIR".into(), self.folder.join("cache").into())],
            stdin: own.stdin,
        }
    }

    /// What `tomo chains` tells of a run.
    fn chains(&self, case: &Case) -> Result<Vec<u8>, StudyError> {
        let file = self.folder.join("chains.json");
        // What an earlier run left must not be taken for this one's.
        let _ = fs::remove_file(&file);
        self.meter.run(&self.observed(case, Some(&file)))?;
        let runs = self.folder.join("runs");
        fs::remove_dir_all(&runs).map_err(StudyError::io(&runs))?;
        fs::read(&file).map_err(StudyError::io(&file))
    }

    /// What all probes cost: the median of the ratios.
    fn overhead(&self, cases: &[Case], rounds: usize) -> Result<f64, StudyError> {
        let mut ratios = Vec::new();
        for round in 0..=rounds {
            let (mut alone, mut observed) = (0.0, 0.0);
            for case in cases {
                let bare = job(&self.subject.builds.plain, case, Vec::new());
                alone += self.meter.run(&bare)?.measured.cpu;
                observed += self.meter.run(&self.observed(case, None))?.measured.cpu;
            }
            // The first round fills caches.
            if round > 0 {
                ratios.push(observed / alone);
            }
        }
        Ok(median(ratios).unwrap_or(1.0))
    }
}
