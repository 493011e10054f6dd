//! From the path of a program to its model: out of the cache, or by analysing it.

use std::error::Error;
use std::fs::{self, File, Metadata};
use std::io;
use std::os::unix::fs::{FileExt as _, FileTypeExt as _};
use std::path::Path;

use rayon::prelude::*;

use crate::analyse::analyse_file;
use crate::debug_file::{self, Directories};
use crate::identity::{Headers, Identity, content};
use crate::{Cache, Facts, Function, Model, Progress};

/// Bytes of the largest file that is analysed.
const LARGEST_FILE: u64 = 16 << 30;
/// Bytes of a file without ELF headers that are given to the analysis, to say what is wrong.
const HEAD: u64 = 4096;

/// What to load and how.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// The program.
    pub path: &'a Path,
    /// Where models are kept; none: nowhere.
    pub cache: Option<&'a Cache>,
    /// Whether to analyse even what is in the cache.
    pub refresh: bool,
    /// Whether more than the summary is wanted, so that all of a cached model has to be sound.
    pub whole: bool,
}

/// A model, and how it was come by.
#[derive(Debug)]
pub struct Loaded {
    /// The model.
    pub model: Model,
    /// Whether it was in the cache.
    pub cached: bool,
    /// What went wrong with the cache, one sentence each.
    pub warnings: Vec<String>,
}

impl Loaded {
    fn cached(model: Model, warnings: Vec<String>) -> Self {
        Self {
            model,
            cached: true,
            warnings,
        }
    }
}

/// Why a program has no model.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The system does not let us read it.
    #[error("{}", plain(.0))]
    Unreadable(io::Error),
    /// It is no file with bytes.
    #[error("is {0}, not a file")]
    NoFile(&'static str),
    /// It has no bytes.
    #[error("is empty")]
    Empty,
    /// It has too many bytes.
    #[error("has {0} bytes; more than {LARGEST_FILE} are not analysed")]
    TooLarge(u64),
    /// It is a text that another program runs.
    #[error("is a script run by {0}; map that instead")]
    Script(String),
    /// The analysis cannot work on it.
    #[error("{0}")]
    Analysis(Box<dyn Error + Send + Sync>),
}

// Not derived, since whoever prints a chain of causes would print the same words twice.
impl From<io::Error> for LoadError {
    fn from(error: io::Error) -> Self {
        Self::Unreadable(error)
    }
}

/// What a system error says, without its number.
fn plain(error: &io::Error) -> String {
    let text = error.to_string();
    let message = text.split(" (os error").next().unwrap_or_default();
    message[..1].to_lowercase() + &message[1..]
}

/// What an analysis is: from a file's bytes to functions and facts.
pub type Analysis<'a> = &'a dyn Fn(
    &[u8],
    &dyn Progress,
) -> Result<(Vec<Function>, Facts), Box<dyn Error + Send + Sync>>;

/// The model of the program that is asked for. What the analysis finds is kept in the cache.
///
/// # Errors
/// Where the program cannot be read or analysed.
pub fn load(request: &Request<'_>, progress: &dyn Progress) -> Result<Loaded, LoadError> {
    load_with(request, progress, &|data, progress| {
        let directories = Directories::from_environment();
        analyse_file(request.path, data, &directories, progress).map_err(Into::into)
    })
}

/// The same with another analysis. What `analysis` finds is kept in the cache.
///
/// # Errors
/// Where the program cannot be read or analysed.
pub fn load_with(
    request: &Request<'_>,
    progress: &dyn Progress,
    analysis: Analysis<'_>,
) -> Result<Loaded, LoadError> {
    let (file, length) = open(request.path)?;
    let before = file.metadata()?;
    let headers = Headers::read(&file, length)?;
    let mut warnings = Vec::new();
    let mut found = |known: u128| {
        let identity = headers.as_ref()?.identity_by(known);
        let model = find(request, &identity, &mut warnings)?;
        (model.content() == known).then_some(model)
    };
    let told = recall(request, &before);
    if let Some(model) = told.and_then(&mut found) {
        return Ok(Loaded::cached(model, warnings));
    }
    let whole = headers.is_some();
    let bytes = read(&file, if whole { length } else { HEAD.min(length) })?;
    let content = content(&bytes);
    if whole && told != Some(content) {
        remember(request, content, &before, &file);
        if let Some(model) = found(content) {
            return Ok(Loaded::cached(model, warnings));
        }
    }
    let identity = headers.map(|headers| headers.identity_by(content));
    let (functions, mut facts) = analysis(&bytes, progress).map_err(LoadError::Analysis)?;
    drop(bytes);
    facts.fingerprint = identity.as_ref().map_or(0, |identity| identity.fingerprint);
    facts.content = content;
    let model = Model::build(functions, facts);
    keep(request, identity.as_ref(), &model, &mut warnings);
    Ok(Loaded {
        model,
        cached: false,
        warnings,
    })
}

