//! The study of Chilakamarri, Elbaum, *Leveraging Disposable Instrumentation to Reduce Coverage Collection
//! Overhead* (DIS), on native programs.
//!
//! Two parts, as in the paper. **Local disposal** (§3, §6; Tables 1 to 4 and 6, Figure 2): one program's
//! runs without probes, with marks that stay, and with probes that go at their first hit, at the levels of
//! blocks and functions, on all units or only on those from which the others follow. **Collective disposal**
//! (§4; Table 5, Figures 3 to 5): 37 instances in three deployments.
//!
//! Everything is measured first ([`Results`]), in rounds in which every way has its turn, so that a
//! busy machine hits all ways alike; pages and plots are made of the results alone ([`render`]).
//!
//! | file | what |
//! |---|---|
//! | `subject.rs`, `inputs.rs` | programs, their builds, and what they are run on |
//! | `way.rs`, `armed.rs`, `measure.rs` | the ways to run them, and what a run takes |
//! | `counts.rs`, `redundancy.rs` | how often each probe is executed, exactly |
//! | `overhead.rs`, `numbers.rs` | what the tables say, from samples |
//! | `fleet.rs` and its folder | instances: in one pool on this host, through the collector, simulated |
//! | `paper.rs` | what the paper prints |
//! | `pages.rs`, `plots.rs` | tables and figures |

mod armed;
mod counts;
pub mod fleet;
pub mod inputs;
pub(crate) mod measure;
pub(crate) mod numbers;
mod overhead;
mod pages;
pub mod paper;
mod plots;
mod redundancy;
mod results;
mod run;
mod subject;
pub(crate) mod way;

use std::io;
use std::path::PathBuf;

pub use counts::{Counts, CountsError};
pub use measure::{Measured, Meter, measured};
pub use numbers::{Fit, Summary};
pub use overhead::Timed;
pub use pages::render;
pub use redundancy::Redundancy;
pub use results::{Placed, Results};
pub use run::{Effort, run};
pub use subject::{Builds, Marked, Subject, SubjectsError, read_subjects};
pub use way::{Mark, Stay, Units, Way};

/// Why a study cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum StudyError {
    /// A file or folder.
    #[error("{path}: {1}", path = .0.display())]
    Io(PathBuf, io::Error),
    /// A program cannot be started.
    #[error("cannot run {path}: {1}", path = .0.display())]
    NotStarted(PathBuf, io::Error),
    /// What a run took was not written down.
    #[error("{path} was run, but not measured: {1}", path = .0.display())]
    NotMeasured(PathBuf, String),
    /// A program has no model.
    #[error("{path}: {1}", path = .0.display())]
    Model(PathBuf, tomo_program::LoadError),
    /// Paths cannot be told apart.
    #[error(transparent)]
    Paths(#[from] tomo_plan::paths::PathError),
    /// Calls that are no call graph.
    #[error(transparent)]
    Calls(#[from] tomo_plan::chains::ChainsError),
    /// Field data that make no sense.
    #[error(transparent)]
    Award(#[from] tomo_profile::award::AwardError),
    /// Probes cannot be distributed.
    #[error(transparent)]
    Distribution(#[from] tomo_plan::distribution::DistributionError),
    /// Functions that are no program to trace.
    #[error(transparent)]
    Program(#[from] tomo_plan::witnesses::ProgramError),
    /// Witnesses cannot be distributed.
    #[error(transparent)]
    Witnesses(#[from] tomo_plan::witnesses::DistributionError),
    /// A program cannot be armed.
    #[error("{path} cannot be armed: {1}", path = .0.display())]
    NotArmed(PathBuf, String),
    /// A count cannot be read.
    #[error("{path}: {1}", path = .0.display())]
    Counts(PathBuf, CountsError),
    /// The collector, or a command to it.
    #[error("the collector: {0}")]
    Collector(String),
    /// A deployment that cannot be.
    #[error(transparent)]
    Deployment(#[from] tomo_plan::disposal::DeploymentError),
    /// The results cannot be written as JSON.
    #[error("the results: {0}")]
    Json(#[from] serde_json::Error),
}

impl StudyError {
    pub(crate) fn io(path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |error| Self::Io(path, error)
    }
}
