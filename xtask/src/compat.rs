//! Real programs' own test suites, alone and observed: whatever a suite says about its program it must
//! say again while every block of that program is probed.
//!
//! Sources come from Debian (`apt-get source`), are built once, and tested twice
//! alone, so that tests that waver by themselves are known, then below `tomo env --pool`, with a
//! fresh pool and with the pool that this left behind, and below each command whose probes stay. And what the programs of
//! this machine answer, alone and observed, and a program in each of many languages. The tables are `docs/COMPAT.md`.

mod asking;
mod languages;
mod page;
mod programs;
mod results;
mod run;
mod sources;
mod suites;

use crate::house;
use anyhow::{Context as _, Result, bail, ensure};
use page::{Covered, Row};
use run::{How, Outcome, Place};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use suites::{SUITES, Suite};

/// Run real programs' own test suites with and without probes, and rewrite the table of them.
///
/// Fetches sources with apt-get and compiles them, so it needs Debian 12, its package mirror and
/// the programs that the suites name. Everything stays below the build folder.
#[derive(clap::Args)]
pub(crate) struct Compat {
    /// Only the suite, or the language, called NAME; the others' rows stay. May be given several times
    #[arg(long, value_name = "NAME")]
    only: Vec<String>,
    /// Observe only by COMMAND: cover, count, paths, chains, predicates or trace; what others brought stays. May be
    /// given several times
    #[arg(long, value_name = "COMMAND", value_parser = COMMANDS)]
    observe: Vec<String>,
    /// Instead of suites: run every program in /usr/bin with --version and with --help, alone and below each command
    #[arg(long, conflicts_with_all = ["only", "observe"])]
    programs: bool,
    /// Instead of suites: run a program in each of many languages, alone and below each command. As root it installs their
    /// compilers
    #[arg(long, conflicts_with_all = ["observe", "programs"])]
    languages: bool,
    /// Compilations, and tests where a suite allows it, at once
    #[arg(long, value_name = "N", default_value_t = 2)]
    jobs: usize,
    /// Use the command at PATH instead of building one
    #[arg(long, value_name = "PATH")]
    tomo: Option<PathBuf>,
}

/// Where the tables are.
const PAGE: &str = "docs/COMPAT.md";

/// What makes a table of what it was before, of rows, and of the names of all.
type Table = fn(&str, &[Row], &[&str]) -> String;

/// What observes: coverage, whose probes vanish, and profiles.
const COMMANDS: [&str; 6] = [COVER, "count", "paths", "chains", "predicates", "trace"];
const COVER: &str = "cover";
const PROFILES: &[&str] = COMMANDS.split_at(1).1;

impl Compat {
    pub(crate) fn run(self) -> Result<()> {
        let known: Vec<&str> = match self.languages {
            true => languages::names().collect(),
            false => SUITES.iter().map(|suite| suite.name).collect(),
        };
        if let Some(unknown) = self
            .only
            .iter()
            .find(|name| !known.contains(&name.as_str()))
        {
            bail!("there is no {unknown} among {}", known.join(", "));
        }
        // Suites run in folders of their own.
        let tomo = match &self.tomo {
            Some(path) => fs::canonicalize(path).with_context(|| path.display().to_string())?,
            None => house::build_tomo()?,
        };
        let folder = house::target()?.join("compat");
        let place = Place::new(&folder, &tomo, self.jobs);
        if self.programs {
            return ask_programs(&place);
        }
        if self.languages {
            return self.hear_languages(&place);
        }
        sources::update(&place)?;
        let chosen =
            |suite: &&Suite| self.only.is_empty() || self.only.iter().any(|n| n == suite.name);
        let mut rows = Vec::new();
        let mut failed = Vec::new();
        for suite in SUITES.iter().filter(chosen) {
            eprintln!("\n== {}", suite.name);
            match self.examine(&place, suite) {
                Ok(row) => rows.push(row),
                Err(error) => failed.push(format!("{}: {error:#}", suite.name)),
            }
        }
        self.finish(&rows, &failed)
    }

    /// Whether this command is to observe.
    fn observes(&self, command: &str) -> bool {
        self.observe.is_empty() || self.observe.iter().any(|one| one == command)
    }

