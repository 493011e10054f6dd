//! `tomo trace`: what a program did, block for block.

mod session;
mod view;

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::{Args, ValueEnum};
use tomo_launch::{HowTraced, Target, TargetError, Weighed};
use tomo_weave::{Kind, Strategy};
use tomo_wire::counting::MOST_SLABS;

use crate::observe::OneModule;
use session::{Command, Session};

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
Traced is the executable itself, or the one --module, function by function as
far as it is known exactly; calls of libraries are stepped over. Each thread
has a trace of its own, and no order between threads is claimed. A run that is
killed or crashes is told up to the last block that is certain.

With several runs arguments, environment, directory and standard input are the
same in each, and addresses are not randomised; where the runs differ
nevertheless, that is said, and no trace is claimed for what lies behind. They
share the work evenly where it is known how often things run: count them before,
with `tomo count`.

With --calm what the program asks of the system about time, its process numbers
and random numbers is answered alike in each run: clock_gettime, gettimeofday,
time, getrandom, /dev/urandom, /dev/random, and what the kernel hands it at its
start. Time goes on by a tenth of a millisecond with each question of a thread,
and by as much as it sleeps; the program is process 2 of a namespace of its own
where the system allows that, which is said otherwise. Threads, and processes
that it makes, have time and random numbers of their own, which depend on who
made them. The program ends with `tomo`, which waits for all of its processes;
it gains no privileges by what it starts. What stays as it is: rdtsc, rdrand,
the processor time that getrusage and times tell, files and their times, the
network, and how threads take turns.

Exit code: the program's own; 128 and its number where a signal ended it; 2
where it cannot be traced at all, 127 where it is not found.";

#[derive(Args)]
struct Traced {
    /// Put the trace into DIR, in a folder of its own.
    #[arg(short, long, value_name = "DIR", default_value = "tomo-traces")]
    output: PathBuf,

    /// Distribute the witnesses over N runs.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=64))]
    runs: u32,

    /// Have so many of them at a time.
    #[arg(short, long, value_name = "JOBS", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=64))]
    jobs: u32,

    /// How witnesses are distributed; by default `optimized` where it is known how often things ran, else `function`, which
    /// errs less by estimates.
    #[arg(long, value_enum)]
    strategy: Option<Distributed>,

    /// Where witnesses may be.
    #[arg(long, value_enum, default_value_t = Witnesses::Auto)]
    witness: Witnesses,

    /// What witnesses are made of: code of their own in the program, or breakpoints that `tomo` attends to from outside, which
    /// is slow, and all that traces programs that are linked statically.
    #[arg(long, value_enum)]
    collect: Option<Collected>,

    /// Choose and distribute witnesses by how often things ran when they were counted (`tomo count`), in the folder RUN;
    /// else in the newest run of the program in tomo-counts, if there is one.
    #[arg(long, value_name = "RUN")]
    weights: Option<PathBuf>,

    /// No more than K witnesses on ways a run, or breakpoints at all, in as many runs as that takes.
    #[arg(long, value_name = "K", value_parser = clap::value_parser!(u32).range(1..))]
    limit: Option<u32>,

    /// Answer time, process ids and random numbers alike in each run.
    #[arg(long)]
    calm: bool,

    /// Let time begin at this moment, in seconds since 1970, as an earlier trace has it in its trace.json; else now.
    #[arg(long, value_name = "SECONDS", requires = "calm")]
    moment: Option<u64>,

    /// Trace only functions of this NAME; may be given several times.
    #[arg(long, value_name = "NAME")]
    function: Vec<String>,

    #[command(flatten)]
    module: OneModule,

    /// The program and its arguments.
    #[arg(required = true, trailing_var_arg = true, value_name = "PROGRAM")]
    command: Vec<OsString>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Distributed {
    /// Two ways of one branch at a time.
    Fine,
    /// All of a function to one run.
    Function,
    /// Branches that are likely to share witnesses, and parts of what is dearest to whoever has least to do.
    Optimized,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Collected {
    /// Code in the program.
    Detour,
    /// Breakpoints, attended to from outside.
    Breakpoint,
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
        let usual = match weighed.is_known() {
            true => Distributed::Optimized,
            false => Distributed::Function,
        };
        HowTraced {
            runs: self.runs,
            limit: self.limit,
            strategy: match self.strategy.unwrap_or(usual) {
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
    tomo_launch::keep_going();
    tomo_launch::is_to_start(arguments.command.len());
    let [name, rest @ ..] = arguments.command.as_slice() else {
        return Ok(ExitCode::from(2));
    };
    let target = match Target::find(name, std::env::var_os("PATH").as_deref()) {
        Err(error) if error.is_missing() => {
            say!("tomo: {error}");
            return Ok(ExitCode::from(127));
        }
        found => found?,
    };
    let collect = match arguments.collect {
        Some(collect) => collect,
        None if target.is_static() => Collected::Breakpoint,
        None => Collected::Detour,
    };
    if target.is_static() && collect == Collected::Detour {
        return Err(TargetError::Static(target.executable).into());
    }
    let session = match Session::prepare(arguments, &target, collect) {
        Ok(session) => session,
        Err(error) => return plainly(&target, (name, rest), &error),
    };
    let command = Command { target, name, rest };
    match session.run(&command) {
        Err(error) if !session.has_begun() => plainly(&command.target, (name, rest), &error),
        ended => Ok(ExitCode::from(ended?.code())),
    }
}

/// Runs the program as it is, and says why it was not traced.
fn plainly(
    target: &Target,
    (name, rest): (&OsString, &[OsString]),
    error: &anyhow::Error,
) -> Result<ExitCode> {
    let ended = tomo_launch::run(target, name, rest, None)?;
    let path = target.executable.display();
    say!("tomo: {path} was not traced: {error:#}");
    Ok(ExitCode::from(ended.code()))
}

/// What is to be said where `full` threads are traced up to a point only and `lost` are not at all.
fn missing(full: u64, lost: u64) -> impl Iterator<Item = String> {
    let full = (full > 0).then(|| {
        format!(
            "threads that are traced up to where there was no more room, on the disk or behind a sandbox: {full}"
        )
    });
    let lost = (lost > 0).then(|| {
        format!(
            "threads that are not traced, for want of room or of a right, or since a run has no more than {MOST_SLABS}: {lost}"
        )
    });
    full.into_iter().chain(lost)
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use tomo_launch::Weighed;
    use tomo_weave::Strategy;

    use super::Traced;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        traced: Traced,
    }

    #[test]
    fn parts_of_functions_are_given_away_only_by_counts() {
        let strategy = |words: &[&str], weighed| {
            let line = Line::try_parse_from(["trace"].iter().chain(words));
            let line = line.expect("a command line");
            line.traced.how(weighed).strategy
        };
        let counted = || Weighed::by(7, Default::default);
        assert_eq!(
            strategy(&["prog"], Weighed::default()),
            Strategy::FunctionWise
        );
        assert_eq!(strategy(&["prog"], counted()), Strategy::Grouped);
        let asked = ["--strategy", "fine", "prog"];
        assert_eq!(strategy(&asked, counted()), Strategy::FineGrained);
    }
}
