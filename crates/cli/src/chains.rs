//! `tomo chains`: by which chains of calls functions were called, and how often.

use std::ffi::OsString;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, Result};
use clap::Args;
use serde_json::json;
use tomo_export::chains::{
    Called, Choice, Stacks, Tree, document, write_flame_graph, write_folded, write_pprof,
};
use tomo_export::words::{self, counted};
use tomo_program::Graphs;
use tomo_wire::chains::Functions;

use crate::bar::Bar;
use crate::earlier::{Kind, Show, Together};
use crate::observe::OneModule;
use crate::saying;
use crate::session::{Output, Session, Started, answer, is_stdout, tell, tell_by};

/// Run a program and note by which chains of calls its functions are called.
///
/// Each thread keeps the tree of its calls, told apart by call sites; the counts are exact. Its output, its
/// exit code and its signals are its own. What cannot be known is said.
#[derive(Args)]
#[command(after_long_help = NOTES)]
pub(crate) struct Arguments {
    /// Put what the run notes into DIR, in a folder of its own.
    #[arg(short, long, value_name = "DIR", default_value = "tomo-chains")]
    output: PathBuf,

    /// Write the chains to FILE as folded stacks, a line each.
    #[arg(long, value_name = "FILE")]
    folded: Option<PathBuf>,

    /// Write a flame graph to FILE; frames are as wide as they are called often.
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,

    /// Write all chains with their call sites to FILE (schema tomo.chains/1).
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,

    /// Write the chains to FILE for pprof.
    #[arg(long, value_name = "FILE")]
    pprof: Option<PathBuf>,

    /// Show chains from the outermost function NAME on only. May be given several times.
    #[arg(long, value_name = "NAME")]
    root: Vec<String>,

    /// Show only chains that end in the function NAME. May be given several times.
    #[arg(long, value_name = "NAME")]
    leaf: Vec<String>,

    /// Show only chains that have the function NAME. May be given several times; then they have all of them.
    #[arg(long, value_name = "NAME")]
    through: Vec<String>,

    /// Room for the chains of a thread, in MB, on the disk; where more than 64 run at once, the others have a sixteenth of
    /// it or less. Calls by chains that find none are counted, and said.
    #[arg(
        long,
        value_name = "MB",
        default_value_t = 32,
        value_parser = clap::value_parser!(u32).range(1..=1024),
        conflicts_with = "show"
    )]
    memory: u32,

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

/// What runs of `tomo chains` have.
const KIND: Kind = Kind {
    command: "tomo chains",
    file: "functions",
    build: |file| Ok(Functions::read(file)?.0.module),
};

const NOTES: &str = "\
Observed is the executable itself, or the one --module, in all processes and
threads. A chain ends in the function whose calls are counted; above it stands
who called it, and from where. What is noted lies in DIR as soon as it is, also
when the program is killed or still runs: --show tells it, and adds up what
several runs have noted.

[name]       a gap: code that is not observed called back, among it that
             function, which the one above had called
[signal]     the function is the handler of a signal that interrupted the one
             above; or one that it called, if that calls nothing itself
[unplaced]   what stands above is unknown: the program switches stacks by
             itself, or the process was forked from another one, whose chains
             end there
[no room]    calls by chains that are new when --memory is full

A function that is entered by a tail call stands below the one that it
replaced; within a run of tail calls each function stands once. In a library
that jumps by its linker's stubs it stands below the caller. A function that
unwinds is left; exceptions and longjmp are as exact as returns. Where a
library, or a function that could not be observed, catches one for itself, what
was unwound stays in the chain until control is back in an observed function.

Exit code: the program's own; 128 and its number where a signal ended it; 2
where it cannot be observed at all, 127 where it is not found.";

/// Runs the program; gives its exit code.
pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode> {
    if arguments.show.is_asked() {
        conclude(arguments, &Said::together(&arguments.show)?, answer)?;
        return Ok(ExitCode::SUCCESS);
    }
    Started::find_dynamic(&arguments.command, |started| {
        started.observed(
            "observed",
            |started| {
                Session::prepare(
                    started,
                    (&arguments.module, &arguments.output),
                    |folder, module, store| {
                        let memory = arguments.memory << 20;
                        folder.note_chains(module, &store.images, memory, &Bar::new())?;
                        Ok(folder.make_slabs()?)
                    },
                )
            },
            |started, session| conclude(arguments, &Said::of(started, session)?, tell),
        )
    })
}

/// What is told.
struct Said {
    called: Called,
    /// The command line of the program, as it is shown.
    shown: String,
    /// What was not observed, in words.
    not_observed: Vec<String>,
}

impl Said {
    fn of(started: &Started<'_>, session: &Session) -> Result<Self> {
        let located = session.located()?;
        let functions = session.file("functions")?;
        let run = tree(session.folder(), &functions, &located.model.graphs()?)?;
        Ok(Self {
            called: Called::of(located, &functions, [run])?,
            shown: started.shown(),
            not_observed: session.not_observed(),
        })
    }

