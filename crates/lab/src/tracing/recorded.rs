//! What runs of the command record: how often witnesses were really hit, arrivals included.

use std::ffi::OsString;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde::Serialize;

use super::subject::{Input, Subject};
use crate::disposal::StudyError;

/// A run of the command.
pub(super) struct Site<'s> {
    pub(super) tomo: &'s Path,
    pub(super) folder: &'s Path,
}

/// Words that runs recorded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Recorded {
    /// The program.
    pub program: String,
    /// What it did.
    pub input: String,
    /// By the one run that has all witnesses.
    pub alone: u64,
    /// By each of several.
    pub shared: Vec<u64>,
}

impl Recorded {
    /// The share of the busiest of several in what the one run records, in percent.
    pub(super) fn busiest(&self) -> Option<f64> {
        let busiest = self.shared.iter().max().copied()?;
        (self.alone > 0).then(|| 100.0 * busiest as f64 / self.alone as f64)
    }
}

impl Site<'_> {
    /// What `tomo count` tells of a run, and the folder of the run.
    pub(super) fn counted(
        &self,
        subject: &Subject,
        input: &Input,
    ) -> Result<(Vec<u8>, PathBuf), StudyError> {
        let file = self.folder.join("counts.json");
        // What an earlier run left must not be taken for this one's.
        let _ = fs::remove_file(&file);
        let runs = tempfile::tempdir_in(self.folder).map_err(StudyError::io(self.folder))?;
        let runs = runs.keep();
        let mut options: Vec<OsString> = vec!["count".into(), "--weights".into(), "none".into()];
        options.extend(["--format".into(), "json".into(), "--to".into()]);
        options.extend([file.clone().into(), "-o".into(), runs.clone().into()]);
        self.run(subject, input, &options)?;
        let text = fs::read(&file).map_err(StudyError::io(&file))?;
        Ok((text, only(&runs)?))
    }

    /// What one run with all witnesses records, and each of `runs`, chosen by the counts in `weights`.
    pub(super) fn recorded(
        &self,
        subject: &Subject,
        input: &Input,
        weights: &Path,
        runs: u32,
    ) -> Result<Recorded, StudyError> {
        Ok(Recorded {
            program: subject.name.clone(),
            input: input.title.clone(),
            alone: self.words(subject, input, weights, 1)?.iter().sum(),
            shared: self.words(subject, input, weights, runs)?,
        })
    }

    fn words(
        &self,
        subject: &Subject,
        input: &Input,
        weights: &Path,
        runs: u32,
    ) -> Result<Vec<u64>, StudyError> {
        let out = tempfile::tempdir_in(self.folder).map_err(StudyError::io(self.folder))?;
        let mut options: Vec<OsString> = vec!["trace".into(), "--runs".into()];
        options.extend([
            runs.to_string().into(),
            "--strategy".into(),
            "optimized".into(),
        ]);
        options.extend([
            "--weights".into(),
            weights.into(),
            "-o".into(),
            out.path().into(),
        ]);
        self.run(subject, input, &options)?;
        let mut stats = self.command();
        stats.args(["trace", "stats"]).arg(only(out.path())?);
        let output = stats.output();
        let output = output.map_err(|error| StudyError::NotStarted(self.tomo.into(), error))?;
        Ok(words(&String::from_utf8_lossy(&output.stdout)))
    }

    fn command(&self) -> Command {
        let mut command = Command::new(self.tomo);
        command.env("TOMO_CACHE_DIR", self.folder.join("cache"));
        command.current_dir(self.folder).stdin(Stdio::null());
        command
    }

    /// Runs the program below the command with these options; how it ends is its own affair.
    fn run(
        &self,
        subject: &Subject,
        input: &Input,
        options: &[OsString],
    ) -> Result<(), StudyError> {
        let mut command = self.command();
        if let Some(path) = &input.case.stdin {
            command.stdin(File::open(path).map_err(StudyError::io(path))?);
        }
        command.args(options).arg("--").arg(&subject.program);
        command.args(&input.case.arguments);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        let status = command.status();
        status.map_err(|error| StudyError::NotStarted(self.tomo.into(), error))?;
        Ok(())
    }
}

/// The only folder in a folder.
fn only(folder: &Path) -> Result<PathBuf, StudyError> {
    let mut entries = fs::read_dir(folder).map_err(StudyError::io(folder))?;
    let missing = || StudyError::NotMeasured(folder.into(), "no run was recorded".into());
    let entry = entries.next().ok_or_else(missing)?;
    Ok(entry.map_err(StudyError::io(folder))?.path())
}

/// The words of each run, as `tomo trace stats` says them.
fn words(stats: &str) -> Vec<u64> {
    let word = |line: &str| -> Option<u64> {
        let mut parts = line.strip_prefix("run ")?.split_whitespace();
        let (_, words, unit) = (parts.next()?, parts.next()?, parts.next()?);
        (unit == "words,").then(|| words.parse().ok())?
    };
    stats.lines().filter_map(word).collect()
}

#[cfg(test)]
mod tests {
    use super::words;

    #[test]
    fn words_are_read_run_by_run() {
        let stats = "functions  3 traced, 1 not\nthread 0  9 blocks, complete\nrun 0  12 words, 30 bytes, {}\n\
                     run 0  its record is cut off\nrun 1  7 words, 8 bytes, {}\nsize  2.00 bits a block\n";
        assert_eq!(words(stats), [12, 7]);
    }
}
