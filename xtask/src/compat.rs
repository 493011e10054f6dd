//! Real programs' own test suites, alone and covered: whatever a suite says about its program it must
//! say again while every block of that program is probed.
//!
//! Sources come from Debian (`apt-get source`), are built once, and tested four times: twice
//! alone, so that tests that waver by themselves are known, then below `tomo env --pool`, with a
//! fresh pool and with the pool that this left behind. The table is `docs/COMPAT.md`.

mod page;
mod results;
mod run;
mod sources;
mod suites;

use crate::house;
use anyhow::{Context as _, Result, bail};
use page::Row;
use run::{Outcome, Place};
use std::path::{Path, PathBuf};
use suites::{SUITES, Suite};

/// Run real programs' own test suites with and without probes, and rewrite the table of them.
///
/// Fetches sources with apt-get and compiles them, so it needs Debian 12, its package mirror and
/// the programs that the suites name. Everything stays below the build folder.
#[derive(clap::Args)]
pub(crate) struct Compat {
    /// Only the suite called NAME; the others' rows stay. May be given several times
    #[arg(long, value_name = "NAME")]
    only: Vec<String>,
    /// Compilations, and tests where a suite allows it, at once
    #[arg(long, value_name = "N", default_value_t = 2)]
    jobs: usize,
    /// Use the command at PATH instead of building one
    #[arg(long, value_name = "PATH")]
    tomo: Option<PathBuf>,
}

impl Compat {
    pub(crate) fn run(self) -> Result<()> {
        let known = |name: &String| SUITES.iter().any(|suite| suite.name == name);
        if let Some(unknown) = self.only.iter().find(|name| !known(name)) {
            bail!("there is no suite called {unknown}");
        }
        let tomo = self.tomo.clone().map_or_else(house::build_tomo, Ok)?;
        let folder = house::target()?.join("compat");
        let place = Place::new(&folder, &tomo, self.jobs);
        sources::update(&place)?;
        let chosen =
            |suite: &&Suite| self.only.is_empty() || self.only.iter().any(|n| n == suite.name);
        let mut rows = Vec::new();
        let mut failed = Vec::new();
        for suite in SUITES.iter().filter(chosen) {
            eprintln!("\n== {}", suite.name);
            match examine(&place, suite) {
                Ok(row) => rows.push(row),
                Err(error) => failed.push(format!("{}: {error:#}", suite.name)),
            }
        }
        self.finish(&rows, &failed)
    }

    /// Writes the table; an error where anything differed.
    fn finish(self, rows: &[Row], failed: &[String]) -> Result<()> {
        print!("{}", page::table(rows));
        for failure in failed {
            eprintln!("could not be examined: {failure}");
        }
        let names: Vec<_> = SUITES.iter().map(|suite| suite.name).collect();
        page::write(&house::root()?.join("docs/COMPAT.md"), rows, &names)?;
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

fn examine(place: &Place, suite: &Suite) -> Result<Row> {
    let source = sources::fetch(place, suite)?;
    place.build(suite, &source.folder).context("building")?;
    let alone = place.test(suite, &source.folder, None)?;
    let again = place.test(suite, &source.folder, None)?;
    let pool = place.pool(suite, &source.folder).context("arming")?;
    let cold = place.test(suite, &source.folder, Some(&pool))?;
    let warm = place.test(suite, &source.folder, Some(&pool))?;
    let covered = place.coverage(&pool)?;
    place.keep_logs(
        suite,
        &[
            ("alone", &alone),
            ("again", &again),
            ("cold", &cold),
            ("warm", &warm),
        ],
    )?;
    let differences = differences(&alone, &again, [&cold, &warm]);
    Ok(Row {
        name: suite.name,
        version: source.version,
        written_in: suite.written_in,
        results: alone.results,
        unsteady: differences.unsteady,
        differ: differences.differ,
        covered,
    })
}

/// What differs by itself, and what differs only when covered.
struct Differences {
    unsteady: Vec<String>,
    differ: Vec<String>,
}

fn differences(alone: &Outcome, again: &Outcome, covered: [&Outcome; 2]) -> Differences {
    let unsteady = alone.results.differences(&again.results);
    let mut differ: Vec<_> = covered
        .iter()
        .flat_map(|covered| alone.results.differences(&covered.results))
        .filter(|name| !unsteady.contains(name))
        .collect();
    differ.sort();
    differ.dedup();
    Differences { unsteady, differ }
}

/// A path as text, for command lines.
fn text(path: &Path) -> Result<&str> {
    path.to_str().context("a path is not UTF-8")
}
