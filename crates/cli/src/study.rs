//! `tomo study`: the papers' studies, on real programs.

use std::collections::HashMap;
use std::ffi::OsString;
use std::fs;
use std::io::{IsTerminal as _, Write as _, stdout};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail, ensure};
use clap::{Args, Subcommand};
use tomo_lab::disposal::{self, Effort, Subject};
use tomo_lab::isolation::{self, Source, Workshop};
use tomo_lab::{distribution, paths, tracing};
use tomo_launch::Agent;
use tomo_program::Progress;

use crate::bar::Bar;
use crate::observe::Store;

/// Repeat the papers' studies on real programs.
#[derive(Subcommand)]
pub(crate) enum Study {
    Disposal(Disposal),
    Isolation(Isolation),
    Distribution(Distribution),
    Paths(Paths),
    Tracing(Tracing),
    /// Run one program and write what it took into a file; studies call this.
    #[command(hide = true)]
    Measure(Measure),
}

/// What coverage costs when probes stay, when each goes at its first hit, and when it goes for all.
///
/// The study of Chilakamarri and Elbaum, Leveraging Disposable Instrumentation to Reduce Coverage
/// Collection Overhead: tables and plots, with the paper's figures beside ours.
#[derive(Args)]
#[command(after_long_help = "\
Without --subjects the programs are lua, sqlite and bzip2, built by clang-19
from the source tree that this command was built in; the first time that takes
some minutes, the study itself less than ten.

--subjects takes a list of programs of your own:
  {\"schema\": \"tomo.subjects/1\", \"subjects\": [{
    \"name\": \"mine\", \"plain\": \"/path/of/program\",
    \"inputs\": {\"runs\": [{\"arguments\": [\"a\"], \"stdin\": \"/a/file\"}]},
    \"marked\": [{\"units\": \"block\", \"mark\": \"flag\", \"program\": \"/path\"}]}]}
with builds whose marks stay, if there are any: units are block, block-dom or
function, a mark is flag (clang -fsanitize-coverage=inline-bool-flag) or call
(trace-pc-guard, linked with tests/programs/study/marks.c).")]
pub(crate) struct Disposal {
    #[command(flatten)]
    common: Common,

    /// How often each way is measured.
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u16).range(1..))]
    rounds: u16,

    /// How many instances are deployed.
    #[arg(long, value_name = "N", default_value_t = 37, value_parser = clap::value_parser!(u16).range(1..))]
    instances: u16,
}

/// How much of a program must be watched until what predicts its failures is found.
///
/// The study of Arumuga Nainar and Liblit, Adaptive Bug Isolation: all heuristics, forward and backward, against
/// complete monitoring and against sampling, on faulty variants of real programs.
#[derive(Args)]
#[command(after_long_help = "\
Without --subjects the programs are those in tests/subjects of the source tree
that this command was built in; tests/subjects/README.md tells how such a
folder is laid out. What is built is kept in DIR/built. The first time it takes
an hour or so.")]
pub(crate) struct Isolation {
    #[command(flatten)]
    built: Built,
}

/// What probes show of chains of calls that are distributed over instances, and what they report falsely.
///
/// The study of Diep, Cohen and Elbaum, Probe Distribution Techniques to Profile Events in Deployed
/// Software: tables and plots, with the paper's figures beside ours. Programs are those of `tomo study
/// disposal` that serve requests: lua and sqlite.
#[derive(Args)]
pub(crate) struct Distribution {
    #[command(flatten)]
    common: Common,

    /// How often the overhead of all probes is measured.
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u16).range(1..))]
    rounds: u16,

    /// How many instances there are.
    #[arg(long, value_name = "N", default_value_t = 36, value_parser = clap::value_parser!(u16).range(1..=108))]
    instances: u16,

    /// How often each technique is tried at each bound.
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u16).range(2..))]
    repetitions: u16,

    /// How many bad moves in succession end a climb; the paper's are 500000.
    #[arg(long, value_name = "N", default_value_t = 20_000, value_parser = clap::value_parser!(u64).range(1..))]
    frozen: u64,
}

/// How many probes tell some acyclic paths from all others, and what they cost.
///
/// The study of Apiwattanapong and Harrold, Selective Path Profiling, on every function of lua, sqlite
/// and bzip2: tables and plots, with the paper's figures beside ours, and the overhead, which the paper
/// leaves open.
#[derive(Args)]
pub(crate) struct Paths {
    #[command(flatten)]
    common: Common,

