//! The programs and what they do: about a second of work, about a millisecond, and large programs
//! of which a run touches much code once.
#![expect(dead_code, reason = "each bench asks for a part of it")]

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Result;
use tomo_testkit::corpus::{Compiler, Level, Recipe, Source, build};

use crate::inputs;

/// A program at work.
pub(crate) struct Case {
    pub(crate) name: &'static str,
    pub(crate) program: PathBuf,
    /// What it was built from, if it was not installed.
    pub(crate) source: Option<Source>,
    pub(crate) arguments: Vec<String>,
    /// What it reads from its standard input.
    pub(crate) input: Option<PathBuf>,
    /// Where it runs.
    pub(crate) folder: Option<PathBuf>,
    pub(crate) rounds: usize,
    /// The same sources built otherwise: what by, the program, and what it is compared with.
    pub(crate) peers: Vec<(&'static str, PathBuf, &'static str)>,
    pub(crate) promises: Promises,
}

/// What is promised of a case.
#[derive(Clone, Copy)]
pub(crate) struct Promises {
    /// Ratio where nothing has been disposed of.
    pub(crate) cold: f64,
    /// Ratio where the pool has seen this run before.
    pub(crate) warm: f64,
    /// Milliseconds that `tomo cover` adds.
    pub(crate) launched: Option<f64>,
}

const SECOND: Promises = Promises {
    cold: 1.01,
    warm: 1.01,
    launched: None,
};
const MILLISECOND: Promises = Promises {
    cold: 1.35,
    warm: 1.1,
    launched: Some(1.0),
};
const LARGE: Promises = Promises {
    cold: 1.03,
    warm: 1.03,
    launched: None,
};

/// All cases whose names are wanted, with their inputs in `folder`.
pub(crate) fn all(folder: &Path, wanted: impl Fn(&str) -> bool) -> Result<Vec<Case>> {
    let mut cases = Vec::new();
    for (name, source, make) in OWN {
        if wanted(name) {
            cases.push(own(name, source, make(folder)?)?);
        }
    }
    for (name, program, make) in INSTALLED {
        if wanted(name) && Path::new(program).exists() {
            cases.push(installed(name, program, make(folder)?)?);
        } else if wanted(name) {
            eprintln!("not installed, left out: {program}");
        }
    }
    Ok(cases)
}

/// What a program is run with.
#[derive(Default)]
pub(crate) struct Work {
    pub(crate) arguments: Vec<String>,
    pub(crate) input: Option<PathBuf>,
    pub(crate) folder: Option<PathBuf>,
}

/// Whether profiles and traces of it are measured: the programs of which that is promised, at a second's work.
pub(crate) fn is_profiled(name: &str) -> bool {
    name.ends_with("a second") && !name.starts_with("python3")
}

type Make = fn(&Path) -> Result<Work>;

const OWN: [(&str, Source, Make); 5] = [
    ("lua, a second", Source::Lua, inputs::lua_loop),
    ("sqlite, a second", Source::Sqlite, inputs::queries),
    ("bzip2, a second", Source::Bzip2, inputs::text_to_compress),
    ("lua, a millisecond", Source::Lua, inputs::lua_short),
    ("sqlite, a millisecond", Source::Sqlite, inputs::few_queries),
];

const INSTALLED: [(&str, &str, Make); 5] = [
    ("ripgrep, a second", "/usr/bin/rg", inputs::text_to_rewrite),
    ("python3, a second", "/usr/bin/python3", inputs::python_loop),
    (
        "python3, large: imports",
        "/usr/bin/python3",
        inputs::imports,
    ),
    ("git, large: status", "/usr/bin/git", inputs::work_tree),
    (
        "clang, large: compiles",
        "/usr/bin/clang-19",
        inputs::large_source,
    ),
];

fn promises(name: &str) -> (Promises, usize) {
    if name.ends_with("millisecond") {
        (MILLISECOND, 200)
    } else if name.contains("large") {
        (LARGE, 11)
    } else {
        (SECOND, 15)
    }
}

fn own(name: &'static str, source: Source, work: Work) -> Result<Case> {
    let (promises, rounds) = promises(name);
    Ok(Case {
        name,
        program: build(&Recipe::new(source, Compiler::Gcc, Level::O2))?.program,
        source: Some(source),
        arguments: work.arguments,
        input: work.input,
        folder: work.folder,
        rounds,
        peers: peers(source)?,
        promises,
    })
}

fn installed(name: &'static str, program: &str, work: Work) -> Result<Case> {
    let (promises, rounds) = promises(name);
    Ok(Case {
        name,
        program: fs::canonicalize(program)?,
        source: None,
        arguments: work.arguments,
        input: work.input,
        folder: work.folder,
        rounds,
        peers: Vec::new(),
        promises,
    })
}

/// The same sources, built to count by the compilers themselves; clang's own against clang's.
fn peers(source: Source) -> Result<Vec<(&'static str, PathBuf, &'static str)>> {
    let built = |compiler, extra: &[&str]| -> Result<PathBuf> {
        let mut recipe = Recipe::new(source, compiler, Level::O2);
        recipe.extra = extra.iter().map(|&flag| flag.to_owned()).collect();
        Ok(build(&recipe)?.program)
    };
    let mapped = ["-fprofile-instr-generate", "-fcoverage-mapping"];
    Ok(vec![
        (
            "gcc --coverage",
            built(Compiler::Gcc, &["--coverage"])?,
            "alone",
        ),
        ("clang alone", built(Compiler::Clang, &[])?, "clang alone"),
        (
            "clang -fcoverage-mapping",
            built(Compiler::Clang, &mapped)?,
            "clang alone",
        ),
    ])
}
