//! The command lines that build a recipe.

use std::collections::HashMap;
use std::hash::Hasher;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;

use anyhow::{Context, Result, ensure};
use xxhash_rust::xxh3::Xxh3;

use super::sources::Sources;
use super::{Compiler, Level, Recipe};

/// One call of a compiler, short of the name of what it makes.
pub(super) struct Step {
    tool: String,
    args: Vec<String>,
    files: Vec<PathBuf>,
    strip: bool,
}

impl Step {
    /// A hash of the tool's version, its arguments and what is in the files.
    pub(super) fn hash(&self) -> Result<u64> {
        let mut hash = Xxh3::new();
        hash.write(version(&self.tool)?.as_bytes());
        for arg in &self.args {
            hash.write(arg.as_bytes());
            hash.write_u8(0);
        }
        for file in &self.files {
            hash.write(file.file_name().unwrap_or_default().as_encoded_bytes());
            hash.write(&std::fs::read(file).with_context(|| format!("{}", file.display()))?);
        }
        hash.write_u8(u8::from(self.strip));
        Ok(hash.finish())
    }

    /// Runs it, so that the program lies at `output`.
    pub(super) fn run(&self, output: &Path) -> Result<()> {
        let mut command = Command::new(&self.tool);
        if self.tool == "go" {
            return self.run_go(command, output);
        }
        // What follows the files are libraries as well as definitions, which may stand anywhere.
        command
            .args(&self.files)
            .args(&self.args)
            .arg("-o")
            .arg(output);
        succeed(&mut command)?;
        if self.strip {
            succeed(Command::new("strip").arg(output))?;
        }
        Ok(())
    }

    /// The same by Go's compiler, which wants the files last and keeps what it has made.
    fn run_go(&self, mut command: Command, output: &Path) -> Result<()> {
        let folder = output.ancestors().nth(2).context("no folder")?;
        command
            .env("GO111MODULE", "off")
            .env("GOCACHE", folder.join("go-cache"))
            .arg("build")
            .args(&self.args)
            .arg("-o")
            .arg(output)
            .args(&self.files);
        succeed(&mut command)
    }
}

/// How the file `source` is built by `tool` with `args`.
pub(super) fn single(tool: &str, source: PathBuf, args: &[&str]) -> Step {
    Step {
        tool: tool.to_owned(),
        args: args.iter().map(|&arg| arg.to_owned()).collect(),
        files: vec![source],
        strip: false,
    }
}

/// How `recipe` is built from `sources`.
pub(super) fn step(recipe: &Recipe, sources: &Sources) -> Result<Step> {
    let (tool, mut args) = match recipe.compiler {
        Compiler::Rustc => (rustc(), rust_args(recipe)),
        Compiler::Gcc => (
            if sources.cpp { "g++" } else { "gcc" }.to_owned(),
            c_args(recipe),
        ),
        Compiler::Clang => {
            let tool = if sources.cpp {
                "clang++-19"
            } else {
                "clang-19"
            };
            (tool.to_owned(), c_args(recipe))
        }
    };
    ensure!(
        !(recipe.block_address_map && recipe.compiler == Compiler::Gcc),
        "gcc leaves no map of its blocks"
    );
    args.extend(recipe.extra.iter().cloned());
    args.extend(sources.args.iter().cloned());
    Ok(Step {
        tool,
        args,
        files: sources.files.clone(),
        strip: recipe.strip,
    })
}

fn c_args(recipe: &Recipe) -> Vec<String> {
    let mut args = vec![format!("-{:?}", recipe.level), "-g".to_owned()];
    let more: &[&str] = if recipe.pie {
        &["-fPIE", "-pie"]
    } else {
        &["-fno-pie", "-no-pie"]
    };
    args.extend(more.iter().map(|&a| a.to_owned()));
    if recipe.block_address_map {
        let map = [
            "-fbasic-block-address-map",
            "-mllvm",
            "-pgo-analysis-map=br-prob",
        ];
        args.extend(map.map(str::to_owned));
    }
    args
}

fn rust_args(recipe: &Recipe) -> Vec<String> {
    let level = match recipe.level {
        Level::O0 => 0,
        Level::O2 => 2,
        Level::O3 => 3,
    };
    let model = if recipe.pie { "pic" } else { "static" };
    let mut args = vec!["--edition=2024".to_owned(), "-Cdebuginfo=1".to_owned()];
    args.extend([
        format!("-Copt-level={level}"),
        format!("-Crelocation-model={model}"),
    ]);
    if recipe.block_address_map {
        let map = ["-basic-block-address-map", "-pgo-analysis-map=br-prob"];
        args.extend(map.map(|a| format!("-Cllvm-args={a}")));
    }
    args
}

fn rustc() -> String {
    std::env::var("RUSTC").unwrap_or_else(|_| "rustc".to_owned())
}

/// What a tool says of its own version; each is asked once.
fn version(tool: &str) -> Result<String> {
    static VERSIONS: Mutex<Option<HashMap<String, String>>> = Mutex::new(None);
    let mut versions = VERSIONS
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner);
    let versions = versions.get_or_insert_default();
    if let Some(version) = versions.get(tool) {
        return Ok(version.clone());
    }
    let output = Command::new(tool)
        .arg("--version")
        .output()
        .with_context(|| format!("cannot run {tool}: is its package installed?"))?;
    let version = String::from_utf8_lossy(&output.stdout).into_owned();
    versions.insert(tool.to_owned(), version.clone());
    Ok(version)
}

fn succeed(command: &mut Command) -> Result<()> {
    let tool = command.get_program().to_owned();
    let output = command
        .output()
        .with_context(|| format!("cannot run {}", tool.display()))?;
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(
        output.status.success(),
        "{} failed:\n{errors}",
        tool.display()
    );
    Ok(())
}
