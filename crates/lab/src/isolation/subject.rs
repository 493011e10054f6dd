//! Faulty programs in a folder: for each program its sources, how it is built, its cases, and its faults.
//!
//! ```text
//! NAME/source             a folder with the sources, or a file that names a package and a folder in it
//! NAME/build.sh           run in a copy of the sources; writes the program to $OUT
//! NAME/cases              cases as `tomo isolate` reads them, or
//! NAME/cases.sh           what prints them, run in a folder of its own, where it may make files
//! NAME/variants/X.patch   a fault, as a unified diff, or
//! NAME/variants/X/        files that stand in the place of those of the sources
//! ```
//!
//! Scripts are run by `/bin/sh`. They find the program's folder in `$SUBJECT`, its sources in `$SOURCE` and the
//! program without a fault in `$REFERENCE`; a case is a success if a variant does what that one does, unless the cases
//! say otherwise. A patch, or the file `about` of a folder, begins with a line such as
//! `crash, far: what is wrong`: how the fault shows (`crash` or `output`), and whether where it is or elsewhere.

use std::fs;
use std::path::{Path, PathBuf};

use super::IsolationError;

/// A program with faults.
#[derive(Clone, Debug)]
pub struct Subject {
    /// Its name.
    pub name: String,
    /// Where its recipe lies.
    pub folder: PathBuf,
    /// Where its sources come from.
    pub source: Source,
    /// Its faults, by name.
    pub variants: Vec<Variant>,
}

/// Where sources come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// This folder.
    Folder(PathBuf),
    /// This folder of a package.
    Package(String, PathBuf),
}

/// A fault.
#[derive(Clone, Debug)]
pub struct Variant {
    /// Its name.
    pub name: String,
    /// The patch, or the folder of files.
    pub change: PathBuf,
    /// Whether it makes the program crash; else its output is wrong.
    pub crashes: bool,
    /// Whether it shows elsewhere.
    pub is_far: bool,
    /// What is wrong.
    pub what: String,
}

/// The programs in `folder`, by name.
///
/// # Errors
/// Where one of them is not laid out as described above.
pub fn read_subjects(folder: &Path) -> Result<Vec<Subject>, IsolationError> {
    let mut subjects = Vec::new();
    for path in sorted(folder)? {
        if path.is_dir() {
            subjects.push(subject(path)?);
        }
    }
    match subjects.is_empty() {
        true => Err(IsolationError::Layout(
            folder.into(),
            "holds no program: each has a folder with source, build.sh, cases and variants".into(),
        )),
        false => Ok(subjects),
    }
}

fn sorted(folder: &Path) -> Result<Vec<PathBuf>, IsolationError> {
    let entries = fs::read_dir(folder).map_err(IsolationError::io(folder))?;
    let mut paths = Vec::new();
    for entry in entries {
        paths.push(entry.map_err(IsolationError::io(folder))?.path());
    }
    paths.sort();
    Ok(paths)
}

fn subject(folder: PathBuf) -> Result<Subject, IsolationError> {
    let name = folder.file_name().unwrap_or_default().to_string_lossy();
    let mut variants = Vec::new();
    for change in sorted(&folder.join("variants"))? {
        variants.push(variant(change)?);
    }
    Ok(Subject {
        name: name.into_owned(),
        source: source(&folder.join("source"))?,
        variants,
        folder,
    })
}

fn source(path: &Path) -> Result<Source, IsolationError> {
    if path.is_dir() {
        return Ok(Source::Folder(path.into()));
    }
    let text = fs::read_to_string(path).map_err(IsolationError::io(path))?;
    let words: Vec<&str> = text.split_whitespace().collect();
    match words.as_slice() {
        [package, inside] => Ok(Source::Package((*package).into(), inside.into())),
        _ => Err(IsolationError::Layout(
            path.into(),
            "names a package and a folder in it, or is a folder with the sources".into(),
        )),
    }
}

fn variant(change: PathBuf) -> Result<Variant, IsolationError> {
    let about = match change.is_dir() {
        true => change.join("about"),
        false => change.clone(),
    };
    // A patch may hold whatever its sources do.
    let text = fs::read(&about).map_err(IsolationError::io(&about))?;
    let text = String::from_utf8_lossy(&text);
    let first = text.lines().next().unwrap_or_default();
    let told = first.split_once(": ").and_then(|(kind, what)| {
        let (shows, place) = kind.split_once(", ")?;
        let crashes = ["output", "crash"].iter().position(|one| *one == shows)? == 1;
        let is_far = ["near", "far"].iter().position(|one| *one == place)? == 1;
        Some((crashes, is_far, what.to_owned()))
    });
    let (crashes, is_far, what) = told.ok_or_else(|| {
        IsolationError::Layout(
            about,
            "begins with `crash` or `output`, `near` or `far`, and what is wrong: `crash, far: …`"
                .into(),
        )
    })?;
    let name = change.file_stem().unwrap_or_default().to_string_lossy();
    Ok(Variant {
        name: name.into_owned(),
        change,
        crashes,
        is_far,
        what,
    })
}

#[cfg(test)]
mod tests {
    use super::{Source, read_subjects};
    use std::fs;

    #[test]
    fn folders_are_read_as_described() {
        let folder = tempfile::tempdir().expect("a folder");
        let one = folder.path().join("one");
        fs::create_dir_all(one.join("variants/b")).expect("folders");
        let write = |name: &str, text: &str| fs::write(one.join(name), text).expect("written");
        write("source", "some-package inner/folder\n");
        write("variants/a.patch", "crash, near: a\n\n--- a/x\n");
        write("variants/b/about", "output, far: b: and more\n");
        let subjects = read_subjects(folder.path()).expect("subjects");
        assert_eq!(subjects[0].name, "one");
        let package = Source::Package("some-package".into(), "inner/folder".into());
        assert_eq!(subjects[0].source, package);
        let said = subjects[0].variants.iter().map(|one| {
            (
                one.name.as_str(),
                one.crashes,
                one.is_far,
                one.what.as_str(),
            )
        });
        let said: Vec<_> = said.collect();
        assert_eq!(
            said,
            [("a", true, false, "a"), ("b", false, true, "b: and more")]
        );
        write("variants/a.patch", "sometimes, near: a\n");
        let error = read_subjects(folder.path()).expect_err("refused");
        assert!(error.to_string().contains("a.patch"), "{error}");
    }
}
