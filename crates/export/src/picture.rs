//! The picture: what is known of lines, branches, functions and blocks, put together from all modules.
//!
//! A line *ran* if a block that it belongs to ran ([`tomo_program::dwarf::block_lines`]), in whichever
//! module; it did not if none of them did; else it is unknown. A branch is a conditional branch of the
//! machine code, at the line of its instruction, with two sides. A function belongs to the file that
//! its entry comes from, and its blocks to the same. A file has a function once, and its blocks and branches, however many copies
//! of it there are in modules (`picture/copies.rs`), and it was entered where its body was that a compiler put in place of a call
//! (`picture/inlined.rs`); a module has all functions of its own code, as they were entered there.

mod build;
mod copies;
mod function;
mod inlined;
mod sharing;
mod tally;
mod unknown;

use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use tomo_profile::merge::Finding;
use tomo_program::{Address, FunctionId, Model};
use tomo_wire::plan::Level;

use crate::Findings;
use crate::module::Located;
use crate::source;

pub(crate) use tally::shown;
pub use tally::{Row, Tally, Totals};

/// What happened in all modules.
#[derive(Debug, Default)]
pub struct Picture {
    /// The modules, by path.
    pub modules: Vec<Module>,
    /// The files of those that are not among them, since no process was observed in them, but in others.
    pub unseen: Vec<PathBuf>,
    /// Source files that are shown, by path.
    pub files: Vec<File>,
    /// What belongs to no line with code of any file that is known.
    pub elsewhere: Totals,
    /// What the source itself asked to be left out, if that was to be done.
    pub left_out: Option<LeftOut>,
    /// Records that were put together.
    pub records: usize,
    /// When the first of them was made, in nanoseconds since 1970.
    pub created: i64,
    /// When the last of the modules was written that are there.
    newest: Option<SystemTime>,
}

/// What is not shown since the source marks it ([`Paths::leaving_out_marked`](crate::Paths::leaving_out_marked)).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LeftOut {
    /// Lines with code.
    pub lines: u64,
    /// Files that have some of them.
    pub files: u64,
    /// Of these, such as were written after the program, so that marks may stand at other lines.
    pub newer: u64,
    /// Of these, such as nothing stops what a mark has started, so that all behind it is left out.
    pub open: u64,
    /// Files of which the source could not be read, so that marks in it are not known.
    pub unread: u64,
}

/// A module whose records are to be put into a picture.
#[derive(Debug)]
pub struct Observed {
    /// The module.
    pub located: Arc<Located>,
    /// What is known of its units.
    pub findings: Findings,
}

/// A module.
#[derive(Debug)]
pub struct Module {
    /// Its file and model.
    pub located: Arc<Located>,
    /// What is known of its units.
    pub findings: Findings,
    /// Its functions, by number in the model.
    pub functions: Vec<Function>,
    /// Where it starts, as it states itself: its first loaded byte, rounded down to a page.
    pub base: u64,
    /// Where it ends.
    pub end: u64,
    /// Whether any line is known.
    pub has_lines: bool,
    /// What could not be observed.
    pub unobserved: Unobserved,
    /// Of those functions that are shown, and of all lines that are.
    pub totals: Totals,
}

/// What a module kept to itself, and what was concluded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Unobserved {
    /// Functions of which it is unknown whether they were entered, of all.
    pub functions: (u64, u64),
    /// Blocks of which it is unknown whether they ran, of all.
    pub blocks: (u64, u64),
    /// Bytes of code in those blocks, or in none that is known, of all that are not filling.
    pub bytes: (u64, u64),
    /// Blocks, or functions where only these were asked for, that are known from others' probes.
    pub inferred: u64,
}

/// A function.
#[derive(Clone, Debug)]
pub struct Function {
    /// Which it is.
    pub id: FunctionId,
    /// Its name for people.
    pub title: String,
    /// What other functions of the source have the same code, in words behind the name; mostly none.
    pub also: String,
    /// Where it is entered.
    pub entry: Address,
    /// The file that its entry comes from: an index into [`Picture::files`].
    pub file: Option<u32>,
    /// The line there, or 0.
    pub line: u32,
    /// Whether it was entered.
    pub entered: Finding,
    /// Whether the choice of files lets it be shown.
    pub shown: bool,
    /// Its own lines, branches and blocks; itself under functions.
    pub totals: Totals,
}

/// A source file.
#[derive(Clone, Debug, Default)]
pub struct File {
    /// Its name after replacement, as [`tomo_program::text_of`] has it: no other file has the same.
    pub path: String,
    /// Where it is, after replacement.
    pub place: PathBuf,
    /// Lines with code, ascending.
    pub lines: Vec<Line>,
    /// Branches of these lines, by line and then by module and address.
    pub branches: Vec<Branch>,
    /// Functions, by line.
    pub functions: Vec<Copies>,
    /// All of it.
    pub totals: Totals,
}

