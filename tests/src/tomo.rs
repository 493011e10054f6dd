//! Running the `tomo` command of this workspace.

use std::{
    path::{Path, PathBuf},
    process::Command,
    sync::OnceLock,
};

use anyhow::{Context, Result, ensure};

/// The `tomo` command, built in the profile of the tests, once a process.
///
/// # Errors
/// If it does not build.
pub fn path() -> Result<&'static Path> {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    if let Some(built) = BUILT.get() {
        return Ok(built);
    }
    let built = build()?;
    Ok(BUILT.get_or_init(|| built))
}

fn build() -> Result<PathBuf> {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    // What cargo said of the test's own package would make build scripts that ask for it run anew, ring's for one.
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy();
        if text.starts_with("CARGO_PKG_")
            || text.starts_with("CARGO_MANIFEST_")
            || text == "OUT_DIR"
        {
            cargo.env_remove(&name);
        }
    }
    let output = cargo
        .args(["tomo-as-tests", "--quiet", "--message-format", "json"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .context("starting cargo")?;
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "tomo does not build: {errors}");
    let messages = String::from_utf8(output.stdout)?;
    let executable = messages.lines().find_map(|line| {
        let message: serde_json::Value = serde_json::from_str(line).ok()?;
        let executable = message.get("executable")?.as_str().map(PathBuf::from)?;
        executable.ends_with("tomo").then_some(executable)
    });
    executable.context("cargo names no executable")
}

/// What `tomo map --no-cache --format jsonl` prints of a program: a function a line.
///
/// # Errors
/// If the command cannot be built or fails.
pub fn map_lines(program: &Path) -> Result<Vec<u8>> {
    let output = Command::new(path()?)
        .args(["map", "--no-cache", "--format", "jsonl"])
        .arg(program)
        .output()
        .context("starting tomo")?;
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(
        output.status.success(),
        "tomo map {}: {errors}",
        program.display()
    );
    Ok(output.stdout)
}