/// Opens the file at `path` if it is one that has bytes. Nothing else is opened: opening a pipe would
/// wait for somebody to write into it.
fn open(path: &Path) -> Result<(File, u64), LoadError> {
    let metadata = fs::metadata(path)?;
    let kind = metadata.file_type();
    let other = [
        (kind.is_dir(), "a directory"),
        (kind.is_fifo(), "a named pipe"),
        (kind.is_socket(), "a socket"),
        (kind.is_char_device() || kind.is_block_device(), "a device"),
    ];
    if let Some((_, what)) = other.iter().find(|(is, _)| *is) {
        return Err(LoadError::NoFile(what));
    }
    let file = File::open(path)?;
    match file.metadata()?.len() {
        0 => Err(LoadError::Empty),
        length if length > LARGEST_FILE => Err(LoadError::TooLarge(length)),
        length => Ok((file, length)),
    }
}

/// How much of a file one processor reads at a time, in bytes.
const PORTION: usize = 4 << 20;

/// The first `length` bytes of `file`, unless they are those of a script. A file that is shorter by now
/// is an error.
fn read(file: &File, length: u64) -> Result<Vec<u8>, LoadError> {
    let length = usize::try_from(length).unwrap_or(usize::MAX);
    // Where there is not enough memory, this is an error, and `vec!` would be an abort.
    let room = Vec::<u8>::new().try_reserve_exact(length);
    room.map_err(io::Error::from)?;
    let mut bytes = vec![0; length];
    bytes
        .par_chunks_mut(PORTION)
        .enumerate()
        .try_for_each(|(index, portion)| file.read_exact_at(portion, (index * PORTION) as u64))?;
    match interpreter(&bytes) {
        Some(interpreter) => Err(LoadError::Script(interpreter)),
        None => Ok(bytes),
    }
}

/// What runs a script: the first word behind `#!`, and the next one where that is `env`.
fn interpreter(bytes: &[u8]) -> Option<String> {
    let rest = bytes.strip_prefix(b"#!")?;
    let line = rest.split(|byte| *byte == b'\n').next()?;
    let line = String::from_utf8_lossy(line.get(..256).unwrap_or(line));
    let mut words = line.split_whitespace();
    let first = words.next()?;
    let named = if first.ends_with("/env") {
        words.find(|word| !word.starts_with('-'))
    } else {
        None
    };
    Some(named.unwrap_or(first).escape_debug().to_string())
}

/// What the file's bytes hash to, if that is remembered.
fn recall(request: &Request<'_>, file: &Metadata) -> Option<u128> {
    let cache = request.cache.filter(|_| !request.refresh)?;
    cache.recall(file)
}

/// Remembers that, unless the file has changed while it was read.
fn remember(request: &Request<'_>, content: u128, before: &Metadata, file: &File) {
    if let Some(cache) = request.cache
        && let Ok(after) = file.metadata()
    {
        cache.remember(content, before, &after);
    }
}

/// The model in the cache, if it may be used and can be.
fn find(request: &Request<'_>, identity: &Identity, warnings: &mut Vec<String>) -> Option<Model> {
    let cache = request.cache.filter(|_| !request.refresh)?;
    let found = match cache.find(identity) {
        Ok(found) => found?,
        Err(error) => {
            warnings.push(format!("cached model not used: {error}"));
            return None;
        }
    };
    // Names and lines are missing that a debug file gives which was installed since.
    let is_bare = found.summary().described == 0;
    if is_bare && debug_file::exists(request.path, &Directories::from_environment()) {
        return None;
    }
    if request.whole
        && let Err(error) = found.graphs()
    {
        let path = cache.path_of(identity);
        warnings.push(format!(
            "cached model not used: {}: {error}",
            path.display()
        ));
        return None;
    }
    Some(found)
}

/// Keeps `model` in the cache, if there is one; else it works without.
fn keep(
    request: &Request<'_>,
    identity: Option<&Identity>,
    model: &Model,
    warnings: &mut Vec<String>,
) {
    if let Some((cache, identity)) = request.cache.zip(identity)
        && let Err(error) = cache.keep(identity, model)
    {
        let path = cache.path_of(identity);
        warnings.push(format!(
            "model not kept: {}: {}",
            path.display(),
            plain(&error)
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_name_who_runs_them() {
        assert_eq!(
            interpreter(b"#!/bin/bash -e\necho"),
            Some("/bin/bash".into())
        );
        assert_eq!(
            interpreter(b"#! /usr/bin/env -S python3 -u\n"),
            Some("python3".into())
        );
        assert_eq!(interpreter(b"#!\n"), None);
        assert_eq!(interpreter(b"\x7fELF"), None);
    }

    #[test]
    fn system_errors_are_told_in_words() {
        let error = io::Error::from_raw_os_error(2);
        assert_eq!(plain(&error), "no such file or directory");
        assert_eq!(
            plain(&io::Error::from(io::ErrorKind::UnexpectedEof)),
            "unexpected end of file"
        );
    }
}
