//! What came of the study, as plain data: pages and plots are made of this alone.

use serde::{Deserialize, Serialize};

/// All of it.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Results {
    /// Variants, in the order of the subjects.
    pub studied: Vec<Studied>,
    /// Variants that could not be studied.
    pub refused: Vec<Refused>,
    /// Programs with two faults at once.
    pub several: Vec<Several>,
    /// Seconds that it took.
    pub seconds: f64,
    /// Processors of the machine.
    pub processors: usize,
}

/// A variant that could not be studied.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Refused {
    /// The program.
    pub subject: String,
    /// The variant.
    pub variant: String,
    /// Why.
    pub why: String,
}

/// What came of one variant.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Studied {
    /// The program.
    pub subject: String,
    /// The variant.
    pub variant: String,
    /// Whether it crashes; else its output is wrong.
    pub crashes: bool,
    /// Whether it shows elsewhere than where it is.
    pub is_far: bool,
    /// What is wrong.
    pub what: String,
    /// Lines of its sources.
    pub lines: usize,
    /// Sites that there are.
    pub sites: usize,
    /// Sites that can be observed.
    pub observable: usize,
    /// Functions whose entries a survey observes, which are no sites.
    #[serde(default)]
    pub entries: usize,
    /// Cases that fail.
    pub failures: usize,
    /// Cases that do not.
    pub successes: usize,
    /// Importance of the best predictor by complete monitoring.
    pub best: f64,
    /// How many predicates are as good.
    pub equals: usize,
    /// What complete monitoring cost, of these short runs: seconds over seconds.
    pub slower: f64,
    /// Searches, by way.
    pub searched: Vec<Searched>,
    /// What sampling would have seen.
    pub sampled: Vec<Sampled>,
    /// A search function by function (HOLMES).
    pub walked: Option<Walked>,
    /// A search on real runs.
    pub real: Option<Real>,
    /// Curves of some ways, for figures: sites seen, best Importance.
    pub curves: Vec<Drawn>,
}

/// A search that was rehearsed; of one that is left to chance, the mean of several.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Searched {
    /// Which way.
    pub way: String,
    /// Trials in which it found a predictor as good as the best of complete monitoring.
    pub found: usize,
    /// Trials.
    pub trials: usize,
    /// Sites that had been seen then, mean.
    pub seen: f64,
    /// Steps until then, mean.
    pub steps: f64,
    /// Sites in a step, mean.
    pub sites: f64,
}

/// What sampling saw.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sampled {
    /// One in so many.
    pub one_in: u32,
    /// Draws of all cases.
    pub draws: usize,
    /// Draws in which the predictor that came first is as good as the best of complete monitoring.
    pub found: usize,
    /// The Importance, by complete data, of the predictor that came first: mean.
    pub reached: f64,
}

/// A search function by function.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Walked {
    /// Whether it found a predictor as good as the best.
    pub found: bool,
    /// Sites that it saw.
    pub seen: usize,
    /// Steps.
    pub steps: usize,
    /// Whether it ended for want of weak predictors.
    pub stuck: bool,
}

/// A search on real runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Real {
    /// Steps that were made.
    pub steps: usize,
    /// Whether each watched as many sites as its rehearsal.
    pub as_rehearsed: bool,
    /// Importance of what it ended with, by all cases.
    pub best: f64,
    /// Whether nothing was left, or nothing better could be.
    pub complete: bool,
    /// What its steps cost of these short runs, mean: seconds over seconds.
    pub slower: Option<f64>,
    /// What it said.
    pub verdict: String,
}

/// A curve.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Drawn {
    /// Which way.
    pub way: String,
    /// Sites seen, and the best Importance among them.
    pub points: Vec<(usize, f64)>,
}

/// A program with two faults.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Several {
    /// The program.
    pub subject: String,
    /// The faults, and how the runs of each are told.
    pub faults: Vec<String>,
    /// For each: cases that fail by it.
    pub failures: Vec<usize>,
    /// For each, in one search for all: sites and steps until its best predictor had been seen.
    pub together: Vec<Option<(usize, usize)>>,
    /// For each, in a search of its own.
    pub apart: Vec<Option<(usize, usize)>>,
    /// Sites that can be observed.
    pub observable: usize,
}
