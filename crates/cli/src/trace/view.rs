//! `tomo trace show`, `stats`, `diff` and `export`: what a trace says.

use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use clap::{Args, Subcommand, ValueEnum};
use tomo_export::traced::tracing::{Atlas, Divergence, Ended};
use tomo_export::traced::{
    Activation, Around, Blocks, Callgrind, Calls, Events, Folded, Lines, Names, Shown, Traced,
    TracedThread, Tree, Visitor, Visits,
};
use tomo_export::words::counted;

use crate::bar::Bar;
use crate::crashes::signal_name;
use crate::observe::models;
use crate::saying;
use crate::session::tell_not_observed;

/// What is looked at.
#[derive(Subcommand)]
pub(super) enum View {
    Show(Show),
    Stats(Stats),
    Diff(Diff),
    Export(Export),
}

/// Show the calls of a trace as a tree, with what repeats itself folded and counted.
#[derive(Args)]
pub(super) struct Show {
    #[command(flatten)]
    trace: Trace,
    /// The thread, by its number.
    #[arg(long, value_name = "N", default_value_t = 0)]
    thread: u32,
    /// Levels of calls at most.
    #[arg(long, value_name = "N", default_value_t = 6)]
    depth: usize,
    /// Lines at most.
    #[arg(long, value_name = "N", default_value_t = 200)]
    lines: usize,
    /// Only calls of this function, and what it called.
    #[arg(long, value_name = "NAME")]
    function: Option<String>,
    /// What happened around a visit of a line: FILE:LINE for the first, FILE:LINE#N for the N-th.
    #[arg(long, value_name = "FILE:LINE#N", conflicts_with = "end")]
    at: Option<String>,
    /// What happened at the end.
    #[arg(long)]
    end: bool,
}

/// Say how long a trace is, what it cost, and what it lacks.
#[derive(Args)]
pub(super) struct Stats {
    #[command(flatten)]
    trace: Trace,
}

/// Say where one trace leaves another one of the same program.
#[derive(Args)]
pub(super) struct Diff {
    /// The folder of a trace.
    one: PathBuf,
    /// That of the other.
    other: PathBuf,
    /// Where the module is now, if it has moved since.
    #[arg(long, value_name = "PATH")]
    program: Option<PathBuf>,
}

/// A trace, and where its module is.
#[derive(Args)]
struct Trace {
    /// The folder of a trace.
    trace: PathBuf,
    /// Where the module is now, if it has moved since.
    #[arg(long, value_name = "PATH")]
    program: Option<PathBuf>,
}

impl Trace {
    fn open(&self) -> Result<Traced> {
        open(&self.trace, self.program.as_deref())
    }
}

/// Write a trace in a format that other programs read.
#[derive(Args)]
pub(super) struct Export {
    #[command(flatten)]
    trace: Trace,
    /// In which format.
    #[arg(long, value_enum, default_value_t = Format::Jsonl)]
    format: Format,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// A line of JSON for each block.
    Jsonl,
    /// Stacks with how many blocks ran under them, for flame graphs.
    Folded,
    /// The trace event format, which Perfetto and Chrome open; a block takes a microsecond.
    Events,
    /// Callgrind's, for KCachegrind.
    Callgrind,
}

impl View {
    pub(super) fn run(&self) -> Result<()> {
        let to = &mut BufWriter::new(std::io::stdout().lock());
        match self {
            Self::Show(show) => show.run(to)?,
            Self::Stats(stats) => stats.run(to)?,
            Self::Diff(diff) => diff.run(to)?,
            Self::Export(export) => export.run(to)?,
        }
        Ok(to.flush()?)
    }
}

fn open(path: &Path, program: Option<&Path>) -> Result<Traced> {
    let traced = Traced::read(path, program, models().as_ref(), &Bar::new())?;
    // Who records from outside has no record.
    for run in traced.runs.iter().filter(|run| run.record.exists()) {
        tell_not_observed(&run.path, &run.record, &traced.located.path);
    }
    Ok(traced)
}

