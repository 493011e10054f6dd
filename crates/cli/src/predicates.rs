//! `tomo predicates`: which branches went which way, and what calls returned.

mod words;

use std::collections::HashSet;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, Result, bail};
use clap::Args;
use serde_json::json;
use tomo_export::Located;
use tomo_export::predicates::{Id, Sites};
use tomo_weave::{Asked, Wanted};
use tomo_wire::counting::sums;
use tomo_wire::predicates::{Kind, Recorded, Row};
use tomo_wire::record::RecordView;

use crate::bar::Bar;
use crate::observe::OneModule;
use crate::session::{Session, Started, bytes, tell};
pub(crate) use words::{document, table};

/// Run a program and record its predicates: which way each branch went, and whether what each call
/// returned was negative, zero or positive.
///
/// A predicate is true of a run if it was true at least once. Its output, its exit code and its
/// signals are its own. What cannot be observed is said.
#[derive(Args)]
#[command(after_long_help = NOTES)]
pub(crate) struct Arguments {
    /// Count how often each predicate was true.
    #[arg(long)]
    counts: bool,

    /// Observe only the predicates, or sites, that FILE names: one a line, called as `--json` calls
    /// them; behind `#` a line may say what it likes.
    #[arg(long, value_name = "FILE")]
    select: Option<PathBuf>,

    /// Write one JSON document (schema tomo.predicates/1) instead of a table.
    #[arg(long)]
    json: bool,

    /// Write that to FILE (- for standard output) instead of to standard error.
    #[arg(long, value_name = "FILE")]
    to: Option<PathBuf>,

    /// Put the run's record into DIR, in a folder of its own.
    #[arg(short, long, value_name = "DIR", default_value = "tomo-predicates")]
    output: PathBuf,

    #[command(flatten)]
    module: OneModule,

    /// The program and its arguments.
    #[arg(required = true, trailing_var_arg = true, value_name = "PROGRAM")]
    command: Vec<OsString>,
}

const NOTES: &str = "\
Observed is the executable itself, or the one --module, in all processes and
threads. Sites are its conditional branches, and its calls that return
something at which the caller looks. What a call returns is what is in the
register for results (rax); as many of its bits count as the caller looks at
first, and their sign is read as that of a signed number. A result that the
caller only passes on has the width at which it is looked at elsewhere; if that
is nowhere, all 64 bits count. The width is always said.

A branch that was taken is not always a condition that was true: compilers turn
conditions round. So it is said to which line each way led.

Predicates that follow from others are not observed but inferred, and marked
so; a process that is ended from outside between the two may differ there.

Exit code: the program's own; 128 and its number where a signal ended it; 2
where it cannot be observed at all, 127 where it is not found.";

/// Runs the program; gives its exit code.
pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode> {
    let wanted = Wanted {
        asked: match &arguments.select {
            Some(path) => selected(path)?,
            None => Asked::All,
        },
        recorded: match arguments.counts {
            true => Recorded::Counts,
            false => Recorded::Marks,
        },
    };
    Started::find_dynamic(&arguments.command, |started| {
        started.observed(
            "observed",
            |started| {
                Session::prepare(
                    started,
                    (&arguments.module, &arguments.output),
                    |folder, module, store| {
                        folder.observe_predicates(module, &store.images, &wanted, &Bar::new())?;
                        match wanted.recorded {
                            Recorded::Marks => Ok(()),
                            Recorded::Counts => Ok(folder.make_slabs()?),
                        }
                    },
                )
            },
            |_, session| conclude(arguments, &wanted.asked, session),
        )
    })
}

/// Says what was seen.
fn conclude(arguments: &Arguments, asked: &Asked, session: &Session) -> Result<()> {
    let seen = Seen::read(session, !arguments.json)?;
    warn_of_strangers(asked, &seen.sites);
    let text = match arguments.json {
        true => {
            let mut document = words::document(&seen);
            document["not_observed"] = json!(session.not_observed());
            format!("{document:#}\n")
        }
        false => words::table(&seen),
    };
    tell(arguments.to.as_deref(), text.as_bytes())
}

/// The predicates that a file names.
pub(crate) fn selected(path: &Path) -> Result<Asked> {
    let text = fs::read_to_string(path).with_context(|| path.display().to_string())?;
    let mut some = HashSet::new();
    for (number, line) in (1..).zip(text.lines()) {
        let name = line.split('#').next().unwrap_or_default().trim();
        if name.is_empty() {
            continue;
        }
        let id: Id = name
            .parse()
            .with_context(|| format!("{}:{number}", path.display()))?;
        some.extend(id.predicates());
    }
    if some.is_empty() {
        bail!("{} names no predicate", path.display());
    }
    Ok(Asked::Some(some))
}

/// Says which of the predicates that were asked for there are none of.
fn warn_of_strangers(asked: &Asked, sites: &Sites) {
    let Asked::Some(some) = asked else { return };
    let known: HashSet<_> = sites
        .rows
        .iter()
        .filter_map(|row| Some((row.kind()?, row.site.get(), row.case)))
        .collect();
    let mut strangers: Vec<_> = some.difference(&known).collect();
    strangers.sort();
    for &&(kind, site, case) in &strangers {
        let case = Some(case);
        say!(
            "tomo: the program has no predicate {}",
            Id { kind, site, case }
        );
    }
}

/// What a run showed of the predicates of a module.
pub(crate) struct Seen {
    pub(crate) located: Located,
    pub(crate) sites: Sites,
    /// By row.
    pub(crate) values: Vec<Option<u64>>,
    /// Threads that were not counted.
    pub(crate) lost: u64,
}

impl Seen {
    /// Of a session: all sites, or for a table those of which something was true.
    fn read(session: &Session, is_table: bool) -> Result<Self> {
        let located = session.located()?;
        let file = session.file("predicates")?;
        let mut sites = Sites::unplaced(&file)?;
        let mut counts = vec![0u64; sites.header.probes.get() as usize];
        let mut lost = 0;
        match sites.recorded {
            Recorded::Marks => {
                let record = session.file("record")?;
                let view = RecordView::read(&record).context("the record")?;
                for (count, mark) in counts.iter_mut().zip(view.marks) {
                    *count = u64::from(*mark != 0);
                }
            }
            Recorded::Counts => {
                let slabs = bytes(&session.folder().join("slabs"))?;
                let at = sites.header.at.get();
                lost = sums(&slabs, at, &mut counts).context("the slabs")?.lost;
            }
        }
        let values = sites.values(|probe| counts.get(probe as usize).copied().unwrap_or(0));
        let is_told = |&(first, row): &(usize, &Row)| {
            let cases = row.kind().map_or(0, Kind::cases).into();
            let values = values.iter().skip(first).take(cases);
            row.case == 0 && (!is_table || values.flatten().any(|value| *value > 0))
        };
        let told = sites.rows.iter().enumerate().filter(is_told);
        let told: Vec<usize> = told.map(|(first, _)| first).collect();
        sites.sites = sites.place(&located, &told)?;
        Ok(Self {
            located,
            sites,
            values,
            lost,
        })
    }
}
