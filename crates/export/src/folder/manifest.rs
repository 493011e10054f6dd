//! What stands beside records: `run.json` of a run, `pool.json` of a pool or of a merged folder. It
//! tells where the modules' files are and how the run ended; records are read without it, too.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::{content, plain};

/// The part of such a document that reports need.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Manifest {
    #[serde(default)]
    modules: Vec<Entry>,
    #[serde(default)]
    outcome: Option<Outcome>,
    #[serde(default)]
    by_parts: bool,
}

#[derive(Debug, Deserialize)]
struct Entry {
    /// As [`tomo_program::text_of`] writes it.
    path: String,
    stem: String,
}

#[derive(Debug, Deserialize)]
struct Outcome {
    #[serde(default)]
    signal: Option<u32>,
}

const NAMES: [&str; 2] = ["run.json", "pool.json"];
/// Bytes that are read of such a document: more than all modules of a system need.
const LONGEST: u64 = 64 << 20;

impl Manifest {
    /// The document in `folder`, or an empty one; and what is wrong with the one that is there.
    pub(super) fn read(folder: &Path) -> (Self, Option<(PathBuf, String)>) {
        for path in NAMES.map(|name| folder.join(name)) {
            let bytes = match content(&path, |_| LONGEST) {
                Ok(bytes) => bytes,
                Err(error) if error.kind() == ErrorKind::NotFound => continue,
                Err(error) => return (Self::default(), Some((path, plain(&error)))),
            };
            return match serde_json::from_slice(&bytes) {
                Ok(manifest) => (manifest, None),
                Err(error) => (Self::default(), Some((path, error.to_string()))),
            };
        }
        (Self::default(), None)
    }

    /// Where the module was whose record has this stem. Merged folders append to a module's stem.
    pub(super) fn path_of(&self, stem: &str) -> Option<PathBuf> {
        let entry = self.modules.iter().find(|entry| entry.stem == stem)?;
        Some(tomo_program::path_of(&entry.path))
    }

    /// Whether its runs carried different parts of the probes: see [`super::Group::by_parts`].
    pub(super) fn is_by_parts(&self) -> bool {
        self.by_parts
    }

    /// The signal that ended the run.
    pub(super) fn signal(&self) -> Option<u32> {
        self.outcome.as_ref()?.signal
    }
}
