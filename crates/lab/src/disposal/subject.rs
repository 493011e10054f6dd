//! The programs under study, and their builds.
//!
//! A list of them is JSON (schema `tomo.subjects/1`): for each its name, the program as it is shipped, what
//! it is run on, and the same sources built with marks that stay. A build that is missing leaves its
//! columns empty.

use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::inputs::Inputs;
use super::{Mark, Units};

/// The schema's name and version.
const SCHEMA: &str = "tomo.subjects/1";

/// A program under study.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Subject {
    /// What it is called.
    pub name: String,
    /// What it is run on.
    pub inputs: Inputs,
    /// Its builds.
    #[serde(flatten)]
    pub builds: Builds,
}

/// One program's builds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Builds {
    /// Without anything: what `tomo` observes, and what all others are compared with.
    pub plain: PathBuf,
    /// With marks that stay.
    #[serde(default)]
    pub marked: Vec<Marked>,
}

/// A build with marks that stay.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Marked {
    /// What has a mark.
    pub units: Units,
    /// What a mark is.
    pub mark: Mark,
    /// The program.
    pub program: PathBuf,
}

/// Why there is no list of subjects.
#[derive(Debug, thiserror::Error)]
pub enum SubjectsError {
    /// The file.
    #[error("{path}: {1}", path = .0.display())]
    Io(PathBuf, io::Error),
    /// What is in it.
    #[error("{path} is no list of subjects: {1}", path = .0.display())]
    Json(PathBuf, serde_json::Error),
    /// Of another version, or of something else.
    #[error("{path} has the schema {1:?}, not \"{SCHEMA}\"", path = .0.display())]
    Schema(PathBuf, String),
    /// A name of it, of which files are named.
    #[error("{path}: a subject's name has letters, digits and - only, not {1:?}", path = .0.display())]
    Name(PathBuf, String),
    /// A program that is not to be run on anything.
    #[error("{path} names no runs of {1}", path = .0.display())]
    NoRuns(PathBuf, String),
    /// A program of it.
    #[error("{path} names {program}, which is not there", path = .0.display(), program = .1.display())]
    Missing(PathBuf, PathBuf),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct List {
    schema: String,
    subjects: Vec<Subject>,
}

impl Builds {
    /// The build with these marks.
    #[must_use]
    pub fn marked(&self, units: Units, mark: Mark) -> Option<&Path> {
        let same = |one: &&Marked| one.units == units && one.mark == mark;
        self.marked
            .iter()
            .find(same)
            .map(|one| one.program.as_path())
    }
}

/// The list in the file `path`.
///
/// # Errors
/// Where it cannot be read, is no such list, or names programs that are not there.
pub fn read_subjects(path: &Path) -> Result<Vec<Subject>, SubjectsError> {
    let text = std::fs::read_to_string(path);
    let text = text.map_err(|error| SubjectsError::Io(path.into(), error))?;
    let list: List =
        serde_json::from_str(&text).map_err(|error| SubjectsError::Json(path.into(), error))?;
    if list.schema != SCHEMA {
        return Err(SubjectsError::Schema(path.into(), list.schema));
    }
    for subject in &list.subjects {
        let name = &subject.name;
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '-';
        if name.is_empty() || !name.chars().all(plain) {
            return Err(SubjectsError::Name(path.into(), name.clone()));
        }
        if subject.inputs == Inputs::Runs(Vec::new()) {
            return Err(SubjectsError::NoRuns(path.into(), name.clone()));
        }
        let marked = subject.builds.marked.iter().map(|one| &one.program);
        let mut programs = marked.chain([&subject.builds.plain]);
        if let Some(missing) = programs.find(|program| !program.is_file()) {
            return Err(SubjectsError::Missing(path.into(), missing.clone()));
        }
    }
    Ok(list.subjects)
}

#[cfg(test)]
mod tests {
    use super::{SubjectsError, read_subjects};

    fn read(text: &str) -> Result<usize, SubjectsError> {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("list.json");
        std::fs::write(&path, text).expect("written");
        read_subjects(&path).map(|subjects| subjects.len())
    }

    #[test]
    fn a_list_names_builds_and_what_they_are_run_on() {
        let text = r#"{"schema": "tomo.subjects/1", "subjects": [
            {"name": "sh", "plain": "/bin/sh", "inputs": {"runs": [{"arguments": ["-c", ":"]}]},
             "marked": [{"units": "block-dom", "mark": "flag", "program": "/bin/sh"}]},
            {"name": "lua", "plain": "/bin/sh", "inputs": "lua"}]}"#;
        assert_eq!(read(text).expect("a list"), 2);
    }

    #[test]
    fn what_is_no_list_is_refused() {
        let other = read(r#"{"schema": "tomo.map/1", "subjects": []}"#);
        assert!(matches!(other, Err(SubjectsError::Schema(..))));
        let gone = r#"{"schema": "tomo.subjects/1", "subjects": [{"name": "a", "plain": "/no/such", "inputs": "lua"}]}"#;
        assert!(matches!(read(gone), Err(SubjectsError::Missing(..))));
        for text in [
            "",
            "{}",
            r#"{"schema": "tomo.subjects/1", "subjects": [{"name": "a"}]}"#,
        ] {
            assert!(matches!(read(text), Err(SubjectsError::Json(..))), "{text}");
        }
    }
}
