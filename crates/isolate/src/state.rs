//! What has been found so far, as plain data: kept in the session's folder after each step.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use tomo_plan::search;
use tomo_profile::scores::Tally;
use tomo_program::read_regular;

use crate::run::End;
use crate::survey::Survey;

/// The version of this file.
pub(crate) const VERSION: u32 = 3;

/// In how many runs of a step a predicate was observed, and true.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Known {
    /// Failed runs in which it was true.
    pub failed_true: u64,
    /// Successful runs in which it was true.
    pub passed_true: u64,
    /// Failed runs in which its site was reached.
    pub failed_seen: u64,
    /// Successful runs in which its site was reached.
    pub passed_seen: u64,
    /// Failed runs in all.
    pub failed: u64,
    /// Successful runs in all.
    pub passed: u64,
    /// The step.
    pub step: u32,
}

impl Known {
    /// As scores want it.
    #[must_use]
    pub fn tally(&self) -> Tally {
        Tally {
            failed_true: self.failed_true,
            passed_true: self.passed_true,
            failed_seen: self.failed_seen,
            passed_seen: self.passed_seen,
        }
    }
}

/// What a step did.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StepMade {
    /// Sites that were armed.
    pub sites: usize,
    /// Runs that were made.
    pub runs: usize,
    /// Why these sites: the predicate that was explored, or other words.
    pub why: String,
    /// The best score known after it.
    pub best: f64,
    /// The best predictor known after it.
    pub predictor: Option<String>,
    /// Seconds that its runs took, over those of the same cases as they are.
    pub slower: Option<f64>,
}

/// A case, run as it is.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Plain {
    pub(crate) passed: bool,
    pub(crate) end: End,
    pub(crate) seconds: f64,
}

/// All that a session knows.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct State {
    pub(crate) version: u32,
    /// Names the module, the cases, and what was asked for.
    pub(crate) module: String,
    pub(crate) cases: u64,
    pub(crate) asked: String,
    /// How each case ended as it is.
    pub(crate) plain: Vec<Plain>,
    /// Cases that do not always end alike, by number.
    pub(crate) flaky: Vec<usize>,
    /// Which functions cases enter.
    pub(crate) survey: Survey,
    /// Sites of functions that no failing case enters, or no other, that were planned, and wait until nothing else is left.
    pub(crate) waiting: Vec<usize>,
    /// By row.
    pub(crate) known: BTreeMap<usize, Known>,
    pub(crate) steps: Vec<StepMade>,
    pub(crate) search: search::State,
    /// Whether there is nothing left to be done.
    pub(crate) done: bool,
}

/// Where the state is in a folder.
pub(crate) fn file(folder: &Path) -> PathBuf {
    folder.join("state.json")
}

impl State {
    /// The state in this folder, if there is one.
    pub(crate) fn read(folder: &Path) -> io::Result<Option<Self>> {
        match read_regular(&file(folder)) {
            Ok(bytes) => Ok(Some(serde_json::from_slice(&bytes)?)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Writes it, whole or not at all.
    pub(crate) fn write(&self, folder: &Path) -> io::Result<()> {
        let new = folder.join("state.json.new");
        std::fs::write(&new, serde_json::to_vec_pretty(self)?)?;
        std::fs::rename(new, file(folder))
    }
}
