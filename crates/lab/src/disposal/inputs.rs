//! What programs are run on: the same bytes on every machine.
//!
//! The paper's study ran one workload a program (DIS §3.2), and 37 instances each with one of 15
//! configurations (§4.2). So for each program there is one *long* run, a *suite* of many short ones (as a
//! program's own tests are), and *configurations*: servers of requests that share some of their
//! trades, where some trades are seldom asked for.

mod lua;
mod sql;
mod text;

use std::path::{Path, PathBuf};
use std::{fs, io};

use serde::{Deserialize, Serialize};

/// How many configurations there are (DIS §4.2).
pub const CONFIGURATIONS: usize = 15;
/// How many runs a suite has.
pub const SUITE: usize = 120;

/// One run of a program.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Case {
    /// Its arguments, without the program's name.
    #[serde(default)]
    pub arguments: Vec<String>,
    /// What it reads from its standard input; nothing where there is none.
    #[serde(default)]
    pub stdin: Option<PathBuf>,
    /// How many operations it does, for throughput: requests, statements, or just one.
    #[serde(default = "one")]
    pub operations: u64,
}

fn one() -> u64 {
    1
}

/// Runs that are timed together: a row of the tables.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Task {
    /// What it is called.
    pub name: String,
    /// Its runs, one after the other.
    pub cases: Vec<Case>,
}

/// What a program is run on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Work {
    /// The rows that it gives.
    pub tasks: Vec<Task>,
    /// The configurations of its instances; none if it is not studied in a fleet.
    pub configurations: Vec<Case>,
}

/// How much work there is, in thousandths of the usual.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scale(pub u64);

impl Scale {
    fn of(self, usual: u64) -> u64 {
        (usual * self.0 / 1000).max(1)
    }
}

/// Where a program's runs come from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Inputs {
    /// Scripts for a Lua interpreter that takes the script's path.
    Lua,
    /// Files of SQL for a program that takes the file's path and runs each statement by itself.
    Sql,
    /// Text on standard input for a compressor.
    Text,
    /// These runs: one row, and the instances' configurations.
    Runs(Vec<Case>),
}

impl Inputs {
    /// Writes what is needed into `folder`.
    ///
    /// # Errors
    /// Where a file cannot be written.
    pub fn write(&self, name: &str, folder: &Path, scale: Scale) -> io::Result<Work> {
        fs::create_dir_all(folder)?;
        match self {
            Self::Lua => served(name, folder, scale, "lua", lua::USUAL, lua::script),
            Self::Sql => served(name, folder, scale, "sql", sql::USUAL, sql::script),
            Self::Text => text::work(name, folder, scale),
            Self::Runs(cases) => Ok(Work {
                tasks: vec![Task {
                    name: name.to_owned(),
                    cases: cases.clone(),
                }],
                configurations: cases.clone(),
            }),
        }
    }
}

/// How many requests a long run, a run of the suite and an instance's run serve.
struct Usual {
    long: u64,
    short: u64,
    instance: u64,
}

/// The script of a configuration: its number (none: all trades), a seed, and how many requests come.
type Script = fn(Option<usize>, u64, u64) -> String;

fn served(
    name: &str,
    folder: &Path,
    scale: Scale,
    ending: &str,
    usual: Usual,
    script: Script,
) -> io::Result<Work> {
    let case = |file: String, configuration, seed, requests| -> io::Result<Case> {
        let path = folder.join(format!("{file}.{ending}"));
        fs::write(&path, script(configuration, seed, requests))?;
        Ok(Case {
            arguments: vec![path.display().to_string()],
            stdin: None,
            operations: requests,
        })
    };
    let long = case("long".into(), None, 1, scale.of(usual.long))?;
    let runs = scale.of(SUITE as u64).min(SUITE as u64) as usize;
    let short = (0..runs).map(|run| {
        let seed = run as u64 + 100;
        case(format!("short-{run}"), Some(run), seed, usual.short)
    });
    let instances = (0..CONFIGURATIONS).map(|number| {
        let requests = scale.of(usual.instance);
        case(
            format!("instance-{number}"),
            Some(number),
            number as u64 + 1,
            requests,
        )
    });
    Ok(Work {
        tasks: vec![
            Task {
                name: name.to_owned(),
                cases: vec![long],
            },
            Task {
                name: format!("{name}, {runs} short runs"),
                cases: short.collect::<io::Result<_>>()?,
            },
        ],
        configurations: instances.collect::<io::Result<_>>()?,
    })
}

/// A linear congruential generator (Knuth's MMIX constants).
#[derive(Clone, Debug)]
pub(crate) struct Numbers(u64);

impl Numbers {
    pub(crate) fn new(seed: u64) -> Self {
        let mut numbers = Self(seed);
        // Seeds that differ little give first numbers that differ little.
        for _ in 0..4 {
            numbers.below(1);
        }
        numbers
    }

    /// A number from 0 up to, but not, `end`.
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end.max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::{CONFIGURATIONS, Inputs, SUITE, Scale, lua, sql};

    #[test]
    fn the_same_files_every_time_and_no_two_configurations_alike() {
        for script in [lua::script, sql::script] {
            let texts: std::collections::BTreeSet<String> = (0..CONFIGURATIONS)
                .map(|number| script(Some(number), 7, 40))
                .collect();
            assert_eq!(texts.len(), CONFIGURATIONS);
            assert_eq!(script(None, 1, 40), script(None, 1, 40));
        }
    }

    #[test]
    fn each_program_has_a_long_run_a_suite_and_configurations() {
        let folder = tempfile::tempdir().expect("a folder");
        let work = Inputs::Sql.write("sqlite", folder.path(), Scale(1000));
        let work = work.expect("written");
        let sizes: Vec<usize> = work.tasks.iter().map(|task| task.cases.len()).collect();
        assert_eq!(sizes, [1, SUITE]);
        assert_eq!(work.configurations.len(), CONFIGURATIONS);
    }
}
