//! The house rules that neither compiler nor linter knows, as a program. Every rule is a function
//! from text to findings with tests that show it failing; this file only calls them in turn.
//! Exceptions are named, with their reasons, in one list.

mod documents;
mod edges;
mod exceptions;
pub(crate) mod files;
mod licences;
mod size;
pub(crate) mod source;
mod tables;
mod tokens;
mod unrun;
mod unsafety;
mod words;

use crate::house;
use anyhow::{Result, bail};
use files::File;
use std::fmt;
use std::path::Path;

/// Checks the house rules: module docs, crate edges, tests that do not run, `unsafe`, sizes, paths, words, licences.
#[derive(clap::Args)]
pub(crate) struct Tidy {}

impl Tidy {
    pub(crate) fn run(self) -> Result<()> {
        run()
    }
}

/// One breach of a house rule.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Finding {
    path: String,
    /// Counted from 1; 0 where the whole file is meant.
    line: usize,
    rule: &'static str,
    what: String,
}

impl Finding {
    fn new(rule: &'static str, path: &str, line: usize, what: impl Into<String>) -> Self {
        Self {
            path: path.to_owned(),
            line,
            rule,
            what: what.into(),
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => write!(f, "{}: {} [{}]", self.path, self.what, self.rule),
            line => write!(f, "{}:{line}: {} [{}]", self.path, self.what, self.rule),
        }
    }
}

/// Checks everything and prints what is wrong.
pub(crate) fn run() -> Result<()> {
    let root = house::root()?;
    let files = files::all(&root)?;
    let mut findings = of_files(&root, &files);
    let metadata = house::metadata()?;
    findings.extend(edges::check(&metadata));
    findings.extend(unrun::check(&root, &files, &metadata));
    findings.extend(licences::check(
        &metadata,
        &std::fs::read_to_string(root.join("deny.toml"))?,
    ));
    let mut findings = exceptions::forgive(findings);
    findings.sort();
    for finding in &findings {
        eprintln!("{finding}");
    }
    eprintln!("{} files; {}", files.len(), size::summary(&files));
    match findings.len() {
        0 => Ok(()),
        count => bail!("{count} house rules broken"),
    }
}

fn of_files(root: &Path, files: &[File]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in files {
        findings.extend(words::check(file));
        if file.is_rust() {
            findings.extend(source::check(file));
        }
        if file.is_rust() && !file.is_fixture() {
            findings.extend(size::check(file));
            findings.extend(unsafety::check(file));
        }
        if file.is_markdown() {
            findings.extend(documents::check(root, file));
        }
    }
    findings.extend(size::check_manners(files));
    findings.extend(tables::check(root, files));
    findings.extend(unsafety::check_table(files));
    findings
}
