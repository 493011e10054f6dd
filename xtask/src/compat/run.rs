//! A suite is built, run, and run observed.

use super::page::Covered;
use super::results::Results;
use super::suites::Suite;
use super::text;
use crate::house;
use anyhow::{Context as _, Result, bail};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

/// Where everything is kept, and with what it is done.
pub(super) struct Place {
    pub(super) folder: PathBuf,
    pub(super) tomo: PathBuf,
    pub(super) jobs: usize,
}

/// What a run of a suite brought.
pub(super) struct Outcome {
    pub(super) results: Results,
    /// All that it printed.
    pub(super) printed: String,
    pub(super) seconds: f64,
}

/// How a suite is run.
#[derive(Clone, Copy)]
pub(super) enum How<'h> {
    Alone,
    /// Its programs are covered, in this pool.
    Armed(&'h Armed),
    /// All processes of its first program are observed by this command.
    Profiled(&'h str),
}

/// A pool that arms a suite's programs.
pub(super) struct Armed {
    pub(super) folder: PathBuf,
    /// Environment variables and their values.
    variables: Vec<(String, String)>,
}

impl Place {
    pub(super) fn new(folder: &Path, tomo: &Path, jobs: usize) -> Self {
        Self {
            folder: folder.to_owned(),
            tomo: tomo.to_owned(),
            jobs: jobs.max(1),
        }
    }

    /// A shell in `folder` that will run `line`.
    fn shell(&self, folder: &Path, line: &str) -> Result<Command> {
        let mut shell = house::command("bash")?;
        shell.args(["-c", line]);
        self.at_home(&mut shell, folder);
        Ok(shell)
    }

    /// Where and how programs run: they speak English and mind nobody's files.
    pub(super) fn at_home(&self, command: &mut Command, folder: &Path) {
        command
            .current_dir(folder)
            .env("JOBS", self.jobs.to_string())
            .env("LC_ALL", "C.UTF-8")
            .env("FORCE_UNSAFE_CONFIGURE", "1")
            .env("TOMO_CACHE_DIR", self.folder.join("cache"))
            .env_remove("MAKEFLAGS")
            .stdin(Stdio::null());
    }

    /// Builds the suite, unless that was done before.
    pub(super) fn build(&self, suite: &Suite, folder: &Path) -> Result<()> {
        let done = folder.join(".built");
        if done.exists() && fs::read_to_string(&done)? == suite.build {
            return Ok(());
        }
        self.succeed(folder, suite.build)?;
        fs::write(&done, suite.build)?;
        Ok(())
    }

    /// Runs these lines of a shell in `folder`, each of which has to succeed.
    pub(super) fn succeed(&self, folder: &Path, lines: &str) -> Result<()> {
        let output = self.shell(folder, &format!("set -e; {lines}"))?.output()?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            let last: Vec<_> = said.lines().rev().take(5).collect();
            bail!("{}: {}", output.status, last.join(" / "));
        }
        Ok(())
    }

    /// Runs the tests. That some fail is no error, that there are none, or that nothing was observed, is.
    pub(super) fn test(&self, suite: &Suite, folder: &Path, how: How<'_>) -> Result<Outcome> {
        let line = format!("({}) 2>&1", suite.test);
        let mut command = match how {
            How::Alone => self.shell(folder, &line)?,
            How::Armed(armed) => {
                let mut shell = self.shell(folder, &line)?;
                shell.envs(armed.variables.iter().map(|(name, value)| (name, value)));
                shell
            }
            How::Profiled(command) => self.profiling(suite, folder, command, &line)?,
        };
        let started = Instant::now();
        let output = command.output()?;
        let printed = String::from_utf8_lossy(&output.stdout).into_owned();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        let outcome = Outcome {
            results: Results::read(&printed),
            printed: printed + &said,
            seconds: started.elapsed().as_secs_f64(),
        };
        let by = match how {
            How::Alone => "alone",
            How::Armed(_) => "covered",
            How::Profiled(command) => command,
        };
        eprintln!(
            "{} {by}: {} tests, {} passed, {:.1} s",
            suite.name,
            outcome.results.len(),
            outcome.results.count("PASS"),
            outcome.seconds
        );
        if outcome.results.len() == 0 {
            let last: Vec<_> = outcome.printed.lines().rev().take(5).collect();
            bail!("it says nothing about its tests: {}", last.join(" / "));
        }
        if let Some(line) = said.lines().find(|line| is_missed(line)) {
            bail!("{line}");
        }
        Ok(outcome)
    }

    /// The suite's `line` below a command that observes all processes of its first program.
    fn profiling(
        &self,
        suite: &Suite,
        folder: &Path,
        command: &str,
        line: &str,
    ) -> Result<Command> {
        let output = self.folder.join("profiles").join(suite.name);
        let _ = fs::remove_dir_all(&output);
        let program = suite.programs.split(' ').next().unwrap_or_default();
        let mut profiling = Command::new(&self.tomo);
        profiling.args([command, "-o"]).arg(output);
        profiling.arg("--module").arg(folder.join(program));
        profiling.args(["--", "bash", "-c", line]);
        self.at_home(&mut profiling, folder);
        Ok(profiling)
    }

    /// A fresh pool for the suite's programs.
    pub(super) fn pool(&self, suite: &Suite, folder: &Path) -> Result<Armed> {
        let pool = self.folder.join("pools").join(suite.name);
        let _ = fs::remove_dir_all(&pool);
        fs::create_dir_all(pool.parent().context("a folder above")?)?;
        let tomo = text(&self.tomo)?;
        let line = format!("'{tomo}' env --pool '{}' {}", text(&pool)?, suite.programs);
        let printed = house::output(&mut self.shell(folder, &line)?)?;
        let variables = printed.lines().filter_map(variable).collect();
        Ok(Armed {
            folder: pool,
            variables,
        })
    }

    /// What was seen by the runs in `folder`, by the word of `tomo report`.
    pub(super) fn coverage(&self, folder: &Path) -> Result<Covered> {
        let line = format!(
            "'{}' report --format json '{}'",
            text(&self.tomo)?,
            text(folder)?
        );
        let printed = house::output(&mut self.shell(&self.folder, &line)?)?;
        let report: Value = serde_json::from_str(&printed)?;
        let blocks = &report["totals"]["blocks"];
        let number = |name: &str| blocks[name].as_u64().unwrap_or(0);
        let ran = number("ran");
        Ok(Covered {
            differ: Vec::new(),
            ran,
            blocks: ran + number("missed") + number("unknown"),
            unknown: number("unknown"),
        })
    }

    /// Keeps what was printed, for who wants to know why something differs.
    pub(super) fn keep_logs(&self, suite: &Suite, logs: &[(&str, Outcome)]) -> Result<()> {
        let folder = self.folder.join("logs").join(suite.name);
        fs::create_dir_all(&folder)?;
        for (name, outcome) in logs {
            fs::write(folder.join(name), &outcome.printed)?;
        }
        Ok(())
    }
}

