//! `tomo map`: what a program consists of.

mod dot;
mod function;
mod json;
mod jsonl;
mod list;
mod numbers;
mod summary;

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context as _, Result, anyhow, bail};
use clap::{Args, ValueEnum};
use tomo_program::{FunctionView, Graphs, Loaded, Request, Search, load};

use crate::observe::models;
use crate::saying;
use crate::session::is_stdout;

/// Show what a program consists of: functions, blocks, edges, sites.
///
/// The first time, the program is analysed, and its model kept in a cache directory
/// ($TOMO_CACHE_DIR, else $XDG_CACHE_HOME/tomograph, else ~/.cache/tomograph, root's /var/cache/tomograph);
/// after that, the model is read from there.
#[derive(Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// An x86-64 ELF executable or shared library, stripped or not: a path, else a command found on
    /// $PATH.
    program: PathBuf,

    /// Show one function: an address in it (0x401136, or decimal), its name, or a part of its name
    /// that no other has. Mangled and readable names both work.
    #[arg(short, long, value_name = "NAME|ADDR", conflicts_with = "functions")]
    function: Option<String>,

    /// List all functions, one a line.
    #[arg(short = 'l', long)]
    functions: bool,

    /// How to write what is shown.
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,

    /// Write to FILE (- for standard output) instead of standard output.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,

    /// Analyse the program even if its model is in the cache, and replace that.
    #[arg(long)]
    refresh: bool,

    /// Neither use the cache nor write to it.
    #[arg(long, conflicts_with = "refresh")]
    no_cache: bool,
}

const EXAMPLES: &str = "\
Examples:
  tomo map /usr/bin/xz               what there is, how much is known exactly
  tomo map xz --functions            all functions of the xz found on $PATH
  tomo map ./prog --function main    blocks, source lines, edges, loops of one
  tomo map ./prog --function 0x401136
  tomo map ./prog --function main --format dot | dot -Tsvg -o main.svg
  tomo map ./prog --format jsonl     all functions, one a line, for programs

A function is exact (everything about it is known), partial (what is known is
true, but something more may exist) or opaque (only its entry is known). Only
what is known exactly is patched freely.

Exit code: 0, or 2 where something could not be done, with one line saying
what.";

/// How to write what is shown.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// For people.
    Text,
    /// One JSON document: the summary, or the functions that are asked for.
    Json,
    /// One JSON object a line for each function.
    Jsonl,
    /// A graph for Graphviz: the blocks of one function, or the calls between all functions.
    Dot,
}

/// Does what the arguments ask for.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let start = Instant::now();
    let path = find_program(&arguments.program);
    let loaded = load_model(arguments, &path).with_context(|| path.display().to_string())?;
    for warning in &loaded.warnings {
        say!("tomo: warning: {warning}");
    }
    let job = Job {
        arguments,
        path: &path,
        loaded: &loaded,
        start,
    };
    job.run()
}

fn load_model(arguments: &Arguments, path: &Path) -> Result<Loaded> {
    let cache = if arguments.no_cache { None } else { models() };
    let whole = arguments.function.is_some()
        || arguments.functions
        || matches!(arguments.format, Format::Jsonl | Format::Dot);
    let request = Request {
        path,
        cache: cache.as_ref(),
        refresh: arguments.refresh,
        whole,
    };
    let bar = crate::bar::Bar::new();
    let loaded = load(&request, &bar);
    bar.finish();
    Ok(loaded?)
}

/// The program at `path`; if there is none and it is a bare name, the command of this name.
fn find_program(path: &Path) -> PathBuf {
    let bare = path.components().count() == 1 && path.file_name() == Some(path.as_os_str());
    if !bare || path.symlink_metadata().is_ok() {
        return path.to_owned();
    }
    let found = tomo_launch::on_path(path.as_os_str(), std::env::var_os("PATH").as_deref());
    found.unwrap_or_else(|| path.to_owned())
}

impl Arguments {
    /// The file that is to be written instead of standard output.
    fn output(&self) -> Option<&Path> {
        let output = self.output.as_deref();
        output.filter(|path| !is_stdout(path))
    }
}

/// A loaded model and what is asked of it.
struct Job<'a> {
    arguments: &'a Arguments,
    path: &'a Path,
    loaded: &'a Loaded,
    start: Instant,
}

