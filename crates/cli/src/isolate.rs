//! `tomo isolate`: what predicts that a program fails.

mod html;
pub(crate) mod json;
mod sarif;
pub(crate) mod text;

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::builder::RangedU64ValueParser;
use clap::{Args, ValueEnum};
use tomo_export::predicates::Id;
use tomo_export::words::{counted, grouped};
use tomo_isolate::{Cases, Options, Score, Session, StepMade, Towards, Watch};
use tomo_launch::Agent;
use tomo_profile::scores::Heuristic;

use crate::observe::Store;
use crate::session::{is_stdout, tell};

/// Find what predicts that a program fails.
///
/// Runs cases of which some fail, observes a few of the program's branches and results at a time, and
/// goes on near those that tell failures from successes best, until one does so perfectly or nothing
/// is left.
#[derive(Args)]
#[command(after_long_help = NOTES)]
pub(crate) struct Arguments {
    /// The cases: a line each, with arguments, `< FILE` for input, and `=> exit N`, `=> output FILE`,
    /// `=> like COMMAND` or `=> check COMMAND` for how success is told.
    #[arg(long, value_name = "FILE")]
    cases: PathBuf,

    /// Run at most so many cases in a step.
    #[arg(long, value_name = "N", default_value_t = 500, value_parser = RangedU64ValueParser::<usize>::new().range(2..))]
    runs_per_step: usize,

    /// Search from what always runs, from where runs crash, or from both; where none crashes, from what always runs.
    #[arg(long, value_enum, default_value_t = DirectionName::Both)]
    direction: DirectionName,

    /// By what the next predicate is chosen.
    #[arg(long, value_enum, default_value_t = ScoreName::Ochiai)]
    score: ScoreName,

    /// Begin at what always runs, not at the functions that failing cases enter rather than others.
    #[arg(long)]
    no_survey: bool,

    /// Begin at this site; called as `tomo predicates --json` calls it. May be given several times.
    #[arg(long, value_name = "SITE")]
    start: Vec<Id>,

    /// Watch only functions and source files that match PATTERN. May be given several times.
    #[arg(long, value_name = "PATTERN")]
    focus: Vec<String>,

    /// Do not watch functions and source files that match PATTERN. May be given several times.
    #[arg(long, value_name = "PATTERN")]
    exclude: Vec<String>,

    /// Where no branch and no result predicts failure for certain, look at the acyclic paths of the functions
    /// of the best: each that ran is a predicate too.
    #[arg(long)]
    paths: bool,

    /// Watch at most so many sites at a time.
    #[arg(long, value_name = "N", default_value_t = u32::MAX, hide_default_value = true, value_parser = clap::value_parser!(u32).range(1..))]
    sites_per_step: u32,

    /// Make at most so many steps; called again, the search goes on.
    #[arg(long, value_name = "N", default_value_t = usize::MAX, hide_default_value = true)]
    steps: usize,

    /// Run so many cases at a time; as many as there are processors where it is not said.
    #[arg(short, long, value_name = "N", value_parser = RangedU64ValueParser::<usize>::new().range(1..))]
    jobs: Option<usize>,

    /// Seed of all that is left to chance.
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,

    /// Keep what is found in DIR; interrupted, the search goes on from there.
    #[arg(short, long, value_name = "DIR", default_value = "tomo-isolate")]
    output: PathBuf,

    /// Write the answer as JSON (schema tomo.isolate/1) to FILE (- for standard output).
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,

    /// Write it as SARIF 2.1.0 to FILE (- for standard output).
    #[arg(long, value_name = "FILE")]
    sarif: Option<PathBuf>,

    /// Write it as a page to FILE (- for standard output).
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,

    /// The program, and arguments before those of each case.
    #[arg(required = true, trailing_var_arg = true, value_name = "PROGRAM")]
    command: Vec<OsString>,
}

const NOTES: &str = "\
A file of cases:

    # what follows a number sign is a comment
    %success output expected.txt
    %timeout 5
    -n 3 'two words' < inputs/1.txt
    --all => exit 3

