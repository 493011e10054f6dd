//! Where models are kept, so that a program is analysed once.
//!
//! One directory, `$TOMO_CACHE_DIR`, else `$XDG_CACHE_HOME/tomograph`, else for root `/var/cache/tomograph` and for everybody
//! else `~/.cache/tomograph`, with one file a program, `models/<build id or content hash>-<fingerprint>-v<format>.<analysis>.model`
//! (see [`Identity`]), and beside them what bytes of files hash to. Any number of processes may read and write at once: a file is written under a
//! temporary name in the same directory and renamed, so whoever opens a model finds a whole one. It is not
//! forced to the disk; what a crash of the machine leaves half-written its checksums refuse.
//!
//! What is found in the directory is believed only if it belongs to the user who runs us, for a
//! model decides where a program will be patched.

use std::fs::{self, File, Metadata};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use crate::contents::{self, Stamp};
use crate::identity::Identity;
use crate::model::{ANALYSIS_VERSION, FORMAT_VERSION};
use crate::{Model, ModelError};

/// What temporary files start with.
const TEMPORARY: &str = ".writing-";
/// How old a temporary file is that nobody writes any more.
const ABANDONED: Duration = Duration::from_secs(24 * 60 * 60);

/// A directory with models.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cache {
    directory: PathBuf,
}

/// Why a file of the cache is not used.
#[derive(Debug, thiserror::Error)]
pub enum CacheError {
    /// It is no sound model.
    #[error("{}: {error}", path.display())]
    Model {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        error: ModelError,
    },
    /// It belongs to somebody else.
    #[error("{}: belongs to another user", path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
    },
}

impl Cache {
    /// The cache that the environment names: `variable` gives the value of an environment variable.
    /// `None` where there is no home directory either.
    pub fn from_environment(variable: impl Fn(&str) -> Option<std::ffi::OsString>) -> Option<Self> {
        let path = |name| {
            variable(name)
                .filter(|value| !value.is_empty())
                .map(PathBuf::from)
        };
        // A relative XDG_CACHE_HOME is invalid by the specification.
        let xdg = || path("XDG_CACHE_HOME").filter(|path| path.is_absolute());
        let above = || {
            xdg()
                .or_else(|| system(Path::new("/var/cache")))
                .or_else(|| Some(path("HOME")?.join(".cache")))
        };
        let directory = path("TOMO_CACHE_DIR").or_else(|| Some(above()?.join("tomograph")))?;
        Some(Self::at(directory))
    }

    /// The cache in `directory`, which need not exist yet.
    #[must_use]
    pub fn at(directory: impl Into<PathBuf>) -> Self {
        Self {
            directory: directory.into(),
        }
    }

    /// Where it is. Other things about programs may be kept there, too, in folders of their own.
    #[must_use]
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// What the bytes of a file hash to, if that is remembered.
    pub(crate) fn recall(&self, file: &Metadata) -> Option<u128> {
        contents::recall(&self.contents(), &Stamp::of(file))
    }

    /// Remembers that, unless the file has changed between `before` and `after`. Where it cannot be written, only time is lost.
    pub(crate) fn remember(&self, content: u128, before: &Metadata, after: &Metadata) {
        let stamp = Stamp::of(before);
        if stamp == Stamp::of(after) {
            let _ = contents::remember(&self.contents(), &stamp, content);
        }
    }

    fn contents(&self) -> PathBuf {
        self.directory.join("contents")
    }

    fn models(&self) -> PathBuf {
        self.directory.join("models")
    }

    /// Where the model of this program is kept.
    #[must_use]
    pub fn path_of(&self, identity: &Identity) -> PathBuf {
        let stem = identity.file_stem();
        self.models()
            .join(format!("{stem}-v{FORMAT_VERSION}.{ANALYSIS_VERSION}.model"))
    }

    /// The model of this program, if there is one; its header and summary are sound.
    ///
    /// # Errors
    /// Where there is one that cannot be used.
    pub fn find(&self, identity: &Identity) -> Result<Option<Model>, CacheError> {
        let path = self.path_of(identity);
        let file = match File::open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => {
                return Err(CacheError::Model {
                    path,
                    error: error.into(),
                });
            }
        };
        match file.metadata() {
            Ok(metadata) if !is_ours(&metadata) => return Err(CacheError::Foreign { path }),
            _ => {}
        }
        let model = Model::from_file(&file).map_err(|error| CacheError::Model {
            path: path.clone(),
            error,
        })?;
        if model.fingerprint() != identity.fingerprint {
            let what = "it is of another program";
            let error = ModelError::Malformed {
                section: "header",
                what,
            };
            return Err(CacheError::Model { path, error });
        }
        Ok(Some(model))
    }

    /// Keeps the model of this program.
    ///
    /// # Errors
    /// Where it cannot be written; what was there before is still there.
    pub fn keep(&self, identity: &Identity, model: &Model) -> io::Result<()> {
        let models = self.models();
        make_folder(&models, CLOSED)?;
        sweep(&models);
        let mut file = tempfile::Builder::new()
            .prefix(TEMPORARY)
            .tempfile_in(&models)?;
        file.write_all(model.as_bytes())?;
        file.persist(self.path_of(identity))
            .map_err(|error| error.error)?;
        Ok(())
    }
}

