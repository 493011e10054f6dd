//! `tomo paths`: along which acyclic paths functions ran.

mod select;
mod show;
mod units;

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, Result, bail};
use clap::{Args, ValueEnum};
use serde_json::json;
use tomo_export::{Extent, Followed, PathCounts, path_counts, paths_document, write_paths_table};
use tomo_launch::{ChosenPaths, ImageError, Observed};
use tomo_program::{FunctionView, Graphs};
use tomo_weave::WeaveError;
use tomo_wire::counting::forks;
use tomo_wire::paths::Paths;

use crate::bar::Bar;
use crate::earlier::{self, Show};
use crate::observe::{OneModule, Store};
use crate::saying;
use crate::session::{Session, Started, answer, bytes, located, parsed, summed, tell};
use select::Earlier;
pub(crate) use select::Select;
pub(crate) use units::units_of;

/// Where runs are put if it is not said.
const OUTPUT: &str = "tomo-paths";

/// Run a program and count how often each acyclic path of its functions runs.
///
/// A path goes from a function's entry, or from where another path ended, along branches to a return, or to where a
/// loop begins anew. Every thread has counters of its own; the counts are exact. Output, exit code and signals are
/// the program's own. What cannot be known is said.
#[derive(Args)]
#[command(after_long_help = NOTES)]
pub(crate) struct Arguments {
    /// Put the run's counters into DIR, in a folder of its own.
    #[arg(short, long, value_name = "DIR", default_value = OUTPUT)]
    output: PathBuf,

    /// What to write at the program's end.
    #[arg(long, value_enum, default_value_t = Format::Table)]
    format: Format,

    /// Write that to FILE (- for standard output) instead of to standard error.
    #[arg(long, value_name = "FILE")]
    to: Option<PathBuf>,

    /// Follow only functions with this name, or with this as a part of it; may be given more than once.
    #[arg(long, value_name = "NAME", conflicts_with = "show")]
    function: Vec<String>,

    /// Count only some paths, by few probes: those in FILE, which is what `--format json` writes, or a part of it;
    /// `hot:N`, the N hottest of an earlier run; or `unseen`, what no earlier run has seen.
    #[arg(long, value_name = "FILE|hot:N|unseen", conflicts_with = "show")]
    select: Option<Select>,

    /// Select by this earlier run, whose folder RUN is. May be given several times. Without it `hot:N` goes by the
    /// newest run of the same build in DIR, and `unseen` by all of them.
    #[arg(long, value_name = "RUN", requires = "select")]
    of: Vec<PathBuf>,

    /// Show so many of the hottest paths.
    #[arg(long, value_name = "N", default_value_t = 20)]
    top: usize,

    #[command(flatten)]
    module: OneModule,

    #[command(flatten)]
    show: Show,

    /// The program and its arguments.
    #[arg(
        required_unless_present = "show",
        trailing_var_arg = true,
        value_name = "PROGRAM"
    )]
    command: Vec<OsString>,
}

const NOTES: &str = "\
Followed is the executable itself, or the one --module; the counters of all
processes and threads are added up. They lie in DIR as soon as they are made,
also when it is killed.

A path also ends where the way on cannot be told from others: in front of a
jump that many jumps share the targets of (computed goto), at a call that may
come back twice (setjmp), and where there would be more paths than counters.
JSON lists these edges.

A path that comes to no end is counted as cut: when an exception, longjmp, exit
or a signal ends its function in the middle. In a landing pad another path
begins.

--show adds up what several runs have counted, with whatever --function and
--select; where they have drawn the paths of a function differently it says so
instead.

With --select other paths are not counted, and it is not known how many were
started. A function in which the selected paths cannot be told from others by
probes of their own has all its paths counted; told is of the selected ones all
the same.

A path's share is that of the instructions along it in all that ran along paths
that were counted.

Exit code: the program's own; 128 and its number where a signal ended it; 2
where it cannot be followed at all, 127 where it is not found.";

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// The hottest paths, with the source of their functions.
    Table,
    /// One document (schema tomo.paths/1).
    Json,
}

impl Arguments {
    /// Of which functions is told: a table has nothing of those that did not run.
    fn extent(&self) -> Extent {
        match self.format {
            Format::Table => Extent::Ran,
            Format::Json => Extent::All,
        }
    }
}

