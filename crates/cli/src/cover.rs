//! `tomo cover`: which parts of a program ran.

use std::ffi::OsString;
use std::io::{Write as _, stdout};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, Result};
use clap::Args;
use tomo_export::words::counted;
use tomo_launch::{Agent, Arming, Chosen, Observed, Pool, RunFolder, Standing, Target, read_live};
use tomo_wire::record::{Live, RecordView};

use crate::bar::Bar;
use crate::observe::{Store, What, Whose};
use crate::options::expanded;
use crate::session::{Ready, Started, tell_replaced};

/// Run a program and record which of its functions, blocks and edges ran.
///
/// The program runs as it is, at its own speed: each probe removes itself when it is hit. Its
/// output, its exit code and its signals are its own. `tomo report` shows what was recorded, even
/// while it runs or after it was killed.
#[derive(Args)]
#[command(after_long_help = EXAMPLES, args_override_self = true)]
pub(crate) struct Arguments {
    #[command(flatten)]
    what: What,

    #[command(flatten)]
    whose: Whose,

    /// Put the run's record into DIR, in a folder of its own. In DIR %p stands for the process id
    /// of tomo, %m for the build id of the program, %% for a percent sign.
    #[arg(short, long, value_name = "DIR", default_value = "tomo-out")]
    output: PathBuf,

    /// Share an image, and so what was seen, with all runs that use the pool in DIR: what one of
    /// them has hit, the others no longer pay for. The pool keeps the record of all of them.
    #[arg(long, value_name = "DIR", conflicts_with = "output")]
    pool: Option<PathBuf>,

    /// Keep where the program crashes, if it does: registers, a part of the stack, the modules. Shown by `tomo crashes`.
    #[arg(long, conflicts_with = "pool")]
    crashes: bool,

    /// Say afterwards how many probes were hit, and how; in a pool, by all its runs so far.
    #[arg(short, long)]
    verbose: bool,

    /// The program and its arguments.
    #[arg(required = true, trailing_var_arg = true, value_name = "PROGRAM")]
    command: Vec<OsString>,
}

const EXAMPLES: &str = "\
Examples:
  tomo cover -- ./prog --its-flags         then: tomo report
  tomo cover -o out -- python3 script.py   records of several runs in one folder
  tomo cover --module libz -- ./prog       a library instead of the program
  tomo cover --module target/debug -- cargo test   what a folder has, not cargo
  tomo cover --pool p -- ./test-7          one of many runs that share a pool

TOMO_OPTIONS in the environment holds flags for every `tomo cover` and `tomo
env`, as in TOMO_OPTIONS=output=out/%p:level=edge; flags on the command line
count more. What is no such flag is said, and all of them are left out.

Exit code: the program's own; 128 and its number where a signal ended it (by
SIGINT tomo ends, too); 2 where it cannot be observed at all, 127 where it is
not found. Where something goes wrong on our side the program runs all the
same, and one line on standard error says at its end why it was not observed.";

/// Runs the program; gives its exit code.
pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode> {
    Started::find(&arguments.command, |started| {
        let ended = match prepare(arguments, &started) {
            Ok(ready) => {
                let ended = ready.run(&started)?;
                ready.folder.iter().for_each(tell_empty);
                if arguments.verbose {
                    ready.records().iter().for_each(tell_numbers);
                }
                ended
            }
            Err(error) => started.run_plainly("observed", &error)?,
        };
        Ok(ExitCode::from(ended.code()))
    })
}

fn prepare(arguments: &Arguments, started: &Started<'_>) -> Result<Ready> {
    let what = &arguments.what;
    let store = Store::open()?;
    let modules = what.modules(&started.target)?;
    // Once all is made that is ours, which may lie in the same folder.
    let standing = || Standing::at(what.places(), &modules);
    let bar = Bar::new();
    if let Some(path) = &arguments.pool {
        let pool = Pool::open(path)?.with(arguments.whose.forks());
        pool.add(&modules, &store.images, what.how(), &bar)?;
        let agent = Agent::in_cache(pool.path())?;
        return Ready::with_pool(started, &pool, agent, &modules, standing());
    }
    let stem = Observed::of(&Chosen::executable(&started.target));
    let output = match arguments.output.to_str() {
        Some(pattern) => expanded(pattern, std::process::id(), &stem?.name())?.into(),
        None => arguments.output.clone(),
    };
    let mut folder = RunFolder::create(&output)?.with(arguments.whose.forks());
    for module in &modules {
        folder.arm(module, &store.images, what.how(), &bar)?;
    }
    if arguments.crashes {
        folder.keep_crashes()?;
    }
    let agent = Agent::in_cache(&store.folder)?;
    Ready::with_folder(started, folder, agent, standing())
}

