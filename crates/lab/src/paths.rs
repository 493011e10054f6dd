//! Selective path profiling, on every function of native programs.
//!
//! Source: Apiwattanapong, Harrold, *Selective Path Profiling*, PASTE 2002 (SPP), §4: how many probes it takes to tell
//! one path of a method from all others (Figure 6), or two to five (Figure 7), for each probe that telling all paths
//! apart takes (Ball, Larus). And what §4 leaves open, "the actual overhead": programs are run with such probes, and
//! timed.
//!
//! | file | what |
//! |---|---|
//! | `probes.rs` | how many probes there are |
//! | `overhead.rs` | what they cost |
//! | `page.rs` | tables, figures, the paper's words beside ours |

mod overhead;
mod page;
mod probes;

pub use overhead::Timed;
pub use page::render;
pub use probes::{Function, SIZES, function};

use std::path::Path;
use std::time::Instant;

use serde::Serialize;
use tomo_program::{LoadError, Progress, Request, load};

use crate::disposal::inputs::Scale;
use crate::disposal::{StudyError, Subject};

/// How much is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Effort {
    /// How much work a run does.
    pub scale: Scale,
    /// How often each way is timed.
    pub rounds: usize,
    /// How many selections of each size are drawn in a function.
    pub selections: usize,
}

/// All that was found.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Results {
    /// Functions with more than one path.
    pub functions: Vec<Function>,
    /// Per program: functions with just one path, and those with more than 64 bits number.
    pub others: Vec<(String, usize, usize)>,
    /// What probes cost.
    pub timed: Vec<Timed>,
    /// How long the study took.
    pub seconds: f64,
}

/// Studies `subjects` with the command `tomo`. Files are kept in `folder`.
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
    let mut results = Results::default();
    for (number, subject) in subjects.iter().enumerate() {
        progress.stage(&format!("{}: placing probes", subject.name), 0);
        count(subject, effort, &mut results)?;
        progress.stage(&format!("{}: timing", subject.name), 0);
        let own = folder.join(number.to_string());
        results
            .timed
            .extend(overhead::time(subject, effort, tomo, &own)?);
    }
    results.seconds = begin.elapsed().as_secs_f64();
    Ok(results)
}

fn count(subject: &Subject, effort: Effort, results: &mut Results) -> Result<(), StudyError> {
    let path = &subject.builds.plain;
    let request = Request {
        path,
        cache: None,
        refresh: false,
        whole: true,
    };
    let loaded = load(&request, &()).map_err(|error| StudyError::Model(path.clone(), error))?;
    let graphs = loaded.model.graphs();
    let damaged = |error| StudyError::Model(path.clone(), LoadError::Analysis(Box::new(error)));
    let graphs = graphs.map_err(damaged)?;
    let (mut single, mut numberless) = (0, 0);
    for view in graphs.functions() {
        let Some(graph) = view.flow_graph() else {
            continue;
        };
        // A function is drawn alike whatever others there are.
        let seed = view.entry().0;
        match function(&graph, effort.selections, seed) {
            Some(Ok(counted)) => results.functions.push(Function {
                program: subject.name.clone(),
                name: view.title(),
                ..counted
            }),
            Some(Err(_)) => numberless += 1,
            None => single += 1,
        }
    }
    results
        .others
        .push((subject.name.clone(), single, numberless));
    Ok(())
}
