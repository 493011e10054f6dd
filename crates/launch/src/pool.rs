//! A pool: a folder in which all runs of a build on this host share one image, and so what they have
//! seen. A probe that was hit once, in whichever process, is gone for all of them, at once and later.
//!
//! For each module it holds an image, a record and a plan, and for all of them one roster. Any number of
//! processes may add modules at once: a file is put there whole or not at all, the image last, and
//! the roster is replaced under a lock.

use std::fs;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use nix::fcntl::{Flock, FlockArg};
use nix::sys::statvfs::{FsFlags, statvfs};
use serde_json::{Value, json};
use tomo_program::{Progress, hexadecimal, read_regular, text_of};
use tomo_wire::image::Image;
use tomo_wire::record::Record;
use tomo_wire::roster::RosterView;
use tomo_wire::{ModuleId, Refusal, of_schema};

use crate::folder::{Files, Listed, roster_bytes, write_record};
use crate::images::{Baked, read_header};
use crate::outside::{Outside, OutsideError};
use crate::private::{self, NotPrivate};
use crate::room::Room;
use crate::{Forks, How, ImageError, Images, Observed, Target};

/// A folder that runs share.
#[derive(Debug)]
pub struct Pool {
    path: PathBuf,
    forks: Forks,
}

/// Why a pool cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum PoolError {
    /// Others could change what is in it.
    #[error(transparent)]
    NotPrivate(#[from] NotPrivate),
    /// A file of it cannot be read or written.
    #[error("{path}: {1}", path = .0.display())]
    Io(PathBuf, io::Error),
    /// A module has no image.
    #[error(transparent)]
    Image(#[from] ImageError),
    /// Nothing may be executed from there.
    #[error("{}: is on a file system that allows no programs to run (noexec); choose another folder", .0.display())]
    NotExecutable(PathBuf),
    /// It has an image of this module already, which observes something else.
    #[error(
        "{}: holds an image of {} that was made with another --level or --placement, or by another version of tomo; choose another pool, or remove this one",
        .0.display(), .1.display()
    )]
    Different(PathBuf, PathBuf),
    /// What it says of itself is of another version.
    #[error("{path}: {1}; choose another pool", path = .0.display())]
    Version(PathBuf, Refusal),
    /// Its processes are kept together, and are to be kept apart, or the other way round.
    #[error("{}: was made with --fork {}; choose another pool, or remove this one", .0.display(), .1.name())]
    OtherForks(PathBuf, Forks),
}

impl Pool {
    /// The pool in the folder `path`, which is made if need be.
    ///
    /// # Errors
    /// Where it cannot be made, or others could change what is in it.
    pub fn open(path: &Path) -> Result<Self, PoolError> {
        let path = private::passage(path)?;
        let flags = statvfs(&path).map_err(|error| PoolError::Io(path.clone(), error.into()))?;
        if flags.flags().contains(FsFlags::ST_NOEXEC) {
            return Err(PoolError::NotExecutable(path));
        }
        let forks = Forks::default();
        Ok(Self { path, forks })
    }

