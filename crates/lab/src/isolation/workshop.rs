//! Where variants are built: a copy of the sources each, a fault or several put in, and the recipe run. What is built is
//! kept under a hash of all that it is made of.

use std::ffi::OsStr;
use std::fs;
use std::hash::Hasher as _;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use xxhash_rust::xxh3::Xxh3;

use super::IsolationError;
use super::subject::{Source, Subject, Variant};

/// A folder in which programs are built.
pub struct Workshop<'w> {
    /// Where everything is kept.
    pub folder: &'w Path,
    /// Where the files of packages lie, by name.
    pub packages: &'w dyn Fn(&str) -> Option<PathBuf>,
}

impl Workshop<'_> {
    /// The program with these faults; without any it is the reference.
    ///
    /// # Errors
    /// Where its sources are not there, a patch does not fit, or it does not build.
    pub fn program(
        &self,
        subject: &Subject,
        faults: &[&Variant],
    ) -> Result<PathBuf, IsolationError> {
        let source = self.source(subject)?;
        let names: Vec<&str> = faults.iter().map(|fault| fault.name.as_str()).collect();
        let name = match names.is_empty() {
            true => "reference".into(),
            false => names.join("+"),
        };
        let hash = hash(subject, &source, faults)?;
        let folder = self.folder.join(&subject.name);
        let folder = folder.join(format!("{name}-{hash:016x}"));
        let program = folder.join("program");
        if program.exists() {
            return Ok(program);
        }
        let tree = folder.join("source");
        let _ = fs::remove_dir_all(&folder);
        copy(&source, &tree).map_err(IsolationError::io(&tree))?;
        for fault in faults {
            apply(&fault.change, &tree)?;
        }
        let unfinished = folder.join("unfinished");
        let mut command = script(subject, &source, "build.sh");
        succeed(command.env("OUT", &unfinished).current_dir(&tree))?;
        fs::rename(&unfinished, &program).map_err(IsolationError::io(&unfinished))?;
        Ok(program)
    }

    /// The file of the program's cases, which are held against what `reference` does.
    ///
    /// # Errors
    /// Where there is none, or its script fails.
    pub fn cases(&self, subject: &Subject, reference: &Path) -> Result<PathBuf, IsolationError> {
        let own = subject.folder.join("cases");
        if own.is_file() {
            return Ok(own);
        }
        let source = self.source(subject)?;
        let hash = hash(subject, &source, &[])?;
        let folder = self.folder.join(&subject.name);
        let folder = folder.join(format!("cases-{hash:016x}"));
        let cases = folder.join("cases");
        if cases.exists() {
            return Ok(cases);
        }
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).map_err(IsolationError::io(&folder))?;
        let mut command = script(subject, &source, "cases.sh");
        command.env("REFERENCE", reference).current_dir(&folder);
        let printed = succeed(&mut command)?;
        let told = format!("%success like {}\n{printed}", reference.display());
        fs::write(&cases, told).map_err(IsolationError::io(&cases))?;
        Ok(cases)
    }

    /// Where the sources are.
    fn source(&self, subject: &Subject) -> Result<PathBuf, IsolationError> {
        match &subject.source {
            Source::Folder(folder) => Ok(folder.clone()),
            Source::Package(name, inside) => (self.packages)(name)
                .map(|package| package.join(inside))
                .ok_or_else(|| IsolationError::NoPackage(subject.name.clone(), name.clone())),
        }
    }
}

fn script(subject: &Subject, source: &Path, name: &str) -> Command {
    let mut command = Command::new("/bin/sh");
    command
        .args([OsStr::new("-eu"), subject.folder.join(name).as_os_str()])
        .env("SUBJECT", &subject.folder)
        .env("SOURCE", source);
    command
}

/// Puts a fault into the sources in `tree`.
fn apply(change: &Path, tree: &Path) -> Result<(), IsolationError> {
    if change.is_dir() {
        return copy(change, tree).map_err(IsolationError::io(change));
    }
    let mut command = Command::new("git");
    // Not in the repository in which the tree may lie.
    let above = tree.parent().unwrap_or(tree);
    command.env("GIT_CEILING_DIRECTORIES", above);
    command.args(["apply", "-p1"]).arg(change).current_dir(tree);
    succeed(&mut command).map(|_| ())
}

/// What a command prints that succeeds.
fn succeed(command: &mut Command) -> Result<String, IsolationError> {
    let words: Vec<String> = std::iter::once(command.get_program())
        .chain(command.get_args())
        .map(|word| word.to_string_lossy().into_owned())
        .collect();
    let words = words.join(" ");
    let output = command.stdin(std::process::Stdio::null()).output();
    let output =
        output.map_err(|error| IsolationError::Failed(words.clone(), error.to_string()))?;
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
        false => {
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            Err(IsolationError::Failed(words, said))
        }
    }
}

/// Copies what is in `from` into `to`, over what is there. Files become writable.
fn copy(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &target)?;
        } else {
            fs::write(&target, fs::read(entry.path())?)?;
        }
    }
    Ok(())
}

/// Names all that a program is made of: the recipe's files, the place of the sources (a package's tells its version), and
/// the faults.
fn hash(subject: &Subject, source: &Path, faults: &[&Variant]) -> Result<u64, IsolationError> {
    let mut hash = Xxh3::new();
    hash.write(source.as_os_str().as_encoded_bytes());
    let variants = subject.folder.join("variants");
    let within = |path: &Path| path != variants;
    add(&subject.folder, &within, &mut hash).map_err(IsolationError::io(&subject.folder))?;
    for fault in faults {
        add(&fault.change, &|_| true, &mut hash).map_err(IsolationError::io(&fault.change))?;
    }
    Ok(hash.finish())
}

/// Adds what is in a file or a folder.
fn add(path: &Path, within: &dyn Fn(&Path) -> bool, hash: &mut Xxh3) -> io::Result<()> {
    if !path.is_dir() {
        hash.write(path.as_os_str().as_encoded_bytes());
        hash.write(&fs::read(path)?);
        return Ok(());
    }
    let entries = fs::read_dir(path)?.map(|entry| entry.map(|entry| entry.path()));
    let mut paths: Vec<PathBuf> = entries.collect::<Result<_, _>>()?;
    paths.sort();
    paths
        .iter()
        .filter(|path| within(path))
        .try_for_each(|path| add(path, within, hash))
}
