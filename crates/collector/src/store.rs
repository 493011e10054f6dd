//! The objects of the store, and what they are called.
//!
//! | name | what |
//! |---|---|
//! | `programs/<stem>/meta.json`, `…/model`, `…/file` | a build |
//! | `plans/<name>.plan` | a master plan |
//! | `campaigns/<id>.json` | a campaign; it never changes |
//! | `campaigns/<id>.retired` | that it has ended, and when |
//! | `editions/<campaign>/<number>.edition` | what a search was decided to go on with: by whom it was written first |
//! | `tokens/<hash>.json` | a token, by the SHA-256 of its text |
//! | `log/<campaign>/<time>-<collector>-<number>.segment` | what was accepted ([`segment`](crate::segment)) |
//! | `log/<campaign>/<time>-<collector>-<number>.snapshot` | the same, joined |
//!
//! No object is ever changed. One that is written is durable when the call comes back: on a local
//! disk files and their folders are synchronised (`LocalFileSystem::with_fsync`), services for
//! objects promise it themselves.
//!
//! On a local disk an object is written beside its place, as `<name>#<number>`, which no list of objects names. What a process
//! that was killed has left there is removed once nobody can be writing it any more.

use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::TryStreamExt as _;
use object_store::local::LocalFileSystem;
use object_store::{ObjectStore, ObjectStoreExt as _, PutMode};

/// Why the store could not do it.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// There is no room.
    #[error("there is no room left to write {0}")]
    Full(String),
    /// Something else.
    #[error("{0}: {1}")]
    Failed(String, object_store::Error),
}

impl StoreError {
    fn of(name: &str, error: object_store::Error) -> Self {
        if is_full(&error) {
            Self::Full(name.into())
        } else {
            Self::Failed(name.into(), error)
        }
    }
}

/// Whether somewhere below it the system said that there is no room.
fn is_full(error: &(dyn std::error::Error + 'static)) -> bool {
    let full = [io::ErrorKind::StorageFull, io::ErrorKind::QuotaExceeded];
    let mut error = Some(error);
    while let Some(cause) = error {
        if let Some(io) = cause.downcast_ref::<io::Error>() {
            return full.contains(&io.kind());
        }
        error = cause.source();
    }
    false
}

/// An object of a listing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Object {
    /// Its whole name.
    pub(crate) name: String,
    /// Its bytes.
    pub(crate) size: u64,
}

/// Where everything is kept.
#[derive(Clone, Debug)]
pub struct Store {
    objects: Arc<dyn ObjectStore>,
    /// On a local disk, where.
    folder: Option<PathBuf>,
}

/// How long nothing was written to a file that is nobody's any more.
pub(crate) const ABANDONED: Duration = Duration::from_secs(3600);

impl Store {
    /// The store in a folder, which is made, for its owner alone, if it is not there.
    ///
    /// # Errors
    /// Where it cannot be made.
    pub fn local(folder: &Path) -> Result<Self, StoreError> {
        let failed = |error: io::Error| {
            let source = Box::new(error);
            let store = "LocalFileSystem";
            StoreError::of(
                &folder.display().to_string(),
                object_store::Error::Generic { store, source },
            )
        };
        let mut builder = std::fs::DirBuilder::new();
        builder.recursive(true).mode(0o700);
        builder.create(folder).map_err(failed)?;
        let local = LocalFileSystem::new_with_prefix(folder)
            .map_err(|error| StoreError::of(&folder.display().to_string(), error))?;
        Ok(Self {
            folder: Some(folder.into()),
            ..Self::over(Arc::new(local.with_fsync(true)))
        })
    }

    /// A store over anything that keeps objects, durably once it has said so.
    #[must_use]
    pub fn over(objects: Arc<dyn ObjectStore>) -> Self {
        Self {
            objects,
            folder: None,
        }
    }

    /// Removes what was not written to its end, of processes that are gone.
    pub(crate) fn sweep(&self) {
        if let Some(folder) = &self.folder {
            sweep(folder);
        }
    }