/// Runs the program; gives its exit code.
pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode> {
    if arguments.show.is_asked() {
        let (followed, missed) = show::together(&arguments.show)?;
        let text = written(arguments, &followed, &missed)?;
        answer(arguments.to.as_deref(), &text)?;
        return Ok(ExitCode::SUCCESS);
    }
    Started::find_dynamic(&arguments.command, |started| {
        // A wrong choice is told before anything runs.
        let chosen = match Store::open() {
            Ok(store) => choice(arguments, &started, &store)?,
            Err(_) => ChosenPaths::All,
        };
        started.observed(
            "followed",
            |started| {
                Session::prepare(
                    started,
                    (&arguments.module, &arguments.output),
                    |folder, module, store| {
                        folder.follow(module, &store.images, &chosen, &Bar::new())?;
                        Ok(folder.make_slabs()?)
                    },
                )
            },
            |_, session| {
                let run = session.folder();
                let followed = read(run, &session.module, &session.store, arguments.extent())?;
                let missed = session.not_observed();
                let text = written(arguments, &followed, &missed)?;
                tell(arguments.to.as_deref(), &text)
            },
        )
    })
}

/// The paths that are to be counted.
fn choice(arguments: &Arguments, started: &Started<'_>, store: &Store) -> Result<ChosenPaths> {
    if arguments.function.is_empty() && arguments.select.is_none() {
        return Ok(ChosenPaths::All);
    }
    let module = arguments.module.of(&started.target)?;
    let located = located(&module, store, &Bar::new())?;
    let graphs = located.model.graphs()?;
    let entries = named(arguments, &module, &graphs)?;
    let Some(select) = &arguments.select else {
        return Ok(entries.map_or(ChosenPaths::All, ChosenPaths::Of));
    };
    let earlier = Earlier {
        module: &module,
        named: &arguments.of,
        found: earlier::runs(&arguments.output, &module, "paths"),
        output: &arguments.output,
    };
    let read = |run: &Path| read(run, &module, store, Extent::All);
    let chosen = select::chosen(select, entries.as_ref(), &graphs, &earlier, &read)?;
    // What else goes wrong is said when the run is prepared.
    match store.images.can_follow(&module, &chosen, &Bar::new()) {
        Err(ImageError::Weave(_, error @ WeaveError::NoSuchPath { .. })) => Err(error.into()),
        _ => Ok(chosen),
    }
}

/// The functions that are named, if any are.
fn named(
    arguments: &Arguments,
    module: &Observed,
    graphs: &Graphs<'_>,
) -> Result<Option<BTreeSet<u64>>> {
    let mut entries = BTreeSet::new();
    for name in &arguments.function {
        let named = graphs.functions_named(name).functions;
        if named.is_empty() {
            bail!("{} has no function {name}", module.path.display());
        }
        entries.extend(named.iter().map(|function| function.entry().0));
    }
    Ok((!entries.is_empty()).then_some(entries))
}

/// What paths say, in the format that was asked for, and what was not observed.
fn written(arguments: &Arguments, followed: &Followed, missed: &[String]) -> Result<Vec<u8>> {
    let mut text = Vec::new();
    let asked = |_: &FunctionView<'_>| true;
    match arguments.format {
        Format::Table => {
            write_paths_table(&mut text, followed, &asked, arguments.top, &saying::name)?
        }
        Format::Json => {
            let mut document = paths_document(followed, &asked)?;
            document["not_observed"] = json!(missed);
            writeln!(text, "{document:#}")?;
        }
    }
    Ok(text)
}

/// What the counters of a run say.
fn read(run: &Path, module: &Observed, store: &Store, extent: Extent) -> Result<Followed> {
    let located = located(module, store, &())?;
    let Counted {
        counts,
        lost,
        forks,
    } = counted(run, &module.stem, &located.model.graphs()?, extent)?;
    Ok(Followed {
        counts,
        located,
        module: module.stem.clone(),
        lost,
        forks,
    })
}

/// What was counted in a run.
struct Counted {
    counts: PathCounts,
    /// Threads that were not counted.
    lost: u64,
    forks: u64,
}

/// What was counted in a run of the module that is called so.
fn counted(run: &Path, stem: &str, graphs: &Graphs<'_>, extent: Extent) -> Result<Counted> {
    let paths = bytes(&run.join(format!("{stem}.paths")))?;
    let (header, rows) = Paths::read(&paths).context("the paths")?;
    let (values, summed) = summed(run, header.at.get(), header.counters.get() as usize)?;
    Ok(Counted {
        counts: path_counts(graphs, &rows, &values, extent),
        lost: summed.lost,
        forks: parsed(&run.join("slabs"), forks)?,
    })
}
