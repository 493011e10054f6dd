//! Where built programs and what was seen of them are kept, and who may build when.
//!
//! Tests of several processes share the cache: the first that needs a program builds it under a
//! lock while the others wait. At most [`TURNS`] compilers run at a time.

use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::compile::Step;

/// How many programs are built, or processes stepped, at the same time.
const TURNS: usize = 2;

/// The program that `step` makes, from the cache or built into it.
pub(super) fn built(name: &str, step: &Step) -> Result<PathBuf> {
    let folder = format!("{name}-{:016x}", step.hash()?);
    kept(&folder, name, |unfinished| {
        let _turn = Turn::wait()?;
        step.run(unfinished)
    })
}

/// The file of this name in a folder of the cache, which `make` has made there or makes now.
pub(crate) fn kept(
    folder: &str,
    name: &str,
    make: impl FnOnce(&Path) -> Result<()>,
) -> Result<PathBuf> {
    let dir = directory()?.join(folder);
    let file = dir.join(name);
    std::fs::create_dir_all(&dir)?;
    let lock = File::create(dir.join("lock"))?;
    lock.lock()?;
    if !file.exists() {
        let unfinished = dir.join("unfinished");
        make(&unfinished)?;
        std::fs::rename(&unfinished, &file)?;
    }
    Ok(file)
}

/// The right to keep one processor busy; passed on when dropped.
#[derive(Debug)]
pub struct Turn {
    _lock: File,
    index: usize,
}

impl Turn {
    /// Waits until it is this caller's turn.
    ///
    /// # Errors
    /// Where the lock files cannot be made.
    pub fn wait() -> Result<Self> {
        let dir = directory()?;
        let open = |i| File::create(dir.join(format!("turn-{i}")));
        for index in 0..TURNS {
            let lock = open(index)?;
            match lock.try_lock() {
                Ok(()) => return Ok(Self { _lock: lock, index }),
                Err(TryLockError::WouldBlock) => {}
                Err(TryLockError::Error(error)) => return Err(error.into()),
            }
        }
        // All taken: queue behind one of them, which one by this process's own number.
        let index = std::process::id() as usize % TURNS;
        let lock = open(index)?;
        lock.lock()?;
        Ok(Self { _lock: lock, index })
    }

    /// Which of the turns it is: 0 or 1.
    #[must_use]
    pub fn index(&self) -> usize {
        self.index
    }
}

/// `target/corpus` of the workspace.
pub(crate) fn directory() -> Result<PathBuf> {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .context("no workspace")?;
    let dir = std::env::var_os("TOMO_CORPUS_DIR")
        .map_or_else(|| workspace.join("target/corpus"), PathBuf::from);
    std::fs::create_dir_all(&dir).with_context(|| format!("cannot make {}", dir.display()))?;
    Ok(dir)
}
