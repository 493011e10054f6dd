//! The ways to run a case: alone, built by compilers to count, under `tomo cover`, and armed by the
//! environment of a pool, cold and warm.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Result, ensure};
use tomo_testkit::tomo;
use tomo_wire::record::RecordView;

use crate::cases::Case;

/// A way to run a case.
pub(crate) struct Way {
    pub(crate) name: String,
    /// The way that it is compared with.
    pub(crate) base: &'static str,
    pub(crate) promise: Option<Promise>,
    pub(crate) program: PathBuf,
    /// What comes before the case's arguments.
    pub(crate) before: Vec<String>,
    pub(crate) environment: BTreeMap<String, String>,
    /// The pool that arms it.
    pub(crate) pool: Option<PathBuf>,
    /// Files that are put back as they were before each run.
    pub(crate) fresh: Vec<(PathBuf, Vec<u8>)>,
}

/// What is promised at most.
#[derive(Clone, Copy)]
pub(crate) enum Promise {
    /// CPU time as a multiple of the base's.
    Ratio(f64),
    /// Milliseconds of CPU time above the base's.
    MoreMilliseconds(f64),
}

fn plain(name: &str, base: &'static str, program: &Path) -> Way {
    Way {
        name: name.into(),
        base,
        promise: None,
        program: program.into(),
        before: Vec::new(),
        environment: BTreeMap::new(),
        pool: None,
        fresh: Vec::new(),
    }
}

/// All ways; the first is the program alone.
pub(crate) fn of(case: &Case, folder: &Path) -> Result<Vec<Way>> {
    let tomo = command()?;
    let cache = folder.join("cache");
    let mut ways = vec![
        plain("alone", "alone", &case.program),
        plain("alone again: the noise", "alone", &case.program),
    ];
    for (name, program, base) in &case.peers {
        ways.push(plain(name, base, program));
    }
    for (name, most) in [("cold", case.promises.cold), ("warm", case.promises.warm)] {
        let pool = folder.join(name);
        let environment = exported(&tomo, &cache, &pool, &case.program)?;
        let fresh = if name == "cold" {
            contents(&pool)?
        } else {
            Vec::new()
        };
        ways.push(Way {
            promise: Some(Promise::Ratio(most)),
            environment,
            pool: Some(pool),
            fresh,
            ..plain(&format!("tomo env --pool, {name}"), "alone", &case.program)
        });
    }
    let words = [
        "cover",
        "-o",
        &folder.join("out").display().to_string(),
        "--",
    ]
    .map(str::to_owned);
    let program = case.program.display().to_string();
    ways.push(Way {
        promise: case.promises.launched.map(Promise::MoreMilliseconds),
        before: words.into_iter().chain([program]).collect(),
        environment: BTreeMap::from([("TOMO_CACHE_DIR".into(), cache.display().to_string())]),
        ..plain("tomo cover", "alone", &tomo)
    });
    Ok(ways)
}

/// What `tomo env` has shells export.
fn exported(
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

/// The images and records of a pool.
fn contents(pool: &Path) -> Result<Vec<(PathBuf, Vec<u8>)>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(pool)? {
        let path = entry?.path();
        let kind = path.extension().unwrap_or_default();
        if kind == "image" || kind == "record" {
            files.push((path.clone(), fs::read(&path)?));
        }
    }
    ensure!(!files.is_empty(), "nothing was baked");
    Ok(files)
}

/// How many modules of a pool were not armed in every process: what is not armed costs nothing.
pub(crate) fn unarmed(pool: &Path) -> Result<usize> {
    let mut count = 0;
    for (path, _) in contents(pool)? {
        if path.extension().is_some_and(|kind| kind == "record") {
            let bytes = fs::read(&path)?;
            let live = RecordView::read(&bytes)?.live;
            count += usize::from(live.armed.get() == 0 || live.refused.get() > 0);
        }
    }
    Ok(count)
}

/// The command as users have it, if that is named; else that of the tests.
fn command() -> Result<PathBuf> {
    match std::env::var_os("TOMO") {
        Some(path) => Ok(path.into()),
        None => Ok(tomo::path()?.to_path_buf()),
    }
}
