//! Traces put together from several runs, on native programs.
//!
//! Source: Saha, Dhoolia, Paul, *Distributed Program Tracing*, ESEC/FSE 2013 (DPT), §6: what distributing witnesses
//! over machines costs when it is planned (cost of distribution) and when the program runs (cost of collection), for
//! three strategies, weights by estimate and by trace, and bounded profiles (Figures 12 to 16).
//!
//! | DPT | here |
//! |---|---|
//! | 12 ABAP programs, one trace each | the programs of `tests/subjects`, with several inputs each |
//! | hits: the trace intersected with the profile | the same, from exact counts of blocks and ways (`tomo count`) |
//! | jobs of diamonds and cycles (Figure 7) | ours, and the printed algorithm where diamonds can be listed |
//! | half a second a hit | hits, which do not depend on the machine; times are said as such |
//!
//! | file | what |
//! |---|---|
//! | `subject.rs` | programs and inputs |
//! | `function.rs` | functions, and how often everything in them ran |
//! | `distributed.rs` | witnesses distributed in all ways, and what that costs |
//! | `recorded.rs` | what real runs record |
//! | `paper.rs` | the paper's figures |
//! | `page.rs` | tables and plots |

mod distributed;
mod function;
mod page;
mod paper;
mod recorded;
mod subject;

pub use distributed::{Cost, Field, Hits, Planned, STRATEGIES, Shapes, Way, Weights, Whose, ways};
pub use function::{Counts, Function, counts, functions};
pub use page::render;
pub use recorded::Recorded;
pub use subject::{Input, Subject, prepare};

use std::path::Path;
use std::time::Instant;

use rayon::prelude::*;
use serde::Serialize;
use tomo_plan::witnesses::Place;
use tomo_program::{LoadError, Progress, Request, load};

use crate::disposal::StudyError;
use recorded::Site;

/// How much is done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Effort {
    /// Machines at most.
    pub machines: u32,
    /// Over how many runs witnesses are distributed that are really hit.
    pub runs: u32,
    /// How many witnesses a profile may have.
    pub bounds: Vec<u32>,
}

/// A program and an input.
#[derive(Clone, Debug, Serialize)]
pub struct Pair {
    /// The program.
    pub program: String,
    /// The input's number, from 1.
    pub number: usize,
    /// What the program does with it.
    pub input: String,
    /// Functions under study, and all.
    pub functions: [usize; 2],
    /// Blocks: how many there are, how many ran, how often.
    pub blocks: [u64; 3],
    /// Diamonds and cycles.
    pub shapes: Shapes,
    /// What was distributed.
    pub costs: Vec<Cost>,
    /// Ways for which a profile would have had to be larger than the bound.
    pub refused: Vec<Way>,
    /// Seconds for placing witnesses by its trace, and for distributing them in all ways.
    pub seconds: [f64; 2],
}

/// All that was found.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Results {
    /// Programs with their inputs.
    pub pairs: Vec<Pair>,
    /// What real runs recorded.
    pub recorded: Vec<Recorded>,
    /// How long the study took.
    pub seconds: f64,
}

/// Studies `subjects` with the command `tomo`. Files are kept in `folder`.
///
/// # Errors
/// Where something cannot be run or read.
pub fn run(
    subjects: &[Subject],
    effort: &Effort,
    tomo: &Path,
    folder: &Path,
    progress: &dyn Progress,
) -> Result<Results, StudyError> {
    let begin = Instant::now();
    let mut results = Results::default();
    for subject in subjects {
        let site = Site { tomo, folder };
        study(subject, effort, &site, progress, &mut results)?;
    }
    results.seconds = begin.elapsed().as_secs_f64();
    Ok(results)
}