    /// Writes an object.
    pub(crate) async fn put(&self, name: &str, bytes: Bytes) -> Result<(), StoreError> {
        let path = object_store::path::Path::from(name);
        let put = self.objects.put(&path, bytes.into()).await;
        put.map(|_| ()).map_err(|error| StoreError::of(name, error))
    }

    /// Writes an object that is not there yet; whether it was not. A disk that has no hard links cannot tell where two are written at the
    /// same instant; then either may stay.
    pub(crate) async fn put_new(&self, name: &str, bytes: Bytes) -> Result<bool, StoreError> {
        let path = object_store::path::Path::from(name);
        let new = bytes.clone().into();
        match self
            .objects
            .put_opts(&path, new, PutMode::Create.into())
            .await
        {
            Ok(_) => Ok(true),
            Err(object_store::Error::AlreadyExists { .. }) => Ok(false),
            Err(_) if self.get(name).await?.is_some() => Ok(false),
            Err(_) => self.put(name, bytes).await.map(|()| true),
        }
    }

    /// Reads an object; `None` where there is none.
    pub(crate) async fn get(&self, name: &str) -> Result<Option<Bytes>, StoreError> {
        let path = object_store::path::Path::from(name);
        let read = async { self.objects.get(&path).await?.bytes().await };
        match read.await {
            Ok(bytes) => Ok(Some(bytes)),
            Err(object_store::Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(StoreError::of(name, error)),
        }
    }

    /// Takes an object away, if it is there.
    pub(crate) async fn delete(&self, name: &str) -> Result<(), StoreError> {
        let path = object_store::path::Path::from(name);
        match self.objects.delete(&path).await {
            Ok(()) | Err(object_store::Error::NotFound { .. }) => Ok(()),
            Err(error) => Err(StoreError::of(name, error)),
        }
    }

    /// The objects whose names start with this folder, in the order of their names.
    pub(crate) async fn list(&self, folder: &str) -> Result<Vec<Object>, StoreError> {
        let path = object_store::path::Path::from(folder);
        let listed = self.objects.list(Some(&path)).map_ok(|meta| Object {
            name: meta.location.to_string(),
            size: meta.size,
        });
        let listed: Result<Vec<Object>, _> = listed.try_collect().await;
        let mut listed = listed.map_err(|error| StoreError::of(folder, error))?;
        listed.sort_unstable_by(|one, other| one.name.cmp(&other.name));
        Ok(listed)
    }
}

fn sweep(folder: &Path) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let Ok(found) = entry.metadata() else {
            continue;
        };
        if found.is_dir() {
            sweep(&entry.path());
            continue;
        }
        let since = found.modified().ok().and_then(|at| at.elapsed().ok());
        let is_old = since.is_some_and(|since| since >= ABANDONED);
        if is_old && is_unfinished(&entry.file_name().to_string_lossy()) {
            tracing::info!(path = %entry.path().display(), "removed, as nobody writes it any more");
            let _ = std::fs::remove_file(entry.path());
        }
    }
}

/// Whether an object that is being written is called so.
fn is_unfinished(name: &str) -> bool {
    let number = name.rsplit_once('#').map(|(_, number)| number);
    number.is_some_and(|number| number.parse::<u64>().is_ok())
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};
    use std::time::SystemTime;

    use super::{ABANDONED, Store};

    #[test]
    fn what_the_killed_have_left_half_written_is_removed() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::local(folder.path()).unwrap();
        let within = folder.path().join("programs/ab");
        fs::create_dir_all(&within).unwrap();
        let made = |name: &str, is_old: bool| {
            let file = File::create(within.join(name)).unwrap();
            if is_old {
                file.set_modified(SystemTime::now() - ABANDONED).unwrap();
            }
        };
        made("file", true);
        made("file#1", true);
        made("file#2", false);
        made("file#x", true);
        store.sweep();
        let left = fs::read_dir(&within).unwrap();
        let mut left: Vec<_> = left.map(|entry| entry.unwrap().file_name()).collect();
        left.sort();
        assert_eq!(left, ["file", "file#2", "file#x"]);
    }
}
