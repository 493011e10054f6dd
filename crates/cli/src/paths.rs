//! `tomo paths`: along which acyclic paths functions ran.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context as _, Result, bail};
use clap::{Args, ValueEnum};
use tomo_export::{Followed, path_counts, write_paths_document, write_paths_table};
use tomo_launch::{Chosen, ChosenPaths, Observed};
use tomo_program::FunctionView;
use tomo_wire::counting::{forks, sums};
use tomo_wire::paths::Paths;

use crate::bar::Bar;
use crate::observe::Store;
use crate::session::{Session, Started, bytes, located, tell};

/// Run a program and count how often each acyclic path of its functions runs.
///
/// A path goes from a function's entry, or from where another path ended, along branches to a return, or to where a
/// loop begins anew. Every thread has counters of its own; the counts are exact. Output, exit code and signals are
/// the program's own. What cannot be known is said.
#[derive(Args)]
#[command(after_long_help = NOTES)]
pub(crate) struct Arguments {
    /// Put the run's counters into DIR, in a folder of its own.
    #[arg(short, long, value_name = "DIR", default_value = "tomo-paths")]
    output: PathBuf,

    /// What to write at the program's end.
    #[arg(long, value_enum, default_value_t = Format::Table)]
    format: Format,

    /// Write that to FILE instead of to standard error.
    #[arg(long, value_name = "FILE")]
    to: Option<PathBuf>,

    /// Follow only functions with this name, or with this as a part of it; may be given more than once.
    #[arg(long, value_name = "NAME")]
    function: Vec<String>,

    /// Show so many of the hottest paths.
    #[arg(long, value_name = "N", default_value_t = 20)]
    top: usize,

    /// The program and its arguments.
    #[arg(
        required = true,
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "PROGRAM"
    )]
    command: Vec<OsString>,
}

const NOTES: &str = "\
Followed is the executable itself; the counters of all its processes and threads are
added up. They lie in DIR as soon as they are made, also when it is killed.

A path also ends where the way on cannot be told from others: in front of a jump that
many jumps share the targets of (computed goto), at a call that may come back twice
(setjmp), and where there would be more paths than counters. JSON lists these edges.

A path that comes to no end is counted as cut: when an exception, longjmp, exit or a
signal ends its function in the middle. In a landing pad another path begins.

A path's share is that of the instructions along it in all that ran along paths.

Exit code: the program's own; 128 and its number where a signal ended it; 2 where it
cannot be followed at all, 127 where it is not found.";

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// The hottest paths, with the source of their functions.
    Table,
    /// One document (schema tomo.paths/1).
    Json,
}

/// Runs the program; gives its exit code.
pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode> {
    Started::find(&arguments.command, |started| {
        // A wrong choice is told before anything runs.
        let chosen = match Store::open() {
            Ok(store) => choice(arguments, &started, &store)?,
            Err(_) => ChosenPaths::All,
        };
        started.observed(
            "followed",
            |started| {
                Session::prepare(started, &arguments.output, |folder, module, store| {
                    folder.follow(module, &store.images, &chosen, &Bar::new())?;
                    Ok(folder.make_slabs()?)
                })
            },
            |_, session| tell(arguments.to.as_deref(), &written(arguments, session)?),
        )
    })
}

/// The functions that are to be followed.
fn choice(arguments: &Arguments, started: &Started<'_>, store: &Store) -> Result<ChosenPaths> {
    if arguments.function.is_empty() {
        return Ok(ChosenPaths::All);
    }
    let module = Observed::of(&Chosen::executable(&started.target))?;
    let located = located(&module, store, &Bar::new())?;
    let graphs = located.model.graphs()?;
    let mut entries = std::collections::BTreeSet::new();
    for name in &arguments.function {
        let named = graphs.functions_named(name).functions;
        if named.is_empty() {
            bail!("{} has no function {name}", module.path.display());
        }
        entries.extend(named.iter().map(|function| function.entry().0));
    }
    Ok(ChosenPaths::Of(entries))
}

/// What a run's paths say, in the format that was asked for.
fn written(arguments: &Arguments, session: &Session) -> Result<Vec<u8>> {
    let followed = read(session)?;
    let mut text = Vec::new();
    let asked = |_: &FunctionView<'_>| true;
    match arguments.format {
        Format::Table => write_paths_table(&mut text, &followed, &asked, arguments.top)?,
        Format::Json => write_paths_document(&mut text, &followed, &asked)?,
    }
    Ok(text)
}

/// What the counters of a run say.
fn read(session: &Session) -> Result<Followed> {
    let paths = session.file("paths")?;
    let slabs = bytes(&session.folder().join("slabs"))?;
    let (header, rows) = Paths::read(&paths).context("the paths")?;
    let mut values = vec![0u64; header.counters.get() as usize];
    let mut overflows = false;
    let add = |counter: usize, value: u64| {
        if let Some(sum) = values.get_mut(counter) {
            let (next, over) = sum.overflowing_add(value);
            *sum = next;
            overflows |= over;
        }
    };
    let counters = header.counters.get() as usize;
    let lost = sums(&slabs, header.at.get(), add, counters).context("the slabs")?;
    if overflows {
        bail!("counters add up to more than 64 bits hold");
    }
    let located = session.located()?;
    let counts = path_counts(&located.model.graphs()?, &rows, &values);
    Ok(Followed {
        counts,
        located,
        lost,
        forks: forks(&slabs).context("the slabs")?,
    })
}
