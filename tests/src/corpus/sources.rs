//! Where the sources of the corpus lie: packages by `cargo metadata`, our own beside this crate.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use anyhow::{Context, Result, anyhow, ensure};
use serde::Deserialize;

use super::Source;

/// The files of one program and how its compiler must be told about them.
pub(super) struct Sources {
    /// What is compiled, each a unit of its own.
    pub(super) files: Vec<PathBuf>,
    /// Arguments that go with them: definitions, include directories, libraries.
    pub(super) args: Vec<String>,
    /// Whether they are C++.
    pub(super) cpp: bool,
}

impl Sources {
    fn new(files: Vec<PathBuf>, args: &[&str]) -> Self {
        Self {
            files,
            args: args.iter().map(|&a| a.to_owned()).collect(),
            cpp: false,
        }
    }

    fn include(mut self, dir: &Path) -> Self {
        self.args.push(format!("-I{}", dir.display()));
        self
    }
}

/// A file of ours under `programs/`.
pub(super) fn own(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("programs")
        .join(name)
}

/// The sources of one program.
pub(super) fn of(source: Source) -> Result<Sources> {
    Ok(match source {
        Source::Lua => lua()?,
        Source::Sqlite => sqlite()?,
        Source::Bzip2 => bzip2()?,
        Source::Zstd => zstd()?,
        Source::CFeatures => Sources::new(
            vec![own("features.c"), own("interpreter.c"), own("jumps.c")],
            &["-lm"],
        ),
        Source::CppFeatures => {
            let mut sources = Sources::new(vec![own("features.cpp"), own("throwing.cpp")], &[]);
            sources.cpp = true;
            sources
        }
        Source::RustFeatures => Sources::new(vec![own("features.rs")], &[]),
    })
}

/// Lua behind our driver, made to do the same in every run: its own seed mixes in the time.
fn lua() -> Result<Sources> {
    let dir = package("lua-src")?.join("lua-5.4.9");
    let mut files = files_in(&dir, &["c"])?;
    files.push(own("drivers/lua.c"));
    // Neither the seed of its hashes nor which strings its cache of them holds may depend on addresses.
    let same_in_every_run = [
        "-Dluai_makeseed(L)=0x5eedu",
        "-DSTRCACHE_N=1",
        "-DSTRCACHE_M=2",
    ];
    let flags = [&same_in_every_run[..], &["-lm"]].concat();
    Ok(Sources::new(files, &flags).include(&dir))
}

fn sqlite() -> Result<Sources> {
    let dir = package("libsqlite3-sys")?.join("sqlite3");
    let args = [
        "-DSQLITE_THREADSAFE=0",
        "-DSQLITE_OMIT_LOAD_EXTENSION",
        "-DSQLITE_ENABLE_FTS5",
        "-DSQLITE_DEFAULT_MEMSTATUS=0",
        "-lm",
    ];
    Ok(Sources::new(vec![dir.join("sqlite3.c"), own("drivers/sqlite.c")], &args).include(&dir))
}

fn bzip2() -> Result<Sources> {
    let dir = package("bzip2-sys")?.join("bzip2-1.0.8");
    let names = [
        "blocksort",
        "bzip2",
        "bzlib",
        "compress",
        "crctable",
        "decompress",
        "huffman",
    ];
    let mut files: Vec<_> = names
        .iter()
        .map(|n| dir.join(n).with_extension("c"))
        .collect();
    files.push(dir.join("randtable.c"));
    Ok(Sources::new(files, &["-D_FILE_OFFSET_BITS=64", "-w"]))
}

/// With its hand-written assembly, as it is shipped; without threads and old formats.
fn zstd() -> Result<Sources> {
    let dir = package("zstd-sys")?.join("zstd/lib");
    let mut files = vec![own("drivers/zstd.c")];
    for part in ["common", "compress", "decompress", "dictBuilder"] {
        files.extend(files_in(&dir.join(part), &["c", "S"])?);
    }
    Ok(Sources::new(files, &["-DZSTD_LEGACY_SUPPORT=0"]).include(&dir))
}

fn files_in(dir: &Path, extensions: &[&str]) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in dir
        .read_dir()
        .with_context(|| format!("cannot read {}", dir.display()))?
    {
        let path = entry?.path();
        if path
            .extension()
            .and_then(|e| e.to_str())
            .is_some_and(|e| extensions.contains(&e))
        {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
}

#[derive(Deserialize)]
struct Package {
    name: String,
    manifest_path: PathBuf,
}

/// The directory of a package that this crate names as a source of programs.
///
/// # Errors
/// Where there is none, or cargo cannot tell.
pub fn package(name: &str) -> Result<PathBuf> {
    static PACKAGES: OnceLock<Result<HashMap<String, PathBuf>, String>> = OnceLock::new();
    let packages = PACKAGES.get_or_init(|| packages().map_err(|e| format!("{e:#}")));
    let packages = packages.as_ref().map_err(|e| anyhow!("{e}"))?;
    packages
        .get(name)
        .cloned()
        .with_context(|| format!("no package {name} in the lock file"))
}

/// All packages of the workspace, fetched where they are not there yet.
fn packages() -> Result<HashMap<String, PathBuf>> {
    let output = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
        .args([
            "metadata",
            "--format-version=1",
            "--all-features",
            "--locked",
        ])
        .args(["--filter-platform=x86_64-unknown-linux-gnu"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .context("cannot run cargo")?;
    ensure!(
        output.status.success(),
        "cargo: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    let metadata: Metadata = serde_json::from_slice(&output.stdout)?;
    let dir = |p: Package| Some((p.name, p.manifest_path.parent()?.to_owned()));
    Ok(metadata.packages.into_iter().filter_map(dir).collect())
}
