//! `tomo study`: the papers' studies, on real programs.

use std::ffi::OsString;
use std::fs;
use std::io::IsTerminal as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail, ensure};
use clap::{Args, Subcommand};
use tomo_lab::disposal::{self, Effort, Subject};
use tomo_program::Progress;

use crate::bar::Bar;

/// Repeat the papers' studies on real programs.
#[derive(Subcommand)]
pub(crate) enum Study {
    Disposal(Disposal),
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
    /// Write tables and plots into DIR; start with its disposal.md.
    #[arg(short, long, value_name = "DIR", default_value = "tomo-study")]
    output: PathBuf,

    /// Study the programs in this list.
    #[arg(long, value_name = "FILE")]
    subjects: Option<PathBuf>,

    /// Study only programs whose name contains this.
    #[arg(long, value_name = "NAME")]
    only: Option<String>,

    /// How often each way is measured.
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u16).range(1..))]
    rounds: u16,

    /// How many instances are deployed.
    #[arg(long, value_name = "N", default_value_t = 37, value_parser = clap::value_parser!(u16).range(1..))]
    instances: u16,

    /// How much work each run does, in thousandths of the usual.
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = clap::value_parser!(u64).range(1..))]
    scale: u64,
}

/// Run one program and write what it took into a file.
#[derive(Args)]
pub(crate) struct Measure {
    #[arg(long, value_name = "FILE")]
    into: PathBuf,
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
    command: Vec<OsString>,
}

/// Does what the arguments ask for.
pub(crate) fn run(study: &Study) -> Result<()> {
    match study {
        Study::Disposal(arguments) => study_disposal(arguments),
        Study::Measure(Measure { into, command }) => {
            let (program, arguments) = command.split_first().context("no program")?;
            Ok(disposal::measured(into, program, arguments)?)
        }
    }
}

fn study_disposal(arguments: &Disposal) -> Result<()> {
    tomo_launch::keep_going();
    fs::create_dir_all(&arguments.output)
        .with_context(|| format!("cannot make {}", arguments.output.display()))?;
    let teller = Teller(Bar::new());
    let mut subjects = match &arguments.subjects {
        Some(path) => disposal::read_subjects(path)?,
        None => of_the_tree(&teller)?,
    };
    if let Some(only) = &arguments.only {
        subjects.retain(|subject| subject.name.contains(only.as_str()));
    }
    ensure!(!subjects.is_empty(), "there is no such program in the list");
    let effort = Effort {
        scale: disposal::inputs::Scale(arguments.scale),
        rounds: arguments.rounds.into(),
        instances: arguments.instances.into(),
    };
    let folder = in_memory()?;
    let tomo = std::env::current_exe().context("where this command is")?;
    let results = disposal::run(&subjects, effort, &tomo, folder.path(), &teller)?;
    teller.0.finish();
    for (name, text) in disposal::render(&results)? {
        let path = arguments.output.join(name);
        fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
    }
    println!("{}", arguments.output.join("disposal.md").display());
    if results.faults.is_empty() {
        return Ok(());
    }
    bail!(
        "{} things went wrong; the page names them",
        results.faults.len()
    )
}

/// The programs that the source tree builds for its studies.
fn of_the_tree(progress: &dyn Progress) -> Result<Vec<Subject>> {
    let tree = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests");
    if !tree.is_dir() {
        bail!(
            "the study's own programs are built from tomograph's source tree, which is gone; give --subjects"
        );
    }
    progress.stage("building the programs, once", 0);
    let output = Command::new("cargo")
        .args([
            "run",
            "--quiet",
            "--package",
            "tomo-testkit",
            "--example",
            "subjects",
        ])
        .current_dir(tree)
        .output()
        .context("building the study's programs takes cargo; or give --subjects")?;
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(
        output.status.success(),
        "the study's programs do not build: {errors}"
    );
    let list = tempfile::NamedTempFile::new()?;
    fs::write(list.path(), output.stdout)?;
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
            eprintln!("tomo: {name}");
        }
        self.0.stage(name, total);
    }

    fn advance(&self, done: u64) {
        self.0.advance(done);
    }
}
