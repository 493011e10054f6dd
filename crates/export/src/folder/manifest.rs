//! What stands beside records: `run.json` of a run, `pool.json` of a pool or of a merged folder. It
//! tells where the modules' files are and how the run ended; records are read without it, too.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use tomo_wire::{Refusal, of_schema};

use super::{content, plain};

/// The part of such a document that reports need.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Manifest {
    #[serde(default)]
    schema: String,
    #[serde(default)]
    modules: Vec<Entry>,
    #[serde(default)]
    outcome: Option<Outcome>,
    #[serde(default)]
    by_parts: bool,
}

/// What is wrong with a document.
#[derive(Debug)]
pub(super) enum Wrong {
    /// It is of another version: what it says of the records beside it may change what they mean.
    Version(Refusal),
    /// It cannot be read, so what it would have said is not known.
    Lost(String),
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

const NAMES: [(&str, &str); 2] = [("run.json", "tomo.run/1"), ("pool.json", "tomo.pool/1")];
/// Bytes that are read of such a document: more than all modules of a system need.
const LONGEST: u64 = 64 << 20;

/// What people are told of a document that cannot be parsed.
fn unreadable(error: &serde_json::Error) -> String {
    if error.is_eof() {
        return "it is cut short".to_owned();
    }
    let (line, column) = (error.line(), error.column());
    format!("{}: see line {line}, column {column}", Refusal::Foreign)
}

impl Manifest {
    /// The document in `folder`, or an empty one; and what is wrong with the one that is there.
    pub(super) fn read(folder: &Path) -> (Self, Option<(PathBuf, Wrong)>) {
        for (path, schema) in NAMES.map(|(name, schema)| (folder.join(name), schema)) {
            let bytes = match content(&path, |_| LONGEST) {
                Ok(bytes) => bytes,
                Err(error) if error.kind() == ErrorKind::NotFound => continue,
                Err(error) => return (Self::default(), Some((path, Wrong::Lost(plain(&error))))),
            };
            let read = serde_json::from_slice::<Self>(&bytes);
            let wrong = match read.map(|it| (of_schema(&it.schema, schema), it)) {
                Ok((Ok(()), manifest)) => return (manifest, None),
                Ok((Err(version @ Refusal::Version { .. }), _)) => Wrong::Version(version),
                Ok((Err(refusal), _)) => Wrong::Lost(refusal.to_string()),
                Err(error) => Wrong::Lost(unreadable(&error)),
            };
            return (Self::default(), Some((path, wrong)));
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
