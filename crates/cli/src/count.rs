//! `tomo count`: how often functions, blocks and edges ran.

mod recorded;

use std::ffi::OsString;
use std::fs;
use std::io::Write as _;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, Result};
use clap::{Args, ValueEnum};
use serde_json::{Value, json};
use tomo_export::counted::{Counted, write_callgrind, write_pprof, write_source, write_tracefile};
use tomo_export::words::notes;
use tomo_export::{Counts, Extent, FunctionCounts};
use tomo_launch::{Observed, Weighed};
use tomo_program::Graphs;

use crate::bar::Bar;
use crate::earlier::{self, Show};
use crate::observe::{OneModule, Store};
use crate::saying;
use crate::session::{Session, Started, answer, located, tell};
use recorded::{Recorded, Said};

/// Run a program and count how often its functions, blocks and edges run.
///
/// Counters stand on as few edges as tell of all others, and each thread has its own; the counts are
/// exact. Its output, its exit code and its signals are its own. What cannot be known is said.
#[derive(Args)]
#[command(after_long_help = NOTES)]
pub(crate) struct Arguments {
    /// Put the run's counters into DIR, in a folder of its own.
    #[arg(short, long, value_name = "DIR", default_value = "tomo-counts")]
    output: PathBuf,

    /// What to write at the program's end, or to show.
    #[arg(long, value_enum, default_value_t = Format::Table)]
    format: Format,

    /// Write that to FILE (- for standard output) instead of to standard error.
    #[arg(long, value_name = "FILE")]
    to: Option<PathBuf>,

    /// Choose counters by how often things ran in an earlier run, whose folder RUN is: then most stand
    /// where little runs. Unless it is named that is the newest run of the same build in DIR, or the run
    /// by which that one was weighed, so that images are made once; `none` goes by an estimate.
    #[arg(long, value_name = "RUN|none", conflicts_with = "show")]
    weights: Option<PathBuf>,

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
Counted is the executable itself, or the one --module; the counters of all
processes and threads are added up. They lie in DIR as soon as they are made,
also when it is killed or still runs: --show tells what they say, and adds up
what several runs have counted.

Counts are exact where functions are left by returns, exceptions, longjmp,
exit, or a fault, whether a handler of that leaves them or it ends the program.
A function that another signal takes out of the middle of a block, by a handler
that jumps away or by ending the program there, is counted as if that block had
been left as usual: what is inferred around it may be off by one each time. So
it is where a fault ends the program that is ignored or blocked, or finds no
stack.

Exit code: the program's own; 128 and its number where a signal ended it; 2
where it cannot be counted at all, 127 where it is not found.";

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// Functions, those that were entered most often first.
    Table,
    /// One document (schema tomo.counts/1).
    Json,
    /// lcov's tracefile, with counts.
    Lcov,
    /// The source of what ran, with a count before each line, as gcov shows it.
    Source,
    /// Callgrind's format, for KCachegrind: of each function what it costs itself.
    Callgrind,
    /// pprof's profile.proto: of each block how often it ran, and how many instructions that makes.
    Pprof,
}

impl Format {
    /// Of which functions is told: a table has nothing of those that did not run.
    fn extent(self) -> Extent {
        match self {
            Self::Table => Extent::Ran,
            _ => Extent::All,
        }
    }
}

/// Runs the program; gives its exit code.
pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode> {
    let (format, to) = (arguments.format, arguments.to.as_deref());
    if arguments.show.is_asked() {
        let said = Said::together(&arguments.show, format.extent())?;
        answer(to, &written(format, said)?)?;
        return Ok(ExitCode::SUCCESS);
    }
    Started::find_dynamic(&arguments.command, |started| {
        started.observed(
            "counted",
            |started| prepare(arguments, started),
            |started, session| {
                let said = Said::of(session, started.shown(), format.extent())?;
                tell(to, &written(format, said)?)
            },
        )
    })
}

fn prepare(arguments: &Arguments, started: &Started<'_>) -> Result<Session> {
    Session::prepare(
        started,
        (&arguments.module, &arguments.output),
        |folder, module, store| {
            let weighed = weighed(arguments, folder.path(), module, store)?;
            folder.count(module, &store.images, &weighed, &Bar::new())?;
            Ok(folder.make_slabs()?)
        },
    )
}

/// In the folder of a run: the run by which it was weighed.
const WEIGHED_BY: &str = "weighed-by";

/// By what counters are chosen in the run whose folder is `own`, which is noted there.
fn weighed(arguments: &Arguments, own: &Path, module: &Observed, store: &Store) -> Result<Weighed> {
    let found = match &arguments.weights {
        Some(none) if none.as_os_str() == "none" => None,
        Some(run) => Some((run.clone(), weights(run, module, store)?)),
        None => by_itself(&arguments.output, module, store),
    };
    let Some((run, weighed)) = found else {
        return Ok(Weighed::default());
    };
    let run = fs::canonicalize(run)?;
    fs::write(own.join(WEIGHED_BY), run.as_os_str().as_bytes())?;
    Ok(weighed)
}

