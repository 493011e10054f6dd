//! The study of Arumuga Nainar, Liblit, *Adaptive Bug Isolation* (ABI, §5), on faulty variants of real programs.
//!
//! Each variant's cases are run once with all sites armed. On these complete data searches are rehearsed
//! ([`tomo_isolate::Stage`]): the same steps as on runs, by every heuristic, forward and backward, so that they can
//! be compared on the same runs. Real searches on some variants must make the same steps. Sampling is simulated from
//! exact counts.
//!
//! | file | what |
//! |---|---|
//! | `subject.rs`, `workshop.rs` | programs with faults: how they are laid out, and how they are built |
//! | `run.rs`, `ways.rs` | the study: what is run, and which searches are rehearsed |
//! | `sampled.rs` | what sampling would have seen |
//! | `several.rs` | two faults at once |
//! | `results.rs` | what came of it |
//! | `pages.rs`, `plots.rs` | tables and figures |

mod pages;
mod plots;
mod results;
mod run;
mod sampled;
mod several;
mod subject;
mod ways;
mod workshop;

use std::io;
use std::path::{Path, PathBuf};

pub use pages::render;
pub use results::{Drawn, Real, Refused, Results, Sampled, Searched, Several, Studied, Walked};
pub use run::{Laboratory, run};
pub use subject::{Source, Subject, Variant, read_subjects};
pub use workshop::Workshop;

/// Why the study cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum IsolationError {
    /// A file or folder.
    #[error("{path}: {1}", path = .0.display())]
    Io(PathBuf, io::Error),
    /// A folder of subjects is not laid out as it should.
    #[error("{path}: {1}", path = .0.display())]
    Layout(PathBuf, String),
    /// The sources of a program are not there.
    #[error("the sources of {0} come with the package {1}, which is not there")]
    NoPackage(String, String),
    /// A command failed.
    #[error("{0}: {1}")]
    Failed(String, String),
    /// The cases of a program cannot be read.
    #[error(transparent)]
    Cases(#[from] tomo_isolate::CasesError),
    /// A variant cannot be searched.
    #[error(transparent)]
    Isolate(#[from] tomo_isolate::IsolateError),
    /// The results cannot be written as JSON.
    #[error("the results: {0}")]
    Json(#[from] serde_json::Error),
}

impl IsolationError {
    fn io(path: impl AsRef<Path>) -> impl FnOnce(io::Error) -> Self {
        let path = path.as_ref().to_path_buf();
        move |error| Self::Io(path, error)
    }
}