/// Root's caches, `folder`, where this is the root to whom it belongs (and not one in a namespace). They are not in his home,
/// which nobody else may enter: programs that root starts become other users, and find there what they were told to load.
fn system(folder: &Path) -> Option<PathBuf> {
    let belongs_to_root = |metadata: Metadata| metadata.is_dir() && metadata.uid() == 0;
    let ours = fs::metadata("/proc/self").is_ok_and(|ours| ours.uid() == 0);
    let found = ours && fs::metadata(folder).is_ok_and(belongs_to_root);
    found.then(|| folder.to_path_buf())
}

/// Makes `folder` where it is missing, with `mode`. Others may pass through folders above that are missing, too, and not enter
/// them: to what is known to them by name and may be read.
///
/// # Errors
/// Where one of them cannot be made.
pub fn make_folder(folder: &Path, mode: u32) -> io::Result<()> {
    let making = |mode| {
        let mut builder = fs::DirBuilder::new();
        builder.recursive(true).mode(mode);
        builder
    };
    // What is there already and no folder is told by the second.
    match folder.parent() {
        Some(above) if !above.exists() => making(PASSABLE).create(above)?,
        _ => {}
    }
    making(mode).create(folder)
}

/// A folder for its owner alone.
pub const CLOSED: u32 = 0o700;
/// A folder that others may pass through.
pub const PASSABLE: u32 = 0o711;

/// Whether a file belongs to the user who runs us.
fn is_ours(metadata: &Metadata) -> bool {
    fs::metadata("/proc/self").map_or(true, |ours| ours.uid() == metadata.uid())
}

/// Removes what writers that were killed have left, as far as that is possible.
fn sweep(models: &Path) {
    let Ok(entries) = fs::read_dir(models) else {
        return;
    };
    for entry in entries.flatten() {
        let temporary = entry.file_name().to_string_lossy().starts_with(TEMPORARY);
        let modified = entry.metadata().and_then(|metadata| metadata.modified());
        let age = modified
            .ok()
            .and_then(|time| SystemTime::now().duration_since(time).ok());
        if temporary && age.is_some_and(|age| age > ABANDONED) {
            let _ = fs::remove_file(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::OsString;

    fn directory(variables: &[(&str, &str)]) -> Option<PathBuf> {
        let find = |name: &str| variables.iter().find(|(known, _)| *known == name);
        Cache::from_environment(|name| Some(OsString::from(find(name)?.1)))
            .map(|cache| cache.directory)
    }

    #[test]
    fn the_environment_says_where() {
        let all = [
            ("TOMO_CACHE_DIR", "here"),
            ("XDG_CACHE_HOME", "/xdg"),
            ("HOME", "/home/u"),
        ];
        assert_eq!(directory(&all), Some("here".into()));
        assert_eq!(directory(&all[1..]), Some("/xdg/tomograph".into()));
        let home = fs::metadata("/proc/self").is_ok_and(|ours| ours.uid() != 0);
        let last = match home {
            true => "/home/u/.cache/tomograph",
            false => "/var/cache/tomograph",
        };
        assert_eq!(directory(&all[2..]), Some(last.into()));
        assert_eq!(
            directory(&[
                ("TOMO_CACHE_DIR", ""),
                ("XDG_CACHE_HOME", "relative"),
                all[2]
            ]),
            directory(&all[2..])
        );
        assert_eq!(directory(&[]).is_none(), home);
    }

    #[test]
    fn the_systems_caches_are_the_systems_roots() {
        let own = tempfile::tempdir().expect("a folder");
        let is_root = fs::metadata("/proc/self").is_ok_and(|ours| ours.uid() == 0);
        let expected = is_root.then(|| own.path().to_path_buf());
        assert_eq!(system(own.path()), expected);
        assert_eq!(system(&own.path().join("missing")), None);
        if is_root {
            std::os::unix::fs::chown(own.path(), Some(65534), None).expect("given away");
            assert_eq!(system(own.path()), None);
        }
    }
}