/// A function of a file, with all copies of it.
#[derive(Clone, Debug)]
pub struct Copies {
    /// Where they are, as module and function; none where its body was put in place of all calls.
    pub of: Vec<(u32, FunctionId)>,
    /// Its name for linkers, if it has one.
    pub name: Option<Box<str>>,
    /// Its name for people.
    pub title: String,
    /// The line that its entry comes from or, of one without code of its own, the first with code from where it is declared on; 0
    /// where that is not known.
    pub line: u32,
    /// Whether any of them was entered, or a body of it that was put in place of a call.
    pub entered: Finding,
    /// What ran in any of them.
    pub totals: Totals,
}

/// A line with code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Line {
    /// Its number, from 1.
    pub number: u32,
    /// Whether it ran.
    pub finding: Finding,
}

/// A conditional branch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Branch {
    /// The line that it comes from.
    pub line: u32,
    /// The module, or the first one of those that have copies of it.
    pub module: u32,
    /// Where the block starts that ends with it, in that.
    pub address: Address,
    /// What it shares with its copies, and with nothing else at this line.
    pub copy: u64,
    /// Whether its block ran.
    pub block: Finding,
    /// Whether it was taken.
    pub taken: Finding,
    /// Whether it was passed.
    pub not_taken: Finding,
}

/// A finding as people and machines read it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Brief {
    /// `ran`, `not-run` or `unknown`.
    pub state: &'static str,
    /// `observed`, `inferred` or `unobservable`.
    pub how: &'static str,
    /// Whether it holds only if the runs ended otherwise than by a signal.
    pub if_whole: bool,
}

impl From<Finding> for Brief {
    fn from(finding: Finding) -> Self {
        let state = match finding.ran() {
            Some(true) => "ran",
            Some(false) => "not-run",
            None => "unknown",
        };
        let how = match finding {
            Finding::Unknown => "unobservable",
            Finding::Ran | Finding::NotRun => "observed",
            _ => "inferred",
        };
        let if_whole = matches!(finding, Finding::RanIfWhole | Finding::NotRunIfWhole);
        Self {
            state,
            how,
            if_whole,
        }
    }
}

impl Module {
    /// Where its file is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.located.path
    }

    /// Its model.
    #[must_use]
    pub fn model(&self) -> &Model {
        &self.located.model
    }
}

impl Picture {
    /// Everything that is shown.
    #[must_use]
    pub fn totals(&self) -> Totals {
        let files = self.files.iter().map(|file| file.totals);
        files.fold(self.elsewhere, |all, file| all + file)
    }

    /// What comes from source files that are known; everything, where none is.
    #[must_use]
    pub fn totals_of_source(&self) -> Totals {
        match self.files.is_empty() {
            true => self.totals(),
            false => self
                .files
                .iter()
                .fold(Totals::default(), |all, file| all + file.totals),
        }
    }

    /// Whether a source file was written after all of the modules were that are there.
    pub(crate) fn is_newer(&self, place: &Path) -> bool {
        let newest = self.newest;
        newest.is_some_and(|newest| source::written(place).is_some_and(|it| it > newest))
    }

    /// The finest level that was asked for in any module.
    #[must_use]
    pub fn level(&self) -> Level {
        let levels = self.modules.iter().map(|module| module.findings.level);
        levels.max().unwrap_or(Level::Function)
    }

    /// Whether anything is known of lines.
    #[must_use]
    pub fn has_lines(&self) -> bool {
        self.level() > Level::Function && self.files.iter().any(|file| !file.lines.is_empty())
    }

    /// The lines of a file for formats that know nothing but lines; where only functions were asked for, those
    /// that functions begin at.
    #[must_use]
    pub fn lines_of<'p>(&'p self, file: &'p File) -> Cow<'p, [Line]> {
        if self.level() > Level::Function {
            return Cow::Borrowed(&file.lines);
        }
        let mut lines: Vec<Line> = Vec::new();
        for function in file.functions.iter().filter(|function| function.line > 0) {
            let (number, finding) = (function.line, function.entered);
            match lines.last_mut().filter(|last| last.number == number) {
                Some(last) => last.finding = last.finding.or(finding),
                None => lines.push(Line { number, finding }),
            }
        }
        Cow::Owned(lines)
    }

    /// What those formats have of these files.
    pub(crate) fn totals_of(&self, files: &[File]) -> Totals {
        files.iter().fold(Totals::default(), |all, file| {
            let lines = self.lines_of(file);
            let lines = lines.iter().map(|line| line.finding).collect();
            all + Totals {
                lines,
                ..file.totals
            }
        })
    }
}