/// A trace that is looked at.
struct Open<'t> {
    traced: &'t Traced,
    atlas: Atlas<'t>,
    names: Names,
    threads: Vec<TracedThread>,
}

impl<'t> Open<'t> {
    fn of(traced: &'t Traced) -> Result<Self> {
        let atlas = traced.atlas()?;
        let graphs = traced.located.model.graphs()?;
        Ok(Self {
            names: Names::of(&atlas, &graphs),
            threads: traced.threads(&atlas),
            atlas,
            traced,
        })
    }

    /// The same for people, whose terminal names do nothing to.
    fn shown(traced: &'t Traced) -> Result<Self> {
        let open = Self::of(traced)?;
        let names = open.names.with_titles(saying::name);
        Ok(Self { names, ..open })
    }

    fn thread(&self, serial: u32) -> Result<&TracedThread> {
        let thread = self.threads.iter().find(|thread| thread.serial == serial);
        thread.with_context(|| format!("there is no thread {serial}"))
    }

    fn walk<V: Visitor>(&self, thread: &TracedThread, visitor: V) -> (V, Ended) {
        let mut calls = Calls::new(&self.atlas, visitor);
        let ended = self
            .traced
            .walk(&self.atlas, &self.threads, thread, &mut calls);
        (calls.finish(), ended)
    }

    /// The signal by which a run ended, if that is so.
    fn signal(&self, run: usize) -> Option<String> {
        let signal = self.traced.runs.get(run)?.outcome["signal"].as_i64()?;
        i32::try_from(signal).ok().map(signal_name)
    }

    /// A block as people read it.
    fn block(&self, block: u32) -> String {
        let function = self.names.function(self.atlas.function_of(block));
        let address = self.atlas.chart.blocks[block as usize].address.get();
        format!(
            "{address:#x}  {}  {}",
            function.title,
            self.names.place(block)
        )
    }

    fn stack(&self, stack: &[Activation], to: &mut impl Write) -> Result<()> {
        for one in stack {
            writeln!(to, "  {}", self.block(one.block))?;
        }
        Ok(())
    }
}

/// How a trace ends, in words.
fn end(open: &Open<'_>, ended: &Ended) -> String {
    let had_text_back = open.traced.runs.iter().any(|run| run.had_text_back);
    let is_full = open.traced.runs.iter().any(|run| run.recorded.full > 0);
    let mut text = match &ended.divergence {
        None if is_full && ended.is_outside => {
            "to its end, or to where there was no more room".to_owned()
        }
        None if had_text_back => "the program had its text back before its end".to_owned(),
        None if ended.is_open => {
            let last = ended.steps - ended.certain;
            let last = counted(last, "last block is", "last blocks are");
            format!("to its end, or to where the program ended: the {last} not certain")
        }
        None if ended.is_outside && ended.inferred == 0 => match open.signal(0) {
            Some(signal) => format!("complete, ended by {signal}"),
            None => "complete".to_owned(),
        },
        None if ended.is_outside => "to its end".to_owned(),
        None => "ends in the program's own code".to_owned(),
        Some(Divergence::Differs {
            run,
            position,
            block,
        }) if open.traced.runs.len() > 1 && (*block as usize) < open.atlas.chart.blocks.len() => {
            let block = open.block(*block);
            format!(
                "run {run} goes on otherwise than the trace after {position} of its events, behind {block}"
            )
        }
        Some(why @ Divergence::Ends { run }) => {
            let signal = open.signal(*run);
            signal.map_or_else(|| why.to_string(), |signal| format!("ended by {signal}"))
        }
        Some(why) => why.to_string(),
    };
    if ended.divergence.is_some() && ended.certain < ended.steps {
        text += &format!("; {} of {} blocks are certain", ended.certain, ended.steps);
    }
    if ended.interruptions > 0 {
        let many = counted(ended.interruptions, "signal handler", "signal handlers");
        text +=
            &format!("; {many} came somewhere between two witnesses, or at one of several visits");
    }
    if ended.unfinished > 0 {
        let many = counted(ended.unfinished, "loop was", "loops were");
        text +=
            &format!("; {many} left by signal handlers, how many rounds before is not recorded");
    }
    if ended.inferred > 0 {
        let many = counted(ended.inferred, "time", "times");
        text += &format!("; {many} the innermost of several activations was taken");
    }
    if ended.is_orphan {
        text += "; it was forked by a thread that could not be followed there, so who called is not known";
    }
    text
}

