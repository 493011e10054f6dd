//! A collector of the study's own: `tomo serve` on a port that the system chooses, and the commands that an
//! administrator gives it. It ends with the value.

use std::ffi::OsStr;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde::de::DeserializeOwned;

use crate::disposal::StudyError;

/// A running collector.
#[derive(Debug)]
pub(crate) struct Server {
    tomo: PathBuf,
    child: Child,
    /// Where it listens.
    pub(crate) url: String,
    token: PathBuf,
}

impl Server {
    /// Starts one that keeps its files in `folder`.
    pub(crate) fn start(tomo: &Path, folder: &Path) -> Result<Self, StudyError> {
        // The limits are those of one host in the field; here all instances are on one.
        let limits = [
            "--requests-per-second",
            "1000000",
            "--reports-per-second",
            "1000000",
        ];
        let child = Command::new(tomo)
            .arg("serve")
            .arg(folder)
            .args(["--listen", "127.0.0.1:0", "--log-level", "error"])
            .args(limits)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|error| StudyError::NotStarted(tomo.into(), error))?;
        let mut server = Self {
            tomo: tomo.into(),
            child,
            url: String::new(),
            token: folder.join("admin.token"),
        };
        server.url = server.listening()?;
        Ok(server)
    }

    /// Where it says that it listens, on its first line.
    fn listening(&mut self) -> Result<String, StudyError> {
        let mut line = String::new();
        if let Some(out) = self.child.stdout.take() {
            let read = BufReader::new(out).read_line(&mut line);
            read.map_err(StudyError::io(&self.tomo))?;
        }
        let url = line.trim().strip_prefix("listening at ");
        let silent = || StudyError::Collector("tomo serve says nowhere where it listens".into());
        url.map(str::to_owned).ok_or_else(silent)
    }

    /// What a command of the administrator prints.
    pub(crate) fn ask(
        &self,
        words: &[&str],
        rest: Option<&OsStr>,
        cache: &Path,
    ) -> Result<String, StudyError> {
        let output = Command::new(&self.tomo)
            .args(words)
            .args(rest)
            .env("TOMO_COLLECTOR", &self.url)
            .env("TOMO_TOKEN_FILE", &self.token)
            .env("TOMO_CACHE_DIR", cache)
            .stdin(Stdio::null())
            .output()
            .map_err(|error| StudyError::NotStarted(self.tomo.clone(), error))?;
        if output.status.success() {
            return Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned());
        }
        let said = String::from_utf8_lossy(&output.stderr);
        let what = format!("tomo {}: {}", words.join(" "), said.trim());
        Err(StudyError::Collector(what))
    }

    /// What such a command prints as JSON.
    pub(crate) fn json<T: DeserializeOwned>(
        &self,
        words: &[&str],
        cache: &Path,
    ) -> Result<T, StudyError> {
        Ok(serde_json::from_str(&self.ask(words, None, cache)?)?)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Its files go with the study's folder; there is nothing to be saved.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
