//! Whose records there are: one of all processes, or one of each.

use std::fs;
use std::path::{Path, PathBuf};

use tomo_wire::record::{ENDING, stem_of};

/// What becomes of processes that a program forks, and of all others that are armed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Forks {
    /// They share one record, and the text: what one has hit costs the others nothing.
    #[default]
    Shared,
    /// Each has a record of its own, of all that it does itself from its fork on, and a text with all
    /// probes. Beside them there is one record without marks, which counts them.
    Separate,
}

impl Forks {
    /// What people call it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Shared => "shared",
            Self::Separate => "separate",
        }
    }
}

/// The record at `shared`, and those of single processes beside it, by name.
#[must_use]
pub fn records(shared: &Path) -> Vec<PathBuf> {
    let name = |path: &Path| {
        let name = path.file_name()?.to_str()?.strip_suffix(ENDING)?;
        Some(name.to_owned())
    };
    let Some(stem) = name(shared) else {
        return Vec::new();
    };
    let folder = shared.parent().unwrap_or(Path::new("."));
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut paths: Vec<PathBuf> = entries
        .map(|entry| entry.path())
        .filter(|path| name(path).is_some_and(|name| stem_of(&name) == stem))
        .collect();
    paths.sort();
    paths
}