impl Show {
    fn run(&self, to: &mut impl Write) -> Result<()> {
        let traced = self.trace.open()?;
        let open = Open::shown(&traced)?;
        let thread = open.thread(self.thread)?;
        if let Some(at) = &self.at {
            return self.visit(&open, thread, at, to);
        }
        if self.end {
            let (blocks, _) = open.walk(thread, Blocks::default());
            let last = (blocks.blocks.len() as u64).saturating_sub(1);
            return around(&open, thread, last, to);
        }
        let (tree, ended) = open.walk(thread, Tree::default());
        if let Some(function) = self.function.as_deref()
            && !tree.has(&open.names, function)
        {
            bail!(
                "no call of {function:?} was traced in this thread; without --function all are shown"
            );
        }
        let shown = Shown {
            depth: self.depth,
            lines: self.lines,
            function: self.function.as_deref(),
        };
        tree.write(&open.names, shown, to)?;
        writeln!(to, "{}", end(&open, &ended))?;
        Ok(())
    }

    /// What happened around a visit of a line.
    fn visit(
        &self,
        open: &Open<'_>,
        thread: &TracedThread,
        at: &str,
        to: &mut impl Write,
    ) -> Result<()> {
        let (place, wanted) = match at.split_once('#') {
            Some((place, number)) => (place, number.parse().context("which visit?")?),
            None => (at, 1),
        };
        let is_there = |block: u32| {
            let own = open.names.place(block);
            own == place || own.ends_with(&format!("/{place}"))
        };
        let visits = Visits {
            is_there: &is_there,
            wanted,
            visits: 0,
            step: None,
            last: None,
        };
        let (visits, _) = open.walk(thread, visits);
        match visits.step {
            Some(step) => around(open, thread, step, to),
            None => bail!("{place} was visited {} times", visits.visits),
        }
    }
}

/// What happened around a step.
fn around(open: &Open<'_>, thread: &TracedThread, step: u64, to: &mut impl Write) -> Result<()> {
    let (around, ended) = open.walk(thread, Around::of(step, 10, 10));
    writeln!(to, "block {step} of {}:", ended.steps)?;
    for (at, block) in around.blocks.iter().filter(|(at, _)| at + 10 >= step) {
        let mark = if *at == step { ">" } else { " " };
        writeln!(to, "{mark} {at:>10}  {}", open.block(*block))?;
    }
    writeln!(to, "called by, from the outside in:")?;
    open.stack(&around.stack, to)?;
    writeln!(to, "{}", end(open, &ended))?;
    Ok(())
}

impl Stats {
    fn run(&self, to: &mut impl Write) -> Result<()> {
        let traced = self.trace.open()?;
        let open = Open::shown(&traced)?;
        let chart = &open.atlas.chart;
        let (functions, untraced) = (chart.functions.len(), chart.untraced.len());
        writeln!(
            to,
            "functions  {functions} traced, {untraced} not: too little is known of them, or it was not asked for"
        )?;
        let mut steps = 0;
        for thread in &open.threads {
            let ((), ended) = open.walk(thread, ());
            steps += ended.steps;
            writeln!(
                to,
                "thread {}  {} blocks, {}",
                thread.serial,
                ended.steps,
                end(&open, &ended)
            )?;
        }
        for difference in &traced.differences {
            writeln!(to, "{difference}")?;
        }
        let words = |number: usize| -> usize {
            let threads = open.threads.iter();
            threads.map(|thread| thread.runs[number].words.len()).sum()
        };
        let mut bytes = 0;
        for (number, run) in traced.runs.iter().enumerate() {
            bytes += run.size;
            let (words, size) = (words(number), run.size);
            writeln!(
                to,
                "run {number}  {words} words, {size} bytes, {}",
                run.outcome
            )?;
            if run.recorded.is_cut {
                writeln!(
                    to,
                    "run {number}  its record is cut off: what came then is missing"
                )?;
            }
            for line in super::missing(run.recorded.full, run.recorded.lost) {
                writeln!(to, "run {number}  {line}")?;
            }
        }
        if steps > 0 {
            writeln!(
                to,
                "size  {:.2} bits a block",
                bytes as f64 * 8.0 / steps as f64
            )?;
        }
        Ok(())
    }
}