Lines with a per cent sign hold for all cases behind them. Where nothing is
said, success is exit code 0, and a case may take 10 seconds. Files are looked
for beside the file of cases. Whatever is ended by a signal or not in time has
failed. A command behind `check` finds the output on its standard input and
ends with 0 where it is right.

Of each predictor it is said in how many of all cases it was true: F of those
that fail, S of those that do not; and its Importance, from 0 to 1, with 95 %
confidence.

Exit code: 0 where something was found, 1 where nothing predicts the failure, 2
where the search could not be made.";

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum DirectionName {
    Forward,
    Backward,
    Both,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ScoreName {
    Ttest,
    Importance,
    Maximp,
    Failcount,
    Ochiai,
    Bfs,
    Random,
    /// For studies: knows the answer, and takes the shortest way.
    Oracle,
}

impl Arguments {
    fn options(&self, cache: PathBuf) -> Result<Options> {
        let processors = || std::thread::available_parallelism().map_or(1, usize::from);
        Ok(Options {
            command: self.command.clone(),
            cases: Cases::read(&self.cases)?,
            folder: self.output.clone(),
            cache,
            runs: self.runs_per_step,
            survey: !self.no_survey,
            jobs: self.jobs.unwrap_or_else(processors),
            towards: match self.direction {
                DirectionName::Forward => Towards::Forward,
                DirectionName::Backward => Towards::Backward,
                DirectionName::Both => Towards::Both,
            },
            score: match self.score {
                ScoreName::Ttest => Score::By(Heuristic::TTest),
                ScoreName::Importance => Score::By(Heuristic::Importance),
                ScoreName::Maximp => Score::By(Heuristic::MaxImportance),
                ScoreName::Failcount => Score::By(Heuristic::FailCount),
                ScoreName::Ochiai => Score::By(Heuristic::Ochiai),
                ScoreName::Bfs => Score::Bfs,
                ScoreName::Random => Score::Random,
                ScoreName::Oracle => Score::Oracle,
            },
            seed: self.seed,
            steps: self.steps,
            most: self.sites_per_step,
            start: self.start.clone(),
            focus: self.focus.clone(),
            exclude: self.exclude.clone(),
            paths: self.paths,
        })
    }
}

/// Searches; the exit code says whether something was found.
pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode> {
    let store = Store::open()?;
    let agent = Agent::in_cache(&store.folder)?;
    let options = arguments.options(store.folder)?;
    let mut steps = Steps;
    tomo_isolate::end_runs_with_us();
    let mut session = Session::open(options, agent, &mut steps)?;
    let answer = session.search(&mut steps)?;
    let views = [
        (arguments.json.as_deref(), json::write as fn(&_) -> String),
        (arguments.sarif.as_deref(), sarif::write),
        (arguments.html.as_deref(), html::write),
    ];
    if !views.iter().any(|(path, _)| path.is_some_and(is_stdout)) {
        crate::saying::show(&text::write(&answer, text::Of::Cases))?;
    }
    for (path, write) in views {
        if path.is_some() {
            tell(path, write(&answer).as_bytes())?;
        }
    }
    Ok(ExitCode::from(u8::from(answer.findings.is_empty())))
}

/// Says how it goes, a line a step.
struct Steps;

impl Watch for Steps {
    fn note(&mut self, words: &str) {
        say!("tomo: {words}");
    }

    fn step(&mut self, number: usize, step: &StepMade, seen: usize, all: usize) {
        let slower = step
            .slower
            .map_or_else(String::new, |slower| format!(", {slower:.2} times as long"));
        let predictor = step.predictor.as_deref().unwrap_or("nothing yet");
        say!(
            "step {number}: {} in {}{slower}; {} of {} sites seen; best {:.3}: {predictor}",
            counted(step.sites as u64, "site", "sites"),
            counted(step.runs as u64, "run", "runs"),
            grouped(seen as u64),
            grouped(all as u64),
            step.best,
        );
    }
}