    /// How often each way is timed.
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u16).range(1..))]
    rounds: u16,

    /// How many selections of each size are drawn in a function.
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u16).range(1..))]
    selections: u16,
}

/// What it costs to put traces together from several runs.
///
/// The study of Saha, Dhoolia and Paul, Distributed Program Tracing: witnesses distributed over one to seven
/// machines by three strategies, on several inputs of real programs, by the printed algorithm and by ours:
/// tables and plots, with the paper's figures beside ours.
#[derive(Args)]
#[command(after_long_help = "\
Programs and their inputs are those of `tomo study isolation`, without faults.
What is built is kept in DIR/built.")]
pub(crate) struct Tracing {
    #[command(flatten)]
    built: Built,

    /// On how many inputs each program is run, evenly from all of its cases.
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u16).range(1..))]
    inputs: u16,
}

/// What studies of programs that they build have in common.
#[derive(Args)]
pub(crate) struct Built {
    /// Write tables and plots into DIR; start with its page, which is called as the study.
    #[arg(short, long, value_name = "DIR", default_value = "tomo-study")]
    output: PathBuf,

    /// Study the programs in this folder.
    #[arg(long, value_name = "DIR")]
    subjects: Option<PathBuf>,

    /// Study only programs whose name contains this; or variants, as in `lua/modulo-sign`.
    #[arg(long, value_name = "NAME")]
    only: Option<String>,
}

/// What studies of programs in a list have in common.
#[derive(Args)]
pub(crate) struct Common {
    /// Write tables and plots into DIR; start with its page, which is called as the study.
    #[arg(short, long, value_name = "DIR", default_value = "tomo-study")]
    output: PathBuf,

    /// Study the programs in this list (see `tomo study disposal --help`).
    #[arg(long, value_name = "FILE")]
    subjects: Option<PathBuf>,

    /// Study only programs whose name contains this.
    #[arg(long, value_name = "NAME")]
    only: Option<String>,

    /// How much work each timed run does, in thousandths of the usual.
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = clap::value_parser!(u64).range(1..))]
    scale: u64,
}

/// Run one program and write what it took into a file.
#[derive(Args)]
pub(crate) struct Measure {
    #[arg(long, value_name = "FILE")]
    into: PathBuf,
    #[arg(required = true, trailing_var_arg = true)]
    command: Vec<OsString>,
}

/// Does what the arguments ask for.
pub(crate) fn run(study: &Study) -> Result<()> {
    match study {
        Study::Disposal(arguments) => study_disposal(arguments),
        Study::Isolation(arguments) => study_isolation(arguments),
        Study::Distribution(arguments) => study_distribution(arguments),
        Study::Paths(arguments) => study_paths(arguments),
        Study::Tracing(arguments) => study_tracing(arguments),
        Study::Measure(Measure { into, command }) => {
            let (program, arguments) = command.split_first().context("no program")?;
            Ok(disposal::measured(into, program, arguments)?)
        }
    }
}

fn study_disposal(arguments: &Disposal) -> Result<()> {
    let laboratory = Laboratory::open(&arguments.common)?;
    let effort = Effort {
        scale: disposal::inputs::Scale(arguments.common.scale),
        rounds: arguments.rounds.into(),
        instances: arguments.instances.into(),
    };
    let Laboratory {
        subjects,
        tomo,
        folder,
        teller,
    } = &laboratory;
    let results = disposal::run(subjects, effort, tomo, folder.path(), teller)?;
    laboratory.publish(
        &arguments.common.output,
        "disposal",
        disposal::render(&results)?,
    )?;
    if results.faults.is_empty() {
        return Ok(());
    }
    bail!(
        "{} things went wrong; the page names them",
        results.faults.len()
    )
}

fn study_distribution(arguments: &Distribution) -> Result<()> {
    let common = &arguments.common;
    let laboratory = Laboratory::open(common)?;
    let effort = distribution::Effort {
        scale: disposal::inputs::Scale(common.scale),
        rounds: arguments.rounds.into(),
        instances: arguments.instances.into(),
        repetitions: arguments.repetitions.into(),
        frozen: arguments.frozen,
    };
    let Laboratory {
        subjects,
        tomo,
        folder,
        teller,
    } = &laboratory;
    let results = distribution::run(subjects, effort, tomo, folder.path(), teller)?;
    ensure!(
        !results.studied.is_empty(),
        "none of these programs has a suite of runs"
    );
    laboratory.publish(
        &common.output,
        "distribution",
        distribution::render(&results)?,
    )
}