impl Diff {
    fn run(&self, to: &mut impl Write) -> Result<()> {
        let program = self.program.as_deref();
        let (one, other) = (open(&self.one, program)?, open(&self.other, program)?);
        if one.located.id != other.located.id {
            bail!("these are traces of different programs");
        }
        let (one, other) = (Open::shown(&one)?, Open::shown(&other)?);
        for thread in &one.threads {
            let Some(same) = other
                .threads
                .iter()
                .find(|same| same.serial == thread.serial)
            else {
                writeln!(to, "thread {} is in the first alone", thread.serial)?;
                continue;
            };
            let addresses = |open: &Open<'_>, thread: &TracedThread| -> Vec<u64> {
                let (blocks, _) = open.walk(thread, Blocks::default());
                let rows = open.atlas.chart.blocks;
                let blocks = blocks.blocks.iter();
                blocks
                    .map(|block| rows[*block as usize].address.get())
                    .collect()
            };
            let (left, right) = (addresses(&one, thread), addresses(&other, same));
            let parts = left
                .iter()
                .zip(&right)
                .position(|(left, right)| left != right);
            let shorter = left.len().min(right.len());
            if parts.is_none() && left.len() == right.len() {
                writeln!(
                    to,
                    "thread {}: both pass the same {shorter} blocks",
                    thread.serial
                )?;
                continue;
            }
            let step = parts.unwrap_or(shorter) as u64;
            writeln!(to, "thread {}: the same up to block {step}", thread.serial)?;
            for (name, open, thread) in [("first", &one, thread), ("second", &other, same)] {
                writeln!(to, "the {name}:")?;
                around(open, thread, step, to)?;
            }
        }
        Ok(())
    }
}

impl Export {
    fn run(&self, to: &mut impl Write) -> Result<()> {
        let traced = self.trace.open()?;
        let open = Open::of(&traced)?;
        let mut folded = Folded::default();
        let mut callgrind = Callgrind::default();
        if self.format == Format::Events {
            let program = traced.located.path.file_name();
            let program = program.unwrap_or_default().to_string_lossy();
            Events::begin(to, &program)?;
        }
        for thread in &open.threads {
            let serial = thread.serial;
            match self.format {
                Format::Jsonl => {
                    let lines = Lines {
                        to: &mut *to,
                        atlas: &open.atlas,
                        names: &open.names,
                        thread: serial,
                        result: Ok(()),
                    };
                    open.walk(thread, lines).0.result?;
                }
                Format::Events => {
                    let events = Events {
                        to: &mut *to,
                        names: &open.names,
                        thread: serial,
                        result: Ok(()),
                        step: 0,
                    };
                    open.walk(thread, events).0.result?;
                }
                Format::Folded => folded = open.walk(thread, folded).0,
                Format::Callgrind => callgrind = open.walk(thread, callgrind).0,
            }
        }
        match self.format {
            Format::Events => writeln!(to, "\n]")?,
            Format::Folded => folded.write(&open.names, to)?,
            Format::Callgrind => callgrind.write(&open.names, to)?,
            Format::Jsonl => {}
        }
        Ok(())
    }
}
