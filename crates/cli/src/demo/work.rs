//! What the program works on: files of this machine, larger ones, so that a run takes some tenths of a second.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Result, ensure};
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike as _;

/// One piece of work.
pub(crate) struct Work {
    /// The file that is mapped.
    pub(crate) file: PathBuf,
    /// Processor seconds that it takes without probes.
    pub(crate) seconds: f64,
    /// By how much two such runs differ, as a share.
    pub(crate) noise: f64,
}

impl Work {
    /// What `tomo` is told.
    pub(crate) fn arguments(&self) -> Vec<OsString> {
        ["map", "--no-cache"]
            .map(OsString::from)
            .into_iter()
            .chain([self.file.clone().into_os_string()])
            .collect()
    }
}

/// Where the machine's programs and libraries are.
const FOLDERS: [&str; 4] = [
    "/usr/bin",
    "/usr/lib/x86_64-linux-gnu",
    "/usr/lib/gcc/x86_64-linux-gnu/12",
    "/usr/sbin",
];
/// Bytes of a file that is taken: of smaller ones a run is so short that noise is all that can be measured of it.
const SIZES: std::ops::Range<u64> = 1_800_000..32_000_000;
/// How many are taken.
const MOST: usize = 10;

/// Files that can be mapped, of different sizes, with the time that each takes alone.
pub(crate) fn find(tomo: &Path) -> Result<Vec<Work>> {
    let entries = FOLDERS.iter().flat_map(fs::read_dir).flatten().flatten();
    let mut files: Vec<(u64, PathBuf)> = entries
        .filter_map(|entry| {
            let path = fs::canonicalize(entry.path()).ok()?;
            let size = fs::metadata(&path).ok()?.len();
            (SIZES.contains(&size) && is_program(&path)).then_some((size, path))
        })
        .collect();
    files.sort();
    files.dedup();
    // The same on the same machine, and some of each size.
    let step = files.len().div_ceil(MOST).max(1);
    let mut work = Vec::new();
    for (_, file) in files.into_iter().rev().step_by(step) {
        let mut one = Work {
            file,
            seconds: 0.0,
            noise: 0.0,
        };
        let mut seconds = Vec::new();
        for _ in 0..3 {
            seconds.extend(alone(tomo, &one)?);
        }
        seconds.sort_by(f64::total_cmp);
        // Not all files of the form can be mapped.
        if let [least, middle, most] = *seconds {
            one.seconds = middle;
            one.noise = (most - least) / middle;
            work.push(one);
        }
    }
    ensure!(
        !work.is_empty(),
        "this machine has no programs of a fitting size in {FOLDERS:?}"
    );
    Ok(work)
}

fn is_program(path: &Path) -> bool {
    let mut magic = [0; 20];
    let read =
        fs::File::open(path).and_then(|mut file| std::io::Read::read_exact(&mut file, &mut magic));
    read.is_ok() && magic.starts_with(b"\x7fELF\x02\x01") && magic[18] == 62
}

/// Processor seconds of one run without anything, if it can be mapped.
fn alone(tomo: &Path, work: &Work) -> Result<Option<f64>> {
    let before = children()?;
    let status = Command::new(tomo)
        .args(work.arguments())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()?;
    let used = children()? - before;
    Ok(status.success().then_some(used))
}

fn children() -> Result<f64> {
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN)?;
    let spent = usage.user_time() + usage.system_time();
    Ok(spent.num_microseconds() as f64 / 1e6)
}