fn study_paths(arguments: &Paths) -> Result<()> {
    let common = &arguments.common;
    let laboratory = Laboratory::open(common)?;
    let effort = paths::Effort {
        scale: disposal::inputs::Scale(common.scale),
        rounds: arguments.rounds.into(),
        selections: arguments.selections.into(),
    };
    let Laboratory {
        subjects,
        tomo,
        folder,
        teller,
    } = &laboratory;
    let results = paths::run(subjects, effort, tomo, folder.path(), teller)?;
    laboratory.publish(&common.output, "paths", paths::render(&results)?)?;
    let other = results.timed.iter().find(|timed| !timed.same);
    match other {
        None => Ok(()),
        Some(other) => bail!("{} printed something else: {}", other.program, other.way),
    }
}

fn study_tracing(arguments: &Tracing) -> Result<()> {
    tomo_launch::keep_going();
    let teller = Teller(Bar::new());
    let built = workshop_folder(&arguments.built.output)?;
    let mut subjects = faulty(arguments.built.subjects.as_deref())?;
    if let Some(only) = &arguments.built.only {
        subjects.retain(|subject| subject.name.contains(only.as_str()));
    }
    ensure!(
        !subjects.is_empty(),
        "there is no such program in the folder"
    );
    let packages = packages_of(&subjects, &teller)?;
    let workshop = Workshop {
        folder: &built,
        packages: &|name| packages.get(name).cloned(),
    };
    let mut prepared = Vec::new();
    for subject in &subjects {
        teller.stage(&format!("{}: building", subject.name), 0);
        let inputs = arguments.inputs.into();
        prepared.push(tracing::prepare(subject, &workshop, inputs)?);
    }
    let effort = tracing::Effort {
        machines: 7,
        runs: 6,
        bounds: vec![10, 20, 30, 40],
    };
    let tomo = std::env::current_exe().context("where this command is")?;
    let folder = in_memory()?;
    let results = tracing::run(&prepared, &effort, &tomo, folder.path(), &teller)?;
    let files = tracing::render(&results)?;
    publish(&teller, &arguments.built.output, "tracing", files)
}

/// What a study needs.
struct Laboratory {
    subjects: Vec<Subject>,
    tomo: PathBuf,
    folder: tempfile::TempDir,
    teller: Teller,
}

impl Laboratory {
    /// With the programs of a list, or those of the source tree, whose names are meant.
    fn open(common: &Common) -> Result<Self> {
        tomo_launch::keep_going();
        let teller = Teller(Bar::new());
        let mut subjects = match &common.subjects {
            Some(path) => disposal::read_subjects(path)?,
            None => of_the_tree(&teller)?,
        };
        if let Some(only) = &common.only {
            subjects.retain(|subject| subject.name.contains(only.as_str()));
        }
        ensure!(!subjects.is_empty(), "there is no such program in the list");
        Ok(Self {
            subjects,
            tomo: std::env::current_exe().context("where this command is")?,
            folder: in_memory()?,
            teller,
        })
    }

    /// Writes what a study of this name gives to read.
    fn publish(&self, output: &Path, name: &str, files: Vec<(String, String)>) -> Result<()> {
        publish(&self.teller, output, name, files)
    }
}

/// Writes what a study of this name gives to read.
fn publish(teller: &Teller, output: &Path, name: &str, files: Vec<(String, String)>) -> Result<()> {
    teller.0.finish();
    fs::create_dir_all(output).with_context(|| format!("cannot make {}", output.display()))?;
    for (name, text) in files {
        let path = output.join(name);
        fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
    }
    writeln!(stdout(), "{}", output.join(format!("{name}.md")).display())?;
    Ok(())
}

/// Where a study that writes to `output` keeps the programs that it builds.
fn workshop_folder(output: &Path) -> Result<PathBuf> {
    let built = output.join("built");
    fs::create_dir_all(&built).with_context(|| format!("cannot make {}", built.display()))?;
    Ok(fs::canonicalize(&built)?)
}

/// The programs in `folder` that may have faults, or those of the source tree.
fn faulty(folder: Option<&Path>) -> Result<Vec<isolation::Subject>> {
    let folder = match folder {
        Some(folder) => folder.to_owned(),
        None => tree()?.join("subjects"),
    };
    Ok(isolation::read_subjects(&fs::canonicalize(&folder)?)?)
}

