//! What is asked of a search, and why there may be no answer.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::io;
use std::path::PathBuf;

use globset::{Glob, GlobSet, GlobSetBuilder};
use tomo_export::ModuleError;
use tomo_export::predicates::{Id, PredicateError, Site, Sites};
use tomo_launch::{CrashError, FolderError, ImageError, TargetError, VariantError};
use tomo_plan::search::{Direction, IcdgError, StateError};
use tomo_profile::scores::Heuristic;
use tomo_program::ModelError;

use crate::cases::Cases;
use crate::session::Watch;

/// Which way the search goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Towards {
    /// From what always runs.
    Forward,
    /// From where runs crash.
    Backward,
    /// From both.
    Both,
}

/// By what the next predicate is chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Score {
    /// By data.
    By(Heuristic),
    /// The first.
    Bfs,
    /// Any.
    Random,
    /// By knowing the answer: all sites are watched first. For studies.
    Oracle,
}

/// What is searched, and how.
#[derive(Clone, Debug)]
pub struct Options {
    /// The program, and arguments before those of the cases.
    pub command: Vec<OsString>,
    /// The cases.
    pub cases: Cases,
    /// Where what is found is kept.
    pub folder: PathBuf,
    /// Where models and images are kept.
    pub cache: PathBuf,
    /// Cases that are run in a step at most.
    pub runs: usize,
    /// Whether a survey of which functions cases enter says where to begin.
    pub survey: bool,
    /// Cases at a time.
    pub jobs: usize,
    /// Which way the search goes.
    pub towards: Towards,
    /// By what the next predicate is chosen.
    pub score: Score,
    /// Seed of all that is left to chance.
    pub seed: u64,
    /// Steps at most.
    pub steps: usize,
    /// Sites at a time at most.
    pub most: u32,
    /// Sites to begin with.
    pub start: Vec<Id>,
    /// Functions or source files that alone are watched, as patterns; all where there are none.
    pub focus: Vec<String>,
    /// Functions or source files that are not.
    pub exclude: Vec<String>,
    /// Whether paths are looked at where no branch and no result predicts failure for certain.
    pub paths: bool,
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "each says itself what it is")]
pub enum IsolateError {
    #[error(transparent)]
    Target(#[from] TargetError),
    #[error("{path}: {1}", path = .0.display())]
    Io(PathBuf, io::Error),
    #[error(transparent)]
    Image(#[from] ImageError),
    #[error(transparent)]
    Module(#[from] ModuleError),
    #[error(transparent)]
    Variant(#[from] VariantError),
    #[error(transparent)]
    Folder(#[from] FolderError),
    #[error("where a case crashed: {0}")]
    Crash(#[from] CrashError),
    #[error(transparent)]
    Predicates(#[from] PredicateError),
    #[error("the model {0}")]
    Model(#[from] ModelError),
    #[error("the program is too large to be searched: {0}")]
    Graph(#[from] IcdgError),
    #[error("the state of the search: {0}; begin anew in another folder (-o)")]
    State(#[from] StateError),
    #[error(
        "none of the {0} cases fails, so there is nothing to be found; check how success is told (=> …)"
    )]
    NoFailure(usize),
    #[error(
        "all {0} cases fail, so there is nothing to compare with; check how success is told (=> …)"
    )]
    NoSuccess(usize),
    #[error("the case in line {0} could not be run: {1}")]
    Case(usize, io::Error),
    #[error("nobody can tell whether the case in line {0} is a success: {1}")]
    Unlabelled(usize, String),
    #[error("{path}: {1}; begin anew in another folder (-o)", path = .0.display())]
    Unread(PathBuf, io::Error),
    #[error("{path} has changed since the search began: begin anew in another folder (-o), or bring the old program back", path = .0.display())]
    Changed(PathBuf),
    #[error("{path} holds another search ({1}): go on with its own, or choose another folder (-o)", path = .0.display())]
    Other(PathBuf, &'static str),
    #[error("{path}: another search is going on there: wait for its end, or choose another folder (-o)", path = .0.display())]
    Busy(PathBuf),
    #[error("nothing was recorded in any run{0}")]
    NotArmed(String),
    #[error("{0}: {1}")]
    Pattern(String, globset::Error),
    #[error("nothing that can be watched matches --focus {0}; there are {1}")]
    NoFocus(String, String),
    #[error("--exclude leaves nothing to be watched; there are {0}")]
    NothingLeft(String),
    #[error("the program has no site {0} that can be observed")]
    NoSite(Id),
}

pub(crate) fn direction(towards: Towards) -> Direction {
    match towards {
        Towards::Forward => Direction::Forward,
        Towards::Backward | Towards::Both => Direction::Backward,
    }
}

/// How what must be the same begins: with the command.
pub(crate) fn command_asked(options: &Options) -> String {
    format!("{:?} ", options.command)
}

/// What must be the same when a search goes on.
pub(crate) fn asked_for(options: &Options) -> String {
    let Options {
        towards,
        score,
        seed,
        most,
        start,
        focus,
        exclude,
        runs,
        survey,
        ..
    } = options;
    format!(
        "{}{towards:?} {score:?} {seed} {most} {start:?} {focus:?} {exclude:?} {runs} {survey}",
        command_asked(options)
    )
}

fn patterns(texts: &[String]) -> Result<GlobSet, IsolateError> {
    let mut set = GlobSetBuilder::new();
    let bad = |text: &str| {
        let text = text.to_owned();
        move |error| IsolateError::Pattern(text, error)
    };
    for text in texts {
        set.add(Glob::new(text).map_err(bad(text))?);
    }
    set.build().map_err(bad(""))
}

/// By site: whether it may be watched. What matches nothing is told, with what there is.
pub(crate) fn allowed(
    sites: &Sites,
    options: &Options,
    watch: &mut dyn Watch,
) -> Result<Vec<bool>, IsolateError> {
    let names: Vec<Names<'_>> = sites.sites.iter().map(names).collect();
    let Options { focus, exclude, .. } = options;
    let lost = unmatched(focus, &names)?;
    if !focus.is_empty() && lost.len() == focus.len() {
        let all = focus.join(" or ");
        return Err(IsolateError::NoFocus(all, there_is(&names)));
    }
    for (flag, lost) in [("focus", lost), ("exclude", unmatched(exclude, &names)?)] {
        for text in lost {
            let there = there_is(&names);
            watch.note(&format!(
                "nothing that can be watched matches --{flag} {text}; there are {there}"
            ));
        }
    }
    let (only, without) = (patterns(focus)?, patterns(exclude)?);
    let is_allowed = |names: &Names<'_>| {
        (focus.is_empty() || matches(&only, names)) && !matches(&without, names)
    };
    let allowed: Vec<bool> = names.iter().map(is_allowed).collect();
    if !exclude.is_empty() && !allowed.contains(&true) {
        return Err(IsolateError::NothingLeft(there_is(&names)));
    }
    Ok(allowed)
}

/// What a site goes by: its function, and its source file with its folders and without.
type Names<'s> = [&'s str; 3];

fn names(site: &Site) -> Names<'_> {
    let file = site.line.as_ref().map_or("", |line| line.file.as_str());
    [
        &site.function,
        file,
        file.rsplit('/').next().unwrap_or_default(),
    ]
}

fn matches(set: &GlobSet, names: &Names<'_>) -> bool {
    names.iter().any(|name| set.is_match(name))
}

/// Those of the patterns that no site goes by.
fn unmatched<'o>(texts: &'o [String], names: &[Names<'_>]) -> Result<Vec<&'o str>, IsolateError> {
    let mut lost = Vec::new();
    for text in texts {
        let set = patterns(std::slice::from_ref(text))?;
        if !names.iter().any(|names| matches(&set, names)) {
            lost.push(text.as_str());
        }
    }
    Ok(lost)
}

/// What can be matched, in words; of many the first ones.
fn there_is(names: &[Names<'_>]) -> String {
    const MOST: usize = 8;
    let list = |which: usize, what: &str| {
        let all = names.iter().map(|names| names[which]);
        let all: BTreeSet<&str> = all.filter(|name| !name.is_empty()).collect();
        let first: Vec<&str> = all.iter().take(MOST).copied().collect();
        let more = match all.len().saturating_sub(MOST) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        (!all.is_empty()).then(|| format!("the {what} {}{more}", first.join(", ")))
    };
    let lists = [list(2, "source files"), list(0, "functions")];
    let lists: Vec<String> = lists.into_iter().flatten().collect();
    match lists.is_empty() {
        true => "none".into(),
        false => lists.join("; "),
    }
}

#[cfg(test)]
mod tests {
    use super::{Names, there_is, unmatched};

    #[test]
    fn patterns_that_match_nothing_are_told_with_what_there_is() {
        let names: [Names<'_>; 3] = [
            ["main", "/src/a.c", "a.c"],
            ["helper", "/src/lib/b.c", "b.c"],
            ["start", "", ""],
        ];
        let patterns = ["mian", "a.*", "/src/lib/*", "start", "*.h"].map(str::to_owned);
        assert_eq!(unmatched(&patterns, &names).unwrap(), ["mian", "*.h"]);
        assert!(unmatched(&["[".to_owned()], &names).is_err());
        let there = "the source files a.c, b.c; the functions helper, main, start";
        assert_eq!(there_is(&names), there);
        let many: Vec<String> = (0..20).map(|number| format!("f{number:02}")).collect();
        let many: Vec<Names<'_>> = many.iter().map(|name| [name.as_str(), "", ""]).collect();
        assert!(there_is(&many).ends_with("f07 and 12 more"));
        assert_eq!(there_is(&[]), "none");
    }
}
