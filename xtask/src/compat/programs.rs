//! The programs of this machine as they are shipped, each asked for its version and for help, alone and observed.
//!
//! Suites try a few programs hard. This tries all there are a little, and so meets the code of many compilers, of several
//! languages and decades.

use super::asking::{self, Came, WAYS};
use super::run::Place;
use anyhow::{Context as _, Result};
use std::ffi::OsString;
use std::fs;
use std::io::Read as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

/// Where the programs are.
const FOLDER: &str = "/usr/bin";
/// Larger ones take long to be analysed, and the suites have large ones.
const LARGEST: u64 = 12 << 20;
/// What each is asked.
const QUESTIONS: [&str; 2] = ["--version", "--help"];

/// One way of observing all programs.
pub(super) struct Way {
    /// Its words on a command line.
    pub(super) name: String,
    pub(super) runs: usize,
    /// Those of programs that cannot be observed so, which is said.
    pub(super) refused: usize,
    /// Questions whose answers differ, or of which `tomo` says that the program was not observed.
    pub(super) differ: Vec<String>,
}

/// What came of it.
pub(super) struct Asked {
    pub(super) programs: usize,
    /// Questions that were answered alike twice alone.
    pub(super) answered: usize,
    /// Questions that were not, and so are not compared.
    pub(super) unsteady: usize,
    pub(super) ways: Vec<Way>,
}

impl Asked {
    pub(super) fn nothing() -> Self {
        let way = |way: &&[&str]| Way {
            name: way.join(" "),
            runs: 0,
            refused: 0,
            differ: Vec::new(),
        };
        Self {
            programs: 0,
            answered: 0,
            unsteady: 0,
            ways: WAYS.iter().map(way).collect(),
        }
    }

    fn add(&mut self, other: Self) {
        self.programs += other.programs;
        self.answered += other.answered;
        self.unsteady += other.unsteady;
        for (way, more) in self.ways.iter_mut().zip(other.ways) {
            way.runs += more.runs;
            way.refused += more.refused;
            way.differ.extend(more.differ);
        }
    }
}

/// Asks all programs, so many at once as the place has jobs.
pub(super) fn ask(place: &Place) -> Result<Asked> {
    let programs = programs()?;
    let next = AtomicUsize::new(0);
    let work = || -> Result<Asked> {
        let mut asked = Asked::nothing();
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some(program) = programs.get(at) else {
                return Ok(asked);
            };
            if at.is_multiple_of(20) {
                eprintln!("{at} of {} programs", programs.len());
            }
            let one = examine(place, program);
            asked.add(one.with_context(|| program.display().to_string())?);
        }
    };
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..place.jobs).map(|_| scope.spawn(work)).collect();
        let mut all = Asked::nothing();
        for worker in workers {
            let asked = worker.join();
            all.add(asked.unwrap_or_else(|panic| std::panic::resume_unwind(panic))?);
        }
        all.ways.iter_mut().for_each(|way| way.differ.sort());
        Ok(all)
    })
}

/// The programs, by name.
fn programs() -> Result<Vec<PathBuf>> {
    let mut programs = Vec::new();
    for entry in fs::read_dir(FOLDER).context(FOLDER)? {
        let path = entry?.path();
        if is_fit(&path) {
            programs.push(path);
        }
    }
    programs.sort();
    Ok(programs)
}

/// Whether the file is a program, no script and no other name of one, that is not too large and raises no privileges.
fn is_fit(path: &Path) -> bool {
    let raises = |mode: u32| mode & 0o6000 != 0;
    let right = fs::symlink_metadata(path).is_ok_and(|file| {
        file.is_file() && file.len() <= LARGEST && !raises(file.permissions().mode())
    });
    let mut start = [0; 4];
    let read = fs::File::open(path).and_then(|mut file| file.read_exact(&mut start));
    right && read.is_ok() && &start == b"\x7fELF"
}

/// Asks one program everything, in all ways.
fn examine(place: &Place, program: &Path) -> Result<Asked> {
    let mut asked = Asked::nothing();
    asked.programs = 1;
    for question in QUESTIONS {
        let words = [program.into(), OsString::from(question)];
        let Some(came) = asking::ask(place, &[], &words)? else {
            asked.unsteady += 1;
            continue;
        };
        asked.answered += 1;
        for (came, way) in came.iter().zip(&mut asked.ways) {
            way.runs += 1;
            match came {
                Came::Same => {}
                Came::Refused => way.refused += 1,
                Came::Differs => way.differ.push(format!("{} {question}", program.display())),
            }
        }
    }
    Ok(asked)
}

#[cfg(test)]
mod tests {
    use super::{Asked, is_fit};
    use std::path::Path;

    #[test]
    fn scripts_and_other_names_are_no_programs() {
        assert!(is_fit(Path::new("/usr/bin/env")));
        assert!(!is_fit(Path::new("/proc/self/exe")));
        assert!(!is_fit(Path::new(file!())) && !is_fit(Path::new("/no/such")));
    }

    #[test]
    fn what_workers_found_adds_up() {
        let one = |program: &str| {
            let mut asked = Asked::nothing();
            (asked.programs, asked.answered) = (1, 2);
            asked.ways[0].runs = 2;
            asked.ways[0].differ = vec![program.into()];
            asked
        };
        let mut all = one("a");
        all.add(one("b"));
        assert_eq!((all.programs, all.answered, all.unsteady), (2, 4, 0));
        assert_eq!(all.ways[0].differ, ["a", "b"]);
        assert_eq!((all.ways[0].runs, all.ways[1].runs), (4, 0));
    }
}
