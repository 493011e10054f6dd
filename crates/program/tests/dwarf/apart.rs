//! Debug information that the compiler left in `.dwo` files, and packages of them: calls that were inlined have the lines
//! that they have where all of it is in the program.

use crate::block_lines::{Statement, pieces, shown};
use crate::build::{Built, C, CPP, build, run};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use tomo_program::Range;
use tomo_program::dwarf::{Apart, Sections, Told, block_lines_with};

/// A program that has some of its debug information apart, and what is stated of one that has all of it.
struct Split {
    built: Built,
    pieces: Vec<Range>,
    whole: BTreeSet<Statement>,
}

fn split(compiler: &str, flags: &[&str], sources: &[(&str, &str)]) -> Split {
    let whole = build(compiler, &[&["-g", "-O2"], flags].concat(), sources);
    let bytes = whole.bytes();
    let sections = Sections::read(&bytes);
    let pieces = pieces(&sections);
    let read = block_lines_with(&sections, &Apart::default(), &pieces, Told::Blocks);
    let flags = [&["-g", "-O2", "-gsplit-dwarf"], flags].concat();
    Split {
        built: build(compiler, &flags, sources),
        whole: shown(&read, &pieces),
        pieces,
    }
}

impl Split {
    /// What is stated of the program when it is at `place`, and whose files are missing.
    fn stated(&self, place: &Path) -> (BTreeSet<Statement>, Option<(usize, usize, PathBuf)>) {
        let bytes = self.built.bytes();
        let sections = Sections::read(&bytes);
        let apart = Apart::find(&sections, &[place]);
        let missing = apart.missing();
        let missing = missing.map(|(some, all, first)| (some, all, first.to_owned()));
        let read = block_lines_with(&sections, &apart, &self.pieces, Told::Blocks);
        assert_eq!(read.warnings, []);
        (shown(&read, &self.pieces), missing)
    }

    fn files(&self) -> Vec<PathBuf> {
        let found = fs::read_dir(self.built.directory.path()).expect("a folder");
        let found = found.map(|entry| entry.expect("an entry").path());
        let mut files: Vec<PathBuf> = found
            .filter(|path| path.extension().is_some_and(|it| it == "dwo"))
            .collect();
        files.sort();
        files
    }
}

#[test]
fn calls_that_were_inlined_have_their_lines_from_files_of_their_own() {
    for (compiler, flag) in [
        ("g++", "-gdwarf-5"),
        ("g++", "-gdwarf-4"),
        ("clang++-19", "-gdwarf-5"),
        ("clang++-19", "-gdwarf-4"),
    ] {
        let split = split(compiler, &[flag], &CPP);
        let (found, missing) = split.stated(&split.built.program);
        assert_eq!(missing, None, "{compiler} {flag}");
        assert_eq!(found, split.whole, "{compiler} {flag}");
        // Where the program is, if they are not where they were made.
        let elsewhere = tempfile::TempDir::new().expect("a folder");
        let files = split.files();
        for file in &files {
            let moved = elsewhere.path().join(file.file_name().expect("a name"));
            fs::rename(file, moved).expect("moved");
        }
        let (found, missing) = split.stated(&elsewhere.path().join("program"));
        assert_eq!((found, missing), (split.whole.clone(), None));
        // Nowhere: said, and lines are lost.
        let (found, missing) = split.stated(&split.built.program);
        let (some, all, first) = missing.expect("missing");
        assert_eq!((some, all), (files.len(), files.len()));
        assert!(files.contains(&first), "{}", first.display());
        assert!(found.is_subset(&split.whole) && found != split.whole);
    }
}

#[test]
fn a_package_of_files_tells_as_much() {
    let split = split("gcc", &["-gdwarf-4"], &C);
    run(Command::new("llvm-dwp-19")
        .current_dir(split.built.directory.path())
        .args(["-e", "program", "-o", "program.dwp"]));
    split.files().iter().for_each(|file| {
        fs::remove_file(file).expect("removed");
    });
    let (found, missing) = split.stated(&split.built.program);
    assert_eq!((found, missing), (split.whole, None));
}

#[test]
fn a_file_of_another_unit_is_not_used() {
    let split = split("gcc", &[], &C);
    let files = split.files();
    let [one, .., last] = files.as_slice() else {
        panic!("{files:?}");
    };
    fs::copy(one, last).expect("copied");
    let (_, missing) = split.stated(&split.built.program);
    assert_eq!(missing, Some((1, files.len(), last.clone())));
    fs::write(last, "nothing of the kind").expect("written");
    let (_, missing) = split.stated(&split.built.program);
    assert_eq!(missing, Some((1, files.len(), last.clone())));
}
