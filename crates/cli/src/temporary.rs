//! Folders for the time of a command, which may be interrupted: what one leaves behind, the next one removes.
//!
//! A folder is locked for as long as its command lives, so one that is not locked is nobody's, whoever made it and in
//! whichever container.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use tempfile::TempDir;

/// How the folders' names begin.
const PREFIX: &str = "tomo-fleet-";
/// How often a folder is made that another command takes for nobody's, in the moment before it is locked.
const TRIES: usize = 8;

/// A folder that goes with this value.
pub(crate) struct Temporary {
    folder: TempDir,
    /// Locked as long as the folder is needed.
    _lock: File,
}

impl Temporary {
    /// A new one; those of commands that were killed are gone then.
    pub(crate) fn new() -> io::Result<Self> {
        Self::within(&std::env::temp_dir())
    }

    fn within(above: &Path) -> io::Result<Self> {
        sweep(above);
        for _ in 0..TRIES {
            let folder = tempfile::Builder::new().prefix(PREFIX).tempdir_in(above)?;
            if let Ok(lock) = File::open(folder.path())
                && lock.try_lock().is_ok()
                && folder.path().exists()
            {
                return Ok(Self {
                    folder,
                    _lock: lock,
                });
            }
        }
        Err(io::Error::other("it is removed as soon as it is made"))
    }

    /// Where it is.
    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }
}

/// Removes this user's folders that nobody has locked.
fn sweep(above: &Path) {
    let me = nix::unistd::geteuid().as_raw();
    for entry in fs::read_dir(above).into_iter().flatten().flatten() {
        let is_named = entry.file_name().to_string_lossy().starts_with(PREFIX);
        // Of the entry itself, wherever it may lead.
        let is_mine = |found: fs::Metadata| found.is_dir() && found.uid() == me;
        if is_named
            && entry.metadata().is_ok_and(is_mine)
            && let Ok(lock) = File::open(entry.path())
            && lock.try_lock().is_ok()
        {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_of_the_killed_are_removed_and_others_are_not() {
        let above = tempfile::tempdir().expect("a folder");
        let left = above.path().join("tomo-fleet-left");
        let other = above.path().join("other");
        for folder in [&left, &other] {
            fs::create_dir(folder).expect("made");
            fs::write(folder.join("m.record"), "").expect("written");
        }
        let one = Temporary::within(above.path()).expect("a folder");
        let two = Temporary::within(above.path()).expect("a folder");
        assert!(!left.exists() && other.exists());
        assert!(one.path().exists() && two.path().exists());
        let path = one.path().to_owned();
        drop(one);
        assert!(!path.exists());
    }
}