    /// Has a program in each language run, and writes the table; an error where anything differed.
    fn hear_languages(&self, place: &Place) -> Result<()> {
        std::fs::create_dir_all(&place.folder)?;
        let is_chosen =
            |name: &str| self.only.is_empty() || self.only.iter().any(|only| only == name);
        let spoken = languages::hear(place, is_chosen)?;
        publish("languages", |before| page::languages(before, &spoken))?;
        match spoken.iter().filter(|spoken| !spoken.same()).count() {
            0 => Ok(()),
            differ => bail!("programs in {differ} languages differ"),
        }
    }

    fn examine(&self, place: &Place, suite: &Suite) -> Result<Row> {
        let source = sources::fetch(place, suite)?;
        let folder = source.folder.as_path();
        place.build(suite, folder).context("building")?;
        let alone = place.test(suite, folder, How::Alone)?;
        let again = place.test(suite, folder, How::Alone)?;
        let unsteady = alone.results.differences(&again.results);
        let mut logs = vec![("alone", alone), ("again", again)];
        let mut covered = None;
        if self.observes(COVER) {
            let pool = place.pool(suite, folder).context("arming")?;
            for name in ["cold", "warm"] {
                logs.push((name, place.test(suite, folder, How::Armed(&pool))?));
            }
            let seen = place.coverage(&pool.folder)?;
            ensure!(seen.ran > 0, "nothing was observed");
            covered = Some(Covered {
                differ: differences(&logs, &unsteady, &["cold", "warm"]),
                ..seen
            });
        }
        let mut profiled = Vec::new();
        for command in PROFILES.iter().filter(|command| self.observes(command)) {
            logs.push((command, place.test(suite, folder, How::Profiled(command))?));
            profiled.push((*command, differences(&logs, &unsteady, &[command])));
        }
        place.keep_logs(suite, &logs)?;
        let results = logs.swap_remove(0).1.results;
        Ok(Row {
            name: suite.name,
            version: source.version,
            written_in: suite.written_in,
            results,
            unsteady,
            covered,
            profiled,
        })
    }

    /// Writes the table; an error where anything differed.
    fn finish(self, rows: &[Row], failed: &[String]) -> Result<()> {
        for failure in failed {
            eprintln!("could not be examined: {failure}");
        }
        let names: Vec<_> = SUITES.iter().map(|suite| suite.name).collect();
        for (part, table) in [
            ("suites", page::suites as Table),
            ("profiles", page::profiles),
        ] {
            println!("{}", table("", rows, &names));
            publish(part, |before| table(before, rows, &names))?;
        }
        let differ = rows.iter().filter(|row| !row.same()).count();
        if differ > 0 || !failed.is_empty() {
            bail!(
                "{differ} suites differ, {} could not be examined",
                failed.len()
            );
        }
        Ok(())
    }
}

/// Asks all programs, and writes the table; an error where anything differed.
fn ask_programs(place: &Place) -> Result<()> {
    std::fs::create_dir_all(&place.folder)?;
    let asked = programs::ask(place)?;
    print!("{}", page::asked(&asked));
    publish("programs", |_| page::asked(&asked))?;
    match asked.ways.iter().map(|way| way.differ.len()).sum() {
        0 => Ok(()),
        differ => bail!("{differ} answers differ"),
    }
}

/// Writes a part of the page, made of what it was before.
fn publish(part: &str, made: impl FnOnce(&str) -> String) -> Result<()> {
    crate::page::remake(&house::root()?.join(PAGE), &format!("compat {part}"), made)
}

/// What the runs of these names say otherwise than the first, but for what differs by itself.
fn differences(runs: &[(&str, Outcome)], unsteady: &[String], names: &[&str]) -> Vec<String> {
    let (_, alone) = &runs[0];
    let named = runs.iter().filter(|(name, _)| names.contains(name));
    let differ = named.flat_map(|(_, run)| alone.results.differences(&run.results));
    let differ: BTreeSet<String> = differ.filter(|name| !unsteady.contains(name)).collect();
    differ.into_iter().collect()
}

/// A path as text, for command lines.
fn text(path: &Path) -> Result<&str> {
    path.to_str().context("a path is not UTF-8")
}
