//! Variants: images of which only some probes are left, which runs share.
//!
//! A variant's image is its module's, woven once for all variants, with all other probes disposed of before anybody
//! runs it. So what a variant observes is a choice among places that were proven safe, and nothing else is
//! ever made into code. All runs of an installation map one file: what one of them has hit is gone for all,
//! now and later. The records are each run's own. Where predicates are observed a run is to tell all that happened in
//! it, so each has a text of its own.

use std::ffi::OsString;
use std::fs::{self, DirBuilder};
use std::io;
use std::io::Read as _;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use nix::sys::statvfs::{FsFlags, statvfs};
use tomo_program::Progress;
use tomo_wire::counting::Contents;
use tomo_wire::image::Image;
use tomo_wire::record::RecordView;
use tomo_wire::{FileStamp, ModuleId, Refusal};

use crate::folder::{
    CRASHES, Files, Listed, ROSTER, SLABS, copy_text, roster_bytes, write_crashes, write_record,
    write_slabs,
};
use crate::images::{Baked, is_unchanged, read_header};
use crate::modules::stamp_of;
use crate::private::{self, NotPrivate};
use crate::room::Room;
use crate::{Chosen, Forks, How, ImageError, Images, Observed, Outside, Target};

/// Why there is no variant.
#[derive(Debug, thiserror::Error)]
pub enum VariantError {
    /// A file of it cannot be read or written.
    #[error("{path}: {1}", path = .0.display())]
    Io(PathBuf, io::Error),
    /// A file that it is made from is damaged.
    #[error("{path}: {1}; remove it, so that it is made anew", path = .0.display())]
    Damaged(PathBuf, Refusal),
    /// Others could change what is in a folder.
    #[error(transparent)]
    NotPrivate(#[from] NotPrivate),
    /// The module has no image.
    #[error(transparent)]
    Image(#[from] ImageError),
    /// Nothing may be executed from there.
    #[error("{}: is on a file system that allows no programs to run (noexec); choose another folder", .0.display())]
    NotExecutable(PathBuf),
}

pub(crate) fn io_at(path: &Path) -> impl FnOnce(io::Error) -> VariantError {
    let path = path.to_path_buf();
    move |error| VariantError::Io(path, error)
}

/// A module's image with all its probes, from which variants are made.
#[derive(Clone, Debug)]
pub struct Master {
    baked: Baked,
}

/// The masters of the modules of one program, each with room beside the others; baked where the cache has
/// none.
///
/// # Errors
/// Where a module has none.
pub fn masters<'m>(
    modules: impl IntoIterator<Item = (&'m Observed, How)>,
    images: &Images,
    progress: &dyn Progress,
) -> Result<Vec<Master>, ImageError> {
    let mut room = Room::default();
    let each = modules.into_iter();
    each.map(|(module, how)| {
        let baked = images.get(module, how, &mut room, progress)?;
        Ok(Master { baked })
    })
    .collect()
}

impl Master {
    /// What names its plan.
    #[must_use]
    pub fn plan(&self) -> u64 {
        self.baked.header.plan.get()
    }

    /// The file of its plan.
    #[must_use]
    pub fn plan_path(&self) -> &Path {
        &self.baked.plan
    }

    /// The file of how each of its probes is disposed of.
    #[must_use]
    pub fn disposals_path(&self) -> &Path {
        &self.baked.disposals
    }

    /// How many probes it has.
    #[must_use]
    pub fn probes(&self) -> u32 {
        self.baked.header.probes.get()
    }

    /// Its module.
    #[must_use]
    pub fn module(&self) -> ModuleId {
        self.baked.header.module
    }

    /// Writes the image in which only the `wanted` probes are left to `path`, whole or not at all; gives the file of
    /// how these are disposed of.
    ///
    /// # Errors
    /// Where it cannot be written, or the files in the cache are damaged.
    pub fn write(
        &self,
        path: &Path,
        wanted: impl Fn(u32) -> bool,
    ) -> Result<Vec<u8>, VariantError> {
        let Baked {
            image, disposals, ..
        } = &self.baked;
        let mut bytes = fs::read(image).map_err(io_at(image))?;
        let rows = fs::read(disposals).map_err(io_at(disposals))?;
        let disposed = tomo_weave::dispose(&mut bytes, &rows, wanted);
        let left = disposed.map_err(|refusal| VariantError::Damaged(disposals.clone(), refusal))?;
        private::install(path, &[&bytes]).map_err(io_at(path))?;
        Ok(left)
    }
}

/// A variant's image of one module, in a file that runs share.
#[derive(Clone, Debug)]
pub struct Carried {
    /// The module.
    pub module: ModuleId,
    /// What files that belong to it are called.
    pub stem: String,
    /// The image's file.
    pub image: PathBuf,
    /// What names its plan.
    pub plan: u64,
    /// How many probes it has, disposed of or not.
    pub probes: u32,
    /// Whether each run has a copy of its text, because each is to tell by itself what happened in it.
    pub alone: bool,
    /// Whether the program may load the module after its start.
    pub late: bool,
    /// How many bytes of a slab it needs, and what is in them, if it counts.
    pub slab: Option<(u32, Contents)>,
}

impl Carried {
    /// The image of `module` in the cache.
    pub(crate) fn baked(baked: &Baked, module: &Observed) -> Self {
        Self {
            module: module.id,
            stem: module.stem.clone(),
            image: baked.image.clone(),
            plan: baked.header.plan.get(),
            probes: baked.header.probes.get(),
            alone: false,
            late: module.late,
            slab: slab(&baked.header),
        }
    }

    /// The image in the file `image`, if it is there, sound as far as its header tells, and of this plan.
    #[must_use]
    pub fn of(image: &Path, stem: &str, plan: u64, probes: u32) -> Option<Self> {
        let header = read_header(image)?;
        let same = header.plan.get() == plan && header.probes.get() == probes;
        same.then(|| Self {
            module: header.module,
            stem: stem.into(),
            image: image.into(),
            plan,
            probes,
            alone: false,
            late: false,
            slab: slab(&header),
        })
    }

    /// The same where trees of calls are in slabs, of `memory` bytes each at least.
    #[must_use]
    pub fn with_chains(self, memory: u32) -> Self {
        let least = self.slab.map_or(0, |(end, _)| end);
        Self {
            slab: Some((least.max(memory), Contents::Chains)),
            ..self
        }
    }

    /// What tells of this program's file that it is still the one that was looked at, if the image is of its build. Where its text is
    /// another one all the same, that is what no process has, so that none is armed, which the record says.
    fn stamp_as(&self, program: &Target) -> io::Result<Option<FileStamp>> {
        let path = &program.executable;
        let header = read_header(&self.image).ok_or(io::ErrorKind::InvalidData)?;
        let stamp = stamp_of(&fs::metadata(path)?);
        if header.stamp == stamp {
            return Ok(Some(stamp));
        }
        // It was touched or copied, or is another one.
        let found = Observed::of(&Chosen::executable(program))?;
        if found.stem != self.stem {
            return Ok(None);
        }
        Ok(Some(match is_unchanged(&header, path) {
            true => found.stamp,
            false => header.stamp,
        }))
    }

    /// The file of its record in the folder of a run.
    #[must_use]
    pub fn record(&self, folder: &Path) -> PathBuf {
        folder.join(format!("{}.record", self.stem))
    }

    /// Copies its text into the folder of a run, if each has its own: the copy's path and inode.
    fn text(&self, folder: &Path) -> Result<Option<(OsString, u64)>, VariantError> {
        if !self.alone {
            return Ok(None);
        }
        let path = folder.join(format!("{}.text", self.stem));
        let copy = || -> io::Result<u64> {
            let mut image = private::open(&self.image, false)?;
            let header = read_header(&self.image).ok_or(io::ErrorKind::InvalidData)?;
            let mut text = private::create(&path)?;
            copy_text(&mut image, &header, &mut text)?;
            Ok(text.metadata()?.ino())
        };
        let inode = copy().map_err(io_at(&path))?;
        Ok(Some((path.into_os_string(), inode)))
    }
}

fn slab(image: &Image) -> Option<(u32, Contents)> {
    let contents = match image.shadowed.get() {
        0 => Contents::Counters,
        _ => Contents::Paths,
    };
    let end = image.slab_end.get();
    (end > 0).then_some((end, contents))
}

/// Makes `path` a folder of this user's alone from which images may be executed; gives its real path.
///
/// # Errors
/// Where it cannot be made, others could change what is in it, or nothing may be executed from there.
pub fn private_folder(path: &Path) -> Result<PathBuf, VariantError> {
    let path = private::folder(path)?;
    let flags = statvfs(&path).map_err(|error| VariantError::Io(path.clone(), error.into()))?;
    if flags.flags().contains(FsFlags::ST_NOEXEC) {
        return Err(VariantError::NotExecutable(path));
    }
    Ok(path)
}

/// Makes a folder for this user alone; it must not exist.
///
/// # Errors
/// Where it cannot be made.
pub fn new_folder(path: &Path) -> Result<(), VariantError> {
    DirBuilder::new()
        .mode(0o700)
        .create(path)
        .map_err(io_at(path))
}

/// Writes what a run with these images needs into its `folder`: records without marks, texts of its own where they are
/// wanted, slabs if one of them counts, a file for crashes, and the roster, whose path it gives.
///
/// # Errors
/// Where they cannot be written.
pub fn equip(folder: &Path, run: [u8; 16], images: &[Carried]) -> Result<PathBuf, VariantError> {
    for carried in images {
        let record = carried.record(folder);
        let (module, plan, probes) = (carried.module, carried.plan, carried.probes);
        write_record(&record, module, plan, probes, run).map_err(io_at(&record))?;
    }
    let texts = images.iter().map(|carried| carried.text(folder));
    let texts: Vec<Option<(OsString, u64)>> = texts.collect::<Result<_, _>>()?;
    let entries = images.iter().zip(texts).map(|(carried, text)| Listed {
        module: carried.module,
        image: carried.image.as_os_str().to_os_string(),
        text,
        record: carried.record(folder).into_os_string(),
        late: carried.late,
        forks: Forks::Shared,
    });
    let roster = folder.join(ROSTER);
    let crashes = folder.join(CRASHES);
    write_crashes(&crashes, run).map_err(io_at(&crashes))?;
    let slabs = folder.join(SLABS);
    let counts = images
        .iter()
        .filter_map(|carried| carried.slab)
        .max_by_key(|(end, _)| *end);
    if let Some((end, contents)) = counts {
        write_slabs(&slabs, end, contents).map_err(io_at(&slabs))?;
    }
    let files = Files {
        slabs: counts.map(|_| slabs.as_os_str()),
        crashes: Some(crashes.as_os_str()),
    };
    private::replace(&roster, &[&roster_bytes(entries, files)]).map_err(io_at(&roster))?;
    Ok(roster)
}

/// What arms `target` in a run that has been equipped with these images in its `folder`, if that is a static program and one of them
/// is its file's.
///
/// # Errors
/// Where a file of them, or the program's, cannot be read.
pub fn from_outside(
    target: &Target,
    images: &[Carried],
    folder: &Path,
) -> Result<Option<Outside>, VariantError> {
    if !target.is_static() {
        return Ok(None);
    }
    let is_alone = images.len() == 1;
    for carried in images {
        let (path, program) = (&carried.image, &target.executable);
        let Some(stamp) = carried.stamp_as(target).map_err(io_at(program))? else {
            continue;
        };
        let files = private::open(path, true).and_then(|file| Ok((file.try_clone()?, file)));
        let outside = files.and_then(|files| {
            let record = carried.record(folder);
            Outside::of((stamp, is_alone), files, &record)
        });
        return outside.map(Some).map_err(io_at(path));
    }
    Ok(None)
}

/// Reads a record of a run, while it is written or afterwards.
///
/// # Errors
/// Where it cannot be read, belongs to somebody else, or is none.
pub fn read_record<T>(
    path: &Path,
    look: impl FnOnce(&RecordView<'_>) -> T,
) -> Result<T, VariantError> {
    let mut bytes = Vec::new();
    let mut file = private::open(path, false).map_err(io_at(path))?;
    file.read_to_end(&mut bytes).map_err(io_at(path))?;
    let view = RecordView::read(&bytes);
    let view = view.map_err(|refusal| VariantError::Damaged(path.into(), refusal))?;
    Ok(look(&view))
}