fn study(
    subject: &Subject,
    effort: &Effort,
    site: &Site<'_>,
    progress: &dyn Progress,
    results: &mut Results,
) -> Result<(), StudyError> {
    let name = &subject.name;
    progress.stage(&format!("{name}: counting"), subject.inputs.len() as u64);
    let request = Request {
        path: &subject.program,
        cache: None,
        refresh: false,
        whole: true,
    };
    let model = |error| StudyError::Model(subject.program.clone(), error);
    let loaded = load(&request, &()).map_err(model)?;
    let graphs = loaded.model.graphs();
    let graphs = graphs.map_err(|error| model(LoadError::Analysis(Box::new(error))))?;
    let all = functions(&graphs);
    let mut counted = Vec::new();
    let mut weights = Vec::new();
    for input in &subject.inputs {
        let (document, run) = site.counted(subject, input)?;
        counted.push(counts(&all, &document)?);
        weights.push(run);
        progress.advance(1);
    }
    let known = all.into_iter().filter(|function| {
        let entry = function.entry();
        counted.iter().all(|counts| counts.contains_key(&entry))
    });
    let field = Field::of(known.collect()).map_err(StudyError::Program)?;
    progress.stage(&format!("{name}: distributing"), counted.len() as u64 + 1);
    let hits: Vec<Hits> = counted.iter().map(|counts| field.hits(counts)).collect();
    let mut pairs = compared(&field, &hits, effort, progress)?;
    for (pair, input) in pairs.iter_mut().zip(&subject.inputs) {
        pair.program.clone_from(name);
        pair.input.clone_from(&input.title);
        pair.functions[1] = graphs.functions().count();
    }
    results.pairs.extend(pairs);
    progress.stage(&format!("{name}: recording"), subject.inputs.len() as u64);
    for (input, weights) in subject.inputs.iter().zip(weights) {
        let recorded = site.recorded(subject, input, &weights, effort.runs)?;
        results.recorded.push(recorded);
        progress.advance(1);
    }
    Ok(())
}

/// A program's functions, distributed in all ways, with what was hit of each of its inputs.
///
/// # Errors
/// Where ways cannot be told apart.
pub fn compared(
    field: &Field,
    hits: &[Hits],
    effort: &Effort,
    progress: &dyn Progress,
) -> Result<Vec<Pair>, StudyError> {
    let estimated = field.place_by_estimate().map_err(StudyError::Witnesses)?;
    let every: Vec<&Hits> = hits.iter().collect();
    let by_estimate = all_ways(&estimated, Weights::Estimate, effort, &every);
    progress.advance(1);
    let mut pairs = Vec::new();
    for (at, own) in hits.iter().enumerate() {
        let begin = Instant::now();
        let planned = field.place(own).map_err(StudyError::Witnesses)?;
        let placing = begin.elapsed().as_secs_f64();
        let by_trace = all_ways(&planned, Weights::Trace, effort, &[own]);
        let seconds = [placing, begin.elapsed().as_secs_f64() - placing];
        let mut pair = Pair {
            program: String::new(),
            number: at + 1,
            input: String::new(),
            functions: [field.functions.len(); 2],
            blocks: blocks(field, own),
            shapes: field.shapes(own),
            costs: Vec::new(),
            refused: Vec::new(),
            seconds,
        };
        let own = by_estimate.iter().map(|(way, costs)| (way, &costs[at]));
        for (way, cost) in own.chain(by_trace.iter().map(|(way, costs)| (way, &costs[0]))) {
            match cost {
                Some(cost) => pair.costs.push(cost.clone()),
                None => pair.refused.push(*way),
            }
        }
        pairs.push(pair);
        progress.advance(1);
    }
    Ok(pairs)
}

type OfWays = Vec<(Way, Vec<Option<Cost>>)>;

fn all_ways(planned: &Planned<'_>, weights: Weights, effort: &Effort, hits: &[&Hits]) -> OfWays {
    let ways = ways(weights, effort.machines, &effort.bounds);
    let costs = ways.par_iter().map(|way| (*way, planned.cost(*way, hits)));
    costs.collect()
}

/// How many blocks there are, how many ran, and how often.
fn blocks(field: &Field, hits: &Hits) -> [u64; 3] {
    let mut blocks = [0; 3];
    for (function, own) in field.functions.iter().zip(hits) {
        for node in tomo_graph::Graph::nodes(&function.graph) {
            let times = own.get(function.row(Place::Node(node))).copied();
            distributed::add(&mut blocks, times.unwrap_or(0));
        }
    }
    blocks
}
