//! Pools as `tomo env` makes them, and how they are made again what they were before anything ran.

use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Result, ensure};
use tomo_testkit::tomo;
use tomo_wire::record::RecordView;

/// The command as users have it, if that is named; else that of the tests.
pub(crate) fn command() -> Result<PathBuf> {
    match std::env::var_os("TOMO") {
        Some(path) => Ok(path.into()),
        None => Ok(tomo::path()?.to_path_buf()),
    }
}

/// A folder on a file system in memory, where pools are best kept: on a disk's the first store into
/// each page of an image costs the kernel some microseconds of bookkeeping. Containers may forbid to run
/// code from there.
pub(crate) fn in_memory() -> Result<tempfile::TempDir> {
    let mounts = fs::read_to_string("/proc/mounts")?;
    let memory = mounts
        .lines()
        .find(|mount| mount.starts_with("tmpfs /dev/shm "));
    Ok(match memory {
        Some(mount) if !mount.contains("noexec") => tempfile::tempdir_in("/dev/shm")?,
        _ => tempfile::tempdir()?,
    })
}

/// Bakes the pool of a program; gives what `tomo env` has shells export.
pub(crate) fn bake(
    tomo: &Path,
    cache: &Path,
    pool: &Path,
    program: &Path,
) -> Result<BTreeMap<String, String>> {
    let output = Command::new(tomo)
        .env("TOMO_CACHE_DIR", cache)
        .args(["env", "--pool"])
        .args([pool, program])
        .output()?;
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    ensure!(output.status.success(), "tomo env: {errors}");
    let text = String::from_utf8(output.stdout)?;
    let lines = text.lines().filter_map(|line| {
        let (name, value) = line.strip_prefix("export ")?.split_once('=')?;
        Some((name.to_owned(), value.split('\'').nth(1)?.to_owned()))
    });
    Ok(lines.collect())
}

/// The images and records of a pool, as they were at one time.
#[derive(Default)]
pub(crate) struct Contents(Vec<(PathBuf, Vec<u8>)>);

impl Contents {
    pub(crate) fn of(pool: &Path) -> Result<Self> {
        let mut files = Vec::new();
        for entry in fs::read_dir(pool)? {
            let path = entry?.path();
            let kind = path.extension().unwrap_or_default();
            if kind == "image" || kind == "record" {
                files.push((path.clone(), fs::read(&path)?));
            }
        }
        ensure!(!files.is_empty(), "nothing was baked");
        Ok(Self(files))
    }

    /// The bytes of the files of this kind.
    pub(crate) fn all(&self, kind: &str) -> impl Iterator<Item = &[u8]> {
        let files = self.0.iter();
        let files = files.filter(move |(path, _)| path.extension().is_some_and(|k| k == kind));
        files.map(|(_, bytes)| bytes.as_slice())
    }

    /// Makes the pool what it was then.
    pub(crate) fn put_back(&self) -> Result<()> {
        for (path, bytes) in &self.0 {
            // In place: the pool's processes have these very files mapped.
            OpenOptions::new()
                .write(true)
                .open(path)?
                .write_all(bytes)?;
        }
        Ok(())
    }

    /// How many of the modules were not armed in every process: what is not armed costs nothing.
    pub(crate) fn unarmed(&self) -> Result<usize> {
        let mut count = 0;
        for record in self.all("record") {
            let live = RecordView::read(record)?.live;
            count += usize::from(live.armed.get() == 0 || live.refused.get() > 0);
        }
        Ok(count)
    }
}
