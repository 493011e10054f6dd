//! A collector in a process of its own, and the commands of administrators and instances.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::{Context as _, Result, ensure};

use crate::cases::Case;

/// A collector, ended when this is dropped.
pub(crate) struct Served {
    tomo: PathBuf,
    folder: PathBuf,
    url: String,
    process: Child,
}

impl Served {
    /// Starts `tomo serve` on a port that the system chooses; all that it writes lies in `folder`.
    pub(crate) fn start(tomo: &Path, folder: &Path) -> Result<Self> {
        let mut process = Command::new(tomo)
            .args(["serve", "--listen", "127.0.0.1:0", "--log-level", "error"])
            .arg(folder.join("collector"))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()?;
        let output = process.stdout.take().context("no output")?;
        let mut line = String::new();
        BufReader::new(output).read_line(&mut line)?;
        let url = line
            .split_whitespace()
            .find(|word| word.starts_with("http://"));
        let url = url.with_context(|| format!("it says no address: {line}"))?;
        Ok(Self {
            tomo: tomo.into(),
            folder: folder.into(),
            url: url.trim_end_matches(['.', ',']).to_owned(),
            process,
        })
    }

    fn tomo(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.tomo);
        command
            .args(arguments)
            .env("TOMO_CACHE_DIR", self.folder.join("cache"))
            .env_remove("TOMO_COLLECTOR")
            .env_remove("TOMO_TOKEN_FILE");
        command
    }

    fn administrator(&self, arguments: &[&str]) -> Command {
        let mut command = self.tomo(arguments);
        command
            .env("TOMO_COLLECTOR", &self.url)
            .env("TOMO_TOKEN_FILE", self.folder.join("collector/admin.token"));
        command
    }

    /// How many probes keep the bound, by `tomo calibrate`.
    pub(crate) fn calibrate(&self, case: &Case, bound: &str) -> Result<u64> {
        let file = self.folder.join("calibration");
        let mut command = self.tomo(&["calibrate", "--overhead", bound, "-o"]);
        command
            .arg(&file)
            .arg("--")
            .arg(&case.program)
            .args(&case.arguments);
        place(&mut command, case);
        let said = text(&mut command)?;
        let last = said.lines().last().unwrap_or_default();
        let number = last.split_whitespace().find_map(|word| word.parse().ok());
        // The machine may be too noisy for the bound.
        Ok(number.unwrap_or(1000))
    }

    /// A new campaign of so many probes an instance; the path of the file with its instances' token.
    pub(crate) fn campaign(&self, case: &Case, probes: u64, token: &Path) -> Result<PathBuf> {
        let probes = probes.max(1).to_string();
        let mut new = self.administrator(&["campaign", "new", "--name", "bench"]);
        // Few variants: what is measured is one instance, not the planning of many.
        new.args(["--variants", "8", "--probes", &probes]);
        let id = text(new.arg(&case.program))?;
        let id = id.split_whitespace().next().context("no campaign")?;
        let said = text(&mut self.administrator(&["campaign", "token", id]))?;
        std::fs::write(token, said)?;
        Ok(token.into())
    }

    fn instance(&self, token: &Path, state: &Path) -> Command {
        let mut command = self.tomo(&["run", "--flush-timeout", "10", "--collector", &self.url]);
        command
            .arg("--token-file")
            .arg(token)
            .arg("--state")
            .arg(state);
        command
    }

    /// Prepares an installation; the processor seconds that this takes.
    pub(crate) fn prepare(&self, case: &Case, token: &Path, state: &Path) -> Result<f64> {
        let mut command = self.instance(token, state);
        crate::cpu(command.arg("--prepare").arg("--").arg(&case.program))
    }

    /// The program as an instance.
    pub(crate) fn run(&self, case: &Case, token: &Path, state: &Path) -> Command {
        let mut command = self.instance(token, state);
        command.arg("--").arg(&case.program).args(&case.arguments);
        place(&mut command, case);
        command
    }

    /// A session in which the program is started so often.
    pub(crate) fn session(&self, case: &Case, times: u32, token: &Path, state: &Path) -> Command {
        let mut command = self.instance(token, state);
        command
            .arg("--program")
            .arg(&case.program)
            .args(["--", "sh"]);
        often(&mut command, case, times);
        command
    }

    /// The same alone.
    pub(crate) fn alone_often(&self, case: &Case, times: u32) -> Command {
        let mut command = Command::new("sh");
        often(&mut command, case, times);
        command
    }

    /// The program alone.
    pub(crate) fn alone(&self, case: &Case) -> Command {
        let mut command = Command::new(&case.program);
        command.args(&case.arguments);
        place(&mut command, case);
        command
    }
}

/// What a shell is told so that it runs the program so often.
fn often(shell: &mut Command, case: &Case, times: u32) {
    const AGAIN: &str = r#"n=$1; shift; while [ "$n" -gt 0 ]; do "$@"; n=$((n - 1)); done"#;
    shell.args(["-c", AGAIN, "sh", &times.to_string()]);
    shell.arg(&case.program).args(&case.arguments);
    place(shell, case);
}

fn place(command: &mut Command, case: &Case) {
    if let Some(folder) = &case.folder {
        command.current_dir(folder);
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// What a command prints.
fn text(command: &mut Command) -> Result<String> {
    let output = command.stdin(Stdio::null()).output()?;
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{command:?}: {errors}");
    Ok(String::from_utf8(output.stdout)?)
}
