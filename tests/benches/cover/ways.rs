//! The ways to run a case: alone, built by compilers to count, under `tomo cover`, and armed by the
//! environment of a pool, cold and warm.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::Result;

use crate::cases::Case;
use crate::pools::{self, Contents};

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
    pub(crate) fresh: Contents,
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
        fresh: Contents::default(),
    }
}

/// All ways; the first is the program alone.
pub(crate) fn of(case: &Case, folder: &Path) -> Result<Vec<Way>> {
    let tomo = pools::command()?;
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
        let environment = pools::bake(&tomo, &cache, &pool, &case.program)?;
        let fresh = if name == "cold" {
            Contents::of(&pool)?
        } else {
            Contents::default()
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