/// The newest run in `output` whose counts can be used, or the one by which it was weighed.
fn by_itself(output: &Path, module: &Observed, store: &Store) -> Option<(PathBuf, Weighed)> {
    let newest = earlier::runs(output, module, "counters")
        .into_iter()
        .next()?;
    let before = fs::read(newest.join(WEIGHED_BY)).ok();
    let before = before.map(|bytes| PathBuf::from(OsString::from_vec(bytes)));
    for run in before.into_iter().chain([newest]) {
        match weights(&run, module, store) {
            Ok(weighed) => return Some((run, weighed)),
            Err(error) => say!("tomo: no weights are taken: {error:#}"),
        }
    }
    None
}

/// The weights that an earlier run of `module` gives.
pub(crate) fn weights(run: &Path, module: &Observed, store: &Store) -> Result<Weighed> {
    let read = || -> Result<_> {
        let recorded = Recorded::read(run, &module.stem)?;
        Ok((recorded, located(module, store, &())?))
    };
    let read = read().with_context(|| format!("{} is no run of this program", run.display()));
    let (recorded, located) = read?;
    let values: Vec<u8> = recorded
        .values
        .iter()
        .flat_map(|value| value.to_le_bytes())
        .collect();
    let name = tomo_wire::checksum(&[recorded.file.as_slice(), &values].concat());
    // What is damaged is an error here and now, not weights that say nothing when an image is woven.
    located.model.graphs()?;
    recorded.rows()?;
    Ok(Weighed::by(name, move || recorded.frequencies(&located)))
}

/// What counters say, in the format that was asked for.
fn written(format: Format, said: Said) -> Result<Vec<u8>> {
    let Said {
        located,
        counts,
        lost,
        cuts_lost,
        not_observed,
        shown,
    } = said;
    let notices = notices(&counts, lost, cuts_lost);
    if format == Format::Table {
        return Ok((table(&located.model.graphs()?, &counts) + &notices).into_bytes());
    }
    let counted = Counted::of(located, counts);
    let mut text = Vec::new();
    if format != Format::Json {
        let notices = notices.lines();
        notices.for_each(|notice| say!("tomo: {notice}"));
    }
    if matches!(format, Format::Lcov | Format::Source) {
        let why = counted.without_lines();
        why.iter().for_each(|why| say!("tomo: {why}"));
        let lacking = counted.lacking();
        lacking.iter().for_each(|what| say!("tomo: {what}"));
    }
    match format {
        Format::Table | Format::Json => {
            let mut document = document(&counted, lost)?;
            document["lost_faults"] = json!(cuts_lost);
            document["not_observed"] = json!(not_observed);
            writeln!(text, "{document:#}")?;
        }
        Format::Lcov => write_tracefile(&mut text, &counted)?,
        Format::Source => write_source(&mut text, &counted)?,
        Format::Callgrind => write_callgrind(&mut text, &counted, &shown)?,
        Format::Pprof => write_pprof(&mut text, &counted)?,
    }
    Ok(text)
}

/// Functions of a table at most.
const ROWS: usize = 30;

/// A function that ran, as far as is known.
struct Ran<'c> {
    function: &'c FunctionCounts,
    /// How often it was entered, or if that is unknown, how often that of its blocks ran which ran most.
    rank: u64,
}

impl<'c> Ran<'c> {
    /// None where nothing is known to have run.
    fn of(function: &'c FunctionCounts) -> Option<Self> {
        let most = || function.blocks.iter().flatten().max().copied();
        let rank = function.activations.or_else(most)?;
        (rank > 0).then_some(Self { function, rank })
    }

    fn is_whole(&self) -> bool {
        self.function.blocks.iter().all(Option::is_some)
    }

    fn entered(&self) -> String {
        match self.function.activations {
            Some(times) => times.to_string(),
            None => "?".into(),
        }
    }

    fn blocks(&self) -> String {
        let known: u64 = self.function.blocks.iter().flatten().sum();
        let more = if self.is_whole() { "" } else { "+" };
        format!("{known}{more}")
    }
}

