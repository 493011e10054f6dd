//! Real programs with their workloads, built from sources by named compilers and flags.
//!
//! The sources of lua, sqlite, bzip2 and zstd come with packages that the lock file pins; the
//! feature programs and the small drivers are our own, under `programs/`. What is built is kept in
//! `target/corpus/<name>-<hash>`, where the hash covers the recipe, the sources and the compilers'
//! versions; so each program is built once, by whichever test comes first, and never goes stale.

mod cache;
mod compile;
mod sources;
mod workloads;

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

pub use cache::Turn;
pub(crate) use cache::{directory, kept};
pub use sources::package;

/// One program of the test set, built from sources by a named compiler and flags.
#[derive(Clone, Debug)]
pub struct Built {
    /// The executable.
    pub program: PathBuf,
    /// What to call it in reports, such as `lua-gcc-O2`.
    pub name: String,
    /// Ways to run it, each short enough to be single-stepped.
    pub workloads: Vec<Workload>,
}

/// One way to run a program.
#[derive(Clone, Debug, Default)]
pub struct Workload {
    /// Its arguments, without the program's name.
    pub args: Vec<String>,
    /// What it reads from its standard input; nothing where there is none.
    pub stdin: Option<Vec<u8>>,
    /// Where it runs; where the test runs, if there is none.
    pub cwd: Option<PathBuf>,
}

/// A family of compilers; the source decides which member is meant (`gcc` or `g++`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Compiler {
    /// Debian's gcc and g++.
    Gcc,
    /// Debian's clang-19 and clang++-19.
    Clang,
    /// The rustc that builds the workspace.
    Rustc,
}

/// How much the compiler optimises.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Level {
    /// Not at all.
    O0,
    /// As distributions do.
    O2,
    /// As hard as it can.
    O3,
}

impl Level {
    /// All levels.
    pub const ALL: [Self; 3] = [Self::O0, Self::O2, Self::O3];
}

/// What a program is built from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Source {
    /// Lua 5.4 behind a driver that runs one script.
    Lua,
    /// SQLite with full-text search behind a driver that runs one file of SQL.
    Sqlite,
    /// bzip2 with its own command line.
    Bzip2,
    /// zstd behind a driver that compresses and expands its input in many ways.
    Zstd,
    /// What C++ adds to machine code: exceptions, virtual calls, initialisation guards …
    CppFeatures,
    /// What Rust adds: panics, large matches, drop glue …
    RustFeatures,
    /// What C compilers make of switches, cold code, tail calls, label addresses …
    CFeatures,
}

/// How a program is built.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Recipe {
    /// From what.
    pub source: Source,
    /// By whom.
    pub compiler: Compiler,
    /// How much optimised.
    pub level: Level,
    /// Whether the compiler leaves its own map of basic blocks in the file (clang and rustc).
    pub block_address_map: bool,
    /// Whether symbols and debug information are taken out afterwards.
    pub strip: bool,
    /// Whether it is position independent.
    pub pie: bool,
    /// Further arguments for the compiler.
    pub extra: Vec<String>,
    /// Further files of ours, under `programs/`, that are built in.
    pub with: Vec<&'static str>,
}

impl Recipe {
    /// Position independent, with symbols and debug information, without a block map.
    #[must_use]
    pub fn new(source: Source, compiler: Compiler, level: Level) -> Self {
        Self {
            source,
            compiler,
            level,
            block_address_map: false,
            strip: false,
            pie: true,
            extra: Vec::new(),
            with: Vec::new(),
        }
    }

    /// The recipes of one source: every compiler that knows its language, at every level.
    #[must_use]
    pub fn family(source: Source) -> Vec<Self> {
        let compilers: &[Compiler] = match source {
            Source::RustFeatures => &[Compiler::Rustc],
            _ => &[Compiler::Gcc, Compiler::Clang],
        };
        let pairs = compilers.iter().flat_map(|&c| Level::ALL.map(|l| (c, l)));
        pairs.map(|(c, l)| Self::new(source, c, l)).collect()
    }

    /// A build of each large program of which single steps take minutes.
    #[must_use]
    pub fn large() -> [Self; 3] {
        [
            Self::new(Source::Lua, Compiler::Clang, Level::O3),
            Self::new(Source::Zstd, Compiler::Gcc, Level::O3),
            Self::new(Source::Sqlite, Compiler::Clang, Level::O2),
        ]
    }

    /// What to call it in reports: source, compiler, level and whatever is out of the ordinary.
    #[must_use]
    pub fn name(&self) -> String {
        let mut name = format!("{:?}-{:?}-{:?}", self.source, self.compiler, self.level);
        name = name.to_lowercase().replace("-o", "-O");
        for (flag, word) in [
            (self.block_address_map, "-map"),
            (self.strip, "-stripped"),
            (!self.pie, "-fixed"),
        ] {
            name.push_str(if flag { word } else { "" });
        }
        for word in &self.extra {
            name.push('-');
            name.push_str(word.trim_start_matches('-'));
        }
        for file in &self.with {
            let stem = Path::new(file).file_stem().unwrap_or_default();
            name.push('-');
            name.push_str(&stem.to_string_lossy());
        }
        name
    }
}

/// Builds it, or returns what an earlier call has built.
///
/// # Errors
/// Where a compiler is missing or fails, the packages' sources cannot be found, or the cache
/// cannot be written.
pub fn build(recipe: &Recipe) -> Result<Built> {
    let name = recipe.name();
    let mut sources = sources::of(recipe.source)?;
    let ours = recipe.with.iter().map(|file| sources::own(file));
    sources.files.extend(ours);
    let step = compile::step(recipe, &sources)?;
    let program = cache::built(&name, &step).with_context(|| format!("cannot build {name}"))?;
    let workloads = workloads::of(recipe.source, &program)?;
    Ok(Built {
        program,
        name,
        workloads,
    })
}

/// Names a program that is to be held against single steps as those of the test set are: its path, and its arguments, each on a
/// line of its own.
pub const GIVEN: &str = "TOMO_HELD";

/// The program that [`GIVEN`] names, with one workload, without input.
///
/// # Errors
/// Where none is named.
pub fn given() -> Result<Built> {
    let lines = std::env::var(GIVEN).context(GIVEN)?;
    let mut lines = lines.lines().map(str::to_owned);
    let program = PathBuf::from(lines.next().context(GIVEN)?);
    let name = program.file_name().context(GIVEN)?;
    Ok(Built {
        name: name.to_string_lossy().into_owned(),
        workloads: vec![Workload {
            args: lines.collect(),
            ..Workload::default()
        }],
        program,
    })
}

/// What `tool` makes of one file under `programs/` with `args`, or what an earlier call has made.
///
/// # Errors
/// Where the compiler is missing or fails, or the cache cannot be written.
pub fn compiled(tool: &str, source: &str, args: &[&str]) -> Result<PathBuf> {
    let step = compile::single(tool, sources::own(source), args);
    let name = Path::new(source).file_stem().context("no name")?;
    cache::built(&name.to_string_lossy(), &step)
        .with_context(|| format!("cannot build {source} {args:?}"))
}
