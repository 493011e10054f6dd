//! `tomo trace`: what a program did, block for block.

mod view;

use std::cell::RefCell;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::IsTerminal as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::SystemTime;

use anyhow::{Context as _, Result};
use clap::{Args, ValueEnum};
use serde_json::json;
use tomo_launch::{
    Agent, Chosen, Ended, HowTraced, Observed, Redirected, RunFolder, Stream, TraceImages, Weighed,
};
use tomo_weave::{Kind, Strategy};

use crate::bar::Bar;
use crate::observe::Store;
use crate::session::{Ready, Started};

/// Run a program, once or several times, and record exactly what it did, block for block.
///
/// Witnesses on a few ways tell of all others. With several runs of the same input each records a part of them,
/// so that each is little slowed down; what they recorded is merged.
#[derive(Args)]
#[command(
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    after_long_help = NOTES
)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    view: Option<view::View>,

    #[command(flatten)]
    traced: Traced,
}

const NOTES: &str = "\
Traced is the executable itself, function by function as far as it is known exactly;
calls of libraries are stepped over. Each thread has a trace of its own, and no order
between threads is claimed. A run that is killed or crashes is told up to the last
block that is certain.

With several runs arguments, environment and standard input are the same in each, and
addresses are not randomised; where the runs differ nevertheless, that is said, and
no trace is claimed for what lies behind.

Exit code: the program's own; 128 and its number where a signal ended it; 2 where it
cannot be traced at all, 127 where it is not found.";

#[derive(Args)]
struct Traced {
    /// Put the trace into DIR, in a folder of its own.
    #[arg(short, long, value_name = "DIR", default_value = "tomo-traces")]
    output: PathBuf,

    /// Distribute the witnesses over N runs.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=64))]
    runs: u32,

    /// How witnesses are distributed.
    #[arg(long, value_enum, default_value_t = Distributed::Function)]
    strategy: Distributed,

    /// Where witnesses may be.
    #[arg(long, value_enum, default_value_t = Witnesses::Auto)]
    witness: Witnesses,

    /// Choose and distribute witnesses by how often things ran when they were counted (`tomo count`), in the folder RUN.
    #[arg(long, value_name = "RUN")]
    weights: Option<PathBuf>,

    /// No more than K witnesses on ways a run, in as many runs as that takes.
    #[arg(long, value_name = "K")]
    limit: Option<u32>,

    /// Trace only functions of this NAME; may be given several times.
    #[arg(long, value_name = "NAME")]
    function: Vec<String>,

    /// The program and its arguments.
    #[arg(
        required = true,
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "PROGRAM"
    )]
    command: Vec<OsString>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Distributed {
    /// Two ways of one branch at a time.
    Fine,
    /// All of a function to one run.
    Function,
    /// Branches that are likely to share witnesses.
    Optimized,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Witnesses {
    /// On ways of branches.
    Edge,
    /// At starts of blocks.
    Node,
    /// Wherever they are cheapest.
    Auto,
}

impl Traced {
    fn how(&self, weighed: Weighed) -> HowTraced {
        HowTraced {
            runs: self.runs,
            limit: self.limit,
            strategy: match self.strategy {
                Distributed::Fine => Strategy::FineGrained,
                Distributed::Function => Strategy::FunctionWise,
                Distributed::Optimized => Strategy::Grouped,
            },
            kind: match self.witness {
                Witnesses::Edge => Kind::Edge,
                Witnesses::Node => Kind::Node,
                Witnesses::Auto => Kind::Auto,
            },
            weighed,
            functions: self.function.clone(),
        }
    }
}

/// Runs the program; gives its exit code.
pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode> {
    match &arguments.view {
        Some(view) => view.run().map(|()| ExitCode::SUCCESS),
        None => trace(&arguments.traced),
    }
}

fn trace(arguments: &Traced) -> Result<ExitCode> {
    Started::find(&arguments.command, |started| {
        let session = match Session::prepare(arguments, &started) {
            Ok(session) => session,
            Err(error) => {
                let ended = started.run_plainly("traced", &error)?;
                return Ok(ExitCode::from(ended.code()));
            }
        };
        let ended = match session.images.runs() {
            1 => session.run(&started, 0)?.1,
            runs => session.run_all(&started, runs)?,
        };
        Ok(ExitCode::from(ended.code()))
    })
}

/// What the runs share.
struct Session<'a> {
    arguments: &'a Traced,
    module: Observed,
    agent: Agent,
    images: TraceImages,
    folder: PathBuf,
    runs: RefCell<Vec<String>>,
}