    /// The same, with processes kept together or apart.
    #[must_use]
    pub fn with(self, forks: Forks) -> Self {
        Self { forks, ..self }
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The path of its roster.
    #[must_use]
    pub fn roster(&self) -> PathBuf {
        self.path.join("roster")
    }

    /// Sees to it that the pool arms these modules; bakes what is missing.
    ///
    /// # Errors
    /// Where a module has no image, or the pool has another one.
    pub fn add(
        &self,
        modules: &[Observed],
        images: &Images,
        how: How,
        progress: &dyn Progress,
    ) -> Result<(), PoolError> {
        let mut room = Room::default();
        for module in modules {
            let there = read_header(&self.file(&module.stem, "image"));
            let baked = match (&there, module.placed) {
                // What the pool has it keeps, wherever its trampolines are.
                (Some(header), placed) => {
                    placed.inspect(|placed| room.take(*placed, header));
                    images.get_at(module, how, None, progress)?
                }
                (None, _) => images.get(module, how, &mut room, progress)?,
            };
            self.add_one(module, &baked)?;
        }
        self.list(modules)
    }

    /// What arms `target` by way of this pool, if that is a static program and one of `modules`.
    ///
    /// # Errors
    /// Where a file cannot be read, or processes are to be kept apart, which takes an agent.
    pub fn outside(
        &self,
        target: &Target,
        modules: &[Observed],
    ) -> Result<Option<Outside>, OutsideError> {
        let Some(module) = modules.iter().find(|module| module.is_program(target)) else {
            return Ok(None);
        };
        if self.forks == Forks::Separate {
            return Err(OutsideError::NeedsAgent("--fork separate"));
        }
        let [image, record] = ["image", "record"].map(|kind| self.file(&module.stem, kind));
        let files = private::open(&image, true).and_then(|file| Ok((file.try_clone()?, file)));
        let is_alone = modules.len() == 1;
        let outside = files.and_then(|files| Outside::of((module.stamp, is_alone), files, &record));
        outside
            .map(Some)
            .map_err(|error| OutsideError::Io(image, error))
    }

    /// Where the record of a module is.
    #[must_use]
    pub fn record(&self, module: &Observed) -> PathBuf {
        self.file(&module.stem, "record")
    }

    fn file(&self, stem: &str, kind: &str) -> PathBuf {
        self.path.join(format!("{stem}.{kind}"))
    }

    fn add_one(&self, module: &Observed, baked: &Baked) -> Result<(), PoolError> {
        let [image, record, plan] = ["image", "record", "plan"].map(|k| self.file(&module.stem, k));
        let header = &baked.header;
        if image.exists() {
            return self.check(module, header, &image, &record);
        }
        let at = |path: &Path| {
            let path = path.to_path_buf();
            move |error| PoolError::Io(path, error)
        };
        let bytes = fs::read(&baked.plan).map_err(at(&baked.plan))?;
        private::provide(&plan, &[&bytes]).map_err(at(&plan))?;
        let (name, probes) = (header.plan.get(), header.probes.get());
        provide_record(&record, header.module, name, probes).map_err(at(&record))?;
        let bytes = fs::read(&baked.image).map_err(at(&baked.image))?;
        // Of the file as it is now, which may have been touched or copied since the image was made: who is armed looks at
        // no more than that.
        let mut head = *header;
        head.stamp = module.stamp;
        let head = head.sealed();
        let rest = bytes.get(head.len()..).unwrap_or(&[]);
        private::provide(&image, &[&head, rest]).map_err(at(&image))?;
        self.check(module, header, &image, &record)
    }

    /// Whether what the pool has is what is wanted.
    fn check(
        &self,
        module: &Observed,
        wanted: &Image,
        image: &Path,
        record: &Path,
    ) -> Result<(), PoolError> {
        let head = |path: &Path| -> io::Result<(Vec<u8>, u64)> {
            let file = private::open(path, false)?;
            let length = file.metadata()?.len();
            let mut bytes = vec![0; length.min(4096) as usize];
            file.read_exact_at(&mut bytes, 0)?;
            Ok((bytes, length))
        };
        let bad = |path: &Path, refusal: tomo_wire::Refusal| {
            PoolError::Io(path.into(), io::Error::other(refusal.to_string()))
        };
        let (bytes, length) = head(image).map_err(|e| PoolError::Io(image.into(), e))?;
        let there = Image::read(&bytes, length).map_err(|r| bad(image, r))?;
        let (bytes, length) = head(record).map_err(|e| PoolError::Io(record.into(), e))?;
        let marks = Record::read(&bytes, length).map_err(|r| bad(record, r))?;
        let same = there.module == wanted.module && there.plan == wanted.plan;
        if same && marks.module == wanted.module && marks.plan == wanted.plan {
            Ok(())
        } else {
            Err(PoolError::Different(self.path.clone(), module.path.clone()))
        }
    }

    /// Names these modules in the roster and in `pool.json`, beside those that are named there.
    fn list(&self, modules: &[Observed]) -> Result<(), PoolError> {
        let at = |path: &Path| {
            let path = path.to_path_buf();
            move |error| PoolError::Io(path, error)
        };
        let lock = self.path.join("lock");
        let file = fs::OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .open(&lock);
        let file = file.map_err(at(&lock))?;
        let _lock = Flock::lock(file, FlockArg::LockExclusive)
            .map_err(|(_, error)| PoolError::Io(lock.clone(), error.into()))?;
        let json_path = self.path.join("pool.json");
        let Described { mut known, forks } = described(&json_path)
            .map_err(|refusal| PoolError::Version(json_path.clone(), refusal))?;
        if !known.is_empty() && forks != self.forks {
            return Err(PoolError::OtherForks(self.path.clone(), forks));
        }
        let before = known.clone();
        for module in modules {
            let stem = module.stem.as_str();
            match known.iter_mut().find(|entry| entry["stem"] == stem) {
                Some(entry) if module.late => entry["late"] = true.into(),
                Some(_) => {}
                None => known.push(json!({
                    "path": text_of(&module.path),
                    "build_id": module.id.build_id().map(hexadecimal),
                    "stem": stem,
                    "late": module.late,
                })),
            }
        }
        // Another version of tomo may have written what this one's agent would not read.
        let sound = fs::read(self.roster()).is_ok_and(|bytes| RosterView::read(&bytes).is_ok());
        if known == before && sound {
            return Ok(());
        }
        self.write_roster(&known)?;
        let document = json!({
            "schema": SCHEMA,
            "forks": self.forks.name(),
            "modules": known,
        });
        let text = format!("{document:#}\n");
        private::replace(&json_path, &[text.as_bytes()]).map_err(at(&json_path))
    }

    fn write_roster(&self, known: &[Value]) -> Result<(), PoolError> {
        let entries = known.iter().filter_map(|entry| {
            let stem = entry["stem"].as_str()?;
            let image = read_header(&self.file(stem, "image"))?;
            let name = |kind: &str| format!("{stem}.{kind}").into();
            Some(Listed {
                module: image.module,
                image: name("image"),
                record: name("record"),
                text: None,
                late: entry["late"] == true,
                forks: self.forks,
            })
        });
        let path = self.roster();
        private::replace(&path, &[&roster_bytes(entries, Files::default())])
            .map_err(|error| PoolError::Io(path.clone(), error))
    }
}

/// Makes a record unless there is one. Who finds it finds all of it.
fn provide_record(path: &Path, module: ModuleId, plan: u64, probes: u32) -> io::Result<()> {
    private::provide_by(path, |temporary| {
        write_record(temporary, module, plan, probes, [0; 16])
    })
}

/// The form of `pool.json`.
const SCHEMA: &str = "tomo.pool/1";

/// What `pool.json` says.
struct Described {
    /// The modules.
    known: Vec<Value>,
    forks: Forks,
}

/// What is said at `path`; of what cannot be read, nothing.
///
/// # Errors
/// Where it is of another version.
fn described(path: &Path) -> Result<Described, Refusal> {
    let document = read_regular(path).ok();
    let document: Option<Value> = document.and_then(|bytes| serde_json::from_slice(&bytes).ok());
    let mut document = document.unwrap_or_default();
    let schema = document["schema"].as_str().unwrap_or_default();
    if let Err(version @ Refusal::Version { .. }) = of_schema(schema, SCHEMA) {
        return Err(version);
    }
    let separate = document["forks"] == Forks::Separate.name();
    let modules = document.get_mut("modules").and_then(Value::as_array_mut);
    Ok(Described {
        known: modules.map(std::mem::take).unwrap_or_default(),
        forks: match separate {
            true => Forks::Separate,
            false => Forks::Shared,
        },
    })
}

#[cfg(test)]
mod tests {
    use std::thread;

    use zerocopy::FromZeros as _;

    use super::*;

    #[test]
    fn records_are_whole_whoever_makes_them() {
        let folder = tempfile::tempdir().expect("a folder");
        for round in 0..100 {
            let path = folder.path().join(format!("{round}.record"));
            let find = || {
                let made = provide_record(&path, ModuleId::new_zeroed(), 1, 100_000);
                made.expect("a record");
                let bytes = fs::read(&path).expect("a record");
                Record::read(&bytes, bytes.len() as u64).expect("whole");
            };
            thread::scope(|scope| (0..4).for_each(|_| _ = scope.spawn(find)));
        }
    }

    #[test]
    fn of_what_does_not_describe_a_pool_nothing_is_known() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("pool.json");
        for text in ["", "[]", "7", "\"modules\"", "{\"modules\": 7}"] {
            fs::write(&path, text).expect("written");
            assert!(described(&path).expect("of no version").known.is_empty());
        }
    }
}