/// Whether `tomo` says here that something was not observed that should have been. Some suites run their program in Valgrind
/// as well, if there is one, where nothing can be; `in A of B processes` is said only where others were observed.
fn is_missed(line: &str) -> bool {
    let is_elsewhere = line.contains(" processes: ") && line.contains("in Valgrind");
    line.contains("was not ") && !is_elsewhere
}

/// Name and value in a line such as `export NAME='value'"${…}"`, where the value that was
/// there before is empty.
fn variable(line: &str) -> Option<(String, String)> {
    let (name, rest) = line.strip_prefix("export ")?.split_once("='")?;
    let (value, _) = rest.split_once('\'')?;
    Some((name.to_owned(), value.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::{is_missed, variable};

    #[test]
    fn only_parts_in_valgrind_may_be_missed() {
        assert!(!is_missed(
            "tomo: a was not observed in 4 of 9 processes: it runs in Valgrind"
        ));
        assert!(is_missed("tomo: a was not observed: it runs in Valgrind"));
        assert!(is_missed(
            "tomo: a was not observed in 4 of 9 processes: it changed"
        ));
        assert!(!is_missed("make: nothing to be done"));
    }

    #[test]
    fn exports_are_read() {
        let line = "export LD_PRELOAD='a/b.so'\"${LD_PRELOAD:+:$LD_PRELOAD}\"";
        let read = |line| variable(line).unwrap_or_default();
        assert_eq!(read(line), ("LD_PRELOAD".into(), "a/b.so".into()));
        assert_eq!(read("export A='b c'"), ("A".into(), "b c".into()));
        assert_eq!(variable("echo A='b'"), None);
    }
}