/// Where the packages lie that these are built from.
fn packages_of(
    subjects: &[isolation::Subject],
    progress: &dyn Progress,
) -> Result<HashMap<String, PathBuf>> {
    let of_packages = |subject: &isolation::Subject| matches!(subject.source, Source::Package(..));
    match subjects.iter().any(of_packages) {
        true => packages(progress),
        false => Ok(HashMap::new()),
    }
}

fn study_isolation(arguments: &Isolation) -> Result<()> {
    tomo_launch::keep_going();
    tomo_isolate::end_runs_with_us();
    let built = workshop_folder(&arguments.built.output)?;
    let teller = Teller(Bar::new());
    let mut subjects = faulty(arguments.built.subjects.as_deref())?;
    if let Some(only) = &arguments.built.only {
        for subject in &mut subjects {
            let name = &subject.name;
            let is_meant = |variant: &str| format!("{name}/{variant}").contains(only.as_str());
            subject.variants.retain(|variant| is_meant(&variant.name));
        }
        subjects.retain(|subject| !subject.variants.is_empty());
    }
    ensure!(
        !subjects.is_empty(),
        "there is no such program in the folder"
    );
    let packages = packages_of(&subjects, &teller)?;
    let store = Store::open()?;
    let laboratory = isolation::Laboratory {
        workshop: Workshop {
            folder: &built,
            packages: &|name| packages.get(name).cloned(),
        },
        agent: Agent::in_cache(&store.folder)?,
        cache: store.folder,
        progress: &teller,
    };
    let results = isolation::run(&subjects, &laboratory)?;
    let files = isolation::render(&results)?;
    publish(&teller, &arguments.built.output, "isolation", files)?;
    match results.refused.len() {
        0 => Ok(()),
        refused => bail!("{refused} variants could not be studied; the page names them"),
    }
}

/// Where the packages lie whose sources the study's programs are built from.
fn packages(progress: &dyn Progress) -> Result<HashMap<String, PathBuf>> {
    progress.stage("looking for the sources", 0);
    let listed = example("packages")?;
    let pairs = listed.lines().filter_map(|line| line.split_once('\t'));
    Ok(pairs
        .map(|(name, folder)| (name.to_owned(), folder.into()))
        .collect())
}

/// The tests' folder in the source tree.
fn tree() -> Result<PathBuf> {
    let tree = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests");
    ensure!(
        tree.is_dir(),
        "the study's own programs are built from tomograph's source tree, which is gone; give --subjects"
    );
    Ok(tree)
}

/// What an example of the tests prints.
fn example(name: &str) -> Result<String> {
    let output = Command::new("cargo")
        .args([
            "run",
            "--quiet",
            "--package",
            "tomo-testkit",
            "--example",
            name,
        ])
        .current_dir(tree()?)
        .output()
        .context("building the study's programs takes cargo; or give --subjects")?;
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(
        output.status.success(),
        "the study's programs do not build: {errors}"
    );
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// The programs that the source tree builds for its studies.
fn of_the_tree(progress: &dyn Progress) -> Result<Vec<Subject>> {
    progress.stage("building the programs, once", 0);
    let listed = example("subjects")?;
    let list = tempfile::NamedTempFile::new()?;
    fs::write(list.path(), listed)?;
    Ok(disposal::read_subjects(list.path())?)
}

/// A folder on a file system in memory, where images are best kept, unless programs may not run from there.
fn in_memory() -> Result<tempfile::TempDir> {
    let mounts = fs::read_to_string("/proc/mounts").unwrap_or_default();
    let mut mounts = mounts.lines();
    let memory = mounts.find(|mount| mount.starts_with("tmpfs /dev/shm "));
    Ok(match memory {
        Some(mount) if !mount.contains("noexec") => tempfile::tempdir_in("/dev/shm")?,
        _ => tempfile::tempdir()?,
    })
}

/// Says on standard error how far a study is: with a bar on a terminal, else with a line a stage.
struct Teller(Bar);

impl Progress for Teller {
    fn stage(&self, name: &str, total: u64) {
        if !std::io::stderr().is_terminal() {
            say!("tomo: {name}");
        }
        self.0.stage(name, total);
    }

    fn advance(&self, done: u64) {
        self.0.advance(done);
    }
}
