//! Where the house stands, and how its chores call other programs: every command is announced
//! before it runs, gets no standard input, and its failure is an error that repeats it.

use anyhow::{Context, Result, bail};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The folder of the workspace. Cargo tells it to whatever it runs or tests.
pub(crate) fn root() -> Result<PathBuf> {
    let manifest = std::env::var_os("CARGO_MANIFEST_DIR")
        .context("CARGO_MANIFEST_DIR is not set: run this as `cargo xtask`")?;
    let root = Path::new(&manifest).parent();
    Ok(root.context("xtask has no parent folder")?.to_owned())
}

/// The cargo that runs us, in the workspace's folder. What it told us of our own package is taken away: build scripts that
/// ask for it (ring's does) would run anew, with all that depends on them, whenever somebody else calls cargo.
pub(crate) fn cargo(arguments: &[&str]) -> Result<Command> {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(arguments).current_dir(root()?);
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy();
        if text.starts_with("CARGO_PKG_")
            || text.starts_with("CARGO_MANIFEST_")
            || text == "OUT_DIR"
        {
            command.env_remove(&name);
        }
    }
    Ok(command)
}

/// Any other program, in the workspace's folder.
pub(crate) fn command(program: impl AsRef<std::ffi::OsStr>) -> Result<Command> {
    let mut command = Command::new(program);
    command.current_dir(root()?);
    Ok(command)
}

/// Runs a command to its end, its output shown as it comes.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    let line = line_of(command);
    eprintln!("$ {line}");
    let status = command.stdin(Stdio::null()).status();
    let status = status.with_context(|| format!("cannot run {line}"))?;
    if !status.success() {
        bail!("{line}: {status}");
    }
    Ok(())
}

/// Runs a command quietly and returns what it printed.
pub(crate) fn output(command: &mut Command) -> Result<String> {
    let line = line_of(command);
    let output = command.stdin(Stdio::null()).output();
    let output = output.with_context(|| format!("cannot run {line}"))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        bail!("{line}: {}\n{}", output.status, said.trim_end());
    }
    String::from_utf8(output.stdout).with_context(|| format!("{line} did not print text"))
}

/// Whether a command succeeds, whatever it prints.
pub(crate) fn succeeds(command: &mut Command) -> bool {
    let quiet = command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    quiet.status().is_ok_and(|status| status.success())
}

/// What cargo knows of the workspace and everything it depends upon.
pub(crate) fn metadata() -> Result<Value> {
    let printed = output(&mut cargo(&[
        "metadata",
        "--format-version",
        "1",
        "--locked",
    ])?)?;
    serde_json::from_str(&printed).context("cargo metadata did not print JSON")
}

/// The folder into which cargo builds.
pub(crate) fn target() -> Result<PathBuf> {
    let printed = output(&mut cargo(&[
        "metadata",
        "--format-version",
        "1",
        "--no-deps",
    ])?)?;
    let metadata: Value = serde_json::from_str(&printed)?;
    let target = metadata["target_directory"].as_str();
    Ok(target
        .context("cargo metadata names no target directory")?
        .into())
}

/// Builds the `tomo` command as its users run it.
pub(crate) fn build_tomo() -> Result<PathBuf> {
    run(&mut cargo(&[
        "build",
        "--release",
        "--package",
        "tomo-cli",
        "--bin",
        "tomo",
    ])?)?;
    Ok(target()?.join("release/tomo"))
}

/// Builds it as the tests do (`.cargo/config.toml`).
pub(crate) fn build_tomo_as_tests() -> Result<PathBuf> {
    run(&mut cargo(&["tomo-as-tests"])?)?;
    Ok(target()?.join("debug/tomo"))
}

/// The program of this name that a shell would run.
pub(crate) fn on_path(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path)
        .map(|folder| folder.join(name))
        .find(|file| file.is_file())
}

fn line_of(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words
        .map(|word| word.to_string_lossy())
        .collect::<Vec<_>>()
        .join(" ")
}

#[cfg(test)]
mod tests {
    use super::{on_path, output, root, run, succeeds};
    use std::process::Command;

    #[test]
    fn the_root_holds_the_workspace() {
        let manifest = std::fs::read_to_string(root().unwrap().join("Cargo.toml")).unwrap();
        assert!(manifest.contains("[workspace]"));
    }

    #[test]
    fn a_failing_command_is_an_error_that_repeats_it() {
        let error = run(Command::new("sh").args(["-c", "exit 3"])).unwrap_err();
        assert!(error.to_string().starts_with("sh -c exit 3:"), "{error}");
        let error = output(Command::new("sh").args(["-c", "echo why >&2; exit 3"])).unwrap_err();
        assert!(error.to_string().ends_with("why"), "{error}");
        assert!(!succeeds(&mut Command::new("false")));
    }

    #[test]
    fn commands_get_no_standard_input() {
        assert_eq!(output(&mut Command::new("cat")).unwrap(), "");
    }

    #[test]
    fn programs_are_found_as_a_shell_would() {
        assert!(on_path("sh").is_some());
        assert_eq!(on_path("no-such-program-here"), None);
    }
}