impl<'a> Session<'a> {
    fn prepare(arguments: &'a Traced, started: &Started<'_>) -> Result<Self> {
        let store = Store::open()?;
        let module = Observed::of(&Chosen::executable(&started.target))?;
        let weighed = match &arguments.weights {
            Some(run) => crate::count::weights(run, &module, &store)?,
            None => Weighed::default(),
        };
        let how = arguments.how(weighed);
        let images = store.images.traces(&module, &how, &Bar::new())?;
        let folder = folder(&arguments.output)?;
        Ok(Self {
            arguments,
            agent: Agent::in_cache(&store.folder)?,
            images,
            module,
            folder,
            runs: RefCell::default(),
        })
    }

    /// Runs the program again and again, with the same input; its output appears once.
    fn run_all(&self, started: &Started<'_>, runs: usize) -> Result<Ended> {
        tomo_launch::keep_addresses().context("addresses cannot be kept the same")?;
        let input = self.folder.join("input");
        let mut copy = File::create(&input)?;
        if !std::io::stdin().is_terminal() {
            std::io::copy(&mut std::io::stdin().lock(), &mut copy)?;
        }
        let mut first: Option<(PathBuf, Ended)> = None;
        for number in 0..runs {
            let (output, ended) = {
                let _input = Redirected::to(Stream::Input, &File::open(&input)?)?;
                let output = self.folder.join(format!("output-{number}"));
                let _output = Redirected::to(Stream::Output, &File::create(&output)?)?;
                (output, self.run(started, number)?.1)
            };
            match &first {
                None => {
                    std::io::copy(&mut File::open(&output)?, &mut std::io::stdout().lock())?;
                    first = Some((output, ended));
                }
                Some((known, end)) => {
                    if fs::read(known)? != fs::read(&output)? {
                        eprintln!("tomo: run {number} printed something else than the first");
                    }
                    if *end != ended {
                        eprintln!(
                            "tomo: run {number} ended otherwise than the first: {ended:?}, not {end:?}"
                        );
                    }
                    fs::remove_file(output)?;
                }
            }
        }
        let (_, ended) = first.context("there was no run")?;
        Ok(ended)
    }

    /// Runs the program once, with the witnesses of this profile.
    fn run(&self, started: &Started<'_>, number: usize) -> Result<(PathBuf, Ended)> {
        let mut folder = RunFolder::create(&self.folder)?;
        folder.trace(&self.module, &self.images, number)?;
        let path = folder.path().to_path_buf();
        let agent = self.agent.clone();
        let ready = Ready::with_folder(started, folder, agent, false)?;
        let own = path.file_name().unwrap_or_default();
        let own = own.to_string_lossy().into_owned();
        self.runs.borrow_mut().push(own);
        self.describe(started)?;
        let ended = ready.run(started)?;
        if let Err(error) = tomo_export::traced::pack(&path) {
            eprintln!("tomo: the record was not compressed: {error}");
        }
        Ok((path, ended))
    }

    /// Writes what the trace consists of.
    fn describe(&self, started: &Started<'_>) -> Result<()> {
        let words = self.arguments.command.iter();
        let words = words.map(|word| word.to_string_lossy());
        let document = json!({
            "schema": "tomo.trace/1",
            "program": started.target.executable.to_string_lossy(),
            "stem": self.module.stem,
            "command": words.collect::<Vec<_>>(),
            "runs": *self.runs.borrow(),
        });
        let path = self.folder.join("trace.json");
        fs::write(&path, format!("{document:#}\n")).with_context(|| path.display().to_string())
    }
}

/// A new folder in `out`.
fn folder(out: &Path) -> Result<PathBuf> {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let since = since.map_or(0, |since| since.as_nanos());
    let path = out.join(format!("trace-{since}"));
    fs::create_dir_all(&path).with_context(|| path.display().to_string())?;
    fs::canonicalize(&path).with_context(|| path.display().to_string())
}