fn table(graphs: &Graphs<'_>, counts: &Counts) -> String {
    let mut ran: Vec<Ran<'_>> = counts.functions.iter().filter_map(Ran::of).collect();
    ran.sort_by_key(|ran| (std::cmp::Reverse(ran.rank), ran.function.function));
    let mut text = format!("{:>16} {:>16}  function\n", "entered", "blocks run");
    for ran in ran.iter().take(ROWS) {
        let title = graphs.function(ran.function.function);
        let title = title.map_or_else(String::new, |one| saying::name(&one.title()));
        text += &format!("{:>16} {:>16}  {title}\n", ran.entered(), ran.blocks());
    }
    if let Some(more) = ran.len().checked_sub(ROWS).filter(|more| *more > 0) {
        text += &format!("{:>16} {:>16}  {more} more functions ran\n", "", "");
    }
    if ran
        .iter()
        .take(ROWS)
        .any(|ran| ran.function.activations.is_none())
    {
        text += "?: its entry cannot be counted\n";
    }
    if ran.iter().take(ROWS).any(|ran| !ran.is_whole()) {
        text += "+: some of its blocks cannot be counted\n";
    }
    text
}

/// What is not counted, a line each.
fn notices(counts: &Counts, lost: u64, cuts_lost: u64) -> String {
    let is_unknown = |function: &&FunctionCounts| {
        let blocks = &function.blocks;
        function.activations.is_none()
            && blocks
                .iter()
                .all(|count| count.is_none_or(|count| count == 0))
    };
    notes([
        (
            counts.functions.iter().filter(is_unknown).count() as u64,
            "function could not be counted: there is no room for counters in it",
            "functions could not be counted: there is no room for counters in them",
        ),
        (
            counts.uncounted.len() as u64,
            "function could not be counted: too little is known of it",
            "functions could not be counted: too little is known of them",
        ),
        (
            counts.contradictory.len() as u64,
            "function has counters that contradict each other",
            "functions have counters that contradict each other",
        ),
        (
            lost,
            "thread was not counted: no memory, disk or right to more counters",
            "threads were not counted: no memory, disk or right to more counters",
        ),
        (
            cuts_lost,
            "fault left a block unnoticed: what is inferred there may be off by one",
            "faults left blocks unnoticed: what is inferred there may be off by as many",
        ),
    ])
}

fn document(counted: &Counted, lost: u64) -> Result<Value> {
    let graphs = counted.graphs()?;
    let counts = &counted.counts;
    let lines = counted.line_counts()?;
    let functions = counts.functions.iter().filter_map(|counted| {
        let function = graphs.function(counted.function)?;
        let blocks = function
            .blocks()
            .zip(&counted.blocks)
            .map(|(block, count)| {
                json!({
                    "address": format!("{:#x}", block.address().0),
                    "size": block.size(),
                    "count": count,
                    "line": block.source().map(|source| source.line),
                })
            });
        let edges = function.edges().filter_map(|edge| {
            let at = counted
                .edges
                .binary_search_by_key(&edge.id, |(id, _)| *id)
                .ok()?;
            let from = graphs.block(edge.from)?;
            Some(json!({
                "from": format!("{:#x}", from.address().0),
                "to": format!("{:#x}", edge.address.0),
                "count": counted.edges[at].1,
            }))
        });
        Some(json!({
            "name": function.title(),
            "address": format!("{:#x}", function.entry().0),
            "entered": counted.activations,
            "blocks": blocks.collect::<Vec<_>>(),
            "edges": edges.collect::<Vec<_>>(),
        }))
    });
    let entries = |ids: &[tomo_program::FunctionId]| -> Vec<String> {
        let functions = ids.iter().filter_map(|id| graphs.function(*id));
        functions
            .map(|one| format!("{:#x}", one.entry().0))
            .collect()
    };
    let contradictory: Vec<_> = counts.contradictory.iter().map(|(id, _)| *id).collect();
    Ok(json!({
        "schema": "tomo.counts/1",
        "functions": functions.collect::<Vec<_>>(),
        "uncounted": entries(&counts.uncounted),
        "contradictory": entries(&contradictory),
        "lost_threads": lost,
        "lines": lines,
    }))
}

#[cfg(test)]
mod tests {
    use tomo_export::FunctionCounts;
    use tomo_program::FunctionId;

    use super::Ran;

    /// How often a function was entered and blocks of it ran, as the table has it.
    fn shown(activations: Option<u64>, blocks: &[Option<u64>]) -> Option<(String, String, u64)> {
        let function = FunctionCounts {
            function: FunctionId(0),
            activations,
            blocks: blocks.into(),
            edges: Vec::new(),
        };
        Ran::of(&function).map(|ran| (ran.entered(), ran.blocks(), ran.rank))
    }

    #[test]
    fn a_function_whose_entry_cannot_be_counted_is_in_the_table() {
        let row = |entered: &str, blocks: &str, rank| Some((entered.into(), blocks.into(), rank));
        assert_eq!(shown(Some(3), &[Some(3), Some(9)]), row("3", "12", 3));
        assert_eq!(shown(Some(3), &[Some(3), None]), row("3", "3+", 3));
        assert_eq!(shown(None, &[None, Some(20), Some(4)]), row("?", "24+", 20));
        assert_eq!(shown(Some(0), &[Some(0)]), None);
        assert_eq!(shown(None, &[None]), None, "nothing is known to have run");
    }
}
