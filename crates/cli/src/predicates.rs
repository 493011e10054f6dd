//! `tomo predicates`: which branches went which way, and what calls returned.

mod words;

use std::collections::HashSet;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, Result, bail, ensure};
use clap::Args;
use serde_json::json;
use tomo_export::Located;
use tomo_export::predicates::{Id, Sites};
use tomo_weave::{Asked, Wanted};
use tomo_wire::Refusal;
use tomo_wire::predicates::{Kind, Predicates, Recorded, Row};
use tomo_wire::record::RecordView;

use crate::bar::Bar;
use crate::earlier::{self, Show, Together, Told};
use crate::observe::OneModule;
use crate::session::{Session, Started, answer, parsed, summed, tell};
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
    #[arg(long, conflicts_with = "show")]
    counts: bool,

    /// Observe only the predicates, or sites, that FILE names: one a line, called as `--json` calls
    /// them; behind `#` a line may say what it likes.
    #[arg(long, value_name = "FILE", conflicts_with = "show")]
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

What is seen lies in DIR as soon as it is, also when the program is killed or
still runs: --show tells it, and puts together what several runs have seen that
observed the same predicates.

Exit code: the program's own; 128 and its number where a signal ended it; 2
where it cannot be observed at all, 127 where it is not found.";

/// Runs the program; gives its exit code.
pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode> {
    let to = arguments.to.as_deref();
    if arguments.show.is_asked() {
        let (seen, not_observed) = Seen::together(&arguments.show, !arguments.json)?;
        answer(to, written(arguments, &seen, &not_observed).as_bytes())?;
        return Ok(ExitCode::SUCCESS);
    }
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
            |_, session| {
                let seen = Seen::of(session, !arguments.json)?;
                warn_of_strangers(&wanted.asked, &seen.sites);
                let text = written(arguments, &seen, &session.not_observed());
                tell(to, text.as_bytes())
            },
        )
    })
}

/// What was seen, as it was asked for.
fn written(arguments: &Arguments, seen: &Seen, not_observed: &[String]) -> String {
    if !arguments.json {
        return words::table(seen);
    }
    let mut document = words::document(seen);
    document["not_observed"] = json!(not_observed);
    format!("{document:#}\n")
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

/// What runs of `tomo predicates` have.
const KIND: earlier::Kind = earlier::Kind {
    command: "tomo predicates",
    file: "predicates",
    build: |file| Ok(Predicates::read(file)?.0.module),
};

/// What runs showed of the predicates of a module.
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
    fn of(session: &Session, is_table: bool) -> Result<Self> {
        let file = session.file("predicates")?;
        let sites = Sites::unplaced(&file)?;
        let record = session
            .folder()
            .join(format!("{}.record", session.module.stem));
        let probes = Probes::read(session.folder(), &record, &sites)?;
        Self::at(session.located()?, sites, &probes, is_table)
    }

    /// What runs of one build that observed the same predicates saw together, and what was not observed in them.
    fn together(asked: &Show, is_table: bool) -> Result<(Self, Vec<String>)> {
        let mut runs = Together::of(asked, &KIND)?;
        for other in runs.others() {
            ensure!(
                other.file == runs.first().file,
                "{} did not observe the same predicates as {}, or not in the same way (--select, --counts): show each by itself",
                other.folder().display(),
                runs.first().folder().display()
            );
        }
        let sites = Sites::unplaced(&runs.first().file)?;
        let read = |run: &Told<'_>| Probes::read(run.folder(), &run.path("record"), &sites);
        let all = runs.each(read)?;
        let probes = all.into_iter().reduce(Probes::and).unwrap_or_default();
        let seen = Self::at(runs.located()?, sites, &probes, is_table)?;
        Ok((seen, runs.not_observed()))
    }

    fn at(located: Located, mut sites: Sites, probes: &Probes, is_table: bool) -> Result<Self> {
        let value = |probe: u32| probes.values.get(probe as usize).copied();
        let values = sites.values(|probe| value(probe).unwrap_or(0));
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
            lost: probes.lost,
        })
    }
}

/// What the probes of runs said.
#[derive(Default)]
struct Probes {
    /// By probe: how often it was hit; whether, where only that is recorded.
    values: Vec<u64>,
    /// Threads that were not counted.
    lost: u64,
}

impl Probes {
    /// Of the run in `folder`, which has this record of the module with these sites.
    fn read(folder: &Path, record: &Path, sites: &Sites) -> Result<Self> {
        let probes = sites.header.probes.get() as usize;
        if sites.recorded == Recorded::Counts {
            let (values, summed) = summed(folder, sites.header.at.get(), probes)?;
            let lost = summed.lost;
            return Ok(Self { values, lost });
        }
        let mut values = parsed(record, |record| {
            let marks = RecordView::read(record)?.marks.iter();
            Ok::<_, Refusal>(marks.map(|mark| u64::from(*mark != 0)).collect::<Vec<_>>())
        })?;
        values.resize(probes, 0);
        Ok(Self { values, lost: 0 })
    }

    /// Those of two runs together.
    fn and(mut self, other: Self) -> Self {
        for (one, other) in self.values.iter_mut().zip(other.values) {
            *one = one.saturating_add(other);
        }
        self.lost = self.lost.saturating_add(other.lost);
        self
    }
}
