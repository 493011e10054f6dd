//! `tomo trace`: what a program did, block for block.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::SystemTime;

use anyhow::{Context as _, Result};
use clap::{Args, ValueEnum};
use serde_json::json;
use tomo_launch::{
    Agent, Arming, Chosen, Ended, HowTraced, Observed, Run, RunFolder, Target, TargetError,
    TraceImages, Weighed,
};
use tomo_weave::{Kind, Strategy};

use crate::bar::Bar;
use crate::observe::Store;

/// Run a program, once or several times, and record exactly what it did, block for block.
///
/// Witnesses on a few ways tell of all others. With several runs of the same input each records a part of them,
/// so that each is little slowed down; what they recorded is merged.
#[derive(Args)]
pub(crate) struct Arguments {
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

impl Arguments {
    fn how(&self) -> HowTraced {
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
            weighed: Weighed::default(),
            functions: self.function.clone(),
        }
    }
}

/// Runs the program; gives its exit code.
pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode> {
    tomo_launch::keep_going();
    let [name, rest @ ..] = arguments.command.as_slice() else {
        return Ok(ExitCode::from(2));
    };
    let target = match Target::find(name, std::env::var_os("PATH").as_deref()) {
        Err(error @ TargetError::NotFound(_)) => {
            eprintln!("tomo: {error}");
            return Ok(ExitCode::from(127));
        }
        found => found?,
    };
    let session = Session::prepare(arguments, &target)?;
    let mut last = None;
    for number in 0..session.images.runs() {
        last = Some(session.run(&target, name, rest, number)?);
    }
    Ok(ExitCode::from(last.map_or(2, Ended::code)))
}

/// What the runs share.
struct Session<'a> {
    arguments: &'a Arguments,
    module: Observed,
    agent: Agent,
    images: TraceImages,
    folder: PathBuf,
    runs: std::cell::RefCell<Vec<String>>,
}

impl<'a> Session<'a> {
    fn prepare(arguments: &'a Arguments, target: &Target) -> Result<Self> {
        let store = Store::open()?;
        let module = Observed::of(&Chosen::executable(target))?;
        let images = store
            .images
            .traces(&module, &arguments.how(), &Bar::new())?;
        let folder = folder(&arguments.output)?;
        Ok(Self {
            arguments,
            agent: Agent::in_cache(&store.folder)?,
            images,
            module,
            folder,
            runs: Default::default(),
        })
    }

    fn run(
        &self,
        target: &Target,
        name: &OsString,
        rest: &[OsString],
        number: usize,
    ) -> Result<Ended> {
        let mut folder = RunFolder::create(&self.folder)?;
        folder.trace(&self.module, &self.images, number)?;
        let run = Run {
            command: self.arguments.command.clone(),
            started: SystemTime::now(),
        };
        folder.describe(target, &run, None)?;
        let own = folder.path().file_name().unwrap_or_default();
        self.runs
            .borrow_mut()
            .push(own.to_string_lossy().into_owned());
        self.describe(target)?;
        let roster = folder.roster()?;
        let arming = Arming {
            agent: &self.agent,
            roster: &roster,
            sanitized: false,
        };
        let ended = tomo_launch::run(target, name, rest, Some(arming))?;
        folder.describe(target, &run, Some(ended))?;
        for (armed, live) in folder.lives() {
            let problem = live.and_then(|live| crate::cover::problem(&live, false));
            if let Some(problem) = problem {
                let path = armed.module.path.display();
                eprintln!("tomo: {path} was not traced{problem}");
            }
        }
        Ok(ended)
    }

    /// Writes what the trace consists of.
    fn describe(&self, target: &Target) -> Result<()> {
        let words = self
            .arguments
            .command
            .iter()
            .map(|word| word.to_string_lossy());
        let document = json!({
            "schema": "tomo.trace/1",
            "program": target.executable.to_string_lossy(),
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
