//! The folder that an installation keeps, for one collector. What is known in it, and what is sent, depends on the token
//! that is shown: each is for one campaign.
//!
//! ```text
//! instance          who we are: a random number, drawn once (`identity.rs`)
//! place             where that was, so that a copy is known
//! lock              held while a number below changes
//! reserved          no run has this number yet, or a higher one (`numbers.rs`)
//! next-run          the number of the next run, until the system starts anew
//! settled           up to where what is reserved is on the disk, until the system starts anew
//! dropped           how many final reports had to be dropped for want of room, in all
//! unfit             how many were damaged, or refused for good
//! known.json        the last assignments that were made into images, one for each token (`known.rs`)
//! unmade            why the last one was not
//! images/           those images, which all runs share
//! runs/N/           a run that has not been reported to its end; locked while its launcher lives
//! spool/N           the final report of run N, until the collector has settled it
//! ```
//!
//! It belongs to its user alone, because images are code. Any number of launchers may use it at once.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use nix::fcntl::{Flock, FlockArg};
use tomo_launch::{VariantError, new_folder, private_folder};
use tomo_protocol::{InstanceId, Name};

use crate::identity::identity;
use crate::numbers;

/// Why a state folder cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum StateError {
    /// There is no place for it.
    #[error("there is no folder for the installation's state: name one with --state")]
    Nowhere,
    /// It cannot be made, or is not this user's alone.
    #[error(transparent)]
    Folder(#[from] VariantError),
    /// A file of it cannot be read or written.
    #[error("{path}: {1}", path = .0.display())]
    Io(PathBuf, io::Error),
    /// A file of it holds something else.
    #[error("{path}: holds no {1}; remove the folder to begin anew", path = .0.display())]
    Form(PathBuf, &'static str),
}

/// What an installation keeps.
#[derive(Clone, Debug)]
pub struct State {
    folder: PathBuf,
    id: InstanceId,
    bearer: Name,
}

pub(crate) fn at(path: &Path) -> impl FnOnce(io::Error) -> StateError {
    let path = path.to_path_buf();
    move |error| StateError::Io(path, error)
}

impl State {
    /// Where the state for this collector and token is by default: below `$XDG_STATE_HOME`, else below
    /// `~/.local/state`.
    #[must_use]
    pub fn default_folder(
        variable: impl Fn(&str) -> Option<OsString>,
        url: &str,
        token: Option<&str>,
    ) -> Option<PathBuf> {
        let set = |name| variable(name).filter(|value| !value.is_empty());
        let base = match set("XDG_STATE_HOME").map(PathBuf::from) {
            Some(base) if base.is_absolute() => base,
            _ => PathBuf::from(set("HOME")?).join(".local/state"),
        };
        let url = url.trim_end_matches('/');
        let named = format!("{url}\n{}", token.unwrap_or_default());
        let name = format!("{:016x}", tomo_wire::checksum(named.as_bytes()));
        Some(base.join("tomograph").join(name))
    }

    /// The state in `folder`, which is made if need be.
    ///
    /// # Errors
    /// Where it cannot be made, or others could change what is in it.
    pub fn open(folder: &Path) -> Result<Self, StateError> {
        let folder = private_folder(folder)?;
        for part in ["images", "runs", "spool"] {
            private_folder(&folder.join(part))?;
        }
        let id = identity(&folder, &folder.join("lock"))?;
        Ok(Self {
            folder,
            id,
            bearer: name_of(None),
        })
    }

    /// The same for whoever shows this token.
    #[must_use]
    pub fn shown(self, token: Option<&str>) -> Self {
        Self {
            bearer: name_of(token),
            ..self
        }
    }

    /// What names the token that is shown.
    pub(crate) fn bearer(&self) -> Name {
        self.bearer
    }

    /// Who this installation is.
    #[must_use]
    pub fn id(&self) -> InstanceId {
        self.id
    }

    /// Where it is.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Waits for the lock of this name, and holds it.
    pub(crate) fn lock(&self, name: &str) -> Result<Flock<File>, StateError> {
        let path = self.file(name);
        let file = lockable(&path).map_err(at(&path))?;
        Flock::lock(file, FlockArg::LockExclusive)
            .map_err(|(_, error)| StateError::Io(path, error.into()))
    }

    /// Takes the lock of this name, unless somebody has it.
    pub(crate) fn try_lock(&self, name: &str) -> Option<Flock<File>> {
        try_lock(&self.file(name))
    }

    /// Takes a number that no run of this installation had, with a folder of its own, which is locked and
    /// otherwise empty.
    pub(crate) fn next_run(&self) -> Result<(u64, PathBuf, Flock<File>), StateError> {
        let _lock = self.lock("lock")?;
        loop {
            let number = numbers::take(self)?;
            let folder = self.file("runs").join(number.to_string());
            match new_folder(&folder) {
                Ok(()) => {
                    let lock = try_lock(&folder.join("lock")).ok_or(io::ErrorKind::WouldBlock);
                    let lock = lock.map_err(|kind| at(&folder)(kind.into()))?;
                    return Ok((number, folder, lock));
                }
                // The system went down before the number was on the disk; nothing of that run was sent.
                Err(VariantError::Io(_, error)) if error.kind() == io::ErrorKind::AlreadyExists => {
                }
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// How many final reports had to be dropped so far.
    pub(crate) fn lost(&self) -> Lost {
        let count = |name| read_number(&self.file(name)).ok().flatten().unwrap_or(0);
        Lost {
            dropped: count(DROPPED),
            unfit: count(UNFIT),
        }
    }

    /// Counts final reports for which there was no room.
    pub(crate) fn count_dropped(&self, more: u64) -> Result<(), StateError> {
        self.count(DROPPED, more)
    }

    /// Counts final reports that are damaged, or refused for good.
    pub(crate) fn count_unfit(&self, more: u64) -> Result<(), StateError> {
        self.count(UNFIT, more)
    }

    fn count(&self, name: &str, more: u64) -> Result<(), StateError> {
        if more == 0 {
            return Ok(());
        }
        let _lock = self.lock("lock")?;
        let path = self.file(name);
        let count = read_number(&path)?.unwrap_or(0).saturating_add(more);
        replace(&path, count.to_string().as_bytes()).map_err(at(&path))
    }

    /// Locks the folder of a run, unless its launcher lives.
    pub(crate) fn lock_left(&self, folder: &Path) -> Option<Flock<File>> {
        // Whoever takes a number makes a folder and locks it; not to come in between.
        let _lock = self.lock("lock").ok()?;
        try_lock(&folder.join("lock"))
    }
}

/// Final reports that had to be dropped, in all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Lost {
    /// The spool was full.
    pub(crate) dropped: u64,
    /// They were damaged, or refused for good.
    pub(crate) unfit: u64,
}

/// The files that count them.
const DROPPED: &str = "dropped";
const UNFIT: &str = "unfit";

/// What names a token.
fn name_of(token: Option<&str>) -> Name {
    Name(tomo_wire::checksum(token.unwrap_or_default().as_bytes()))
}

/// Takes the lock that is this file, unless somebody has it.
fn try_lock(path: &Path) -> Option<Flock<File>> {
    let file = lockable(path).ok()?;
    Flock::lock(file, FlockArg::LockExclusiveNonblock).ok()
}

/// A file to be locked, made if need be.
pub(crate) fn lockable(path: &Path) -> io::Result<File> {
    OpenOptions::new()
        .create(true)
        .truncate(false)
        .write(true)
        .mode(0o600)
        .open(path)
}

pub(crate) fn read_number(path: &Path) -> Result<Option<u64>, StateError> {
    let wrong = |_| StateError::Form(path.into(), "number");
    match fs::read_to_string(path) {
        Ok(text) => text.trim().parse().map(Some).map_err(wrong),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(at(path)(error)),
    }
}

/// Writes a file at once: whoever opens it finds the old content or the new one, whole.
pub(crate) fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    by_way_of(path, |temporary| write(temporary, bytes).map(drop))
}

/// The same, and what is found after the system went down is the one or the other, too.
pub(crate) fn replace_durably(path: &Path, bytes: &[u8]) -> io::Result<()> {
    by_way_of(path, |temporary| write(temporary, bytes)?.sync_all())
}

/// Puts what `write` writes beside `path` in its place.
fn by_way_of(path: &Path, write: impl FnOnce(&Path) -> io::Result<()>) -> io::Result<()> {
    let temporary = temporary(path);
    let written = write(&temporary).and_then(|()| fs::rename(&temporary, path));
    if written.is_err() {
        let _ = fs::remove_file(&temporary);
    }
    written
}

pub(crate) fn write(path: &Path, bytes: &[u8]) -> io::Result<File> {
    let mut options = OpenOptions::new();
    let mut file = options
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)?;
    file.write_all(bytes)?;
    Ok(file)
}

/// A name beside `path` that no other thread or process uses, and that no list of files takes for one of its
/// own.
pub(crate) fn temporary(path: &Path) -> PathBuf {
    use std::sync::atomic::{AtomicU64, Ordering};
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!(".{name}.{}.{number}", std::process::id()))
}