/// Says of which modules nothing could be observed, since no place in them is known to be safe for a probe.
fn tell_empty(folder: &RunFolder) {
    for (armed, _) in folder.lives().filter(|(armed, _)| armed.probes == 0) {
        let path = armed.module.path.display();
        say!(
            "tomo: {path} was not observed: it has no place for a probe; `tomo map {path}` says why"
        );
    }
}

/// Says of a module how many probes were hit, and how: in a pool, by all its runs so far.
fn tell_numbers((path, record): &(PathBuf, PathBuf)) {
    if let Ok(live) = read_live(record) {
        say!("tomo: {}: {}", path.display(), numbers(&live, record));
    }
}

fn numbers(live: &Live, record: &Path) -> String {
    let (mut marks, mut traps, mut foreign) = (Vec::new(), 0, 0);
    for path in tomo_launch::records(record) {
        let bytes = std::fs::read(path).unwrap_or_default();
        let Ok(view) = RecordView::read(&bytes) else {
            continue;
        };
        marks.resize(view.marks.len(), false);
        let each = marks.iter_mut().zip(view.marks);
        each.for_each(|(mark, more)| *mark |= *more != 0);
        traps += view.live.traps.get();
        foreign += view.live.foreign_traps.get();
    }
    format!(
        "{} of {} hit, {}, {}, {}",
        marks.iter().filter(|mark| **mark).count(),
        counted(marks.len() as u64, "probe", "probes"),
        counted(traps, "trap", "traps"),
        counted(foreign, "foreign trap", "foreign traps"),
        counted(live.armed.get(), "process", "processes")
    )
}

/// `tomo env`: arms programs wherever they are started.
pub(crate) mod environment {
    use super::*;

    /// Print shell commands that arm programs wherever they are started from then on.
    ///
    /// For test runners, service files and the like: no launcher stands between. What the programs
    /// do is recorded in the pool; `tomo report DIR` shows it.
    #[derive(Args)]
    #[command(
        args_override_self = true,
        after_long_help = "\
Example:
  eval \"$(tomo env --pool pool ./prog)\" && make test && tomo report pool"
    )]
    pub(crate) struct Arguments {
        #[command(flatten)]
        what: What,

        #[command(flatten)]
        whose: Whose,

        /// The folder that the programs' runs share.
        #[arg(long, value_name = "DIR")]
        pool: PathBuf,

        /// The programs.
        #[arg(required = true, value_name = "PROGRAM")]
        programs: Vec<OsString>,
    }

    /// Bakes the images and prints the commands; where that fails, one that fails, so that a shell which evaluates what is
    /// printed does not go on.
    pub(crate) fn run(arguments: &Arguments) -> Result<()> {
        let result = bake(arguments);
        if result.is_err() {
            writeln!(stdout(), "false")?;
        }
        result
    }

    fn bake(arguments: &Arguments) -> Result<()> {
        let what = &arguments.what;
        tomo_launch::keep_going();
        let store = Store::open()?;
        let pool = Pool::open(&arguments.pool)?.with(arguments.whose.forks());
        let bar = Bar::new();
        for program in &arguments.programs {
            let target = Target::find_dynamic(program, std::env::var_os("PATH").as_deref())?;
            let modules = what.modules(&target)?;
            pool.add(&modules, &store.images, what.how(), &bar)?;
        }
        let agent = Agent::in_cache(pool.path())?;
        drop(bar);
        tell_replaced(&pool.roster());
        let arming = Arming {
            agent: &agent,
            roster: &pool.roster(),
            outside: None,
        };
        for (name, value) in arming.variables(|_| None) {
            let text = value.to_str().context("the pool's path is not UTF-8")?;
            let quoted = text.replace('\'', r"'\''");
            let before = match name == tomo_wire::environment::ROSTER {
                true => String::new(),
                false => format!("\"${{{name}:+:${name}}}\""),
            };
            writeln!(stdout(), "export {name}='{quoted}'{before}")?;
        }
        Ok(())
    }
}