    /// What these runs of one build say together.
    fn together(asked: &Show) -> Result<Self> {
        let mut runs = Together::of(asked, &KIND)?;
        let located = runs.located()?;
        let graphs = located.model.graphs()?;
        let trees = runs.each(|run| tree(run.folder(), &run.file, &graphs))?;
        Ok(Self {
            called: Called::of(located, &runs.first().file, trees)?,
            shown: runs.first().shown.clone(),
            not_observed: runs.not_observed(),
        })
    }
}

fn tree(run: &Path, functions: &[u8], graphs: &Graphs<'_>) -> Result<Tree> {
    let slabs = run.join("slabs");
    Tree::read(graphs, functions, &slabs).with_context(|| slabs.display().to_string())
}

/// Tells it: a table to where `show` brings it, and the files that are asked for.
fn conclude(
    arguments: &Arguments,
    said: &Said,
    show: fn(Option<&Path>, &[u8]) -> Result<()>,
) -> Result<()> {
    let called = &said.called;
    let choice = Choice {
        roots: arguments.root.clone(),
        leaves: arguments.leaf.clone(),
        through: arguments.through.clone(),
    };
    let stacks = choice.of(called.stacks()?);
    if stacks.stacks.is_empty() && !choice.is_all() {
        say!("tomo: there is no chain that --root, --leaf and --through ask for");
    }
    // First of all, since files grow as the square of a recursion's depth; and not where one of them goes.
    let files = [
        &arguments.folded,
        &arguments.svg,
        &arguments.pprof,
        &arguments.json,
    ];
    let mut files = files.into_iter().flatten();
    let table = table(&stacks, called)?;
    match files.any(|path| is_stdout(path)) {
        true => tell(None, table.as_bytes())?,
        false => show(None, table.as_bytes())?,
    }
    let write = |path: &Option<PathBuf>, text: &dyn Fn(&mut Output) -> Result<()>| match path {
        Some(path) => tell_by(path, text),
        None => Ok(()),
    };
    write(&arguments.folded, &|to| Ok(write_folded(to, &stacks)?))?;
    write(&arguments.svg, &|to| {
        Ok(write_flame_graph(to, &stacks, &said.shown)?)
    })?;
    let module = called.located.path.to_string_lossy();
    write(&arguments.pprof, &|to| {
        Ok(write_pprof(to, &stacks, &module)?)
    })?;
    write(&arguments.json, &|to| {
        let mut document = document(called)?;
        document["not_observed"] = json!(said.not_observed);
        Ok(writeln!(to, "{document:#}")?)
    })
}

/// Chains of a table at most, and frames of a chain.
const ROWS: usize = 20;
const FRAMES: usize = 6;

fn table(stacks: &Stacks, called: &Called) -> Result<String> {
    let graphs = called.located.model.graphs()?;
    let all = graphs.functions().count() as u64;
    let unobserved = all.saturating_sub(called.observed.len() as u64);
    Ok(rows(stacks) + &notes(called, unobserved))
}

/// The chains that were called most.
pub(crate) fn rows(stacks: &Stacks) -> String {
    let mut order: Vec<_> = stacks.stacks.iter().collect();
    order.sort_by_key(|stack| std::cmp::Reverse(stack.calls));
    let mut text = format!("{:>16}  function, from which it was called\n", "calls");
    for stack in order.iter().take(ROWS) {
        let name = |number: u32| {
            let name = stacks.names.get(number as usize);
            name.map_or_else(String::new, |name| saying::name(name))
        };
        let frames = stacks.frames(stack).map(|frame| name(frame.name));
        let shown: Vec<String> = frames.take(FRAMES).collect();
        let more = match stacks.depth(stack).checked_sub(FRAMES) {
            Some(more) if more > 0 => format!(" ← {more} more"),
            _ => String::new(),
        };
        text += &format!("{:>16}  {}{more}\n", stack.calls, shown.join(" ← "));
    }
    if let Some(more) = order.len().checked_sub(ROWS).filter(|more| *more > 0) {
        let more = counted(more as u64, "more chain", "more chains");
        text += &format!("{:>16}  {more}\n", "");
    }
    text
}

/// What is not known, where so many functions could not be observed.
pub(crate) fn notes(called: &Called, unobserved: u64) -> String {
    words::notes([
        (
            unobserved,
            "function could not be observed; it is a gap",
            "functions could not be observed; they are gaps",
        ),
        (
            called.unplaced(),
            "call has nobody knows what above it: [unplaced]",
            "calls have nobody knows what above them: [unplaced]",
        ),
        (
            called.without_room(),
            "call was made by a chain for which there was no room (--memory)",
            "calls were made by chains for which there was no room (--memory)",
        ),
        (
            called.lost_threads,
            "thread was not observed: no memory, disk or right to more chains",
            "threads were not observed: no memory, disk or right to more chains",
        ),
    ])
}