/// The files or folders in `folder` whose names are numbers, by number.
pub(crate) fn numbered(folder: &Path) -> Vec<(u64, PathBuf)> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut found: Vec<_> = entries
        .filter_map(|entry| Some((entry.file_name().to_str()?.parse().ok()?, entry.path())))
        .collect();
    found.sort();
    found
}

#[cfg(test)]
mod tests {
    use super::State;
    use std::collections::BTreeSet;
    use std::ffi::OsString;
    use std::path::Path;

    fn opened(folder: &Path) -> State {
        State::open(folder).expect("a state")
    }

    #[test]
    fn numbers_of_runs_are_given_once_whoever_asks() {
        let folder = tempfile::tempdir().unwrap();
        let state = opened(folder.path());
        let ask = || -> Vec<u64> {
            let state = opened(folder.path());
            (0..20).map(|_| state.next_run().unwrap().0).collect()
        };
        let all: Vec<u64> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(ask)).collect();
            threads
                .into_iter()
                .flat_map(|thread| thread.join().unwrap())
                .collect()
        });
        let different: BTreeSet<u64> = all.iter().copied().collect();
        assert_eq!(different, (1..=80).collect());
        // A number that was lost is not given to a folder that is there.
        std::fs::remove_file(folder.path().join("next-run")).unwrap();
        std::fs::write(folder.path().join("reserved"), "7").unwrap();
        assert_eq!(state.next_run().unwrap().0, 81);
    }

    #[test]
    fn what_was_dropped_is_counted() {
        let folder = tempfile::tempdir().unwrap();
        let state = opened(folder.path());
        state.count_dropped(2).unwrap();
        state.count_dropped(0).unwrap();
        state.count_dropped(3).unwrap();
        state.count_unfit(1).unwrap();
        let lost = state.lost();
        assert_eq!((lost.dropped, lost.unfit), (5, 1));
    }

    #[test]
    fn the_folder_depends_on_collector_and_token() {
        let of = |url: &str, token| {
            let home = |name: &str| (name == "HOME").then(|| OsString::from("/home/me"));
            State::default_folder(home, url, token)
        };
        let one = of("http://a:1/", Some("t")).unwrap();
        assert!(one.starts_with("/home/me/.local/state/tomograph"));
        assert_eq!(Some(one.clone()), of("http://a:1", Some("t")));
        assert_ne!(Some(one.clone()), of("http://b:1", Some("t")));
        assert_ne!(Some(one), of("http://a:1", Some("u")));
        assert_eq!(State::default_folder(|_| None, "http://a", None), None);
    }
}