impl Job<'_> {
    fn run(&self) -> Result<()> {
        let wanted = self.arguments;
        let whole = wanted.function.is_some() || wanted.functions;
        if !whole && matches!(wanted.format, Format::Text | Format::Json) {
            return self.write(|out| self.write_summary(out));
        }
        let place = || self.path.display().to_string();
        let graphs = self.loaded.model.graphs().with_context(place)?;
        match &wanted.function {
            Some(query) => {
                let function = one_function(&graphs, query).with_context(place)?;
                self.write(|out| self.write_function(out, function))
            }
            None => self.write(|out| self.write_functions(out, &graphs)),
        }
    }

    fn write_summary(&self, out: &mut dyn Write) -> Result<()> {
        let about = summary::About {
            path: self.path,
            loaded: self.loaded,
            seconds: self.start.elapsed().as_secs_f64(),
        };
        match self.arguments.format {
            Format::Json => json::write_summary(out, &about),
            _ => summary::write(out, &about, self.width()),
        }
    }

    fn write_function(&self, out: &mut dyn Write, function: FunctionView<'_>) -> Result<()> {
        match self.arguments.format {
            Format::Text => function::write(out, function, self.width())?,
            Format::Json | Format::Jsonl => jsonl::write_one(out, function)?,
            Format::Dot => dot::write_function(out, function)?,
        }
        Ok(())
    }

    fn write_functions(&self, out: &mut dyn Write, graphs: &Graphs<'_>) -> Result<()> {
        match self.arguments.format {
            Format::Text => list::write(out, graphs)?,
            Format::Json => jsonl::write_array(out, graphs)?,
            Format::Jsonl => jsonl::write_lines(out, graphs)?,
            Format::Dot => dot::write_calls(out, graphs)?,
        }
        Ok(())
    }

    /// Lets `write` write to where the output goes. The file is made only now that nothing is left
    /// to fail but writing.
    fn write(&self, write: impl FnOnce(&mut dyn Write) -> Result<()>) -> Result<()> {
        let Some(path) = self.arguments.output() else {
            let mut out = BufWriter::with_capacity(1 << 16, io::stdout().lock());
            write(&mut out)?;
            return Ok(out.flush()?);
        };
        self.refuse_to_overwrite_program(path)?;
        let create = || -> Result<()> {
            let mut out = BufWriter::with_capacity(1 << 16, File::create(path)?);
            write(&mut out)?;
            Ok(out.flush()?)
        };
        create().with_context(|| format!("writing {}", path.display()))
    }

    fn refuse_to_overwrite_program(&self, output: &Path) -> Result<()> {
        let place = |path: &Path| path.metadata().ok().map(|found| (found.dev(), found.ino()));
        if place(output).is_some_and(|output| Some(output) == place(self.path)) {
            let program = self.path.display();
            bail!("{program}: is the output file too; it would be overwritten");
        }
        Ok(())
    }

    /// Columns to fill: those of the standard output, or 80 of a file.
    fn width(&self) -> usize {
        match self.arguments.output() {
            None => saying::columns(),
            Some(_) => 80,
        }
    }
}

/// How many functions are named when a name means several.
const CANDIDATES: usize = 8;

fn one_function<'g>(graphs: &'g Graphs<'_>, query: &str) -> Result<FunctionView<'g>> {
    let named = match graphs.search(query) {
        Search::Found(function) => return Ok(function),
        Search::NothingAt(address) => bail!("no function has the address {address}"),
        Search::NothingNamed => bail!("no function is called {query:?}; --functions lists all"),
        Search::Several(named) => named,
    };
    let shown = named.functions.iter().take(CANDIDATES);
    let list: Vec<_> = shown
        .map(|function| format!("{} at {}", function.title(), function.entry()))
        .collect();
    let more = named.functions.len().saturating_sub(CANDIDATES);
    let more = if more > 0 {
        format!(", and {more} more")
    } else {
        String::new()
    };
    let how = if named.by_part {
        "is part of the names of"
    } else {
        "is the name of"
    };
    let count = named.functions.len();
    Err(anyhow!(
        "{query:?} {how} {count} functions: {}{more}; give an address",
        list.join(", ")
    ))
}
